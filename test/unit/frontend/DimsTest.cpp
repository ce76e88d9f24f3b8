// Dynamic dimensions as a user meets them: marked, inferred, computed with.
#include <tressel/tressel.h>

#include "tressel/runtime/Package.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>

namespace tressel {
namespace {

std::vector<float> ramp(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = 0.25f * static_cast<float>(i % 11) - 1;
  return v;
}
Tensor matrix(int64_t rows, int64_t columns) { return from_span<float>(ramp(rows * columns), {rows, columns}); }

TEST(Dims, MarkedOnesHaveOneProgram) {
  auto f = jit([](Tensor x) { return sum(x * 2 + 1, 1); });
  f.compile({f32, {"batch", 3}});
  for (int64_t n : {1, 2, 7, 64, 1000}) {
    const std::vector<float> in = ramp(3 * n), out = f(matrix(n, 3)).to_vector<float>();
    ASSERT_EQ(out.size(), static_cast<size_t>(n));
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_FLOAT_EQ(out[i], 2 * (in[3 * i] + in[3 * i + 1] + in[3 * i + 2]) + 3);
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

// Recurrent layers are traced with an open batch like others; each step takes parts of what it computes.
TEST(Dims, ARecurrentLayerOfAnOpenBatch) {
  for (bool isGru : {false, true}) {
    const nn::LSTM lstm(4, {.batch_first = true});
    const nn::GRU gru(4, {.batch_first = true});
    lstm.initialize({{f32, {1, 3, 2}}}, 1);
    gru.initialize({{f32, {1, 3, 2}}}, 1);
    auto run = [=](const Tensor &x) { return isGru ? gru(x).output : lstm(x).output; };
    auto gradient = [=](Tensor x) { return grad([&] { return sum(run(x) * 3); }, {x})[0]; };
    auto f = jit(gradient);
    f.compile({f32, {DimSpec("batch", 1, 16), 3, 2}});
    for (int64_t n : {1, 4, 16}) {
      const Tensor x = rng::normal({n, 3, 2}, 5);
      const std::vector<float> got = f(x).to_vector<float>(), want = gradient(x).to_vector<float>();
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 1e-5f);
    }
    EXPECT_EQ(f.stats().traces, 1u);
  }
}

// The running statistics' updates are nests of one kernel where one thread computes them, and one asks for the size.
TEST(Dims, BatchNormalizationTrainsOnAnOpenBatch) {
  const nn::BatchNorm norm, same;
  norm.initialize({{f32, {4, 5}}}, 1);
  same.initialize({{f32, {4, 5}}}, 1);
  auto f = jit([norm](Tensor x) {
    TrainScope training;
    return norm(x);
  });
  f.compile({f32, {DimSpec("batch", 2, 64), 5}});
  for (int64_t n : {2, 7, 64}) {
    const Tensor x = rng::normal({n, 5}, 3);
    const std::vector<float> got = f(x).to_vector<float>();
    std::vector<float> want;
    {
      TrainScope training;
      want = same(x).to_vector<float>();
    }
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-5f);
    for (size_t v = 0; v < 2; ++v) {
      const std::vector<float> now = norm.buffers()[v].second.value().to_vector<float>(),
                               then = same.buffers()[v].second.value().to_vector<float>();
      for (size_t i = 0; i < now.size(); ++i)
        EXPECT_NEAR(now[i], then[i], 1e-5f) << norm.buffers()[v].first;
    }
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

// Whether the slice has an element is open: of sizes up to 2 it has none.
TEST(Dims, TheGradientOfASliceWithSteps) {
  auto f = jit([](Tensor x) { return grad([&] { return sum(slice(x, {2}, {x.shape()[0]}, {3}) * 5); }, {x})[0]; });
  f.compile({f32, {DimSpec("n", 0, 64)}});
  for (int64_t n : {0, 1, 2, 3, 5, 6, 64}) {
    const std::vector<float> gradient = f(from_span<float>(ramp(n), {n})).to_vector<float>();
    ASSERT_EQ(gradient.size(), static_cast<size_t>(n));
    for (size_t i = 0; i < gradient.size(); ++i)
      EXPECT_EQ(gradient[i], i >= 2 && (i - 2) % 3 == 0 ? 5 : 0) << i << " of " << n;
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

// Compiling computes nothing, so sizes may be any that memory could hold.
TEST(Dims, ProductsOverMoreThan32BitsCompile) {
  auto f = jit([](Tensor x, Tensor y) { return matmul(transpose(x, {1, 0}), y); });
  for (int64_t n : {int64_t(1) << 32, (int64_t(1) << 32) + 1, int64_t(5) << 31})
    EXPECT_NO_THROW(f.compile({f32, {n, 12}}, {f32, {n, 16}}));
}

TEST(Dims, BoundsAndAgreementAreGuards) {
  auto f = jit([](Tensor x, Tensor y) { return x * y; }, {.infer_dynamic = false});
  const DimSpec n("n", 1, 8);
  f.compile({f32, {n, 2}}, {f32, {n, 2}});
  f(ones({8, 2}), ones({8, 2}));
  EXPECT_EQ(f.stats().traces, 1u);
  f(ones({9, 2}), ones({9, 2})); // beyond the bounds
  EXPECT_EQ(f.stats().traces, 2u);
  EXPECT_THROW(f(ones({8, 2}), ones({7, 2})), ShapeError); // not one size: another program, which cannot be
  EXPECT_THROW(f.compile({f32, {"n", 2}}, {f32, {"m", 2}}), ShapeError);
  EXPECT_THROW(f.compile({f32, {DimSpec("n", 5, 4)}}, {f32, {1}}), Error);
  EXPECT_THROW(f.compile({f32, {"no name"}}, {f32, {1}}), Error);
}

TEST(Dims, OneNameHasOneSizeAndOnePairOfBounds) {
  auto f = jit([](Tensor x, Tensor y) { return x * y; }, {.infer_dynamic = false});
  auto message = [](unsigned line, auto fn) {
    try {
      fn();
    } catch (const Error &e) {
      EXPECT_TRUE(e.where().line >= line && e.where().line <= line + 5) << e.what(); // of the statement
      return e.message();
    }
    return std::string("nothing was thrown");
  };
  const DimSpec small("n", 1, 8), large("n", 1, 9);
  EXPECT_EQ(message(__LINE__,
                    [&] {
                      f.compile({f32, {small, 2}}, {f32, {large, 2}});
                    }),
            "the dimension 'n' is 1 to 8 in input 0 and 1 to 9 in input 1");
  EXPECT_EQ(message(__LINE__,
                    [&] {
                      f.compile({f32, {small, large}, "x"}, {f32, {2}});
                    }),
            "the dimension 'n' is 1 to 8 in input 0 ('x') and 1 to 9 in input 0 ('x')");
  const std::vector<TensorSpec> two{{f32, {small, 2}}, {f32, {large, 2}, "y"}};
  EXPECT_EQ(message(__LINE__, [&] { f.export_package("never-written.tsl", {.inputs = two}); }),
            "the dimension 'n' is 1 to 8 in input 0 and 1 to 9 in input 1 ('y')");
  struct Net : nn::Module<Net> {
    Tensor forward(Tensor x, Tensor y) const { return x * y; }
  } net;
  EXPECT_EQ(message(__LINE__, [&] { net.initialize(two, 1); }),
            "the dimension 'n' is 1 to 8 in input 0 and 1 to 9 in input 1 ('y')");
  // Types that hold sizes already.
  const TensorType known{f32, {dim::symbol("n") + 1}};
  EXPECT_EQ(message(__LINE__,
                    [&] {
                      f.compile(known, {f32, {small}});
                    }),
            "the dimension 'n' is 1 to 2147483647 in input 0 and 1 to 8 in input 1");
  // Bounds that stand once hold for the name.
  f.compile({f32, {"n", 2}}, {f32, {small, 2}});
  f(ones({8, 2}), ones({8, 2}));
  EXPECT_EQ(f.stats().traces, 1u);
  f(ones({9, 2}), ones({9, 2}));
  EXPECT_EQ(f.stats().traces, 2u);
}

TEST(Dims, ArithmeticStaysSymbolic) {
  auto f = jit([](Tensor x) {
    Dim n = x.dim(0), m = x.dim(1);
    Tensor halves = reshape(x, {n * 2, m / 2});
    Tensor shifted = halves + zeros({n * 2, 1}) + broadcast_to(ones({1, 1}), {2 * n, 1});
    Tensor rows = slice(shifted, {0, 0}, {n, m / 2});
    Tensor positions = cast(reshape(arange(n), {n, 1}), f32);
    return (rows + positions) / n;
  });
  f.compile({f32, {"n", 4}});
  for (int64_t n : {1, 3, 50}) {
    const std::vector<float> in = ramp(4 * n), out = f(matrix(n, 4)).to_vector<float>();
    ASSERT_EQ(out.size(), static_cast<size_t>(2 * n));
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_FLOAT_EQ(out[i], (in[i] + 1 + static_cast<float>(i / 2)) / static_cast<float>(n));
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(Dims, LoopsRunAsOftenAsASizeSays) {
  auto f = jit([](Tensor x) {
    Dim n = x.dim(0);
    return for_loop(
        n - 2, [](Tensor i, Tensor h) { return h * 2 + cast(i, f32); }, sum(x));
  });
  f.compile({f32, {"n"}});
  for (int64_t n : {1, 2, 3, 9}) {
    float expected = static_cast<float>(n);
    for (int64_t i = 0; i < n - 2; ++i)
      expected = expected * 2 + static_cast<float>(i);
    EXPECT_EQ(f(ones({n})).item<float>(), expected) << n;
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(Dims, SmallerAndLarger) {
  auto f = jit([](Tensor x) {
    Dim n = x.dim(0);
    EXPECT_EQ(min(n, 5).is_static(), false);
    EXPECT_EQ(max(n, 1).raw(), n.raw()) << "bounds decide";
    return resize(slice(x, {0}, {min(n, 5)}), {max(2 * n, 7)}, "nearest");
  });
  f.compile({f32, {"n"}});
  EXPECT_EQ(f(tensor({0, 1, 2}, f32)).to_vector<float>(), (std::vector<float>{0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(f(ones({8})).shape(), Shape{16});
  EXPECT_EQ(f.stats().traces, 1u);
}

// shape() gives sizes that are numbers, or are kept as they are: never a symbol that counts as a number.
TEST(Dims, ShapesAreNumbersOrStaySymbols) {
  auto first = [](const Tensor &t) { return t.to_vector<float>()[0]; };
  auto mean = jit([](Tensor x) { return sum(x) / x.shape()[0]; });
  auto same = jit([](Tensor x) { return reshape(x + 1, x.shape()); });
  auto count = jit([](Tensor x) {
    Tensor s = sum(x) * 0;
    for (int64_t i = 0; i < x.shape()[0]; ++i)
      s += 1;
    return s;
  });
  auto branch = jit([](Tensor x) { return x.shape()[0] > 4 ? sum(x) * 100 : sum(x); });
  auto equal = jit([](Tensor x) { return x.shape() == Shape{5} ? sum(x) * 100 : sum(x); });
  auto padded = jit([](Tensor x) {
    const int64_t n = x.shape()[0];
    return pad(x, {0}, {(8 - n % 8) % 8});
  });
  auto elements = jit([](Tensor x) { return sum(x) / static_cast<double>(x.shape().numElements()); });
  auto listed = jit([](Tensor x) {
    std::vector<int64_t> sizes(x.shape().begin(), x.shape().end());
    return sum(x) / static_cast<double>(sizes[0]);
  });
  auto copied = jit([](Tensor x) {
    const Shape shape = x.shape();
    return sum(x) / static_cast<double>(shape[0]);
  });
  for (int64_t n : {3, 4, 5, 7, 9}) {
    const Tensor x = ones({n});
    EXPECT_EQ(first(mean(x)), 1) << n;
    EXPECT_EQ(same(x).to_vector<float>(), std::vector<float>(static_cast<size_t>(n), 2)) << n;
    EXPECT_EQ(first(count(x)), n);
    EXPECT_EQ(first(branch(x)), n > 4 ? 100 * n : n);
    EXPECT_EQ(first(equal(x)), n == 5 ? 500 : n);
    EXPECT_EQ(padded(x).shape(), (Shape{(n + 7) / 8 * 8})) << n;
    EXPECT_EQ(first(elements(x)), 1) << n;
    EXPECT_EQ(first(listed(x)), 1) << n;
    EXPECT_EQ(first(copied(x)), 1) << n;
  }
  EXPECT_EQ(mean.stats().traces, 2u) << "a size that stays a symbol serves all";
  EXPECT_EQ(same.stats().traces, 2u);
  EXPECT_THROW(copied.compile({f32, {"n"}}), TraceError);
}

TEST(Dims, ParametersHaveFixedSizes) {
  nn::Dense layer(3);
  layer.initialize({{f32, {"rows", 4}}}, 1);
  EXPECT_EQ(layer(ones({5, 4})).shape(), (Shape{5, 3}));
  EXPECT_NE(layer.summary({{f32, {"rows", 4}}}).find("f32[rows, 3]"), std::string::npos);
  auto refused = [](const auto &wrong) -> std::string {
    try {
      wrong.initialize({{f32, {4, "width"}}}, 1);
    } catch (const Error &e) {
      return e.what();
    }
    return "initialized";
  };
  for (const std::string &why : {refused(nn::Dense(3)), refused(nn::LayerNorm()), refused(nn::BatchNorm())})
    EXPECT_NE(why.find("width"), std::string::npos) << why;
}

TEST(Dims, ComparisonsThatBoundsDecide) {
  auto f = jit([](Tensor x) {
    Dim n = x.dim(0);
    EXPECT_TRUE(n > 0 && n < 100 && n + 1 > n && n == x.dim(0) && n != 500);
    EXPECT_FALSE(n.is_static());
    EXPECT_EQ((n * 2 + 1).str(), "2*n + 1");
    EXPECT_THROW((void)(n == 5), TraceError);
    EXPECT_THROW((void)(n / 0), Error);
    return x;
  });
  f.compile({f32, {DimSpec("n", 1, 99)}});
}

TEST(Dims, AnIntegerOfASymbolNamesTheLine) {
  auto f = jit([](Tensor x) {
    int64_t n = x.dim(0); // this line
    return x * static_cast<float>(n);
  });
  const int line = __LINE__ - 3;
  try {
    f.compile({f32, {"n"}});
    FAIL() << "specialized";
  } catch (const TraceError &e) {
    EXPECT_EQ(e.where().line, static_cast<uint32_t>(line));
    EXPECT_NE(std::string(e.what()).find("the size n of a dimension"), std::string::npos) << e.what();
  }
  EXPECT_EQ(f(ones({3})).to_vector<float>(), (std::vector<float>{3, 3, 3})) << "one size is fine";
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{2, 2})) << "and each has its own program";
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(f.stats().traces, 2u);
}

TEST(Dims, ASizeBeyondTheBoundsHasAProgramOfItsOwn) {
  auto f = jit([](Tensor x, Tensor i) { return take(x, i); });
  auto call = [&](int64_t n, int64_t m) { return f(zeros({n}), zeros({m}, i64)).shape(); };
  EXPECT_EQ(call(2, 2), Shape({2}));
  EXPECT_EQ(call(2, 64), Shape({64})); // from here on the second one is dynamic, and at least 1
  EXPECT_EQ(call(1, 0), Shape({0}));
  EXPECT_EQ(call(1, 5), Shape({5}));
}

TEST(Dims, ASecondSizeMakesADimensionDynamic) {
  auto f = jit([](Tensor x, Tensor label) { return x * label; });
  for (int64_t n : {5, 9, 2, 5, 31})
    EXPECT_EQ(f(ones({n, 2}), ones({n, 1})).dim(0), n);
  EXPECT_EQ(f.stats().traces, 2u);
  ASSERT_EQ(f.stats().retraces.size(), 1u);
  EXPECT_EQ(f.stats().retraces[0], "tensor 0: f32[9, 2] instead of f32[5, 2]");
  f(ones({4, 2}), ones({1, 1})); // they disagree: another program
  EXPECT_EQ(f.stats().traces, 3u);
}

/// Resident memory in bytes; nothing where ASan keeps freed memory for a while.
int64_t resident() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return 0;
#endif
#endif
  std::ifstream in("/proc/self/statm");
  int64_t pages = 0, held = 0;
  in >> pages >> held;
  return held * 4096;
}

TEST(Dims, FiveThousandLengths) {
  auto f = jit([](Tensor x) { return softmax(x, 0) * 3; }, {.max_programs = 4});
  int64_t before = 0;
  for (int64_t n = 1; n <= 5000; ++n) {
    const std::vector<float> in = ramp(n);
    const std::vector<float> out = f(from_span<float>(in, {n})).to_vector<float>();
    ASSERT_EQ(out.size(), in.size());
    double total = 0;
    for (float v : in)
      total += std::exp(static_cast<double>(v));
    for (size_t i = 0; i < in.size(); i += 1 + in.size() / 7)
      ASSERT_NEAR(out[i], 3 * std::exp(static_cast<double>(in[i])) / total, 2e-6) << n;
    if (n == 500)
      before = resident();
  }
  EXPECT_LE(f.stats().live, 4u);
  EXPECT_EQ(f.stats().traces, 2u);
  EXPECT_LT(resident() - before, 16 << 20);
}

TEST(Dims, ProgramsAreBoundedWithoutInference) {
  auto f = jit([](Tensor x) { return x + 1; }, {.max_programs = 3, .infer_dynamic = false});
  for (int64_t n = 1; n <= 8; ++n)
    EXPECT_EQ(f(ones({n})).dim(0), n);
  EXPECT_EQ(f.stats().live, 3u);
  EXPECT_EQ(f.stats().traces, 8u);
}

TEST(Dims, PackagesKeepThem) {
  const std::string path = testing::TempDir() + "dims.tsl";
  Variable w(from_span<float>(ramp(12), {4, 3}), "w");
  auto f = jit([=](Tensor x) { return softmax(matmul(x, w), 1); });
  f.export_package(path, {.inputs = {{f32, {DimSpec("batch", 1, 64), 4}, "x"}}, .outputs = {"y"}});
  auto package = runtime::Package::open(path);
  EXPECT_EQ(package.schedule().inputs[0].type.str(), "f32[batch, 4]");
  runtime::Context context = package.context({.max_dims = {{"batch", 32}}});
  const Size batch = package.schedule().dims.at(0);
  for (int64_t n : {1, 5, 32, 5}) {
    const std::vector<float> in = ramp(4 * n);
    std::vector<float> out(static_cast<size_t>(3 * n), -1);
    const void *inputs[] = {in.data()};
    void *outputs[] = {out.data()};
    dim::Values dims;
    dims.bind(batch, n);
    context.run(inputs, outputs, dims);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_NEAR(out[3 * i] + out[3 * i + 1] + out[3 * i + 2], 1, 1e-5);
  }
  dim::Values large;
  large.bind(batch, 33);
  EXPECT_THROW(context.run({}, {}, large), ShapeError);
  std::remove(path.c_str());
}

} // namespace
} // namespace tressel
