// A decoder's step of training, split over four accelerators in each way that there is: what one adds to the serial
// code, how long the step takes as planned and by the accelerators' own clock, what is exchanged, and how much memory
// one of them needs.
//
//   ways_to_split [FOLDER] [MACHINE]     no pictures, and sim:dgx-h100, if not given
//
// With a folder each plan is drawn there, as docs/parallel.md shows them, and the compiler compares ways itself. Times are virtual, by the machine's figures
// (docs/machines.md); numbers are computed at a smaller size, and compared with those of one device.
#include "text_models.h"

#include <tressel/tressel.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>

using namespace tressel;

namespace {

constexpr int kLayers = 8, kRanks = 4;

struct Work {
  TextOptions text;
  int64_t texts;
};
const Work kFull{{.context = 512, .width = 768, .layers = kLayers, .heads = 12}, 32},
    kSmall{{.context = 16, .width = 48, .layers = kLayers, .heads = 4}, 16};

/// Serial code: it knows of no device.
struct Training {
  TextTransformer net;
  optim::SGD opt;
  explicit Training(const TextTransformer &net) : net(net), opt(net.parameters(), {.lr = 0.1, .momentum = 0.9}) {}
  auto step(const JitOptions &options) const {
    return jit(
        [net = net, opt = opt](Tensor tokens, Tensor next) {
          auto [loss, grads] = value_and_grad([&] { return next_token_loss(net(tokens), next); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        options);
  }
};

std::vector<Device> accelerators(int first, int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i)
    devices.push_back(gpu(first + i));
  return devices;
}

/// Attention's heads, and the columns of each first product, are shared out; the rows of each second product.
void cutWithinLayers(const TextTransformer &net) {
  for (const auto &[name, variable] : net.parameters()) {
    auto has = [&, &name = name](const char *part) { return name.find(part) != std::string::npos; };
    const bool isMatrix = variable.shape().rank() == 2;
    if (has(".query.") || has(".key.") || has(".value.") || has(".linear1."))
      variable.shard(isMatrix ? "-, model" : "model");
    else if (isMatrix && (has(".out.") || has(".linear2.")))
      variable.shard("model, -");
  }
}

/// Layers in a row of accelerators, `each` of which compute one stage together and hold its weights; of none, stages alone.
void cutBetweenLayers(const TextTransformer &net, int stages, int inRow, int each) {
  auto put = [&](const auto &module, int stage) { module.stage(stage, accelerators(stage % inRow * each, each)); };
  put(net.embed, 0);
  put(net.positions, 0);
  for (int i = 0; i < kLayers; ++i)
    put(net.blocks[static_cast<size_t>(i)], i * stages / kLayers);
  put(net.norm, stages - 1);
  put(net.head, stages - 1);
}

/// A way to split: where weights lie and how they are cut, before the optimizer is made and behind it, and the options.
struct Way {
  std::string name, file;
  JitOptions options;
  std::function<void(const TextTransformer &)> place;
  std::function<void(const Training &)> after = nullptr;
};

/// `least`: what has fewer bytes is whole everywhere.
std::vector<Way> ways(int64_t least) {
  const auto all = accelerators(0, kRanks);
  const MeshAxis data{"data", kRanks};
  auto onAll = [=](const TextTransformer &net) { net.on(all); };
  const JitOptions cutBatch{.devices = accelerators(0, kRanks), .mesh = {data}, .shard_axis = 0};
  auto pipeline = [](PipelineOrder order, int inRow = kRanks) {
    return JitOptions{.devices = accelerators(0, kRanks),
                      .pipeline = Pipeline{.micro_batches = 8, .size = inRow, .order = order}};
  };
  auto stages = [](int count) {
    return [=](const TextTransformer &net) { cutBetweenLayers(net, count, kRanks, 1); };
  };
  std::vector<Way> list{
      {"one accelerator", "one", {.devices = {gpu(0)}}, [](const TextTransformer &net) { net.on({gpu(0)}); }},
      {"data, weights on the host", "data-host", cutBatch, [](const TextTransformer &) {}},
      {"data", "data", cutBatch, onAll},
      {"data, optimizer in parts", "zero-1", cutBatch, onAll,
       [=](const Training &t) { parallel::shard_each(t.opt.states(), data, least); }},
      {"data, weights in parts", "zero-3", cutBatch,
       [=](const TextTransformer &net) {
         onAll(net);
         parallel::shard_each(net.parameters(), data, least);
       }},
      {"model",
       "model",
       {.devices = all, .mesh = {{"model", kRanks}}},
       [=](const TextTransformer &net) {
         onAll(net);
         cutWithinLayers(net);
       }},
      {"data x model",
       "data-model",
       {.devices = all, .mesh = {{"data", 2}, {"model", 2}}, .shard_axis = 0},
       [=](const TextTransformer &net) {
         onAll(net);
         cutWithinLayers(net);
       }},
      {"pipeline, gpipe", "gpipe", pipeline(PipelineOrder::AllForwardFirst), stages(kRanks)},
      {"pipeline, 1f1b", "1f1b", pipeline(PipelineOrder::OneForwardOneBackward), stages(kRanks)},
      {"pipeline, interleaved", "interleaved", pipeline(PipelineOrder::OneForwardOneBackward), stages(2 * kRanks)},
      {"pipeline, zero-bubble", "zero-bubble", pipeline(PipelineOrder::ZeroBubble), stages(kRanks)},
      {"data x pipeline", "data-pipeline", pipeline(PipelineOrder::OneForwardOneBackward, 2),
       [](const TextTransformer &net) { cutBetweenLayers(net, 2, 2, 2); }}};
  list.back().options.mesh = {{"data", 2}};
  for (Way &way : list) {
    way.options.name = "step";
    way.options.devices.push_back(cpu());
  }
  return list;
}

Training made(const Way &way, const TextOptions &options) {
  const TextTransformer net(options);
  net.initialize({{i64, {1, 1}}}, /*seed=*/1);
  way.place(net);
  Training training(net);
  if (way.after)
    way.after(training);
  return training;
}

/// Losses of three steps at the small size, in true numbers.
std::vector<float> losses(const std::string &machine, const Way &way) {
  use_machine(machine);
  const Training training = made(way, kSmall.text);
  const auto step = training.step(way.options);
  std::vector<float> losses;
  for (int64_t i = 0; i < 3; ++i) {
    const Shape shape{kSmall.texts, kSmall.text.context};
    losses.push_back(step(randint(2 * i, 0, 256, shape), randint(2 * i + 1, 0, 256, shape)).item<float>());
  }
  return losses;
}

/// A row of the table; whether the plan fits the machine is the compiler's to say.
void timed(const std::string &machine, const Way &way, const std::string &folder, double &alone) {
  use_machine(machine, {.computes = false});
  const Training training = made(way, kFull.text);
  const auto step = training.step(way.options);
  const Tensor tokens = zeros({kFull.texts, kFull.text.context}, i64);
  step(tokens, tokens).wait(); // brings the weights
  const double before = machine_seconds();
  step(tokens, tokens).wait();
  const double simulated = machine_seconds() - before;
  const Prediction plan = step.explain();
  if (alone == 0)
    alone = simulated;
  double gib = 0;
  for (const Prediction::Memory &memory : plan.memory)
    if (memory.device != "cpu")
      gib = std::max(gib, static_cast<double>(memory.held + memory.scratch) / (1 << 30));
  std::cout << "  " << std::left << std::setw(27) << way.name << std::right << std::fixed << std::setprecision(1)
            << std::setw(9) << plan.step_seconds * 1e3 << std::setw(11) << simulated * 1e3 << std::setprecision(2)
            << std::setw(10) << alone / simulated << std::setprecision(1) << std::setw(14)
            << plan.transfer_seconds * 1e3 << std::setprecision(0) << std::setw(11);
  if (plan.overlap)
    std::cout << *plan.overlap * 100 << "%";
  else
    std::cout << "- ";
  std::cout << std::setprecision(2) << std::setw(10) << gib << "\n" << std::flush;
  if (!folder.empty())
    step.draw_plan(folder + "/" + way.file + ".svg");
}

/// What the compiler recommends, each accelerator in a process of its own, or all in one where there are stages.
void compared(const std::string &machine) {
  use_machine(machine, {.computes = false});
  const TextTransformer net(kFull.text);
  net.initialize({{i64, {1, 1}}}, /*seed=*/1);
  cutWithinLayers(net);
  cutBetweenLayers(net, kRanks, kRanks, 0);
  const TensorSpec tokens{i64, {kFull.texts, kFull.text.context}};
  std::cout << "\n" << Training(net).step({.name = "step"}).explain_parallel(kRanks, {tokens, tokens});
}

} // namespace

int main(int argc, char **argv) try {
  const std::string folder = argc > 1 ? argv[1] : "", machine = argc > 2 ? argv[2] : "sim:dgx-h100";
  if (!folder.empty())
    std::filesystem::create_directories(folder);
  std::cout << "A step of SGD with momentum of a decoder, " << kLayers << " layers of " << kFull.text.width << ", "
            << kFull.texts << " texts of " << kFull.text.context << " tokens, over " << kRanks << " accelerators of "
            << machine << "\n\n                              planned  simulated  speed-up  communication  "
            << "hidden    memory\n"
            << "                                   ms         ms                       ms            GiB of one\n";
  double alone = 0;
  for (const Way &way : ways(64 << 10))
    timed(machine, way, folder, alone);
  if (!folder.empty())
    compared(machine);

  float largest = 0;
  std::vector<float> want;
  for (const Way &way : ways(0)) {
    const std::vector<float> got = losses(machine, way);
    if (want.empty())
      want = losses("cpu", {.name = "", .file = "", .options = {}, .place = [](const TextTransformer &) {}});
    for (size_t i = 0; i < want.size(); ++i)
      largest = std::max(largest, std::abs(got[i] - want[i]) / want[i]);
  }
  std::cout << "\nLosses of three steps of a small one (" << kSmall.text.width << " wide), all ways: within "
            << std::scientific << std::setprecision(1) << largest << " of those of the processor alone\n";
  return largest <= 1e-4f ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "ways_to_split: " << e.what() << "\n";
  return 1;
}
