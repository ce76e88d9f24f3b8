// Reductions. Floats accumulate in double and are rounded once; integers wrap around.
#include "ir/interpreter/Evaluate.h"

#include <cassert>
#include <cmath>

namespace tressel::op::interp {
namespace {

/// Intermediate state for one element of the result.
struct Accumulator {
  Element value;
  int64_t count = 0; ///< elements seen
  int64_t best = 0;  ///< index of the largest or smallest of them

  void add(Combine combine, Element x) {
    const bool first = count == 0;
    const int64_t position = count++;
    switch (combine) {
    case Combine::Sum:
      value = first ? x : x.isFloat ? Element(value.f + x.f) : Element(num::add(value.i, x.i));
      return;
    case Combine::Prod:
      value = first ? x : x.isFloat ? Element(value.f * x.f) : Element(num::mul(value.i, x.i));
      return;
    case Combine::Any: value = Element((!first && value.as<bool>()) || x.as<bool>()); return;
    case Combine::All: value = Element((first || value.as<bool>()) && x.as<bool>()); return;
    case Combine::Max:
    case Combine::ArgMax:
    case Combine::Min:
    case Combine::ArgMin: {
      const bool wantLarger = combine == Combine::Max || combine == Combine::ArgMax;
      // NaN is preferred to every number; of several the first one.
      if (first || (!value.isNan() && (x.isNan() || (wantLarger ? less(value, x) : less(x, value))))) {
        value = x;
        best = position;
      }
      return;
    }
    case Combine::None: break;
    }
    assert(false && "not a reduction");
  }

  static bool less(Element a, Element b) { return a.isFloat ? a.f < b.f : a.i < b.i; }
};

/// The result of reducing no elements. Maximum, minimum and their indices have none: `infer` rejects that.
Element emptyValue(Combine combine) {
  return combine == Combine::Prod || combine == Combine::All ? Element(int64_t(1)) : Element(int64_t(0));
}

} // namespace

void reduce(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0];
  const int rank = x.type.rank();
  const Attr &axis = attrNamed(op, attrs, "axis");
  bool reduced[kMaxRank] = {};
  auto mark = [&](int64_t a) { reduced[a < 0 ? a + rank : a] = true; };
  if (const Ints *axes = std::get_if<Ints>(&axis)) {
    for (int64_t a : *axes)
      mark(a);
  } else if (const int64_t *one = std::get_if<int64_t>(&axis)) {
    if (rank > 0)
      mark(*one);
  } else {
    for (int d = 0; d < rank; ++d)
      mark(d);
  }

  Shape kept; // with reduced dimensions of size 1; the elements are the same with and without keepdims
  for (int d = 0; d < rank; ++d)
    kept.push_back(reduced[d] ? 1 : x.type.shape[d]);
  std::vector<Accumulator> sums(static_cast<size_t>(kept.numElements()));
  for (Walk at(x.type.shape); at; ++at)
    sums[static_cast<size_t>(broadcastPosition(kept, at.index()))].add(op.combine, loadFlushed(x, at.position()));

  const bool isIndex = op.combine == Combine::ArgMax || op.combine == Combine::ArgMin;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Accumulator &sum = sums[i];
    Element value = isIndex ? Element(sum.best) : sum.count ? sum.value : emptyValue(op.combine);
    if (op.isMean) // 0 / 0 is NaN
      value = Element(value.as<double>() / static_cast<double>(sum.count));
    storeFlushed(out[0], static_cast<int64_t>(i), value);
  }
}

} // namespace tressel::op::interp
