// docs/numbers.md: subnormal numbers, op by op and compiled, on every thread and path, and how exact sums are.
#include <tressel/jit.h>
#include <tressel/machine.h>
#include <tressel/ops.h>
#include <tressel/random.h>
#include <tressel/runtime/Package.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <xmmintrin.h>

using namespace tressel;

namespace {

constexpr uint32_t kDefault = 0x1f80, kFlushing = 0x9fc0, kUpward = 0x5f80, kFlags = 0x3f; // of MXCSR

/// A state of the processor for a part of a test.
struct Csr {
  const uint32_t before = _mm_getcsr();
  explicit Csr(uint32_t csr) { _mm_setcsr(csr); }
  ~Csr() { _mm_setcsr(before); }
};

float subnormal(uint32_t bits, bool negative = false) { return std::bit_cast<float>(bits | uint32_t(negative) << 31); }

std::vector<uint32_t> bitsOf(const Tensor &t) {
  const std::vector<float> values = t.to_vector<float>();
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), 4 * values.size());
  return bits;
}
bool isSubnormal(uint32_t bits) { return (bits & 0x7fffffff) != 0 && (bits & 0x7f800000) == 0; }
std::vector<uint32_t> flushedBits(std::vector<uint32_t> bits) {
  for (uint32_t &b : bits)
    b = isSubnormal(b) ? b & 0x80000000 : b;
  return bits;
}

/// Numbers of which a third is subnormal, of both signs.
std::vector<float> someSubnormals(size_t count, float scale = 1) {
  std::vector<float> values(count);
  uint32_t state = 12345;
  for (float &v : values) {
    state = state * 1664525 + 1013904223;
    v = state >> 30 == 0 || state % 13 == 0 ? subnormal(1 + (state & 0x7fffff) / 2, state >> 29 & 1)
                                             : scale * (float(state >> 8) / float(1 << 23) - 1);
  }
  return values;
}
std::vector<float> withZeros(std::vector<float> values) {
  for (float &v : values)
    v = isSubnormal(std::bit_cast<uint32_t>(v)) ? std::copysign(0.0f, v) : v;
  return values;
}

struct Named {
  const char *name;
  std::function<Tensor(Tensor, Tensor)> fn;
};

/// Ops whose results are exact or come from one emitter, so that bits can be compared.
std::vector<Named> arithmetic() {
  return {{"add", [](Tensor a, Tensor b) { return a + b; }},
          {"mul", [](Tensor a, Tensor b) { return a * b; }},
          {"div", [](Tensor a, Tensor b) { return a / b; }},
          {"max", [](Tensor a, Tensor b) { return maximum(a, b); }},
          {"min", [](Tensor a, Tensor b) { return minimum(a, b); }},
          {"relu", [](Tensor a, Tensor) { return relu(a); }},
          {"clip", [](Tensor a, Tensor) { return relu6(a); }},
          {"sqrt", [](Tensor a, Tensor) { return sqrt(a); }},
          {"sin", [](Tensor a, Tensor) { return sin(a); }},
          {"expm1", [](Tensor a, Tensor) { return expm1(a); }},
          {"log1p", [](Tensor a, Tensor) { return log1p(a); }},
          {"log", [](Tensor a, Tensor) { return log(a); }},
          {"asin", [](Tensor a, Tensor) { return asin(a); }},
          {"tanh", [](Tensor a, Tensor) { return tanh(a); }},
          {"floor", [](Tensor a, Tensor) { return floor(a); }},
          {"ceil", [](Tensor a, Tensor) { return ceil(a); }},
          {"sign", [](Tensor a, Tensor) { return sign(a); }},
          {"exp", [](Tensor a, Tensor) { return exp(a); }},
          {"max of rows", [](Tensor a, Tensor) { return max(reshape(a, {-1, 2}), 1); }},
          {"sum of rows", [](Tensor a, Tensor) { return sum(reshape(a, {-1, 2}), 1); }},
          {"sum of columns", [](Tensor a, Tensor) { return sum(reshape(a, {2, -1}), 0); }},
          {"cumsum", [](Tensor a, Tensor) { return cumsum(reshape(a, {-1, 2}), 1); }}};
}
std::vector<Named> movement() {
  return {{"transpose", [](Tensor a, Tensor) { return transpose(reshape(a, {2, -1})); }},
          {"concat", [](Tensor a, Tensor b) { return concat({a, b}, 0); }},
          {"slice", [](Tensor a, Tensor) { return slice(a, {1}, {99}); }},
          {"take", [](Tensor a, Tensor) { return take(a, tensor({5, 4, 3, 0, 1}, i64), 0); }},
          {"where", [](Tensor a, Tensor b) { return where(b > 0.0, a, b); }},
          {"neg", [](Tensor a, Tensor) { return -a; }},
          {"abs", [](Tensor a, Tensor) { return abs(a); }}};
}

class Numbers : public testing::Test {
protected:
  const std::vector<float> left_ = someSubnormals(600), right_ = [] {
    std::vector<float> values = someSubnormals(700, 1e-19f);
    return std::vector<float>(values.begin() + 100, values.end());
  }();
  const Tensor a_ = from_span(left_, {600}), b_ = from_span(right_, {600});
};

TEST_F(Numbers, ArithmeticFlushesEagerAndCompiledAlike) {
  const Tensor plainA = from_span(withZeros(left_), {600}), plainB = from_span(withZeros(right_), {600});
  for (const Named &op : arithmetic()) {
    const auto eager = bitsOf(op.fn(a_, b_)), compiled = bitsOf(jit(op.fn)(a_, b_));
    EXPECT_EQ(eager, compiled) << op.name;
    EXPECT_EQ(eager, bitsOf(op.fn(plainA, plainB))) << op.name << ": as of zeros";
    for (uint32_t bits : eager)
      ASSERT_FALSE(isSubnormal(bits)) << op.name << " " << std::hex << bits;
  }
}

TEST_F(Numbers, MovementKeepsBits) {
  for (const Named &op : movement()) {
    const auto eager = bitsOf(op.fn(a_, b_));
    EXPECT_EQ(eager, bitsOf(jit(op.fn)(a_, b_))) << op.name;
    EXPECT_NE(eager, flushedBits(eager)) << op.name;
  }
  EXPECT_EQ(bitsOf(sort(a_)), bitsOf(jit([](Tensor x) { return sort(x); })(a_)));
  const auto sorted = sort(a_).to_vector<float>();
  EXPECT_TRUE(std::ranges::is_sorted(sorted));
}

TEST_F(Numbers, KeepSubnormalsKeepsThem) {
  auto kept = [&](auto fn) { return bitsOf(jit(fn, {.keep_subnormals = true})(a_, b_)); };
  const auto sums = kept([](Tensor a, Tensor b) { return a + b; }), maxima = kept([](Tensor a, Tensor b) { return maximum(a, b); }),
             products = kept([](Tensor a, Tensor b) { return a * b; });
  size_t subnormals = 0;
  for (size_t i = 0; i < left_.size(); ++i) {
    EXPECT_EQ(sums[i], std::bit_cast<uint32_t>(left_[i] + right_[i]));
    EXPECT_EQ(products[i], std::bit_cast<uint32_t>(left_[i] * right_[i]));
    EXPECT_EQ(std::bit_cast<float>(maxima[i]), std::max(left_[i], right_[i]));
    subnormals += isSubnormal(sums[i]);
  }
  EXPECT_GT(subnormals, 10u);
  // What passes evaluate ahead, too.
  const float tiny = subnormal(1 << 20);
  auto folded = [=](Tensor x) { return x + tensor(tiny) * tensor(2.0f); };
  EXPECT_EQ(jit(folded, {.keep_subnormals = true})(tensor(0.0f)).item<float>(), 2 * tiny);
  EXPECT_EQ(jit(folded)(tensor(0.0f)).item<float>(), 0);
}

TEST_F(Numbers, F64IsNeverFlushed) {
  const std::vector<double> values{5e-324, -1e-310, 1e-300, 3, 0};
  const Tensor x = from_span(values, {5});
  auto fn = [](Tensor x) { return x + x; };
  auto sums = [](Tensor x) { return sum(x + x); };
  const std::vector<double> want{1e-323, -2e-310, 2e-300, 6, 0};
  const Tensor least = from_span(std::vector<double>{5e-324, 5e-324}, {2});
  for (uint32_t csr : {kDefault, kFlushing}) {
    Tensor eager, compiled, sum1, sum2, differs, flag;
    {
      const Csr scope(csr);
      eager = fn(x), compiled = jit(fn)(x), sum1 = sum(least), sum2 = jit(sums)(least), differs = x != 0.0, flag = cast(x, bool_);
      wait_all();
    }
    EXPECT_EQ(eager.to_vector<double>(), want);
    EXPECT_EQ(compiled.to_vector<double>(), want);
    EXPECT_EQ(sum1.item<double>(), 1e-323);
    EXPECT_EQ(sum2.item<double>(), 2e-323);
    EXPECT_TRUE(differs.to_vector<bool>()[0]);
    EXPECT_TRUE(flag.to_vector<bool>()[0]);
  }
}

TEST_F(Numbers, F32BesideF64IsFlushedByItself) {
  const float tiny = subnormal(1 << 22);
  const Tensor x = from_span(std::vector<float>{tiny, 1, -tiny}, {3}), y = from_span(std::vector<double>{1e-310, 2, 3}, {3});
  EXPECT_EQ(cast(x, f64).to_vector<double>(), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(cast(from_span(std::vector<double>{1e-40, 1}, {2}), f32).to_vector<float>(), (std::vector<float>{0, 1}));
  auto mixed = [](Tensor x, Tensor y) { return cast(x * 2.0 + x, f64) + y * 0.5; };
  const std::vector<double> want{0.5e-310, 4, 1.5};
  EXPECT_EQ(mixed(x, y).to_vector<double>(), want);
  EXPECT_EQ(jit(mixed)(x, y).to_vector<double>(), want);
  auto down = [](Tensor x, Tensor y) { return cast(y * 0.5, f32) * x; };
  EXPECT_EQ(down(x, y).to_vector<float>(), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(jit(down)(x, y).to_vector<float>(), (std::vector<float>{0, 1, 0}));
}

TEST_F(Numbers, StoredHalvesKeepSubnormals) {
  std::vector<uint16_t> bits;
  for (uint32_t i = 0; i < 128; ++i)
    bits.push_back(uint16_t(i | (i & 1) << 15));
  for (DType type : {f16, bf16}) {
    const Tensor x = from_bytes(bits.data(), {type, {128}});
    auto stored = [](const Tensor &t) {
      std::vector<uint16_t> out(static_cast<size_t>(t.shape().numElements()));
      std::memcpy(out.data(), t.data(), 2 * out.size());
      return out;
    };
    auto thereAndBack = [type](Tensor x) { return cast(cast(x, f32), type); };
    auto moved = [](Tensor x) { return reshape(transpose(reshape(x, {8, 16})), {-1}); };
    EXPECT_EQ(stored(thereAndBack(x)), bits) << nameOf(type);
    EXPECT_EQ(stored(jit(thereAndBack)(x)), bits) << nameOf(type);
    EXPECT_EQ(stored(jit(moved)(x)), stored(moved(x))) << nameOf(type);
    if (type == f16)
      EXPECT_EQ(stored(cast(cast(x, f64), type)), bits);
    if (type == f16) { // computed in f32, where these are normal numbers
      auto twice = [](Tensor x) { return x + x; };
      for (const Tensor &y : {twice(x), jit(twice)(x)}) {
        const auto got = y.to_vector<float>();
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_EQ(got[i], 2 * float(i) * 0x1p-24f * (i & 1 ? -1 : 1));
      }
    }
  }
}

TEST_F(Numbers, TheCallersStateIsUntouchedAndChangesNothing) {
  auto fn = [](Tensor a, Tensor b) { return a * b + sqrt(abs(a)) * 0.3; };
  auto f = jit(fn);
  const Tensor small = from_span(left_, {600}), large = rng::normal({1 << 20}, 3);
  const auto wantSmall = bitsOf(f(small, b_)), wantLarge = bitsOf(f(large, large)), wantEager = bitsOf(fn(small, b_));
  for (uint32_t csr : {kDefault, kFlushing, kUpward, kDefault | kFlags, kUpward | 0x8040u}) {
    const Csr scope(csr);
    for (int i = 0; i < 3; ++i) {
      const Tensor one = f(small, b_), two = f(large, large), three = fn(small, b_);
      EXPECT_EQ(_mm_getcsr() & ~kFlags, csr & ~kFlags);
      wait_all();
      EXPECT_EQ(_mm_getcsr() & ~kFlags, csr & ~kFlags);
      EXPECT_EQ(bitsOf(one), wantSmall) << std::hex << csr;
      EXPECT_EQ(bitsOf(two), wantLarge) << std::hex << csr;
      EXPECT_EQ(bitsOf(three), wantEager) << std::hex << csr;
    }
    EXPECT_THROW(f(small, ones({7})), Error);
    EXPECT_EQ(_mm_getcsr() & ~kFlags, csr & ~kFlags);
  }
}

TEST_F(Numbers, EveryThreadGivesTheSameBits) {
  const std::vector<float> many = someSubnormals(3 << 20);
  const Tensor x = from_span(many, {3 << 20}), y = x * 1e-20;
  auto fn = [](Tensor x, Tensor y) { return relu(x * y + x) * 0.5; };
  auto f = jit(fn);
  const auto want = bitsOf(f(x, y));
  for (uint32_t bits : want)
    ASSERT_FALSE(isSubnormal(bits));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Csr scope(t % 2 ? kFlushing : kDefault);
      EXPECT_EQ(bitsOf(t < 2 ? f(x, y) : fn(x, y)), want) << t;
      EXPECT_EQ(_mm_getcsr() & ~kFlags, t % 2 ? kFlushing : kDefault);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(Numbers, ProductsAndConvolutionsTakeWeightsAsZeros) {
  const std::vector<float> weights = someSubnormals(64 * 96);
  const Tensor w = from_span(weights, {64, 96}), zeros = from_span(withZeros(weights), {64, 96});
  const Tensor rows = rng::normal({100, 96}, 5), image = rng::normal({1, 96, 10, 10}, 6), last = rng::normal({1, 10, 10, 96}, 7);
  auto check = [&](const char *what, auto fn, const Tensor &x) {
    auto bound = [&](const Tensor &weight, bool keep = false) {
      return bitsOf(jit([fn, weight](Tensor x) { return fn(x, weight); }, {.keep_subnormals = keep})(x));
    };
    const auto got = bound(w);
    EXPECT_EQ(got, bound(zeros)) << what;
    EXPECT_EQ(bitsOf(jit(fn)(x, w)), bitsOf(jit(fn)(x, zeros))) << what << " as an argument"; // which other kernels may be the best for
    // Beside normal numbers subnormal ones are rounded away; alone they are what is left.
    const Tensor tiny = w * 0.0 + subnormal(1 << 21);
    const Tensor tinyWeights = from_span(std::vector<float>(64 * 96, subnormal(1 << 21)), {64, 96});
    const std::vector<uint32_t> none = bound(tinyWeights), some = bound(tinyWeights, /*keep=*/true);
    EXPECT_TRUE(std::ranges::all_of(none, [](uint32_t b) { return (b & 0x7fffffff) == 0; })) << what;
    EXPECT_TRUE(std::ranges::any_of(some, [](uint32_t b) { return (b & 0x7fffffff) != 0; })) << what;
  };
  check("product", [](Tensor x, Tensor w) { return matmul(x, transpose(w)); }, rows);
  check("convolution", [](Tensor x, Tensor w) { return conv(x, reshape(w, {64, 96, 1, 1})); }, image);
  check("convolution, channels last",
        [](Tensor x, Tensor w) { return conv(x, reshape(w, {64, 96, 1, 1}), {}, {}, {}, {}, 1, /*channels_last=*/true); }, last);
}

TEST_F(Numbers, PackagesSayWhatTheyDo) {
  const float tiny = subnormal(1 << 20);
  const std::vector<float> x{tiny, 1, -tiny, 2};
  for (bool keep : {false, true}) {
    const std::string path = std::filesystem::path(testing::TempDir()) / (keep ? "keep.tsl" : "flush.tsl");
    auto f = jit([](Tensor x) { return x * 0.5 + x; }, {.keep_subnormals = keep});
    f.export_package(path, {.inputs = {{f32, {4}, "x"}}});
    auto package = runtime::Package::open(path);
    runtime::Context context = package.context();
    for (uint32_t csr : {kDefault, kFlushing}) {
      std::vector<float> out(4);
      const void *inputs[] = {x.data()};
      void *outputs[] = {out.data()};
      {
        const Csr scope(csr);
        context.run(inputs, outputs);
        EXPECT_EQ(_mm_getcsr() & ~kFlags, csr & ~kFlags);
      }
      EXPECT_EQ(out, (keep ? std::vector<float>{1.5f * tiny, 1.5, -1.5f * tiny, 3} : std::vector<float>{0, 1.5, 0, 3}));
    }
  }
}

TEST_F(Numbers, DevicesComputeAsTheHost) {
  auto fn = [](Tensor a, Tensor b) { return maximum(a * b + a, b) * 0.5; };
  const auto want = bitsOf(jit(fn)(a_, b_));
  use_machine("sim:2gpu-pcie3");
  EXPECT_EQ(bitsOf(jit(fn)(a_, b_)), want);
  use_machine("sim:h100", {.gpu = "sm_90"}); // its own kernels, emulated
  EXPECT_EQ(bitsOf(jit(fn)(a_, b_)), want);
  const float tiny = subnormal(1 << 20);
  const Tensor x = from_span(std::vector<float>{tiny, 1, -tiny}, {3});
  auto half = [](Tensor x) { return x * 0.5 + x; };
  EXPECT_EQ(jit(half)(x).to_vector<float>(), (std::vector<float>{0, 1.5, 0}));
  EXPECT_EQ(jit(half, {.keep_subnormals = true})(x).to_vector<float>(), (std::vector<float>{1.5f * tiny, 1.5, -1.5f * tiny}));
  use_machine("cpu");
}

// --- Sums -------------------------------------------------------------------------------------------------------------

constexpr double kUnit = 0x1p-24, kTerms = 48; // docs/numbers.md

TEST(Sums, OfEqualTermsOpByOp) {
  const int64_t n = 1 << 26;
  const double want = double(n) * double(0.1f);
  EXPECT_NEAR(sum(full({n}, 0.1)).item<float>() / want, 1, 4e-7);
  EXPECT_NEAR(mean(full({n}, 0.1)).item<float>() / double(0.1f), 1, 4e-7);
}

/// `fn` of x, held to `bound` in every element; op by op, compiled, and of dynamic sizes.
void expectWithin(const char *what, std::function<Tensor(Tensor)> fn, const Tensor &x, const std::vector<double> &want,
                  const std::vector<double> &bound) {
  for (const Tensor &y : {fn(x), jit(fn)(x)}) {
    const auto got = y.to_vector<float>();
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_LE(std::abs(double(got[i]) - want[i]), bound[i]) << what << " of " << x.shape().str() << ", element " << i << ": "
                                                            << got[i] << " instead of " << want[i];
  }
}

TEST(Sums, MeansNormsAndVariancesWithinTheirBounds) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{512, 33}, {1000000, 3}, {70001, 5}, {4097, 129}, {33, 512}, {3, 1000000}})
    for (double center : {0.7, 0.0}) {
      const Tensor x = rng::normal({rows, columns}, 7) * 0.1 + center;
      const auto values = x.to_vector<float>();
      for (int axis : {0, 1}) {
        const int64_t n = axis ? columns : rows, count = axis ? rows : columns;
        std::vector<double> sums(size_t(count), 0.0), absolute(sums), squares(sums), variance(sums);
        auto each = [&](auto &&add) {
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t k = 0; k < columns; ++k)
              add(size_t(axis ? i : k), double(values[size_t(i * columns + k)]));
        };
        each([&](size_t at, double v) { sums[at] += v, absolute[at] += std::abs(v), squares[at] += v * v; });
        std::vector<double> means(sums), sumBound(sums), meanBound(sums), norms(sums), normBound(sums), varianceBound(sums);
        for (double &m : means)
          m /= double(n);
        each([&](size_t at, double v) { variance[at] += (v - means[at]) * (v - means[at]) / double(n); });
        const double steps = 2; // of large ones with few results
        for (size_t i = 0; i < sums.size(); ++i) {
          sumBound[i] = steps * kTerms * kUnit * absolute[i];
          meanBound[i] = (sumBound[i] + 2 * kUnit * absolute[i]) / double(n);
          norms[i] = std::sqrt(squares[i]);
          normBound[i] = (steps * (kTerms + 2) / 2 + 1) * kUnit * norms[i];
          varianceBound[i] = (steps * kTerms + 6) * kUnit * variance[i] + meanBound[i] * meanBound[i] + 4 * kUnit * meanBound[i];
        }
        expectWithin("sum", [=](Tensor t) { return sum(t, axis); }, x, sums, sumBound);
        expectWithin("mean", [=](Tensor t) { return mean(t, axis); }, x, means, meanBound);
        expectWithin("norm", [=](Tensor t) { return sqrt(sum(t * t, axis)); }, x, norms, normBound);
        if (n > 1)
          expectWithin("variance", [=](Tensor t) { return var(t, axis); }, x, variance, varianceBound);
      }
    }
}

// Nothing is read along the sum: a short loop body is no reason for a long block.
TEST(Sums, OfTermsThatDoNotVaryAlongTheSum) {
  constexpr int64_t n = 1 << 18;
  constexpr double u = 0x1p-24;
  const float value = 0.1F;
  const Tensor one = full({1}, 0.1), row = full({3, 1}, 0.1);
  const double want = double(value) * n;
  auto check = [&](const char *what, auto fn, const Tensor &x, double sum) {
    for (float got : jit(fn)(x).template to_vector<float>())
      EXPECT_LE(std::abs(got - sum), 48 * u * sum) << what;
  };
  check("all", [](Tensor x) { return sum(broadcast_to(x, {n})); }, one, want);
  check("rows", [](Tensor x) { return sum(broadcast_to(x, {3, n}), 1); }, row, want);
  check("columns", [](Tensor x) { return sum(broadcast_to(transpose(x), {n, 3}), 0); }, row, want);
  check("a constant", [](Tensor x) { return sum(full({n}, 1.0) * x); }, one, want);
  check("squares", [](Tensor x) { return sum(square(broadcast_to(x, {n}))); }, one, double(value) * double(value) * n * (1 + u));
}

TEST(Sums, EqualRowsGiveEqualColumns) {
  const Tensor row = rng::uniform({1, 257}, 9);
  const Tensor x = broadcast_to(row, {512, 257}) + 0.0;
  const auto of = row.to_vector<float>();
  std::vector<double> want, bound;
  for (float v : of)
    want.push_back(512.0 * double(v)), bound.push_back(6e-7 * want.back());
  expectWithin("sum", [](Tensor t) { return sum(t, 0); }, x, want, bound);
}

} // namespace
