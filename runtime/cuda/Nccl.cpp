#include "Nccl.h"

#include "GpuLibraries.h"
#include "runtime/types/Concat.h"

#include <dlfcn.h>

namespace tressel::runtime::cuda {
namespace {

constexpr const char *kFile = "libnccl.so.2";
constexpr int kOldestVersion = 22800;

struct Opened {
  Nccl library;
  std::string why; ///< empty if it serves
};

Opened open() {
  Opened opened;
  Nccl &library = opened.library;
  // The version first: an older one lacks functions.
  opened.why = openLibrary(kFile, [&](const FindSymbol &find) {
    library.ncclGetVersion = reinterpret_cast<decltype(library.ncclGetVersion)>(find("ncclGetVersion"));
  });
  if (!opened.why.empty())
    return opened;
  if (library.ncclGetVersion(&library.version) != nccl::kDone || library.version < kOldestVersion) {
    opened.why = concat(kFile, " is NCCL ", versionText(static_cast<size_t>(library.version)),
                        ", and 2.28.0 is the oldest that serves");
    return opened;
  }
  opened.why = openLibrary(kFile, [&](const FindSymbol &find) {
#define TRESSEL_NCCL_FIND(result, name, params) library.name = reinterpret_cast<result(*) params>(find(#name));
    TRESSEL_NCCL_FUNCTIONS(TRESSEL_NCCL_FIND)
#undef TRESSEL_NCCL_FIND
  });
  void *const handle = dlopen(kFile, RTLD_NOW | RTLD_NOLOAD);
#define TRESSEL_NCCL_FIND(result, name, params) library.name = reinterpret_cast<result(*) params>(dlsym(handle, #name));
  TRESSEL_NCCL_NEWER_FUNCTIONS(TRESSEL_NCCL_FIND)
#undef TRESSEL_NCCL_FIND
  return opened;
}

} // namespace

const Nccl *Nccl::find(std::string *why) {
  static const Opened &opened = *new Opened(open());
  if (why)
    *why = opened.why;
  return opened.why.empty() ? &opened.library : nullptr;
}

std::string Nccl::describe(nccl::Status status, nccl::Comm comm) const {
  const char *const text = ncclGetErrorString(status), *const last = comm ? ncclGetLastError(comm) : nullptr;
  return concat(text ? text : "an error", " (status ", status, ")", last && last[0] ? ": " : "", last ? last : "");
}

} // namespace tressel::runtime::cuda
