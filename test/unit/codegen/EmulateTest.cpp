// The emulator of GPU kernels, on kernels written by hand: what it computes, and the mistakes that it must find.
#include "test/unit/codegen/GpuText.h"

#include <numeric>
#include <thread>

using namespace tressel;
using namespace tressel::codegen::test;

namespace {

const std::string declarations = R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
)";

/// b1[block] = the sum of the block's elements of b0: within warps by shuffles, then through shared memory.
const std::string blockSum = declarations + R"(
@partial = internal addrspace(3) global [32 x float] poison, align 4

define ptx_kernel void @sum(ptr addrspace(1) %b0, ptr addrspace(1) %b1, i64 %n, ptr addrspace(1) %status) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %block, %threads
  %at = add i32 %first, %t
  %at64 = zext i32 %at to i64
  %there = icmp slt i64 %at64, %n
  br i1 %there, label %read, label %lanes
read:
  %p = getelementptr float, ptr addrspace(1) %b0, i64 %at64
  %x = load float, ptr addrspace(1) %p, align 4
  br label %lanes
lanes:
  %v0 = phi float [ 0.0, %entry ], [ %x, %read ]
  %o1 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v0, i32 16, i32 31)
  %v1 = fadd float %v0, %o1
  %o2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v1, i32 8, i32 31)
  %v2 = fadd float %v1, %o2
  %o3 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v2, i32 4, i32 31)
  %v3 = fadd float %v2, %o3
  %o4 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v3, i32 2, i32 31)
  %v4 = fadd float %v3, %o4
  %o5 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v4, i32 1, i32 31)
  %v5 = fadd float %v4, %o5
  %warp = lshr i32 %t, 5
  %lane = and i32 %t, 31
  %isFirst = icmp eq i32 %lane, 0
  br i1 %isFirst, label %put, label %meet
put:
  %q = getelementptr float, ptr addrspace(3) @partial, i32 %warp
  store float %v5, ptr addrspace(3) %q, align 4
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %isLeader = icmp eq i32 %t, 0
  br i1 %isLeader, label %add, label %done
add:
  %numWarps = lshr i32 %threads, 5
  br label %loop
loop:
  %i = phi i32 [ 0, %add ], [ %next, %loop ]
  %s = phi float [ 0.0, %add ], [ %s1, %loop ]
  %r = getelementptr float, ptr addrspace(3) @partial, i32 %i
  %y = load float, ptr addrspace(3) %r, align 4
  %s1 = fadd float %s, %y
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %numWarps
  br i1 %more, label %loop, label %store
store:
  %b64 = zext i32 %block to i64
  %out = getelementptr float, ptr addrspace(1) %b1, i64 %b64
  store float %s1, ptr addrspace(1) %out, align 4
  br label %done
done:
  ret void
}
)";

TEST(Emulate, SumsOfBlocks) {
  const GpuKernels kernels(blockSum);
  std::vector<float> x(1000), sums(8);
  std::iota(x.begin(), x.end(), 1.0f);
  EXPECT_EQ(kernels.run("sum", {x.data(), sums.data()}, 128, 8, {1000}), 0);
  for (size_t block = 0; block < 8; ++block) {
    float want = 0;
    for (size_t i = block * 128; i < std::min<size_t>(1000, block * 128 + 128); ++i)
      want += x[i];
    EXPECT_EQ(sums[block], want);
  }
}

TEST(Emulate, FromManyHostThreads) {
  const GpuKernels kernels(blockSum);
  std::vector<float> x(64 * 256, 1.0f), sums(256);
  std::vector<std::thread> threads;
  for (int64_t part = 0; part < 4; ++part)
    threads.emplace_back([&, part] {
      void *buffers[] = {x.data(), sums.data()};
      const int64_t n = 64 * 256;
      kernels.emulated->run({"sum", 64, buffers, {&n, 1}, {}, false}, part * 64, part * 64 + 64, 256);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(sums, std::vector<float>(256, 64.0f));
}

TEST(EmulateRaces, BarrierOfSumMissing) {
  const GpuKernels kernels(blockSum, 0);
  std::vector<float> x(1024, 1.0f), sums(8);
  expectContains(kernels.failure("sum", {x.data(), sums.data()}, 128, 8, {1000}),
                 {"kernel 'sum'", "thread 0 of block 0", "reads shared memory, byte", "of 'partial'", "load float"});
}

/// Each warp hands its values on, through shared memory, to the lane that mirrors it; the block then does the same;
/// twice, so that memory is used again. Four places order that.
const std::string mirror = declarations + R"(
@hand = internal addrspace(3) global [256 x i32] poison, align 4

define ptx_kernel void @mirror(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %status) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %p = getelementptr i32, ptr addrspace(1) %b0, i32 %t
  %x = load i32, ptr addrspace(1) %p, align 4
  %mine = getelementptr i32, ptr addrspace(3) @hand, i32 %t
  store i32 %x, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %other = xor i32 %t, 31
  %theirs = getelementptr i32, ptr addrspace(3) @hand, i32 %other
  %y = load i32, ptr addrspace(3) %theirs, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %y3 = mul i32 %y, 3
  store i32 %y3, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %last = sub i32 %threads, 1
  %far = sub i32 %last, %t
  %fars = getelementptr i32, ptr addrspace(3) @hand, i32 %far
  %z = load i32, ptr addrspace(3) %fars, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  store i32 %z, ptr addrspace(3) %mine, align 4
  %again = load i32, ptr addrspace(3) %mine, align 4
  %q = getelementptr i32, ptr addrspace(1) %b1, i32 %t
  store i32 %again, ptr addrspace(1) %q, align 4
  ret void
}
)";

TEST(EmulateRaces, EachPlaceThatOrdersIsNeeded) {
  std::vector<int> x(256), y(256);
  std::iota(x.begin(), x.end(), 0);
  EXPECT_EQ(GpuKernels(mirror).run("mirror", {x.data(), y.data()}, 256, 1), 0);
  for (int t = 0; t < 256; ++t)
    EXPECT_EQ(y[static_cast<size_t>(t)], ((255 - t) ^ 31) * 3);
  for (int place = 0; place < 4; ++place)
    expectContains(GpuKernels(mirror, place).failure("mirror", {x.data(), y.data()}, 256, 1),
                   {"shared memory, byte", place ? "no barrier is between" : "which nobody wrote", "of 'hand'"});
}

/// One kernel whose body is given; %t is the thread's number.
std::string kernelOf(const std::string &body, const std::string &globals = "") {
  return declarations + globals +
         "define ptx_kernel void @k(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %status) {\nentry:\n"
         "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n" +
         body + "}\n";
}

/// Each block of a cluster gives its neighbour a value of each thread, and takes it away again; b1 gets what came.
const std::string hand = declarations + R"(
declare void @llvm.nvvm.barrier.cluster.arrive()
declare void @llvm.nvvm.barrier.cluster.wait()
declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)
@given = internal addrspace(3) global [64 x i32] poison, align 4

define ptx_kernel void @hand(ptr addrspace(1) %b0, ptr addrspace(1) %b1, i64 %cluster, ptr addrspace(1) %status) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %block, %threads
  %at = add i32 %first, %t
  %p = getelementptr i32, ptr addrspace(1) %b0, i32 %at
  %x = load i32, ptr addrspace(1) %p, align 4
  %mine = getelementptr i32, ptr addrspace(3) @given, i32 %t
  store i32 %x, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.barrier.cluster.arrive()
  call void @llvm.nvvm.barrier.cluster.wait()
  %size = trunc i64 %cluster to i32
  %next = add i32 %block, 1
  %rank = urem i32 %next, %size
  %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %mine, i32 %rank)
  %y = load i32, ptr addrspace(7) %theirs, align 4
  call void @llvm.nvvm.barrier.cluster.arrive()
  call void @llvm.nvvm.barrier.cluster.wait()
  %y3 = mul i32 %y, 3
  store i32 %y3, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.barrier.cluster.arrive()
  call void @llvm.nvvm.barrier.cluster.wait()
  %z = load i32, ptr addrspace(7) %theirs, align 4
  %q = getelementptr i32, ptr addrspace(1) %b1, i32 %at
  store i32 %z, ptr addrspace(1) %q, align 4
  call void @llvm.nvvm.barrier.cluster.arrive()
  call void @llvm.nvvm.barrier.cluster.wait()
  ret void
}
)";

TEST(Emulate, BlocksOfAClusterReadEachOthersSharedMemory) {
  const GpuKernels kernels(hand);
  for (const int cluster : {1, 2, 4, 8}) {
    std::vector<int> x(64 * 8), y(64 * 8);
    std::iota(x.begin(), x.end(), 5);
    EXPECT_EQ(kernels.run("hand", {x.data(), y.data()}, 64, 8, {cluster}, {}, false, cluster), 0);
    for (int i = 0; i < 64 * 8; ++i) { // two blocks further on in the cluster
      const int block = i / 64, from = block / cluster * cluster + (block + 2) % cluster;
      ASSERT_EQ(y[static_cast<size_t>(i)], 3 * x[static_cast<size_t>(from * 64 + i % 64)]) << cluster << " at " << i;
    }
  }
}

TEST(EmulateRaces, EachBarrierOfTheClusterIsNeeded) {
  std::vector<int> x(64 * 4), y(64 * 4);
  auto failure = [&](const GpuKernels &kernels, int cluster) {
    return kernels.failure("hand", {x.data(), y.data()}, 64, 4, {4}, {}, false, cluster);
  };
  expectContains(failure(GpuKernels(hand, 0), 4), {"reads shared memory", "of 'given'"});
  expectContains(failure(GpuKernels(hand, 1), 4),
                 {"writes shared memory", "of the cluster's block 3 read, and no barrier"});
  expectContains(failure(GpuKernels(hand, 2), 4), {"shared memory", "of the cluster's block", "no barrier is between"});
  expectContains(failure(GpuKernels(hand, 3), 4), {"reads shared memory of block", "which may have ended"});
  expectContains(failure(GpuKernels(hand), 2), {"names block 2 of its cluster, which has 2"});
}

TEST(EmulateRaces, ShuffleOrdersNoMemory) {
  const std::string text = kernelOf(R"(
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %t
  store i32 %t, ptr addrspace(3) %p, align 4
  %o = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %o
  %x = load i32, ptr addrspace(3) %q, align 4
  %r = getelementptr i32, ptr addrspace(1) %b1, i32 %t
  store i32 %x, ptr addrspace(1) %r, align 4
  ret void
)",
                                    "@s = internal addrspace(3) global [32 x i32] poison, align 4\n");
  std::vector<int> out(32);
  expectContains(GpuKernels(text).failure("k", {nullptr, out.data()}, 32, 1),
                 {"which thread", "no barrier is between"});
}

TEST(EmulateBarriers, NotReachedByAll) {
  const std::string text = kernelOf(R"(
  %some = icmp ult i32 %t, 40
  br i1 %some, label %meet, label %done
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %done
done:
  ret void
)");
  expectContains(GpuKernels(text).failure("k", {nullptr, nullptr}, 64, 1),
                 {"thread 0 of block 0 waits in", "barrier.cta.sync", "thread 40 has returned", "23 more"});
}

TEST(EmulateBarriers, DifferentOnes) {
  const std::string text = kernelOf(R"(
  %some = icmp ult i32 %t, 40
  br i1 %some, label %meet, label %other
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %done
other:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 1)
  br label %done
done:
  ret void
)");
  expectContains(GpuKernels(text).failure("k", {nullptr, nullptr}, 64, 1), {"meets thread", "at another barrier"});
}

TEST(EmulateBarriers, ShuffleNotReachedByAll) {
  const std::string text = kernelOf(R"(
  %some = icmp ult i32 %t, 16
  br i1 %some, label %meet, label %done
meet:
  %o = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)
  %p = getelementptr i32, ptr addrspace(1) %b1, i32 %t
  store i32 %o, ptr addrspace(1) %p, align 4
  br label %done
done:
  ret void
)");
  std::vector<int> out(64);
  expectContains(GpuKernels(text).failure("k", {nullptr, out.data()}, 32, 1),
                 {"waits in", "shfl.sync.bfly", "thread 16 has returned", "15 more"});
}

TEST(EmulateBarriers, WaitsForWhatNobodyWrites) {
  const std::string text = kernelOf(R"(
  br label %look
look:
  %x = load atomic i32, ptr addrspace(1) %b0 acquire, align 4
  %set = icmp ne i32 %x, 0
  br i1 %set, label %done, label %look
done:
  ret void
)");
  int flag = 0;
  expectContains(GpuKernels(text).failure("k", {&flag, nullptr}, 32, 1), {"waits for a value that nobody writes"});
  flag = 1;
  EXPECT_EQ(GpuKernels(text).run("k", {&flag, nullptr}, 32, 1), 0);
}

const std::string twoArrays = "@s = internal addrspace(3) global [32 x i32] poison, align 4\n"
                              "@u = internal addrspace(3) global [32 x i32] poison, align 4\n";

TEST(EmulateMemory, SharedOutOfBounds) {
  const std::string text = kernelOf(R"(
  %o = load i32, ptr addrspace(1) %b0, align 4
  %at = add i32 %t, %o
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %at
  store i32 %t, ptr addrspace(3) %p, align 4
  %q = getelementptr i32, ptr addrspace(3) @u, i32 %t
  store i32 %t, ptr addrspace(3) %q, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %x = load i32, ptr addrspace(3) %p, align 4
  %y = load i32, ptr addrspace(3) %q, align 4
  %z = add i32 %x, %y
  %r = getelementptr i32, ptr addrspace(1) %b1, i32 %t
  store i32 %z, ptr addrspace(1) %r, align 4
  ret void
)",
                                    twoArrays);
  const GpuKernels kernels(text);
  std::vector<int> out(32);
  int offset = 0;
  EXPECT_EQ(kernels.run("k", {&offset, out.data()}, 32, 1), 0);
  EXPECT_EQ(out[31], 62);
  offset = 1;
  expectContains(kernels.failure("k", {&offset, out.data()}, 32, 1),
                 {"thread 31", "byte 128, which is in no variable"});
  offset = 1000;
  expectContains(kernels.failure("k", {&offset, out.data()}, 32, 1),
                 {"shared memory out of its bounds, at offset 4000"});
  offset = -1;
  expectContains(kernels.failure("k", {&offset, out.data()}, 32, 1), {"shared memory out of its bounds, at offset -4"});
}

TEST(EmulateMemory, SharedIsFreshInEachBlock) {
  // The first block writes, the second only reads.
  const std::string text = kernelOf(R"(
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %t
  %first = icmp eq i32 %block, 0
  br i1 %first, label %write, label %read
write:
  store i32 %t, ptr addrspace(3) %p, align 4
  br label %read
read:
  %x = load i32, ptr addrspace(3) %p, align 4
  %r = getelementptr i32, ptr addrspace(1) %b1, i32 %t
  store i32 %x, ptr addrspace(1) %r, align 4
  ret void
)",
                                    twoArrays);
  std::vector<int> out(32);
  EXPECT_EQ(GpuKernels(text).run("k", {nullptr, out.data()}, 32, 1), 0);
  expectContains(GpuKernels(text).failure("k", {nullptr, out.data()}, 32, 2),
                 {"thread 0 of block 1", "which nobody wrote"});
}

TEST(EmulateMemory, ReadAheadOfItsCondition) {
  // What the optimizer makes of: the first thread begins a sum, the others add to it. Threads go one after the other.
  const std::string text = kernelOf(R"(
  %n = load i32, ptr addrspace(1) %b0, align 4
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %joined ]
  %turn = icmp eq i32 %i, %t
  br i1 %turn, label %mine, label %joined
mine:
  %old = load i32, ptr addrspace(3) @s, align 4
  %sum = add i32 %old, %t
  %begins = icmp eq i32 %t, %n
  %new = select i1 %begins, i32 %t, i32 %sum
  store i32 %new, ptr addrspace(3) @s, align 4
  br label %joined
joined:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 32
  br i1 %more, label %loop, label %done
done:
  %x = load i32, ptr addrspace(3) @s, align 4
  %p = getelementptr i32, ptr addrspace(1) %b1, i32 %t
  store i32 %x, ptr addrspace(1) %p, align 4
  ret void
)",
                                    twoArrays);
  const GpuKernels kernels(text);
  std::vector<int> out(32);
  int first = 0;
  EXPECT_EQ(kernels.run("k", {&first, out.data()}, 32, 1), 0);
  EXPECT_EQ(out, std::vector<int>(32, 31 * 16));
  first = 1; // thread 0 adds to what nobody wrote
  expectContains(kernels.failure("k", {&first, out.data()}, 32, 1), {"thread 0", "which nobody wrote", "%old"});
}

/// b1[t * b0[0] + block * b0[1]] = t
const std::string strided = kernelOf(R"(
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %step = load i32, ptr addrspace(1) %b0, align 4
  %second = getelementptr i32, ptr addrspace(1) %b0, i32 1
  %blocks = load i32, ptr addrspace(1) %second, align 4
  %i = mul i32 %t, %step
  %j = mul i32 %block, %blocks
  %at = add i32 %i, %j
  %p = getelementptr i32, ptr addrspace(1) %b1, i32 %at
  store i32 %t, ptr addrspace(1) %p, align 4
  ret void
)");

TEST(EmulateMemory, BuffersAreWatched) {
  const GpuKernels kernels(strided);
  std::vector<int> out(128);
  auto failure = [&](int step, int blocks) {
    int steps[] = {step, blocks};
    return kernels.failure("k", {steps, out.data()}, 32, 2, {}, {8, 256}, true);
  };
  EXPECT_EQ(failure(1, 32), "");
  expectContains(failure(2, 0), {"thread 0 of block 1 writes buffer 1", "which thread 0 of another block wrote"});
  expectContains(failure(0, 32), {"thread 1 of block 0 writes buffer 1", "byte 0, which thread 0 wrote"});
  expectContains(failure(1, 33), {"thread 31 of block 1", "out of the bounds of buffer 1, at offset 256 of 256"});
  expectContains(failure(-1, 32), {"thread 1 of block 0", "out of the bounds of buffer 1, at offset -4 of 256"});
}

TEST(EmulateMemory, Misaligned) {
  const std::string text = kernelOf(R"(
  %p = getelementptr i8, ptr addrspace(1) %b1, i32 %t
  store i32 %t, ptr addrspace(1) %p, align 4
  ret void
)");
  std::vector<int> out(64);
  expectContains(GpuKernels(text).failure("k", {nullptr, out.data()}, 32, 1), {"thread 1", "not a multiple of 4"});
}

TEST(Emulate, RefusesWhatItDoesNotKnow) {
  const std::string text = kernelOf("  %r = call i32 @llvm.nvvm.read.ptx.sreg.clock()\n"
                                    "  store i32 %r, ptr addrspace(1) %b1, align 4\n  ret void\n",
                                    "declare i32 @llvm.nvvm.read.ptx.sreg.clock()\n");
  try {
    GpuKernels kernels(text);
    FAIL() << "should be refused";
  } catch (const Error &e) {
    expectContains(e.what(), {"kernel 'k'", "read.ptx.sreg.clock"});
  }
}

} // namespace
