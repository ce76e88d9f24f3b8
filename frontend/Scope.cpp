#include "frontend/Record.h"

namespace tressel {
namespace {
thread_local bool trainMode = false;
thread_local int jitDisabledDepth = 0;
thread_local const detail::LocationScope *locationScope = nullptr;
thread_local detail::Recorder *recorder = nullptr;
} // namespace

TrainScope::TrainScope(bool train) : previous_(std::exchange(trainMode, train)) {}
TrainScope::~TrainScope() { trainMode = previous_; }
bool training() { return trainMode; }

DisableJit::DisableJit() { ++jitDisabledDepth; }
DisableJit::~DisableJit() { --jitDisabledDepth; }

namespace detail {

bool jitDisabled() { return jitDisabledDepth > 0; }
bool tracing() { return recorder != nullptr; }

LocationScope::LocationScope(const std::source_location &where, bool library)
    : where_(where), library_(library), parent_(std::exchange(locationScope, this)) {}
LocationScope::~LocationScope() { locationScope = parent_; }
const LocationScope *LocationScope::current() { return locationScope; }

SourceLoc userLine(SourceLoc where) {
  return locationScope && locationScope->library() ? toLoc(locationScope->where()) : where;
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

std::source_location callerOf(const std::source_location &fallback) {
  return locationScope && locationScope->library() ? locationScope->where() : fallback;
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
