// A training whose states other frameworks go on from, and which goes on from theirs (checkpoint_oracle.py).
//   checkpoint-cases OPTIMIZER FROM TO STEPS
// Goes on from the file FROM, or begins where it is "-", trains STEPS steps and saves to TO. OPTIMIZER is adamw or sgd.
#include <tressel/tressel.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

using namespace tressel;

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: checkpoint-cases OPTIMIZER FROM TO STEPS\n");
    return 2;
  }
  const std::string optimizer = argv[1], from = argv[2], to = argv[3];
  try {
    nn::Sequential net{nn::Dense(12, tanh), nn::Dense(3)};
    net.initialize({{f32, {8, 5}}}, 1);
    // 8 x 5 and 8 x 3 numbers between -1 and 1 that the script makes too.
    const Tensor x = reshape(sin(cast(arange(40), f32)), {8, 5}), y = reshape(cos(cast(arange(24), f32)), {8, 3});
    std::optional<optim::Optimizer> opt;
    if (optimizer == "adamw")
      opt = optim::AdamW(net.parameters(), {.lr = 0.01, .weight_decay = 0.1});
    else
      opt = optim::SGD(net.parameters(), {.lr = 0.05, .momentum = 0.9});
    const TrainingState state{{"net", net}, {"opt", *opt}};
    if (from != "-")
      load_state(from, state);
    auto step = jit([net, opt, x, y] {
      auto [loss, grads] = value_and_grad([&] { return mse_loss(net(x), y); }, net.parameters());
      opt->update(grads);
      return loss;
    });
    for (int i = 0; i < std::atoi(argv[4]); ++i)
      step().wait();
    save_state(to, state);
  } catch (const Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
