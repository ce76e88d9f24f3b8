// Tensors, Variables and modules that live on the accelerators of simulated machines, between calls and in them. With TRESSEL_TEST_ON=cuda on two cards, or on the stand-in
// for them (test/standin): what asks the simulation is left out.
#include "frontend/io/DlpackAbi.h"
#include "frontend/tensor/Machine.h"
#include "runtime/cuda/Driver.h"
#include "test/standin/libraries/CublasControl.h"
#include "tressel/runtime/CommandLog.h"
#include "tressel/runtime/Package.h"
#include "tressel/runtime/Simulated.h"

#include <tressel/interchange.h>
#include <tressel/tressel.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string_view>

using namespace tressel;

namespace {

bool onCards() {
  const char *on = std::getenv("TRESSEL_TEST_ON");
  return on && std::string_view(on) == "cuda";
}

class Homes : public ::testing::Test {
protected:
  Homes() { use_machine(onCards() ? "cuda" : "sim:2gpu-pcie3"); }
  ~Homes() override { use_machine("cpu"); }
};

using Floats = std::vector<float>;

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

runtime::SimulatedMachine &machine() { return dynamic_cast<runtime::SimulatedMachine &>(*detail::currentMachine()); }

/// Bytes that the latest call moved between devices.
int64_t bytesMoved() {
  int64_t bytes = 0;
  for (const runtime::LoggedCommand &c : machine().log().commands)
    if (c.kind == runtime::DeviceCommandKind::Copy && c.from.device != c.to.device)
      bytes += c.bytes;
  return bytes;
}

//--- NVIDIA's libraries
//----------------------------------------------------------------------------------------------------

/// Products that the stand-in for cuBLASLt was given; nothing where it is NVIDIA's own, or not there.
std::optional<uint64_t> productsOfLibrary() {
  void *library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return std::nullopt;
  const auto control = reinterpret_cast<standin::CublasControl *(*)()>(dlsym(library, "tressel_standin_cublaslt"));
  const auto products = control ? std::optional(control()->products) : std::nullopt;
  dlclose(library);
  return products;
}

TEST_F(Homes, LibrariesComputeProductsWhereTheyAreAllowed) {
  const Tensor x = ramp(256, 512), w = ramp(512, 256), b = reshape(ramp(1, 256), {256});
  const auto layer = [](const Tensor &x, const Tensor &w, const Tensor &b) { return relu(matmul(x, w) + b); };
  const Floats want = layer(x, w, b).to_vector<float>();
  auto near = [&](const Tensor &got) {
    const Floats values = got.to_vector<float>();
    ASSERT_EQ(values.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(values[i], want[i], 1e-4 * want[i]) << i;
  };
  if (!onCards()) {
    EXPECT_NE(messageOf<Error>([] { use_machine("sim:2gpu-pcie3", {.libraries = true}); }).find("has no GPUs"),
              std::string::npos);
    EXPECT_NE(messageOf<Error>([] { use_machine("cpu", {.libraries = true}); }).find("has no GPUs"), std::string::npos);
    return;
  }
  auto here = [&](const Tensor &t) { return t.to(gpu(0)); };
  near(layer(here(x), here(w), here(b)));
  const std::optional<uint64_t> before = productsOfLibrary();
  EXPECT_FALSE(before && *before > 0);
  use_machine("cuda", {.libraries = true});
  near(layer(here(x), here(w), here(b)));
  const std::optional<uint64_t> imperative = productsOfLibrary();
  auto compiled = jit(layer, {.devices = {gpu(0)}});
  near(compiled(here(x), here(w), here(b)));
  if (imperative) {
    EXPECT_GT(*imperative, 0u);
    EXPECT_GT(*productsOfLibrary(), *imperative);
  }
  use_machine("cuda");
  near(compiled(here(x), here(w), here(b))); // compiled anew
}

//--- Other libraries
//----------------------------------------------------------------------------------------------------

TEST_F(Homes, TensorsOnCardsGoToOtherLibrariesAndBack) {
  if (!onCards())
    GTEST_SKIP() << "of cards";
  const Tensor x = ramp(8, 8), there = x.to(gpu(1)) + 1.0;
  DLManagedTensorVersioned *nowhere = to_dlpack(there);
  nowhere->dl_tensor.device.device_id = -1;
  EXPECT_NE(messageOf<InputError>([&] { from_dlpack(nowhere); }).find("lies on card -1"), std::string::npos);
  nowhere->deleter(nowhere);
  DLManagedTensorVersioned *shared = to_dlpack(there);
  EXPECT_EQ(shared->dl_tensor.device.device_type, 2);
  EXPECT_EQ(shared->dl_tensor.device.device_id, 1);
  EXPECT_EQ(shared->flags, 1u); // read-only
  void *const data = shared->dl_tensor.data;
  {
    const Tensor back = from_dlpack(shared);
    EXPECT_EQ(back.device(), gpu(1));
    EXPECT_EQ((back * 2.0).to_vector<float>(), ((x + 1.0) * 2.0).to_vector<float>());
    DLManagedTensorVersioned *again = to_dlpack(back);
    EXPECT_EQ(again->dl_tensor.data, data); // the same memory
    again->deleter(again);
    DLManagedTensorVersioned *copy = to_dlpack(back, {.copy = true});
    EXPECT_NE(copy->dl_tensor.data, data);
    EXPECT_EQ(from_dlpack(copy).to_vector<float>(), back.to_vector<float>());
  }
  // A part that begins at no multiple of 64 bytes is copied; a Variable that takes a foreign value does not write to
  // it.
  shared = to_dlpack(there);
  shared->dl_tensor.byte_offset = 4;
  shared->dl_tensor.ndim = 1;
  shared->dl_tensor.shape[0] = 7, shared->dl_tensor.strides[0] = 1;
  const Floats values = there.to_vector<float>();
  EXPECT_EQ(from_dlpack(shared).to_vector<float>(), Floats(values.begin() + 1, values.begin() + 8));
  Variable v(from_dlpack(to_dlpack(there)));
  auto add = jit([&](Tensor t) { v.assign(v.value() + t); });
  add(there);
  EXPECT_EQ(there.to_vector<float>(), values);
  // What this machine has not, and what is not dense.
  int deleted = 0;
  int64_t shape[] = {4, 2}, strides[] = {4, 1};
  DLManagedTensor foreign{{data, {2, 7}, 2, {2, 32, 1}, shape, nullptr, 0}, &deleted, [](DLManagedTensor *self) {
                            ++*static_cast<int *>(self->manager_ctx);
                          }};
  EXPECT_NE(messageOf<InputError>([&] { from_dlpack(&foreign); }).find("lies on card 7, which machine 'cuda' has not"),
            std::string::npos);
  foreign.dl_tensor.device.device_id = 1;
  foreign.dl_tensor.strides = strides;
  EXPECT_NE(messageOf<InputError>([&] { from_dlpack(&foreign); }).find("not row-major and dense"), std::string::npos);
  EXPECT_EQ(deleted, 0); // it is still the caller's
}

/// A stream of the caller's, held up at first: nothing in between waits on the host.
TEST_F(Homes, AStreamOfTheCallersWritesATensorAndReadsAnother) {
  if (!onCards())
    GTEST_SKIP() << "of cards";
  using namespace runtime::cuda;
  const Driver &d = *Driver::find();
  const Card &card = cards(d)[1];
  auto ok = [&](Result result) { ASSERT_EQ(result, kSuccess) << d.describe(result); };
  card.use(d);
  StreamHandle stream = nullptr;
  Address memory = 0;
  unsigned *pinned = nullptr;
  ok(d.cuStreamCreate(&stream, 1));
  ok(d.cuMemAlloc(&memory, 256));
  ok(d.cuMemHostAlloc(reinterpret_cast<void **>(&pinned), 256, 0));
  pinned[0] = 0;
  int deleted = 0;
  int64_t shape[] = {16};
  DLManagedTensor foreign{{reinterpret_cast<void *>(memory), {2, 1}, 1, {2, 32, 1}, shape, nullptr, 0},
                          &deleted,
                          [](DLManagedTensor *self) { ++*static_cast<int *>(self->manager_ctx); }};
  DLManagedTensor part = foreign; // is copied
  part.dl_tensor.byte_offset = 4;
  {
    ok(d.cuStreamWaitValue32(stream, reinterpret_cast<Address>(pinned), 1, 0));
    ok(d.cuMemsetD32Async(memory, std::bit_cast<unsigned>(3.0f), 32, stream));
    const Tensor x = from_dlpack(&foreign, stream), y = x * 2.0 + from_dlpack(&part, stream);
    DLManagedTensorVersioned *shared = to_dlpack(y, {.stream = stream});
    card.use(d);
    ok(d.cuMemcpyAsync(reinterpret_cast<Address>(pinned + 16), reinterpret_cast<Address>(shared->dl_tensor.data), 64,
                       stream));
    EXPECT_NE(d.cuStreamQuery(stream), kSuccess);
    std::atomic_ref(*pinned).store(1);
    ok(d.cuStreamSynchronize(stream));
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(std::bit_cast<float>(pinned[16 + i]), 9.0f) << i;
    shared->deleter(shared);
    EXPECT_EQ(y.to_vector<float>(), Floats(16, 9.0f));
    // Elements that are never there hold the stream up no longer than it takes to know.
    const Tensor wrong = x.to(gpu(1)) + take(x, full({16}, 99, i64).to(gpu(1)), 0);
    shared = to_dlpack(wrong, {.stream = stream});
    card.use(d);
    ok(d.cuStreamSynchronize(stream));
    EXPECT_NE(messageOf<Error>([&] { wrong.wait(); }).find("out of range"), std::string::npos);
    shared->deleter(shared);
  }
  EXPECT_EQ(deleted, 2);
  // On the host no stream has a say, and a stream of another card none here: the tensor is still the caller's.
  foreign.dl_tensor.device = {2, 0};
  EXPECT_NE(messageOf<InputError>([&] { from_dlpack(&foreign, stream); }).find("none that gpu0"), std::string::npos);
  foreign.dl_tensor.device = {1, 0};
  foreign.dl_tensor.data = pinned;
  EXPECT_NE(messageOf<InputError>([&] { from_dlpack(&foreign, stream); }).find("on the host"), std::string::npos);
  EXPECT_NE(messageOf<InputError>([&] { to_dlpack(ramp(2, 2), {.stream = stream}); }).find("on the host"),
            std::string::npos);
  EXPECT_EQ(deleted, 2);
  card.use(d);
  ok(d.cuMemFree(memory));
  ok(d.cuMemFreeHost(pinned));
  ok(d.cuStreamDestroy(stream));
}

//--- Tensors ----------------------------------------------------------------------------------------------------------

TEST_F(Homes, ATensorIsWhereItWasMoved) {
  const Tensor x = ramp(8, 8);
  const Floats values = x.to_vector<float>();
  EXPECT_EQ(x.device(), cpu());
  const Tensor there = x.to(gpu(0));
  EXPECT_EQ(there.device(), gpu(0));
  EXPECT_EQ(x.device(), cpu());
  EXPECT_TRUE(same(there.to(gpu(0)), there));
  EXPECT_TRUE(same(x.to(cpu()), x));
  EXPECT_EQ(there.to_vector<float>(), values);
  EXPECT_EQ(static_cast<const float *>(there.data())[63], values[63]);
  EXPECT_EQ(there.data(), there.data()); // copied once
  // By way of the host, as nothing leads from one to the other.
  const Tensor other = there.to(gpu(1));
  EXPECT_EQ(other.device(), gpu(1));
  EXPECT_EQ(other.to_vector<float>(), values);
  EXPECT_EQ(other.to(cpu()).device(), cpu());
  EXPECT_EQ(tensor(2.5).to(gpu(1)).item<float>(), 2.5f);
  std::ostringstream text, expected;
  text << there, expected << x;
  EXPECT_EQ(text.str(), expected.str());
  EXPECT_NE(messageOf<Error>([&] { x.to(gpu(2)); }).find("the machine has no gpu2"), std::string::npos);
  auto f = jit([](Tensor x) {
    (void)x.device();
    return x;
  });
  Tensor kept;
  jit([&](Tensor x) {
    kept = x * 2.0;
    return x;
  })(x);
  EXPECT_NE(messageOf<TraceError>([&] { kept.to(gpu(0)); }).find("belongs to a trace that has ended"),
            std::string::npos);
  EXPECT_NE(messageOf<TraceError>([&] { f(x); }).find("is not known while the program is being recorded"),
            std::string::npos);
}

TEST_F(Homes, OpsRunWhereTheirOperandsAre) {
  const Tensor x = ramp(16, 16), w = ramp(16, 16);
  auto compute = [](const Tensor &x, const Tensor &w) { return sum(relu(matmul(x, w) * 2.0 - 1.0) + x, {1}); };
  const Floats expected = compute(x, w).to_vector<float>();
  const Tensor y = compute(x.to(gpu(1)), w.to(gpu(1)));
  EXPECT_EQ(y.device(), gpu(1));
  const Floats got = y.to_vector<float>();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-5f);
  // An operand that lies elsewhere goes there.
  const Tensor mixed = x + w.to(gpu(0));
  EXPECT_EQ(mixed.device(), gpu(0));
  EXPECT_EQ(mixed.to_vector<float>(), (x + w).to_vector<float>());
  const Tensor two = x.to(gpu(1)) * w.to(gpu(0));
  EXPECT_EQ(two.device(), gpu(1));
  EXPECT_EQ(two.to_vector<float>(), (x * w).to_vector<float>());
  // Views share the bytes.
  const Tensor flat = reshape(x.to(gpu(0)), {256});
  EXPECT_EQ(flat.device(), gpu(0));
  EXPECT_EQ(flat.to_vector<float>(), x.to_vector<float>());
  Tensor z = x.to(gpu(0));
  z += 1.0;
  EXPECT_EQ(z.device(), gpu(0));
  EXPECT_EQ(z.to_vector<float>(), (x + 1.0).to_vector<float>());
}

TEST_F(Homes, ProfilesCountTheOperandsThatOpsMove) {
  const Tensor x = ramp(16, 16), there = ramp(16, 16).to(gpu(0));
  wait_all();
  profile_start();
  const int line = __LINE__ + 2;
  for (int i = 0; i < 3; ++i)
    (void)(x + there);
  (void)(there * 2.0);         // a number travels with the op
  (void)(x.to(gpu(0)) + there); // asked for
  wait_all();
  const ProfileReport report = profile_stop();
  ASSERT_EQ(report.moves.size(), 1u);
  EXPECT_EQ(report.moves[0].times, 3u);
  EXPECT_NE(report.moves[0].where.find("HomesTest.cpp:" + std::to_string(line)), std::string::npos) << report.moves[0].where;
  std::ostringstream text;
  text << report;
  EXPECT_NE(text.str().find("operands moved between devices at "), std::string::npos) << text.str();
}

TEST_F(Homes, OpsByThemselvesRunKernelsOfTheGpu) {
  const Tensor x = ramp(8, 24);
  const Floats expected = softmax(relu(x * 2.0 - 1.0), -1).to_vector<float>();
  use_machine("sim:h100", {.gpu = "sm_90"});
  const Tensor y = softmax(relu(x.to(gpu(0)) * 2.0 - 1.0), -1);
  EXPECT_EQ(y.device(), gpu(0));
  const Floats got = y.to_vector<float>();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-6f);
}

TEST_F(Homes, MemoryThatIsShortIsToldAndComesBack) {
  use_machine(std::string("sim:") + TRESSEL_SOURCE_DIR + "/test/passes/Inputs/small-memory.json"); // 13000 bytes each
  const Tensor x = ramp(32, 64);
  const Floats values = x.to_vector<float>();
  {
    const Tensor held = x.to(gpu(0));
    const std::string message = messageOf<OutOfMemory>([&] { x.to(gpu(0)); });
    EXPECT_NE(message.find("gpu0"), std::string::npos) << message;
    EXPECT_NE(message.find("8192 bytes"), std::string::npos) << message;
    EXPECT_NE(message.find("HomesTest.cpp"), std::string::npos) << message;
    EXPECT_EQ(held.to_vector<float>(), values);
  }
  for (int i = 0; i < 5; ++i)
    x.to(gpu(0)); // let go while it is copied: the next one waits for its room
  EXPECT_EQ(x.to(gpu(0)).to_vector<float>(), values);
}

TEST_F(Homes, AFailureOnADeviceNamesTheLine) {
  const Tensor table = ramp(4, 2).to(gpu(0));
  const Tensor good = take(table, tensor({1, 3}, i32), 0), bad = take(table, tensor({1, 9}, i32), 0);
  EXPECT_EQ(good.to_vector<float>().size(), 4u);
  const std::string message = messageOf<RuntimeError>([&] { (void)(bad + 1.0).to(cpu()).to_vector<float>(); });
  EXPECT_NE(message.find("out of range"), std::string::npos) << message;
  EXPECT_NE(message.find("HomesTest.cpp"), std::string::npos) << message;
}

TEST_F(Homes, AnotherMachineHasNotWhatLiesOnThisOne) {
  const Tensor x = ramp(4, 4), there = x.to(gpu(0));
  Variable v(x, "v");
  v.on(gpu(0));
  auto f = jit([](Tensor x) { return x * 2.0; }, {.name = "f"});
  auto g = jit([&](Tensor x) { return x * v.value(); }, {.name = "g"});
  for (const char *other : {"sim:4gpu-pcie3", "cpu"}) {
    use_machine(other);
    for (const std::string &message : {messageOf<Error>([&] { f(there); }), messageOf<Error>([&] { there + 1.0; })}) {
      EXPECT_NE(
          message.find("lies in the memory of gpu0 of '2gpu-pcie3', which is no longer the machine of this process"),
          std::string::npos)
          << message;
      EXPECT_NE(message.find("to(cpu())"), std::string::npos) << message;
    }
    EXPECT_NE(messageOf<Error>([&] { g(x); }), "nothing thrown");
    EXPECT_EQ(there.to(cpu()).to_vector<float>(), x.to_vector<float>()); // its machine is still there
    EXPECT_EQ(f(there.to(cpu())).to_vector<float>(), (x * 2.0).to_vector<float>());
  }
  v.on(cpu());
  EXPECT_EQ(g(x).to_vector<float>(), (x * x).to_vector<float>());
}

//--- Compiled functions -----------------------------------------------------------------------------------------------

TEST_F(Homes, AFunctionReadsItsArgumentsWhereTheyAreAndLeavesItsResultsThere) {
  const Tensor x = ramp(64, 64), w = ramp(64, 64);
  auto f = jit([](Tensor x, Tensor w) { return with_device(gpu(0), [&] { return relu(matmul(x, w) - 0.5); }); });
  const Tensor y0 = f(x, w);
  EXPECT_EQ(y0.device(), gpu(0)); // where it was computed
  y0.wait();
  EXPECT_EQ(bytesMoved(), 2 * 64 * 64 * 4);
  const Floats expected = y0.to_vector<float>();
  const Tensor xThere = x.to(gpu(0)), wThere = w.to(gpu(0));
  wait_all();
  for (int i = 0; i < 5; ++i) {
    const Tensor y = f(xThere, wThere);
    y.wait();
    EXPECT_EQ(bytesMoved(), 0);
    EXPECT_EQ(y.device(), gpu(0));
    EXPECT_EQ(y.to_vector<float>(), expected);
  }
  EXPECT_EQ(f.stats().traces, 2u);
  ASSERT_EQ(f.stats().retraces.size(), 1u);
  EXPECT_EQ(f.stats().retraces[0], "tensor 0: on gpu0 instead of cpu");
  EXPECT_EQ(f(x, w).to_vector<float>(), expected); // both programs stay
  EXPECT_EQ(f.stats().traces, 2u);
  // The result of one call is the argument of the next.
  Tensor y = xThere;
  for (int i = 0; i < 3; ++i)
    y = f(y, wThere);
  y.wait();
  EXPECT_EQ(bytesMoved(), 0);
}

TEST_F(Homes, ResultsGoWhereTheProgramMovesThem) {
  const Tensor x = ramp(8, 8);
  auto f = jit([](Tensor x) {
    Tensor y = with_device(gpu(0), [&] { return exp(x); });
    return std::vector<Tensor>{y.to(cpu()), y, y.to(gpu(1)), x, reshape(y, {64})};
  });
  for (const Tensor &given : {x, x.to(gpu(1))}) {
    const auto results = f(given);
    EXPECT_EQ(results[0].device(), cpu());
    EXPECT_EQ(results[1].device(), gpu(0));
    EXPECT_EQ(results[2].device(), gpu(1));
    EXPECT_EQ(results[3].device(), given.device());
    EXPECT_EQ(results[4].device(), gpu(0));
    for (const Tensor &y : {results[0], results[1], results[2], results[4]})
      EXPECT_EQ(y.to_vector<float>(), exp(x).to_vector<float>());
  }
}

TEST_F(Homes, BranchesAndLoopsTakeWhatIsThere) {
  auto f = jit([](Tensor x) {
    DeviceScope scope(gpu(1));
    Tensor y = for_loop(
        5, [](Tensor, Tensor y) { return y * 2.0; }, x);
    return cond(
        sum(y) > 0.0, [](Tensor y) { return y + 1.0; }, [](Tensor y) { return y - 1.0; }, y);
  });
  for (const Device device : {cpu(), gpu(0), gpu(1)}) {
    const Tensor y = f(full({3}, 1.0).to(device));
    EXPECT_EQ(y.device(), gpu(1));
    EXPECT_EQ(y.to_vector<float>(), (Floats{33, 33, 33}));
  }
}

TEST_F(Homes, SizesMayChange) {
  auto f = jit([](Tensor x) { return with_device(gpu(1), [&] { return x * x; }); });
  for (int64_t n : {4, 7, 9, 4, 12}) {
    const Tensor y = f(full({n, 2}, 3.0).to(gpu(1)));
    EXPECT_EQ(y.device(), gpu(1));
    EXPECT_EQ(y.to_vector<float>(), Floats(static_cast<size_t>(2 * n), 9.0f)) << n;
  }
  EXPECT_LE(f.stats().traces, 2u);
}

//--- Variables --------------------------------------------------------------------------------------------------------

TEST_F(Homes, AVariableIsUpdatedInItsOwnMemory) {
  Variable v(full({1000}, 1.0), "v"), w(full({1000}, 3.0), "w");
  v.on(gpu(0));
  w.on(gpu(0));
  EXPECT_EQ(v.device(), gpu(0));
  EXPECT_EQ(v.value().device(), gpu(0));
  auto step = jit([&](Tensor x) {
    DeviceScope scope(gpu(0));
    v.assign(v.value() * 2.0 + x + w.value());
    return sum(v.value());
  });
  const Tensor x = full({1000}, 0.5).to(gpu(0));
  const void *before = v.impl()->value.impl()->storage->data();
  float expected = 1;
  for (int i = 0; i < 6; ++i) {
    const Tensor y = step(x);
    y.wait();
    expected = expected * 2 + 3.5f;
    EXPECT_EQ(bytesMoved(), 0) << i; // neither the parameter nor the state
    EXPECT_EQ(y.item<float>(), 1000 * expected);
  }
  EXPECT_EQ(v.value().to_vector<float>()[999], expected);
  EXPECT_EQ(v.impl()->value.impl()->storage->data(), before);
  EXPECT_EQ(step.stats().state_copies, 0u);
  EXPECT_EQ(step.stats().traces, 1u);
  // What is assigned goes to the Variable's home.
  v.assign(full({1000}, 2.0));
  EXPECT_EQ(v.value().device(), gpu(0));
  EXPECT_EQ(step(x).item<float>(), 1000 * 7.5f);
  // It moves for good, and programs with it are made anew.
  v.on(gpu(1));
  EXPECT_EQ(step(x).item<float>(), 1000 * 18.5f);
  EXPECT_EQ(v.value().device(), gpu(1));
  EXPECT_EQ(step.stats().traces, 2u);
  EXPECT_EQ(step.stats().retraces[0], "a Variable was moved to another device");
  auto wrong = jit([&](Tensor x) {
    v.on(cpu());
    return x;
  });
  EXPECT_NE(messageOf<TraceError>([&] { wrong(x); }).find("cannot be moved while a program is being recorded"),
            std::string::npos);
}

TEST_F(Homes, AValueThatIsHeldStaysAsItWas) {
  Variable v(full({100}, 1.0), "v");
  v.on(gpu(0));
  auto make = [&](bool strict) {
    return jit(
        [&](Tensor x) {
          DeviceScope scope(gpu(0));
          v.assign(v.value() + x);
          return x * 2.0;
        },
        {.strict_donation = strict});
  };
  auto step = make(false);
  const Tensor x = full({100}, 1.0);
  step(x).wait();
  const Tensor held = v.value(), view = reshape(held, {10, 10});
  EXPECT_EQ(held.to_vector<float>()[0], 2);
  step(x).wait();
  step(x).wait();
  EXPECT_EQ(step.stats().state_copies, 1u);
  EXPECT_EQ(held.to_vector<float>()[0], 2);
  EXPECT_EQ(view.to_vector<float>()[99], 2);
  EXPECT_EQ(v.value().to_vector<float>()[0], 4);
  EXPECT_EQ(v.device(), gpu(0));
  auto strict = make(true);
  EXPECT_EQ(strict(x).device(), gpu(0));
  const Tensor again = v.value();
  EXPECT_NE(messageOf<Error>([&] { strict(x); }).find("updates the Variable 'v', whose value is still held"),
            std::string::npos);
  EXPECT_EQ(again.to_vector<float>()[0], 5);
}

TEST_F(Homes, StatesMayBeExchanged) {
  Variable a(full({4}, 1.0), "a"), b(full({4}, 2.0), "b");
  a.on(gpu(0));
  b.on(gpu(1));
  auto swap = jit([&](Tensor x) {
    Tensor old = a.value();
    a.assign(b.value());
    b.assign(old);
    return x + 1.0;
  });
  for (int i = 0; i < 3; ++i) {
    swap(full({4}, 0.0)).wait();
    EXPECT_EQ(a.value().to_vector<float>()[0], i % 2 ? 1 : 2);
    EXPECT_EQ(b.value().to_vector<float>()[0], i % 2 ? 2 : 1);
  }
  b.on(gpu(0));
  swap(full({4}, 0.0)).wait();
  EXPECT_EQ(a.value().to_vector<float>()[0], 1);
  EXPECT_EQ(b.value().to_vector<float>()[0], 2);
}

TEST_F(Homes, AStepThatFailsLeavesNoValueAndALostDeviceNone) {
  Variable v(full({4}, 1.0), "v"), other(full({4}, 1.0), "other");
  v.on(gpu(0));
  other.on(gpu(1));
  auto step = jit(
      [&](Tensor x) {
        DeviceScope scope(gpu(0));
        v.assign(v.value() * 2.0);
        return v.value() + x;
      },
      {.name = "step"});
  const Tensor x = full({4}, 10.0);
  EXPECT_EQ(step(x).to_vector<float>()[0], 12);
  for (const auto kind : {runtime::Fault::Kind::LaunchFails, runtime::Fault::Kind::DeviceLost}) {
    machine().inject({.kind = kind, .device = {runtime::DeviceKind::Gpu, 0}});
    EXPECT_NE(messageOf<RuntimeError>([&] { step(x).wait(); }), "nothing thrown");
    const std::string message = messageOf<RuntimeError>([&] { step(x).wait(); });
    EXPECT_NE(message.find("the Variable 'v', which has no value since"), std::string::npos) << message;
    EXPECT_EQ(other.value().to_vector<float>()[0], 1);
    v.assign(full({4}, 5.0));
    EXPECT_EQ(v.value().device(), gpu(0));
    EXPECT_EQ(step(x).to_vector<float>()[0], 20);
  }
}

TEST_F(Homes, AModuleMovesWithItsParameters) {
  nn::Sequential net{nn::Dense(32, relu), nn::Dense(10)};
  net["1"].on(gpu(1)); // before it has any
  net.initialize({{f32, {4, 16}}}, 1);
  use_machine("sim:2gpu-pcie3");
  const Tensor x = ramp(4, 16);
  net.on(gpu(0));
  for (const auto &[name, parameter] : net.parameters())
    EXPECT_EQ(parameter.value().device(), name[0] == '1' ? gpu(1) : gpu(0)) << name;
  net["1"].on(gpu(0));
  net.hybridize();
  const Tensor there = x.to(gpu(0));
  there.wait();
  const Tensor y = net(there);
  y.wait();
  EXPECT_EQ(bytesMoved(), 0); // not even at the first call
  EXPECT_EQ(y.device(), gpu(0));
  const Floats placed = y.to_vector<float>();
  // Files of weights are of the host.
  const std::string file = testing::TempDir() + "homes.safetensors";
  net.save_weights(file);
  nn::Sequential copy{nn::Dense(32, relu), nn::Dense(10)};
  copy.initialize({{f32, {4, 16}}}, 2);
  copy.load_weights(file);
  const Floats onHost = copy(x).to_vector<float>();
  for (size_t i = 0; i < onHost.size(); ++i)
    EXPECT_NEAR(onHost[i], placed[i], 1e-5f);
  copy.on(gpu(1));
  copy.load_weights(file); // to where they live
  EXPECT_EQ(copy.parameters()[0].second.value().device(), gpu(1));
  net.on(cpu());
  net["1"].on(cpu());
  EXPECT_EQ(net.parameters()[0].second.value().device(), cpu());
  EXPECT_NE(messageOf<Error>([&] { net.on(gpu(5)); }).find("the machine has no gpu5"), std::string::npos);
}

TEST_F(Homes, PackagesTakeValuesOfTheHost) {
  Variable v(full({4}, 3.0), "v");
  v.on(gpu(0));
  auto f = jit([&](Tensor x) { return x * v.value(); });
  const std::string file = testing::TempDir() + "homes.tsl";
  f.export_package(file, {.inputs = {{f32, {4}}}});
  const runtime::Package package = runtime::Package::open(file);
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  const void *in[] = {x};
  void *out[] = {y};
  package.context().run(in, out);
  EXPECT_EQ(y[3], 12);
}

TEST_F(Homes, AMachineMayKeepTheTimeAlone) {
  use_machine("sim:2gpu-pcie3", {.computes = false});
  Variable v(zeros({2000, 2000}), "v");
  v.on(gpu(0));
  auto f = jit([&](Tensor x) {
    DeviceScope scope(gpu(0));
    v.assign(matmul(v.value(), x));
    return sum(v.value());
  });
  const Tensor x = zeros({2000, 2000}).to(gpu(0));
  f(x).wait();
  const double before = machine_seconds();
  f(x).wait();
  EXPECT_NEAR(machine_seconds() - before, f.explain().step_seconds, 1e-12);
  EXPECT_EQ(bytesMoved(), 0);
  EXPECT_EQ((x + 1.0).to_vector<float>().size(), 4'000'000u);
}

} // namespace
