#include "Cudnn.h"

#include "GpuLibraries.h"
#include "runtime/types/Concat.h"

#include <map>
#include <memory>
#include <utility>

namespace tressel::runtime::cuda {
namespace {

constexpr size_t kOldestVersion = 90000;
constexpr const char *kFile = "libcudnn.so.9";

struct Opened {
  Cudnn library;
  std::string why; ///< it does not serve; empty: it does
};

Opened open() {
  Opened opened;
  Cudnn &library = opened.library;
  opened.why = openLibrary(kFile, [&](const FindSymbol &find) {
#define TRESSEL_CUDNN_FIND(result, name, params) library.name = reinterpret_cast<result(*) params>(find(#name));
    TRESSEL_CUDNN_FUNCTIONS(TRESSEL_CUDNN_FIND)
#undef TRESSEL_CUDNN_FIND
  });
  if (!opened.why.empty())
    return opened;
  library.version = library.cudnnGetVersion();
  if (library.version < kOldestVersion)
    opened.why = concat(kFile, " is cuDNN ", versionText(library.version), ", and 9.0.0 is the oldest that serves");
  return opened;
}

} // namespace

const Cudnn *Cudnn::find(const Driver &, std::string *why) {
  static const Opened &opened = *new Opened(open());
  if (why)
    *why = opened.why;
  return opened.why.empty() ? &opened.library : nullptr;
}

Cudnn::CardHandle *Cudnn::handleFor(const Card &card, const Driver &driver, std::string *why) const {
  static std::mutex &mutex = *new std::mutex;
  static auto &handles = *new std::map<const Card *, std::unique_ptr<CardHandle>>;
  std::lock_guard lock(mutex);
  if (const auto known = handles.find(&card); known != handles.end())
    return known->second.get();
  card.use(driver); // the library takes the card of the thread's context
  auto made = std::make_unique<CardHandle>();
  const dnn::Status status = cudnnCreate(&made->handle);
  if (status != dnn::kDone || !made->handle) {
    if (why)
      *why = concat("cudnnCreate failed: ", describe(status));
    return nullptr;
  }
  return (handles[&card] = std::move(made)).get();
}

std::string Cudnn::describe(dnn::Status status) const {
  const char *name = cudnnGetErrorString(status);
  return name ? std::string(name) : concat("status ", status);
}

//--- Descriptors ------------------------------------------------------------------------------------------------------
void CudnnDescriptor::check(dnn::Status status) const {
  if (status != dnn::kDone)
    throw CudnnFailure{status, what_};
}

CudnnDescriptor::CudnnDescriptor(const Cudnn &library, dnn::Kind kind, const char *what)
    : library_(&library), what_(what) {
  check(library.cudnnBackendCreateDescriptor(kind, &descriptor_));
}
CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_)
    library_->cudnnBackendDestroyDescriptor(descriptor_);
}
CudnnDescriptor::CudnnDescriptor(CudnnDescriptor &&other) noexcept
    : library_(other.library_), what_(other.what_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}

CudnnDescriptor &CudnnDescriptor::set(dnn::Attribute attribute, dnn::Type type, int64_t count, const void *values) {
  check(library_->cudnnBackendSetAttribute(descriptor_, attribute, type, count, values));
  return *this;
}
CudnnDescriptor &CudnnDescriptor::set(dnn::Attribute attribute, const std::vector<CudnnDescriptor> &others) {
  std::vector<dnn::Descriptor> all;
  for (const CudnnDescriptor &other : others)
    all.push_back(other.descriptor_);
  return set(attribute, dnn::kTypeDescriptor, static_cast<int64_t>(all.size()), all.data());
}
CudnnDescriptor &CudnnDescriptor::finalize() {
  check(library_->cudnnBackendFinalize(descriptor_));
  return *this;
}

int64_t CudnnDescriptor::count(dnn::Attribute attribute, dnn::Type type) const {
  return read(attribute, type, 0, nullptr);
}
int64_t CudnnDescriptor::read(dnn::Attribute attribute, dnn::Type type, int64_t wanted, void *values) const {
  int64_t count = 0;
  check(library_->cudnnBackendGetAttribute(descriptor_, attribute, type, wanted, &count, values));
  return count;
}
int64_t CudnnDescriptor::number(dnn::Attribute attribute, dnn::Type type) const {
  int64_t value = 0;
  int narrow = 0;
  const bool isWide = type == dnn::kTypeInt64;
  read(attribute, type, 1, isWide ? static_cast<void *>(&value) : &narrow);
  return isWide ? value : narrow;
}
std::vector<CudnnDescriptor> CudnnDescriptor::list(dnn::Attribute attribute, dnn::Kind kind, int64_t most,
                                                   const char *what) const {
  // The library fills descriptors that the caller has made.
  std::vector<CudnnDescriptor> all;
  std::vector<dnn::Descriptor> handles;
  for (int64_t i = 0; i < most; ++i)
    handles.push_back(all.emplace_back(*library_, kind, what).get());
  const int64_t found = most > 0 ? read(attribute, dnn::kTypeDescriptor, most, handles.data()) : 0;
  while (static_cast<int64_t>(all.size()) > found)
    all.pop_back();
  return all;
}

} // namespace tressel::runtime::cuda
