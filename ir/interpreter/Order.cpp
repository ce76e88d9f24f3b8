// Ops that sort and ops that run along a dimension.
#include "ir/interpreter/Evaluate.h"

#include <algorithm>
#include <numeric>

namespace tressel::op::interp {
namespace {

/// Calls f for every line along an axis, with the positions of its elements in `x` and `y`, whose sizes differ along
/// the axis only.
template <class F> void forEachLine(const HostTensor &x, const HostTensor &y, int64_t axis, F f) {
  const int d = static_cast<int>(axis < 0 ? axis + x.type.rank() : axis);
  Shape lines = x.type.shape;
  lines[d] = 1;
  auto positions = [&](const Shape &shape, Index at) {
    std::vector<int64_t> line;
    for (at[d] = 0; at[d] < shape[d].number(); ++at[d])
      line.push_back(positionOf(shape, at));
    return line;
  };
  for (Walk at(lines); at; ++at)
    f(positions(x.type.shape, at.index()), positions(y.type.shape, at.index()));
}

/// NaN is larger than every number.
bool less(Element a, Element b) {
  if (a.isNan() || b.isNan())
    return !a.isNan() && b.isNan();
  return a.isFloat ? a.f < b.f : a.i < b.i;
}

std::vector<int64_t> orderOf(const HostTensor &x, const std::vector<int64_t> &line, bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const Element left = load(x, line[static_cast<size_t>(a)]), right = load(x, line[static_cast<size_t>(b)]);
    if (less(left, right) || less(right, left))
      return descending ? less(right, left) : less(left, right);
    return a < b; // equal elements keep their order
  });
  return order;
}

/// Sorts; writes the sorted elements and their indices; either may be null.
void order(const HostTensor &x, int64_t axis, bool descending, HostTensor *values, HostTensor *indices) {
  forEachLine(x, values ? *values : *indices, axis, [&](const auto &from, const auto &to) {
    const std::vector<int64_t> sorted = orderOf(x, from, descending);
    for (size_t i = 0; i < to.size(); ++i) {
      if (values)
        store(*values, to[i], load(x, from[static_cast<size_t>(sorted[i])]));
      if (indices)
        store(*indices, to[i], sorted[i]);
    }
  });
}

} // namespace

void sort(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  order(in[0], intAttr(op, attrs, "axis"), boolAttr(op, attrs, "descending"), &out[0], nullptr);
}
void argsort(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  order(in[0], intAttr(op, attrs, "axis"), boolAttr(op, attrs, "descending"), nullptr, &out[0]);
}
void topK(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  order(in[0], intAttr(op, attrs, "axis"), boolAttr(op, attrs, "largest"), &out[0], &out[1]);
}

Element merge(Combine combine, Element a, Element b) {
  switch (combine) {
  case Combine::Prod:
    return a.isFloat ? Element(a.f * b.f) : Element(num::mul(a.i, b.i));
  case Combine::Min:
    return a.isNan() || (!b.isNan() && !less(b, a)) ? a : b;
  case Combine::Max:
    return a.isNan() || (!b.isNan() && !less(a, b)) ? a : b;
  default:
    return a.isFloat ? Element(a.f + b.f) : Element(num::add(a.i, b.i));
  }
}

void scan(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const bool reverse = boolAttr(op, attrs, "reverse");
  const bool exclusive = op.attrIndex("exclusive") >= 0 && boolAttr(op, attrs, "exclusive");
  const DType type = out[0].type.dtype;
  forEachLine(in[0], out[0], intAttr(op, attrs, "axis"), [&](auto line, auto) {
    if (reverse)
      std::reverse(line.begin(), line.end());
    Element total = roundTo(type, Element(int64_t(op.combine == Combine::Prod)));
    for (size_t i = 0; i < line.size(); ++i) {
      const Element x = roundTo(type, loadFlushed(in[0], line[i])), before = total;
      const bool first = i == 0 && (op.combine == Combine::Min || op.combine == Combine::Max);
      total = first ? x : flushedIn(type, merge(op.combine, before, x));
      store(out[0], line[i], exclusive ? before : total);
    }
  });
}

} // namespace tressel::op::interp
