// Recording, guards, state, trees, what a trace refuses.
#include <tressel/jit.h>
#include <tressel/ops.h>
#include <tressel/random.h>
#include <tressel/runtime/Package.h>

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <unistd.h>

using namespace tressel;

namespace {

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }

TEST(Jit, EqualsEager) {
  auto fn = [](Tensor a, Tensor b) { return tanh(a * b + 1.0) - exp(-a); };
  auto f = jit(fn);
  Tensor a = rng::normal({33, 7}, 1), b = rng::normal({7}, 2);
  auto x = floats(fn(a, b)), y = floats(f(a, b));
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], y[i], 1e-5) << i;
}

TEST(Jit, TypesAheadOfTheCallMustBeEnough) {
  auto f = jit([](Tensor x, Tensor y) { return x + y; });
  EXPECT_THROW(f.compile(std::vector<TensorSpec>{{f32, {2}}}), Error);
  EXPECT_THROW(f.export_package("never-written.tsl", {.inputs = {}, .outputs = {"y"}}), Error);
}

TEST(Jit, HugeSizesAndHugeAngles) {
  EXPECT_THROW(ones({int64_t(1) << 62, 8}), ShapeError);
  for (float x : {1e18f, 1e30f, -3e38f})
    EXPECT_LE(std::abs(sin(tensor(x)).item<float>()), 1) << x;
  EXPECT_TRUE(std::isnan(cos(tensor(INFINITY)).item<float>()));
}

TEST(Jit, FloorDivideOfIntegersAtTheEndsOfTheirRange) {
  Tensor a = tensor({-128, -127, 107, 100, 127}, i8), b = tensor({3, 3, 22, -3, -128}, i8);
  EXPECT_EQ(floor_divide(a, b).to_vector<int8_t>(), (std::vector<int8_t>{-43, -43, 4, -34, -1}));
}

TEST(Jit, RecordsOncePerKindOfCall) {
  auto f = jit([](Tensor x) { return x + 1; });
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(floats(f(ones({2}))), (std::vector<float>{2, 2}));
  f(ones({3}));
  f(ones({3}, i32));
  JitStats s = f.stats();
  EXPECT_EQ(s.traces, 3u);
  EXPECT_EQ(s.hits, 2u);
  ASSERT_EQ(s.retraces.size(), 2u);
  EXPECT_EQ(s.retraces[0], "tensor 0: f32[3] instead of f32[2]");
  EXPECT_EQ(s.retraces[1], "tensor 0: i32[3] instead of f32[arg0_0]");
}

TEST(Jit, NumbersForTensorsDoNotRetrace) {
  auto f = jit([](Tensor x, Tensor rate) { return x * rate; });
  EXPECT_EQ(floats(f(ones({2}), 0.5f)), (std::vector<float>{0.5, 0.5}));
  EXPECT_EQ(floats(f(ones({2}), 2.0)), (std::vector<float>{2, 2}));
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(Jit, StaticArgumentsArePartOfTheKey) {
  enum class Kind { Add, Mul };
  auto f = jit([](Tensor x, int n, Kind kind, Static<float> scale) {
    for (int i = 0; i < n; ++i)
      x = kind == Kind::Add ? x + scale.value : x * scale.value;
    return x;
  });
  EXPECT_EQ(floats(f(ones({1}), 3, Kind::Add, 2.0f)), (std::vector<float>{7}));
  EXPECT_EQ(floats(f(ones({1}), 3, Kind::Mul, 2.0f)), (std::vector<float>{8}));
  EXPECT_EQ(floats(f(ones({1}), 2, Kind::Mul, 2.0f)), (std::vector<float>{4}));
  EXPECT_EQ(floats(f(ones({1}), 2, Kind::Mul, 3.0f)), (std::vector<float>{9}));
  EXPECT_EQ(f.stats().traces, 4u);
  EXPECT_EQ(f.stats().retraces[1], "static value 0: 2 instead of 3");
}

struct Batch {
  Tensor x;
  std::vector<Tensor> more;
};
struct Out {
  Tensor sum;
  std::map<std::string, Tensor> parts;
  std::pair<Tensor, int> extra;
};

TEST(Jit, Trees) {
  auto f = jit([](Batch b) {
    Out out{b.x, {}, {b.x * 2, 5}};
    for (const Tensor &t : b.more)
      out.sum = out.sum + t;
    out.parts["first"] = b.more[0] * 10;
    return out;
  });
  Out out = f(Batch{ones({2}), {ones({2}), ones({2})}});
  EXPECT_EQ(floats(out.sum), (std::vector<float>{3, 3}));
  EXPECT_EQ(floats(out.parts.at("first")), (std::vector<float>{10, 10}));
  EXPECT_EQ(floats(out.extra.first), (std::vector<float>{2, 2}));
  EXPECT_EQ(out.extra.second, 5);
  f(Batch{ones({2}), {ones({2})}});
  EXPECT_EQ(f.stats().traces, 2u) << "another number of tensors is another program";
}

TEST(Jit, ArgumentsConstantsAndDuplicatesAsResults) {
  Tensor outside = tensor({7.0, 8});
  auto f = jit([outside](Tensor x) { return std::tuple{x, outside, x + 1, x + 1, outside + x}; });
  Tensor x = ones({2});
  for (int i = 0; i < 2; ++i) {
    auto [a, b, c, d, e] = f(x);
    EXPECT_TRUE(same(a, x));
    EXPECT_TRUE(same(b, outside));
    EXPECT_EQ(floats(c), (std::vector<float>{2, 2}));
    EXPECT_EQ(floats(d), (std::vector<float>{2, 2}));
    EXPECT_EQ(floats(e), (std::vector<float>{8, 9}));
  }
}

TEST(Jit, VariablesAreState) {
  Variable count(zeros({}), "count"), scale(ones({}) * 3, "scale");
  auto f = jit([=](Tensor x) {
    count.assign(count.value() + 1);
    return x * scale + count;
  });
  EXPECT_EQ(f(tensor(1.0f)).item<float>(), 4);
  EXPECT_EQ(f(tensor(1.0f)).item<float>(), 5);
  EXPECT_EQ(count.value().item<float>(), 2);
  scale.assign(tensor(10.0f)); // a value, not a constant: no new program
  EXPECT_EQ(f(tensor(1.0f)).item<float>(), 13);
  EXPECT_EQ(count.value().item<float>(), 3);
  EXPECT_EQ(f.stats().traces, 1u);
}

// A rate that changes at each step: one program, and the same weights as op by op.
TEST(Jit, ThousandStepsWithAScheduledRate) {
  auto run = [](bool compiled) {
    Variable w(ones({4}), "w"), rate(tensor(0.0f), "rate");
    auto step = [=](Tensor g) {
      w.assign(w.value() - g * rate);
      return sum(w);
    };
    auto f = jit(step);
    for (int i = 0; i < 1000; ++i) {
      rate.assign(tensor(0.001f * static_cast<float>(1 + i % 7)));
      Tensor g = w.value() * 0.5f;
      compiled ? f(g) : step(g);
    }
    if (compiled)
      EXPECT_EQ(f.stats().traces, 1u);
    return floats(w.value());
  };
  auto eager = run(false), compiled = run(true);
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_NEAR(eager[i], compiled[i], 1e-5f * std::abs(eager[i]));
}

TEST(Jit, ReadingAValueIsRefusedWithItsLine) {
  unsigned line = 0;
  auto f = jit([&](Tensor x) {
    line = __LINE__ + 1;
    if (sum(x) > 0)
      return x;
    return -x;
  });
  try {
    f(ones({2}));
    FAIL() << "nothing was thrown";
  } catch (const TraceError &e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_NE(e.hint().find("cond"), std::string::npos);
  }
  EXPECT_THROW(jit([](Tensor x) { return x * x.item<float>(); })(ones({})), TraceError);
}

TEST(Jit, TensorsDoNotLeaveTheirTrace) {
  Tensor kept;
  auto f = jit([&](Tensor x) {
    kept = x + 1;
    return x;
  });
  f(ones({2}));
  EXPECT_TRUE(kept.traced());
  EXPECT_THROW(kept + 1, TraceError);
  EXPECT_THROW(kept.wait(), TraceError);
}

TEST(Jit, ChangedHostValueIsFoundAtTheSecondCall) {
  float rate = 1;
  auto f = jit([&](Tensor x) { return x * rate; });
  f(ones({2}));
  rate = 2;
  try {
    f(ones({2}));
    FAIL() << "a stale value was used";
  } catch (const TraceError &e) {
    EXPECT_NE(std::string(e.what()).find("mul"), std::string::npos) << e.what();
  }
}

TEST(Jit, RetraceBudgetIsAnErrorWhereThatIsWanted) {
  auto f = jit([](Tensor x) { return x + 1; }, {.retrace_budget = 2, .strict_retrace = true, .infer_dynamic = false});
  f(ones({1}));
  f(ones({2}));
  EXPECT_THROW(f(ones({3})), TraceError);
  EXPECT_EQ(floats(f(ones({2}))), (std::vector<float>{2, 2})) << "what is compiled still runs";
  EXPECT_EQ(f.stats().imperative, 0u);
  // Ops that run one by one flush subnormal numbers.
  auto keeps = jit([](Tensor x) { return x * 0.5; }, {.keep_subnormals = true, .retrace_budget = 1, .infer_dynamic = false});
  keeps(ones({1}));
  EXPECT_THROW(keeps(ones({2})), TraceError);
}

/// What a function prints on standard error.
template <typename Fn> std::string printed(Fn fn) {
  testing::internal::CaptureStderr();
  fn();
  return testing::internal::GetCapturedStderr();
}

TEST(Jit, The65thProgramRuns) {
  auto f = jit([](Tensor x, int n) { return x + n; }, {.name = "step"});
  auto call = [&](int n) { return f(ones({2}), n).to_vector<float>(); };
  EXPECT_EQ(printed([&] {
              for (int n = 0; n < 64; ++n)
                call(n);
            }),
            "");
  const unsigned line = __LINE__ + 2;
  const std::string warning = printed([&] {
    EXPECT_EQ(f(ones({2}), 64).to_vector<float>(), (std::vector<float>{65, 65}));
  });
  EXPECT_NE(
      warning.find("JitTest.cpp:" + std::to_string(line) +
                   ": 'step' was compiled 64 times already; its calls are of 65 kinds, "
                   "and it keeps programs for 64; argument 1 changes (static value 0: 64 instead of 63)"),
      std::string::npos)
      << warning;
  EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
  EXPECT_EQ(printed([&] {
              for (int n = 65; n < 80; ++n)
                EXPECT_EQ(call(n), (std::vector<float>(2, static_cast<float>(n + 1))));
              EXPECT_EQ(call(3), (std::vector<float>{4, 4}));
            }),
            "")
      << "one warning";
  EXPECT_EQ(f.stats().traces, 64u);
  EXPECT_EQ(f.stats().imperative, 16u);
}

TEST(Jit, TheWarningNamesWhatChangesMost) {
  auto f = jit(
      [](Batch b, Tensor scale, int n) {
        Tensor y = b.x * scale + n;
        return Out{y, {{"twice", y * 2}}, {b.more[0], n}};
      },
      {.retrace_budget = 4, .infer_dynamic = false});
  auto call = [&](int64_t size, int n) { return f(Batch{ones({1}), {ones({1})}}, ones({size}), n); };
  const std::string warning = printed([&] {
    for (int64_t size : {1, 2, 3})
      call(size, 1);
    call(3, 2);
    const Out out = call(4, 2);
    EXPECT_EQ(floats(out.sum), (std::vector<float>(4, 3)));
    EXPECT_EQ(floats(out.parts.at("twice")), (std::vector<float>(4, 6)));
    EXPECT_EQ(floats(out.extra.first), (std::vector<float>{1}));
    EXPECT_EQ(out.extra.second, 2);
  });
  EXPECT_NE(warning.find("; argument 1 changes (tensor 2: f32[4] instead of f32[3])"), std::string::npos) << warning;
}

TEST(Jit, PastTheBudgetVariablesAndNanChecksWork) {
  Variable count(zeros({}), "count");
  auto f = jit(
      [=](Tensor x) {
        count.assign(count.value() + 1);
        return log(x) * count;
      },
      {.retrace_budget = 1, .infer_dynamic = false});
  (void)printed([&] {
    EXPECT_EQ(floats(f(ones({1}))), (std::vector<float>{0}));
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 25; ++i)
          f(ones({2 + t})).wait();
      });
    for (std::thread &t : threads)
      t.join();
  });
  EXPECT_EQ(count.value().item<float>(), 101) << "calls that assign run one by one";
  EXPECT_EQ(f.stats().imperative, 100u);
}

TEST(Jit, ClearedCachesDoNotCount) {
  auto f = jit([](Tensor x) { return x + 1; }, {.retrace_budget = 2, .strict_retrace = true, .infer_dynamic = false});
  for (int i = 0; i < 3; ++i) {
    f(ones({1}));
    f(ones({2}));
    EXPECT_THROW(f(ones({3})), TraceError);
    clear_compile_caches();
  }
  EXPECT_EQ(f.stats().traces, 6u);
  f.compile({f32, {7}});
  f.compile({f32, {8}});
  EXPECT_THROW(f.compile({f32, {9}}), TraceError) << "asked for ahead, there is no call to run";
}

TEST(Jit, WhatIsMadeAgainIsToldFromWhatIsNew) {
  auto f = jit([](Tensor x) { return x + 1; },
               {.retrace_budget = 6, .strict_retrace = true, .max_programs = 2, .infer_dynamic = false});
  try {
    for (int64_t i = 0; i < 7; ++i)
      f(ones({1 + i % 3}));
    FAIL() << "three kinds in two places";
  } catch (const TraceError &e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("compiled 6 times already; its calls are of 3 kinds, and it keeps programs for 2"), std::string::npos)
        << what;
    EXPECT_NE(what.find("max_programs"), std::string::npos) << what;
  }
}

TEST(Jit, CompilesAhead) {
  auto f = jit([](Tensor a, Tensor b) { return a + b; });
  f.compile({f32, {2}}, {f32, {2}});
  EXPECT_EQ(f.stats().traces, 1u);
  f(ones({2}), ones({2}));
  EXPECT_EQ(f.stats().traces, 1u);
  EXPECT_EQ(f.stats().hits, 1u);
  EXPECT_THROW(f.compile({f32, {"batch"}}, {f32, {2}}), ShapeError);
}

TEST(Jit, DisabledRunsOpByOp) {
  int runs = 0;
  auto f = jit([&](Tensor x) {
    ++runs;
    return x + 1;
  });
  DisableJit off;
  f(ones({1}));
  f(ones({1}));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f.stats().traces, 0u);
}

TEST(Jit, ModeIsPartOfTheKey) {
  auto f = jit([](Tensor x) { return training() ? x * 2 : x + 5; });
  EXPECT_EQ(f(ones({})).item<float>(), 6);
  {
    TrainScope train;
    EXPECT_EQ(f(ones({})).item<float>(), 2);
  }
  EXPECT_EQ(f(ones({})).item<float>(), 6);
  EXPECT_EQ(f.stats().traces, 2u);
}

TEST(Jit, NestedCallsJoinTheOuterProgram) {
  auto inner = jit([](Tensor x) { return x * 2; });
  auto outer = jit([=](Tensor x) { return inner(x) + 1; });
  EXPECT_EQ(outer(ones({})).item<float>(), 3);
  EXPECT_EQ(inner.stats().traces, 0u);
}

TEST(Jit, GraphAsText) {
  auto f = jit([](Tensor x) { return relu(x + 1); });
  std::string text = f.graph(ones({2}));
  EXPECT_NE(text.find("tressel.add"), std::string::npos) << text;
  EXPECT_NE(text.find("tressel.relu"), std::string::npos) << text;
  EXPECT_EQ(f.stats().traces, 0u);
}

TEST(Jit, ThreadsShareOneProgram) {
  auto f = jit([](Tensor x) { return tanh(x) * 3 + x; });
  Tensor x = rng::normal({64}, 5);
  const auto expected = floats(jit([](Tensor y) { return tanh(y) * 3 + y; })(x));
  std::vector<std::thread> threads;
  std::atomic<int> different{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        different += floats(f(x)) != expected;
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(different, 0);
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(Jit, CachesCanBeCleared) {
  auto f = jit([](Tensor x) { return x + 1; });
  f(ones({2}));
  clear_compile_caches();
  EXPECT_EQ(floats(f(ones({2}))), (std::vector<float>{2, 2}));
  EXPECT_EQ(f.stats().traces, 2u);
}

// The same function some lines below: its kernels are there already, and its failure names its own line.
TEST(Jit, ShiftedSourceCompilesNothing) {
  auto first = jit([](Tensor x, Tensor i) { return take(exp(x * 0.4321f), i, 0); });
  uint32_t line = 0;
  auto second = jit([&](Tensor x, Tensor i) {
    line = __LINE__ + 1;
    return take(exp(x * 0.4321f), i, 0);
  });
  Tensor x = ones({5, 7}), inside = tensor({1}, i64), outside = tensor({5}, i64);
  const auto expected = floats(first(x, inside));
  EXPECT_GT(first.stats().kernels_compiled + first.stats().kernels_cached, 0u);
  EXPECT_EQ(floats(second(x, inside)), expected);
  EXPECT_EQ(second.stats().kernels_compiled, 0u);
  EXPECT_EQ(second.stats().kernels_cached, first.stats().kernels_compiled + first.stats().kernels_cached);
  try {
    second(x, outside).wait();
    FAIL() << "row 5 of 5 was taken";
  } catch (const Error &e) {
    EXPECT_EQ(e.where().line, line) << e.what();
  }
}

// In processes of their own, which run this test up to their line: which folder is used is settled at the first compilation.
TEST(Jit, KernelsAreKeptOnDiskUnlessNotWanted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char *kFolder = "TRESSEL_JIT_TEST_FOLDER";
  if (!std::getenv(kFolder))
    ::setenv(kFolder, (testing::TempDir() + "tressel-jit-" + std::to_string(::getpid())).c_str(), 1);
  const std::string folder = std::getenv(kFolder);
  auto compile = [&](bool keep) {
    ::setenv("TRESSEL_CACHE_DIR", folder.c_str(), 1);
    ::unsetenv("TRESSEL_CACHE_LIMIT");
    auto f = jit([](Tensor x) { return x * 3.21f - 1; }, {.disk_cache = keep});
    f.compile(TensorType{f32, {11}});
    // 0: nothing was compiled, 1: something.
    std::exit(f.stats().kernels_compiled > 0 ? 1 : 0);
  };
  EXPECT_EXIT(compile(false), testing::ExitedWithCode(1), "");
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_EXIT(compile(true), testing::ExitedWithCode(1), "");
  EXPECT_TRUE(std::filesystem::exists(folder));
  EXPECT_EXIT(compile(true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(compile(false), testing::ExitedWithCode(1), "");
  std::filesystem::remove_all(folder);
  ::unsetenv(kFolder);
}

TEST(Jit, MeasuredKernelsComputeTheSame) {
  Variable w(tensor({{0.5f, -1, 2}, {3, 0.25f, -2}}), "w");
  auto f = [=](Tensor x) { return relu(matmul(x, w)) + 1; };
  Tensor x = tensor({{1.0, 2}, {3, -4}, {5, 6}, {-7, 8}});
  EXPECT_EQ(floats(jit(f, {.measure = true})(x)), floats(jit(f)(x)));
}

TEST(Jit, PackageRunsWithoutTheFrontend) {
  Variable w(tensor({2.0, 3}), "w");
  auto f = jit([=](Tensor x) { return tanh(x) * w + 1; });
  const std::string path = testing::TempDir() + "jit_package.tsl";
  f.export_package(path, {.inputs = {{f32, {2}, "x"}}, .outputs = {"y"}});
  auto package = runtime::Package::open(path);
  EXPECT_EQ(package.schedule().inputs[0].name, "x");
  EXPECT_EQ(package.schedule().outputs[0].name, "y");
  runtime::Context context = package.context();
  alignas(64) float x[2] = {0.5, -1}, y[2] = {};
  const void *in = x;
  void *out = y;
  context.run({&in, 1}, {&out, 1});
  auto expected = floats(f(tensor({0.5, -1})));
  EXPECT_NEAR(y[0], expected[0], 1e-6);
  EXPECT_NEAR(y[1], expected[1], 1e-6);
  std::filesystem::remove(path);
  EXPECT_THROW(f.export_package(path, {.inputs = {{f32, {2}, "x"}}, .outputs = {"y", "z"}}), Error);
}

TEST(Jit, NamesOfInputsAndOutputsAreDistinct) {
  auto f = jit([](Tensor x, Tensor y) { return std::pair{x + y, x - y}; });
  const std::string path = testing::TempDir() + "jit_names.tsl";
  unsigned line = 0;
  auto message = [&](const ExportOptions &options) {
    try {
      line = __LINE__ + 1;
      f.export_package(path, options);
    } catch (const Error &e) {
      EXPECT_EQ(e.where().line, line) << e.what();
      return e.message();
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message({.inputs = {{f32, {2}, "x"}, {f32, {2}, "x"}}}), "'x' is the name of input 0 and of input 1");
  EXPECT_EQ(message({.inputs = {{f32, {2}, "arg1"}, {f32, {2}}}}), "'arg1' is the name of input 0 and of input 1");
  EXPECT_EQ(message({.inputs = {{f32, {2}}, {f32, {2}}}, .outputs = {"y", "y"}}),
            "'y' is the name of output 0 and of output 1");
  EXPECT_FALSE(std::filesystem::exists(path));
  f.export_package(path, {.inputs = {{f32, {2}, "x"}, {f32, {2}}}, .outputs = {"x", "y"}});
  EXPECT_EQ(runtime::Package::open(path).schedule().inputs[1].name, "arg1");
  std::filesystem::remove(path);
  EXPECT_THROW(f.compile({f32, {2}, "x"}, {f32, {2}, "x"}), Error);
}

TEST(Jit, PackageHasTheFunctionsOptions) {
  Variable w(rng::normal({64, 64, 3, 3}, 1), "w");
  const std::string path = testing::TempDir() + "jit_options.tsl";
  for (bool winograd : {false, true}) {
    auto f = jit([=](Tensor x) { return conv(x, w, {}, {}, {}, {}, 1, /*channels_last=*/true); }, {.winograd = winograd});
    f.export_package(path, {.inputs = {{f32, {1, 30, 30, 64}, "x"}}});
    const auto package = runtime::Package::open(path);
    const auto &kernels = package.schedule().kernels;
    EXPECT_EQ(std::ranges::any_of(kernels, [](const auto &k) { return k.params.find("winograd") != std::string::npos; }), winograd);
    std::filesystem::remove(path);
  }
}

} // namespace
