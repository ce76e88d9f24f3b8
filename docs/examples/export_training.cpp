// Writes a package that trains: a step, and the network that it trains, for deploy/train.c.
//
//   export_training OUT.tsl
#include <tressel/tressel.h>

#include <iostream>

using namespace tressel;

int main(int argc, char **argv) try {
  if (argc != 2) {
    std::cerr << "usage: export_training OUT.tsl\n";
    return 2;
  }
  nn::Sequential net{nn::Dense(64, tanh), nn::Dense(64, tanh), nn::Dense(2)};
  net.initialize({{f32, {64, 2}}}, 1);
  optim::AdamW opt(net.parameters(), {.lr = 0.005});
  auto step = jit([net, opt](Tensor x, Tensor label) {
    auto [loss, gradients] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
    opt.update(gradients);
    return loss;
  });

  PackageBuilder package(named_states({{"net", net}, {"opt", opt}}));
  step.export_into(package, "step", {.inputs = {{f32, {64, 2}, "x"}, {i64, {64}, "label"}}, .outputs = {"loss"}, .cpu = "baseline"});
  net.export_into(package, "predict", {.inputs = {{f32, {"batch", 2}, "x"}}, .outputs = {"scores"}, .cpu = "baseline"});
  package.write(argv[1]);
} catch (const Error &e) {
  std::cerr << e.what() << "\n";
  return 1;
}
