#include "CublasLt.h"

#include "GpuLibraries.h"
#include "runtime/types/Concat.h"

#include <map>
#include <mutex>

namespace tressel::runtime::cuda {
namespace {

constexpr size_t kOldestVersion = 120000;

struct Opened {
  CublasLt library;
  bool serves = false;
  std::string why;
};

/// What is wrong with this file; empty if it serves.
std::string openFile(const char *file, CublasLt &library) {
  const std::string wrong = openLibrary(file, [&](const FindSymbol &find) {
#define TRESSEL_CUBLASLT_FIND(result, name, params) library.name = reinterpret_cast<result(*) params>(find(#name));
    TRESSEL_CUBLASLT_FUNCTIONS(TRESSEL_CUBLASLT_FIND)
#undef TRESSEL_CUBLASLT_FIND
  });
  if (!wrong.empty())
    return wrong;
  library.version = library.cublasLtGetVersion();
  if (library.version < kOldestVersion)
    return concat(file, " is cuBLASLt ", versionText(library.version), ", and 12.0.0 is the oldest that serves");
  return "";
}

Opened open(const Driver &driver) {
  Opened opened;
  for (const auto &[major, file] : {std::pair(13, "libcublasLt.so.13"), std::pair(12, "libcublasLt.so.12")}) {
    CublasLt library;
    const std::string wrong =
        driver.version / 1000 < major ? concat(file, " needs a driver for CUDA ", major) : openFile(file, library);
    if (wrong.empty()) {
      opened.library = library;
      opened.serves = true;
      return opened;
    }
    opened.why += concat(opened.why.empty() ? "" : "; ", wrong);
  }
  return opened;
}

} // namespace

const CublasLt *CublasLt::find(const Driver &driver, std::string *why) {
  static const Opened &opened = *new Opened(open(driver));
  if (why)
    *why = opened.why;
  return opened.serves ? &opened.library : nullptr;
}

lt::Handle CublasLt::handleFor(const Card &card, const Driver &driver, std::string *why) const {
  static std::mutex &mutex = *new std::mutex;
  static auto &handles = *new std::map<const Card *, lt::Handle>;
  std::lock_guard lock(mutex);
  if (const auto known = handles.find(&card); known != handles.end())
    return known->second;
  card.use(driver); // the library takes the card of the thread's context
  lt::Handle handle = nullptr;
  const lt::Status status = cublasLtCreate(&handle);
  if (status != lt::kDone || !handle) {
    if (why)
      *why = concat("cublasLtCreate failed: ", describe(status));
    return nullptr;
  }
  return handles[&card] = handle;
}

std::string CublasLt::describe(lt::Status status) const {
  const char *name = cublasLtGetStatusName(status);
  return name ? std::string(name) : concat("status ", status);
}

} // namespace tressel::runtime::cuda
