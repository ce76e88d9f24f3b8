// Moving blocks of elements from or to computed places: a thread per element, as often as needed.
// All params begin with: the KernelForm's range, and whether all offsets fit into 32 bits. Then those of the kernels
// for the CPU (codegen/bitcode/kernels/Copy.cpp).
#include "codegen/cuda/device/Elements.h"

namespace tressel::device {
namespace {

TRESSEL_INLINE int64_t firstElement() { return int64_t(blockIndex()) * numThreads() + threadIndex(); }
TRESSEL_INLINE int64_t stepOfElements() { return int64_t(numBlocks()) * numThreads(); }

/// x [batch, dims..., slice], indices [batch, count, depth], out [batch, count, slice]. count, depth, slice, dims.
template <class T> TRESSEL_INLINE void gatherNd(void *const *buffers, const int64_t *params, int32_t *status) {
  const T *x = static_cast<const T *>(buffers[0]);
  const int64_t *indices = static_cast<const int64_t *>(buffers[1]);
  T *out = static_cast<T *>(buffers[2]);
  const bool narrow = params[1] != 0;
  const int64_t count = params[2], depth = params[3], slice = params[4], all = params[0] * slice;
  const int64_t *dims = params + 5;
  for (int64_t e = firstElement(); e < all; e += stepOfElements()) {
    const int64_t unit = divide(e, slice, narrow);
    int64_t at = divide(unit, count, narrow);
    bool inside = true;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t index = place(indices[unit * depth + d], dims[d]);
      inside &= index >= 0;
      at = at * dims[d] + index;
    }
    if (inside)
      out[e] = x[at * slice + e - unit * slice];
    else
      *status = kIndexOutOfRange;
  }
}

/// Where a window of `sizes` begins in `dims`, moved inside as far as needed.
TRESSEL_INLINE int64_t clampStart(int64_t start, int64_t dim, int64_t size) {
  const int64_t most = dim - size, x = start < most ? start : most;
  return x < 0 ? 0 : x;
}

/// x, starts, out. rank, x's sizes, the result's sizes.
template <class T> TRESSEL_INLINE void dynamicSlice(void *const *buffers, const int64_t *params) {
  const T *x = static_cast<const T *>(buffers[0]);
  const int64_t *starts = static_cast<const int64_t *>(buffers[1]);
  T *out = static_cast<T *>(buffers[2]);
  const bool narrow = params[1] != 0;
  const int64_t rank = params[2], *dims = params + 3, *sizes = dims + rank;
  const int64_t all = params[0] * sizes[rank - 1];
  for (int64_t e = firstElement(); e < all; e += stepOfElements()) {
    int64_t rest = e, at = 0, step = 1;
    for (int64_t d = rank - 1; d >= 0; --d) {
      const int64_t next = divide(rest, sizes[d], narrow);
      at += (rest - next * sizes[d] + clampStart(starts[d], dims[d], sizes[d])) * step;
      rest = next;
      step *= dims[d];
    }
    out[e] = x[at];
  }
}

/// x, update, starts, out. rank, lead (not used here), x's sizes, update's sizes. If the result lies on x, only the
/// window is written.
template <class T> TRESSEL_INLINE void dynamicUpdateSlice(void *const *buffers, const int64_t *params) {
  const T *x = static_cast<const T *>(buffers[0]), *update = static_cast<const T *>(buffers[1]);
  const int64_t *starts = static_cast<const int64_t *>(buffers[2]);
  T *out = static_cast<T *>(buffers[3]);
  const bool narrow = params[1] != 0;
  const int64_t rank = params[2], *dims = params + 4, *sizes = dims + rank;
  int64_t all = 1, allOfUpdate = 1;
  for (int64_t d = 0; d < rank; ++d) {
    all *= dims[d];
    allOfUpdate *= sizes[d];
  }
  if (x == out) {
    for (int64_t e = firstElement(); e < allOfUpdate; e += stepOfElements()) {
      int64_t rest = e, at = 0, step = 1;
      for (int64_t d = rank - 1; d >= 0; --d) {
        const int64_t next = divide(rest, sizes[d], narrow);
        at += (rest - next * sizes[d] + clampStart(starts[d], dims[d], sizes[d])) * step;
        rest = next;
        step *= dims[d];
      }
      out[at] = update[e];
    }
    return;
  }
  for (int64_t e = firstElement(); e < all; e += stepOfElements()) {
    int64_t rest = e, from = 0, step = 1;
    bool inside = true;
    for (int64_t d = rank - 1; d >= 0; --d) {
      const int64_t next = divide(rest, dims[d], narrow);
      const int64_t index = rest - next * dims[d] - clampStart(starts[d], dims[d], sizes[d]);
      inside &= index >= 0 && index < sizes[d];
      from += index * step;
      step *= sizes[d];
      rest = next;
    }
    out[e] = inside ? update[from] : x[e];
  }
}

} // namespace

#define TRESSEL_COPIES(suffix, T)                                                                                      \
  TRESSEL_DEVICE(gather_nd_##suffix) {                                                                                 \
    gatherNd<T>(buffers, params, status);                                                                              \
    (void)context;                                                                                                     \
  }
TRESSEL_FOR_ALL_WIDTHS(TRESSEL_COPIES)
TRESSEL_COPIES(b16, Word4) // several elements of a slice at once
#undef TRESSEL_COPIES
#define TRESSEL_COPIES(suffix, T)                                                                                      \
  TRESSEL_DEVICE(dynamic_slice_##suffix) {                                                                             \
    dynamicSlice<T>(buffers, params);                                                                                  \
    (void)context, (void)status;                                                                                       \
  }                                                                                                                    \
  TRESSEL_DEVICE(dynamic_update_slice_##suffix) {                                                                      \
    dynamicUpdateSlice<T>(buffers, params);                                                                            \
    (void)context, (void)status;                                                                                       \
  }
TRESSEL_FOR_ALL_WIDTHS(TRESSEL_COPIES)

} // namespace tressel::device
