// Training in micro-batches, and with stages on several accelerators, gives what one device gives.
#include "test/unit/frontend/Parallel.h"

using namespace tressel;
using namespace tressel::test;

namespace {

nn::Sequential deepPerceptron() {
  nn::Sequential net{nn::Dense(32, relu), nn::Dense(24, relu), nn::Dense(24, relu), nn::Dense(10)};
  net.initialize({{f32, {1, 20}}}, 1);
  return net;
}

TEST_F(Parallel, MicroBatchesAddUpTheirGradients) {
  for (int n : {1, 2, 5}) {
    SCOPED_TRACE(n);
    const auto batches = batchesOf({20, 20, 13, 1}, {20}, 10);
    expectSame(train("sim:2gpu-pcie3", perceptron(),
                     {.devices = {cpu(), gpu(0)}, .pipeline = Pipeline{.micro_batches = n}}, batches),
               train("cpu", perceptron(), {}, batches));
  }
}

TEST_F(Parallel, MicroBatchesSeeTheWholeBatch) { // statistics, random numbers, the norm of gradients
  const auto batches = batchesOf({16, 16, 10}, {3, 14, 14}, 10);
  expectSame(train("sim:2gpu-pcie3", imageNetwork(),
                   {.devices = {cpu(), gpu(0)}, .pipeline = Pipeline{.micro_batches = 4}}, batches, 0.5),
             train("cpu", imageNetwork(), {}, batches, 0.5));
}

constexpr PipelineOrder kOrders[] = {PipelineOrder::Best, PipelineOrder::OneForwardOneBackward,
                                     PipelineOrder::ZeroBubble, PipelineOrder::AllForwardFirst};

TEST_F(Parallel, FourStages) {
  const auto batches = batchesOf({24, 24, 22}, {20}, 10);
  const Trained want = train("cpu", deepPerceptron(), {}, batches, 0.5);
  for (PipelineOrder order : kOrders)
    for (bool isThere : {false, true}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(order)) + (isThere ? ", weights on the accelerators" : ""));
      expectSame(train("sim:4gpu-pcie3", deepPerceptron(),
                       {.pipeline = Pipeline{.micro_batches = 6, .size = 4, .order = order}}, batches, 0.5, {},
                       [&](const nn::Sequential &net) {
                         for (int i = 0; i < 4; ++i)
                           net[std::to_string(i)].stage(i, isThere ? std::vector{gpu(i)} : std::vector<Device>());
                       }),
                 want);
    }
}

TEST_F(Parallel, TwoStagesOfAnAccelerator) {
  const auto batches = batchesOf({24, 24}, {20}, 10);
  const Trained want = train("cpu", deepPerceptron(), {}, batches);
  for (PipelineOrder order : kOrders) {
    SCOPED_TRACE(static_cast<int>(order));
    expectSame(train("sim:2gpu-pcie3", deepPerceptron(),
                     {.pipeline = Pipeline{.micro_batches = 4, .size = 2, .order = order}}, batches, 0, {},
                     [](const nn::Sequential &net) {
                       for (int i = 0; i < 4; ++i)
                         net[std::to_string(i)].stage(i, {gpu(i % 2)});
                     }),
               want);
  }
}

TEST_F(Parallel, StagesOfSeveralAccelerators) {
  const auto batches = batchesOf({24, 24, 24}, {20}, 10);
  const Trained want = train("cpu", deepPerceptron(), {}, batches, 0.5);
  for (bool isThere : {false, true}) {
    SCOPED_TRACE(isThere);
    expectSame(train("sim:4gpu-pcie3", deepPerceptron(),
                     {.mesh = {{"data", 2}}, .pipeline = Pipeline{.micro_batches = 3, .size = 2}}, batches, 0.5, {},
                     [&](const nn::Sequential &net) {
                       for (int i = 0; i < 4; ++i) // two layers a stage, of two accelerators
                         net[std::to_string(i)].stage(i / 2, isThere ? std::vector{gpu(i / 2 * 2), gpu(i / 2 * 2 + 1)}
                                                                     : std::vector<Device>());
                     }),
               want);
  }
}

TEST_F(Parallel, PipelinesAreAmongTheLayouts) {
  use_machine("sim:dgx-h100", {.computes = false});
  nn::Sequential net{nn::Dense(2048, relu), nn::Dense(2048, relu), nn::Dense(2048, relu), nn::Dense(10)};
  net.initialize({{f32, {1, 2048}}}, 1);
  for (int i = 0; i < 4; ++i)
    net[std::to_string(i)].stage(i);
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto step = jit([net, opt](Tensor x, Tensor label) {
    auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
    opt.update(grads);
    return loss;
  });
  const ParallelComparison all = step.explain_parallel(8, {{f32, {8192, 2048}}, {i64, {8192}}});
  std::map<std::string, ParallelLayout> named;
  for (const ParallelLayout &layout : all.layouts)
    named[layout.name] = layout;
  const ParallelLayout &two = named.at("data = 4, pipeline of 2, micro-batches = 8"),
                       &four = named.at("data = 2, pipeline of 4, micro-batches = 16");
  EXPECT_EQ(two.error + four.error, "") << all.text;
  ASSERT_TRUE(four.pipeline);
  EXPECT_EQ(four.pipeline->size, 4);
  EXPECT_EQ(four.mesh[0].size, 2);
  EXPECT_GT(four.step_seconds, 0);
  EXPECT_LT(four.step_seconds, named.at("one accelerator").step_seconds);
  EXPECT_LT(four.rank_bytes, named.at("data = 8").rank_bytes); // a part of the weights
  EXPECT_NE(all.text.find("a pipeline has one for all"), std::string::npos) << all.text;

  const ParallelComparison odd = step.explain_parallel(8, {{f32, {8190, 2048}}, {i64, {8190}}});
  EXPECT_NE(odd.text.find("has no equal parts for 8 micro-batches"), std::string::npos) << odd.text;
}

/// Eight parts of a batch, on one to eight accelerators.
template <typename Net> void expectSameBits(Net (*network)(), std::span<const Batch> batches) {
  std::optional<Trained> want;
  for (const bool areThere : {false, true})
    for (int n : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::to_string(n) + (areThere ? ", weights on the accelerators" : ""));
      std::vector<Device> on;
      for (int i = 0; areThere && i < n; ++i)
        on.push_back(gpu(i));
      const Trained got =
          train("sim:dgx-h100", network(),
                {.mesh = {{"data", n}}, .pipeline = Pipeline{.micro_batches = 8 / n}, .deterministic = true}, batches,
                0.5, on);
      if (!want) {
        want = got;
        expectSame(got, train("cpu", network(), {}, batches, 0.5));
      }
      EXPECT_EQ(got.losses, want->losses);
      EXPECT_EQ(got.weights, want->weights);
    }
}
TEST_F(Parallel, DeterministicProgramsHaveTheSameBitsOnOneToEightAccelerators) {
  expectSameBits(imageNetwork, batchesOf({16, 16}, {3, 14, 14}, 10));
}
TEST_F(Parallel, RecurrentOnesToo) { expectSameBits(recurrentNetwork, batchesOf({16, 16}, {5, 6}, 10)); }

// What one accelerator holds is no reason to compute there what a mesh is to compute: of a list of one, too, the batch
// comes in parts.
TEST_F(Parallel, AListOfOneAcceleratorIsAMesh) {
  const auto peak = [](const std::vector<Device> &on) {
    use_machine("sim:dgx-h100");
    nn::Sequential net{nn::Dense(64, relu), nn::Dense(8)};
    net.initialize({{f32, {1, 32}}}, 1);
    if (!on.empty())
      net.on(on);
    optim::SGD opt(net.parameters(), {.lr = 0.1});
    const auto step = jit(
        [net, opt](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        {.devices = {cpu(), gpu(0)}, .pipeline = Pipeline{.micro_batches = 8}});
    (void)step(zeros({8192, 32}), zeros({8192}, i64));
    return step.explain().peak_bytes;
  };
  EXPECT_LT(static_cast<double>(peak({gpu(0)})), 1.3 * static_cast<double>(peak({})));
}

TEST_F(Parallel, StagesMeanNothingWithoutAPipeline) {
  const auto batches = batchesOf({24, 24}, {20}, 10);
  const Trained want = train("cpu", deepPerceptron(), {}, batches);
  for (const char *machine : {"sim:2gpu-pcie3", "cpu"}) {
    const nn::Sequential net = deepPerceptron();
    net["1"].stage(1);
    expectSame(
        train(machine, net, {.shard_axis = machine == std::string("cpu") ? std::nullopt : std::optional(0)}, batches),
        want);
  }
}

TEST_F(Parallel, PipelinesThatCannotBe) {
  use_machine("sim:2gpu-pcie3");
  const Tensor x = zeros({4, 20}), y = zeros({4}, i64);
  auto messageOf = [&](const JitOptions &options) -> std::string {
    try {
      jit([](Tensor a) { return relu(a); }, options)(x);
    } catch (const Error &e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(messageOf({.pipeline = Pipeline{.size = 3}}).find("a mesh of 3 accelerators (3 in a row), and there are 2"),
            std::string::npos);
  EXPECT_NE(messageOf({.mesh = {{"data", 2}}, .pipeline = Pipeline{.size = 2}}).find("a mesh of 4 accelerators"),
            std::string::npos);
  EXPECT_NE(messageOf({.pipeline = Pipeline{.micro_batches = 0}}).find("both are at least 1"), std::string::npos);
  EXPECT_NE(messageOf({.mesh = {{"micro", 2}}, .pipeline = Pipeline{}}).find("give it another name"),
            std::string::npos);
  EXPECT_NE(messageOf({.shard_axis = 2, .pipeline = Pipeline{.micro_batches = 2}})
                .find("along dimension 2, which no argument has"),
            std::string::npos);
  EXPECT_NE(messageOf({.pipeline = Pipeline{.order = static_cast<PipelineOrder>(77)}}).find("the order 77"),
            std::string::npos);
  const std::string without = messageOf({.pipeline = Pipeline{.micro_batches = 2, .size = 2}});
  EXPECT_NE(without.find("no op belongs to a stage"), std::string::npos) << without;
  EXPECT_NE(without.find("PipelinesTest.cpp"), std::string::npos) << without;
  const nn::Sequential net = deepPerceptron();
  for (int i = 0; i < 3; ++i)
    net[std::to_string(i)].stage(i, {gpu((i + 1) % 2)});
  std::string elsewhere;
  try {
    jit([net](Tensor a) { return net(a); }, {.pipeline = Pipeline{.micro_batches = 2, .size = 2}})(x);
  } catch (const Error &e) {
    elsewhere = e.what();
  }
  EXPECT_NE(elsewhere.find("lies on gpu1, and stage 0, which uses it, is computed by gpu0"), std::string::npos)
      << elsewhere;
  EXPECT_NE(elsewhere.find("PipelinesTest.cpp"), std::string::npos) << elsewhere;
  const std::string many =
      messageOf({.mesh = {{"data", 2}}, .shard_axis = 0, .pipeline = Pipeline{.micro_batches = 2049}});
  EXPECT_NE(many.find("in 4098 parts: 2049 micro-batches on each of 2 accelerators (data=2)"), std::string::npos)
      << many;
  EXPECT_THROW(deepPerceptron()["0"].stage(0, {cpu()}), Error);
  EXPECT_THROW(with_stage(-1, [] {}), Error);
  EXPECT_THROW(deepPerceptron()["0"].stage(-1), Error);
}

// A batch with fewer rows than parts is still cut over the accelerators.
TEST_F(Parallel, SmallBatchesHaveNoMicroBatches) {
  const auto batches = batchesOf({12, 3, 1}, {20}, 10);
  const JitOptions options{.mesh = {{"data", 2}}, .pipeline = Pipeline{.micro_batches = 8}};
  expectSame(train("sim:2gpu-pcie3", deepPerceptron(), options, batches), train("cpu", deepPerceptron(), {}, batches));
  use_machine("sim:2gpu-pcie3", {.computes = false});
  const auto f = jit([](Tensor x) { return exp(matmul(x, x)); }, options);
  f.compile({f32, {12, 12}});
  EXPECT_EQ(f.explain().text.find(": 0 ops on each rank"), std::string::npos) << f.explain().text;
}

TEST_F(Parallel, OneForwardOneBackwardKeepsLess) {
  use_machine("sim:4gpu-pcie3", {.computes = false});
  nn::Sequential net{nn::Dense(512, relu), nn::Dense(512, relu), nn::Dense(512, relu), nn::Dense(10)};
  net.initialize({{f32, {1, 512}}}, 1);
  for (int i = 0; i < 4; ++i)
    net[std::to_string(i)].stage(i, {gpu(i)});
  auto peak = [&](PipelineOrder order) {
    optim::SGD opt(net.parameters(), {.lr = 0.1});
    auto step = jit(
        [net, opt](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        {.pipeline = Pipeline{.micro_batches = 16, .size = 4, .order = order}});
    step(zeros({16 * 256, 512}), zeros({16 * 256}, i64)).wait();
    if (std::getenv("SHOW"))
      std::cout << step.explain() << step.explain().drawing;
    return step.explain().peak_bytes;
  };
  EXPECT_LT(2 * peak(PipelineOrder::OneForwardOneBackward), peak(PipelineOrder::AllForwardFirst));
}

} // namespace
