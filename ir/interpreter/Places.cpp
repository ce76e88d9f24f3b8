// Ops that read and write at computed places.
#include "ir/interpreter/Evaluate.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::op::interp {
namespace {

/// The index counted from the front. Throws if it is outside.
int64_t indexIn(const OpInfo &op, int64_t index, int64_t size) {
  if (index < -size || index >= size)
    throw RuntimeError({.message = "index " + std::to_string(index) + " is outside the dimension of size " +
                                   std::to_string(size),
                        .op = op.name,
                        .hint = "indices are in [-size, size)"});
  return index < 0 ? index + size : index;
}

Element update(const std::string &mode, DType type, Element old, Element value) {
  if (mode == "set")
    return value;
  if (mode == "add" && type == DType::boolean)
    return Element(old.i || value.i);
  if (mode == "mul" && type == DType::boolean)
    return Element(old.i && value.i);
  const Combine combine = mode == "add"   ? Combine::Sum
                          : mode == "mul" ? Combine::Prod
                          : mode == "min" ? Combine::Min
                                          : Combine::Max;
  return flushedIn(type, merge(combine, flushedIn(type, old), flushedIn(type, value)));
}

std::string modeOf(const OpInfo &op, const Attrs &attrs) { return std::get<std::string>(attrNamed(op, attrs, "mode")); }

void copyAll(const HostTensor &from, HostTensor &to) {
  for (int64_t i = 0, n = from.type.shape.numElements(); i < n; ++i)
    store(to, i, load(from, i));
}

void put(HostTensor &to, int64_t at, const std::string &mode, Element value) {
  const DType type = to.type.dtype;
  store(to, at, update(mode, type, load(to, at), roundTo(type, value)));
}

int axisOf(const OpInfo &op, const Attrs &attrs, int rank) {
  const int64_t axis = intAttr(op, attrs, "axis");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

} // namespace

void takeAlongAxis(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &indices = in[1];
  const int d = axisOf(op, attrs, x.type.rank());
  Shape lines = x.type.shape;
  lines[d] = 1; // the axis is indexed, the others broadcast
  for (Walk at(out[0].type.shape); at; ++at) {
    Index from = at.index();
    for (int i = 0; i < from.rank(); ++i)
      from[i] = lines[i] == 1 ? 0 : from[i];
    const int64_t given = load(indices, broadcastPosition(indices.type.shape, at.index())).as<int64_t>();
    from[d] = indexIn(op, given, x.type.shape.extent(d));
    store(out[0], at.position(), load(x, positionOf(x.type.shape, from)));
  }
}

void putAlongAxis(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &indices = in[1], &values = in[2];
  const int d = axisOf(op, attrs, x.type.rank());
  const std::string mode = modeOf(op, attrs);
  copyAll(x, out[0]);
  Shape places = x.type.shape;
  places[d] = indices.type.shape[d];
  for (Walk at(places); at; ++at) {
    Index to = at.index();
    to[d] = indexIn(op, load(indices, broadcastPosition(indices.type.shape, at.index())).as<int64_t>(),
                    x.type.shape.extent(d));
    put(out[0], positionOf(x.type.shape, to), mode, load(values, broadcastPosition(values.type.shape, at.index())));
  }
}

void gatherNd(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &indices = in[1];
  const int batch = static_cast<int>(intAttr(op, attrs, "batch_dims")), indexRank = indices.type.rank();
  const auto depth = indices.type.shape.back();
  for (Walk at(out[0].type.shape); at; ++at) {
    Index from, index;
    for (int i = 0; i < indexRank - 1; ++i)
      index.push_back(at[i]);
    for (int i = 0; i < batch; ++i)
      from.push_back(at[i]);
    index.push_back(0);
    for (int64_t i = 0; i < depth.number(); ++i) {
      index[indexRank - 1] = i;
      from.push_back(indexIn(op, load(indices, positionOf(indices.type.shape, index)).as<int64_t>(),
                             x.type.shape.extent(from.rank())));
    }
    for (int i = indexRank - 1; i < at.index().rank(); ++i)
      from.push_back(at[i]);
    store(out[0], at.position(), load(x, positionOf(x.type.shape, from)));
  }
}

void scatterNd(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &indices = in[1], &updates = in[2];
  const int indexRank = indices.type.rank();
  const std::string mode = modeOf(op, attrs);
  copyAll(x, out[0]);
  for (Walk at(updates.type.shape); at; ++at) {
    Index to, index;
    for (int i = 0; i < indexRank - 1; ++i)
      index.push_back(at[i]);
    index.push_back(0);
    for (int64_t i = 0; i < indices.type.shape.back().number(); ++i) {
      index[indexRank - 1] = i;
      to.push_back(indexIn(op, load(indices, positionOf(indices.type.shape, index)).as<int64_t>(),
                           x.type.shape.extent(to.rank())));
    }
    for (int i = indexRank - 1; i < at.index().rank(); ++i)
      to.push_back(at[i]);
    put(out[0], positionOf(x.type.shape, to), mode, load(updates, at.position()));
  }
}

void scatter(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &indices = in[1], &updates = in[2];
  const int d = axisOf(op, attrs, x.type.rank()), indexRank = indices.type.rank();
  const std::string mode = modeOf(op, attrs);
  copyAll(x, out[0]);
  for (Walk at(updates.type.shape); at; ++at) {
    Index to, index;
    for (int i = 0; i < at.index().rank(); ++i) {
      if (i == d)
        to.push_back(0);
      (i >= d && i < d + indexRank ? index : to).push_back(at[i]);
    }
    if (to.rank() < x.type.rank()) // the axis is the last one
      to.push_back(0);
    to[d] = indexIn(op, load(indices, positionOf(indices.type.shape, index)).as<int64_t>(), x.type.shape.extent(d));
    put(out[0], positionOf(x.type.shape, to), mode, load(updates, at.position()));
  }
}

/// The begin of a window of this size, clamped so that the window is inside.
static Index windowStart(const HostTensor &starts, const Shape &dims, const Shape &sizes) {
  Index first;
  for (int i = 0; i < dims.rank(); ++i)
    first.push_back(std::clamp<int64_t>(load(starts, i).as<int64_t>(), 0, dims.extent(i) - sizes.extent(i)));
  return first;
}

void dynamicSlice(const OpInfo &, Inputs in, const Attrs &, Outputs out) {
  const Index first = windowStart(in[1], in[0].type.shape, out[0].type.shape);
  for (Walk at(out[0].type.shape); at; ++at) {
    Index from = at.index();
    for (int i = 0; i < from.rank(); ++i)
      from[i] += first[i];
    store(out[0], at.position(), load(in[0], positionOf(in[0].type.shape, from)));
  }
}

void dynamicUpdateSlice(const OpInfo &, Inputs in, const Attrs &, Outputs out) {
  const Index first = windowStart(in[2], in[0].type.shape, in[1].type.shape);
  copyAll(in[0], out[0]);
  for (Walk at(in[1].type.shape); at; ++at) {
    Index to = at.index();
    for (int i = 0; i < to.rank(); ++i)
      to[i] += first[i];
    store(out[0], positionOf(out[0].type.shape, to), load(in[1], at.position()));
  }
}

} // namespace tressel::op::interp
