// What tests of kernels share that one of NVIDIA's libraries computes: launches of a description, the ways in which
// every such kernel is tried, and processes without the library.
#pragma once

#include "Launches.h"

#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <initializer_list>
#include <random>
#include <sstream>
#include <sys/wait.h>

namespace tressel::runtime {

/// The stand-in library's control; ends the process where the library is not there.
template <typename Control> Control &controlOf(const char *file, const char *function) {
  void *opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const auto get = opened ? reinterpret_cast<Control *(*)()>(dlsym(opened, function)) : nullptr;
  if (!get) {
    std::fprintf(stderr, "the stand-in library is not there (standin/%s beside the folder bin of the build)\n", file);
    std::exit(2);
  }
  return *get();
}

/// `text` with one part replaced, which it has.
inline std::string with(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  if (at == std::string::npos)
    throw RuntimeError("there is no " + from + " in " + text);
  return text.replace(at, from.size(), to);
}

/// A kernel with a call of a library; `more` are other parameters, each with a comma behind it.
inline KernelDesc libraryKernel(const std::string &symbol, const std::string &call, int64_t range,
                                const std::string &more = {}) {
  KernelDesc desc{.symbol = symbol, .provider = "cuda"};
  desc.target = KernelTarget::GpuLibrary;
  desc.params = R"({"threads":32,)" + more + R"("library":)" + call + "}";
  desc.range = range;
  return desc;
}

/// Half a unit in the last place, of 1.
inline double unitOf(DType type) { return type == f32 ? 0x1p-24 : type == f16 ? 0x1p-11 : 0x1p-8; }

/// The operands of a launch on a card.
class Operands {
public:
  Operands(Card &card, DType type, uint64_t seed, int64_t shift = 0, int shifted = -1)
      : card_(card), type_(type), random_(seed), shift_(shift), shifted_(shifted) {}
  Event launch(const DeviceKernelRef &kernel, const KernelDesc &desc, std::span<const int64_t> scalars = {},
               Stream *stream = nullptr, std::span<const Event> waits = {}) {
    return (stream ? *stream : *card_.stream)
        .submit({.kind = DeviceCommandKind::Launch,
                 .regions = regions,
                 .waits = waits,
                 .kernel = kernel.get(),
                 .desc = &desc,
                 .scalars = scalars,
                 .tag = 7});
  }

  std::vector<Region> regions; ///< the result is the last one

protected:
  /// Random values, which `edit` may change, and which the card gets if they are read.
  std::vector<float> add(
      int64_t count, Access access,
      const std::function<void(std::vector<float> &)> &edit = [](std::vector<float> &) {}) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = uniform(random_);
    edit(values);
    std::vector<std::byte> bytes = spell(values, type_);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = load(&bytes[i * size_t(sizeOf(type_))], type_);
    const int64_t shift = shifted_ < 0 || size_t(shifted_) == regions.size() ? shift_ * sizeOf(type_) : 0;
    std::byte *at = card_.allocate(bytes.size() + size_t(shift)) + shift;
    regions.push_back(Card::on(at, bytes.size(), access));
    if (access == Access::Read)
      card_.await(card_.copyIn(at, bytes));
    return values;
  }
  /// The result lies where the operand before does.
  void addInPlace() {
    regions.push_back(regions.back());
    regions.back().access = Access::Write;
  }
  std::vector<float> result() {
    const Region &region = regions.back();
    const std::vector<std::byte> bytes = card_.copyOut(static_cast<std::byte *>(region.address), size_t(region.bytes));
    std::vector<float> values;
    for (size_t i = 0; i < bytes.size(); i += size_t(sizeOf(type_)))
      values.push_back(load(&bytes[i], type_));
    return values;
  }
  /// Empty: `value` is as near as that.
  static std::string compare(std::initializer_list<int64_t> index, double value, double wanted, double bound) {
    if (std::fabs(value - wanted) <= bound || (std::isnan(value) && std::isnan(wanted)))
      return "";
    std::ostringstream text;
    text << "element";
    for (int64_t each : index)
      text << " " << each;
    text << " is " << value << " instead of " << wanted << ", within " << bound;
    return text.str();
  }

private:
  Card &card_;
  const DType type_;
  std::mt19937_64 random_;
  const int64_t shift_;
  const int shifted_;
};

inline void resetDriver() { driver().configure("forget=1 fail=0 fail-kernel=0 error=0 order=eager seed=0 patience=3"); }
/// Another order each time.
inline void nextOrder(uint64_t count) {
  const char *orders[] = {"eager", "late", "random", "reversed"};
  driver().configure(("order=" + std::string(orders[count % 4]) + " seed=" + std::to_string(count)).c_str());
}

/// Two launches at work at the same time on two streams, each of which has a workspace of its own.
template <typename Case>
void expectNoSharedWorkspace(Card &card, const DeviceKernelRef &kernel, const KernelDesc &desc, Case &one, Case &two) {
  const auto other = card.gpu.makeStream(StreamKind::Compute, "", 0);
  driver().configure("order=late");
  const Event ends[] = {one.launch(kernel, desc), two.launch(kernel, desc, {}, other.get())};
  for (const Event &end : ends)
    ASSERT_EQ(card.await(end), "");
  EXPECT_EQ(one.check(), "");
  EXPECT_EQ(two.check(), "");
}

/// Findings of two launches of the same operands on two streams.
inline std::string twoStreams(Card &card, const DeviceKernelRef &kernel, const KernelDesc &desc, Operands &operands,
                              bool waits) {
  const auto other = card.gpu.makeStream(StreamKind::Compute, "", 0);
  const Event first = operands.launch(kernel, desc);
  const Event second =
      operands.launch(kernel, desc, {}, other.get(), waits ? std::span(&first, 1) : std::span<const Event>());
  card.await(first), card.await(second);
  return standin::findings(driver());
}
/// The launch does not wait for what another stream writes to one of its operands.
inline void expectMissingWaitIsFound(Card &card, const DeviceKernelRef &kernel, const KernelDesc &desc,
                                     Operands &operands, size_t operand) {
  const auto other = card.gpu.makeStream(StreamKind::Compute, "", 0);
  const Region filled[] = {operands.regions[operand]};
  const Event fill = other->submit({.kind = DeviceCommandKind::Fill, .regions = filled});
  const Event end = operands.launch(kernel, desc);
  card.await(fill), card.await(end);
  EXPECT_NE(standin::findings(driver()), "") << operand;
  driver().configure("forget=1");
}

/// `tried` launches on a card of its own, and says what is wrong.
inline void expectNothingIsLeftBehind(const std::function<std::string(Card &)> &tried) {
  standin::Alive alive[2];
  for (standin::Alive &each : alive) {
    {
      Card card;
      ASSERT_EQ(tried(card), "");
    }
    each = driver().alive();
  }
  EXPECT_EQ(std::memcmp(&alive[0], &alive[1], sizeof alive[0]), 0);
  EXPECT_EQ(alive[1].allocations, 0u);
}
/// Each call of the driver fails once: the result is right, or an error says what failed.
inline void expectEveryCallMayFail(const std::function<std::string(Card &)> &tried) {
  {
    Card card;
    ASSERT_EQ(tried(card), "");
  } // cards are listed once for the process
  int failed = 0;
  for (uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000u);
    driver().configure(("forget=1 order=random seed=" + std::to_string(n) + " fail=" + std::to_string(n)).c_str());
    std::string message;
    try {
      Card card;
      message = tried(card);
    } catch (const Error &problem) {
      message = problem.what();
    }
    const std::string call = driver().failedCall();
    ASSERT_EQ(standin::findings(driver()), "") << n << ": " << call;
    if (call.empty())
      break;
    EXPECT_EQ(message.find("element"), std::string::npos) << n << ": " << call << ": " << message;
    failed += !message.empty();
  }
  EXPECT_GT(failed, 5);
}
/// A card with too little memory for a workspace.
inline void tryWithLittleMemory(const std::function<std::string(Card &)> &tried) {
  driver().configure("bytes=8388608");
  {
    Card card;
    EXPECT_EQ(tried(card), "");
  }
  driver().configure("bytes=8589934592");
}
/// Loading the kernel is an InputError that begins with `begin`.
inline void expectRefused(Card &card, const KernelDesc &desc, const std::string &begin) {
  try {
    card.load(desc);
    ADD_FAILURE() << desc.params;
  } catch (const InputError &problem) {
    EXPECT_NE(std::string(problem.what()).find(begin), std::string::npos) << problem.what();
  }
}

//--- Processes of their own -------------------------------------------------------------------------------------------
/// A folder that lasts as long as this does; the processes that EXPECT_EXIT begins run all of a test, with the folder
/// of the first.
class TestFolder {
public:
  explicit TestFolder(const char *variable) : variable_(variable) {
    if (char made[] = "/tmp/library-test-XXXXXX"; !std::getenv(variable) && mkdtemp(made))
      setenv(variable, made, 1);
    path = std::getenv(variable);
  }
  ~TestFolder() {
    unsetenv(variable_);
    std::filesystem::remove_all(path);
  }
  TestFolder(const TestFolder &) = delete;
  std::string path;

private:
  const char *const variable_;
};

/// What this program says as a process that has no library that serves: "failed: ..." if it fails. `set` are variables
/// of its environment.
inline std::string notesWithoutLibrary(const std::string &set) {
  char notes[] = "/tmp/library-test-XXXXXX";
  const int file = mkstemp(notes);
  if (file < 0)
    return "failed: no file for the notes";
  close(file);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const int status = std::system((set + " '" + program + "' --without-library 2>" + notes).c_str());
  std::ostringstream text;
  text << std::ifstream(notes).rdbuf();
  std::filesystem::remove(notes);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text.str() : "failed: " + text.str();
}
/// The same of a process that finds the driver, and files in place of the libraries that are none.
inline std::string notesWithoutFiles(std::initializer_list<const char *> files) {
  TestFolder folder("TRESSEL_LIBRARY_TEST_EMPTY");
  Dl_info where;
  if (!dladdr(reinterpret_cast<const void *>(driver().alive), &where))
    return "failed: the driver is not found";
  std::filesystem::create_symlink(std::filesystem::canonical(where.dli_fname), folder.path + "/libcuda.so.1");
  for (const char *name : files)
    std::ofstream(folder.path + "/" + name) << ""; // the system's is not looked for
  return notesWithoutLibrary("TRESSEL_STANDIN_TRIED=1 LD_LIBRARY_PATH='" + folder.path + "'");
}
/// A note is there, once.
inline void expectOnce(const std::string &text, const std::string &note) {
  EXPECT_NE(text.find("failed: "), 0u) << text;
  EXPECT_NE(text.find(note), std::string::npos) << text;
  EXPECT_EQ(text.find(note), text.rfind(note)) << text;
}

/// A main function; `withoutLibrary` launches in a process that has no library that serves, and says what is wrong.
inline int runLibraryTests(int argc, char **argv, const std::function<std::string()> &withoutLibrary) {
  const auto &control = standin::requireStandIn(argv, "cards=1 findings=keep");
  if (argc > 1 && std::string_view(argv[1]) == "--without-library") {
    control.configure("forget=1");
    const std::string wrong = withoutLibrary() + withoutLibrary() + standin::findings(control);
    std::fprintf(stderr, "%s", wrong.c_str());
    return wrong.empty() ? 0 : 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  return RUN_ALL_TESTS();
}

} // namespace tressel::runtime
