#include "tressel/runtime/Image.h"

#include "TestImages.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"

#include <elf.h>
#include <gtest/gtest.h>

using namespace tressel;
using namespace tressel::runtime;

static void expectRejected(std::span<const std::byte> bytes, const std::string &why) {
  try {
    Image::load(bytes);
    FAIL() << "accepted; expected: " << why;
  } catch (const InputError &e) {
    EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
  }
}

TEST(Image, RunsKernels) {
  auto image = Image::load(testImage("kernels"));
  auto add = reinterpret_cast<KernelFn>(image->find("add"));
  ASSERT_NE(add, nullptr);
  float a[] = {1, 2, 3}, b[] = {10, 20, 30}, out[3] = {};
  void *buffers[] = {a, b, out};
  KernelArgs args{buffers, nullptr, nullptr, 0, nullptr, 0};
  EXPECT_EQ(add(&args, 1, 3), kKernelOk);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[2], 33);
  EXPECT_EQ(image->find("missing"), nullptr);
}

TEST(Image, EqualImagesAreSeparate) {
  const auto bytes = testImage("kernels");
  auto first = Image::load(bytes), second = Image::load(bytes);
  EXPECT_NE(first->find("answer"), second->find("answer"));
  // A descriptor that is used again must not be taken for the library loaded through it before.
  auto third = Image::load(bytes);
  EXPECT_NE(first->find("answer"), third->find("answer"));
}

TEST(Image, RejectsWhatItCannotRun) {
  expectRejected({}, "truncated");
  expectRejected(testImage("imports"), "imports 'expf'");
  expectRejected(testImage("constructor"), "runs code");
  std::vector<std::byte> text(200, std::byte{'x'});
  expectRejected(text, "not an ELF");
  auto other = testImage("kernels");
  other[offsetof(Elf64_Ehdr, e_machine)] = std::byte{EM_AARCH64};
  expectRejected(other, "another kind of CPU");
}

TEST(Image, TruncatedFilesAreRejected) {
  const auto bytes = testImage("kernels");
  for (size_t n = 0; n < bytes.size(); n += 64)
    EXPECT_THROW(Image::load(std::span(bytes).first(n)), InputError) << n;
}

TEST(KernelProviders, AreFoundByName) {
  EXPECT_EQ(findKernelProvider("nobody"), nullptr);
  registerKernelProvider("test", [](const KernelDesc &) { return LoadedKernel{}; });
  EXPECT_NE(findKernelProvider("test"), nullptr);
}
