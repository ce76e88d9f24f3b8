#include "frontend/tensor/Machine.h"
#include "frontend/trace/Recorder.h"
#include "frontend/tensor/ThreadState.h"

#include <mutex>
#include <pthread.h>
#include <set>
#include <utility>

namespace tressel {
thread_local constinit detail::ThreadState detail::threadState;

namespace {
/// Bit 0: training. From kDeviceShift on: the index + 2 of the device that computes ops, 0 without one. From
/// kStageShift on: the number + 1 of the stage of a pipeline, 0 without one.
thread_local constinit uint32_t mode = 0;
constexpr uint32_t kDeviceShift = 1, kStageShift = 20;
constexpr uint32_t kDeviceBits = ((1u << kStageShift) - 1) & ~1u;
/// The mode with only this device or stage set; the training bit stays.
uint32_t placedAt(uint32_t place) { return (mode & 1) | place; }
uint32_t deviceBits(int index) { return static_cast<uint32_t>(index + 2) << kDeviceShift; }
uint32_t stageBits(int stage) { return static_cast<uint32_t>(stage + 1) << kStageShift; }
thread_local constinit int jitDisabledDepth = 0;
thread_local constinit uint32_t number = 0;
} // namespace

TrainScope::TrainScope(bool train) : previous_(mode & 1) { mode = (mode & ~1u) | train; }
TrainScope::~TrainScope() { mode = (mode & ~1u) | previous_; }
bool training() { return mode & 1; }

DeviceScope::DeviceScope(Device device) {
  detail::refOf(device); // throws if there is no such device
  previous_ = std::exchange(mode, placedAt(deviceBits(device.index)));
}
DeviceScope::~DeviceScope() { mode = placedAt(previous_ & ~1u); }

StageScope::StageScope(int stage, std::source_location where) : previous_(mode) {
  detail::checkStage(stage, where);
  mode = placedAt(stageBits(stage));
}
StageScope::~StageScope() { mode = placedAt(previous_ & ~1u); }

DisableJit::DisableJit() { ++jitDisabledDepth; }
DisableJit::~DisableJit() { --jitDisabledDepth; }

namespace detail {

uint32_t callMode() { return mode; }
std::optional<runtime::DeviceRef> currentDevice() {
  const uint32_t device = (mode & kDeviceBits) >> kDeviceShift;
  return device ? std::optional(refOf({static_cast<int>(device) - 2})) : std::nullopt;
}

void checkStage(int stage, const std::source_location &where) {
  constexpr int kMost = (1 << (32 - kStageShift)) - 2;
  if (stage < 0 || stage > kMost)
    fail<Error>("there is no stage " + std::to_string(stage), toLoc(where), "stage",
                "stages are counted from 0, to " + std::to_string(kMost) + " at most");
}
std::optional<int> currentStage() {
  const uint32_t stage = mode >> kStageShift;
  return stage ? std::optional(static_cast<int>(stage) - 1) : std::nullopt;
}
GoingBack::GoingBack(std::optional<int> stage)
    : previous_(mode), wasGoingBack_(std::exchange(threadState.goesBack, true)) {
  if (stage)
    mode = placedAt(stageBits(*stage));
}
GoingBack::~GoingBack() {
  mode = placedAt(previous_ & ~1u);
  threadState.goesBack = wasGoingBack_;
}

bool jitDisabled() { return jitDisabledDepth > 0; }
bool tracing() { return threadState.recorder != nullptr; }
bool runsOpByOp() { return threadState.recorder || threadState.tape || jitDisabledDepth > 0; }

namespace {
/// Hands out the smallest free number; threads that end return theirs.
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

namespace {
struct Stack {
  const char *low = nullptr;
  size_t bytes = 0; ///< 0: not known
};
Stack stackOfThread() {
  pthread_attr_t attributes;
  void *low = nullptr;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes))
    return {};
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return {static_cast<const char *>(low), bytes};
}

/// Whether three quarters of the stack are in use, or with `orMore` 13 sixteenths. False where frames are not on the
/// thread's stack (fibers).
bool isStackShort(bool orMore) {
  static thread_local const Stack stack = stackOfThread();
  const char *here = static_cast<const char *>(__builtin_frame_address(0));
  return here >= stack.low && here < stack.low + stack.bytes / 16 * (orMore ? 3 : 4);
}

constexpr uint32_t kUsualDepth = 32, kMostDepth = 10000;
} // namespace

bool enterCall(bool isBody) {
  const uint32_t depth = ++threadState.callDepth;
  if (depth <= kUsualDepth || (depth < kMostDepth + 2 * isBody && !isStackShort(isBody))) [[likely]]
    return true;
  --threadState.callDepth;
  return false;
}
void leaveCall() { --threadState.callDepth; }

void failEndless(const std::string &callee, const std::source_location &where) {
  // The message leaves out the calling modules and their lines, as there are too many.
  throw Error(Error::Details{callee + " calls itself without end: " + std::to_string(threadState.callDepth) +
                                 " calls are in each other",
                             toLoc(where),
                             {},
                             "what ends the recursion must be known while recording, as both branches of cond() are "
                             "recorded; repeat by values with while_loop()"});
}

LocationScope::LocationScope(const std::source_location &where, bool library, const ScopeOwner *owner)
    : where_(where), library_(library), owner_(owner), parent_(std::exchange(threadState.locationScope, this)), mode_(mode) {
  if (!enterCall()) [[unlikely]] {
    threadState.locationScope = parent_;
    failEndless(owner ? "a " + owner->typeName() : "a module", where);
  }
  if (owner && owner->placed) [[unlikely]]
    mode = placedAt(owner->placed << kDeviceShift);
  if (owner && owner->stage) [[unlikely]]
    mode = placedAt(owner->stage << kStageShift);
}
LocationScope::~LocationScope() {
  leaveCall();
  threadState.locationScope = parent_;
  mode = (mode_ & ~1u) | (mode & 1);
}
const LocationScope *LocationScope::current() { return threadState.locationScope; }

/// The outermost of the library's scopes before the first scope of the user's, from the innermost scope outward; or
/// null.
static const LocationScope *libraryScope() {
  const LocationScope *found = nullptr;
  for (const LocationScope *s = threadState.locationScope; s && s->library(); s = s->parent())
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
  for (const LocationScope *s = threadState.locationScope; s; s = s->parent()) {
    SourceLoc line = toLoc(s->where());
    if (line.file != last.file || line.line != last.line)
      lines.push_back(line);
    last = line;
  }
  return lines;
}

std::string modulePath() {
  std::vector<const ScopeOwner *> owners; // innermost first
  for (const LocationScope *s = threadState.locationScope; s; s = s->parent())
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

Recorder *Recorder::current() { return threadState.recorder; }

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

RecorderScope::RecorderScope(Recorder *next) : previous_(std::exchange(threadState.recorder, next)) {}
RecorderScope::~RecorderScope() { threadState.recorder = previous_; }

} // namespace detail
} // namespace tressel
