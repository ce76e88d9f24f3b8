// result[b, m, n] = sum over k of left[b, m, k] * right[b, k, n]: a block, or a cluster, per tile of the result.
// params: batch, m, n, k; left's strides of batch, m, k; right's strides of batch, k, n; then of left and of right,
// whether it is read along its depth, and whether 16 bytes at a time (Strided); blocks that share a tile's depth.
#include "codegen/cuda/device/Tile.h"

namespace tressel::device {
namespace {

struct ProductResult {
  int64_t base, rows, columns;
  TRESSEL_INLINE int64_t index(int64_t row, int64_t column) const { return base + row * columns + column; }
};

template <class Tile>
TRESSEL_INLINE void product(void *const *context, void *const *buffers, const int64_t *p, TRESSEL_SHARED char *pool) {
  using T = typename Tile::T;
  const int64_t m = p[1], n = p[2], k = p[3];
  const DepthShare share = DepthShare::of(p[14]);
  const TileNumber tile = tileNumber(share.tile(), ceilDiv(m, Tile::BM), ceilDiv(n, Tile::BN));
  const Strided<T> left{
      static_cast<const T *>(buffers[0]) + tile.batch * p[4], p[5], p[6], m, k, p[10] != 0, p[11] != 0};
  const Strided<T> right{
      static_cast<const T *>(buffers[1]) + tile.batch * p[7], p[9], p[8], n, k, p[12] != 0, p[13] != 0};
  multiplyTile<Tile>(context, left, right, ProductResult{tile.batch * m * n, m, n}, tile.row * Tile::BM,
                     tile.column * Tile::BN, k, share, pool);
}

} // namespace

#define TRESSEL_PRODUCT(name, ...)                                                                                     \
  TRESSEL_DEVICE(name) {                                                                                               \
    using Tile = __VA_ARGS__;                                                                                          \
    TRESSEL_SHARED_POOL(pool, kPoolBytes<Tile>);                                                                       \
    product<Tile>(context, buffers, params, pool);                                                                     \
    (void)status;                                                                                                      \
  }
#define TRESSEL_PRODUCTS_OF_HALVES(type, T)                                                                            \
  TRESSEL_PRODUCT(product_##type##_128, MmaTile<T, 128, 128, 32, 64, 32, 1>)                                           \
  TRESSEL_PRODUCT(product_##type##_64, MmaTile<T, 64, 64, 32, 32, 32, 1>)                                              \
  TRESSEL_PRODUCT(product_##type##_32, MmaTile<T, 32, 32, 64, 32, 32, 4>)
TRESSEL_PRODUCTS_OF_HALVES(f16, Half)
TRESSEL_PRODUCTS_OF_HALVES(bf16, BFloat16)
TRESSEL_PRODUCT(product_f32_128, FmaTile<128, 128, 16, 8, 8, 1>)
TRESSEL_PRODUCT(product_f32_64, FmaTile<64, 64, 16, 8, 4, 1>)
TRESSEL_PRODUCT(product_f32_32, FmaTile<32, 32, 32, 4, 4, 4>)

} // namespace tressel::device
