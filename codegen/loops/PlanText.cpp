// A loop plan as text.
#include "codegen/loops/LoopPlan.h"

#include "tressel/runtime/Dim.h"

#include <cstring>
#include <sstream>

namespace tressel::codegen {

std::string LoopPlan::str() const {
  std::ostringstream s;
  auto size = [](Size n) { return n.isSymbolic() ? "(" + dim::spell(n) + ")" : dim::spell(n); };
  auto affine = [&](const Affine &a) {
    s << '[' << size(a.offset);
    for (size_t d = 0; d < a.coef.size(); ++d)
      if (a.coef[d])
        s << " + " << size(a.coef[d]) << "*d" << d;
    for (const auto &i : a.indirect)
      s << " + " << size(i.scale) << "*%" << i.expr;
    s << ']';
  };
  static const char *const orders[] = {"", ", terms one by one", ", terms along lanes"};
  s << (keepSubnormals ? "keep subnormals, " : "") << (deterministic ? "deterministic" : "")
    << orders[static_cast<int>(order)] << (deterministic ? ", dims" : "dims");
  for (const LoopDim &d : dims)
    s << ' ' << (d.reduced ? "r" : "p") << size(d.size);
  s << " units " << unitDims << "\nbuffers";
  for (const Buffer &b : buffers)
    s << ' ' << nameOf(b.dtype) << 'x' << size(b.elements);
  s << " inputs " << numInputs << '\n';
  for (size_t e = 0; e < exprs.size(); ++e) {
    const Expr &x = exprs[e];
    static const char *const kinds[] = {"scalar", "load", "index", "in_range", "checked", "reduced"};
    uint64_t bits;
    std::memcpy(&bits, &x.f, sizeof bits);
    s << '%' << e << " = " << kinds[static_cast<int>(x.kind)] << ' ' << nameOf(x.dtype) << ' ' << static_cast<int>(x.op)
      << " (" << x.args[0] << ' ' << x.args[1] << ' ' << x.args[2] << ") f " << std::hex << bits << std::dec << " i "
      << (x.kind == ExprKind::Scalar    ? std::to_string(x.i)
          : x.kind == ExprKind::Reduced ? std::to_string(x.i)
                                        : size(x.size))
      << " b " << x.buffer << " g " << x.guard << ' ';
    affine(x.index);
    s << '\n';
  }
  for (const Reduction &r : reductions) {
    uint64_t bits;
    std::memcpy(&bits, &r.scale, sizeof bits);
    s << "reduce %" << r.body << ' ' << static_cast<int>(r.combine) << " scale " << std::hex << bits << std::dec
      << " / " << size(r.divisor) << ' ' << nameOf(r.accumulate) << "->" << nameOf(r.dtype) << " stage " << r.stage
      << '\n';
  }
  for (const Store &t : stores) {
    s << "store %" << t.value << " -> b" << t.buffer << ' ';
    affine(t.index);
    s << (t.full ? " full\n" : "\n");
  }
  return s.str();
}

} // namespace tressel::codegen
