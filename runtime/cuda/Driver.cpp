#include "Driver.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <mutex>
#include <pthread.h>

namespace tressel::runtime::cuda {

std::string whyNotOpened(const char *file) {
  const char *said = dlerror();
  const std::string_view why = said ? said : "";
  const bool isMissing = why.starts_with(file) && why.find("No such file") != std::string_view::npos;
  return why.empty() || isMissing ? concat(file, " is not found") : std::string(why);
}

namespace {

constexpr int kVersion = 12000; ///< whose functions are asked for
constexpr Result kInsufficientDriver = 35, kStubLibrary = 34;

std::atomic<bool> forked{false};

struct Opened {
  Driver driver;
  bool serves = false;
  std::string why;
};

Opened open() {
  Opened opened;
  Driver &d = opened.driver;
  const char *names[] = {"libcuda.so.1", "libcuda.so"};
  void *library = nullptr;
  std::string why;
  for (const char *name : names)
    if (!library && !(library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) && why.empty())
      why = whyNotOpened(name);
  if (!library) {
    opened.why = concat("NVIDIA's driver is not installed (", why, ")");
    return opened;
  }
  using GetProcAddress = Result (*)(const char *name, void **function, int version, uint64_t flags, int *found);
  const auto address = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!address) {
    opened.why = "NVIDIA's driver is older than CUDA 12.0 (libcuda.so.1 has no cuGetProcAddress_v2): install a newer one";
    return opened;
  }
  std::string missing;
  // The members are one behind the other, in the order of the names.
#define TRESSEL_CUDA_NAME(name, params) #name,
  static const char *const functions[] = {TRESSEL_CUDA_FUNCTIONS(TRESSEL_CUDA_NAME)};
#undef TRESSEL_CUDA_NAME
  static_assert(offsetof(Driver, version) == std::size(functions) * sizeof(void *));
  for (size_t i = 0; i < std::size(functions); ++i) {
    void *found = nullptr;
    int status = 0;
    if (address(functions[i], &found, kVersion, 0, &status) == kSuccess && found)
      std::memcpy(reinterpret_cast<char *>(&d) + i * sizeof found, &found, sizeof found);
    else
      missing += concat(missing.empty() ? "" : ", ", functions[i]);
  }
  if (!missing.empty()) {
    opened.why = concat("NVIDIA's driver lacks functions of CUDA 12.0 (", missing, "): install a newer one");
    return opened;
  }
#define TRESSEL_CUDA_FIND(name, version, params)                                                                       \
  if (void *found = nullptr; address(#name, &found, version, 0, nullptr) == kSuccess)                                  \
    d.name = reinterpret_cast<Result(*) params>(found);
  TRESSEL_CUDA_NEWER_FUNCTIONS(TRESSEL_CUDA_FIND)
#undef TRESSEL_CUDA_FIND
  const Result begun = d.cuInit(0);
  int count = 0;
  if (begun == kNoDevice || (begun == kSuccess && (d.cuDeviceGetCount(&count) != kSuccess || count == 0))) {
    opened.why = "NVIDIA's driver sees no GPU (is CUDA_VISIBLE_DEVICES set?)";
    return opened;
  }
  if (begun == kInsufficientDriver || begun == kStubLibrary) {
    opened.why = concat("libcuda.so.1 is no working driver: ", d.describe(begun));
    return opened;
  }
  if (begun != kSuccess) {
    opened.why = concat("NVIDIA's driver does not start: ", d.describe(begun));
    return opened;
  }
  d.cuDriverGetVersion(&d.version);
  opened.serves = true;
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  return opened;
}

} // namespace

bool wasForked() { return forked.load(std::memory_order_relaxed); }
void refuseFork() {
  if (wasForked())
    throw RuntimeError(Error::Details{
        .message =
            "this process was forked after its parent had begun to use GPUs, and NVIDIA's driver does not serve it",
        .hint = "fork before the first use of a GPU, or start a new program (posix_spawn, exec)"});
}

const Driver *Driver::find(std::string *why) {
  refuseFork();
  static const Opened &opened = *new Opened(open()); // streams may outlive static objects
  if (why)
    *why = opened.why;
  return opened.serves ? &opened.driver : nullptr;
}

std::string Driver::describe(Result error) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(error, &name) != kSuccess || !name)
    return concat("error ", error);
  if (cuGetErrorString(error, &text) != kSuccess || !text)
    return name;
  return concat(name, " (", text, ")");
}

void Driver::check(Result result, std::string_view what, std::string_view where) const {
  if (result != kSuccess)
    throw RuntimeError(concat(where, ": ", what, " failed: ", describe(result)));
}

std::string Card::architecture() const { return concat("sm_", major, minor); }

void Card::use(const Driver &driver) const {
  driver.check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent", name); // others in the process may set it too
}

const std::vector<Card> &cards(const Driver &driver) {
  static const std::vector<Card> &all = *new std::vector<Card>([&] {
    constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76; // CUdevice_attribute
    std::vector<Card> list;
    int count = 0;
    driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
    for (int i = 0; i < count; ++i) {
      Card card{.ordinal = i};
      char name[256] = "";
      size_t bytes = 0;
      driver.check(driver.cuDeviceGet(&card.device, i), "cuDeviceGet");
      driver.check(driver.cuDeviceGetName(name, sizeof name, card.device), "cuDeviceGetName");
      driver.check(driver.cuDeviceTotalMem(&bytes, card.device), "cuDeviceTotalMem", name);
      driver.check(driver.cuDeviceGetAttribute(&card.major, kMajor, card.device), "cuDeviceGetAttribute", name);
      driver.check(driver.cuDeviceGetAttribute(&card.minor, kMinor, card.device), "cuDeviceGetAttribute", name);
      driver.check(driver.cuDeviceGetAttribute(&card.multiprocessors, kMultiprocessors, card.device), "cuDeviceGetAttribute", name);
      driver.check(driver.cuDevicePrimaryCtxRetain(&card.context, card.device), "cuDevicePrimaryCtxRetain", name);
      card.name = name;
      card.memoryBytes = static_cast<int64_t>(bytes);
      list.push_back(std::move(card));
    }
    for (const Card &card : list)
      for (const Card &peer : list) {
        int can = 0;
        if (&card == &peer || driver.cuDeviceCanAccessPeer(&can, card.device, peer.device) != kSuccess || !can)
          continue;
        card.use(driver);
        driver.cuCtxEnablePeerAccess(peer.context, 0); // copies work without, through the host
      }
    return list;
  }());
  return all;
}

} // namespace tressel::runtime::cuda
