// Files of how kernels for GPUs are cut.
#include "codegen/cuda/tuning/Tunings.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

namespace tressel::codegen::cuda {
namespace {

Kernel kernelOf(std::string text, double seconds = 1) {
  Kernel kernel;
  kernel.text = std::move(text);
  kernel.seconds = seconds;
  return kernel;
}

TEST(GpuTunings, CutsAreWords) {
  for (const char *text :
       {"", "threads 256", "row 32 vector 4", "threads 64 row 64 vector 2", "tile 128", "tile w64 parts 8"})
    EXPECT_EQ(Cut::parse(text).str(), text);
  EXPECT_EQ(Cut::parse("vector 4 row 8").str(), "row 8 vector 4");
  for (const char *text : {"threads", "threads 0", "threads 2048", "row x", "tile", "warps 4", "tile 64 parts",
                           "parts 0", "tile 64 parts 3", "tile 64 parts 16"})
    EXPECT_THROW(Cut::parse(text), InputError) << text;
}

TEST(GpuTunings, AFileKeepsWhatWasMeasured) {
  const Arch &arch = findArch("sm_90"), &other = findArch("sm_80");
  Tunings tunings;
  tunings.add(arch, kernelOf("a"), {.cut = Cut::parse("row 32"), .seconds = 1e-6, .defaultSeconds = 2e-6, .what = "sum \"of\" all"});
  tunings.add(arch, kernelOf("b"),
              {.cut = {}, .seconds = 3e-6, .defaultSeconds = 3e-6, .librarySeconds = 4e-6, .what = "exp"});
  const auto again = Tunings::parse(tunings.toJson(), "file");
  EXPECT_EQ(again->size(), 2u);
  const auto a = again->find(arch, kernelOf("a"));
  ASSERT_TRUE(a);
  EXPECT_EQ(a->cut.str(), "row 32");
  EXPECT_EQ(a->seconds, 1e-6);
  EXPECT_EQ(a->librarySeconds, 0);
  EXPECT_EQ(again->find(arch, kernelOf("b"))->librarySeconds, 4e-6);
  EXPECT_EQ(a->what, "sum \"of\" all");
  EXPECT_FALSE(again->find(arch, kernelOf("c")));
  EXPECT_FALSE(again->find(other, kernelOf("a"))); // each architecture has its own
  EXPECT_EQ(again->toJson(), tunings.toJson());
}

TEST(GpuTunings, AKernelIsMadeAsItWasMeasuredToBeFaster) {
  const Arch &arch = findArch("sm_90");
  auto make = [](const Cut &cut) {
    return cut.tile == "unknown" ? std::nullopt : std::optional(kernelOf("by " + cut.str(), cut == Cut() ? 8 : 100));
  };
  EXPECT_EQ(tuned(arch, make)->text, "by ");
  const auto tunings = std::make_shared<Tunings>();
  tunings->add(arch, kernelOf("by "), {.cut = Cut::parse("threads 64"), .seconds = 1e-6, .defaultSeconds = 4e-6, .what = ""});
  setTunings(tunings);
  EXPECT_EQ(tuned(arch, make)->text, "by threads 64");
  EXPECT_EQ(tuned(arch, make)->seconds, 2); // of the cost model's 8, as it was a quarter
  EXPECT_EQ(tuned(findArch("sm_80"), make)->text, "by ");
  tunings->add(arch, kernelOf("by "), {.cut = Cut::parse("tile unknown"), .seconds = 1e-6, .defaultSeconds = 4e-6, .what = ""}); // of another version
  EXPECT_EQ(tuned(arch, make)->text, "by ");
  setTunings(nullptr);
  EXPECT_EQ(tuned(arch, make)->text, "by ");
}

TEST(GpuTunings, WrongFilesAreSaid) {
  for (
      const char *text :
      {"", "[]", "{}", R"({"version": 2, "architectures": {}})", R"({"version": 1})",
       R"({"version": 1, "architectures": {"sm_90": 1}})",
       R"({"version": 1, "architectures": {"sm_90": {"a": {"cut": "tile 64", "seconds": 1}}}})",
       R"({"version": 1, "architectures": {"sm_90": {"a": {"cut": "tile 64", "seconds": 0, "by_model": 1}}}})",
       R"({"version": 1, "architectures": {"sm_90": {"a": {"cut": "tile 64", "seconds": 1, "by_model": -1}}}})",
       R"({"version": 1, "architectures": {"sm_90": {"a": {"cut": "big", "seconds": 1, "by_model": 1}}}})",
       R"({"version": 1, "architectures": {"sm_90": {"a": {"cut": "tile 64", "seconds": 1, "by_model": 1, "library": -1}}}})"})
    try {
      Tunings::parse(text, "h100.json");
      ADD_FAILURE() << text;
    } catch (const InputError &problem) {
      EXPECT_NE(problem.message().find("h100.json is no file of GPU tunings: "), std::string::npos) << problem.message();
    }
}

} // namespace
} // namespace tressel::codegen::cuda
