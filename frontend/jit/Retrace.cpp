#include "frontend/jit/Retrace.h"

#include <algorithm>

namespace tressel::detail {

void RetraceBudget::note(const Difference &difference) {
  Often &often = differences_[{difference.kind, difference.index}];
  ++often.count;
  often.text = difference.text;
}

bool RetraceBudget::isSpent(const JitOptions &options) const {
  return made_ >= static_cast<uint64_t>(std::max(1, options.retrace_budget));
}

bool RetraceBudget::isCrowded(const JitOptions &options) const {
  return kinds_.size() > static_cast<size_t>(std::max(1, options.max_programs));
}

std::string RetraceBudget::message(const JitOptions &options, const Difference *now, const TraceBody &body) const {
  std::string text = "'" + options.name + "' was compiled " + std::to_string(made_) + " times already; its calls are of " +
                     std::to_string(kinds_.size()) + " kinds";
  if (isCrowded(options))
    text += ", and it keeps programs for " + std::to_string(std::max(1, options.max_programs));
  RetraceBudget all = *this;
  if (now)
    all.note(*now);
  const auto most = std::ranges::max_element(all.differences_, {}, [](const auto &d) { return d.second.count; });
  if (most == all.differences_.end())
    return text;
  const auto &[kind, index] = most->first;
  if (kind == Difference::Kind::Tensor || kind == Difference::Kind::Word)
    text += "; argument " + std::to_string(body.argumentOf(kind == Difference::Kind::Tensor, index)) + " changes";
  else
    text += "; they differ";
  return text + " (" + most->second.text + ")";
}

std::string RetraceBudget::hint(const JitOptions &options) const {
  return std::string("pad sizes to a few, pass changing numbers as Tensors, or raise JitOptions::") +
         (isCrowded(options) ? "max_programs and retrace_budget" : "retrace_budget");
}

} // namespace tressel::detail
