// cumsum, cumprod, cummax, cummin: running totals along one dimension.
#include "codegen/bitcode/kernels/Kernel.h"

namespace tressel::bitcode {
namespace {

inline constexpr int64_t kBlock = 64;

/// params: size of the dimension, elements between its neighbours, mode, whether an element itself is left out, whether
/// the last comes first, columns per unit (at most kBlock). A unit is a block of neighbouring lines, so that the inner
/// loop runs over columns and is vectorized. 16-bit floats keep their total in f32.
template <class T>
int32_t scan(void *const *buffers, void *, const int64_t *params, int64_t begin, int64_t end) {
  using W = WideOf<T>;
  const T *x = static_cast<const T *>(buffers[0]);
  T *out = static_cast<T *>(buffers[1]);
  const int64_t size = params[0], columns = params[1];
  const auto mode = static_cast<Mode>(params[2]);
  const bool exclusive = params[3] != 0, reverse = params[4] != 0;
  const int64_t block = params[5], blocks = (columns + block - 1) / block;
  const W start = mode == Mode::Mul ? W(1) : W(0);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = unit % blocks * block;
    const int64_t width = columns - first < block ? columns - first : block;
    const int64_t base = unit / blocks * size * columns + first;
    W total[kBlock];
    for (int64_t j = 0; j < width; ++j)
      total[j] = start;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t at = base + (reverse ? size - 1 - i : i) * columns;
      for (int64_t j = 0; j < width; ++j) {
        const W value = widen(x[at + j]), before = total[j];
        const bool isFirst = i == 0 && (mode == Mode::Min || mode == Mode::Max); // no number is neutral in all types
        const W after = isFirst ? value : combine(mode, before, value);
        total[j] = after;
        out[at + j] = narrow<T>(exclusive ? before : after);
      }
    }
  }
  return kOk;
}

} // namespace

TRESSEL_KERNEL(scan, scan)

} // namespace tressel::bitcode
