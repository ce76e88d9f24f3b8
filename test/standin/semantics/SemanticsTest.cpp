// What the stand-in driver takes for the meaning of NVIDIA's functions (the table in ../README.md), as tests of whatever driver the process has: the same program runs on a card.
#include "runtime/cuda/Driver.h"
#include "test/standin/StandIn.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tressel::runtime::cuda {
namespace {

constexpr Result kInvalidValue = 1, kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700;
constexpr unsigned kNonBlocking = 1, kNoTiming = 2;

/// spin: about a millisecond of work, then *to = value. set: *to = value. sum: *to = *a + *b. wild: writes to an address that is none.
const char *const kPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 to, .param .u32 value) {
  .reg .u32 %r<4>; .reg .u64 %rd<3>; .reg .pred %p1;
  ld.param.u64 %rd1, [to]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r1, [value]; mov.u32 %r2, 0;
again:
  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra again;
  st.global.u32 [%rd1], %r1; ret;
}
.visible .entry set(.param .u64 to, .param .u32 value) {
  .reg .u32 %r<4>; .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [to]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r1, [value]; st.global.u32 [%rd1], %r1; ret;
}
.visible .entry sum(.param .u64 a, .param .u64 b, .param .u64 to) {
  .reg .u32 %r<4>; .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [to];
  cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; cvta.to.global.u64 %rd3, %rd3;
  ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd2]; add.u32 %r3, %r1, %r2; st.global.u32 [%rd3], %r3; ret;
}
.visible .entry wild(.param .u64 to) {
  .reg .u32 %r<2>; .reg .u64 %rd<2>;
  mov.u64 %rd1, 4096; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; ret;
}
)";

class CudaSemantics : public ::testing::Test {
protected:
  void SetUp() override {
    std::string why;
    d = Driver::find(&why);
    if (!d)
      GTEST_SKIP() << why;
    if (const auto *standin = standin::control())
      standin->configure("findings=keep forget=1");
    card = &cards(*d).front();
    card->use(*d);
    ok(d->cuModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr));
    for (StreamHandle *s : {&a, &b})
      ok(d->cuStreamCreate(s, kNonBlocking));
    ok(d->cuEventCreate(&event, kNoTiming));
    ok(d->cuMemAlloc(&memory, 4096));
    ok(d->cuMemHostAlloc(reinterpret_cast<void **>(&pinned), 4096, 0));
    std::memset(pinned, 0, 4096);
  }
  void TearDown() override {
    if (!d)
      return;
    ok(d->cuCtxSynchronize());
    ok(d->cuMemFree(memory));
    ok(d->cuMemFreeHost(pinned));
    ok(d->cuEventDestroy(event));
    for (StreamHandle s : {a, b})
      ok(d->cuStreamDestroy(s));
    ok(d->cuModuleUnload(module));
    if (const auto *standin = standin::control())
      EXPECT_EQ(standin::findings(*standin), "");
  }
  void ok(Result result) { ASSERT_EQ(result, kSuccess) << d->describe(result); }
  Function function(const char *name) {
    Function f = nullptr;
    ok(d->cuModuleGetFunction(&f, module, name));
    return f;
  }
  Result launch(const char *name, StreamHandle s, Address to, unsigned value) {
    void *params[] = {&to, &value};
    return d->cuLaunchKernel(function(name), 1, 1, 1, 1, 1, 1, 0, s, params, nullptr);
  }
  Address at(int i) const { return memory + static_cast<Address>(4 * i); }
  static Address host(const void *p) { return reinterpret_cast<Address>(p); }
  unsigned valueAt(int i) {
    unsigned value = 0;
    EXPECT_EQ(d->cuMemcpy(host(&value), at(i), 4), kSuccess);
    return value;
  }

  const Driver *d = nullptr;
  const Card *card = nullptr;
  Module module = nullptr;
  StreamHandle a = nullptr, b = nullptr;
  EventHandle event = nullptr;
  Address memory = 0;
  unsigned *pinned = nullptr;
};

TEST_F(CudaSemantics, AStreamRunsInOrder) {
  ok(launch("spin", a, at(0), 1));
  ok(launch("set", a, at(0), 2));
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(valueAt(0), 2u);
}

TEST_F(CudaSemantics, AWaitIsForWhatTheEventRecordedLastWhenItWasGiven) {
  ok(launch("spin", a, at(0), 1));
  ok(d->cuEventRecord(event, a));
  ok(d->cuStreamWaitEvent(b, event, 0));
  ok(d->cuEventRecord(event, b)); // does not change what b waits for
  ok(d->cuMemcpyAsync(at(1), at(0), 4, b));
  ok(d->cuStreamSynchronize(b));
  EXPECT_EQ(valueAt(1), 1u);
}

TEST_F(CudaSemantics, AStreamWaitsForAWordOfTheHost) {
  ok(d->cuStreamWaitValue32(a, host(pinned), 2, 0)); // at least
  ok(launch("set", a, at(0), 1));
  ok(d->cuEventRecord(event, a));
  std::atomic_ref(*pinned).store(1);
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(d->cuEventQuery(event), kNotReady);
  // What the host sees end before it opens the way is there for what is behind.
  Address x = at(1), y = at(2);
  void *params[] = {&x, &x, &y};
  ok(d->cuLaunchKernel(function("sum"), 1, 1, 1, 1, 1, 1, 0, a, params, nullptr));
  ok(launch("spin", b, at(1), 21));
  ok(d->cuStreamSynchronize(b));
  std::atomic_ref(*pinned).store(3);
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(valueAt(0), 1u);
  EXPECT_EQ(valueAt(2), 42u);
}

TEST_F(CudaSemantics, AnEventThatWasNeverRecordedHoldsNothingUp) {
  EXPECT_EQ(d->cuEventQuery(event), kSuccess);
  ok(d->cuStreamWaitEvent(a, event, 0));
  ok(launch("set", a, at(0), 3));
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(valueAt(0), 3u);
}

TEST_F(CudaSemantics, AQueryThatSaysEndedMeansThatItsResultsAreThere) {
  ok(launch("spin", a, at(0), 4));
  ok(d->cuMemcpyAsync(host(pinned), at(0), 4, a));
  ok(d->cuEventRecord(event, a));
  Result result = kNotReady;
  while ((result = d->cuEventQuery(event)) == kNotReady)
    ;
  ok(result);
  EXPECT_EQ(pinned[0], 4u);
}

TEST_F(CudaSemantics, BlockingStreamsAndTheLegacyStreamWaitForEachOther) {
  StreamHandle blocking = nullptr;
  ok(d->cuStreamCreate(&blocking, 0));
  ok(launch("spin", nullptr, at(0), 5));
  ok(d->cuMemcpyAsync(at(1), at(0), 4, blocking));
  ok(d->cuMemcpyAsync(at(2), at(1), 4, nullptr));
  ok(d->cuStreamSynchronize(nullptr));
  EXPECT_EQ(valueAt(2), 5u);
  ok(d->cuStreamDestroy(blocking));
}

TEST_F(CudaSemantics, PageableMemoryIsTakenWhenTheCallIsMade) {
  std::vector<unsigned> from(64, 6);
  ok(launch("spin", a, at(100), 1));
  ok(d->cuMemcpyAsync(at(0), host(from.data()), 256, a));
  std::fill(from.begin(), from.end(), 99u);
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(valueAt(0), 6u);
}

TEST_F(CudaSemantics, PinnedMemoryIsReadWhenTheCopyRuns) {
  pinned[0] = 7;
  ok(launch("spin", a, at(100), 1));
  ok(d->cuMemcpyAsync(at(0), host(pinned), 4, a));
  pinned[0] = 8; // a mistake in a program, of which either may come
  ok(d->cuStreamSynchronize(a));
  const unsigned value = valueAt(0);
  EXPECT_TRUE(value == 7 || value == 8) << value;
  RecordProperty("read", value == 8 ? "when it ran" : "when it was called");
}

TEST_F(CudaSemantics, ACopyToPageableMemoryHasEndedWhenTheCallReturns) {
  unsigned to = 0;
  ok(launch("spin", a, at(0), 9));
  ok(d->cuMemcpyAsync(host(&to), at(0), 4, a));
  EXPECT_EQ(to, 9u);
}

TEST_F(CudaSemantics, ParametersAreCopiedWhenAKernelIsLaunched) {
  Address to = at(0);
  unsigned value = 10;
  void *params[] = {&to, &value};
  ok(launch("spin", a, at(100), 1));
  ok(d->cuLaunchKernel(function("set"), 1, 1, 1, 1, 1, 1, 0, a, params, nullptr));
  value = 11;
  to = at(1);
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(valueAt(0), 10u);
}

TEST_F(CudaSemantics, WhatADestroyedStreamWasGivenStillRuns) {
  StreamHandle gone = nullptr;
  ok(d->cuStreamCreate(&gone, kNonBlocking));
  ok(launch("spin", gone, at(0), 12));
  ok(d->cuStreamDestroy(gone));
  ok(d->cuCtxSynchronize());
  EXPECT_EQ(valueAt(0), 12u);
}

TEST_F(CudaSemantics, PinnedMemoryIsTheCardsAtTheSameAddress) {
  ok(launch("set", a, host(pinned), 13));
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(pinned[0], 13u);
}

TEST_F(CudaSemantics, RegisteredMemoryIsCopiedLikePinned) {
  std::vector<unsigned> mine(4096, 14);
  ok(d->cuMemHostRegister(mine.data(), mine.size() * 4, 1));
  EXPECT_EQ(d->cuMemHostRegister(mine.data(), mine.size() * 4, 1), kAlreadyRegistered);
  ok(d->cuMemcpyAsync(at(0), host(mine.data()), 256, a));
  ok(d->cuMemcpyAsync(host(mine.data() + 1024), at(0), 4, a));
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(mine[1024], 14u);
  ok(d->cuMemHostUnregister(mine.data()));
}

//--- Graphs -----------------------------------------------------------------------------------------------------------
class CudaGraphSemantics : public CudaSemantics {
protected:
  void TearDown() override {
    if (d && exec)
      ok(d->cuGraphExecDestroy(exec));
    if (d && graph)
      ok(d->cuGraphDestroy(graph));
    CudaSemantics::TearDown();
  }
  GraphNode kernel(const char *name, std::vector<GraphNode> after, std::vector<uint64_t> values) {
    std::vector<void *> params;
    for (uint64_t &value : values)
      params.push_back(&value);
    KernelNodeParams p{.function = function(name), .params = params.data()};
    GraphNode node = nullptr;
    EXPECT_EQ(d->cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &p), kSuccess);
    return node;
  }
  Graph graph = nullptr;
  GraphExec exec = nullptr;
};

TEST_F(CudaGraphSemantics, NodesAreOrderedByEdgesAndParametersAreThoseOfTheLastUpdate) {
  ok(d->cuGraphCreate(&graph, 0));
  const GraphNode left = kernel("spin", {}, {at(0), 3}), right = kernel("spin", {}, {at(1), 4});
  const GraphNode both = kernel("sum", {left, right}, {at(0), at(1), at(2)});
  CopyNodeParams copy;
  copy.from.address = at(2), copy.to.address = host(pinned), copy.width = 4;
  GraphNode out = nullptr;
  ok(d->cuGraphAddMemcpyNode(&out, graph, &both, 1, &copy, card->context));
  size_t edges = 0;
  ok(d->cuGraphGetEdges(graph, nullptr, nullptr, &edges));
  EXPECT_EQ(edges, 3u);
  ok(d->cuGraphInstantiateWithFlags(&exec, graph, 0));
  ok(d->cuGraphLaunch(exec, a));
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(pinned[0], 7u);
  uint64_t to = at(0), value = 30;
  void *params[] = {&to, &value};
  const KernelNodeParams other{.function = function("spin"), .params = params};
  ok(d->cuGraphExecKernelNodeSetParams(exec, left, &other));
  value = 99;
  ok(d->cuGraphLaunch(exec, a));
  ok(d->cuGraphLaunch(exec, b)); // behind the launch before, whatever the stream
  ok(d->cuStreamSynchronize(b));
  EXPECT_EQ(pinned[0], 34u);
}

TEST_F(CudaGraphSemantics, ALaunchIsBehindItsStreamAndBeforeWhatFollows) {
  ok(d->cuGraphCreate(&graph, 0));
  kernel("sum", {}, {at(0), at(0), at(1)});
  ok(d->cuGraphInstantiateWithFlags(&exec, graph, 0));
  ok(launch("spin", a, at(0), 21));
  ok(d->cuGraphLaunch(exec, a));
  ok(d->cuMemcpyAsync(host(pinned), at(1), 4, a));
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(pinned[0], 42u);
}

/// `test`: the condition is *count. `down`: adds *count to *sum, takes one off it, and the condition is what is left.
const char *const kConditionalPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry test(.param .u64 handle, .param .u64 count) {
  .reg .u32 %r<2>; .reg .u64 %rd<3>; .param .b64 to; .param .b32 value;
  ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [count]; cvta.to.global.u64 %rd2, %rd2; ld.global.u32 %r1, [%rd2];
  st.param.b64 [to], %rd1; st.param.b32 [value], %r1; call.uni cudaGraphSetConditional, (to, value); ret;
}
.visible .entry down(.param .u64 handle, .param .u64 count, .param .u64 sum) {
  .reg .u32 %r<4>; .reg .u64 %rd<4>; .param .b64 to; .param .b32 value;
  ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [count]; ld.param.u64 %rd3, [sum]; cvta.to.global.u64 %rd2, %rd2; cvta.to.global.u64 %rd3, %rd3;
  ld.global.u32 %r1, [%rd2]; ld.global.u32 %r2, [%rd3]; add.u32 %r2, %r2, %r1; st.global.u32 [%rd3], %r2; sub.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;
  st.param.b64 [to], %rd1; st.param.b32 [value], %r1; call.uni cudaGraphSetConditional, (to, value); ret;
}
)";

TEST_F(CudaGraphSemantics, AConditionalNodeRunsItsBodyAsLongAsTheConditionSays) {
  if (!d->cuGraphAddNode || !d->cuGraphConditionalHandleCreate)
    GTEST_SKIP() << "the driver has no conditional nodes";
  Module conditional = nullptr;
  ok(d->cuModuleLoadDataEx(&conditional, kConditionalPtx, 0, nullptr, nullptr)); // the driver has the function that it declares
  for (int repeats : {1, 0}) {
    ok(d->cuGraphCreate(&graph, 0));
    ConditionalHandle handle = 0;
    ok(d->cuGraphConditionalHandleCreate(&handle, graph, card->context, 0, 0));
    Address count = at(0), sum = at(1);
    void *values[] = {&handle, &count, &sum};
    KernelNodeParams kernel{.params = values};
    GraphNode test = nullptr, down = nullptr, node = nullptr;
    ok(d->cuModuleGetFunction(&kernel.function, conditional, "test"));
    ok(d->cuGraphAddKernelNode(&test, graph, nullptr, 0, &kernel));
    NodeParams choice;
    choice.handle = handle, choice.kind = repeats, choice.context = card->context;
    ok(d->cuGraphAddNode(&node, graph, &test, 1, &choice));
    ASSERT_TRUE(choice.bodies && choice.bodies[0]);
    ok(d->cuModuleGetFunction(&kernel.function, conditional, "down"));
    ok(d->cuGraphAddKernelNode(&down, choice.bodies[0], nullptr, 0, &kernel));
    CopyNodeParams copy;
    copy.from.address = at(1), copy.to.address = host(pinned), copy.width = 4;
    GraphNode out = nullptr;
    ok(d->cuGraphAddMemcpyNode(&out, graph, &node, 1, &copy, card->context));
    ok(d->cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned begin : {4u, 0u, 2u}) {
      ok(launch("set", a, at(0), begin));
      ok(launch("set", a, at(1), 100));
      ok(d->cuGraphLaunch(exec, a));
      ok(d->cuStreamSynchronize(a));
      EXPECT_EQ(pinned[0], 100 + (repeats ? begin * (begin + 1) / 2 : begin)) << begin;
    }
    ok(d->cuGraphExecDestroy(std::exchange(exec, nullptr)));
    ok(d->cuGraphDestroy(std::exchange(graph, nullptr)));
  }
  ok(d->cuModuleUnload(conditional));
}

//--- Errors -----------------------------------------------------------------------------------------------------------
TEST_F(CudaSemantics, MistakesAreRefused) {
  EXPECT_EQ(d->cuMemFree(memory + 4), kInvalidValue);
  EXPECT_EQ(d->cuMemFreeHost(&d), kInvalidValue);
  Function f = nullptr;
  EXPECT_EQ(d->cuModuleGetFunction(&f, module, "none"), kNotFound);
  Address to = at(0);
  unsigned value = 1;
  void *params[] = {&to, &value};
  EXPECT_EQ(d->cuLaunchKernel(function("set"), 1, 1, 1, 2048, 1, 1, 0, a, params, nullptr), kInvalidValue);
  EXPECT_EQ(d->cuLaunchKernel(function("set"), 0, 1, 1, 32, 1, 1, 0, a, params, nullptr), kInvalidValue);
  float milliseconds = 0;
  ok(d->cuEventRecord(event, a));
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(d->cuEventElapsedTime(&milliseconds, event, event), kInvalidHandle); // without times
  EXPECT_EQ(d->cuMemAlloc(&to, size_t(1) << 50), kOutOfMemory);
  Module other = nullptr;
  EXPECT_NE(d->cuModuleLoadDataEx(&other, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry x() { nonsense; }\n", 0, nullptr, nullptr), kSuccess);
  ok(d->cuCtxSetCurrent(nullptr));
  EXPECT_EQ(d->cuStreamQuery(a), kInvalidContext);
  card->use(*d);
}

TEST_F(CudaSemantics, MoreSharedMemoryIsAskedFor) {
  constexpr int kMaxDynamicShared = 8;                    // CUfunction_attribute
  constexpr unsigned kMore = 64 << 10, kBeyond = 1 << 20; // what every card since sm_80 has, and none
  Function set = function("set");
  Address to = at(0);
  unsigned value = 5;
  void *params[] = {&to, &value};
  auto launchWith = [&](unsigned bytes) { return d->cuLaunchKernel(set, 1, 1, 1, 1, 1, 1, bytes, a, params, nullptr); };
  EXPECT_EQ(launchWith(kMore), kInvalidValue);
  EXPECT_EQ(d->cuFuncSetAttribute(set, kMaxDynamicShared, kBeyond), kInvalidValue);
  ok(d->cuFuncSetAttribute(set, kMaxDynamicShared, kMore));
  ok(launchWith(kMore));
  EXPECT_EQ(launchWith(kMore + 16), kInvalidValue);
  ok(d->cuStreamSynchronize(a));
  EXPECT_EQ(valueAt(0), 5u);
}

TEST_F(CudaSemantics, TensorMapsHaveLimits) {
  if (card->major < 9)
    GTEST_SKIP() << "tensor maps are of cards from compute capability 9.0 on";
  constexpr int kBfloat16 = 9, kSwizzle128 = 3; // CUtensorMapDataType, CUtensorMapSwizzle
  struct Arguments {
    unsigned rank = 2;
    uint64_t address = 0, sizes[3] = {64, 8, 2}, strides[2] = {128, 1024};
    uint32_t box[3] = {64, 8, 1}, steps[3] = {1, 1, 1};
    int swizzle = kSwizzle128;
  };
  auto encode = [&](auto change) {
    Arguments x;
    x.address = memory;
    change(x);
    TensorMap map;
    return d->cuTensorMapEncodeTiled(&map, kBfloat16, x.rank, reinterpret_cast<void *>(x.address), x.sizes, x.strides,
                                     x.box, x.steps, 0, x.swizzle, 0, 0);
  };
  ok(encode([](Arguments &) {}));
  ok(encode([](Arguments &x) { x.rank = 3; }));
  ok(encode([](Arguments &x) { x.sizes[0] = 1, x.sizes[1] = uint64_t(1) << 32; })); // of which nothing is read here
  EXPECT_EQ(encode([](Arguments &x) { x.address += 8; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.rank = 0; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.sizes[1] = 0; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.sizes[1] = (uint64_t(1) << 32) + 1; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.strides[0] = 136; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.strides[0] = uint64_t(1) << 40; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.box[1] = 0; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.box[1] = 257; }), kInvalidValue);
  EXPECT_EQ(encode([](Arguments &x) { x.box[0] = 4, x.swizzle = 0; }), kInvalidValue) << "no multiple of 16 bytes";
  EXPECT_EQ(encode([](Arguments &x) { x.box[0] = 128; }), kInvalidValue) << "longer than the swizzle's span";
  EXPECT_EQ(encode([](Arguments &x) { x.steps[1] = 9; }), kInvalidValue);
}

/// Each block writes what the next one of its cluster is, plus 10 for each block of the cluster.
const char *const kNeighbours = R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry next(.param .u64 to) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  .shared .align 4 .b32 mine;
  ld.param.u64 %rd0, [to]; cvta.to.global.u64 %rd0, %rd0;
  mov.u32 %r0, %ctaid.x; st.shared.u32 [mine], %r0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  mov.u32 %r1, %cluster_ctarank; add.u32 %r1, %r1, 1; mov.u32 %r2, %cluster_nctarank; rem.u32 %r1, %r1, %r2;
  mov.u64 %rd1, mine; mapa.shared::cluster.u64 %rd1, %rd1, %r1; ld.shared::cluster.u32 %r3, [%rd1];
  mad.lo.u32 %r3, %r2, 10, %r3;
  mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd0, %rd2; st.global.u32 [%rd2], %r3;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
})";

TEST_F(CudaSemantics, BlocksOfAClusterSeeEachOthersSharedMemory) {
  if (card->major < 9)
    GTEST_SKIP() << "clusters are of cards from compute capability 9.0 on";
  Module own = nullptr;
  Function next = nullptr;
  ok(d->cuModuleLoadDataEx(&own, kNeighbours, 0, nullptr, nullptr));
  ok(d->cuModuleGetFunction(&next, own, "next"));
  Address to = memory;
  void *params[] = {&to};
  auto launchWith = [&](unsigned blocks, unsigned cluster) {
    LaunchAttribute attribute{.value = {.x = cluster}};
    const LaunchConfig config{.gridX = blocks, .stream = a, .attributes = &attribute, .numAttributes = 1};
    return d->cuLaunchKernelEx(&config, next, params, nullptr);
  };
  auto expectNeighbours = [&](unsigned cluster) {
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_EQ(valueAt(static_cast<int>(i)), i / cluster * cluster + (i + 1) % cluster + 10 * cluster) << cluster;
  };
  for (unsigned cluster : {1u, 2u, 4u, 8u}) {
    ok(launchWith(8, cluster));
    ok(d->cuStreamSynchronize(a));
    expectNeighbours(cluster);
  }
  // A graph's node has it, also when its parameters change.
  Graph graph = nullptr;
  GraphNode node = nullptr;
  GraphExec exec = nullptr;
  KernelNodeParams kernel{.function = next, .gridX = 8, .params = params};
  const LaunchAttribute four{.value = {.x = 4}};
  ok(d->cuGraphCreate(&graph, 0));
  ok(d->cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  ok(d->cuGraphKernelNodeSetAttribute(node, four.id, &four.value));
  ok(d->cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (Address place : {memory, memory + 1024}) {
    to = place;
    ok(d->cuGraphExecKernelNodeSetParams(exec, node, &kernel));
    ok(d->cuMemsetD32Async(place, 0, 8, a));
    ok(d->cuGraphLaunch(exec, a));
    ok(d->cuStreamSynchronize(a));
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_EQ(valueAt(static_cast<int>((place - memory) / 4 + i)), i / 4 * 4 + (i + 1) % 4 + 40);
  }
  ok(d->cuGraphExecDestroy(exec));
  ok(d->cuGraphDestroy(graph));
  EXPECT_NE(launchWith(8, 0), kSuccess);
  EXPECT_NE(launchWith(8, 3), kSuccess) << "the grid is no multiple";
  EXPECT_NE(launchWith(32, 16), kSuccess) << "more than all cards have, and the kernel does not ask for it";
  ok(d->cuModuleUnload(own));
}

/// In a process of its own: what follows breaks its context.
[[noreturn]] void touchWildly() {
  const Driver &driver = *Driver::find();
  cards(driver).front().use(driver);
  Module m = nullptr;
  Function wild = nullptr;
  Address to = 0;
  void *params[] = {&to};
  driver.cuModuleLoadDataEx(&m, kPtx, 0, nullptr, nullptr);
  driver.cuModuleGetFunction(&wild, m, "wild");
  driver.cuLaunchKernel(wild, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
  const Result first = driver.cuCtxSynchronize(), then = driver.cuMemAlloc(&to, 16);
  _exit(first == kIllegalAddress && then == kIllegalAddress ? 0 : 1);
}

using CudaSemanticsDeath = CudaSemantics;
TEST_F(CudaSemanticsDeath, AnIllegalAddressStays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(touchWildly(), ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaSemantics, AChildProcessIsNotServed) {
  const pid_t child = fork();
  if (child == 0) {
    Address to = 0;
    _exit(d->cuMemAlloc(&to, 16) == kSuccess ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

} // namespace
} // namespace tressel::runtime::cuda
