// Matrix products of the row gemm.geomean, and the libraries they are compared with.
#pragma once

#include "Bench.h"

#include <memory>

namespace tressel::bench {

/// x[m, k] times weights[k, n].
struct ProductShape {
  int64_t m, k, n;
  auto operator<=>(const ProductShape &) const = default;
};
/// 40 shapes: layers of transformers and classifiers, a square too large for caches, odd sizes; 1 to 256 rows.
inline std::vector<ProductShape> productShapes() {
  std::vector<ProductShape> shapes;
  for (auto [k, n] : {std::pair<int64_t, int64_t>{768, 768},
                      {768, 3072},
                      {3072, 768},
                      {1024, 4096},
                      {4096, 4096},
                      {2048, 1000},
                      {333, 257},
                      {512, 10}})
    for (int64_t m : {1, 4, 16, 64, 256})
      shapes.push_back({m, k, n});
  return shapes;
}

/// How often a product is repeated for one figure, in seconds.
inline constexpr double kProductSeconds = 16e-3;

/// One product by the faster of oneDNN (matmul and inner product, weights packed ahead) and OpenBLAS (if it is
/// installed; told which CPU this is, as the release of Debian 12 does not know new ones), on as many threads as
/// OMP_NUM_THREADS and OPENBLAS_NUM_THREADS say. Operands and result of f32, or of bf16, by oneDNN alone. Prepared once
/// per shape; a process asks for one type.
const LibraryCall &libraryProduct(const ProductShape &shape, bool bf16 = false);

/// Names and versions.
std::string libraries();

} // namespace tressel::bench
