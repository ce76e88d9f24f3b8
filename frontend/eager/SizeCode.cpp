#include "frontend/eager/SizeCode.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::eager {

SizeCode::SizeCode(Size size, std::span<const Size> symbols) {
  if (size.isSymbolic())
    add(size, symbols, 0);
  else
    constant_ = size.number();
}

void SizeCode::add(Size size, std::span<const Size> symbols, int depth) {
  if (depth > kDepth - 4)
    throw InternalError("a size is too deeply nested for a launch: " + dim::str(size));
  if (!size.isSymbolic()) {
    code_.push_back({Do::Number, size.number()});
    return;
  }
  bool firstTerm = true;
  for (const dim::Term &term : dim::terms(size)) {
    bool first = true;
    auto multiply = [&] {
      if (!std::exchange(first, false))
        code_.push_back({Do::Mul, 0});
    };
    if (term.coefficient != 1 || term.factors.empty()) {
      code_.push_back({Do::Number, term.coefficient});
      multiply();
    }
    for (const dim::Factor &f : term.factors) {
      if (f.kind == dim::Factor::Kind::Symbol) {
        const auto at = std::ranges::find(symbols, f.a);
        if (at == symbols.end())
          throw InternalError("a launch does not know the size " + dim::str(f.a));
        code_.push_back({Do::Symbol, at - symbols.begin()});
      } else {
        add(f.a, symbols, depth + 2);
        add(f.b, symbols, depth + 3);
        code_.push_back({f.kind == dim::Factor::Kind::Max ? Do::Max : Do::FloorDiv, 0});
      }
      multiply();
    }
    if (!std::exchange(firstTerm, false))
      code_.push_back({Do::Add, 0});
  }
}

int64_t SizeCode::evaluate(const int64_t *values) const {
  int64_t stack[kDepth];
  int depth = 0; // of the stack
  for (const Step &s : code_) {
    if (s.what == Do::Number || s.what == Do::Symbol) {
      stack[depth++] = s.what == Do::Number ? s.number : values[s.number];
      continue;
    }
    const int64_t b = stack[--depth];
    int64_t &a = stack[depth - 1];
    switch (s.what) {
    case Do::Add:
      a += b;
      break;
    case Do::Mul:
      a *= b;
      break;
    case Do::FloorDiv:
      a = a / b - (a % b != 0 && (a < 0) != (b < 0));
      break;
    default:
      a = std::max(a, b);
    }
  }
  return stack[0];
}

} // namespace tressel::eager
