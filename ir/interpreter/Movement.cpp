// Ops that only move elements: views, transposes, slices, concatenation, padding, gathers.
#include "ir/interpreter/Evaluate.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cstring>

namespace tressel::op::interp {

void view(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  if (out[0].type.bytes())
    std::memcpy(out[0].data.get(), in[0].data.get(), static_cast<size_t>(out[0].type.bytes()));
}

void broadcastTo(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  for (Walk at(out[0].type.shape); at; ++at)
    store(out[0], at.position(), load(in[0], broadcastPosition(in[0].type.shape, at.index())));
}

void transpose(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const Shape &shape = in[0].type.shape;
  const int rank = shape.rank();
  const Ints *permutation = std::get_if<Ints>(&attrNamed(op, attrs, "permutation"));
  for (Walk at(out[0].type.shape); at; ++at) {
    Index from(shape.rank());
    for (int d = 0; d < rank; ++d) {
      const int64_t source = permutation ? (*permutation)[static_cast<size_t>(d)] : rank - 1 - d;
      from[static_cast<int>(source < 0 ? source + rank : source)] = at[d];
    }
    store(out[0], at.position(), load(in[0], positionOf(shape, from)));
  }
}

void slice(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const Shape &shape = in[0].type.shape;
  const auto rank = shape.size();
  const Ints starts = intsAttr(op, attrs, "starts", rank, 0), strides = intsAttr(op, attrs, "strides", rank, 1);
  Index first(shape.rank()); // begin in each dimension, by Python's rules; the extent is the result's
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t start = starts[static_cast<size_t>(d)], size = shape[d].number();
    const int64_t fromZero = start < 0 ? std::max<int64_t>(start, -size - 1) + size : start;
    first[d] = strides[static_cast<size_t>(d)] < 0 ? std::clamp<int64_t>(fromZero, -1, size - 1)
                                                   : std::clamp<int64_t>(fromZero, 0, size);
  }
  for (Walk at(out[0].type.shape); at; ++at) {
    Index from = first;
    for (int d = 0; d < shape.rank(); ++d)
      from[d] += at[d] * strides[static_cast<size_t>(d)];
    store(out[0], at.position(), load(in[0], positionOf(shape, from)));
  }
}

void concat(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  int64_t axis = intAttr(op, attrs, "axis");
  if (axis < 0)
    axis += out[0].type.rank();
  const int d = static_cast<int>(axis);
  int64_t before = 0;
  for (const HostTensor &part : in) {
    for (Walk at(part.type.shape); at; ++at) {
      Index to = at.index();
      to[d] += before;
      store(out[0], positionOf(out[0].type.shape, to), load(part, at.position()));
    }
    before += part.type.shape[d].number();
  }
}

/// The source of the element at `i`, which may be outside [0, n).
static int64_t padSource(const std::string &mode, int64_t i, int64_t n) {
  if (mode == "edge")
    return std::clamp<int64_t>(i, 0, n - 1);
  while (i < 0 || i >= n) { // step by step, as the mode is defined
    if (mode == "wrap")
      i += i < 0 ? n : -n;
    else if (mode == "symmetric")
      i = i < 0 ? -1 - i : 2 * n - 1 - i;
    else if (n == 1)
      i = 0;
    else
      i = i < 0 ? -i : 2 * (n - 1) - i;
  }
  return i;
}

void pad(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const Shape &shape = in[0].type.shape;
  const Ints low = intsAttr(op, attrs, "low", shape.size(), 0);
  const Element value = floatAttr(op, attrs, "value");
  const std::string &mode = std::get<std::string>(attrNamed(op, attrs, "mode"));
  for (Walk at(out[0].type.shape); at; ++at) {
    Index from = at.index();
    bool inside = true;
    for (int d = 0; d < shape.rank(); ++d) {
      from[d] -= low[static_cast<size_t>(d)];
      if (mode != "constant")
        from[d] = padSource(mode, from[d], shape.extent(d));
      inside &= from[d] >= 0 && from[d] < shape[d].number();
    }
    store(out[0], at.position(), inside ? load(in[0], positionOf(shape, from)) : value);
  }
}

void take(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &indices = in[1];
  int64_t axis = intAttr(op, attrs, "axis");
  if (axis < 0)
    axis += x.type.rank();
  const int d = static_cast<int>(axis), indexRank = indices.type.rank();
  const int64_t size = x.type.shape[d].number();
  for (Walk at(out[0].type.shape); at; ++at) {
    // dimensions of the result: those of x before the axis, those of the indices, those of x after it
    Index from, index;
    for (int i = 0; i < at.index().rank(); ++i)
      (i >= d && i < d + indexRank ? index : from).push_back(at[i]);
    const int64_t given = load(indices, positionOf(indices.type.shape, index)).as<int64_t>();
    if (given < -size || given >= size)
      throw RuntimeError({.message = "index " + std::to_string(given) + " is outside the dimension of size " +
                                     std::to_string(size),
                          .op = op.name,
                          .hint = "indices are in [-size, size)"});
    Index source;
    for (int i = 0; i < x.type.rank(); ++i)
      source.push_back(i < d ? from[i] : i == d ? (given < 0 ? given + size : given) : from[i - 1]);
    store(out[0], at.position(), load(x, positionOf(x.type.shape, source)));
  }
}

} // namespace tressel::op::interp
