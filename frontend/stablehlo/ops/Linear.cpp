// Contractions and convolutions.
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"

#include <algorithm>
#include <numeric>

namespace tressel::stablehlo {

namespace {
using N = OpImporter;
using V = mlir::Value;

/// Sizes of `dims`, and their product.
Shape sizesOf(const TensorType &type, const Ints &dims) {
  Shape shape;
  for (int64_t d : dims)
    shape.push_back(type.shape[static_cast<int>(d)]);
  return shape;
}
/// The dimensions that are in neither list; the module is at fault if one is in both, or twice, or not there.
Ints freeDims(N &n, const TensorType &type, const Ints &batch, const Ints &contracted) {
  Ints used, rest;
  for (const Ints *list : {&batch, &contracted})
    for (int64_t d : *list) {
      if (d < 0 || d >= type.rank() || std::ranges::find(used, d) != used.end())
        n.fail("dimension " + std::to_string(d) + " of " + type.str() + " is not there, or used twice");
      used.push_back(d);
    }
  for (int64_t d = 0; d < type.rank(); ++d)
    if (std::ranges::find(used, d) == used.end())
      rest.push_back(d);
  return rest;
}
/// Dimensions in the order of the three lists, each list as one dimension; no batch dimension if there is none.
V asMatrices(N &n, V x, const Ints &batch, const Ints &rows, const Ints &columns) {
  TensorType type = typeOf(x);
  Ints order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  Shape shape;
  if (!batch.empty())
    shape.push_back(dim::numElements(sizesOf(type, batch)));
  shape.push_back(dim::numElements(sizesOf(type, rows)));
  shape.push_back(dim::numElements(sizesOf(type, columns)));
  return n.reshape(n.transpose(x, order), shape);
}

V contract(N &n, const Ints &batchA, const Ints &batchB, const Ints &innerA, const Ints &innerB) {
  V a = n.in(0), b = n.in(1);
  Ints rows = freeDims(n, typeOf(a), batchA, innerA), columns = freeDims(n, typeOf(b), batchB, innerB);
  if (!(sizesOf(typeOf(a), batchA) == sizesOf(typeOf(b), batchB)) ||
      !(sizesOf(typeOf(a), innerA) == sizesOf(typeOf(b), innerB)))
    n.fail("dimensions of " + typeOf(a).str() + " and " + typeOf(b).str() + " that belong together differ in size");
  if (typeOf(a).dtype == bool_)
    n.unsupported("a product of bools");
  Shape result = sizesOf(typeOf(a), batchA);
  for (Size size : sizesOf(typeOf(a), rows))
    result.push_back(size);
  for (Size size : sizesOf(typeOf(b), columns))
    result.push_back(size);
  // Sums are in the result's element type where that is wider.
  DType type = n.resultType().dtype;
  if (sizeOf(type) > sizeOf(typeOf(a).dtype) || typeOf(a).dtype != typeOf(b).dtype) {
    a = n.cast(a, type);
    b = n.cast(b, type);
  }
  V product = n.emit("matmul", {asMatrices(n, a, batchA, rows, innerA), asMatrices(n, b, batchB, innerB, columns)});
  return n.reshape(n.cast(product, type), result);
}

void dotGeneral(N &n) {
  n.wantInputs(2);
  n.ignore("precision_config");
  n.ignore("algorithm");
  std::string dims = n.record("dot_dimension_numbers");
  n.out(0, contract(n, listIn(dims, "lhs_batching_dimensions"), listIn(dims, "rhs_batching_dimensions"),
                    listIn(dims, "lhs_contracting_dimensions"), listIn(dims, "rhs_contracting_dimensions")));
}
void dot(N &n) {
  n.wantInputs(2);
  n.ignore("precision_config");
  if (typeOf(n.in(0)).rank() == 0 || typeOf(n.in(1)).rank() == 0)
    n.fail("its operands need at least one dimension");
  n.out(0, contract(n, {}, {}, {typeOf(n.in(0)).rank() - 1}, {0}));
}

/// For one tensor of a convolution: the numbers of the two non-spatial dimensions in Tressel's order, then of the
/// spatial ones.
using Layout = Ints;
/// "b, 0, 1, f" with `first` = 'b' and `second` = 'f'; the module is at fault if it is malformed.
Layout layoutOf(N &n, std::string_view text, char first, char second, int rank) {
  Layout layout(static_cast<size_t>(rank), -1);
  int64_t dim = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ' || c == ',' || c == '[' || c == ']')
      continue;
    int at = c == first ? 0 : c == second ? 1 : c >= '0' && c <= '9' ? c - '0' + 2 : -1;
    if (at < 0 || at >= rank || layout[static_cast<size_t>(at)] != -1)
      n.fail("dimension_numbers [" + std::string(text) + "] do not fit");
    layout[static_cast<size_t>(at)] = dim++;
  }
  if (dim != rank)
    n.fail("dimension_numbers [" + std::string(text) + "] do not fit");
  return layout;
}
Ints inverse(const Ints &permutation) {
  Ints result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

void convolution(N &n) {
  n.wantInputs(2);
  n.ignore("precision_config");
  n.sameElementType(n.in(0), n.in(1));
  const int rank = typeOf(n.in(0)).rank(), spatial = rank - 2;
  const DType type = n.resultType().dtype;
  if (typeOf(n.in(1)).rank() != rank || spatial < 0)
    n.fail("cannot convolve " + typeOf(n.in(0)).str() + " with " + typeOf(n.in(1)).str());
  if (!isFloat(typeOf(n.in(0)).dtype) || !isFloat(type))
    n.unsupported("a convolution of " + typeOf(n.in(0)).str());
  if (spatial > 3)
    n.unsupported("a convolution over " + std::to_string(spatial) + " dimensions");
  if (n.integer("batch_group_count", 1) != 1)
    n.unsupported("batch_group_count other than 1");

  // [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
  std::string numbers = n.record("dimension_numbers");
  size_t times = numbers.find(']'), arrow = numbers.find("->");
  if (times == std::string::npos || arrow == std::string::npos || arrow < times)
    n.fail("dimension_numbers <" + numbers + "> do not fit");
  Layout input = layoutOf(n, std::string_view(numbers).substr(0, times), 'b', 'f', rank);
  Layout kernel = layoutOf(n, std::string_view(numbers).substr(times + 2, arrow - times - 2), 'o', 'i', rank);
  Layout output = layoutOf(n, std::string_view(numbers).substr(arrow + 2), 'b', 'f', rank);

  V x = n.transpose(n.in(0), input), w = n.transpose(n.in(1), kernel);
  if (sizeOf(type) > sizeOf(typeOf(x).dtype)) {
    x = n.cast(x, type);
    w = n.cast(w, type);
  }
  Ints strides = n.intsPerDim("window_strides", spatial, 1), dilations = n.intsPerDim("rhs_dilation", spatial, 1);
  Ints spread = n.intsPerDim("lhs_dilation", spatial, 1), reversal = n.intsPerDim("window_reversal", spatial, 0);
  Ints padding = n.intsPerDim("padding", 2 * spatial, 0), low, high;
  for (int i = 0; i < spatial; ++i) {
    low.push_back(padding[2 * static_cast<size_t>(i)]);
    high.push_back(padding[2 * static_cast<size_t>(i) + 1]);
  }
  if (std::ranges::find(reversal, 1) != reversal.end()) {
    TensorType window = typeOf(w);
    Ints starts(window.shape.size(), 0), limits(window.shape.begin(), window.shape.end()), steps(starts.size(), 1);
    for (size_t i = 0; i < reversal.size(); ++i)
      if (reversal[i]) {
        starts[i + 2] = -1;
        limits[i + 2] = -limits[i + 2] - 1; // through the first element
        steps[i + 2] = -1;
      }
    w = n.slice(w, starts, limits, steps);
  }
  // Dilation of the image, and negative padding, are applied first.
  bool apart = std::ranges::any_of(spread, [](int64_t s) { return s != 1; });
  bool cuts = std::ranges::any_of(padding, [](int64_t p) { return p < 0; });
  if (apart || cuts) {
    Ints before{0, 0}, after{0, 0}, between{0, 0};
    for (size_t i = 0; i < low.size(); ++i) {
      before.push_back(low[i]);
      after.push_back(high[i]);
      between.push_back(spread[i] - 1);
      low[i] = high[i] = 0;
    }
    x = n.pad(x, before, after, between, n.scalar(typeOf(x).dtype, 0));
  }
  // Tressel's convolution needs a spatial dimension.
  if (spatial == 0) {
    Shape xs = typeOf(x).shape, ws = typeOf(w).shape;
    xs.push_back(1);
    ws.push_back(1);
    x = n.reshape(x, xs);
    w = n.reshape(w, ws);
  }
  V y = n.emit("conv", {x, w},
               {{"strides", strides},
                {"pad_low", low},
                {"pad_high", high},
                {"dilations", dilations},
                {"groups", n.integer("feature_group_count", 1)}});
  if (spatial == 0)
    y = n.reshape(y, {typeOf(y).shape[0], typeOf(y).shape[1]});
  n.out(0, n.cast(n.transpose(y, inverse(output)), type));
}

constexpr OpEntry kTable[] = {
    {"stablehlo.dot_general", dotGeneral},
    {"stablehlo.dot", dot},
    {"stablehlo.convolution", convolution},
};
} // namespace

std::span<const OpEntry> linearOps() { return kTable; }

} // namespace tressel::stablehlo
