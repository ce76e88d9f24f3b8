// Our arms of the rows in rows.py: `tressel-bench ROW`. Everything goes through the public API, as a user would call it.
#include "Async.h"
#include "Attention.h"
#include "Bench.h"
#include "Convolutions.h"
#include "Compilation.h"
#include "Dispatch.h"
#include "Memory.h"
#include "Networks.h"
#include "Products.h"

#include <tressel/runtime/Package.h>
#include <tressel/runtime/ThreadPool.h>
#include <tressel/tressel.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>
#include <thread>

using namespace tressel;
using tressel::bench::Arm;
using tressel::bench::Arms;
using tressel::bench::attentionShapes;
using tressel::bench::ConvolutionShape;
using tressel::bench::convolutionShapes;
using tressel::bench::kConvolutionSeconds;
using tressel::bench::kProductSeconds;
using tressel::bench::ProductShape;
using tressel::bench::productShapes;
using tressel::bench::secondsPerCall;
using tressel::bench::lenet;
using tressel::bench::secondsOf;

namespace {

nn::Sequential mlp3() { return nn::Sequential{nn::Dense(256, relu), nn::Dense(128, relu), nn::Dense(10)}; }

/// Compiled against imperative: two nets of equal weights, one hybridized. Both must agree before anything is timed.
Arms hybridize(nn::Sequential net, Shape input) {
  net.initialize({{f32, input}}, /*seed=*/1);
  nn::Sequential compiled = net.clone();
  compiled.hybridize();
  Tensor x = rng::normal(input, /*seed=*/2);
  float difference = max(abs(net(x) - compiled(x))).item<float>();
  if (!(difference < 1e-3f)) {
    std::cerr << "imperative and compiled results differ by " << difference << "\n";
    std::exit(1);
  }
  return {{"tressel", [=] { return secondsOf([&] { compiled(x).wait(); }); }},
          {"imperative", [=] { return secondsOf([&] { net(x).wait(); }); }}};
}

/// memcpy of the same bytes by as many threads, over time of the compiled function.
Arms fusionGelu() {
  constexpr int64_t rows = 8192, cols = 4096;
  Tensor x = rng::normal({rows, cols}, 1), w = rng::normal({cols}, 2), b = rng::normal({cols}, 3);
  auto f = jit([](Tensor x, Tensor w, Tensor b) { return gelu(x * w + b); });
  f(x, w, b).wait();
  auto from = std::make_shared<std::vector<float>>(rows * cols, 1.0f);
  auto to = std::make_shared<std::vector<float>>(rows * cols, 0.0f);
  auto copy = [=] {
    const int threads = runtime::ThreadPool::global().numThreads();
    size_t each = rows * cols / threads;
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t)
      pool.emplace_back([=] { std::memcpy(to->data() + t * each, from->data() + t * each, each * sizeof(float)); });
    for (std::thread &t : pool)
      t.join();
  };
  return {{"tressel", [=]() mutable {
             double copied = secondsOf(copy);
             double ours = secondsOf([&] { f(x, w, b).wait(); });
             return copied / ours;
           }},
          {"seconds", [=]() mutable { return secondsOf([&] { f(x, w, b).wait(); }); }},
          {"memcpy", [=] { return secondsOf(copy); }}};
}

/// Nanoseconds of one call, over a batch long enough for the clock.
Arms callTiny() {
  nn::Sequential net{nn::Dense(64, relu), nn::Dense(16)};
  net.initialize({{f32, {1, 32}}}, 1);
  net.hybridize();
  Tensor x = rng::normal({1, 32}, 2), y = net(x);
  return {{"tressel", [=]() mutable {
             constexpr int calls = 20000;
             return 1e9 / calls * secondsOf([&] {
                      for (int i = 0; i < calls; ++i)
                        y = net(x);
                      y.wait();
                    });
           }}};
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

/// A package, called as a deployed program calls it: in the caller's thread, no futures in between.
class Packaged {
public:
  /// Elements of the inputs and of the output, at most as large as f32.
  Packaged(const std::function<void(const std::string &path)> &exportTo, const std::vector<int64_t> &inputs, int64_t output)
      : y_(values(output)) {
    for (int64_t n : inputs)
      x_.push_back(values(n));
    const std::string path = std::filesystem::temp_directory_path() / ("layer-" + std::to_string(getpid()) + ".tsl");
    exportTo(path);
    context_.emplace(runtime::Package::open(path).context());
    std::filesystem::remove(path); // it stays mapped
  }
  template <typename Net> static Packaged layer(Net net, const Shape &input, int64_t output, DType type = f32, bool winograd = false) {
    net.initialize({{f32, input}}, /*seed=*/1);
    net.to(type);
    const auto call = jit([net](Tensor x) { return net(x); }, {.winograd = winograd});
    return Packaged([&](const std::string &path) { call.export_package(path, {.inputs = {{type, input, "x"}}}); },
                    {input.numElements()}, output);
  }
  void run() {
    const void *inputs[4] = {};
    for (size_t i = 0; i < x_.size(); ++i)
      inputs[i] = x_[i].get();
    void *outputs[] = {y_.get()};
    context_->run(std::span(inputs, x_.size()), outputs);
  }

private:
  using Values = std::unique_ptr<float, void (*)(void *)>;
  static Values values(int64_t n) {
    auto *v = static_cast<float *>(std::aligned_alloc(64, static_cast<size_t>(n * 4 + 63) / 64 * 64));
    for (int64_t i = 0; i < n; ++i)
      v[i] = static_cast<float>(i % 11) / 8 - 0.5f;
    return {v, std::free};
  }
  std::vector<Values> x_;
  Values y_;
  std::optional<runtime::Context> context_;
};

/// Packages of the cases that were asked for. `make` makes one.
Arm packages(std::function<Packaged(size_t)> make, double seconds) {
  auto layers = std::make_shared<std::map<size_t, Packaged>>();
  return [=](size_t index) {
    if (!layers->contains(index))
      layers->emplace(index, make(index));
    return secondsPerCall([&] { layers->at(index).run(); }, seconds);
  };
}

Arm product(DType type) {
  auto make = [=](size_t index) {
    const ProductShape s = productShapes().at(index);
    return Packaged::layer(nn::Dense(s.n, nullptr, {.bias = false}), Shape{s.m, s.k}, s.m * s.n, type);
  };
  return packages(make, kProductSeconds);
}

/// A convolution whose image and result have their channels last, as networks of them keep their images between layers.
class ChannelsLast : public nn::Module<ChannelsLast> {
public:
  explicit ChannelsLast(const ConvolutionShape &shape) : shape_(shape), weight_(parameter("weight", nn::init::he_uniform())) {}
  Tensor forward(Tensor x) const {
    const int64_t pad = shape_.window / 2;
    const auto w = weight_.need({shape_.outChannels, shape_.inChannels, shape_.window, shape_.window}, f32);
    return conv(x, w, {shape_.stride, shape_.stride}, {pad, pad}, {pad, pad}, {}, 1, /*channels_last=*/true);
  }

private:
  ConvolutionShape shape_;
  nn::Parameter weight_;
};

Arm convolution(DType type, std::vector<ConvolutionShape> shapes = convolutionShapes(), bool winograd = false) {
  auto make = [=](size_t index) {
    const ConvolutionShape s = shapes.at(index);
    return Packaged::layer(ChannelsLast(s), Shape{1, s.size, s.size, s.inChannels}, s.outChannels * s.out() * s.out(), type, winograd);
  };
  return packages(make, kConvolutionSeconds);
}

/// The peak is measured again for each sample: clocks change.
Arms resnetShare() {
  auto net = std::make_shared<Packaged>(Packaged::layer(tressel::bench::residual50(), Shape{1, 3, 224, 224}, 1000));
  const char *text = std::getenv("TRESSEL_NUM_THREADS");
  const int threads = text ? std::atoi(text) : static_cast<int>(std::thread::hardware_concurrency());
  auto share = [=] {
    const double peak = tressel::bench::peakFlops(threads);
    return tressel::bench::resnet50Flops() / secondsPerCall([&] { net->run(); }, 0.1) / peak;
  };
  return {{"tressel", share}, {"seconds", [=] { return secondsPerCall([&] { net->run(); }, 0.1); }}};
}

Arms attention() {
  auto make = [](size_t index) {
    const auto s = attentionShapes().at(index);
    const Shape shape{s.heads, s.length, s.size};
    auto f = jit([](Tensor q, Tensor k, Tensor v) { return scaled_dot_product_attention(q, k, v); });
    auto exportTo = [&](const std::string &path) {
      f.export_package(path, {.inputs = {{f32, shape, "q"}, {f32, shape, "k"}, {f32, shape, "v"}}});
    };
    return Packaged(exportTo, std::vector(3, shape.numElements()), shape.numElements());
  };
  return {{"tressel", packages(make, tressel::bench::kAttentionSeconds)},
          {"onednn", [](size_t index) { return tressel::bench::libraryAttention(attentionShapes().at(index)); }}};
}

Arms armsOf(std::string row) {
  if (row.ends_with(".t1")) // the same with one thread: the environment says so
    row.resize(row.size() - 3);
  using namespace tressel::bench;
  if (row == "gemm.geomean")
    return {{"tressel", product(f32)}, {"best", [](size_t index) { return libraryProduct(productShapes().at(index)); }}};
  if (row == "gemm.bf16" || row == "gemm.f16")
    return {{"tressel", product(row == "gemm.f16" ? f16 : bf16)},
            {"f32", product(f32)},
            {"onednn", [](size_t index) { return libraryHalfProduct(productShapes().at(index)); }}};
  if (row == "row.attention")
    return attention();
  if (row == "conv.geomean")
    return {{"tressel", convolution(f32)}, {"onednn", [](size_t index) { return libraryConvolution(convolutionShapes().at(index)); }}};
  if (row == "conv.bf16")
    return {{"tressel", convolution(bf16)},
            {"f32", convolution(f32)},
            {"onednn", [](size_t index) { return libraryHalfConvolution(convolutionShapes().at(index)); }}};
  if (row == "conv.winograd")
    return {{"tressel", convolution(f32, winogradShapes(), true)},
            {"direct", convolution(f32, winogradShapes())},
            {"onednn", [](size_t index) { return libraryConvolution(winogradShapes().at(index)); }}};
  if (row == "infer.resnet50.flops-share")
    return resnetShare();
  if (row == "hybridize.lenet.b64")
    return hybridize(lenet(), {64, 1, 28, 28});
  if (row == "hybridize.mlp3.b1")
    return hybridize(mlp3(), {1, 784});
  if (row == "hybridize.mlp3.b256")
    return hybridize(mlp3(), {256, 784});
  if (row == "fusion.gelu.memcpy-share")
    return fusionGelu();
  if (row == "call.tiny")
    return callTiny();
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
  Arms arms = argc == 2 ? armsOf(argv[1]) : Arms{};
  if (arms.empty()) {
    std::cerr << "usage: tressel-bench ROW   (the rows are listed in test/bench/rows.py)\n";
    return 2;
  }
  return tressel::bench::serve(arms);
}
