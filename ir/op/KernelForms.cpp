// Ops as calls of bitcode kernels. The kernels' sources in codegen/bitcode/kernels document the parameters.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tressel::op {

/// Lines along a dimension: their length, and the numbers of indices before and behind the dimension.
struct Lines {
  Size outer = 1, size = 1, inner = 1;
  Lines(const Shape &shape, int axis) : size(shape[axis]) {
    for (int i = 0; i < axis; ++i)
      outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i)
      inner *= shape[i];
  }
  /// Number of adjacent lines that one unit computes together.
  int64_t block() const { return std::clamp<int64_t>(dim::hint(inner), 1, 64); }
  Size blocks() const { return outer * dim::ceilDiv(inner, block()); }
};

static Size product(const Shape &shape, int from, int to) {
  Size n = 1;
  for (int i = from; i < to; ++i)
    n *= shape[i];
  return n;
}

static std::string named(const char *kernel, DType type) { return std::string(kernel) + "_" + std::string(nameOf(type)); }
/// Kernels that only move elements exist once per element width.
static std::string byWidth(const char *kernel, DType type) {
  return std::string(kernel) + "_b" + std::to_string(sizeOf(type));
}
static double hinted(Size size) { return static_cast<double>(dim::hint(size)); }

/// Whether sizes are known and indices have the type that kernels read.
static bool isKnown(std::span<const TensorType> types) {
  return std::all_of(types.begin(), types.end(), [](const TensorType &t) { return dim::isKnown(t.shape); });
}

// --- Order -------------------------------------------------------------------------------------------------------------
static std::optional<KernelForm> orderForm(const char *kernel, const TensorType &x, int64_t axis, Size wanted,
                                           bool descending) {
  const Lines lines(x.shape, *normalizeAxis(axis, x.rank()));
  constexpr int64_t mostEntries = int64_t(1) << 32; // entries hold 32-bit indices
  if (!dim::isKnown(x.shape) || !dim::atMost(lines.size, mostEntries - 1))
    return std::nullopt;
  const int64_t entryBytes = sizeOf(x.dtype) == 8 ? 16 : 8;
  return KernelForm{.kernel = named(kernel, x.dtype),
                    .params = {lines.size, lines.inner, wanted == kDynamic ? lines.size : wanted, int(descending)},
                    .range = lines.outer * lines.inner,
                    .scratchBytes = lines.size * (2 * entryBytes),
                    .flops = hinted(dim::numElements(x.shape)) * 8};
}

std::optional<KernelForm> kernelFormSort(const OpInfo &op, std::span<const TensorType> operands,
                                         std::span<const TensorType>, const Attrs &attrs) {
  return orderForm(op.name, operands[0], integer(attrs[0]), kDynamic, std::get<bool>(attrs[1]));
}

std::optional<KernelForm> kernelFormTopK(const OpInfo &op, std::span<const TensorType> operands,
                                         std::span<const TensorType>, const Attrs &attrs) {
  return orderForm(op.name, operands[0], integer(attrs[1]), size(attrs[0]), std::get<bool>(attrs[2]));
}

/// Attributes: axis, reverse, and for sums and products exclusive. The kernel does no conversions.
std::optional<KernelForm> kernelFormScan(const OpInfo &op, std::span<const TensorType> operands,
                                         std::span<const TensorType> results, const Attrs &attrs) {
  const TensorType &x = operands[0];
  if (x.dtype != results[0].dtype || !dim::isKnown(x.shape))
    return std::nullopt;
  const Lines lines(x.shape, *normalizeAxis(integer(attrs[0]), x.rank()));
  const bool exclusive = attrs.size() > 2 && std::get<bool>(attrs[2]);
  return KernelForm{.kernel = named("scan", x.dtype),
                    .params = {lines.size, lines.inner, scanMode(op.combine), int(exclusive),
                               int(std::get<bool>(attrs[1])), lines.block()},
                    .range = lines.blocks(),
                    .flops = hinted(dim::numElements(x.shape)) / 4};
}

// --- Writing at computed places --------------------------------------------------------------------------------------------
std::optional<KernelForm> kernelFormPutAlongAxis(const OpInfo &, std::span<const TensorType> operands,
                                                 std::span<const TensorType> results, const Attrs &attrs) {
  const TensorType &x = operands[0], &indices = operands[1], &values = operands[2];
  const int axis = *normalizeAxis(integer(attrs[0]), x.rank());
  if (indices.dtype != DType::i64 || values.dtype != x.dtype || x != results[0] || values.shape != indices.shape ||
      !isKnown(operands))
    return std::nullopt;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis && !dim::equal(x.shape[i], indices.shape[i]))
      return std::nullopt;
  const Lines lines(x.shape, axis);
  return KernelForm{.kernel = named("put_along_axis", x.dtype),
                    .params = {lines.size, indices.shape[axis], lines.inner, *scatterMode(std::get<std::string>(attrs[1])),
                               lines.block()},
                    .range = lines.blocks(),
                    .flops = hinted(dim::numElements(indices.shape))};
}

std::optional<KernelForm> kernelFormScatterNd(const OpInfo &, std::span<const TensorType> operands,
                                              std::span<const TensorType> results, const Attrs &attrs) {
  const TensorType &x = operands[0], &indices = operands[1], &updates = operands[2];
  if (indices.dtype != DType::i64 || updates.dtype != x.dtype || x != results[0] || !isKnown(operands))
    return std::nullopt;
  const int depth = static_cast<int>(indices.shape.back().number());
  KernelForm form{.kernel = named("scatter_nd", x.dtype),
                  .params = {product(indices.shape, 0, indices.rank() - 1), depth, product(x.shape, depth, x.rank()),
                             *scatterMode(std::get<std::string>(attrs[0]))},
                  .range = product(x.shape, 0, depth),
                  .flops = hinted(dim::numElements(indices.shape)) + hinted(dim::numElements(updates.shape))};
  form.params.insert(form.params.end(), x.shape.begin(), x.shape.begin() + depth);
  return form;
}

// --- Reading at computed places -------------------------------------------------------------------------------------------
std::optional<KernelForm> kernelFormGatherNd(const OpInfo &, std::span<const TensorType> operands,
                                             std::span<const TensorType> results, const Attrs &attrs) {
  const TensorType &x = operands[0], &indices = operands[1];
  if (indices.dtype != DType::i64 || !isKnown(operands))
    return std::nullopt;
  const int batch = static_cast<int>(integer(attrs[0])), depth = static_cast<int>(indices.shape.back().number());
  const Size count = product(indices.shape, batch, indices.rank() - 1),
             slice = product(x.shape, batch + depth, x.rank());
  KernelForm form{.kernel = byWidth("gather_nd", x.dtype),
                  .params = {count, depth, slice},
                  .range = product(indices.shape, 0, batch) * count,
                  .flops = hinted(dim::numElements(indices.shape))};
  form.params.insert(form.params.end(), x.shape.begin() + batch, x.shape.begin() + batch + depth);
  return form;
}

std::optional<KernelForm> kernelFormDynamicSlice(const OpInfo &, std::span<const TensorType> operands,
                                                 std::span<const TensorType> results, const Attrs &) {
  const Shape &from = operands[0].shape, &to = results[0].shape;
  if (operands[1].dtype != DType::i64 || !dim::isKnown(from) || !dim::isKnown(to))
    return std::nullopt;
  KernelForm form{.kernel = byWidth("dynamic_slice", operands[0].dtype),
                  .params = {from.rank()},
                  .range = product(to, 0, to.rank() - 1)};
  form.params.insert(form.params.end(), from.begin(), from.end());
  form.params.insert(form.params.end(), to.begin(), to.end());
  return form;
}

std::optional<KernelForm> kernelFormDynamicUpdateSlice(const OpInfo &, std::span<const TensorType> operands,
                                                       std::span<const TensorType> results, const Attrs &) {
  const TensorType &x = operands[0], &update = operands[1];
  if (operands[2].dtype != DType::i64 || update.dtype != x.dtype || !isKnown(operands))
    return std::nullopt;
  constexpr int64_t enoughUnits = 16; // enough for all threads: more would only add units in which nothing is updated
  int lead = 0;
  Size units = 1;
  for (; lead < x.rank() - 1 && dim::hint(units) < enoughUnits; ++lead)
    units *= x.shape[lead];
  KernelForm form{.kernel = byWidth("dynamic_update_slice", x.dtype), .params = {x.rank(), lead}, .range = units};
  form.params.insert(form.params.end(), x.shape.begin(), x.shape.end());
  form.params.insert(form.params.end(), update.shape.begin(), update.shape.end());
  return form;
}

// --- Attention -----------------------------------------------------------------------------------------------------------
namespace {
/// Layout of a mask that broadcasts to the scores: head h uses matrix h / shared % heads, dense [queries, keys], or [1,
/// keys] if `row` (elements from query to query) is 0.
struct MaskLayout {
  Size heads = 1, shared = 1, row = 0;
};
} // namespace

/// None if heads follow no such rule, or if the mask broadcasts along the keys.
static std::optional<MaskLayout> maskLayout(const Shape &mask, const Shape &q, Size keys) {
  const int rank = q.rank();
  auto sizeOf = [&](int d) {
    return d + mask.rank() < rank ? Size(1) : mask[d + mask.rank() - rank];
  }; // of q's dimension d
  if (!dim::equal(sizeOf(rank - 1), keys))
    return std::nullopt;
  MaskLayout layout;
  layout.row = dim::equal(sizeOf(rank - 2), 1) ? Size() : keys;
  enum { Shared, Own, Repeated } part = Shared; // for dimensions from the innermost outwards
  for (int d = rank - 3; d >= 0; --d) {
    if (dim::equal(q[d], 1))
      continue;
    const bool one = dim::equal(sizeOf(d), 1);
    if (part != Shared && one)
      part = Repeated;
    else if (!one && part == Repeated)
      return std::nullopt;
    else if (!one)
      part = Own;
    if (part == Shared)
      layout.shared *= q[d];
    else if (part == Own)
      layout.heads *= q[d];
  }
  return layout;
}

/// attention_f32 is a kernel of runtime/kernels; kernels of 16-bit floats exist for GPUs only (codegen/cuda/device).
/// Parameters: heads, heads that share keys and values, queries, keys, size, width, causal, and the bits of the scale
/// as a double; with a mask also its layout.
std::optional<KernelForm> kernelFormAttention(const OpInfo &, std::span<const TensorType> operands,
                                              std::span<const TensorType>, const Attrs &attrs) {
  const TensorType &q = operands[0], &k = operands[1], &v = operands[2];
  const int r = q.rank();
  if ((q.dtype != DType::f32 && q.dtype != DType::f16 && q.dtype != DType::bf16) || !isKnown(operands))
    return std::nullopt;
  const Size heads = product(q.shape, 0, r - 2), size = q.shape[r - 1], queries = q.shape[r - 2], keys = k.shape[r - 2],
             width = v.shape[r - 1];
  double scale = std::get<double>(attrs[1]);
  if (scale == 0 && size.numberOr(0) > 0)
    scale = 1 / std::sqrt(static_cast<double>(size.number()));
  if (!(scale > 0) || dim::bounds(size).lo < 1 || dim::bounds(width).lo < 1)
    return std::nullopt;
  const Size shared = r > 2 && q.shape[r - 3] != k.shape[r - 3] ? dim::floorDiv(q.shape[r - 3], k.shape[r - 3]) : 1;
  const double scores = hinted(heads) * hinted(queries) * hinted(keys);
  KernelForm form{.kernel = named("attention", q.dtype),
                  .params = {heads, shared, queries, keys, size, width, int(std::get<bool>(attrs[0])),
                             std::bit_cast<int64_t>(scale)},
                  .range = heads,
                  .flops = scores * (2 * (hinted(size) + hinted(width)) + 20)};
  if (operands.size() > 3) {
    const std::optional<MaskLayout> mask = maskLayout(operands[3].shape, q.shape, keys);
    if (!mask)
      return std::nullopt;
    form.params.insert(form.params.end(), {mask->heads, mask->shared, mask->row});
  }
  return form;
}

} // namespace tressel::op
