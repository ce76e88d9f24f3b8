// Matrix products of the device library against plain loops.
#pragma once

#include "codegen/cuda/library/LibraryKernels.h"
#include "test/support/RandomOps.h"
#include "test/unit/codegen/CudaDeviceHarness.h"
#include "tressel/runtime/Half.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace tressel::codegen::cuda::test {

using tressel::test::Random;

/// Elements of one of the three types, aligned as a device's buffers are, with their values.
struct Operand {
  Operand(DType type, int64_t count, Random *random = nullptr) : type(type), count(count) {
    storage.resize(static_cast<size_t>(count * sizeOf(type)) + 64);
    for (int64_t i = 0; i < count; ++i)
      set(i, random ? static_cast<double>(random->between(-64, 64)) / 32 : std::nan(""));
  }
  char *data() {
    const auto address = reinterpret_cast<uintptr_t>(storage.data());
    return storage.data() + (64 - address % 64) % 64;
  }
  void set(int64_t i, double x) {
    if (type == f32) {
      const auto value = static_cast<float>(x);
      std::memcpy(data() + i * 4, &value, 4);
    } else {
      const uint16_t bits = type == f16 ? halfFromDouble(x) : bfloatFromDouble(x);
      std::memcpy(data() + i * 2, &bits, 2);
    }
  }
  double operator[](int64_t i) {
    if (type == f32) {
      float value;
      std::memcpy(&value, data() + i * 4, 4);
      return static_cast<double>(value);
    }
    uint16_t bits;
    std::memcpy(&bits, data() + i * 2, 2);
    return static_cast<double>(type == f16 ? halfToFloat(bits) : bfloatToFloat(bits));
  }
  int64_t bytes() const { return count * sizeOf(type); }

  DType type;
  int64_t count;
  std::vector<char> storage;
};

/// Sums of `depth` products of operands, which are multiples of 1/32 up to 2: f32 holds them all, in whatever order
/// they are added up, so that only the result is rounded, to its type.
inline void expectSum(double got, double want, DType type, int64_t depth, const std::string &what) {
  ASSERT_LE(depth, (1 << 24) / (64 * 64)) << "some sum is beyond what f32 holds exactly";
  const double rounded = type == f32   ? want
                         : type == f16 ? static_cast<double>(halfToFloat(halfFromDouble(want)))
                                       : static_cast<double>(bfloatToFloat(bfloatFromDouble(want)));
  ASSERT_EQ(got, rounded) << what;
}

inline Epilogue plainStore(DType type, int numBuffers) {
  Epilogue e;
  e.rootBuffer = numBuffers - 1, e.type = type, e.numBuffers = numBuffers;
  return e;
}

struct ProductCase {
  int64_t batch, m, n, k;
  bool leftTransposed = false, rightTransposed = false;
  bool rightShared = false; ///< by all of the batch
  int64_t gap = 0;          ///< between rows, so that they do not follow each other
  int symbolic = 0;         ///< m, or else n if 2, or k if 3, is known only at launch
};

/// Emulates the product and compares every element. Returns the kernel's text.
inline std::string checkProduct(const ProductCase &c, DType type, std::string_view tile, const Arch &arch,
                                Random &random, std::string *ptx = nullptr, int parts = 1) {
  const int64_t leftRow = (c.leftTransposed ? c.m : c.k) + c.gap, rightRow = (c.rightTransposed ? c.k : c.n) + c.gap;
  const int64_t leftMatrix = leftRow * (c.leftTransposed ? c.k : c.m),
                rightMatrix = rightRow * (c.rightTransposed ? c.n : c.k);
  MatrixProduct p;
  p.batch = c.batch, p.m = c.m, p.n = c.n, p.k = c.k;
  p.left = {c.batch == 1 ? 0 : leftMatrix, c.leftTransposed ? 1 : leftRow, c.leftTransposed ? leftRow : 1};
  p.right = {c.batch == 1 || c.rightShared ? 0 : rightMatrix, c.rightTransposed ? 1 : rightRow,
             c.rightTransposed ? rightRow : 1};
  const int64_t left[] = {p.left[0].number(), p.left[1].number(), p.left[2].number()},
                right[] = {p.right[0].number(), p.right[1].number(), p.right[2].number()};
  std::vector<Size> symbols;
  std::vector<int64_t> scalars;
  if (c.symbolic) {
    const Size s = dim::symbol("s");
    symbols = {s}, scalars = {c.symbolic == 3 ? c.k : c.symbolic == 2 ? c.n : c.m};
    (c.symbolic == 3 ? p.k : c.symbolic == 2 ? p.n : p.m) = s;
    if (c.symbolic == 2 && !c.rightTransposed)
      p.right[1] = s + c.gap; // its rows are as long
    if (c.symbolic == 3 && !c.leftTransposed)
      p.left[1] = s + c.gap;
    if (c.symbolic == 3 && c.rightTransposed)
      p.right[2] = s + c.gap;
  }
  auto kernel = makeProductKernel("k", p, type, {0, 1}, plainStore(type, 3), symbols, arch, tile, parts);
  if (!kernel)
    return "";
  Operand a(type, leftMatrix * c.batch, &random), b(type, rightMatrix * (c.rightShared ? 1 : c.batch), &random),
      out(type, c.batch * c.m * c.n);
  const GpuKernel gpu(*kernel, arch);
  if (ptx)
    *ptx = gpu.ptx;
  EXPECT_EQ(gpu.run({a.data(), b.data(), out.data()}, {a.bytes(), b.bytes(), out.bytes()}, scalars), 0);
  for (int64_t i = 0; i < c.batch; ++i)
    for (int64_t m = 0; m < c.m; ++m)
      for (int64_t n = 0; n < c.n; ++n) {
        double want = 0;
        for (int64_t k = 0; k < c.k; ++k)
          want += a[i * left[0] + m * left[1] + k * left[2]] * b[i * right[0] + k * right[1] + n * right[2]];
        expectSum(out[(i * c.m + m) * c.n + n], want, type, c.k,
                  kernel->text + " at " + std::to_string(i) + ", " + std::to_string(m) + ", " + std::to_string(n));
        if (testing::Test::HasFatalFailure())
          return kernel->text;
      }
  return kernel->text;
}

inline std::string functionOf(const std::string &text) { return text.substr(7, text.find(' ', 7) - 7); }

} // namespace tressel::codegen::cuda::test
