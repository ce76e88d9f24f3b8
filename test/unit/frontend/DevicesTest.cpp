// Programs on machines that are simulated: the numbers of the processor, wherever their ops are placed.
#include "frontend/tensor/Machine.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Package.h"
#include "tressel/runtime/Simulated.h"

#include <tressel/tressel.h>

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace tressel;

namespace {

/// The processor again afterwards.
class Devices : public ::testing::Test {
protected:
  ~Devices() override { use_machine("cpu"); }
};

Tensor ramp(int64_t n, int64_t m) {
  return reshape(astype(arange(n * m), f32), {n, m}) * (1.0 / static_cast<double>(n * m));
}

template <typename E, typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const E &e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST_F(Devices, AProgramOfTheHostRunsOnASimulatedMachine) {
  const Tensor x = ramp(16, 8), w = ramp(8, 4);
  auto make = [] { return jit([](Tensor x, Tensor w) { return relu(matmul(x, w) - 0.5); }); };
  const auto expected = make()(x, w).to_vector<float>();
  use_machine("sim:2gpu-pcie3");
  auto f = make();
  const double before = machine_seconds();
  for (int i = 0; i < 5; ++i) // all ways that calls take
    EXPECT_EQ(f(x, w).to_vector<float>(), expected);
  EXPECT_GT(machine_seconds(), before);
}

TEST_F(Devices, KernelsOfAGpuAreEmulated) {
  const Tensor x = ramp(33, 40), w = ramp(40, 24);
  auto make = [] { return jit([](Tensor x, Tensor w) { return softmax(relu(matmul(x, w) - 0.5) * 0.01, -1); }); };
  const auto expected = make()(x, w).to_vector<float>();
  use_machine("sim:h100", {.gpu = "sm_90"});
  auto f = make();
  for (int i = 0; i < 3; ++i) {
    const auto got = f(x, w).to_vector<float>();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_NEAR(got[k], expected[k], 1e-6);
  }
  EXPECT_NE(messageOf<Error>([] { use_machine("sim:h100", {.gpu = "sm_1"}); }).find("sm_80"), std::string::npos);
  EXPECT_NE(messageOf<Error>([] { use_machine("cpu", {.gpu = "sm_90"}); }).find("has no GPU"), std::string::npos);
}

TEST_F(Devices, PackagesForGpusHoldTheirCode) {
  const std::string file = testing::TempDir() + "gpu.tsl";
  auto f = jit([](Tensor x) { return softmax(x, -1); });
  f.export_package(file, {.inputs = {{f32, {16, 64}}}, .gpus = {"sm_80", "sm_90"}});
  const auto codes = runtime::gpuCodeOf(runtime::Package::open(file));
  ASSERT_EQ(codes.size(), 2u);
  EXPECT_EQ(codes[1].arch, "sm_90");
  EXPECT_NE(codes[1].ptx.find(".target sm_90"), std::string::npos);
}

TEST_F(Devices, PackagesForGpusKeepStatesInTheirMemory) {
  const std::string file = testing::TempDir() + "gpu-step.tsl";
  nn::Dense net(4);
  net.initialize({{f32, {16, 8}}}, 1);
  const optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto step = jit([net, opt](Tensor x, Tensor y) {
    auto [loss, grads] = value_and_grad([&] { return mean(square(net(x) - y)); }, net.parameters());
    opt.update(grads);
    return loss;
  });
  step.export_package(file, {.inputs = {{f32, {16, 8}, "x"}, {f32, {16, 4}, "y"}}, .gpus = {"sm_90"}});
  const runtime::Package package = runtime::Package::open(file);
  const runtime::Schedule &schedule = package.schedule();
  int there = 0, fromHost = 0;
  for (const runtime::StateDesc &state : schedule.states)
    if (state.kind == runtime::StateKind::Mutable) {
      EXPECT_FALSE(isHost(state.home)) << state.name;
      ++there;
    }
  EXPECT_EQ(there, 5); // weight, bias, their momenta, the number of steps
  for (const runtime::Command &command : schedule.step.commands)
    if (command.kind == runtime::CommandKind::Copy) {
      auto home = [&](uint32_t operand) {
        return homeOf(schedule, schedule.buffers[schedule.step.operands[operand].buffer]);
      };
      fromHost += isHost(home(command.firstOperand)) && !isHost(home(command.firstOperand + 1));
    }
  EXPECT_EQ(fromHost, 2); // the inputs
}

TEST_F(Devices, AnnotatedOpsRunThereWithTheSameNumbers) {
  const Tensor x = ramp(64, 64), w = ramp(64, 64);
  auto plain = jit([](Tensor x, Tensor w) { return relu(matmul(x, w)) + x; });
  const auto expected = plain(x, w).to_vector<float>();
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor x, Tensor w) {
    Tensor a = with_device(gpu(0), [&] { return matmul(x, w); });
    return relu(a.to(gpu(1))) + x;
  });
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(f(x, w).to_vector<float>(), expected);
  const std::string graph = f.graph(x, w);
  EXPECT_NE(graph.find("gpu0"), std::string::npos) << graph;
}

TEST_F(Devices, ModulesArePlacedWithTheirParameters) {
  nn::Sequential net{nn::Dense(32, relu), nn::Dense(10)};
  net.initialize({{f32, {4, 16}}}, 1);
  const Tensor x = ramp(4, 16);
  const auto expected = net(x).to_vector<float>();
  use_machine("sim:2gpu-pcie3");
  net["0"].on(gpu(0));
  net["1"].on(gpu(1));
  net.hybridize();
  const auto placed = net(x).to_vector<float>();
  ASSERT_EQ(placed.size(), expected.size());
  for (size_t i = 0; i < placed.size(); ++i)
    EXPECT_NEAR(placed[i], expected[i], 1e-5);
  // New values of parameters reach the accelerators.
  net.parameters()[0].second.assign(net.parameters()[0].second.value() * 2.0);
  const auto changed = net(x).to_vector<float>();
  use_machine("cpu");
  net["0"].on(cpu());
  net["1"].on(cpu());
  const auto again = net(x).to_vector<float>();
  EXPECT_NE(changed, placed);
  for (size_t i = 0; i < again.size(); ++i)
    EXPECT_NEAR(changed[i], again[i], 1e-5);
  EXPECT_EQ(net.stats().traces, 2u); // for the first machine, and for the second with other places
}

TEST_F(Devices, AScopeAroundACallPlacesTheProgram) {
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor x) { return tanh(x) * 2.0; });
  const Tensor x = ramp(32, 32);
  const auto expected = f(x).to_vector<float>();
  EXPECT_EQ(with_device(gpu(1), [&] { return f(x); }).to_vector<float>(), expected);
  EXPECT_EQ(with_device(gpu(1), [&] { return f(x); }).to_vector<float>(), expected);
  EXPECT_EQ(f.stats().traces, 2u);
  ASSERT_EQ(f.stats().retraces.size(), 1u);
  EXPECT_EQ(f.stats().retraces[0], "placement: gpu1 instead of where the compiler likes");
}

TEST_F(Devices, FunctionsAreCompiledAnewForAnotherMachine) {
  auto f = jit([](Tensor x) { return exp(x); });
  const Tensor x = ramp(4, 4);
  const auto expected = f(x).to_vector<float>();
  use_machine("sim:4gpu-pcie3");
  EXPECT_EQ(f(x).to_vector<float>(), expected);
  EXPECT_EQ(f.stats().traces, 2u);
  EXPECT_EQ(f.stats().retraces[0], "another machine");
}

TEST_F(Devices, PastTheBudgetProgramsForAcceleratorsThrow) {
  auto f = jit([](Tensor x) { return exp(x); }, {.retrace_budget = 1, .infer_dynamic = false});
  use_machine("sim:2gpu-pcie3");
  f(ramp(4, 4)).wait();
  EXPECT_THROW(f(ramp(4, 5)), TraceError);
  EXPECT_EQ(f.stats().imperative, 0u);
  auto onHost = jit([](Tensor x) { return exp(x); }, {.devices = {cpu()}, .retrace_budget = 1, .infer_dynamic = false});
  onHost(ramp(4, 4)).wait();
  testing::internal::CaptureStderr();
  EXPECT_EQ(onHost(ramp(4, 5)).size(), 20);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("argument 0 changes"), std::string::npos);
}

TEST_F(Devices, VariablesKeepTheirValuesBetweenCalls) {
  use_machine("sim:2gpu-pcie3");
  Variable count(full({4}, 1.0));
  auto step = jit([&](Tensor x) {
    DeviceScope scope(gpu(0));
    count.assign(count.value() * 2.0);
    return count.value() + x;
  });
  const Tensor x = full({4}, 10.0);
  for (int i = 1; i <= 4; ++i)
    EXPECT_EQ(step(x).to_vector<float>()[3], 10 + float(1 << i));
}

TEST_F(Devices, SizesMayChange) {
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor x) { return with_device(gpu(1), [&] { return x * x; }); });
  for (int64_t n : {4, 7, 9, 4, 12})
    EXPECT_EQ(f(full({n, 2}, 3.0)).to_vector<float>(), std::vector<float>(static_cast<size_t>(2 * n), 9.0f)) << n;
}

TEST_F(Devices, LoopsAndBranchesRunWhereTheyArePlaced) {
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor x) {
    DeviceScope scope(gpu(0));
    return for_loop(
        5, [](Tensor, Tensor y) { return y * 2.0; }, x);
  });
  EXPECT_EQ(f(full({3}, 1.0)).to_vector<float>(), (std::vector<float>{32, 32, 32}));
}

TEST_F(Devices, WhatTheMachineLacksIsTold) {
  auto f = jit([](Tensor x) { return with_device(gpu(0), [&] { return x * 2.0; }); });
  const Tensor x = full({4}, 1.0);
  EXPECT_NE(messageOf<Error>([&] { f(x); }).find("gpu0"), std::string::npos);
  EXPECT_NE(messageOf<Error>([&] { x.to(gpu(0)); }).find("the machine has no gpu0"), std::string::npos);
  EXPECT_EQ(x.to(cpu()).to_vector<float>(), x.to_vector<float>());
  EXPECT_NE(messageOf<Error>([&] { use_machine("sim:nowhere"); }).find("nowhere"), std::string::npos);
  if (runtime::gpuCards().empty())
    EXPECT_NE(messageOf<Error>([&] { use_machine("cuda"); }).find("machine 'cuda' is not there: NVIDIA's driver"), std::string::npos);
  EXPECT_THROW(gpu(-1), Error);
  use_machine("sim:2gpu-pcie3");
  auto g = jit([](Tensor x) { return x * 2.0; }, {.devices = {cpu(), gpu(2)}});
  EXPECT_NE(messageOf<Error>([&] { g(x); }).find("gpu2"), std::string::npos);
  auto h = jit([](Tensor x) { return x * 2.0; }, {.devices = {cpu(), gpu(1)}});
  EXPECT_EQ(h(x).to_vector<float>()[0], 2);
}

/// The devices that compute something, by the plan's drawing: a line each, with the share of the time.
std::string placesOf(const Prediction &plan) {
  std::string found;
  std::istringstream lines(plan.drawing);
  for (std::string line; std::getline(lines, line);)
    for (const char *device : {"cpu", "gpu0", "gpu1"})
      if (line.rfind(std::string(device) + " ", 0) == 0 && line.find(" 0.0%") == std::string::npos)
        found += std::string(found.empty() ? "" : " ") + device;
  return found;
}

TEST_F(Devices, TheDevicesOfAFunctionAreThoseThatCompute) {
  use_machine("sim:2gpu-pcie3");
  auto body = [](Tensor x) {
    Tensor y = for_loop(
        3, [](Tensor, Tensor y) { return y * 0.5; }, x);
    return relu(y) + 1.0; // too little for an accelerator to be worth the way
  };
  const Tensor x = ramp(8, 8);
  auto free = jit(body), away = jit(body, {.devices = {gpu(1)}}), home = jit(body, {.devices = {cpu()}});
  const auto expected = free(x).to_vector<float>();
  EXPECT_EQ(away(x).to_vector<float>(), expected);
  EXPECT_EQ(home(x).to_vector<float>(), expected);
  EXPECT_EQ(placesOf(free.explain()), "cpu") << free.explain().drawing;
  EXPECT_EQ(placesOf(away.explain()), "gpu1") << away.explain().drawing;
  EXPECT_EQ(placesOf(home.explain()), "cpu") << home.explain().drawing;
  auto both =
      jit([](Tensor x) { return with_device(cpu(), [&] { return exp(x); }) * 2.0; }, {.devices = {gpu(0), gpu(1)}});
  const std::string message = messageOf<Error>([&] { both(x); });
  EXPECT_NE(message.find("is to be computed on cpu, but the program may only use gpu0, gpu1"), std::string::npos)
      << message;
  EXPECT_NE(message.find("DevicesTest.cpp"), std::string::npos) << message;
}

TEST_F(Devices, WhatIsNoDeviceIsRefusedAtTheCall) {
  use_machine("sim:2gpu-pcie3");
  const Tensor x = full({4}, 1.0);
  const Device none{-7};
  for (const std::string &message :
       {messageOf<Error>([&] { with_device(none, [&] { return x; }); }), messageOf<Error>([&] { x.to(none); }),
        messageOf<Error>([&] { nn::Dense(3).on(none); }),
        messageOf<Error>([&] { jit([](Tensor x) { return x * 2.0; }, {.devices = {none}})(x); })})
    EXPECT_NE(message.find("there is no device with the index -7"), std::string::npos) << message;
  auto f = jit([](Tensor x) { return x * 2.0; }); // the scope that failed left nothing behind
  f(x);
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST_F(Devices, AForLoopIsCalledByItsName) {
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor x) {
    return for_loop(
        3, [](Tensor, Tensor y) { return with_device(gpu(1), [&] { return y * 0.5; }); }, x);
  });
  const std::string message = messageOf<Error>([&] { f(full({4}, 1.0)); });
  EXPECT_NE(message.find("(for_loop)"), std::string::npos) << message;
}

TEST_F(Devices, WhatAFailedStepLeftWithoutAValueCanBeSetAgain) {
  use_machine("sim:2gpu-pcie3");
  Variable count(full({4}, 1.0), "count");
  auto step = jit(
      [&](Tensor x) {
        DeviceScope scope(gpu(0));
        count.assign(count.value() * 2.0);
        return count.value() + x;
      },
      {.name = "step"});
  auto reader = jit([&](Tensor x) { return count.value() + x; }, {.name = "reader"});
  const Tensor x = full({4}, 10.0);
  EXPECT_EQ(step(x).to_vector<float>()[0], 12);
  EXPECT_EQ(reader(x).to_vector<float>()[0], 12);
  dynamic_cast<runtime::SimulatedMachine &>(*detail::currentMachine()).inject(
      {.kind = runtime::Fault::Kind::LaunchFails, .device = {runtime::DeviceKind::Gpu, 0}});
  EXPECT_NE(messageOf<RuntimeError>([&] { step(x).wait(); }), "nothing thrown");
  // The fault is gone, but nobody knows how far the step had come.
  for (const std::string &message :
       {messageOf<RuntimeError>([&] { step(x).wait(); }), messageOf<RuntimeError>([&] { reader(x).wait(); })}) {
    EXPECT_NE(message.find("the Variable 'count', which has no value since the call that was to write it failed"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("Variable::assign"), std::string::npos) << message;
    EXPECT_NE(message.find("DevicesTest.cpp"), std::string::npos) << message;
  }
  count.assign(full({4}, 5.0));
  EXPECT_EQ(step(x).to_vector<float>()[0], 20);
  EXPECT_EQ(reader(x).to_vector<float>()[0], 20);
  EXPECT_EQ(step.stats().traces, 1u);
}

TEST_F(Devices, PackagesForGpusNeedAnArchitecture) {
  use_machine("sim:2gpu-pcie3");
  const std::string file = testing::TempDir() + "placed.tsl";
  auto f = jit([](Tensor x) { return with_device(gpu(0), [&] { return x * 2.0; }); });
  auto g = jit([](Tensor x) { return x.to(gpu(1)) * 2.0; });
  for (const std::string &message : {messageOf<Error>([&] {
                                       f.export_package(file, {.inputs = {{f32, {4}}}});
                                     }),
                                     messageOf<Error>([&] {
                                       g.export_package(file, {.inputs = {{f32, {4}}}});
                                     })}) {
    EXPECT_NE(message.find("a package for GPUs needs their architecture"), std::string::npos)
        << message;
    EXPECT_NE(message.find("DevicesTest.cpp"), std::string::npos) << message;
    EXPECT_NE(message.find("or export the function without"), std::string::npos) << message;
  }
  auto h = jit([](Tensor x) { return x * 2.0; }, {.devices = {gpu(0)}});
  EXPECT_NE(messageOf<Error>([&] {
              h.export_package(file, {.inputs = {{f32, {4}}}});
            }).find("is to run on gpu0, but a package"),
            std::string::npos);
  auto plain = jit([](Tensor x) { return x * 2.0; });
  plain.export_package(file, {.inputs = {{f32, {4}}}});
}

TEST_F(Devices, AFailureNamesTheLine) {
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor table, Tensor index) { return with_device(gpu(0), [&] { return take(table, index, 0); }); });
  const Tensor table = ramp(4, 2);
  EXPECT_EQ(f(table, tensor({1, 2}, i32)).to_vector<float>().size(), 4u);
  const std::string message = messageOf<RuntimeError>([&] { f(table, tensor({1, 9}, i32)).wait(); });
  EXPECT_NE(message.find("DevicesTest.cpp"), std::string::npos) << message;
  EXPECT_EQ(f(table, tensor({1, 2}, i32)).to_vector<float>().size(), 4u);
}

} // namespace

TEST_F(Devices, APlanIsToldBeforeAnythingRuns) {
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor x) {
    Tensor a = with_device(gpu(0), [&] { return matmul(x, x); });
    return with_device(gpu(1), [&] { return matmul(x, x + 1.0); }) + a;
  });
  EXPECT_NE(messageOf<Error>([&] { f.explain(); }).find("has no program yet"), std::string::npos);
  f.compile({f32, {4000, 4000}}); // more than would be computed in a test
  const Prediction plan = f.explain();
  EXPECT_GT(plan.step_seconds, 0.01);
  EXPECT_GE(plan.step_seconds, plan.lower_bound_seconds);
  ASSERT_TRUE(plan.overlap);
  EXPECT_GT(plan.peak_bytes, 4000 * 4000 * 4);
  EXPECT_NE(plan.text.find("gpu1, as annotated"), std::string::npos) << plan.text;
  EXPECT_NE(plan.drawing.find("gpu1.in"), std::string::npos) << plan.drawing;
  EXPECT_NE(messageOf<Error>([&] { f.draw_plan("plan.png"); }).find(".svg"), std::string::npos);
  const std::string file = testing::TempDir() + "plan.svg";
  f.draw_plan(file);
  std::ifstream in(file);
  EXPECT_NE(std::string(std::istreambuf_iterator<char>(in), {}).find("<svg"), std::string::npos);
  // A call is as long as was told.
  const Tensor x = ramp(64, 64);
  const double before = machine_seconds();
  f(x).wait();
  EXPECT_DOUBLE_EQ(machine_seconds() - before, f.explain().step_seconds);
}

TEST_F(Devices, AMachineMayKeepTheTimeAlone) {
  use_machine("sim:2gpu-pcie3", {.computes = false});
  auto f = jit([](Tensor x) { return with_device(gpu(0), [&] { return matmul(matmul(x, x), x); }); });
  const Tensor x = zeros({2000, 2000});
  const double before = machine_seconds();
  f(x).wait(); // 32 Gflop, in no time
  EXPECT_DOUBLE_EQ(machine_seconds() - before, f.explain().step_seconds);
  EXPECT_GT(f.explain().step_seconds, 1e-3);
  EXPECT_NE(messageOf<Error>([&] { use_machine("cpu", {.computes = false}); }).find("is not simulated"), std::string::npos);
}

TEST_F(Devices, StagesAreThoseOfTheMachine) {
  use_machine("sim:2gpu-pcie3");
  auto f = jit([](Tensor x) { return with_device(gpu(1), [&] { return relu(x); }) * 2.0; });
  const std::string folder = testing::TempDir() + "tressel-stages";
  dump(f, folder, ramp(4, 4));
  std::ifstream in(folder + "/schedule.mlir");
  const std::string schedule(std::istreambuf_iterator<char>(in), {});
  EXPECT_NE(schedule.find("on %gpu1.in"), std::string::npos) << schedule;
}

TEST_F(Devices, APlanOfOpenSizesSaysForWhich) {
  auto f = jit([](Tensor x) { return relu(x) * 2.0; });
  f.compile({f32, {"batch", 64}});
  EXPECT_EQ(f.explain().text.rfind("for batch = ", 0), 0u) << f.explain().text;
}
