// PTX to machine code, by each assembler that this machine has.
#include "codegen/cuda/target/Assemble.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace tressel;
using namespace tressel::codegen::cuda;

namespace {

/// For the length of a test.
class Chosen {
public:
  explicit Chosen(const char *name) { setenv("TRESSEL_ASSEMBLER", name, 1); }
  ~Chosen() { unsetenv("TRESSEL_ASSEMBLER"); }
};

/// One kernel with a table on its stack and shared memory, one that does nothing.
const std::string ptx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry busy(.param .u64 a)
{
  .local .align 16 .b8 table[4096];
  .shared .align 4 .b8 s[512];
  .reg .b64 %rd<9>;
  .reg .b32 %r<9>;
  ld.param.u64 %rd1, [a];
  mov.u32 %r1, %tid.x;
  mov.u64 %rd5, table;
  mul.wide.u32 %rd7, %r1, 4;
  add.u64 %rd8, %rd5, %rd7;
  st.local.u32 [%rd8], %r1;
  ld.local.u32 %r5, [%rd5];
  mov.u32 %r3, s;
  st.shared.u32 [%r3], %r5;
  bar.sync 0;
  ld.shared.u32 %r2, [%r3];
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry idle(.param .u64 a)
{
  ret;
}
)";

std::vector<KernelResources> sorted(std::vector<KernelResources> kernels) {
  std::ranges::sort(kernels, {}, &KernelResources::symbol);
  return kernels;
}

class Assemble : public testing::TestWithParam<const char *> {};

TEST_P(Assemble, GivesCodeAndFigures) {
  const Chosen chosen(GetParam());
  std::string why;
  if (assemblerName(&why).empty())
    GTEST_SKIP() << why;
  for (const Arch &arch : architectures()) {
    const auto assembled = assemble(ptx, arch);
    ASSERT_TRUE(assembled);
    EXPECT_EQ(assembled->tool, assemblerName());
    ASSERT_GT(assembled->cubin.size(), 4u);
    EXPECT_EQ(std::memcmp(assembled->cubin.data(), "\177ELF", 4), 0);
    const auto kernels = sorted(assembled->kernels);
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_EQ(kernels[0].symbol, "busy");
    EXPECT_EQ(kernels[0].stackBytes, 4096);
    EXPECT_EQ(kernels[0].sharedBytes, 512);
    EXPECT_EQ(kernels[0].spillStores + kernels[0].spillLoads, 0);
    EXPECT_GT(kernels[0].registers, 2);
    EXPECT_EQ(kernels[1].symbol, "idle");
    EXPECT_EQ(kernels[1].stackBytes + kernels[1].sharedBytes, 0);
  }
}

TEST_P(Assemble, SaysWhyPtxIsRefused) {
  const Chosen chosen(GetParam());
  std::string why;
  if (assemblerName(&why).empty())
    GTEST_SKIP() << why;
  std::string wrong = ptx;
  wrong.replace(wrong.find("bar.sync"), 8, "barsynch");
  try {
    assemble(wrong, findArch("sm_90"));
    FAIL() << "should be refused";
  } catch (const InternalError &e) {
    EXPECT_NE(std::string(e.what()).find("barsynch"), std::string::npos) << e.what();
  }
}

TEST_P(Assemble, FromManyThreads) {
  const Chosen chosen(GetParam());
  std::string why;
  if (assemblerName(&why).empty())
    GTEST_SKIP() << why;
  std::vector<size_t> sizes(4);
  std::vector<std::thread> threads;
  for (size_t &size : sizes)
    threads.emplace_back([&] { size = assemble(ptx, findArch("sm_90"))->cubin.size(); });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t size : sizes)
    EXPECT_EQ(size, sizes[0]);
}
INSTANTIATE_TEST_SUITE_P(By, Assemble, testing::Values("nvjitlink", "ptxas"),
                         [](const auto &info) { return std::string(info.param); });

TEST(Assemblers, AgreeOnFigures) {
  std::vector<std::vector<KernelResources>> all;
  for (const char *name : {"nvjitlink", "ptxas"}) {
    const Chosen chosen(name);
    std::string why;
    const std::string tool = assemblerName(&why);
    if (tool.empty())
      GTEST_SKIP() << why;
    all.push_back(sorted(assemble(ptx, findArch("sm_90"))->kernels));
  }
  ASSERT_EQ(all[0].size(), all[1].size());
  for (size_t i = 0; i < all[0].size(); ++i) {
    const KernelResources &a = all[0][i], &b = all[1][i];
    EXPECT_EQ(a.symbol, b.symbol);
    EXPECT_EQ(a.registers, b.registers);
    EXPECT_EQ(a.spillStores, b.spillStores);
    EXPECT_EQ(a.spillLoads, b.spillLoads);
    EXPECT_EQ(a.stackBytes, b.stackBytes);
    EXPECT_EQ(a.sharedBytes, b.sharedBytes);
  }
}

TEST(Assemblers, CanBeTurnedOff) {
  {
    const Chosen chosen("none");
    std::string why;
    EXPECT_EQ(assemblerName(&why), "");
    EXPECT_EQ(why, "TRESSEL_ASSEMBLER is none");
    EXPECT_FALSE(assemble(ptx, findArch("sm_90")));
  }
  const Chosen chosen("gas");
  EXPECT_THROW(assemblerName(), Error);
}

} // namespace
