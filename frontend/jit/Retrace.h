// How many programs a jitted function may have made, why it needed each, and what to say when they are too many.
#pragma once

#include <tressel/jit.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

namespace tressel::detail {

/// The first guard of a program that a call fails.
struct Difference {
  enum class Kind : uint8_t { Mode, Placement, Machine, Count, Tensor, Structure, Word, Module };
  Kind kind = Kind::Module;
  size_t index = 0; ///< of the tensor or word among those of the arguments
  std::string text; ///< "tensor 0: f32[3] instead of f32[2]"
};

/// The budget of one function. Not synchronized.
class RetraceBudget {
public:
  /// A program is needed for calls of this kind, a hash of what tells calls apart.
  void need(uint64_t kind) { kinds_.insert(kind); }
  void made() { ++made_; }
  /// Programs that were dropped on request do not count against the budget.
  void giveBack(size_t programs) { made_ -= programs; }
  /// Counts why a program had to be made.
  void note(const Difference &difference);

  bool isSpent(const JitOptions &options) const;
  /// The message that the budget is spent: how many programs were made, and which argument changes most often. `now`:
  /// how the call differs from the last program.
  std::string message(const JitOptions &options, const Difference *now, const TraceBody &body) const;
  std::string hint(const JitOptions &options) const;
  /// True once: the caller is to warn.
  bool warns() { return !std::exchange(warned_, true); }

private:
  bool isCrowded(const JitOptions &options) const;

  struct Often {
    uint64_t count = 0;
    std::string text; ///< of the latest one
  };
  uint64_t made_ = 0;
  bool warned_ = false;
  std::unordered_set<uint64_t> kinds_; ///< of calls that a program was made for, kept or not
  std::map<std::pair<Difference::Kind, size_t>, Often> differences_;
};

} // namespace tressel::detail
