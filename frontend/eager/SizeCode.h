// A symbolic size as postfix code, which a launch evaluates faster than an expression.
#pragma once

#include "tressel/runtime/Size.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tressel::eager {

class SizeCode {
public:
  SizeCode() = default;
  /// `size` is made of numbers and `symbols`; their values come in this order.
  SizeCode(Size size, std::span<const Size> symbols);
  int64_t operator()(const int64_t *values) const { return code_.empty() ? constant_ : evaluate(values); }

private:
  enum class Do : uint8_t { Number, Symbol, Add, Mul, FloorDiv, Max };
  struct Step {
    Do what;
    int64_t number; ///< or the symbol's index
  };
  static constexpr int kDepth = 32;
  void add(Size size, std::span<const Size> symbols, int depth);
  int64_t evaluate(const int64_t *values) const;

  int64_t constant_ = 0;
  std::vector<Step> code_; ///< postfix
};

} // namespace tressel::eager
