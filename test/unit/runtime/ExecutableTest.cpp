#include "tressel/runtime/Executable.h"

#include "ScheduleBuilder.h"
#include "TestImages.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace tressel;
using namespace tressel::runtime;

namespace {

std::shared_ptr<const Executable> make(const ScheduleBuilder &b, std::vector<float> constants = {}) {
  const auto bytes = std::as_bytes(std::span(constants));
  auto blob = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  return Executable::create(b.s, testImage("kernels"), blob);
}

template <typename E, typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const E &e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing thrown";
  return "";
}

/// out = relu(x + w) + c, w a state, c a constant, n floats.
ScheduleBuilder sample(int64_t n, int64_t grain) {
  ScheduleBuilder b;
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), out = b.output("out", t), w = b.state("w", t, StateKind::Parameter);
  const uint32_t c = b.constant(0, t), h = b.buffer(Space::Arena, b.arena((t.bytes() + 63) / 64 * 64), 0, t);
  const uint32_t relu = b.kernel("add", n, grain);
  b.s.kernels[relu].epilogue = "addRelu";
  // The same code without the epilogue: another kernel of another symbol.
  b.launch(relu, {x, w}, {h});
  const uint32_t other = b.kernel("twice", n, grain);
  b.s.kernels[other].scratchBytes = 4;
  const uint32_t h2 = b.buffer(Space::Arena, b.arena((t.bytes() + 63) / 64 * 64), 0, t);
  b.launch(other, {h}, {h2});
  // The sum's kernel is used again: launches of one kernel share its epilogue, so the result stays positive.
  b.launch(relu, {h2, c}, {out});
  return b;
}

} // namespace

TEST(Executable, RunsAProgram) {
  for (int64_t grain : {1000, 10}) { // in the caller, and over the pool
    const int64_t n = 1000;
    std::vector<float> x(n), w(n, 1), c(n, 0.5f), out(n, -1);
    std::iota(x.begin(), x.end(), -500.0f);
    Context context(make(sample(n, grain), c));
    void *states[] = {w.data()};
    context.bindStates(states);
    const void *inputs[] = {x.data()};
    void *outputs[] = {out.data()};
    for (int call = 0; call < 3; ++call) {
      context.run(inputs, outputs);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(out[size_t(i)], 2 * std::max(x[size_t(i)] + 1, 0.0f) + 0.5f) << i;
      std::fill(out.begin(), out.end(), 0.0f);
    }
  }
}

/// Kernels too short to be split, of which several threads run those that do not depend on each other (descriptions say that they are longer than
/// these are).
TEST(Executable, CommandsThatDoNotDependRunSideBySide) {
  constexpr int64_t n = 64, kCount = 100;
  ScheduleBuilder b;
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), arena = b.arena(2 * kCount * n * 4);
  const uint32_t add = b.kernel("add", n, n);
  b.s.kernels[add].bytes = int64_t(1) << 19;
  std::vector<uint32_t> first, outs;
  for (uint32_t i = 0; i < kCount; ++i) {
    outs.push_back(b.output("out" + std::to_string(i), t));
    first.push_back(b.buffer(Space::Arena, arena, int64_t(i) * n * 4, t));
  }
  for (uint32_t i = 0; i < kCount; ++i) // every tenth goes on with the one before
    b.launch(add, {x, i % 10 == 9 ? first[i - 1] : x}, {first[i]});
  for (uint32_t i = 0; i < kCount; ++i)
    b.launch(add, {first[i], first[kCount - 1 - i]}, {outs[i]});
  Context context(make(b));
  std::vector<float> in(n);
  std::iota(in.begin(), in.end(), 1.0f);
  std::vector<std::vector<float>> results(kCount, std::vector<float>(n));
  const void *inputs[] = {in.data()};
  std::vector<void *> outputs;
  for (auto &result : results)
    outputs.push_back(result.data());
  for (int call = 0; call < 50; ++call) {
    context.run(inputs, outputs);
    for (size_t i = 0; i < kCount; ++i) {
      auto factor = [](size_t k) { return k % 10 == 9 ? 3.0f : 2.0f; };
      for (size_t k = 0; k < n; ++k)
        ASSERT_EQ(results[i][k], (factor(i) + factor(kCount - 1 - i)) * in[k]) << i;
      std::fill(results[i].begin(), results[i].end(), -1.0f);
    }
  }
}

TEST(Executable, OfCommandsSideBySideTheFirstThatFailsIsNamed) {
  constexpr uint32_t kCount = 64;
  ScheduleBuilder b;
  const TensorType t = ScheduleBuilder::floats(4), index{i32, Shape{4}};
  const uint32_t table = b.input("table", t);
  const uint32_t gather = b.kernel("gather", 4, 4);
  b.s.kernels[gather].bytes = int64_t(1) << 19;
  std::vector<std::vector<float>> results(kCount, std::vector<float>(4));
  std::vector<std::vector<int32_t>> indices(kCount, std::vector<int32_t>(4, 1));
  const std::vector<float> values{1, 2, 3, 4};
  std::vector<const void *> inputs{values.data()};
  std::vector<void *> outputs;
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t at = b.input("index" + std::to_string(i), index), out = b.output("out" + std::to_string(i), t);
    b.launch(gather, {table, at}, {out});
    b.s.step.commands.back().loc = b.location("gather", "user.cpp", i + 1);
    inputs.push_back(indices[i].data());
    outputs.push_back(results[i].data());
  }
  Context context(make(b));
  for (uint32_t bad : {40u, 41u, 63u, 7u}) {
    indices[bad][2] = 9;
    const uint32_t first = bad == 7 ? 7 : 40;
    for (int call = 0; call < 20; ++call) {
      const std::string message = messageOf<RuntimeError>([&] { context.run(inputs, outputs); });
      EXPECT_NE(message.find("user.cpp:" + std::to_string(first + 1) + ":"), std::string::npos) << message;
    }
  }
}

TEST(Executable, PrepareMakesDerivedStatesAndRunsAgain) {
  ScheduleBuilder b;
  const TensorType t = ScheduleBuilder::floats(4);
  const uint32_t x = b.input("x", t), out = b.output("out", t), w = b.state("w", t, StateKind::Parameter),
                 packed = b.state("packed", t, StateKind::Derived);
  const uint32_t twice = b.kernel("twice", 4, 4), add = b.kernel("add", 4, 4);
  b.s.kernels[twice].scratchBytes = 64;
  b.launch(twice, {w}, {packed}, {}, 0, true);
  b.launch(add, {x, packed}, {out});
  Context context(make(b));
  float data[] = {1, 2, 3, 4}, weights[] = {10, 20, 30, 40}, result[4];
  const void *inputs[] = {data};
  void *outputs[] = {result}, *states[] = {weights};
  EXPECT_NE(messageOf<Error>([&] { context.run(inputs, outputs); }).find("bindStates"), std::string::npos);
  context.bindStates(states);
  context.run(inputs, outputs);
  EXPECT_EQ(result[3], 84);
  weights[3] = 0;
  context.bindStates(states);
  context.run(inputs, outputs);
  EXPECT_EQ(result[3], 4);
  EXPECT_EQ(result[2], 63);
}

TEST(Executable, CopiesFillsAndUpdatesState) {
  ScheduleBuilder b(2);
  const int64_t n = 600001; // large enough to be split, not a multiple of anything
  const TensorType t{i16, Shape{n}};
  const uint32_t x = b.input("x", t), out = b.output("out", t), last = b.output("last", t);
  const uint32_t memory = b.state("memory", t, StateKind::Mutable);
  const uint32_t one = b.output("ones", t);
  b.copy(memory, last);
  const uint32_t c0 = b.copy(x, memory);
  b.copy(memory, out, {c0}, 1);
  b.fill(one, 0x1234, {}, 1);
  Context context(make(b));
  std::vector<int16_t> in(n), cell(n, 7), r0(n), r1(n), r2(n);
  std::iota(in.begin(), in.end(), int16_t(0));
  void *states[] = {cell.data()}, *outputs[] = {r0.data(), r1.data(), r2.data()};
  const void *inputs[] = {in.data()};
  context.bindStates(states);
  context.run(inputs, outputs);
  EXPECT_EQ(r0, in);
  EXPECT_EQ(r1, std::vector<int16_t>(n, 7));
  EXPECT_EQ(cell, in);
  EXPECT_EQ(r2, std::vector<int16_t>(n, 0x1234));
}

TEST(Executable, MutableStatesMoveAndAreKeptByAFailureBeforeTheirFirstWrite) {
  for (bool writesFirst : {false, true}) {
    ScheduleBuilder b;
    const uint32_t table = b.input("table", ScheduleBuilder::floats(4)), index = b.input("index", {i32, Shape{4}}),
                   out = b.output("out", ScheduleBuilder::floats(4)),
                   state = b.state("m", ScheduleBuilder::floats(4), StateKind::Mutable);
    if (writesFirst)
      b.copy(table, state);
    b.launch(b.kernel("gather", 4, 4), {table, index}, {out});
    if (!writesFirst)
      b.copy(table, state);
    Context context(make(b));
    float values[4] = {1, 2, 3, 4}, result[4], first[4] = {}, second[4] = {};
    int32_t indices[4] = {0, 1, 2, 9};
    const void *inputs[] = {values, indices};
    void *outputs[] = {result}, *states[] = {first};
    EXPECT_THROW(context.moveState(0, first), Error); // none is bound
    context.bindStates(states);
    EXPECT_THROW(context.run(inputs, outputs), RuntimeError);
    EXPECT_EQ(context.wroteStates(), writesFirst);
    EXPECT_EQ(first[3], writesFirst ? 4 : 0);
    indices[3] = 3;
    context.moveState(0, second);
    context.run(inputs, outputs);
    EXPECT_TRUE(context.wroteStates());
    EXPECT_EQ(second[3], 4);
    EXPECT_EQ(first[3], writesFirst ? 4 : 0);
    EXPECT_THROW(context.moveState(1, second), Error);
  }
}

TEST(Executable, KernelFailureNamesOpAndLine) {
  for (int64_t grain : {4, 1}) {
    ScheduleBuilder b;
    const uint32_t table = b.input("table", ScheduleBuilder::floats(4)), index = b.input("index", {i32, Shape{4}}),
                   out = b.output("out", ScheduleBuilder::floats(4));
    const uint32_t c = b.launch(b.kernel("gather", 4, grain), {table, index}, {out});
    b.s.step.commands[c].loc = b.location("take", "train.cpp", 42);
    Context context(make(b));
    float values[4] = {1, 2, 3, 4}, result[4];
    int32_t indices[4] = {0, 1, 2, 3};
    const void *inputs[] = {values, indices};
    void *outputs[] = {result};
    context.run(inputs, outputs);
    EXPECT_EQ(result[3], 4);
    indices[2] = 4;
    try {
      context.run(inputs, outputs);
      FAIL();
    } catch (const RuntimeError &e) {
      EXPECT_EQ(std::string(e.what()), "train.cpp:42: take: an index, or a label of a class, is out of range in kernel 'gather'");
      EXPECT_EQ(e.where().line, 42u);
    }
    indices[2] = 0; // and the context still works
    context.run(inputs, outputs);
    EXPECT_EQ(result[2], 1);
  }
}

TEST(Executable, LibraryKernelsComeFromTheirProvider) {
  ScheduleBuilder b;
  const uint32_t x = b.input("x", ScheduleBuilder::floats(4)), out = b.output("out", ScheduleBuilder::floats(4));
  const uint32_t k = b.kernel("library.scale", 4, 1);
  b.s.kernels[k].provider = "test-library";
  b.s.kernels[k].target = KernelTarget::HostLibrary;
  b.s.kernels[k].params = "3";
  b.launch(k, {x}, {out});
  EXPECT_NE(messageOf<InputError>([&] { make(b); }).find("needs the library 'test-library'"), std::string::npos);
  registerKernelProvider("test-library", [](const KernelDesc &desc) {
    auto factor = std::make_shared<const float>(std::stof(desc.params));
    LoadedKernel kernel;
    kernel.state = factor.get();
    kernel.owner = factor;
    kernel.fn = [](const KernelArgs *args, int64_t begin, int64_t end) -> int32_t {
      for (int64_t i = begin; i < end; ++i)
        static_cast<float *>(args->buffers[1])[i] =
            static_cast<const float *>(args->buffers[0])[i] * *static_cast<const float *>(args->state);
      return kKernelOk;
    };
    return kernel;
  });
  Context context(make(b));
  float in[] = {1, 2, 3, 4}, result[4];
  const void *inputs[] = {in};
  void *outputs[] = {result};
  context.run(inputs, outputs);
  EXPECT_EQ(result[3], 12);
}

TEST(Executable, RejectsBadPrograms) {
  auto rejected = [](const ScheduleBuilder &b, const std::string &why) {
    const std::string message = messageOf<InputError>([&] { Context{make(b, {1, 2, 3})}; });
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  const TensorType t = ScheduleBuilder::floats(4);
  {
    ScheduleBuilder b;
    b.output("out", t);
    rejected(b, "nothing writes");
  }
  {
    ScheduleBuilder b;
    b.launch(b.kernel("nowhere"), {b.input("x", t)}, {b.output("out", t)});
    rejected(b, "'nowhere' is not in the code image");
  }
  {
    ScheduleBuilder b;
    b.copy(b.constant(0, t), b.output("out", t));
    rejected(b, "leaves the weights of 12 bytes");
  }
  {
    ScheduleBuilder b(2);
    const DeviceRef gpu{DeviceKind::Gpu, 0};
    b.s.streams[1].device = gpu;
    b.s.arenas.push_back({gpu, MemoryKind::Device, 64});
    const uint32_t there = b.buffer(Space::Arena, 0, 0, t);
    b.fill(there, 0, {}, 1);
    b.copy(there, b.output("out", t), {0}, 1);
    rejected(b, "GPU");
  }
  {
    ScheduleBuilder b;
    b.copy(b.input("x", t), b.output("out", t));
    b.state("m", t, StateKind::Mutable);
    b.s.states[0].home = homeOn({DeviceKind::Gpu, 1});
    rejected(b, "'m' lies in the memory of gpu1; a context without a machine runs on the CPU");
  }
}

TEST(Context, ChecksItsArguments) {
  Context context(make(sample(8, 8), std::vector<float>(8)));
  float data[16] = {}, w[8] = {};
  void *states[] = {w}, *null[] = {nullptr};
  EXPECT_THROW(context.bindStates({}), Error);
  EXPECT_THROW(context.bindStates(null), Error);
  context.bindStates(states);
  const void *inputs[] = {data};
  void *good[] = {data + 8}, *overlapping[] = {data + 4};
  context.run(inputs, good);
  EXPECT_NE(messageOf<Error>([&] { context.run(inputs, overlapping); }).find("output 'out' overlaps input 'x'"),
            std::string::npos);
  EXPECT_THROW(context.run({}, good), Error);
  EXPECT_THROW(context.run(inputs, null), Error);
}

TEST(Context, ProfileStampsEveryCommand) {
  Context context(make(sample(8, 8), std::vector<float>(8)));
  float data[8] = {}, w[8] = {}, out[8];
  void *states[] = {w}, *outputs[] = {out};
  const void *inputs[] = {data};
  context.bindStates(states);
  Profile profile;
  context.setProfile(&profile);
  context.run(inputs, outputs);
  ASSERT_EQ(profile.commands.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GT(profile.commands[i].startNs, 0);
    EXPECT_LE(profile.commands[i].startNs, profile.commands[i].endNs);
    if (i)
      EXPECT_LE(profile.commands[i - 1].endNs, profile.commands[i].startNs);
  }
}
