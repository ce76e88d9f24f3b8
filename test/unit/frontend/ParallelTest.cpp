// Training in parts on several accelerators gives what one device gives: losses and weights after some steps, for
// networks whose layers see the whole batch (statistics, random numbers, norms), for sizes that do not divide, and for
// weights that are cut.
#include "test/unit/frontend/Parallel.h"
#include "frontend/tensor/Machine.h"
#include "tressel/runtime/CommandLog.h"
#include "tressel/runtime/Simulated.h"
#include "tressel/runtime/ThreadPool.h"

using namespace tressel;
using namespace tressel::test;

namespace {

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

TEST_F(Parallel, AModuleAlone) { // scatter, replicate, apply, gather
  use_machine("sim:2gpu-pcie3");
  const nn::Sequential net = perceptron();
  const Tensor x = rng::normal({9, 20}, 1);
  const Floats want = net(x).to_vector<float>();
  net.hybridize({.devices = {cpu(), gpu(0), gpu(1)}, .shard_axis = 0});
  const Floats got = net(x).to_vector<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5f);
}

// The processor's cores as accelerators, by the clock; and what a simulated machine's log says of a call.
TEST_F(Parallel, WhatIsSideBySideStandsInOneLine) {
  const bool hasTwo = runtime::ThreadPool::global().numThreads() >= 2;
  for (const char *machine : {"sim:2gpu-pcie3", "cpu:2"}) {
    if (machine == std::string_view("cpu:2") && !hasTwo)
      GTEST_SKIP() << "cpu:2 needs a pool of two threads; the simulated machine has passed";
    SCOPED_TRACE(machine);
    const auto batches = batchesOf({64, 64, 23}, {20}, 10);
    for (const std::vector<Device> &on : {std::vector<Device>{}, kTwo})
      expectSame(train(machine, perceptron(), {.devices = {cpu(), gpu(0), gpu(1)}, .shard_axis = 0}, batches, 0, on),
                 train("cpu", perceptron(), {}, batches));
    use_machine(machine);
    const auto net = perceptron();
    net.on(kTwo);
    const optim::SGD opt(net.parameters(), {.lr = 0.1});
    auto step = jit(
        [=](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        {.shard_axis = 0});
    step.compile(batches[0].x.type(), batches[0].label.type());
    EXPECT_FALSE(step.explain().achieved_side_by_side); // it has not run
    const float loss = step(batches[0].x, batches[0].label).item<float>();
    EXPECT_GT(loss, 0);
    const Prediction p = step.explain();
    ASSERT_TRUE(p.planned_side_by_side && p.achieved_side_by_side) << p.text;
    for (double share : {*p.planned_side_by_side, *p.achieved_side_by_side}) {
      EXPECT_GE(share, 0);
      EXPECT_LE(share, 1);
    }
    if (machine == std::string_view("sim:2gpu-pcie3")) { // its truth is the plan's
      EXPECT_NEAR(*p.planned_side_by_side, *p.achieved_side_by_side, 0.05);
    }
    EXPECT_NE(p.text.find(" achieved in the latest call, of the time"), std::string::npos) << p.text;
    const auto other = jit([](Tensor x) { return x + 1.0f; }, {.devices = {gpu(0)}});
    other(batches[0].x.to(gpu(0))).wait();
    EXPECT_FALSE(step.explain().achieved_side_by_side); // the machine's latest call is another's
  }
}

TEST_F(Parallel, BatchesOfAnySize) { // the last ones are smaller than the ranks are many
  const auto batches = batchesOf({13, 30, 7, 2, 1}, {20}, 10);
  expectSame(train("sim:4gpu-pcie3", perceptron(), {.shard_axis = 0}, batches),
             train("cpu", perceptron(), {}, batches));
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

// Each accelerator takes its part of the batch through all steps; what the steps add up of the weights' gradient is
// exchanged once.
TEST_F(Parallel, ARecurrentNetwork) {
  const auto batches = batchesOf({16, 16, 13, 16}, {5, 6}, 10);
  const Trained want = train("cpu", recurrentNetwork(), {}, batches);
  expectSame(train("sim:2gpu-pcie3", recurrentNetwork(), {.shard_axis = 0}, batches, 0, kTwo), want);
  expectSame(train("sim:4gpu-pcie3", recurrentNetwork(), {.shard_axis = 0}, batches, 0.5),
             train("cpu", recurrentNetwork(), {}, batches, 0.5));
  expectSame(train("sim:2gpu-pcie3", recurrentNetwork(),
                   {.mesh = {{"data", 2}}, .pipeline = Pipeline{.micro_batches = 2}}, batches),
             want);
  // Half of the work each, of a size that takes longer than to begin it.
  auto seconds = [&](const JitOptions &options) {
    use_machine("sim:2gpu-pcie3", {.computes = false});
    nn::LSTM lstm(512, {.batch_first = true});
    lstm.initialize({{f32, {1, 5, 512}}}, 1);
    lstm.on({gpu(0), gpu(1)});
    const auto f = jit([lstm](Tensor x) { return lstm(x).output; }, options);
    f.compile({f32, {8192, 5, 512}});
    return f.explain().compute_seconds;
  };
  EXPECT_LT(seconds({.shard_axis = 0}), 0.6 * seconds({.devices = {cpu(), gpu(0)}, .shard_axis = std::nullopt}));
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

// --- Variables on several accelerators

runtime::SimulatedMachine &machine() { return dynamic_cast<runtime::SimulatedMachine &>(*detail::currentMachine()); }
/// Bytes that the latest call moved between devices.
int64_t bytesMoved() {
  int64_t bytes = 0;
  for (const runtime::LoggedCommand &c : machine().log().commands)
    if (c.kind == runtime::DeviceCommandKind::Copy && c.from.device != c.to.device)
      bytes += c.bytes;
  return bytes;
}

TEST_F(Parallel, WeightsThatLieOnTheAccelerators) {
  const auto batches = batchesOf({16, 16, 13, 16}, {20}, 10);
  const Trained want = train("cpu", perceptron(), {}, batches);
  expectSame(train("sim:2gpu-pcie3", perceptron(), {.shard_axis = 0}, batches, 0, kTwo), want);
  const auto images = batchesOf({16, 16, 10}, {3, 14, 14}, 10);
  expectSame(train("sim:2gpu-pcie3", imageNetwork(), {.shard_axis = 0}, images, 0.5, kTwo),
             train("cpu", imageNetwork(), {}, images, 0.5), 2e-4f);
}

TEST_F(Parallel, WeightsThatLieThereInParts) { // of the momentum too: each rank updates its part
  const auto batches = batchesOf({16, 16, 16}, {20}, 10);
  const Trained want = train("cpu", perceptron(), {}, batches);
  nn::Sequential net = perceptron();
  for (const auto &[name, variable] : net.parameters())
    variable.shard(variable.shape().rank() == 2 ? "data, -" : "data");
  expectSame(train("sim:2gpu-pcie3", net, {.shard_axis = 0}, batches, 0, kTwo), want);
  expectSame(train("sim:4gpu-pcie3", block(), {.mesh = {{"data", 2}, {"model", 2}}, .shard_axis = 0}, tokens(), 0,
                   {gpu(0), gpu(1), gpu(2), gpu(3)}),
             train("cpu", block(), {}, tokens()), 1e-4f);
}

TEST_F(Parallel, WhatLiesThereIsNotMoved) {
  use_machine("sim:2gpu-pcie3");
  const Variable w(rng::normal({256, 256}, 1), "w");
  w.on(kTwo);
  const auto f = jit(
      [w](Tensor x) {
        w.assign(w.value() * 0.5);
        return sum(matmul(x, w.value()));
      },
      {.shard_axis = 0});
  const Tensor x = rng::normal({64, 256}, 2);
  f(x).wait();
  f(x).wait();
  EXPECT_LT(bytesMoved(), 2 * x.type().bytes()); // and two sums
}

TEST_F(Parallel, WhoeverReadsSeesTheLatestValue) {
  use_machine("sim:2gpu-pcie3");
  const Variable w(full({4, 6}, 2), "w");
  w.on(kTwo);
  EXPECT_EQ(w.device(), cpu());
  auto half = [&](const char *axes) {
    w.shard(axes);
    return jit(
        [w](Tensor x) {
          w.assign(w.value() * 0.5);
          return matmul(x, w.value());
        },
        {.mesh = {{"data", 2}}});
  };
  const auto whole = half("-, -");
  auto first = [&] { return w.value().to_vector<float>()[0]; };
  const Tensor x = ones({2, 4});
  EXPECT_EQ(whole(x).to_vector<float>()[0], 4);
  EXPECT_EQ(first(), 1);
  w.assign(full({4, 6}, 8)); // by the host: the accelerators get it with the next call
  EXPECT_EQ(whole(x).to_vector<float>()[0], 16);
  EXPECT_EQ(first(), 4);
  const auto parts = half("-, data"); // another layout has the value that the first one made
  EXPECT_EQ(parts(x).to_vector<float>()[5], 8);
  EXPECT_EQ(w.value().to_vector<float>()[23], 2);
  const auto serial = jit([w](Tensor t) { return t + w.value(); }); // and so has a program without a mesh
  EXPECT_EQ(serial(zeros({4, 6})).to_vector<float>()[23], 2);
  parts(x).wait();
  EXPECT_EQ(serial(zeros({4, 6})).to_vector<float>()[23], 1);
  const auto update = jit([w](Tensor t) {
    w.assign(w.value() + t);
    return t;
  }); // which may write it, too
  update(ones({4, 6})).wait();
  EXPECT_EQ(parts(x).to_vector<float>()[0], 4);
  EXPECT_EQ(first(), 1);
  w.on(gpu(1)); // one home again
  EXPECT_EQ(first(), 1);
  EXPECT_EQ(w.device(), gpu(1));
}

TEST_F(Parallel, StatesAreSavedAndLoadedAsWholes) { // also by another number of accelerators
  const auto batches = batchesOf({16, 16, 16, 16}, {20}, 10);
  const std::string file = testing::TempDir() + "parallel.safetensors";
  const Trained want = train("cpu", perceptron(), {}, batches);
  auto run = [&](const char *machine, int ranks, size_t from, size_t to) {
    use_machine(machine);
    nn::Sequential net = perceptron();
    std::vector<Device> on;
    for (int i = 0; i < ranks; ++i)
      on.push_back(gpu(i));
    net.on(on);
    optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    auto step = jit(
        [net, opt](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        {.mesh = {{"data", ranks}}, .shard_axis = 0});
    if (from > 0)
      load_state(file, {{"net", net}, {"opt", opt}});
    float loss = 0;
    for (size_t i = from; i < to; ++i)
      loss = step(batches[i].x, batches[i].label).item<float>();
    save_state(file, {{"net", net}, {"opt", opt}});
    return loss;
  };
  EXPECT_NEAR(run("sim:2gpu-pcie3", 2, 0, 2), want.losses[1], 1e-4f);
  EXPECT_NEAR(run("sim:4gpu-pcie3", 4, 2, 4), want.losses[3], 1e-4f);
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
  EXPECT_NE(message({.shard_axis = 2}).find("along dimension 2, which no argument has"), std::string::npos);
  EXPECT_NE(message({.shard_axis = -1}).find("along dimension -1"), std::string::npos);
  EXPECT_NE(message({.devices = {cpu()}, .shard_axis = 0}).find("`devices` names none"), std::string::npos);
  EXPECT_NE(message({.devices = {gpu(0), gpu(0)}, .shard_axis = 0}).find("of which gpu0 is named twice"), std::string::npos);
  EXPECT_NE(message({.shard_axis = 0, .bucket_bytes = 0}).find("in pieces of 0 bytes"), std::string::npos);
  const std::string open = messageOf<Error>([] {
    use_machine("sim:2gpu-pcie3");
    jit([](Tensor t) { return exp(t); }, {.shard_axis = 0}).compile({f32, {"batch", 4}});
  });
  EXPECT_NE(open.find("dimension 0 of f32[batch, 4], whose size is open"), std::string::npos) << open;
  const std::string unknown = message({.mesh = {{"data", 2}}}, "sim:2gpu-pcie3", "model, -");
  EXPECT_NE(unknown.find("names the axis 'model', which the mesh (data=2) does not have"), std::string::npos)
      << unknown;
  EXPECT_NE(unknown.find("ParallelTest.cpp"), std::string::npos) << unknown;
  EXPECT_NE(message({.mesh = {{"data", 2}}}, "sim:2gpu-pcie3", "data").find("names 1 dimensions of 2"),
            std::string::npos);
  use_machine("sim:2gpu-pcie3");
  const Variable on(ones({4}), "on");
  EXPECT_NE(messageOf<Error>([&] { on.on({gpu(0), gpu(0)}); }).find("of which gpu0 is named twice"), std::string::npos);
  EXPECT_NE(messageOf<Error>([&] { on.on({cpu(), gpu(0)}); }).find("of which cpu is the host"), std::string::npos);
  EXPECT_NE(messageOf<Error>([&] { on.on({gpu(0), gpu(5)}); }).find("gpu5"), std::string::npos);
  const Variable v(ones({4, 4}), "v");
  EXPECT_NE(messageOf<ShapeError>([&] { v.shard("data"); }).find("names 1 dimensions of f32[4, 4]"), std::string::npos);
}

TEST_F(Parallel, WeightsThatLieElsewhereThanTheMesh) {
  use_machine("sim:4gpu-pcie3");
  const Variable w(ones({4, 8}), "w");
  w.on(kTwo);
  const auto f = [w](Tensor x) { return matmul(x, w.value()); };
  const Tensor x = ones({8, 4});
  const std::string message = messageOf<Error>([&] { jit(f, {.shard_axis = 0})(x).wait(); });
  EXPECT_NE(message.find(
                "the Variable 'w' lies on gpu0, gpu1, and the program that uses it computes on gpu0, gpu1, gpu2, gpu3"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("ParallelTest.cpp"), std::string::npos) << message;
  EXPECT_NE(messageOf<Error>([&] {
              jit(f, {.devices = {gpu(2), gpu(3)}, .shard_axis = 0})(x).wait();
            }).find("computes on gpu2, gpu3"),
            std::string::npos);
  EXPECT_EQ(jit(f, {.mesh = {{"data", 2}}, .shard_axis = 0})(x).to_vector<float>()[0], 4);
}

TEST_F(Parallel, TypesForOtherArgumentsThanThereAre) {
  use_machine("sim:2gpu-pcie3");
  const auto f = jit([](Tensor a, Tensor b) { return a + b; });
  const TensorSpec type{f32, {4, 4}};
  for (const std::vector<TensorSpec> &types : {std::vector{type}, std::vector{type, type, type}}) {
    const std::string message = messageOf<Error>([&] { (void)f.explain_ranks({.mesh = {{"data", 2}}}, types); });
    EXPECT_NE(message.find("types are given for " + std::to_string(types.size()) + " tensors, but the arguments hold " +
                           (types.size() == 1 ? "more" : "2")),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("ParallelTest.cpp"), std::string::npos) << message;
  }
  EXPECT_NE(messageOf<Error>([&] {
              (void)f.explain_parallel(0, {type, type});
            }).find("'jit' is to be split over 0 accelerators"),
            std::string::npos);
}

// Replicas by the name of other frameworks: the whole batch comes back, and a step over them is that of one device.
TEST_F(Parallel, DataParallelScattersAndGathers) {
  const auto batches = batchesOf({16, 13, 16}, {20}, 10);
  const Trained want = train("cpu", perceptron(), {}, batches);
  use_machine("cpu");
  const Floats scores = perceptron()(batches[1].x).to_vector<float>();
  use_machine("sim:2gpu-pcie3");
  const parallel::DataParallel net(perceptron(), kTwo);
  const Floats got = net(batches[1].x).to_vector<float>();
  ASSERT_EQ(got.size(), scores.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], scores[i], 1e-5f);
  EXPECT_GT(machine().log().commands.size(), 0u);
  expectSame(train("sim:2gpu-pcie3", net.module(), net.options({.name = "step"}), batches), want);
}

TEST_F(Parallel, EachIsCutWhereTheAxisDivides) {
  const Variable matrix(ones({10, 32}), "matrix"), vector(ones({10}), "vector"), odd(ones({3}), "odd");
  parallel::shard_each({{"matrix", matrix}, {"vector", vector}, {"odd", odd}}, {"data", 4}, 0);
  EXPECT_EQ(matrix.impl()->sharding, "-, data");
  EXPECT_EQ(vector.impl()->sharding, "");
  EXPECT_EQ(odd.impl()->sharding, "");
  parallel::shard_each({{"vector", vector}}, {"data", 5}, 0);
  EXPECT_EQ(vector.impl()->sharding, "data");
  parallel::shard_each({{"vector", vector}}, {"data", 5}); // small
  EXPECT_EQ(vector.impl()->sharding, "");
  EXPECT_NE(messageOf<Error>([&] {
              parallel::shard_each({{"odd", odd}}, {"data", 0});
            }).find("a size from 1"),
            std::string::npos);
}

// ZeRO 1 and 3: states, or weights too, in parts; the same steps.
TEST_F(Parallel, StatesInPartsTrainAlike) {
  const auto batches = batchesOf({16, 16, 16}, {20}, 10);
  const Trained want = train("cpu", perceptron(), {}, batches);
  for (bool weightsToo : {false, true}) {
    use_machine("sim:4gpu-pcie3");
    nn::Sequential net = perceptron();
    net.on({gpu(0), gpu(1), gpu(2), gpu(3)});
    if (weightsToo)
      parallel::shard_each(net.parameters(), {"data", 4}, 0);
    optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    parallel::shard_each(opt.states(), {"data", 4}, 0);
    const auto step = jit(
        [=](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        {.shard_axis = 0});
    Trained got;
    for (const Batch &batch : batches)
      got.losses.push_back(step(batch.x, batch.label).item<float>());
    for (const auto &[name, variable] : net.parameters())
      got.weights[name] = variable.value().to_vector<float>();
    expectSame(got, want);
  }
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
  EXPECT_EQ(f.stats().retraces.back(), "a Variable lies elsewhere, or is cut in another way");
}

// Whatever lies where the last step left it: parts, a whole copy, or both.
TEST_F(Parallel, AMovedVariableKeepsItsUpdates) {
  use_machine("sim:2gpu-pcie3");
  const Variable w(zeros({4}), "w");
  auto step = jit(
      [w](Tensor x) {
        w.assign(w.value() + x);
        return sum(x);
      },
      {.shard_axis = 0});
  float want = 0;
  const auto steps = [&] {
    step(ones({4})).wait();
    EXPECT_EQ(w.value().to_vector<float>(), Floats(4, ++want));
  };
  steps();
  w.on({gpu(0), gpu(1)});
  steps();
  w.on({gpu(0), gpu(1)});
  steps();
  w.on(cpu());
  steps();
  w.on({gpu(0), gpu(1)});
  steps();
  w.on(gpu(1));
  steps();
}

TEST_F(Parallel, AssertionsHoldInProgramsOfSeveralDevices) {
  use_machine("sim:2gpu-pcie3");
  for (const std::optional<int> axis : {std::optional<int>(), std::optional<int>(0)}) {
    SCOPED_TRACE(axis.value_or(-1));
    JitOptions options{.mesh = {{"data", 2}}};
    options.shard_axis = axis;
    auto f = jit(
        [](Tensor x) {
          assert_true(sum(x) > 0.0, "the sum is positive");
          return x * 2.0;
        },
        options);
    EXPECT_EQ(f(ones({4})).to_vector<float>(), Floats(4, 2));
    try {
      f(-ones({4})).wait();
      ADD_FAILURE() << "no error";
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find("the sum is positive"), std::string::npos) << error.what();
    }
  }
}

// Where the parts' sizes do not fit the op (channels in groups, a dimension cut in two ways), each rank computes all of
// it; elsewhere parts of 10 are of different sizes.
TEST_F(Parallel, OpsCutAgainstTheGrain) {
  const Tensor x = rng::normal({2, 6, 8, 8}, 1), w = rng::normal({10, 6, 3, 3}, 2),
               single = rng::normal({6, 1, 3, 3}, 3);
  const Tensor rows = rng::normal({10, 6}, 4), at = randint(5, 0, 6, {10, 6});
  using Function = std::function<Tensor(Tensor)>;
  auto same = [](const Function &f, const Tensor &input, const std::vector<MeshAxis> &mesh) {
    use_machine("cpu");
    const Floats want = f(input).to_vector<float>();
    use_machine("sim:4gpu-pcie3");
    const Floats got = jit(f, {.mesh = mesh})(input).to_vector<float>();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-4f) << i;
  };
  for (int n : {2, 3, 4}) {
    SCOPED_TRACE(n);
    same([&](Tensor t) { return conv(t, shard(w, "a, -, -, -")); }, x, {{"a", n}});
    same([&](Tensor t) { return conv(shard(t, "-, a, -, -"), w); }, x, {{"a", n}});
    same([&](Tensor t) { return conv(shard(t, "-, a, -, -"), single, {}, {}, {}, {}, 6); }, x, {{"a", n}});
    same([&](Tensor t) { return conv(shard(t, "-, -, a, -"), w); }, x, {{"a", n}});
  }
  const std::vector<MeshAxis> both{{"a", 2}, {"b", 2}};
  same([&](Tensor t) { return take_along_axis(shard(t, "a, -"), shard(at, "a+b, -"), 1); }, rows, both);
  same([&](Tensor t) { return shard(t, "a+b, -") + shard(t * 2.0, "b+a, -"); }, rows, both);
  same([&](Tensor t) { return matmul(shard(t, "a, b"), shard(transpose(t), "b+a, -")); }, rows, both);
}

// Ranks in processes of their own: the program of one, predicted.
TEST_F(Parallel, OneOfManyRanks) {
  use_machine("sim:dgx-h100:1024");
  const nn::Sequential net = perceptron();
  const optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto stepWith = [&](int64_t bucket) {
    return jit(
        [=](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        {.bucket_bytes = bucket});
  };
  const auto step = stepWith(25 << 20);
  auto predict = [](const auto &f, int ranks, int64_t each = 64) {
    return f.explain_ranks({.mesh = {{"data", ranks}}}, {{f32, {each * ranks, 20}}, {i64, {each * ranks}}});
  };
  const Prediction one = predict(step, 1), few = predict(step, 8), many = predict(step, 1024);
  EXPECT_LT(one.step_seconds, few.step_seconds);
  EXPECT_LT(few.step_seconds, many.step_seconds);
  EXPECT_NEAR(few.compute_seconds, many.compute_seconds, 0.2 * few.compute_seconds);
  EXPECT_GE(many.step_seconds, std::max(many.compute_seconds, many.transfer_seconds) * 0.999);
  EXPECT_NE(few.text.find(" among 8 members, "), std::string::npos) << few.text;
  EXPECT_NE(many.text.find(" among 1024 members on 128 hosts, "), std::string::npos) << many.text;
  EXPECT_NE(many.text.find("hierarchical: "), std::string::npos) << many.text;
  EXPECT_NE(predict(stepWith(int64_t(1) << 62), 8).text.find("as one of"), std::string::npos);
  EXPECT_EQ(step.stats().traces, 0u); // no program was kept

  auto message = [&](auto &&call) -> std::string {
    try {
      call();
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message([&] {
              step.explain_ranks({.mesh = {{"data", 7}}}, {{f32, {64, 20}}, {i64, {64}}});
            }).find("has no equal parts for 7 ranks"),
            std::string::npos);
  EXPECT_NE(message([&] {
              step.explain_ranks({}, {{f32, {64, 20}}, {i64, {64}}});
            }).find("without a mesh"),
            std::string::npos);
  use_machine("sim:dgx-h100");
  const std::string tooMany = message([&] { predict(step, 12); });
  EXPECT_NE(tooMany.find("for 12 ranks with an accelerator each, and 'dgx-h100' has 8"), std::string::npos) << tooMany;
  EXPECT_NE(tooMany.find("use_machine(\"sim:dgx-h100:16\")"), std::string::npos) << tooMany;
  EXPECT_NE(tooMany.find("ParallelTest.cpp"), std::string::npos) << tooMany;
  use_machine("cpu");
  EXPECT_NE(message([&] { predict(step, 2); }).find("the machine has none"), std::string::npos);
}

TEST_F(Parallel, LayoutsAreCompared) {
  use_machine("sim:dgx-h100");
  const nn::Dense wide(4096, relu), narrow(10);
  const nn::Sequential net{wide, narrow};
  net.initialize({{f32, {1, 1024}}}, 1);
  const optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  const auto step = jit([=](Tensor x, Tensor label) {
    auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
    opt.update(grads);
    return loss;
  });
  const std::vector<TensorSpec> types{{f32, {4096, 1024}}, {i64, {4096}}};
  const ParallelComparison plain = step.explain_parallel(8, types);
  std::map<std::string, ParallelLayout> named;
  for (const ParallelLayout &layout : plain.layouts) {
    EXPECT_EQ(layout.error, "") << layout.name;
    named[layout.name] = layout;
  }
  ASSERT_EQ(named.size(), 4u) << plain.text;
  const ParallelLayout &alone = named.at("one accelerator"), &data = named.at("data = 8"),
                       &updates = named.at("data = 8, optimizer in parts"),
                       &all = named.at("data = 8, weights in parts");
  EXPECT_LT(data.step_seconds, alone.step_seconds);
  EXPECT_LT(data.rank_bytes, alone.rank_bytes);
  // Momentum in parts, then the weights too.
  const int64_t weights = 4 * 1024 * 4096;
  EXPECT_GT(data.rank_bytes - updates.rank_bytes, weights / 2); // arenas depend on the order of the commands
  EXPECT_LT(all.rank_bytes, data.rank_bytes); // gathered where they are used, the weights of two layers are most of the step
  EXPECT_EQ(data.mesh.size(), 1u);
  EXPECT_EQ(data.mesh[0].size, 8);
  ASSERT_TRUE(plain.best);
  for (const ParallelLayout &layout : plain.layouts)
    EXPECT_GE(layout.step_seconds, plain.layouts[*plain.best].step_seconds);
  EXPECT_NE(plain.text.find("recommended: " + plain.layouts[*plain.best].name), std::string::npos) << plain.text;

  for (const auto &[name, variable] : net.parameters()) // within the layers
    if (name == "0.weight")
      variable.shard("-, model");
    else if (name == "1.weight")
      variable.shard("model, -");
  const ParallelComparison within = step.explain_parallel(8, types);
  ASSERT_EQ(within.layouts.size(), 7u) << within.text;
  const ParallelLayout &model = within.layouts.back();
  EXPECT_EQ(model.name, "data = 1, model = 8");
  EXPECT_EQ(model.error, "");
  EXPECT_LT(model.rank_bytes, named.at("one accelerator").rank_bytes);

  const ParallelComparison odd = step.explain_parallel(7, types); // 4096 is no multiple of 7
  ASSERT_TRUE(odd.best);
  EXPECT_EQ(odd.layouts[*odd.best].name, "one accelerator");
  EXPECT_NE(odd.text.find("has no equal parts for 7 ranks"), std::string::npos) << odd.text;
}
TEST_F(Parallel, ADeviceIsLostWithinAStep) { // and training goes on from the last checkpoint
  const auto batches = batchesOf({24, 24, 24}, {20}, 10);
  for (bool isPipeline : {false, true}) {
    SCOPED_TRACE(isPipeline);
    use_machine("sim:2gpu-pcie3");
    const nn::Sequential net = perceptron();
    if (isPipeline)
      for (int i = 0; i < 2; ++i)
        net[std::to_string(i)].stage(i, {gpu(i)});
    else
      net.on({gpu(0), gpu(1)});
    optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    JitOptions options{.devices = {cpu(), gpu(0), gpu(1)}};
    if (isPipeline)
      options.pipeline = Pipeline{.micro_batches = 3, .size = 2};
    else
      options.shard_axis = 0;
    auto step = jit(
        [net, opt](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        options);
    auto lossOf = [&](const Batch &batch) { return step(batch.x, batch.label).item<float>(); };
    lossOf(batches[0]);
    std::map<std::string, Tensor> saved;
    nn::NamedParameters all = net.parameters();
    for (const auto &state : opt.states())
      all.push_back(state);
    for (const auto &[name, variable] : all)
      saved[name] = variable.value().to(cpu());
    for (auto &[name, value] : saved)
      value.wait();
    const float want = lossOf(batches[1]);
    for (const auto kind : {runtime::Fault::Kind::LaunchFails, runtime::Fault::Kind::DeviceLost}) {
      for (const auto &[name, variable] : all) {
        variable.assign(saved.at(name));
        variable.value().wait(); // the step is to meet the fault
      }
      machine().inject({.kind = kind, .device = {runtime::DeviceKind::Gpu, 1}});
      EXPECT_THROW(lossOf(batches[1]), RuntimeError);
      EXPECT_THROW(lossOf(batches[1]), RuntimeError); // what it was to update has no value
      for (const auto &[name, variable] : all)
        variable.assign(saved.at(name));
      EXPECT_EQ(lossOf(batches[1]), want);
    }
  }
}

} // namespace
