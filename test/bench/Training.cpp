#include "Training.h"
#include "Models.h"
#include "Values.h"

#include <functional>
#include <memory>

namespace tressel::bench {
namespace {

struct Batch {
  Tensor x, label;
};

/// SGD with momentum; the labels are 0 to 9 in turn.
struct Training {
  nn::Sequential net;
  optim::SGD opt;
  Batch batch;
  std::function<Tensor()> step;

  Training(const Model &model, int64_t size, bool compiled)
      : net(filled(model, size)), opt(net.parameters(), {.lr = 0.01, .momentum = 0.9}),
        batch{numbers(model.input(size), seedOf("x"), 2), arange(0, size) % int64_t(10)} {
    auto once = [net = net, opt = opt](Batch b) {
      auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(b.x), b.label); }, net.parameters());
      opt.update(grads);
      return loss;
    };
    if (compiled)
      step = [run = jit(once), batch = batch] { return run(batch); };
    else
      step = [once, batch = batch] { return once(batch); };
  }

  static nn::Sequential filled(const Model &model, int64_t size) {
    nn::Sequential net = model.make();
    net.initialize({{f32, model.input(size)}}, /*seed=*/1);
    fillParameters(net);
    return net;
  }
};

Arm arm(const Model &model, int64_t size, bool compiled) {
  auto timed = std::make_shared<std::unique_ptr<Training>>();
  return Arm(
      [=, &model]() -> double {
        if (!*timed)
          *timed = std::make_unique<Training>(model, size, compiled);
        return secondsPerCall([&] { (*timed)->step().wait(); }, 0.1);
      },
      [=, &model]() -> Outputs {
        Training fresh(model, size, compiled);
        Outputs losses;
        for (int i = 0; i < 10; ++i)
          losses.push_back(fresh.step().item<float>());
        return losses;
      });
}

} // namespace

Arms trainingArms(const std::string &row) {
  struct Case {
    const char *row, *model;
    int64_t batch;
  };
  for (const Case &c : {Case{"train.mlp.step", "mlp3", 256}, Case{"train.lenet.step", "lenet", 64}})
    if (row == c.row)
      return {{"tressel", arm(modelNamed(c.model), c.batch, true)}, {"imperative", arm(modelNamed(c.model), c.batch, false)}};
  return {};
}

} // namespace tressel::bench
