// Moving blocks of elements from or to computed places.
#include "codegen/bitcode/kernels/Kernel.h"

namespace tressel::bitcode {
namespace {

inline constexpr int64_t kMaxRank = 8;

/// Operands: x [batch, dims..., slice], indices [batch, count, depth]. params: count, depth, slice, dims. A unit is one
/// slice of the result [batch, count, slice].
template <class T>
int32_t gatherNd(void *const *buffers, void *, const int64_t *params, int64_t begin, int64_t end) {
  const T *x = static_cast<const T *>(buffers[0]);
  const int64_t *indices = static_cast<const int64_t *>(buffers[1]);
  T *out = static_cast<T *>(buffers[2]);
  const int64_t count = params[0], depth = params[1], slice = params[2];
  const int64_t *dims = params + 3;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t at = unit / count;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t index = place(indices[unit * depth + d], dims[d]);
      if (index < 0)
        return kIndexOutOfRange;
      at = at * dims[d] + index;
    }
    copy(out + unit * slice, x + at * slice, slice);
  }
  return kOk;
}

/// Where a window of `sizes` begins in `dims`, moved inside as far as needed.
inline void clampStarts(const int64_t *starts, const int64_t *dims, const int64_t *sizes, int64_t rank, int64_t *first) {
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t most = dims[d] - sizes[d], start = starts[d] < most ? starts[d] : most;
    first[d] = start < 0 ? 0 : start;
  }
}

/// Operands: x, starts. params: rank (at least 1), x's sizes, the result's sizes. A unit is a row of the result.
template <class T>
int32_t dynamicSlice(void *const *buffers, void *, const int64_t *params, int64_t begin, int64_t end) {
  const T *x = static_cast<const T *>(buffers[0]);
  T *out = static_cast<T *>(buffers[2]);
  const int64_t rank = params[0], *dims = params + 1, *sizes = dims + rank;
  int64_t first[kMaxRank];
  clampStarts(static_cast<const int64_t *>(buffers[1]), dims, sizes, rank, first);
  const int64_t row = sizes[rank - 1];
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t rest = unit, at = 0, step = dims[rank - 1];
    for (int64_t d = rank - 1; d-- > 0;) {
      at += (rest % sizes[d] + first[d]) * step;
      rest /= sizes[d];
      step *= dims[d];
    }
    copy(out + unit * row, x + at + first[rank - 1], row);
  }
  return kOk;
}

/// Operands: x, update, starts. params: rank (at least 1), how many leading dimensions units are counted in (less than
/// rank), x's sizes, update's sizes. A unit is a block of x; those outside the window are only copied, and not even
/// that when the result lies on x.
template <class T>
int32_t dynamicUpdateSlice(void *const *buffers, void *, const int64_t *params, int64_t begin, int64_t end) {
  const T *x = static_cast<const T *>(buffers[0]), *update = static_cast<const T *>(buffers[1]);
  T *out = static_cast<T *>(buffers[3]);
  const int64_t rank = params[0], lead = params[1], *dims = params + 2, *sizes = dims + rank;
  int64_t first[kMaxRank];
  clampStarts(static_cast<const int64_t *>(buffers[2]), dims, sizes, rank, first);
  int64_t block = 1, rows = 1;
  for (int64_t d = lead; d < rank; ++d)
    block *= dims[d];
  for (int64_t d = lead; d < rank - 1; ++d)
    rows *= sizes[d];
  const int64_t row = sizes[rank - 1];
  if (x != out)
    copy(out + begin * block, x + begin * block, (end - begin) * block);
  for (int64_t unit = begin; unit < end; ++unit) {
    // Which block of the update falls on this one of x.
    int64_t rest = unit, from = 0, step = 1;
    bool inside = true;
    for (int64_t d = lead; d-- > 0;) {
      const int64_t index = rest % dims[d] - first[d];
      rest /= dims[d];
      inside &= index >= 0 && index < sizes[d];
      from += index * step;
      step *= sizes[d];
    }
    if (!inside)
      continue;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t left = r, at = 0, stride = dims[rank - 1];
      for (int64_t d = rank - 1; d-- > lead;) {
        at += (left % sizes[d] + first[d]) * stride;
        left /= sizes[d];
        stride *= dims[d];
      }
      copy(out + unit * block + at + first[rank - 1], update + (from * rows + r) * row, row);
    }
  }
  return kOk;
}

} // namespace

TRESSEL_KERNEL_BY_WIDTH(gather_nd, gatherNd)
TRESSEL_KERNEL_BY_WIDTH(dynamic_slice, dynamicSlice)
TRESSEL_KERNEL_BY_WIDTH(dynamic_update_slice, dynamicUpdateSlice)

} // namespace tressel::bitcode
