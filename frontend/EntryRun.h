// A call of a jitted function through one of its programs.
#pragma once

#include "frontend/JitEntry.h"

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace tressel::detail {

/// Runs an entry's program, and gives the tensor that a TraceResult stands for.
class EntryRun {
public:
  /// `keep` as of Program::run. `serial` is the function's.
  EntryRun(JitEntry &entry, std::recursive_mutex &serial, const CallArgs &args, const std::source_location &where,
           std::unique_ptr<Program::Slot> *keep)
      : entry_(entry), inputs_(args.tensors()), where_(toLoc(where)) {
    Traced &t = entry.traced;
    if (!t.updated.empty())
      addUpdated(serial);
    const size_t n = t.program ? t.program->numOutputs() : 0;
    if (n > kFew)
      many_.reset(new Tensor[n]);
    outputs_ = {many_ ? many_.get() : few_, n};
    if (t.program)
      t.program->run(inputs_, outputs_, where_, keep);
    for (size_t i = 0; i < t.updated.size(); ++i)
      Variable(t.updated[i]).assign(get(t.updates[i]), where);
  }
  Tensor get(const TraceResult &r) const {
    switch (r.kind) {
    case TraceResult::Kind::Output:
      return outputs_[r.index];
    case TraceResult::Kind::Input:
      return *inputs_[r.index];
    case TraceResult::Kind::State:
      return entry_.traced.states[r.index]->value;
    case TraceResult::Kind::Constant:
      break;
    }
    return r.constant;
  }
  /// The same for the last one that is asked for.
  Tensor take(const TraceResult &r) {
    return r.kind == TraceResult::Kind::Output ? std::move(outputs_[r.index]) : get(r);
  }

private:
  /// Of a program that assigns Variables: their values are further inputs, and it runs alone.
  struct Updated {
    std::unique_lock<std::recursive_mutex> serial;
    std::vector<const Tensor *> inputs;
    std::vector<Tensor> current;
  };
  [[gnu::noinline]] void addUpdated(std::recursive_mutex &serial) {
    const auto &updated = entry_.traced.updated;
    updated_ = std::make_unique<Updated>();
    updated_->serial = std::unique_lock(serial);
    updated_->inputs.assign(inputs_.begin(), inputs_.end());
    updated_->current.reserve(updated.size());
    for (const auto &variable : updated) {
      if (entry_.traced.program)
        entry_.traced.program->checkNotFailed(*variable, where_, entry_.traced.program->schedule().name.c_str());
      updated_->inputs.push_back(&updated_->current.emplace_back(variable->value));
    }
    inputs_ = updated_->inputs;
  }

  static constexpr size_t kFew = 2;
  JitEntry &entry_;
  std::span<const Tensor *const> inputs_;
  SourceLoc where_;
  std::unique_ptr<Updated> updated_;
  Tensor few_[kFew];
  std::unique_ptr<Tensor[]> many_;
  std::span<Tensor> outputs_;
};

} // namespace tressel::detail
