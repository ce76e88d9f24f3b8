// Printing, checks, the first NaN, running without jit, files to look at, traces that go stale.
#include <tressel/autograd.h>
#include <tressel/control.h>
#include <tressel/debug.h>
#include <tressel/io.h>
#include <tressel/layers.h>
#include <tressel/ops.h>
#include <tressel/optim.h>
#include <tressel/runtime/Package.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tressel;

namespace {

std::string read(const std::filesystem::path &path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

template <typename Fn> std::string printed(Fn fn) {
  testing::internal::CaptureStderr();
  fn();
  wait_all();
  return testing::internal::GetCapturedStderr();
}

/// The error's text without its place, which is compared with `line`.
template <typename E = RuntimeError, typename Fn> std::string errorAt(uint32_t line, Fn fn) {
  try {
    fn();
  } catch (const E &e) {
    EXPECT_EQ(e.where().line, line) << e.what();
    return e.op() + ": " + e.message();
  }
  return "nothing was thrown";
}

TEST(DebugPrint, EagerAndCompiledInOrder) {
  EXPECT_EQ(printed([] { debug_print(tensor({1, 2.5}), "x"); }), "x: [ 1., 2.5] f32[2]\n");
  EXPECT_EQ(printed([] { debug_print(3); }), "3 i64[]\n");
  auto f = jit([](Tensor x) {
    Tensor y = matmul(x, x);
    debug_print(sum(y), "sum");
    debug_print(x, "x");
    debug_print(x, "x"); // equal calls stay two
    debug_print(7.5, "number");
    return y + 1;
  });
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(printed([&] { f(ones({2, 2})).wait(); }),
              "sum: 8. f32[]\nx: [[1., 1.],\n [1., 1.]] f32[2, 2]\nx: [[1., 1.],\n [1., 1.]] f32[2, 2]\nnumber: 7.5 f32[]\n");
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(DebugPrint, OfSizesKnownOnlyWhenItRuns) {
  auto f = jit([](Tensor x) {
    debug_print(x * 2, "twice");
    return x + 1;
  });
  for (int64_t n : {1, 3, 2, 4}) {
    std::string ones;
    for (int64_t i = 0; i < n; ++i)
      ones += (i ? ", 2." : "2.");
    EXPECT_EQ(printed([&] { f(tressel::ones({n})).wait(); }), "twice: [" + ones + "] f32[" + std::to_string(n) + "]\n");
  }
  EXPECT_EQ(f.stats().traces, 2u); // the second serves all sizes
}

TEST(DebugPrint, RunsWhereNothingIsReturned) {
  auto f = jit([](Tensor x) { debug_print(x * 2, "twice"); });
  EXPECT_EQ(printed([&] { f(2.0f); }), "twice: 4. f32[]\n");
}

TEST(DebugPrint, InLoopsAndBranches) {
  auto fn = [](Tensor x) {
    Tensor y = for_loop(
        3,
        [](Tensor i, Tensor v) {
          debug_print(i, "i");
          return v + 1;
        },
        x);
    debug_print(y, "after");
    return cond(
        y > 3, [](Tensor v) {
          debug_print(v, "large");
          return v;
        },
        [](Tensor v) {
          debug_print(v, "small");
          return v * 2;
        },
        y);
  };
  const std::string want = "i: 0 i64[]\ni: 1 i64[]\ni: 2 i64[]\nafter: 4. f32[]\nlarge: 4. f32[]\n";
  EXPECT_EQ(printed([&] { fn(tensor(1.0f)).wait(); }), want);
  auto f = jit(fn);
  EXPECT_EQ(printed([&] { f(tensor(1.0f)).wait(); }), want);
  EXPECT_EQ(printed([&] { f(tensor(-4.0f)).wait(); }),
            "i: 0 i64[]\ni: 1 i64[]\ni: 2 i64[]\nafter: -1. f32[]\nsmall: -1. f32[]\n");
}

TEST(AssertTrue, EagerAndCompiled) {
  assert_true(true, "fine");
  assert_true(sum(ones({3})) == 3, "fine");
  EXPECT_EQ(errorAt(__LINE__, [] { assert_true(sum(ones({3})) == 4, "the sum is 4"); }), "debug.assert: the sum is 4");
  uint32_t line = __LINE__ + 1;
  EXPECT_EQ(errorAt<ShapeError>(line, [] { assert_true(ones({3}) == 4, "m"); }), "debug.assert: needs one bool: bool[3]");
  EXPECT_THROW(jit([](Tensor x) {
                 assert_true(x == 4, "m");
                 return x;
               })(ones({3})),
               ShapeError);
  line = __LINE__ + 2;
  auto f = jit([](Tensor x) {
    assert_true(min(x) > 0, "all are positive");
    return log(x);
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(errorAt(line, [&] { f(zeros({2})).wait(); }), "debug.assert: all are positive");
  EXPECT_EQ(errorAt(line, [&] { (f(zeros({2})) * 2).wait(); }), "debug.assert: all are positive");
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{0, 0})); // a failure is of its call alone
}

// What a function returns carries a failed assertion, whether or not it was computed; Variables keep their values.
TEST(AssertTrue, ReachesAllThatIsReturned) {
  const std::string message = "debug.assert: positive";
  Tensor outside = ones({1});
  Variable scale(ones({1}), "scale"), count(zeros({1}), "count");
  uint32_t line = __LINE__ + 1;
  auto check = [](Tensor x) { assert_true(all(x > 0), "positive"); };
  auto same = [=](Tensor x) {
    check(x);
    return x;
  };
  auto f = jit(same);
  for (int i = 0; i < 4; ++i) { // the fast path of repeated calls too
    EXPECT_EQ(f(ones({1})).item<float>(), 1);
    EXPECT_EQ(errorAt(line, [&] { f(-ones({1})).item<float>(); }), message);
  }
  auto identity = jit([=](Tensor x) {
    check(x);
    return x * 1 + 0;
  });
  EXPECT_EQ(identity(ones({1})).item<float>(), 1);
  EXPECT_EQ(errorAt(line, [&] { identity(-ones({1})).wait(); }), message);
  auto several = jit([=](Tensor x) {
    check(x);
    return std::tuple{outside, scale.value(), x, x + 1, tensor(5)};
  });
  auto [a, b, c, d, e] = several(ones({1}));
  EXPECT_EQ(a.item<float>() + b.item<float>() + c.item<float>() + d.item<float>() + e.item<float>(), 10);
  auto results = several(-ones({1}));
  EXPECT_EQ(errorAt(line, [&] { std::get<0>(results).wait(); }), message);
  EXPECT_EQ(errorAt(line, [&] { std::get<1>(results).wait(); }), message);
  EXPECT_EQ(errorAt(line, [&] { std::get<2>(results).wait(); }), message);
  EXPECT_EQ(errorAt(line, [&] { std::get<3>(results).wait(); }), message);
  EXPECT_EQ(errorAt(line, [&] { std::get<4>(results).wait(); }), message);
  // Assigned Variables.
  auto assigns = jit([=](Tensor x) {
    check(x);
    count.assign(x);
  });
  assigns(ones({1}));
  EXPECT_EQ(count.value().item<float>(), 1);
  assigns(-ones({1})); // fails before it assigns, and nothing is returned: wait_all reports it
  EXPECT_EQ(count.value().item<float>(), 1);
  EXPECT_EQ(errorAt(line, [] { wait_all(); }), message);
  auto nothing = jit(check);
  nothing(-ones({1}));
  EXPECT_EQ(errorAt(line, [] { wait_all(); }), message);
}

TEST(AssertTrue, IsKeptWhereverItStands) {
  const uint32_t line = __LINE__ + 1;
  auto check = [](Tensor ok) { assert_true(ok, "kept"); };
  const std::string message = "debug.assert: kept";
  auto fails = [&](auto fn, Tensor good, Tensor bad) {
    auto f = jit(fn);
    EXPECT_NO_THROW(f(good).wait());
    EXPECT_EQ(errorAt(line, [&] { f(bad).wait(); }), message);
    EXPECT_NE(f.graph(good).find("debug.assert"), std::string::npos);
  };
  const Tensor good = ones({3}), bad = -ones({3});
  fails(
      [&](Tensor x) { // twice the same, and one that is known
        check(min(x) > 0);
        check(min(x) > 0);
        check(Arg(true).as_tensor());
        return zeros({2});
      },
      good, bad);
  fails(
      [&](Tensor x) { // in a branch whose results are unused
        cond(
            max(x) < 0,
            [&](Tensor v) {
              check(min(v) > 0);
              return v;
            },
            [](Tensor v) { return v; }, x);
        return x;
      },
      good, bad);
  fails(
      [&](Tensor x) { // in a loop
        for_loop(
            3,
            [&](Tensor, Tensor v) {
              check(min(v) > 0);
              return v;
            },
            x);
        return x;
      },
      good, bad);
  fails(
      [&](Tensor x) {
        while_loop([](Tensor v) { return max(v) < 0; },
                   [&](Tensor v) {
                     check(min(v) > 0);
                     return -v;
                   },
                   x);
        return x;
      },
      good, bad);
  auto inner = jit([&](Tensor x) {
    check(min(x) > 0);
    return x;
  });
  fails(
      [&](Tensor x) { // in a function inside
        inner(x);
        return x;
      },
      good, bad);
  // On a Variable alone: at each call.
  Variable v(good, "v");
  auto g = jit([=](Tensor x) {
    check(min(v.value()) > 0);
    return x;
  });
  EXPECT_NO_THROW(g(bad).wait());
  v.assign(bad);
  EXPECT_EQ(errorAt(line, [&] { g(good).wait(); }), message);
  EXPECT_EQ(errorAt(line, [&] { g(good).wait(); }), message);
  v.assign(good);
  EXPECT_NO_THROW(g(bad).wait());
  // On nothing but a constant.
  EXPECT_EQ(errorAt(line,
                    [&] {
                      jit([&](Tensor x) {
                        check(Arg(false).as_tensor());
                        return x;
                      })(good)
                          .wait();
                    }),
            message);
}

TEST(AssertTrue, InModulesOfDynamicSizesAndInPackages) {
  struct Checked : nn::Module<Checked> {
    Tensor forward(Tensor x) const {
      assert_true(all(x > 0), "positive");
      return x;
    }
  } net;
  net.initialize(1);
  net.hybridize();
  net.compile({{f32, {"n"}}});
  EXPECT_EQ(net(ones({5})).to_vector<float>(), std::vector<float>(5, 1));
  EXPECT_THROW(net(-ones({7})).wait(), RuntimeError);
  EXPECT_EQ(net.stats().traces, 1u);
  const std::string path = testing::TempDir() + "tressel-checked.tsl";
  net.export_package(path, {.inputs = {{f32, {2}}}});
  runtime::Context context = runtime::Package::open(path).context();
  float x[2] = {1, 2}, y[2] = {};
  const void *in = x;
  void *out = y;
  context.run({&in, 1}, {&out, 1});
  EXPECT_EQ(y[1], 2);
  x[1] = -1;
  EXPECT_THROW(context.run({&in, 1}, {&out, 1}), RuntimeError);
  std::filesystem::remove(path);
}

TEST(CheckNan, NamesTheFirstOpEagerly) {
  Tensor x = tensor({1.0, 0, -1});
  EXPECT_TRUE(std::isnan(log(x).to_vector<float>()[2])); // nothing is checked without a scope
  CheckNan scope;
  (exp(x) + 1).wait();
  uint32_t line = __LINE__ + 1;
  std::string message = errorAt(line, [&] { exp(log(x)); });
  EXPECT_EQ(message,
            "log: made NaN elements, the first at index 2, in f32[3]: 1 NaN, 1 infinite, min 0, mean 0, max 0; operand 0 "
            "f32[3]: min -1, mean 0, max 1");
  line = __LINE__ + 1;
  message = errorAt(line, [&] { 1.0 / (x * x); });
  EXPECT_EQ(message,
            "div: made infinite elements, the first at index 1, in f32[3]: 1 infinite, min 1, mean 1, max 1; operand 0 "
            "f32[]: min 1, mean 1, max 1; operand 1 f32[3]: min 0, mean 0.666667, max 1");
  // What was given is not blamed on who uses it; a NaN made of infinities is.
  Tensor inf = tensor({INFINITY});
  (inf + 1).wait();
  (tensor({NAN}) * 2).wait();
  (full({2}, -INFINITY) + 1).wait();
  EXPECT_EQ(errorAt(__LINE__, [&] { inf - inf; }).substr(0, 20), "sub: made NaN elemen");
}

/// Of the step in which a loss becomes NaN: the op that made it, in forward pass or gradient.
TEST(CheckNan, NamesTheFirstOpOfAStepOfTraining) {
  const Variable w(tensor({0.5f, 0.25f}));
  const NamedVariables parameters{{"w", w}};
  const optim::SGD opt(parameters, {.lr = 0.5});
  const uint32_t line = __LINE__ + 2;
  auto step = jit([=](Tensor x) {
    auto [loss, grads] = value_and_grad([&] { return sum(log(w * x)); }, parameters);
    opt.update(grads);
    return loss;
  });
  CheckNan scope;
  optim::Adam(parameters, {.lr = 0.5}); // its states hold a NaN
  const Tensor x = tensor({1.0f, 2.0f});
  step(x).wait(); // moves w below 0
  const std::string message = errorAt(line, [&] { step(x); });
  EXPECT_EQ(message.substr(0, 22), "log: made NaN elements");
  EXPECT_NE(message.find("(call 2 of '"), std::string::npos) << message;
}

TEST(CheckNan, NamesTheFirstOpOfCompiledPrograms) {
  const uint32_t line = __LINE__ + 3;
  Variable count(zeros({}), "count");
  auto f = jit([count](Tensor x) {
    Tensor y = log(x);
    count.assign(count.value() + 1);
    return exp(y) + 1;
  });
  Tensor good = ones({3}), bad = tensor({1.0, -1, 2});
  CheckNan scope;
  f(good).wait();
  EXPECT_EQ(count.value().item<float>(), 1);
  EXPECT_EQ(errorAt(line, [&] { f(bad); }).substr(0, 48), "log: made NaN elements, the first at index 1, in");
  EXPECT_EQ(count.value().item<float>(), 2); // the op by op run leaves no trace
  f(tensor({1, NAN, 2})).wait();             // given, not made
}

TEST(CheckNan, FindsWhatDoesNotReachTheResults) {
  const uint32_t line = __LINE__ + 2;
  auto f = jit([](Tensor x) {
    Tensor root = sqrt(x);
    return where(x > 0, root, 0.0f);
  });
  Tensor bad = tensor({4.0, -1});
  EXPECT_EQ(f(bad).to_vector<float>(), (std::vector<float>{2, 0}));
  CheckNan scope;
  f(ones({2})).wait();
  EXPECT_EQ(errorAt(line, [&] { f(bad); }).substr(0, 50), "sqrt: made NaN elements, the first at index 1, in ");
}

TEST(DisableJit, RunsEverythingOpByOp) {
  nn::Sequential net{nn::Dense(4, relu), nn::Dense(2)};
  net.initialize({{f32, {2, 3}}}, 1);
  Tensor x = ones({2, 3}), want = net(x);
  net.hybridize();
  Variable calls(zeros({}), "calls");
  auto f = jit([&](Tensor t) {
    calls.assign(calls.value() + 1);
    if (sum(t).item<float>() > 1e9) // reading a value is what no trace could do
      return t;
    return net(t);
  });
  {
    DisableJit scope;
    EXPECT_EQ(f(x).to_vector<float>(), want.to_vector<float>());
    DisableJit nested;
  }
  EXPECT_EQ(calls.value().item<float>(), 1);
  EXPECT_EQ(f.stats().traces, 0u);
  EXPECT_THROW(f(x), TraceError);
}

TEST(Dump, WritesStagesAndTensors) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tressel-dump-test";
  std::filesystem::remove_all(folder);
  auto f = jit([](Tensor a, Tensor b) { return exp(a) + b; });
  dump(f, folder.string(), zeros({3}), 1.0f);
  const std::string graph = read(folder / "graph.mlir");
  EXPECT_NE(graph.find("tressel.exp"), std::string::npos) << graph;
  EXPECT_NE(graph.find("DebugTest.cpp"), std::string::npos) << graph;
  EXPECT_NE(read(folder / "schedule.mlir").find("sched.program"), std::string::npos);
  EXPECT_NE(read(folder / "kernels.ll").find("define"), std::string::npos);
  EXPECT_EQ(load_npy((folder / "arg1.npy").string()).item<float>(), 1);
  EXPECT_EQ(load_npy((folder / "result0.npy").string()).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  dump(ones({2}), (folder / "x.npy").string());
  EXPECT_EQ(load_npy((folder / "x.npy").string()).size(), 2);
  EXPECT_THROW(dump(ones({2}), "/no/such/folder/x.npy"), RuntimeError);
  std::filesystem::remove_all(folder);
}

TEST(TraceCheck, SaysWhatDiffers) {
  const uint32_t line = __LINE__ + 3;
  auto twice = [](auto &f, Tensor x) {
    f(x);
    f(x); // the second call compares
  };
  double factor = 2;
  auto f = jit([&](Tensor x) { return exp(x) * factor++; });
  const std::string other = errorAt<TraceError>(line, [&] { twice(f, ones({2})); });
  EXPECT_NE(other.find("recorded another program than at its first call: mul at "), std::string::npos) << other;
  EXPECT_NE(other.find(": operand 1 is 3, was 2"), std::string::npos) << other;

  int64_t axis = 0;
  auto g = jit([&](Tensor x) { return softmax(x, axis++); });
  const std::string attribute = errorAt<TraceError>(line, [&] {
    twice(g, ones({2, 2}));
  });
  EXPECT_NE(attribute.find(": attribute 'axis' is 1, was 0"), std::string::npos) << attribute;

  bool swapped = true;
  auto h = jit([&](Tensor x) {
    swapped = !swapped;
    Tensor y = exp(x);
    return swapped ? y - x : x - y;
  });
  const std::string operands = errorAt<TraceError>(line, [&] {
    twice(h, ones({2, 2}));
  });
  EXPECT_NE(operands.find("sub at "), std::string::npos) << operands;
  EXPECT_NE(operands.find(": operand 0 is another one: a computed f32[2, 2]; operand 1 is another one"), std::string::npos)
      << operands;
}

TEST(Debug, AFunctionsGraphIsDrawn) {
  const std::filesystem::path folder = testing::TempDir();
  auto f = jit([](Tensor x, Tensor w) { return tanh(matmul(x, w)) + 1.0f; });
  auto drawn = [&](const char *name) {
    draw_graph(f, folder / name, ones({2, 3}), ones({3, 4}));
    std::ostringstream text;
    text << std::ifstream(folder / name).rdbuf();
    std::filesystem::remove(folder / name);
    return text.str();
  };
  EXPECT_EQ(drawn("layer.txt"), "layer: 3 ops\n"
                                "  0.  arg0: f32[2, 3]   |   arg1: f32[3, 4]\n"
                                "  1.  %0 = matmul(arg0, arg1)\n"
                                "  2.  %1 = tanh(%0)\n"
                                "  3.  %2 = add(%1, 1)\n"
                                "  4.  out0 = %2\n");
  EXPECT_NE(drawn("layer.svg").find("</svg>"), std::string::npos);
  EXPECT_NE(drawn("layer.dot").find("digraph"), std::string::npos);
  EXPECT_EQ(f.stats().traces, 0u) << "nothing was compiled";
  try {
    draw_graph(f, "layer.png", ones({2, 3}), ones({3, 4}));
    FAIL();
  } catch (const Error &e) {
    EXPECT_NE(std::string(e.what()).find("name it .svg, .dot or .txt"), std::string::npos) << e.what();
  }
}

// Each in a process of its own: what the environment holds is read once.
TEST(DebugDeathTest, BadValuesInTheEnvironmentAreTold) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto runWith = [](const char *name, const char *value) {
    setenv(name, value, 1);
    auto f = jit([](Tensor x) { return log(x); });
    try {
      for (int i = 0; i < 3; ++i)
        f(tensor({-1.0})).wait();
    } catch (const RuntimeError &) {
      std::exit(1);
    }
    std::exit(0);
  };
  EXPECT_EXIT(runWith("TRESSEL_CHECK_NAN", "yes"), testing::ExitedWithCode(0),
              "^tressel: TRESSEL_CHECK_NAN is 'yes', which is neither 0 nor 1; nothing is checked\n$");
  EXPECT_EXIT(runWith("TRESSEL_CHECK_NAN", "0"), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(runWith("TRESSEL_CHECK_NAN", "1"), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(runWith("TRESSEL_CHECK_TRACE", "2x"), testing::ExitedWithCode(0), "TRESSEL_CHECK_TRACE is '2x', which is no number");
  EXPECT_EXIT(runWith("TRESSEL_CHECK_TRACE", "2"), testing::ExitedWithCode(0), "^$");
  for (const char *lanes : {"99", "abc", "0"})
    EXPECT_EXIT(runWith("TRESSEL_LANES", lanes), testing::ExitedWithCode(0),
                "^tressel: TRESSEL_LANES is '" + std::string(lanes) + "', which is no number from 1 to 8; there are as many as cores, but at most 8\n$");
}

} // namespace
