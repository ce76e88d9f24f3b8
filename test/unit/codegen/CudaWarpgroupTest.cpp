// Products by warpgroups (sm_90a) and in tensor memory (sm_100a): assembled everywhere, run on a card of their
// architecture or a stand-in for one (TRESSEL_TEST_ON=cuda).
#include "test/standin/StandIn.h"
#include "test/unit/codegen/CudaProductCases.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/GpuCode.h"

#include <functional>
#include <iostream>

using namespace tressel;
using namespace tressel::codegen;
using namespace tressel::codegen::cuda;
using namespace tressel::codegen::cuda::test;

namespace {

std::vector<const char *> tilesOf(const Arch &arch) {
  return arch.name == "sm_90a" ? std::vector<const char *>{"w64", "w128", "w256"}
                               : std::vector<const char *>{"t128", "t256"};
}

/// The architecture of the card that tests run on, if it has such products.
#define NEEDS_OWN_ARCH(arch)                                                                                           \
  if (tressel::test::ownArch().empty())                                                                                \
    GTEST_SKIP() << "TRESSEL_TEST_ON=cuda, and a card of compute capability 9.0 or 10.0 or a stand-in for one";        \
  const Arch &arch = findArch(tressel::test::ownArch())

TEST(CudaWarpgroup, EveryTileAndLayout) {
  NEEDS_OWN_ARCH(arch);
  for (const DType type : {f16, bf16})
    for (const char *tile : tilesOf(arch))
      for (int layout = 0; layout < 4; ++layout) {
        Random random(23);
        const int64_t rows = tile[1] == '6' ? 64 : 128, columns = std::stoll(tile + 1);
        const bool left = layout & 1, right = layout & 2;
        auto check = [&](const ProductCase &c) {
          ASSERT_NE(checkProduct(c, type, tile, arch, random), "") << tile << ", layout " << layout;
        };
        check({1, rows, columns, 64, left, right});           // one step
        check({1, rows + 8, columns + 16, 344, left, right}); // more steps than the ring has stages; edges of all three
        check({2, 40, 24, 72, left, right, /*rightShared=*/layout == 3}); // less than a tile
        if (layout % 3 == 0)
          check({1, 16, columns + 8, 24, left, right, false, /*gap=*/8});
        check({1, rows + 24, 16, 80, left, right, false, 0, /*symbolic=*/layout == 0 ? 1 : 0});
        if (HasFatalFailure())
          return;
      }
}

/// Blocks of a cluster have parts of the depth, some of more steps than their ring has stages.
TEST(CudaWarpgroup, BlocksShareTheDepth) {
  NEEDS_OWN_ARCH(arch);
  for (const char *tile : tilesOf(arch))
    for (const int parts : {2, 4, 8}) {
      Random random(41);
      const DType type = parts == 4 ? f16 : bf16;
      const int64_t rows = tile[1] == '6' ? 64 : 128, columns = std::stoll(tile + 1);
      auto check = [&](const ProductCase &c) {
        const std::string text = checkProduct(c, type, tile, arch, random, nullptr, parts);
        ASSERT_NE(text.find(" cluster "), std::string::npos) << tile << ", " << parts << " parts: " << text;
      };
      check({1, rows, columns, parts * 64, parts == 2, parts == 4});
      check({2, rows + 8, 40, parts == 2 ? 1032 : parts * 64 + 72, false, true, /*rightShared=*/true});
      if (parts == 4)
        check({1, rows + 24, 16, 328, false, false, false, 0, /*symbolic=*/1});
      if (HasFatalFailure())
        return;
    }
}

TEST(CudaWarpgroup, SizesThatAreKnownAtTheLaunch) {
  NEEDS_OWN_ARCH(arch);
  Random random(29);
  // The rows of the left matrix, and the rows' length of a right one whose neighbours are along the depth.
  for (const int symbolic : {1, 2})
    for (const int64_t size : {8, 200})
      EXPECT_NE(checkProduct({1, symbolic == 1 ? size : 72, symbolic == 1 ? 72 : size, 136, false,
                              /*rightTransposed=*/symbolic == 2, false, 0, symbolic},
                             bf16, tilesOf(arch).front(), arch, random),
                "");
}

std::string chosen(const MatrixProduct &p, DType type, const Arch &arch) {
  auto kernel = makeProductKernel("k", p, type, {0, 1}, plainStore(type, 3), {}, arch);
  return kernel ? functionOf(kernel->text) : "";
}

TEST(CudaWarpgroup, AreChosenWhereOperandsSuitTensorMaps) {
  const Arch &arch = findArch("sm_90a");
  auto dense = [](int64_t m, int64_t n, int64_t k) { return MatrixProduct{1, m, n, k, {0, k, 1}, {0, n, 1}}; };
  EXPECT_EQ(chosen(dense(4096, 4096, 4096), bf16, arch), "warpgroup_product_bf16_w256");
  EXPECT_EQ(chosen(dense(4096, 4096, 4096), f16, arch), "warpgroup_product_f16_w256");
  EXPECT_EQ(chosen(dense(4096, 4096, 4096), bf16, findArch("sm_90")), "product_bf16_128");
  EXPECT_EQ(chosen(dense(4096, 4096, 4096), bf16, findArch("sm_100a")), "tensor_product_bf16_t256");
  EXPECT_EQ(chosen(dense(4096, 4096, 4096), f32, arch), "product_f32_128") << "f32 means f32";
  EXPECT_EQ(chosen(dense(1, 4096, 4096), f16, arch), "thin_rows_f16_1");
  EXPECT_EQ(chosen(dense(4096, 4096, 4100), bf16, arch), "product_bf16_128")
      << "rows of the left matrix are no multiple of 16 bytes";
  EXPECT_EQ(chosen(dense(4096, 4090, 4096), bf16, arch), "product_bf16_128") << "nor those of the right one";
  EXPECT_EQ(chosen({1, 4096, 4096, 4096, {0, 8192, 2}, {0, 4096, 1}}, bf16, arch), "product_bf16_128")
      << "no neighbours";
  EXPECT_EQ(chosen({2, 4096, 4096, 4096, {4096 * 4096 + 4, 4096, 1}, {0, 4096, 1}}, bf16, arch), "product_bf16_128")
      << "nor matrices of the batch";
}

TEST(CudaWarpgroup, TheOtherArchitecturesHaveAnotherForm) {
  const MatrixProduct p{1, 4096, 4096, 4096, {0, 4096, 1}, {0, 4096, 1}};
  const auto kernel = makeProductKernel("k", p, bf16, {0, 1}, plainStore(bf16, 3), {}, findArch("sm_90a"));
  ASSERT_TRUE(kernel && kernel->portable);
  EXPECT_EQ(&kernel->formFor(findArch("sm_90a")), &*kernel);
  for (const Arch &arch : architectures())
    EXPECT_EQ(functionOf(kernel->formFor(arch).text), "product_bf16_128");
  EXPECT_EQ(
      launchParams(*kernel),
      R"({"threads":288,"operands":3,"scalars":0,"arch":"sm_90a","shared":197712,"maps":[)"
      R"({"operand":0,"type":"bf16","sizes":[4096,4096],"strides":[4096],"box":[64,128]},)"
      R"({"operand":1,"type":"bf16","sizes":[4096,4096],"strides":[4096],"box":[64,64]}],"portable":{"threads":256,"blocks":1024}})");
}

TEST(CudaWarpgroup, Assembles) {
  if (std::string why; assemblerName(&why).empty())
    GTEST_SKIP() << why;
  const Size s = dim::symbol("s");
  for (const char *name : {"sm_90a", "sm_100a"})
    for (const DType type : {f16, bf16})
      for (const char *tile : tilesOf(findArch(name)))
        for (int layout = 0; layout < 4; ++layout) {
          const Arch &arch = findArch(name);
          MatrixProduct p{2, 1024, 1024, 1000, {1024000, 1000, 1}, {0, 1024, 1}};
          if (layout & 1)
            p.m = s * 8, p.left = {s * 8000, 1, s * 8};
          if (layout & 2)
            p.right = {1024000, 1, 1000};
          auto kernel = makeProductKernel("k", p, type, {0, 1}, plainStore(type, 3),
                                          layout & 1 ? std::vector<Size>{s} : std::vector<Size>(), arch, tile,
                                          layout > 1 ? 4 : 1);
          ASSERT_TRUE(kernel) << tile << ", layout " << layout;
          const GpuKernel gpu(*kernel, arch, /*emulate=*/false);
          EXPECT_EQ(gpu.ptx.find(".local"), std::string::npos) << "sums live in registers";
          std::cout << functionOf(kernel->text) << ", layout " << layout << ": " << gpu.assembleFor(arch)
                    << " registers\n";
        }
}

/// Three products, each of the one before, as a graph whose operands are elsewhere in later submissions.
void runAsGraph(const Arch &arch, int parts) {
  using namespace tressel::runtime;
  using Operand = tressel::codegen::cuda::test::Operand;
  constexpr int64_t kRows = 72, kSize = 200, kBytes = kRows * kSize * 2, kRightBytes = kSize * kSize * 2;
  const auto kernel = makeProductKernel("k", {1, kRows, kSize, kSize, {0, kSize, 1}, {0, kSize, 1}}, bf16, {0, 1},
                                        plainStore(bf16, 3), {}, arch, tilesOf(arch).front(), parts);
  ASSERT_TRUE(kernel && kernel->cluster == parts);
  auto codes = std::make_shared<std::vector<GpuCode>>(1);
  codes->front().arch = arch.name, codes->front().ptx = GpuKernel(*kernel, arch, /*emulate=*/false).ptx;
  const auto machine = openMachine("cuda");
  Device &card = machine->at({DeviceKind::Gpu, 0});
  const KernelDesc desc{.symbol = "k",
                        .provider = "cuda",
                        .target = KernelTarget::Gpu,
                        .params = launchParams(*kernel),
                        .range = kernel->blocks,
                        .grain = 1};
  const KernelCode code{.desc = &desc};
  const DeviceKernelRef loaded = card.load({&code, 1}, codes).front();
  const Home host{{}, MemoryKind::Host}, home{card.caps().device, MemoryKind::Device};
  const auto stream = card.makeStream(StreamKind::Compute, "test");
  // The right matrix moves column c to c + 1.
  Random random(37);
  Operand left[2] = {Operand(bf16, kRows * kSize, &random), Operand(bf16, kRows * kSize, &random)},
          right(bf16, kSize * kSize);
  for (int64_t i = 0; i < kSize; ++i)
    for (int64_t j = 0; j < kSize; ++j)
      right.set(i * kSize + j, j == (i + 1) % kSize);
  auto onCard = [&](Operand &from) {
    void *const to = card.allocate(from.bytes(), MemoryKind::Device);
    const Region both[] = {{from.data(), from.bytes(), Access::Read, host}, {to, from.bytes(), Access::Write, home}};
    const Event copied = stream->submit({.kind = DeviceCommandKind::Copy, .regions = both});
    machine->awaitAny({&copied, 1}, int64_t(10) * 1'000'000'000);
    return to;
  };
  void *const lefts[] = {onCard(left[0]), onCard(left[1])}, *const moves = onCard(right);
  void *steps[3];
  for (void *&step : steps)
    step = card.allocate(kBytes, MemoryKind::Device);
  void *operands[3][3] = {{lefts[0], moves, steps[0]}, {steps[0], moves, steps[1]}, {steps[1], moves, steps[2]}};
  const Region regions[] = {{nullptr, kBytes, Access::Read, home},
                            {nullptr, kRightBytes, Access::Read, home},
                            {nullptr, kBytes, Access::Write, home}};
  std::vector<GroupCommand> commands;
  for (auto &addresses : operands)
    commands.push_back(
        {.stream = 0,
         .command = {.kind = DeviceCommandKind::Launch, .regions = regions, .kernel = loaded.get(), .desc = &desc},
         .addresses = addresses,
         .after = {},
         .events = {}});
  Stream *const streams[] = {stream.get()};
  const auto group = machine->record(streams, commands);
  for (int submission = 0; submission < 5; ++submission) {
    Operand &from = left[submission / 2 % 2]; // other addresses every second time
    operands[0][0] = lefts[submission / 2 % 2];
    std::vector<Event> ends(3);
    group->submit({}, 0, ends);
    machine->awaitAny({&ends[2], 1}, int64_t(10) * 1'000'000'000);
    ASSERT_EQ(ends[2].state(), Semaphore::State::Reached) << "submission " << submission;
    Operand got(bf16, kRows * kSize);
    card.read(got.data(), steps[2], got.bytes());
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kSize; ++j)
        ASSERT_EQ(got[i * kSize + (j + 3) % kSize], from[i * kSize + j])
            << "submission " << submission << " at " << i << ", " << j;
  }
  for (void *memory : {lefts[0], lefts[1], moves, steps[0], steps[1], steps[2]})
    card.release(memory);
}
TEST(CudaWarpgroup, AreNodesOfGraphs) {
  NEEDS_OWN_ARCH(arch);
  for (const int parts : {1, 2})
    runAsGraph(arch, parts);
}

// --- Mistakes are noticed
// ----------------------------------------------------------------------------------------------

/// Whether a product with that mistake in its PTX, or in what the launcher seems to do, fails or is wrong.
bool isNoticed(const std::function<bool(std::string &)> &change, const std::string &plant = "none", int parts = 1) {
  const Arch &arch = findArch(tressel::test::ownArch());
  const int64_t m = 72, n = 80, k = 600;
  auto kernel = makeProductKernel("k", {1, m, n, k, {0, k, 1}, {0, n, 1}}, bf16, {0, 1}, plainStore(bf16, 3), {}, arch,
                                  tilesOf(arch).front(), parts);
  GpuKernel gpu(*kernel, arch, /*emulate=*/false);
  if (!change(gpu.ptx)) {
    std::cerr << "the text that the mistake is made in is not there\n";
    return false;
  }
  Random random(31);
  Operand a(bf16, m * k, &random), b(bf16, k * n, &random), out(bf16, m * n);
  void *const buffers[] = {a.data(), b.data(), out.data()};
  const int64_t bytes[] = {a.bytes(), b.bytes(), out.bytes()}, blocks = kernel->blocks.number();
  const auto module = tressel::test::onCard(gpu.ptx, std::string(arch.name), launchParams(*kernel));
  tressel::standin::control()->configure(("plant=" + plant).c_str());
  try {
    if (module->run({"k", kernel->threads, buffers, {}, bytes}, 0, blocks, blocks) != 0)
      return true;
  } catch (const std::exception &problem) {
    std::cerr << problem.what() << "\n";
    return true;
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double want = 0;
      for (int64_t d = 0; d < k; ++d)
        want += a[i * k + d] * b[d * n + j];
      if (!(std::abs(out[i * n + j] - want) <= 1e-2 * std::abs(want) + 1e-2))
        return true;
    }
  return false;
}

/// Removes the `number`-th occurrence of a line that has this text.
std::function<bool(std::string &)> without(const std::string &what, int number = 0, const std::string &instead = "") {
  return [=](std::string &ptx) {
    size_t at = ptx.find(what);
    for (int i = 0; i < number && at != std::string::npos; ++i)
      at = ptx.find(what, at + 1);
    if (at == std::string::npos)
      return false;
    ptx.replace(at, ptx.find('\n', at) - at, instead);
    return true;
  };
}
/// A wait for an mbarrier that does not repeat.
std::function<bool(std::string &)> withoutWait(int number) {
  return [=](std::string &ptx) {
    size_t at = ptx.find("mbarrier.try_wait");
    for (int i = 0; i < number && at != std::string::npos; ++i)
      at = ptx.find("mbarrier.try_wait", at + 1);
    const size_t branch = at == std::string::npos ? at : ptx.find("bra", at);
    if (branch == std::string::npos)
      return false;
    const size_t line = ptx.rfind('\n', branch);
    ptx.erase(line, ptx.find('\n', branch) - line);
    return true;
  };
}

/// Both halves of a barrier of the cluster.
std::function<bool(std::string &)> withoutClusterBarrier(int number) {
  return [=](std::string &ptx) {
    return without("barrier.cluster.arrive", number)(ptx) && without("barrier.cluster.wait", number)(ptx);
  };
}

TEST(CudaWarpgroupDeathTest, MistakesAreNoticed) {
  if (!tressel::standin::control())
    GTEST_SKIP() << "on the stand-in driver alone";
  NEEDS_OWN_ARCH(arch);
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // each in a process of its own: a card stays lost
  const auto same = [](std::string &) { return true; };
  struct Case {
    const char *name;
    std::function<bool(std::string &)> change;
    const char *plant = "none";
    bool isMistake = true;
    int parts = 1;
  };
  std::vector<Case> cases = {
      {"none", same, "none", false},
      {"a stride of a tensor map", same, "map-stride"},
      {"the swizzle of a tensor map", same, "map-swizzle"},
      {"no wait for an empty stage", withoutWait(0)},
      {"no wait for a full stage", withoutWait(1)},
      {"no fence behind the barriers' initialization", without("fence.mbarrier_init")},
      {"a stage's bytes are not expected", without("mbarrier.arrive.expect_tx")},
      {"none, in a cluster", same, "none", false, 4},
      {"blocks do not meet before they read each other's sums", withoutClusterBarrier(0), "none", true, 4},
      {"blocks end while others read their sums", withoutClusterBarrier(1), "none", true, 4},
  };
  const std::vector<Case> ofWarpgroups = {
      {"no wait for the sums", without("wgmma.wait_group.sync.aligned 0")},
      {"no wait before a stage is given back", without("wgmma.wait_group.sync.aligned \t1")},
      {"no fence before the products", without("wgmma.fence")},
      {"products that are in no group", without("wgmma.commit_group")},
      {"stages that are not given back", without("mbarrier.arrive.shared.b64")},
  };
  const std::vector<Case> ofTensorMemory = {
      {"no wait for the end", withoutWait(2)},
      {"no wait for the sums", without("tcgen05.wait::ld")},
      {"stages that are not given back", without("tcgen05.commit")},
      {"the end is not told", without("tcgen05.commit", 1)},
      {"no fence before the sums are read", without("tcgen05.fence::after_thread_sync", 2)},
      {"tensor memory that is not given back", without("tcgen05.dealloc")},
  };
  const auto &more = arch.name == "sm_90a" ? ofWarpgroups : ofTensorMemory;
  cases.insert(cases.end(), more.begin(), more.end());
  for (const auto &c : cases)
    EXPECT_EXIT(std::exit(isNoticed(c.change, c.plant, c.parts) == c.isMistake ? 0 : 1), testing::ExitedWithCode(0), "")
        << c.name;
}

} // namespace
