// A call of a jitted function through one of its programs.
#pragma once

#include "frontend/jit/JitEntry.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tressel::detail {

/// Runs an entry's program, and gives the tensor that a TraceResult stands for.
class EntryRun {
public:
  /// `keep` as of CompiledFunction::run.
  EntryRun(JitEntry &entry, const CallArgs &args, const std::source_location &where, std::unique_ptr<CompiledFunction::Slot> *keep)
      : entry_(entry), inputs_(args.tensors()), where_(toLoc(where)) {
    CompiledFunction *function = entry.traced.function.get();
    const size_t n = function ? function->numOutputs() : 0;
    if (n > kFew)
      many_.reset(new Tensor[n]);
    outputs_ = {many_ ? many_.get() : few_, n};
    if (function)
      function->run(inputs_, outputs_, where_, keep);
  }
  Tensor get(const TraceResult &r) const {
    switch (r.kind) {
    case TraceResult::Kind::Output:
      return outputs_[r.index];
    case TraceResult::Kind::Input:
      return *inputs_[r.index];
    case TraceResult::Kind::State:
      return entry_.traced.states[r.index]->get(where_);
    case TraceResult::Kind::Constant:
      break;
    }
    return r.constant;
  }
  /// The same for the last result, without a copy of the handle.
  Tensor take(const TraceResult &r) {
    return r.kind == TraceResult::Kind::Output ? std::move(outputs_[r.index]) : get(r);
  }

private:
  static constexpr size_t kFew = 2;
  JitEntry &entry_;
  std::span<const Tensor *const> inputs_;
  SourceLoc where_;
  Tensor few_[kFew];
  std::unique_ptr<Tensor[]> many_;
  std::span<Tensor> outputs_;
};

} // namespace tressel::detail
