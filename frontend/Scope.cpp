#include "frontend/Record.h"

#include <mutex>
#include <set>
#include <utility>

namespace tressel {
namespace {
thread_local constinit bool trainMode = false;
thread_local constinit int jitDisabledDepth = 0;
thread_local constinit const detail::LocationScope *locationScope = nullptr;
thread_local constinit detail::Recorder *recorder = nullptr;
thread_local constinit uint32_t number = 0;
} // namespace

TrainScope::TrainScope(bool train) : previous_(std::exchange(trainMode, train)) {}
TrainScope::~TrainScope() { trainMode = previous_; }
bool training() { return trainMode; }

DisableJit::DisableJit() { ++jitDisabledDepth; }
DisableJit::~DisableJit() { --jitDisabledDepth; }

namespace detail {

bool jitDisabled() { return jitDisabledDepth > 0; }
bool tracing() { return recorder != nullptr; }
bool runsOpByOp() { return recorder || jitDisabledDepth > 0; }

namespace {
/// Numbers of threads that have ended are given again, the smallest first.
class ThreadNumbers {
public:
  static ThreadNumbers &all() {
    static auto *numbers = new ThreadNumbers; // threads may outlive static destruction
    return *numbers;
  }
  uint32_t take() {
    std::lock_guard lock(mutex_);
    if (free_.empty())
      return ++count_;
    const uint32_t n = *free_.begin();
    free_.erase(free_.begin());
    return n;
  }
  void giveBack(uint32_t n) {
    std::lock_guard lock(mutex_);
    free_.insert(n);
  }

private:
  std::mutex mutex_;
  std::set<uint32_t> free_;
  uint32_t count_ = 0;
};

[[gnu::noinline]] uint32_t takeNumber() {
  static thread_local struct AtEnd {
    ~AtEnd() { ThreadNumbers::all().giveBack(std::exchange(number, kEndingThread)); }
  } atEnd;
  (void)atEnd;
  return number = ThreadNumbers::all().take();
}
} // namespace

uint32_t threadNumber() { return number ? number : takeNumber(); }

LocationScope::LocationScope(const std::source_location &where, bool library, const ScopeOwner *owner)
    : where_(where), library_(library), owner_(owner), parent_(std::exchange(locationScope, this)) {}
LocationScope::~LocationScope() { locationScope = parent_; }
const LocationScope *LocationScope::current() { return locationScope; }

/// The outermost of the library's scopes that lie around this place without one of the user's between; or null.
static const LocationScope *libraryScope() {
  const LocationScope *found = nullptr;
  for (const LocationScope *s = locationScope; s && s->library(); s = s->parent())
    found = s;
  return found;
}

SourceLoc userLine(SourceLoc where) {
  const LocationScope *scope = libraryScope();
  return scope ? toLoc(scope->where()) : where;
}

std::vector<SourceLoc> userTrace(SourceLoc where) {
  std::vector<SourceLoc> lines;
  SourceLoc last = userLine(where);
  for (const LocationScope *s = locationScope; s; s = s->parent()) {
    SourceLoc line = toLoc(s->where());
    if (line.file != last.file || line.line != last.line)
      lines.push_back(line);
    last = line;
  }
  return lines;
}

std::string modulePath() {
  std::vector<const ScopeOwner *> owners; // innermost first
  for (const LocationScope *s = locationScope; s; s = s->parent())
    if (s->owner() && (owners.empty() || owners.back() != s->owner()))
      owners.push_back(s->owner());
  if (owners.empty())
    return {};
  std::string path;
  for (size_t i = owners.size() - 1; i-- > 0;)
    if (std::string name = owners[i + 1]->nameOf(*owners[i]); !name.empty())
      path += (path.empty() ? "" : ".") + name;
  const std::string type = owners.front()->typeName();
  return path.empty() ? " (in a " + type + ")" : " (in '" + path + "', a " + type + ")";
}

std::source_location callerOf(const std::source_location &fallback) {
  const LocationScope *scope = libraryScope();
  return scope ? scope->where() : fallback;
}

Recorder *Recorder::current() { return recorder; }

Recorder::Recorder() {
  static std::atomic<uint64_t> count{0};
  number_ = ++count;
}

Tensor Recorder::makeValue(const TensorType &type, void *value, SourceLoc where) {
  auto *impl = new TensorImpl;
  impl->type = type;
  impl->trace = number_;
  impl->number = ++numValues_;
  impl->value = value;
  impl->where = where;
  return Tensor(impl);
}

RecorderScope::RecorderScope(Recorder *next) : previous_(std::exchange(recorder, next)) {}
RecorderScope::~RecorderScope() { recorder = previous_; }

} // namespace detail
} // namespace tressel
