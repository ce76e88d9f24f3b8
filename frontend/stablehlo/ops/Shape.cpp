// Values and their shapes: constants, views, movement of data.
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"

#include <algorithm>
#include <numeric>

namespace tressel::stablehlo {

namespace {
using N = OpImporter;
using V = mlir::Value;

void constant(N &n) {
  mlir::Attribute elements = n.attribute("value");
  if (auto dense = llvm::dyn_cast_or_null<mlir::DenseIntElementsAttr>(elements);
      dense && graphType(dense.getType()) != dense.getType())
    elements = dense.mapValues(mlir::IntegerType::get(dense.getContext(), 64),
                               [](const llvm::APInt &v) { return v.zext(64); });
  std::optional<op::HostTensor> value = graph::elementsValue(elements);
  if (!value)
    n.unsupported("its value");
  n.out(0, n.constant(*value));
}
void iota(N &n) {
  TensorType type = n.resultType();
  n.out(0, n.emit("iota", {},
                  {{"shape", Ints(type.shape.begin(), type.shape.end())},
                   {"axis", n.integer("iota_dimension")},
                   {"dtype", type.dtype}}));
}
void reshape(N &n) {
  n.wantInputs(1);
  if (dim::numElements(typeOf(n.in(0)).shape) != dim::numElements(n.resultType().shape))
    n.fail("cannot make " + n.resultType().str() + " of " + typeOf(n.in(0)).str());
  n.out(0, n.reshape(n.in(0), n.resultType().shape));
}
/// Each of `dims` is a dimension of a tensor of rank `rank`, and none is twice.
void checkDims(N &n, const Ints &dims, int rank) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= rank ||
        std::find(dims.begin(), dims.begin() + static_cast<long>(i), dims[i]) != dims.begin() + static_cast<long>(i))
      n.fail("dimension " + std::to_string(dims[i]) + " is not there, or twice");
}
void transpose(N &n) {
  n.wantInputs(1);
  int rank = typeOf(n.in(0)).rank();
  Ints permutation = n.intsPerDim("permutation", rank, 0);
  checkDims(n, permutation, rank);
  n.out(0, n.transpose(n.in(0), permutation));
}
void broadcastInDim(N &n) {
  n.wantInputs(1);
  V x = n.in(0);
  TensorType type = typeOf(x), result = n.resultType();
  Ints dims = n.intsPerDim("broadcast_dimensions", type.rank(), 0);
  checkDims(n, dims, result.rank());
  // Dimensions in the order of the result, new ones of size 1 between them.
  Ints order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t i) { return dims[static_cast<size_t>(i)]; });
  x = n.transpose(x, order);
  Shape shape;
  for (int i = 0; i < result.rank(); ++i) {
    auto at = std::ranges::find(dims, i);
    shape.push_back(at == dims.end() ? 1 : type.shape[static_cast<int>(at - dims.begin())]);
  }
  n.out(0, n.broadcastTo(n.reshape(x, shape), result.shape));
}
void slice(N &n) {
  n.wantInputs(1);
  TensorType type = typeOf(n.in(0));
  Ints starts = n.intsPerDim("start_indices", type.rank(), 0), limits = n.intsPerDim("limit_indices", type.rank(), 0);
  Ints strides = n.intsPerDim("strides", type.rank(), 1);
  for (int i = 0; i < type.rank(); ++i) {
    auto at = static_cast<size_t>(i);
    if (starts[at] < 0 || limits[at] < starts[at] || limits[at] > type.shape[i] || strides[at] < 1)
      n.fail("cannot take " + std::to_string(starts[at]) + ":" + std::to_string(limits[at]) + ":" +
             std::to_string(strides[at]) + " of dimension " + std::to_string(i) + " of " + type.str());
  }
  n.out(0, n.slice(n.in(0), starts, limits, strides));
}
void reverse(N &n) {
  n.wantInputs(1);
  TensorType type = typeOf(n.in(0));
  Ints dims = n.ints("dimensions").value_or(Ints());
  checkDims(n, dims, type.rank());
  Ints starts(type.shape.size(), 0), limits(type.shape.begin(), type.shape.end()), strides(type.shape.size(), 1);
  for (int64_t d : dims) {
    auto at = static_cast<size_t>(d);
    starts[at] = -1;
    limits[at] = -limits[at] - 1; // through the first element
    strides[at] = -1;
  }
  n.out(0, n.slice(n.in(0), starts, limits, strides));
}
void concatenate(N &n) {
  if (n.numInputs() == 0)
    n.fail("has no operands");
  int64_t axis = n.integer("dimension");
  n.out(0, n.emit("concat", n.inputs(0, n.numInputs()), {{"axis", axis}}));
}
void pad(N &n) {
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  if (typeOf(n.in(1)).rank() != 0)
    n.fail("the padding value must have rank 0, not " + typeOf(n.in(1)).str());
  int rank = typeOf(n.in(0)).rank();
  Ints low = n.intsPerDim("edge_padding_low", rank, 0), high = n.intsPerDim("edge_padding_high", rank, 0);
  n.out(0, n.pad(n.in(0), low, high, n.intsPerDim("interior_padding", rank, 0), n.in(1)));
}

constexpr OpEntry kTable[] = {
    {"stablehlo.constant", constant},
    {"chlo.constant", constant},
    {"stablehlo.iota", iota},
    {"stablehlo.reshape", reshape},
    {"stablehlo.transpose", transpose},
    {"stablehlo.broadcast_in_dim", broadcastInDim},
    {"stablehlo.slice", slice},
    {"stablehlo.reverse", reverse},
    {"stablehlo.concatenate", concatenate},
    {"stablehlo.pad", pad},
};
} // namespace

std::span<const OpEntry> shapeOps() { return kTable; }

} // namespace tressel::stablehlo
