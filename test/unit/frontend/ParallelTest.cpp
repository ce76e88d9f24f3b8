// Training in parts on several accelerators gives what one device gives: losses and weights after some steps, for
// networks whose layers see the whole batch (statistics, random numbers, norms), for sizes that do not divide, and for
// weights that are cut.
#include "frontend/tensor/Machine.h"

#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <functional>

using namespace tressel;

namespace {

class Parallel : public ::testing::Test {
protected:
  ~Parallel() override { use_machine("cpu"); }
};

using Floats = std::vector<float>;

struct Batch {
  Tensor x, label;
};

/// Losses and weights of some steps on a machine.
struct Trained {
  Floats losses;
  std::map<std::string, Floats> weights;
};

template <typename Net>
Trained train(const std::string &machine, Net net, const JitOptions &options, std::span<const Batch> batches,
              double clip = 0) {
  use_machine(machine);
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto step = jit(
      [net, opt, clip](Tensor x, Tensor label) {
        auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
        if (clip > 0)
          clip_by_global_norm(grads, clip);
        opt.update(grads);
        return loss;
      },
      options);
  Trained trained;
  for (const Batch &batch : batches)
    trained.losses.push_back(step(batch.x, batch.label).template item<float>());
  for (const auto &[name, variable] : net.parameters())
    trained.weights[name] = variable.value().template to_vector<float>();
  for (const auto &[name, variable] : net.buffers())
    if (variable.dtype() == f32)
      trained.weights[name] = variable.value().template to_vector<float>();
  return trained;
}

void expectSame(const Trained &got, const Trained &want, float tolerance = 2e-5f) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance * std::abs(want.losses[i])) << "step " << i;
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (const auto &[name, values] : want.weights) {
    const Floats &own = got.weights.at(name);
    ASSERT_EQ(own.size(), values.size());
    float largest = 0, off = 0;
    for (size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(values[i])), off = std::max(off, std::abs(own[i] - values[i]));
    EXPECT_LE(off, tolerance * 10 * largest + 1e-7f) << name;
  }
}

std::vector<Batch> batchesOf(std::initializer_list<int64_t> sizes, const Shape &image, int64_t classes) {
  std::vector<Batch> batches;
  uint64_t seed = 1;
  for (int64_t n : sizes) {
    std::vector<Size> shape{n};
    shape.insert(shape.end(), image.begin(), image.end());
    batches.push_back({rng::normal(Shape(std::span<const Size>(shape)), seed),
                       randint(static_cast<int64_t>(seed + 1), 0, classes, {n})});
    seed += 2;
  }
  return batches;
}

nn::Sequential perceptron() {
  nn::Sequential net{nn::Dense(32, relu), nn::Dense(10)};
  net.initialize({{f32, {1, 20}}}, 1);
  return net;
}

TEST_F(Parallel, APerceptronOnOneTwoThreeAndFourAccelerators) {
  const auto batches = batchesOf({24, 24, 24, 24}, {20}, 10);
  const Trained want = train("cpu", perceptron(), {}, batches);
  for (int n : {1, 2, 3, 4}) {
    SCOPED_TRACE(n);
    expectSame(train("sim:4gpu-pcie3", perceptron(), {.mesh = {{"data", n}}, .shard_axis = 0}, batches), want);
  }
}

TEST_F(Parallel, DevicesAreTheMesh) {
  const auto batches = batchesOf({16, 16}, {20}, 10);
  const Trained want = train("cpu", perceptron(), {}, batches);
  expectSame(train("sim:2gpu-pcie3", perceptron(), {.devices = {cpu(), gpu(0), gpu(1)}, .shard_axis = 0}, batches),
             want);
  expectSame(train("sim:4gpu-pcie3", perceptron(), {.devices = {gpu(3), gpu(1)}, .shard_axis = 0}, batches), want);
}

TEST_F(Parallel, BatchesOfAnySize) { // the last ones are smaller than the ranks are many
  const auto batches = batchesOf({13, 30, 7, 2, 1}, {20}, 10);
  expectSame(train("sim:4gpu-pcie3", perceptron(), {.shard_axis = 0}, batches),
             train("cpu", perceptron(), {}, batches));
}

nn::Sequential imageNetwork() {
  nn::Sequential net{nn::Conv2d(8, 3), nn::BatchNorm(), nn::Dropout(0.3), nn::MaxPool2d(2), nn::Conv2d(16, 3),
                     nn::BatchNorm(),  nn::Flatten(),   nn::Dropout(0.5), nn::Dense(10)};
  net.initialize({{f32, {1, 3, 14, 14}}}, 1);
  return net;
}

TEST_F(Parallel, StatisticsAndRandomNumbersAreThoseOfTheWholeBatch) {
  const auto batches = batchesOf({16, 16, 10}, {3, 14, 14}, 10);
  const Trained want = train("cpu", imageNetwork(), {}, batches, /*clip=*/0.5);
  expectSame(train("sim:2gpu-pcie3", imageNetwork(), {.shard_axis = 0}, batches, 0.5), want, 2e-4f);
  expectSame(train("sim:4gpu-pcie3", imageNetwork(), {.shard_axis = 0}, batches, 0.5), want, 2e-4f);
}

struct Block : nn::Module<Block> {
  nn::Embedding table = child("table", nn::Embedding(30, 16));
  nn::LayerNorm norm = child("norm", nn::LayerNorm());
  nn::MultiHeadAttention attention = child("attention", nn::MultiHeadAttention(16, 4));
  nn::Dense wide = child("wide", nn::Dense(64, gelu)), narrow = child("narrow", nn::Dense(16)),
            head = child("head", nn::Dense(10));
  Tensor forward(Tensor tokens) const {
    Tensor x = table(tokens);
    x = x + attention(norm(x));
    x = x + narrow(wide(x));
    return head(mean(x, 1));
  }
};
Block block() {
  Block net;
  net.initialize({{i64, {1, 6}}}, 1);
  return net;
}
std::vector<Batch> tokens() {
  std::vector<Batch> batches;
  for (int64_t seed = 1; seed <= 3; ++seed)
    batches.push_back({randint(seed, 0, 30, {8, 6}), randint(seed + 9, 0, 10, {8})});
  return batches;
}

TEST_F(Parallel, ATransformersBlock) {
  const Trained want = train("cpu", block(), {}, tokens());
  expectSame(train("sim:4gpu-pcie3", block(), {.shard_axis = 0}, tokens()), want, 1e-4f);
}

TEST_F(Parallel, WeightsAreCutWithinLayers) {
  const Trained want = train("cpu", block(), {}, tokens());
  auto cut = [] {
    Block net = block();
    const std::map<std::string, std::string> words = {{"wide.weight", "-, model"},
                                                      {"wide.bias", "model"},
                                                      {"narrow.weight", "model, -"},
                                                      {"table.weight", "-, model"}};
    for (const auto &[name, variable] : net.parameters())
      if (auto found = words.find(name); found != words.end())
        variable.shard(found->second);
    return net;
  };
  expectSame(train("sim:2gpu-pcie3", cut(), {.mesh = {{"model", 2}}}, tokens()), want, 1e-4f);
  expectSame(train("sim:4gpu-pcie3", cut(), {.mesh = {{"data", 2}, {"model", 2}}, .shard_axis = 0}, tokens()), want,
             1e-4f);
}

TEST_F(Parallel,
       OptimizersStatesAreCut) { // each rank updates its part of the momentum and the weights that it belongs to
  const auto batches = batchesOf({16, 16, 16}, {20}, 10);
  const Trained want = train("cpu", perceptron(), {}, batches);
  nn::Sequential net = perceptron();
  for (const auto &[name, variable] : net.parameters())
    if (variable.shape().rank() == 2)
      variable.shard("data, -");
  expectSame(train("sim:2gpu-pcie3", net, {.shard_axis = 0}, batches), want);
}

template <typename E, typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const E &e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST_F(Parallel, ErrorsSayWhatIsWrong) {
  const Tensor x = ones({8, 4});
  auto message = [&](JitOptions options, const char *machine = "sim:2gpu-pcie3", const char *axes = "") {
    use_machine(machine);
    options.name = "f";
    auto f = jit([&](Tensor t) { return axes[0] ? exp(shard(t, axes)) : exp(t); }, options);
    return messageOf<Error>([&] { f(x).wait(); });
  };
  EXPECT_NE(message({.shard_axis = 0}, "cpu").find("'f' is to be cut over accelerators, and the machine has none"),
            std::string::npos)
      << message({.shard_axis = 0}, "cpu");
  EXPECT_NE(message({.mesh = {{"data", 4}}}).find("'f' has a mesh of 4 accelerators (data=4), and there are 2"),
            std::string::npos);
  EXPECT_NE(message({.mesh = {{"data", 1}, {"data", 2}}}).find("two axes called 'data'"), std::string::npos);
  EXPECT_NE(message({.mesh = {{"2d", 2}}}).find("an axis has a name of letters"), std::string::npos);
  EXPECT_NE(message({.shard_axis = -1}).find("along dimension -1"), std::string::npos);
  EXPECT_NE(message({.devices = {cpu()}, .shard_axis = 0}).find("`devices` names none"), std::string::npos);
  const std::string unknown = message({.mesh = {{"data", 2}}}, "sim:2gpu-pcie3", "model, -");
  EXPECT_NE(unknown.find("names the axis 'model', which the mesh (data=2) does not have"), std::string::npos)
      << unknown;
  EXPECT_NE(unknown.find("ParallelTest.cpp"), std::string::npos) << unknown;
  EXPECT_NE(message({.mesh = {{"data", 2}}}, "sim:2gpu-pcie3", "data").find("names 1 dimensions of 2"),
            std::string::npos);
  const Variable v(ones({4, 4}), "v");
  EXPECT_NE(messageOf<ShapeError>([&] { v.shard("data"); }).find("names 1 dimensions of f32[4, 4]"), std::string::npos);
}

TEST_F(Parallel, AVariableThatIsCutOtherwiseMakesTheProgramAnew) {
  use_machine("sim:2gpu-pcie3");
  const Variable w(ones({4, 8}), "w");
  auto f = jit([w](Tensor x) { return matmul(x, w.value()); }, {.mesh = {{"model", 2}}});
  const Tensor x = rng::normal({3, 4}, 1);
  const Floats want = f(x).to_vector<float>();
  w.shard("-, model");
  EXPECT_EQ(f(x).to_vector<float>(), want);
  EXPECT_EQ(f.stats().traces, 2u);
  EXPECT_EQ(f.stats().retraces.back(), "a Variable is cut in another way");
}

} // namespace
