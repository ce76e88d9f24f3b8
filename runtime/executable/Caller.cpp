#include "Caller.h"

#include "runtime/schedule/ScheduleSizes.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/VerifySchedule.h"

namespace tressel::runtime {

Schedule numbersFor(const Schedule &schedule, const dim::Values &dims) {
  checkDims(schedule, dims);
  Schedule numbers = instantiate(schedule, dims);
  for (const ArenaDesc &arena : numbers.arenas)
    if (arena.bytes.number() > kMaxBytes) // before the verifier reports it as impossible
      throwError<OutOfMemory>("'", schedule.name, "' needs ", arena.bytes, " bytes for these sizes, more than any machine has");
  if (const auto violations = verifySchedule(numbers); !violations.empty())
    throwError<InputError>("schedule '", schedule.name, "' is not safe to run: ", violations[0].message);
  return numbers;
}

dim::Values leastDims(const Schedule &schedule) {
  dim::Values least;
  for (Size symbol : schedule.dims)
    least.bind(symbol, dim::bounds(symbol).lo);
  return least;
}

BoundStates::BoundStates(const Schedule &schedule) : schedule_(schedule), memory_(schedule.states.size(), nullptr) {
  for (uint32_t i = 0; i < schedule.states.size(); ++i)
    if (schedule.states[i].kind != StateKind::Derived)
      callers_.push_back(i);
}

void BoundStates::set(std::span<void *const> states) {
  if (states.size() != callers_.size())
    throwError<Error>("'", schedule_.name, "' has ", callers_.size(), " states to bind, not ", states.size());
  for (size_t i = 0; i < states.size(); ++i)
    if (const StateDesc &state = schedule_.states[callers_[i]]; !states[i] && state.type.bytes())
      throwError<Error>("the memory bound for state '", state.name, "' is null");
  areBound_ = false;
  for (size_t i = 0; i < states.size(); ++i)
    memory_[callers_[i]] = states[i];
}

size_t BoundStates::move(size_t i, void *memory) {
  if (i >= callers_.size() || schedule_.states[callers_[i]].kind != StateKind::Mutable || !areBound_)
    throwError<Error>("state ", i, " of '", schedule_.name, "' cannot be moved: it is no mutable one that is bound");
  memory_[callers_[i]] = memory;
  return callers_[i];
}

void checkArguments(const Schedule &s, std::span<const CallArguments> calls, bool areStatesBound) {
  if (!areStatesBound)
    throwError<Error>("the states of '", s.name, "' are not bound (call bindStates first)");
  struct Range {
    uintptr_t begin, end;
    const std::string *name;
    bool isOutput;
  };
  std::vector<Range> ranges;
  auto add = [&](const ValueDesc &value, const void *data, bool isOutput) {
    const int64_t bytes = value.type.bytes();
    if (!data && bytes)
      throwError<Error>(isOutput ? "output '" : "input '", value.name, "' is null");
    const auto begin = reinterpret_cast<uintptr_t>(data);
    if (bytes)
      ranges.push_back({begin, begin + static_cast<uintptr_t>(bytes), &value.name, isOutput});
  };
  for (const CallArguments &call : calls) {
    if (call.inputs.size() != s.inputs.size() || call.outputs.size() != s.outputs.size())
      throwError<Error>("'", s.name, "' takes ", s.inputs.size(), " inputs and ", s.outputs.size(), " outputs, not ", call.inputs.size(), " and ",
                        call.outputs.size());
    for (size_t i = 0; i < call.inputs.size(); ++i)
      add(s.inputs[i], call.inputs[i], false);
    for (size_t i = 0; i < call.outputs.size(); ++i)
      add(s.outputs[i], call.outputs[i], true);
  }
  // Sorted by begin, a range overlaps an earlier one if it begins before the furthest end so far. Inputs may overlap
  // each other, so the furthest ends of inputs and of outputs are tracked apart.
  std::ranges::sort(ranges, {}, &Range::begin);
  const Range *furthest[2] = {nullptr, nullptr}; // input, output
  for (const Range &range : ranges) {
    for (const Range *before : furthest)
      if (before && range.begin < before->end && (range.isOutput || before->isOutput)) {
        const Range &output = range.isOutput ? range : *before, &other = range.isOutput ? *before : range;
        throwError<Error>("output '", *output.name, "' overlaps ", other.isOutput ? "output '" : "input '", *other.name, "'");
      }
    if (const Range *&last = furthest[range.isOutput]; !last || range.end > last->end)
      last = &range;
  }
}

Error::Details detailsOf(const Schedule &schedule, uint32_t location, std::string message) {
  Error::Details details;
  details.message = std::move(message);
  if (location != 0 && location < schedule.locations.size()) {
    const Location &l = schedule.locations[location];
    details.op = l.op;
    if (!l.file.empty())
      details.where = {internName(l.file), l.line};
  }
  return details;
}

} // namespace tressel::runtime
