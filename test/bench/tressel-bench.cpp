// Our arms of the rows in rows.py: `tressel-bench ROW`. Everything goes through the public API, as a user would call
// it.
#include "Async.h"
#include "Attention.h"
#include "Bench.h"
#include "Compilation.h"
#include "Convolutions.h"
#include "Dispatch.h"
#include "Hybridize.h"
#include "Loading.h"
#include "Memory.h"
#include "Networks.h"
#include "Packaged.h"
#include "Peaks.h"
#include "Products.h"
#include "Training.h"
#include "Values.h"

#include <tressel/runtime/ThreadPool.h>
#include <tressel/tressel.h>

#include <memory>
#include <thread>

using namespace tressel;
using tressel::bench::Arm;
using tressel::bench::Arms;
using tressel::bench::attentionShapes;
using tressel::bench::ConvolutionShape;
using tressel::bench::convolutionShapes;
using tressel::bench::fillParameters;
using tressel::bench::flat;
using tressel::bench::kConvolutionSeconds;
using tressel::bench::kProductSeconds;
using tressel::bench::libraryArm;
using tressel::bench::LibraryCall;
using tressel::bench::numbers;
using tressel::bench::Packaged;
using tressel::bench::packages;
using tressel::bench::ProductShape;
using tressel::bench::productShapes;
using tressel::bench::secondsOf;
using tressel::bench::secondsPerCall;
using tressel::bench::seedOf;

namespace {

/// Nanoseconds of one call, over a batch long enough for the clock.
Arms callTiny() {
  nn::Sequential net{nn::Dense(64, relu), nn::Dense(16)};
  net.initialize({{f32, {1, 32}}}, 1);
  fillParameters(net);
  net.hybridize();
  Tensor x = numbers({1, 32}, seedOf("a")), y = net(x);
  return {{"tressel", Arm(
                          [=]() mutable {
                            constexpr int calls = 20000;
                            return 1e9 / calls * secondsOf([&] {
                                     for (int i = 0; i < calls; ++i)
                                       y = net(x);
                                     y.wait();
                                   });
                          },
                          [=] { return flat(net(x)); })}};
}

/// Nanoseconds of one call that updates one scalar Variable, x = 0.5 x + 1.
Arms callState() {
  Variable x(ones({}), "x");
  auto step = jit([=] { x.assign(x.value() * 0.5f + 1.0f); });
  auto calls = [=](int n) {
    for (int i = 0; i < n; ++i)
      step();
    wait_all();
  };
  return {{"tressel", Arm(
                          [=] {
                            constexpr int n = 20000;
                            return 1e9 / n * secondsOf([&] { calls(n); });
                          },
                          [=] {
                            x.assign(numbers({}, seedOf("x")));
                            calls(3);
                            return flat(x.value());
                          })}};
}

/// A chain of ops traced but not compiled; each op's result feeds the next, so nothing is dropped while recording.
Arms traceOp() {
  Tensor x = ones({4});
  return {{"tressel", [=] {
             constexpr int ops = 2000;
             auto f = jit([](Tensor x) {
               for (int i = 0; i < ops; ++i)
                 x = x + 1.0f;
               return x;
             });
             f.trace_only(x); // the first warms the context's tables
             return 1e9 / ops * secondsOf([&] { f.trace_only(x); });
           }}};
}

Arm product(DType type) {
  auto make = [=](size_t index) {
    const ProductShape s = productShapes().at(index);
    return Packaged::network(nn::Dense(s.n, nullptr, {.bias = false}), {s.m, s.k}, {s.m, s.n}, type);
  };
  return packages(make, kProductSeconds);
}

/// A convolution whose image and result have their channels last, as networks of them keep their images between layers.
class ChannelsLast : public nn::Module<ChannelsLast> {
public:
  explicit ChannelsLast(const ConvolutionShape &shape)
      : shape_(shape), weight_(parameter("weight", nn::init::he_uniform())) {}
  Tensor forward(Tensor x) const {
    const int64_t pad = shape_.window / 2;
    const auto w =
        weight_.need({shape_.outChannels, shape_.inChannels / shape_.groups, shape_.window, shape_.window}, f32);
    return conv(x, w, {shape_.stride, shape_.stride}, {pad, pad}, {pad, pad}, {}, shape_.groups,
                /*channels_last=*/true);
  }

private:
  ConvolutionShape shape_;
  nn::Parameter weight_;
};

Arm convolution(DType type, std::vector<ConvolutionShape> shapes = convolutionShapes(), bool winograd = false) {
  auto make = [=](size_t index) {
    const ConvolutionShape s = shapes.at(index);
    return Packaged::network(ChannelsLast(s), {1, s.high(), s.wide(), s.inChannels},
                             {1, s.outHigh(), s.outWide(), s.outChannels}, type, winograd);
  };
  return packages(make, kConvolutionSeconds);
}

Arm libraryConvolutions(std::vector<ConvolutionShape> shapes, bool bf16 = false) {
  return libraryArm([=](size_t index) -> const LibraryCall & { return libraryConvolution(shapes.at(index), bf16); });
}
Arm libraryProducts(bool bf16 = false) {
  return libraryArm(
      [=](size_t index) -> const LibraryCall & { return libraryProduct(productShapes().at(index), bf16); });
}

/// The peak of the unit that multiplies, tiles where kernels use them, is measured again for each sample: clocks
/// change.
Arms resnetShare() {
  auto net = std::make_shared<Packaged>(Packaged::network(tressel::bench::residual50(), {1, 3, 224, 224}, {1, 1000}));
  auto share = [=] {
    const int threads = runtime::ThreadPool::global().numThreads();
    const double tiles = tressel::bench::tilePeakFlops(threads),
                 peak = tiles > 0 ? tiles : tressel::bench::peakFlops(threads);
    return tressel::bench::resnet50Flops() / secondsPerCall([&] { net->run(); }, 0.1) / peak;
  };
  return {{"tressel", Arm(share, [=] { return net->outputs(); })},
          {"seconds", [=] { return secondsPerCall([&] { net->run(); }, 0.1); }}};
}

/// A 1x1 convolution of 10x10 pixels whose weights are subnormal at each third place, or (arm "normal") small but
/// normal there.
Arms subnormalWeights() {
  constexpr int64_t in = 96, out = 96, pixels = 10;
  auto make = [](bool subnormal) {
    const ConvolutionShape s{in, out, pixels, 1, 1};
    ChannelsLast layer(s);
    layer.initialize({{f32, {1, pixels, pixels, in}}}, 1);
    std::vector<float> weights(in * out);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = i % 3 == 0 ? (subnormal ? 1.5e-39f : 1.5e-19f) * static_cast<float>(1 + i % 7)
                              : tressel::bench::valueAt(seedOf("weight"), i);
    layer.parameters()[0].second.assign(from_span(weights, {out, in, 1, 1}));
    const auto call = jit([layer](Tensor x) { return layer(x); });
    auto exportTo = [&](const std::string &path) {
      call.export_package(path, {.inputs = {{f32, {1, pixels, pixels, in}, "a"}}});
    };
    return Packaged(exportTo, {{f32, {1, pixels, pixels, in}}}, {f32, {1, pixels, pixels, out}});
  };
  auto with = std::make_shared<Packaged>(make(true)), without = std::make_shared<Packaged>(make(false));
  auto seconds = [](Packaged &p) { return secondsPerCall([&] { p.run(); }, kConvolutionSeconds); };
  return {{"tressel", Arm(
                          [=] {
                            const double baseline = seconds(*without);
                            return seconds(*with) / baseline;
                          },
                          [=] { return with->outputs(); })},
          {"seconds", Arm([=] { return seconds(*with); })}};
}

Arms attention() {
  auto make = [](size_t index) {
    const auto s = attentionShapes().at(index);
    const TensorType type{f32, {s.heads, s.length, s.size}};
    return Packaged::function([](Tensor q, Tensor k, Tensor v) { return scaled_dot_product_attention(q, k, v); },
                              {type, type, type}, type);
  };
  return {{"tressel", packages(make, tressel::bench::kAttentionSeconds)},
          {"onednn", libraryArm([](size_t index) -> const LibraryCall & {
             return tressel::bench::libraryAttention(attentionShapes().at(index));
           })}};
}

/// For the reference, which is written in another language.
void printShapes() {
  auto list = [](const char *name, const auto &shapes, auto text) {
    std::cout << "\"" << name << "\": [";
    for (size_t i = 0; i < shapes.size(); ++i)
      std::cout << (i ? ", " : "") << text(shapes[i]);
    std::cout << "]";
  };
  auto numbers = [](std::initializer_list<int64_t> values) {
    std::string text;
    for (int64_t value : values)
      text += (text.empty() ? "[" : ", ") + std::to_string(value);
    return text + "]";
  };
  auto convolution = [=](const ConvolutionShape &s) {
    return numbers({s.inChannels, s.outChannels, s.high(), s.wide(), s.window, s.stride, s.groups});
  };
  std::cout << "{";
  list("products", productShapes(), [=](const ProductShape &s) { return numbers({s.m, s.k, s.n}); });
  std::cout << ", ";
  list("convolutions", convolutionShapes(), convolution);
  std::cout << ", ";
  list("wide", tressel::bench::wideShapes(), convolution);
  std::cout << ", ";
  list("winograd", tressel::bench::winogradShapes(), convolution);
  std::cout << ", ";
  list("attention", attentionShapes(), [](const auto &s) { return std::to_string(s.length); });
  std::cout << ", ";
  list("rows", tressel::bench::rowShapes(), [=](const auto &s) { return numbers({s.first, s.second}); });
  std::cout << "}\n";
}

Arms armsOf(const std::string &row) {
  using namespace tressel::bench;
  if (row == "gemm.geomean")
    return {{"tressel", product(f32)}, {"best", libraryProducts()}};
  if (row == "gemm.bf16" || row == "gemm.f16")
    return {
        {"tressel", product(row == "gemm.f16" ? f16 : bf16)}, {"f32", product(f32)}, {"onednn", libraryProducts(true)}};
  if (row == "row.attention")
    return attention();
  if (row == "conv.geomean")
    return {{"tressel", convolution(f32)}, {"onednn", libraryConvolutions(convolutionShapes())}};
  if (row == "conv.wide")
    return {{"tressel", convolution(f32, wideShapes())}, {"onednn", libraryConvolutions(wideShapes())}};
  if (row == "conv.bf16")
    return {{"tressel", convolution(bf16)},
            {"f32", convolution(f32)},
            {"onednn", libraryConvolutions(convolutionShapes(), true)}};
  if (row == "conv.winograd")
    return {{"tressel", convolution(f32, winogradShapes(), true)},
            {"direct", convolution(f32, winogradShapes())},
            {"onednn", libraryConvolutions(winogradShapes())}};
  if (row == "infer.resnet50.flops-share")
    return resnetShare();
  if (row == "subnormal.weights")
    return subnormalWeights();
  if (Arms arms = tressel::bench::hybridizeArms(row); !arms.empty())
    return arms;
  if (Arms arms = tressel::bench::loadingArms(row); !arms.empty())
    return arms;
  if (Arms arms = tressel::bench::trainingArms(row); !arms.empty())
    return arms;
  if (row == "call.tiny")
    return callTiny();
  if (row == "state.call")
    return callState();
  if (row == "trace.op")
    return traceOp();
  if (Arms arms = tressel::bench::asyncArms(row); !arms.empty())
    return arms;
  if (Arms arms = tressel::bench::memoryArms(row); !arms.empty())
    return arms;
  if (Arms arms = tressel::bench::dispatchArms(row); !arms.empty())
    return arms;
  return tressel::bench::compileArms(row);
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && argv[1] == std::string("--libraries")) {
    std::cout << tressel::bench::libraries() << "\n";
    return 0;
  }
  if (argc == 2 && argv[1] == std::string("--shapes")) {
    printShapes();
    return 0;
  }
  if (argc == 2 && argv[1] == std::string("--machine")) {
    const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    std::cout << "{\"copy_bytes_per_second\": {\"1\": " << tressel::bench::copyBandwidth(1) << ", \"" << all
              << "\": " << tressel::bench::copyBandwidth(all)
              << "}, \"flops_per_second\": " << tressel::bench::peakFlops(all)
              << ", \"tile_flops_per_second\": " << tressel::bench::tilePeakFlops(all) << "}\n";
    return 0;
  }
  const bool isBlank = argc == 6 && argv[5] == std::string("--blank");
  if ((argc == 4 || argc == 5 || isBlank) && argv[1] == std::string("--export-step") &&
      tressel::bench::exportTrainingStep(argv[2], argv[3], argc > 4 ? argv[4] : "", isBlank))
    return 0;
  if (argc >= 2 && argv[1] == std::string("--hybridize"))
    return tressel::bench::printHybridized(argc > 2 ? argv[2] : "") ? 0 : 1;
  Arms arms = argc == 2 ? armsOf(argv[1]) : Arms{};
  if (arms.empty()) {
    std::cerr
        << "usage: tressel-bench ROW   (the rows are listed in test/bench/rows.py)\n"
           "       tressel-bench --machine     what arithmetic and memory do at most here, as JSON\n"
           "       tressel-bench --export-step ROW FILE.tsl [GPU [--blank]]   the step of a row train.NAME.step as a "
           "package, without weights if blank\n"
           "       tressel-bench --hybridize [PART OF A CASE]   compiled against imperative calls, case by case\n";
    return 2;
  }
  return tressel::bench::serve(arms);
}
