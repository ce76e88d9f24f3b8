#include "Training.h"
#include "Models.h"
#include "Values.h"
#include "docs/examples/text_models.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>

namespace tressel::bench {
namespace {

/// What a row trains: a network whose parameters are filled, its optimizer, and the loss of a batch.
struct Task {
  std::function<Tensor()> loss;
  nn::NamedParameters parameters;
  std::shared_ptr<const optim::Optimizer> optimizer;
};

/// SGD with momentum; the labels are 0 to 9 in turn.
Task imagesTask(const Model &model, const Shape &shape) {
  nn::Sequential net = model.make();
  net.initialize({{f32, shape}}, /*seed=*/1);
  fillParameters(net);
  const Tensor x = numbers(shape, seedOf("x"), 2), label = arange(0, shape.extent(0)) % int64_t(10);
  return {[=] { return softmax_cross_entropy(net(x), label); }, net.parameters(),
          std::make_shared<optim::SGD>(net.parameters(), optim::SGDOptions{.lr = 0.01, .momentum = 0.9})};
}

/// Adam; tokens of a vocabulary of 128, and the next ones.
template <typename Net> Task textTask(Net net, int64_t batch, int64_t length) {
  std::vector<int64_t> tokens(static_cast<size_t>(batch * (length + 1)));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int64_t>((valueAt(seedOf("x"), i) + 0.5f) * 128);
  const Tensor all = from_span(tokens, {batch, length + 1});
  const Tensor x = slice(all, {0, 0}, {batch, length}), next = slice(all, {0, 1}, {batch, length + 1});
  net.initialize({{i64, {batch, length}}}, /*seed=*/1);
  fillParameters(net);
  return {[=] { return next_token_loss(net(x), next); }, net.parameters(),
          std::make_shared<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 1e-3})};
}

std::function<Tensor()> stepOf(const Task &task) {
  return [task] {
    auto [loss, grads] = value_and_grad(task.loss, task.parameters);
    task.optimizer->update(grads);
    return loss;
  };
}

struct Training {
  Task task;
  std::function<Tensor()> step;

  Training(const std::function<Task()> &make, bool compiled, JitOptions options = {})
      : task(make()), step(stepOf(task)) {
    if (compiled)
      step = [run = jit(step, std::move(options))] { return run(); };
  }
};

Arm arm(std::function<Task()> make, bool compiled) {
  auto timed = std::make_shared<std::unique_ptr<Training>>();
  return Arm(
      [=]() -> double {
        if (!*timed)
          *timed = std::make_unique<Training>(make, compiled);
        return secondsPerCall([&] { (*timed)->step().wait(); }, 0.1);
      },
      [=]() -> Outputs {
        Training fresh(make, compiled);
        Outputs losses;
        for (int i = 0; i < 10; ++i)
          losses.push_back(fresh.step().item<float>());
        return losses;
      });
}

/// Time of a step that is compiled with options over that of one without, one after the other, for each task.
Arm costArm(std::vector<std::function<Task()>> tasks, JitOptions options) {
  auto pairs = std::make_shared<std::vector<std::vector<Training>>>(tasks.size());
  return Arm(
      [=](size_t which) -> double {
        std::vector<Training> &pair = (*pairs)[which];
        if (pair.empty()) {
          pair.emplace_back(tasks[which], true);
          pair.emplace_back(tasks[which], true, options);
        }
        const double whole = secondsPerCall([&] { pair[0].step().wait(); }, 0.1);
        return secondsPerCall([&] { pair[1].step().wait(); }, 0.1) / whole;
      },
      [=](size_t which) -> Outputs {
        Outputs losses;
        for (const JitOptions &each : {JitOptions(), options})
          losses.push_back(Training(tasks[which], true, each).step().item<float>());
        return losses;
      });
}

/// From the first call of a step to its loss, without what a step takes: it is recorded, differentiated and compiled,
/// with nothing kept from before.
Arm coldArm(std::function<Task()> make) {
  return Arm([=]() -> double {
    clear_compile_caches();
    Training fresh(make, true, {.disk_cache = false});
    const double first = secondsOf([&] { fresh.step().wait(); });
    return first - secondsPerCall([&] { fresh.step().wait(); }, 0.1);
  });
}

Task resnetTask() { return imagesTask(modelNamed("resnet18"), {16, 3, 64, 64}); }

/// Of the rows train.NAME.step; empty for others.
std::function<Task()> taskOf(const std::string &row) {
  auto images = [](const char *model, const Shape &shape) { return [=] { return imagesTask(modelNamed(model), shape); }; };
  const std::map<std::string, std::function<Task()>> tasks{
      {"train.mlp.step", images("mlp3", {256, 784})},
      {"train.lenet.step", images("lenet", {64, 1, 28, 28})},
      {"train.resnet18.step", images("resnet18", {16, 3, 64, 64})},
      {"train.charlm.step", [] { return textTask(TextTransformer({.vocabulary = 128}), 16, 128); }},
      {"train.lstm.step", [] { return textTask(TextLSTM({.vocabulary = 128, .width = 256, .layers = 1}), 32, 64); }},
  };
  const auto found = tasks.find(row);
  return found == tasks.end() ? nullptr : found->second;
}

} // namespace

bool exportTrainingStep(const std::string &row, const std::string &path, const std::string &gpu, bool isBlank) {
  const auto task = taskOf(row);
  if (!task)
    return false;
  ExportOptions options;
  if (!gpu.empty()) {
    options.gpus = {gpu};
    options.cpu = "v3"; // the machine with the card is another one
  }
  const Task made = task();
  if (isBlank)
    for (const auto &[name, variable] : made.parameters)
      if (variable.shape().rank() > 1)
        variable.assign(full(variable.shape(), std::numeric_limits<float>::quiet_NaN()));
  jit(stepOf(made)).export_package(path, options);
  return true;
}

Arms trainingArms(const std::string &row) {
  if (const auto task = taskOf(row))
    return {{"tressel", arm(task, true)}, {"imperative", arm(task, false)}};
  if (row == "compile.train.resnet18.cold")
    return {{"tressel", coldArm(taskOf("train.resnet18.step"))}};
  if (row == "memory.train.resnet18.budget")
    return {{"tressel", costArm({[] {
                                  return imagesTask(modelNamed("resnet18"), {8, 3, 224, 224});
                                }},
                                {.memory_budget = MemoryBudget::share(0.6)})}};
  if (row == "deterministic.cost" || row == "train.autocast") {
    std::vector<std::function<Task()>> all;
    for (const char *name :
         {"train.mlp.step", "train.lenet.step", "train.resnet18.step", "train.charlm.step", "train.lstm.step"})
      all.push_back(taskOf(name));
    return {{"tressel",
             costArm(all, row == "train.autocast" ? JitOptions{.autocast = bf16} : JitOptions{.deterministic = true})}};
  }
  return {};
}

} // namespace tressel::bench
