// Writing at computed places. Each place of the result belongs to one unit, which takes the updates in their order: of
// several to one place the last is set, sums have one order, and nothing depends on the number of threads. The result
// may lie on the first operand.
#include "codegen/bitcode/kernels/Kernel.h"

namespace tressel::bitcode {
namespace {

template <class T> void apply(Mode mode, T &to, T update) {
  to = mode == Mode::Set ? update : narrow<T>(combine(mode, widen(to), widen(update)));
}

/// Operands: x [outer, size, columns], indices and values [outer, count, columns]. params: size, count, columns, mode,
/// columns per unit. A unit is a block of neighbouring lines.
template <class T>
int32_t putAlongAxis(void *const *buffers, void *, const int64_t *params, int64_t begin, int64_t end) {
  const T *x = static_cast<const T *>(buffers[0]), *values = static_cast<const T *>(buffers[2]);
  const int64_t *indices = static_cast<const int64_t *>(buffers[1]);
  T *out = static_cast<T *>(buffers[3]);
  const int64_t size = params[0], count = params[1], columns = params[2];
  const auto mode = static_cast<Mode>(params[3]);
  const int64_t block = params[4], blocks = (columns + block - 1) / block;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t outer = unit / blocks, first = unit % blocks * block;
    const int64_t width = columns - first < block ? columns - first : block;
    const int64_t base = outer * size * columns + first, from = outer * count * columns + first;
    if (x != out)
      for (int64_t i = 0; i < size; ++i)
        copy(out + base + i * columns, x + base + i * columns, width);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < width; ++j) {
        const int64_t at = place(indices[from + i * columns + j], size);
        if (at < 0)
          return kIndexOutOfRange;
        apply(mode, out[base + at * columns + j], values[from + i * columns + j]);
      }
  }
  return kOk;
}

/// Operands: x [dims..., slice], indices [count, depth], updates [count, slice]. params: count, depth, slice, mode, dims.
/// A unit is one slice of x: every call looks at all indices and takes those that name its own.
template <class T>
int32_t scatterNd(void *const *buffers, void *, const int64_t *params, int64_t begin, int64_t end) {
  const T *x = static_cast<const T *>(buffers[0]), *updates = static_cast<const T *>(buffers[2]);
  const int64_t *indices = static_cast<const int64_t *>(buffers[1]);
  T *out = static_cast<T *>(buffers[3]);
  const int64_t depth = params[1], slice = params[2];
  const int64_t count = slice ? params[0] : 0; // an index of no update is not looked at
  const auto mode = static_cast<Mode>(params[3]);
  const int64_t *dims = params + 4;
  if (x != out)
    copy(out + begin * slice, x + begin * slice, (end - begin) * slice);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t index = place(indices[i * depth + d], dims[d]);
      if (index < 0)
        return kIndexOutOfRange;
      at = at * dims[d] + index;
    }
    if (at < begin || at >= end)
      continue;
    for (int64_t j = 0; j < slice; ++j)
      apply(mode, out[at * slice + j], updates[i * slice + j]);
  }
  return kOk;
}

} // namespace

TRESSEL_KERNEL(put_along_axis, putAlongAxis)
TRESSEL_KERNEL(scatter_nd, scatterNd)

} // namespace tressel::bitcode
