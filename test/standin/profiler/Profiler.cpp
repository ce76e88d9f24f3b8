// A profiler that takes NVIDIA's tools extension: what NVTX_INJECTION64_PATH names. It writes a line for each call to the file STANDIN_PROFILER, ranges indented by their depth in
// the thread, and at the end of the process how many there were.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

// As NVTX 3 lays them out (nvtxDetail/nvtxTypes.h).
using AnyFunction = void (*)();
struct Callbacks {
  size_t bytes;
  int (*functionsOf)(int module, AnyFunction ***functions, unsigned *count);
};
struct Version {
  size_t bytes;
  uint32_t version, reserved;
  void (*set)(uint32_t);
};
struct Attributes {
  uint16_t version, bytes;
  uint32_t category;
  int32_t colorKind;
  uint32_t color;
  int32_t payloadKind, reserved;
  uint64_t payload;
  int32_t messageKind;
  const char *message;
};
static_assert(sizeof(Attributes) == 48);

struct Log {
  std::mutex mutex;
  std::FILE *file = nullptr;
  long begun = 0, ended = 0;
  ~Log() {
    if (file) {
      std::fprintf(file, "%ld ranges, %ld ended\n", begun, ended);
      std::fclose(file);
    }
  }
};
Log log;
thread_local int depth = 0;
int domain; // its address is the handle

void *createDomain(const char *name) {
  std::lock_guard lock(log.mutex);
  std::fprintf(log.file, "domain %s\n", name);
  return &domain;
}
int push(void *where, const Attributes *attributes) {
  std::lock_guard lock(log.mutex);
  const bool isKnown = where == &domain && attributes->version == 3 && attributes->bytes == sizeof(Attributes) && attributes->messageKind == 1;
  std::fprintf(log.file, "%*srange %s\n", 2 * depth, "", isKnown ? attributes->message : "that means nothing");
  ++log.begun;
  return depth++;
}
int pop(void *where) {
  std::lock_guard lock(log.mutex);
  if (where != &domain || depth == 0)
    std::fprintf(log.file, "an end without a range\n");
  ++log.ended;
  return --depth;
}
void nameStream(void *, const char *name) {
  std::lock_guard lock(log.mutex);
  std::fprintf(log.file, "stream %s\n", name);
}

} // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*table)(uint32_t)) {
  const char *path = std::getenv("STANDIN_PROFILER");
  log.file = path ? std::fopen(path, "w") : nullptr;
  const auto *callbacks = static_cast<const Callbacks *>(table(1));
  const auto *version = static_cast<const Version *>(table(3));
  AnyFunction **core = nullptr, **cuda = nullptr;
  unsigned numCore = 0, numCuda = 0;
  if (!log.file || !callbacks || callbacks->bytes < sizeof(Callbacks) || !version || version->version != 3 || !callbacks->functionsOf(5, &core, &numCore) ||
      !callbacks->functionsOf(2, &cuda, &numCuda) || numCore < 16 || numCuda < 9)
    return 0;
  version->set(3);
  *core[12] = reinterpret_cast<AnyFunction>(createDomain);
  *core[4] = reinterpret_cast<AnyFunction>(push);
  *core[5] = reinterpret_cast<AnyFunction>(pop);
  *cuda[5] = reinterpret_cast<AnyFunction>(nameStream);
  return 1;
}
