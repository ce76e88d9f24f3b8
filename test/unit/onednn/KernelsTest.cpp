// oneDNN kernels called as the executor calls them, against plain loops.
#include "codegen/onednn/Params.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace tressel;
using namespace tressel::onednn;

namespace {

std::vector<float> randomValues(size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  std::vector<float> v(n);
  for (float &x : v)
    x = d(rng);
  return v;
}

runtime::LoadedKernel load(const Params &p, int32_t numInputs) {
  registerKernels();
  runtime::KernelDesc desc;
  desc.symbol = "test", desc.provider = "onednn", desc.params = p.toJson(), desc.numInputs = numInputs;
  return runtime::findKernelProvider("onednn")(desc);
}

/// Runs all units one by one, in reverse, to show that they are independent.
void run(const runtime::LoadedKernel &kernel, std::vector<void *> buffers, int64_t units, int64_t scratchBytes,
         const std::vector<int64_t> &sizes = {}) {
  std::vector<std::byte> scratch(static_cast<size_t>(scratchBytes) + 64);
  auto base = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  runtime::KernelArgs args{buffers.data(), sizes.data(), reinterpret_cast<void *>(base), 0, kernel.state, 0};
  for (int64_t u = units - 1; u >= 0; --u)
    ASSERT_EQ(kernel.fn(&args, u, u + 1), runtime::kKernelOk);
}

/// The packed right side as `pack` makes it.
std::vector<std::byte> pack(Params p, Kind kind, void *right) {
  Query q = query(p);
  EXPECT_TRUE(q.supported);
  p = Params::of(p.typical());
  std::vector<std::byte> out(static_cast<size_t>(q.needs.packedBytes));
  p.kind = kind, p.left = p.right = 0;
  p.packed = -1;
  run(load(p, 1), {right, out.data()}, 1, 0);
  return out;
}

/// Values of the symbols, for one call each.
struct Sizes {
  std::vector<Size> symbols;
  std::vector<std::vector<int64_t>> calls{{}};
  dim::Values values(const std::vector<int64_t> &call) const {
    dim::Values values;
    for (size_t i = 0; i < symbols.size(); ++i)
      values.bind(symbols[i], call[i]);
    return values;
  }
};

void checkMatmul(const runtime::LoadedKernel &kernel, const Params &p, const Matmul<int64_t> &m,
                 const std::vector<int64_t> &sizes) {
  const bool packed = p.packed >= 0;
  auto a = randomValues(static_cast<size_t>(m.batch * m.m * m.k), 1), b = randomValues(static_cast<size_t>(m.batch * m.k * m.n), 2);
  std::vector<float> c(static_cast<size_t>(m.batch * m.m * m.n), NAN);
  Query q = query(p);
  ASSERT_TRUE(q.supported);
  std::vector<std::byte> packedBytes;
  std::vector<void *> buffers{a.data(), b.data()};
  if (packed) {
    packedBytes = pack(p, Kind::PackMatmul, b.data());
    buffers.push_back(packedBytes.data());
  }
  buffers.push_back(c.data());
  run(kernel, buffers, m.units(), sizes.empty() ? q.needs.scratchBytes : 0, sizes);
  for (int64_t i = 0; i < m.batch; ++i)
    for (int64_t r = 0; r < m.m; ++r)
      for (int64_t n = 0; n < m.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < m.k; ++k)
          sum += double(a[i * m.a[0] + r * m.a[1] + k * m.a[2]]) * b[i * m.b[0] + k * m.b[1] + n * m.b[2]];
        ASSERT_NEAR(c[(i * m.m + r) * m.n + n], sum, 1e-5 * std::sqrt(double(m.k))) << i << " " << r << " " << n;
      }
}

void checkMatmul(const Matmul<Size> &m, bool packed, const Sizes &sizes = {}) {
  Params p;
  p.matmul = m, p.symbols = sizes.symbols;
  p.packed = packed ? 2 : -1;
  const runtime::LoadedKernel kernel = load(p, packed ? 3 : 2);
  for (const std::vector<int64_t> &call : sizes.calls) {
    SCOPED_TRACE(call.empty() ? "" : std::to_string(call[0]));
    checkMatmul(kernel, p, p.at(sizes.values(call)).matmul, call);
  }
}

TEST(OneDnn, Matmul) {
  for (bool packed : {false, true})
    for (auto [m, n, k, rows] : {std::array<int64_t, 4>{64, 48, 32, 16}, {37, 19, 53, 16}, {1, 100, 64, 1}, {5, 1, 7, 5}})
      checkMatmul({1, m, n, k, {0, k, 1}, {0, n, 1}, rows}, packed);
}

TEST(OneDnn, MatmulOfTransposedOperands) {
  checkMatmul({1, 20, 30, 40, {0, 1, 20}, {0, 30, 1}, 20}, false); // a is [k, m]
  checkMatmul({1, 20, 30, 40, {0, 40, 1}, {0, 1, 40}, 8}, true);   // b is [n, k]
}

TEST(OneDnn, BatchedMatmul) { checkMatmul({3, 16, 24, 8, {128, 8, 1}, {192, 24, 1}, 8}, false); }

/// More sizes than are kept, and one that comes back.
std::vector<std::vector<int64_t>> manySizes(int64_t step) {
  std::vector<std::vector<int64_t>> calls;
  for (int64_t i = 0; i < 20; ++i)
    calls.push_back({1 + i * step});
  calls.push_back({1 + step});
  return calls;
}

TEST(OneDnn, MatmulOfSymbolicSizes) {
  const Size s = dim::symbol("s"), t = dim::symbol("t");
  for (bool packed : {false, true})
    checkMatmul({1, s, 24, 40, {0, 40, 1}, {0, 24, 1}, 32}, packed, {{s}, manySizes(7)});
  // Attention: everything but the depth.
  checkMatmul({3, s, t, 16, {s * 16, 16, 1}, {t * 16, 1, 16}, s}, false,
              {{s, t}, {{1, 1}, {5, 3}, {3, 5}, {64, 1}, {1, 33}, {5, 3}}});
  checkMatmul({1, 20, 30, s, {0, s, 1}, {0, 30, 1}, 20}, false, {{s}, {{1}, {2}, {100}}});
}

TEST(OneDnn, NothingToMultiply) {
  const Size s = dim::symbol("s", 0, 100);
  Params p;
  p.matmul = {1, s, 24, 40, {0, 40, 1}, {0, 24, 1}, 32}, p.symbols = {s};
  const std::vector<int64_t> sizes{0};
  std::vector<float> any(960);
  run(load(p, 2), {any.data(), any.data(), any.data()}, 1, 0, sizes);
}

/// A convolution, or its derivative by the images.
void checkConv(const runtime::LoadedKernel &kernel, const Params &p, const Conv<int64_t> &c,
               const std::vector<int64_t> &sizes) {
  const bool packed = p.packed >= 0, byData = p.kind == Kind::ConvByData;
  int64_t rank = static_cast<int64_t>(c.in.size());
  auto product = [](const std::vector<int64_t> &v) {
    int64_t n = 1;
    for (int64_t x : v)
      n *= x;
    return n;
  };
  const int64_t perGroup = c.inChannels / c.groups, in = product(c.in), out = product(c.out);
  auto place = [&](int64_t n, int64_t channel, int64_t channels, int64_t at, int64_t space) {
    return c.channelsLast ? (n * space + at) * channels + channel : (n * channels + channel) * space + at;
  };
  const auto numImage = static_cast<size_t>(c.batch * c.inChannels * in),
             numMade = static_cast<size_t>(c.batch * c.outChannels * out);
  auto given = randomValues(byData ? numMade : numImage, 3);
  auto w = randomValues(static_cast<size_t>(c.outChannels * perGroup * product(c.window)), 4);
  std::vector<float> result(byData ? numImage : numMade, NAN);
  std::vector<double> want(result.size(), 0);
  Query q = query(p);
  ASSERT_TRUE(q.supported);
  std::vector<std::byte> packedBytes;
  std::vector<void *> buffers{given.data(), w.data()};
  if (packed) {
    packedBytes = pack(p, Kind::PackConv, w.data());
    buffers.push_back(packedBytes.data());
  }
  buffers.push_back(result.data());
  run(kernel, buffers, c.units(), sizes.empty() ? q.needs.scratchBytes : 0, sizes);
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.outChannels; ++o)
      for (int64_t at = 0; at < out; ++at)
        for (int64_t i = 0; i < perGroup; ++i)
          for (int64_t tap = 0; tap < product(c.window); ++tap) {
            int64_t restAt = at, restTap = tap, inIndex = 0, scale = 1;
            bool inside = true;
            for (int64_t d = rank - 1; d >= 0; --d) {
              int64_t pos = restAt % c.out[d] * c.strides[d] + restTap % c.window[d] * c.dilations[d] - c.padLow[d];
              restAt /= c.out[d], restTap /= c.window[d];
              inside = inside && pos >= 0 && pos < c.in[d];
              inIndex += pos * scale, scale *= c.in[d];
            }
            if (!inside)
              continue;
            const int64_t channel = o / (c.outChannels / c.groups) * perGroup + i;
            const auto x = static_cast<size_t>(place(n, channel, c.inChannels, inIndex, in)),
                       y = static_cast<size_t>(place(n, o, c.outChannels, at, out));
            const double weight = w[static_cast<size_t>((o * perGroup + i) * product(c.window) + tap)];
            want[byData ? x : y] += weight * given[byData ? y : x];
          }
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(result[i], want[i], 2e-4) << "element " << i;
}

void checkConv(const Conv<Size> &c, bool packed, const Sizes &sizes = {}, Kind kind = Kind::Conv) {
  Params p;
  p.kind = kind, p.conv = c, p.symbols = sizes.symbols;
  p.packed = packed ? 2 : -1;
  const runtime::LoadedKernel kernel = load(p, packed ? 3 : 2);
  for (const std::vector<int64_t> &call : sizes.calls) {
    SCOPED_TRACE(call.empty() ? "" : std::to_string(call[0]));
    checkConv(kernel, p, p.at(sizes.values(call)).conv, call);
  }
}

TEST(OneDnn, ConvolutionOfSymbolicSizes) {
  const Size s = dim::symbol("s"), t = dim::symbol("t");
  for (bool packed : {false, true}) {
    checkConv({t, 1, 16, 32, 1, {s, 9}, {3, 3}, {s, 9}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, packed,
              {{s, t}, {{1, 1}, {2, 3}, {64, 1}, {7, 2}, {2, 3}}});
    checkConv({2, 1, 3, 8, 1, {s}, {4}, {dim::max(0, s - 3)}, {1}, {1}, {0}, {0}}, packed, {{s}, manySizes(5)});
  }
}

TEST(OneDnn, Convolution) {
  for (bool packed : {false, true}) {
    checkConv({2, 1, 1, 6, 1, {12, 12}, {5, 5}, {12, 12}, {1, 1}, {1, 1}, {2, 2}, {2, 2}}, packed);   // few channels: plain
    checkConv({2, 1, 32, 64, 2, {8, 8}, {3, 3}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, packed);     // blocked, two ranges
    checkConv({1, 4, 8, 12, 1, {9, 7}, {3, 2}, {5, 6}, {1, 1}, {2, 1}, {0, 0}, {0, 0}}, packed);      // groups, dilation
    checkConv({1, 1, 16, 32, 1, {50}, {5}, {46}, {1}, {1}, {0}, {0}}, packed);                        // one dimension
  }
}

TEST(OneDnn, ConvolutionOfSeveralImagesAtOnce) {
  for (bool last : {false, true}) {
    checkConv({6, 1, 32, 48, 1, {5, 4}, {3, 3}, {5, 4}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, last, 3}, false);
    checkConv({4, 2, 8, 12, 1, {9, 7}, {3, 2}, {4, 6}, {2, 1}, {1, 1}, {0, 0}, {0, 0}, last, 2}, true);
    checkConv({2, 1, 3, 16, 1, {12, 12}, {5, 5}, {12, 12}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, last, 2}, false);
    checkConv({4, 1, 32, 64, 4, {3, 2}, {3, 3}, {3, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, last, 2},
              false); // ranges of several images
  }
}

TEST(OneDnn, ConvolutionByItsData) {
  for (bool last : {false, true})
    for (int64_t images : {1, 2}) {
      auto check = [&](Conv<Size> c, const Sizes &sizes = {}) {
        c.channelsLast = last;
        c.images = sizes.symbols.empty() ? images : 1;
        checkConv(c, false, sizes, Kind::ConvByData);
      };
      check({4, 1, 32, 48, 1, {5, 4}, {3, 3}, {5, 4}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
      check({2, 1, 16, 32, 1, {8, 8}, {3, 3}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {0, 0}}); // no window reaches the padding
                                                                                        // at the end
      check({2, 1, 16, 32, 1, {8, 9}, {1, 1}, {4, 5}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}); // nor the last column
      check({2, 4, 8, 12, 1, {9, 7}, {3, 2}, {5, 6}, {1, 1}, {2, 1}, {0, 0}, {0, 0}});  // groups, dilation
      check({2, 1, 3, 16, 1, {12, 12}, {5, 5}, {12, 12}, {1, 1}, {1, 1}, {2, 2}, {2, 2}});
      check({2, 1, 16, 32, 1, {50}, {5}, {46}, {1}, {1}, {0}, {0}});
      check({4, 1, 64, 32, 2, {4, 4}, {3, 3}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, {0, 0}}); // ranges
      const Size s = dim::symbol("s"), t = dim::symbol("t");
      check({t, 1, 16, 32, 1, {s, 9}, {3, 3}, {s, 9}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
            {{s, t}, {{1, 1}, {2, 3}, {64, 1}, {7, 2}}});
    }
}

TEST(OneDnn, ConcurrentCallersShareAKernel) {
  Matmul<Size> m{1, 64, 64, 64, {0, 64, 1}, {0, 64, 1}, 16};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i)
        checkMatmul(m, true);
    });
  for (std::thread &t : threads)
    t.join();
}

TEST(OneDnn, DamagedParamsAreRefused) {
  Params p;
  std::string good = p.toJson();
  EXPECT_EQ(Params::fromJson(good).toJson(), good);
  for (std::string bad : {std::string(), std::string("{"), std::string("{\"kind\":\"sort\"}"), good.substr(0, good.size() / 2),
                          std::string("[]"), std::string("{\"kind\":3}")})
    EXPECT_THROW(Params::fromJson(bad), InputError) << bad;
  p.left = 7;
  EXPECT_THROW(load(p, 2), InputError);
  p.kind = Kind::Conv;
  p.conv = {4, 1, 8, 8, 1, {5, 5}, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, true, 2};
  EXPECT_EQ(Params::fromJson(p.toJson()).toJson(), p.toJson());
  p.conv.images = 3;
  EXPECT_THROW(Params::fromJson(p.toJson()), InputError);
}

} // namespace
