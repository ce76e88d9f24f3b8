// Rows of steps of training over many accelerators, by machines' figures alone: `parallel-bench ROW`.
#include "Bench.h"
#include "Models.h"
#include "docs/examples/text_models.h"

#include <tressel/tressel.h>

#include "tressel/runtime/MachineModel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>

using namespace tressel;

namespace {

/// What is trained, and one accelerator's share of the batch.
struct Workload {
  std::function<Tensor(const Tensor &, const Tensor &)> loss;
  nn::NamedParameters parameters;
  std::function<void(const std::vector<Device> &)> on;
  DType x;
  std::vector<int64_t> xShape, yShape;
  int64_t exchanges = 0; ///< of the whole batch's statistics, one after the other, in a step

  std::vector<int64_t> whole(std::vector<int64_t> shape, int ranks) const {
    shape[0] *= ranks;
    return shape;
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto &[name, variable] : parameters)
      sum += variable.value().type().bytes();
    return sum;
  }
  /// A step of SGD with momentum.
  auto step(const JitOptions &options) const {
    const optim::SGD opt(parameters, {.lr = 0.1, .momentum = 0.9});
    return jit(
        [=, *this](Tensor images, Tensor labels) {
          auto [value, grads] = value_and_grad([&] { return loss(images, labels); }, parameters);
          opt.update(grads);
          return value;
        },
        options);
  }
};

/// Of one accelerator, which then computes all of it, as each of several does; the host helps neither.
void put(const auto &net, const std::vector<Device> &devices) {
  if (devices.size() == 1)
    net.on(devices.front());
  else
    net.on(devices);
}

/// ResNet-18, 32 images of 224 x 224 an accelerator. A batch normalization asks for mean and variance at once on the
/// way forward, and for two sums at once on the way back.
Workload resnet() {
  nn::Sequential net = bench::modelNamed("resnet18").make();
  net.initialize({{f32, {1, 3, 224, 224}}}, 1);
  constexpr int64_t kNorms = 20;
  return {[=](const Tensor &x, const Tensor &y) { return softmax_cross_entropy(net(x), y); },
          net.parameters(),
          [=](const std::vector<Device> &devices) { put(net, devices); },
          f32,
          {32, 3, 224, 224},
          {32},
          2 * kNorms};
}

/// A decoder of 12 layers of 768, 8 texts of 512 tokens an accelerator.
Workload transformer() {
  TextTransformer net({.vocabulary = 256, .context = 512, .width = 768, .layers = 12, .heads = 12});
  net.initialize({{i64, {1, 512}}}, 1);
  return {[=](const Tensor &x, const Tensor &y) { return next_token_loss(net(x), y); },
          net.parameters(),
          [=](const std::vector<Device> &devices) { put(net, devices); },
          i64,
          {8, 512},
          {8, 512}};
}

Shape shapeOf(const std::vector<int64_t> &extents) {
  const std::vector<Size> sizes(extents.begin(), extents.end());
  return Shape(std::span<const Size>(sizes));
}

/// By the clock of a machine of so many accelerators, on which the weights lie and one process runs all: the second
/// call.
double ran(const Workload &work, const std::string &machine, int ranks) {
  use_machine(machine, {.computes = false});
  std::vector<Device> devices;
  for (int i = 0; i < ranks; ++i)
    devices.push_back(gpu(i));
  work.on(devices);
  JitOptions options{.name = "step", .devices = devices};
  options.devices.push_back(cpu());
  if (ranks > 1)
    options.shard_axis = 0;
  const auto step = work.step(options);
  const Tensor x = zeros(shapeOf(work.whole(work.xShape, ranks)), work.x),
               y = zeros(shapeOf(work.whole(work.yShape, ranks)), i64);
  step(x, y).wait();
  if (std::getenv("TRESSEL_BENCH_VERBOSE")) {
    const Prediction p = step.explain();
    std::cerr << ranks << " ranks of a process\n" << p.text << p.drawing;
  }
  const double before = machine_seconds();
  step(x, y).wait();
  return machine_seconds() - before;
}

/// Of ranks in processes of their own.
Prediction predicted(const Workload &work, const std::string &machine, int ranks, int64_t bucket = 25 << 20) {
  use_machine(machine, {.computes = false});
  const auto step = work.step({.name = "step", .bucket_bytes = bucket});
  const Prediction p =
      step.explain_ranks({.mesh = {{"data", ranks}}}, {{work.x, shapeOf(work.whole(work.xShape, ranks))},
                                                       {i64, shapeOf(work.whole(work.yShape, ranks))}});
  if (std::getenv("TRESSEL_BENCH_VERBOSE"))
    std::cerr << ranks << " ranks: " << p.step_seconds * 1e3 << " ms\n" << p.text << p.drawing;
  return p;
}

/// Nothing from the compiler: what gradients and statistics take between ranks whose messages go through two links of
/// PCIe 3.0 and two of 10 Gbit/s Ethernet, if all is exchanged back to back. All ranks have their gradients' sum after
/// each has sent, and got, 2 (n - 1) / n of them, in 2 log2 n messages for each bucket; statistics, of few bytes, take log2 n.
double exchangeSeconds(const Workload &work, int ranks) {
  constexpr double kLatency = 2 * 5e-6 + 2 * 25e-6, kRate = 1.25e9, kBucket = 25 << 20;
  const auto bytes = static_cast<double>(work.bytes());
  const double rounds = std::bit_width(static_cast<unsigned>(ranks - 1)), share = 2.0 * (ranks - 1) / ranks;
  return bytes * share / kRate + rounds * kLatency * (2 * std::ceil(bytes / kBucket) + static_cast<double>(work.exchanges));
}

std::string machineOf(const char *preset, int ranks) { return "sim:" + std::string(preset) + ":" + std::to_string(ranks); }

double efficiency(const Workload &work, int ranks) {
  if (ranks <= 8)
    return ran(work, "sim:dgx-h100", 1) / ran(work, "sim:dgx-h100", ranks);
  const std::string machine = machineOf("dgx-h100", ranks);
  return predicted(work, machine, 1).step_seconds / predicted(work, machine, ranks).step_seconds;
}

double overEthernet(const Workload &work, int ranks) {
  const std::string machine = machineOf("cluster-10gbe", ranks);
  return predicted(work, machine, ranks).step_seconds /
         std::max(predicted(work, machine, 1).step_seconds, exchangeSeconds(work, ranks));
}

/// What is exchanged beside computation, and what behind all of it.
double exposed(const Workload &work, int ranks) {
  auto beyond = [&](int64_t bucket) {
    const Prediction p = predicted(work, "sim:dgx-h100", ranks, bucket);
    return p.step_seconds - p.compute_seconds;
  };
  return beyond(25 << 20) / beyond(int64_t(1) << 62);
}

/// Products of attention and of the layers behind it are cut by columns, then by rows, over 4 ranks: what they exchange
/// against what they compute.
double overlapWithinLayers() {
  const Workload work = transformer();
  auto isOne = [](const std::string &name, std::initializer_list<const char *> parts) {
    return std::ranges::any_of(parts, [&](const char *part) { return name.find(part) != std::string::npos; });
  };
  for (const auto &[name, variable] : work.parameters) {
    const bool isMatrix = name.ends_with("weight");
    if (isOne(name, {".query.", ".key.", ".value.", ".linear1."}))
      variable.shard(isMatrix ? "-, model" : "model");
    else if (isMatrix && isOne(name, {".out.", ".linear2."}))
      variable.shard("model, -");
  }
  use_machine("sim:dgx-h100", {.computes = false});
  const Prediction p = work.step({.name = "step"})
                           .explain_ranks({.mesh = {{"data", 1}, {"model", 4}}},
                                          {{work.x, shapeOf(work.xShape)}, {i64, shapeOf(work.yShape)}});
  if (std::getenv("TRESSEL_BENCH_VERBOSE"))
    std::cerr << p.text << p.drawing;
  return p.overlap.value_or(0);
}

/// By the machine's clock: the second call.
double secondsOf(const auto &step, int64_t texts) {
  const Tensor x = zeros({texts, 512}, i64);
  step(x, x).wait();
  const double before = machine_seconds();
  step(x, x).wait();
  return machine_seconds() - before;
}

/// A decoder of 16 layers of 768 on four accelerators in a row, `chunks` stages on each, 16 micro-batches of 8 texts:
/// its step over what textbooks say of the order, by what one accelerator takes for a micro-batch, for the way forward
/// alone, and without gradients of weights.
double pipeline(PipelineOrder order, int chunks) {
  constexpr int kRow = 4, kMicroBatches = 16, kLayers = 16, kTexts = 8;
  use_machine("sim:dgx-h100", {.computes = false});
  const TextTransformer net({.vocabulary = 256, .context = 512, .width = 768, .layers = kLayers, .heads = 12});
  net.initialize({{i64, {1, 512}}}, 1);
  auto loss = [=](const Tensor &x, const Tensor &y) { return next_token_loss(net(x), y); };
  auto trained = [&](const nn::NamedParameters &parameters, const Pipeline &pipeline) {
    const optim::SGD opt(parameters, {.lr = 0.1, .momentum = 0.9});
    JitOptions options{.name = "step", .devices = {cpu()}, .pipeline = pipeline};
    for (int i = 0; i < pipeline.size; ++i)
      options.devices.push_back(gpu(i));
    return jit(
        [=](Tensor x, Tensor y) {
          auto [value, grads] = value_and_grad([&] { return loss(x, y); }, parameters);
          opt.update(grads);
          return value;
        },
        options);
  };
  for (const auto &[name, variable] : net.parameters())
    variable.on(gpu(0));
  struct Alone {
    double microBatch, rest;
  };
  auto alone = [&](const nn::NamedParameters &parameters) {
    auto take = [&](int n) { return secondsOf(trained(parameters, {.micro_batches = n}), n * kTexts); };
    const double few = take(4), many = take(8), each = (many - few) / 4;
    return Alone{each, few - 4 * each};
  };
  nn::NamedParameters first;
  for (const auto &[name, variable] : net.parameters())
    if (name.starts_with("embed."))
      first.emplace_back(name, variable);
  const Alone all = alone(net.parameters());
  const double weights = all.microBatch - alone(first).microBatch;

  constexpr double kBehind = kRow - 1;
  double textbook = kMicroBatches * all.microBatch + all.rest;
  if (order == PipelineOrder::ZeroBubble)
    textbook += kBehind * (all.microBatch - 2 * weights);
  else
    textbook += kBehind * all.microBatch / chunks;
  textbook /= kRow;

  const int stages = kRow * chunks;
  auto stageOf = [&](int layer) { return layer * stages / kLayers; };
  auto put = [&](const auto &module, int stage) { module.stage(stage, {gpu(stage % kRow)}); };
  put(net.embed, 0);
  put(net.positions, 0);
  for (int i = 0; i < kLayers; ++i)
    put(net.blocks[static_cast<size_t>(i)], stageOf(i));
  put(net.norm, stages - 1);
  put(net.head, stages - 1);
  const auto step = trained(net.parameters(), {.micro_batches = kMicroBatches, .size = kRow, .order = order});
  const double seconds = secondsOf(step, kMicroBatches * kTexts);
  if (std::getenv("TRESSEL_BENCH_VERBOSE")) {
    const Prediction p = step.explain();
    std::cerr << "alone: " << all.microBatch * 1e3 << " ms a micro-batch, of which gradients of weights "
              << weights * 1e3 << " ms, and " << all.rest * 1e3 << " ms; in a row " << seconds * 1e3 << " ms, textbook "
              << textbook * 1e3 << " ms\n"
              << p.text << p.drawing;
  }
  return seconds / textbook;
}

/// A step of the perceptron of 784-1024-10 on two accelerators, weights on both, the batch of 65,536 images in four
/// parts on each: over what no plan beats, its products shared without loss at the rate that the best kernels reach, or
/// its images over both links, whichever is longer.
double perceptronOverBound() {
  constexpr int64_t kImages = 65536, kIn = 784, kHidden = 1024, kClasses = 10;
  use_machine("sim:2gpu-pcie3", {.computes = false});
  nn::Sequential net{nn::Dense(kHidden, relu), nn::Dense(kClasses)};
  net.initialize({{f32, {1, kIn}}}, 1);
  net.on({gpu(0), gpu(1)});
  const optim::SGD opt(net.parameters(), {.lr = 0.1});
  const auto step = jit(
      [=](Tensor x, Tensor y) {
        auto [value, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), y); }, net.parameters());
        opt.update(grads);
        return value;
      },
      {.name = "step",
       .devices = {cpu(), gpu(0), gpu(1)},
       .mesh = {{"data", 2}},
       .pipeline = Pipeline{.micro_batches = 4}});
  const Tensor x = zeros({kImages, kIn}), y = zeros({kImages}, i64);
  step(x, y).wait();
  const double before = machine_seconds();
  step(x, y).wait();
  const double seconds = machine_seconds() - before;

  const runtime::MachineModel machine = runtime::machinePreset("2gpu-pcie3");
  double rate = 0, links = 0;
  for (const runtime::DeviceModel &device : machine.devices)
    if (device.device.kind == runtime::DeviceKind::Gpu) {
      rate += device.flops(DType::f32) * device.efficiencyOf("builtin");
      double slowest = std::numeric_limits<double>::infinity();
      for (uint32_t link : machine.route({}, device.device)->links)
        slowest = std::min(slowest, machine.links[link].bytesPerSecond);
      links += slowest;
    }
  // Forward and for the weights; also for what is between the layers.
  const auto products = static_cast<double>(2 * kImages * (2 * kIn * kHidden + 3 * kHidden * kClasses));
  const double bound = std::max(products / rate, static_cast<double>(kImages * kIn * 4) / links);
  if (std::getenv("TRESSEL_BENCH_VERBOSE"))
    std::cerr << "step " << seconds * 1e3 << " ms, bound " << bound * 1e3 << " ms\n" << step.explain();
  return seconds / bound;
}

/// A perceptron of 784-1024-10 on this processor's cores as two accelerators, weights on both, 4,096 images: what is
/// achieved by the clock, the median of some calls.
double overlapOnLanes() {
  use_machine("cpu:2");
  nn::Sequential net{nn::Dense(1024, relu), nn::Dense(10)};
  net.initialize({{f32, {1, 784}}}, 1);
  net.on({gpu(0), gpu(1)});
  const optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  const auto step = jit(
      [=](Tensor x, Tensor y) {
        auto [value, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), y); }, net.parameters());
        opt.update(grads);
        return value;
      },
      {.name = "step", .shard_axis = 0});
  const Tensor x = rng::normal({4096, 784}, 1), y = zeros({4096}, i64);
  std::vector<double> achieved;
  Prediction p;
  for (int i = 0; i < 11; ++i) {
    step(x, y).wait();
    p = step.explain();
    achieved.push_back(p.achieved_side_by_side.value());
  }
  std::ranges::sort(achieved);
  if (std::getenv("TRESSEL_BENCH_VERBOSE"))
    std::cerr << "achieved " << achieved.front() << " to " << achieved.back() << "\n" << p;
  return achieved[achieved.size() / 2];
}

/// Of the time that it takes to make, prove and predict the program.
double compileRatio(const Workload &work) {
  auto seconds = [&](int ranks) { return bench::secondsOf([&] { (void)predicted(work, machineOf("dgx-h100", ranks), ranks); }); };
  (void)seconds(8);
  const double few = seconds(8);
  return seconds(1024) / few;
}

/// "sim.dp.efficiency.64.transformer": the number between prefix and suffix; 0: none.
int ranksOf(std::string_view row, std::string_view prefix, std::string_view suffix) {
  if (!row.starts_with(prefix) || !row.ends_with(suffix) || row.size() <= prefix.size() + suffix.size())
    return 0;
  const std::string number(row.substr(prefix.size(), row.size() - prefix.size() - suffix.size()));
  const int ranks = std::atoi(number.c_str());
  return std::to_string(ranks) == number && ranks > 1 ? ranks : 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::string row = argc > 1 ? argv[1] : "", prefix = "sim.dp.efficiency.";
  std::function<double()> measure;
  if (const int ranks = ranksOf(row, prefix, ".transformer"))
    measure = [=] { return efficiency(transformer(), ranks); };
  else if (const int ranks = ranksOf(row, prefix, ".10gbe"))
    measure = [=] { return overEthernet(resnet(), ranks); };
  else if (const int ranks = ranksOf(row, prefix, ".transformer.10gbe"))
    measure = [=] { return overEthernet(transformer(), ranks); };
  else if (const int ranks = ranksOf(row, prefix, ""))
    measure = [=] { return efficiency(resnet(), ranks); };
  else if (row == "sim.dp.exposed")
    measure = [] { return exposed(transformer(), 8); };
  else if (row == "cpu.dp.overlap")
    measure = overlapOnLanes;
  else if (row == "sim.tp.overlap")
    measure = overlapWithinLayers;
  else if (row == "sim.optimality.mlp-2gpu")
    measure = perceptronOverBound;
  else if (row == "sim.pipeline.gpipe")
    measure = [] { return pipeline(PipelineOrder::AllForwardFirst, 1); };
  else if (row == "sim.pipeline.1f1b")
    measure = [] { return pipeline(PipelineOrder::OneForwardOneBackward, 1); };
  else if (row == "sim.pipeline.interleaved")
    measure = [] { return pipeline(PipelineOrder::OneForwardOneBackward, 2); };
  else if (row == "sim.pipeline.zero-bubble")
    measure = [] { return pipeline(PipelineOrder::ZeroBubble, 1); };
  else if (row == "compile.dp.1024-over-8")
    measure = [work = transformer()] { return compileRatio(work); };
  if (!measure) {
    std::cerr << "usage: parallel-bench sim.dp.efficiency.N[.transformer][.10gbe] | sim.dp.exposed | cpu.dp.overlap | "
                 "sim.tp.overlap | "
                 "sim.optimality.mlp-2gpu | "
                 "sim.pipeline.gpipe | sim.pipeline.1f1b | sim.pipeline.interleaved | sim.pipeline.zero-bubble | "
                 "compile.dp.1024-over-8\n";
    return 2;
  }
  return bench::serve({{"tressel", measure}});
}
