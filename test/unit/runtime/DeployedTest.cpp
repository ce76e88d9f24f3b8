// A program that links libtressel_runtime.so alone, and the libraries that this opens for it: there, missing, and what is said of them. And
// that a process has each of them once.
#include "ScheduleBuilder.h"
#include "TestImages.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/MachineContext.h"
#include "tressel/runtime/Package.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <link.h>
#include <set>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;
namespace fs = std::filesystem;

namespace {

/// out = 4 x of four floats, half of it on each of two streams, and a mutable state that counts nothing: its value is added.
ScheduleBuilder twoStreams() {
  const auto floats = ScheduleBuilder::floats(4);
  ScheduleBuilder b(2);
  b.s.name = "main";
  const uint32_t x = b.input("x", floats), out = b.output("out", floats), arena = b.arena(192), bias = b.state("bias", floats, StateKind::Mutable),
                 left = b.buffer(Space::Arena, arena, 0, floats), right = b.buffer(Space::Arena, arena, 64, floats),
                 both = b.buffer(Space::Arena, arena, 128, floats);
  const uint32_t add = b.kernel("add", 4, 4);
  b.s.kernels[add].numInputs = 2;
  b.launch(add, {x, x}, {left});
  const uint32_t onOther = b.launch(add, {x, x}, {right}, {}, 1);
  b.launch(add, {left, right}, {both}, {onOther});
  b.launch(add, {both, bias}, {out});
  return b;
}

class Deployed : public testing::Test {
protected:
  Deployed() {
    fs::create_directories(folder_ / "alone");
    const std::vector<std::byte> image = testImage("kernels");
    const ScheduleBuilder b = twoStreams();
    const PackageFunction functions[] = {{"main", &b.s, {{CpuLevel::Baseline, image}}, {}}};
    const float bias[] = {100, 100, 100, 100};
    const PackageState states[] = {{"bias", ScheduleBuilder::floats(4), std::as_bytes(std::span(bias))}};
    writePackage(package(), functions, states);
    // The runtime without the libraries beside it.
    const fs::path library = fs::canonical(fs::path(TRESSEL_BINARY_DIR) / "lib/libtressel_runtime.so");
    fs::copy_file(library, folder_ / "alone/libtressel_runtime.so.0", fs::copy_options::overwrite_existing);
  }
  ~Deployed() override { fs::remove_all(folder_); }
  std::string package() const { return (folder_ / "two.tsl").string(); }
  std::string alone() const { return (folder_ / "alone").string(); }

  struct Ended {
    int status;
    std::string text;
  };
  Ended run(const std::string &machine, const std::string &libraries = "") const {
    const std::string command = (libraries.empty() ? "" : "LD_LIBRARY_PATH=" + libraries + " ") + TRESSEL_BINARY_DIR + "/bin/deployed " + package() + " " +
                                machine + " 2>&1";
    FILE *pipe = popen(command.c_str(), "r");
    std::string text;
    std::array<char, 512> part;
    while (fgets(part.data(), part.size(), pipe))
      text += part.data();
    return {WEXITSTATUS(pclose(pipe)), text};
  }

private:
  const fs::path folder_ = fs::path(testing::TempDir()) / ("tressel-deployed-" + std::to_string(getpid()));
};

constexpr char kRight[] = "out: 100 104 108 112\nholds memory\n";

} // namespace

TEST_F(Deployed, RunsAScheduleOverStreams) {
  const Ended onDevices = run("cpu");
  EXPECT_EQ(onDevices.text, kRight);
  EXPECT_EQ(onDevices.status, 0);
  EXPECT_EQ(run("").text, kRight) << "the same on the processor alone";
}

TEST_F(Deployed, AMissingLibraryIsOneError) {
  EXPECT_EQ(run("", alone()).text, kRight) << "nothing is needed for the processor alone";
  const Ended missing = run("cpu", alone());
  EXPECT_EQ(missing.status, 1);
  const std::string file = alone() + "/libtressel_devices.so.0";
  EXPECT_TRUE(missing.text.starts_with("a program on the machine 'cpu' needs " + file + ", which cannot be opened: ")) << missing.text;
  EXPECT_EQ(std::count(missing.text.begin(), missing.text.end(), '\n'), 1) << missing.text;
}

TEST_F(Deployed, AMissingMachineIsOneError) {
  fs::copy_file(fs::canonical(fs::path(TRESSEL_BINARY_DIR) / "lib/libtressel_devices.so"), alone() + "/libtressel_devices.so.0");
  EXPECT_EQ(run("cpu", alone()).text, kRight);
  const Ended cuda = run("cuda", alone());
  EXPECT_EQ(cuda.status, 1);
  EXPECT_TRUE(cuda.text.starts_with("the machine 'cuda' needs " + alone() + "/libtressel_cuda.so.0, which cannot be opened: ")) << cuda.text;
  const Ended unknown = run("sim:h100");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_TRUE(unknown.text.starts_with("there is no machine 'sim:h100' for packages")) << unknown.text;
}

/// With the library there, it is the driver or a card that is missing, or the program runs.
TEST_F(Deployed, OpensTheLibraryOfGpus) {
  const Ended cuda = run("cuda");
  EXPECT_TRUE(cuda.text == kRight || cuda.text.starts_with("machine 'cuda' is not there: ")) << cuda.text;
}

/// This program links the compiler's side of the runtime, and still has each library once.
TEST_F(Deployed, AProcessHasEachLibraryOnce) {
  const Package opened = Package::open(package());
  const auto context = MachineContext::open(opened, "cpu");
  float x[] = {0, 1, 2, 3}, out[4];
  const View in{x, ScheduleBuilder::floats(4)}, result{out, ScheduleBuilder::floats(4)};
  context->run({&in, 1}, {&result, 1});
  EXPECT_EQ(out[3], 112);
  EXPECT_EQ(context->outputTypes(std::array{in.type}).front(), result.type);
  const View small{x, ScheduleBuilder::floats(3)};
  EXPECT_THROW(context->run({&small, 1}, {&result, 1}), ShapeError);
  EXPECT_THROW(context->run({&in, 1}, {&small, 1}), ShapeError);

  std::multiset<std::string> loaded;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *to) {
        const std::string name = fs::path(info->dlpi_name).filename().string();
        if (name.starts_with("libtressel_"))
          static_cast<std::multiset<std::string> *>(to)->insert(name.substr(0, name.find(".so")));
        return 0;
      },
      &loaded);
  EXPECT_EQ(loaded.count("libtressel_runtime"), 1u);
  EXPECT_EQ(loaded.count("libtressel_devices"), 1u);
  // One of each singleton: what this program calls is what the library calls.
  for (const char *symbol : {"_ZN7tressel7runtime10ThreadPool6globalEv", "_ZN7tressel7runtime11isFirstNoteESt17basic_string_viewIcSt11char_traitsIcEE",
                             "_ZN7tressel7runtime12DeviceMemory2ofERKSt10shared_ptrINS0_7MachineEE"}) {
    Dl_info info = {};
    void *found = dlsym(RTLD_DEFAULT, symbol);
    ASSERT_TRUE(found && dladdr(found, &info)) << symbol;
    EXPECT_NE(std::string(info.dli_fname).find("libtressel_"), std::string::npos) << symbol << " is in " << info.dli_fname;
  }
}
