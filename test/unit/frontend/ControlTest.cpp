// cond, while_loop, for_loop and scan: what runs at once and what is compiled give the same.
#include "tressel/runtime/Package.h"
#include <tressel/tressel.h>

#include <filesystem>
#include <gtest/gtest.h>

using namespace tressel;

namespace {

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }

template <typename E, typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const E &e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing thrown";
  return "";
}

/// Calls fn and a jitted fn, twice: the second call records again and compares.
template <typename Fn, typename... Args> void expectSame(Fn fn, const Args &...args) {
  const auto eager = floats(fn(args...));
  auto compiled = jit(fn);
  for (int call = 0; call < 2; ++call) {
    const auto got = floats(compiled(args...));
    ASSERT_EQ(got.size(), eager.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], eager[i], 1e-5f * (1 + std::abs(eager[i]))) << "element " << i;
  }
  EXPECT_EQ(compiled.stats().traces, 1u);
}

} // namespace

TEST(Control, CondTakesOneBranch) {
  auto f = [](Tensor x) {
    return cond(
        sum(x) > 0, [](Tensor v) { return sqrt(v); }, [](Tensor v) { return -v * 2; }, x);
  };
  expectSame(f, tensor({1.0f, 4.0f}));
  expectSame(f, tensor({-1.0f, -4.0f}));
  auto compiled = jit(f);
  EXPECT_EQ(floats(compiled(tensor({1.0f, 4.0f}))), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(compiled(tensor({-1.0f, -4.0f}))), (std::vector<float>{2, 8}));
  EXPECT_EQ(compiled.stats().traces, 1u);
}

TEST(Control, BranchesCaptureAndReturnTrees) {
  const Tensor w = tensor({3.0f, 5.0f});
  auto f = [w](Tensor x, Tensor y) {
    auto [a, b] = cond(
        sum(x) > sum(y),
        [&] {
          return std::pair{x * w, y};
        },
        [&] {
          return std::pair{y, x + w};
        });
    return a + b * 10;
  };
  expectSame(f, tensor({1.0f, 4.0f}), tensor({2.0f, 0.5f}));
  expectSame(f, tensor({1.0f, 0.0f}), tensor({2.0f, 0.5f}));
}

TEST(Control, WhileLoopRunsAsOftenAsTheDataSay) {
  auto collatz = [](Tensor n) { // steps until 1
    return std::get<1>(while_loop([](Tensor n, Tensor) { return n != 1; },
                                  [](Tensor n, Tensor steps) {
                                    Tensor next = cond(
                                        n % 2 == 0, [&] { return floor_divide(n, 2); }, [&] { return 3 * n + 1; });
                                    return std::tuple{next, steps + 1};
                                  },
                                  std::tuple{n, tensor(int64_t(0))}));
  };
  auto compiled = jit(collatz);
  for (auto [n, steps] : {std::pair<int64_t, int64_t>{1, 0}, {6, 8}, {27, 111}, {97, 118}}) {
    EXPECT_EQ(collatz(tensor(n)).item<int64_t>(), steps);
    EXPECT_EQ(compiled(tensor(n)).item<int64_t>(), steps) << n;
  }
}

TEST(Control, ForLoopCounts) {
  auto fibonacci = [](Tensor n) {
    return std::get<0>(for_loop(
        n,
        [](Tensor, Tensor a, Tensor b) {
          return std::tuple{b, a + b};
        },
        std::tuple{tensor(int64_t(0)), tensor(int64_t(1))}));
  };
  auto compiled = jit(fibonacci);
  for (auto [n, value] : {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {10, 55}, {90, 2880067194370816120}}) {
    EXPECT_EQ(fibonacci(tensor(n)).item<int64_t>(), value);
    EXPECT_EQ(compiled(tensor(n)).item<int64_t>(), value);
  }
  expectSame(
      [](Tensor x) {
        return for_loop(
            5, [](Tensor i, Tensor s) { return s + cast(i, f32); }, x);
      },
      tensor({0.5f, 1.5f}));
  expectSame(
      [](Tensor x) {
        return for_loop(
            0, [](Tensor, Tensor s) { return s * 2; }, x);
      },
      tensor({0.5f, 1.5f}));
}

TEST(Control, PowerIteration) {
  expectSame(
      [](Tensor a, Tensor v) {
        return for_loop(
            30,
            [&](Tensor, Tensor v) {
              Tensor next = matmul(a, v);
              return next / sqrt(sum(next * next));
            },
            v);
      },
      tensor({{2.0f, 1.0f}, {1.0f, 3.0f}}), tensor({1.0f, 0.0f}));
}

TEST(Control, ScanOfARecurrentCell) {
  auto f = [](Tensor xs, Tensor h, Tensor w) {
    auto [last, all] = scan(
        [&](Tensor h, Tensor x) {
          h = tanh(matmul(h, w) + x);
          return std::pair{h, h * 2};
        },
        h, xs);
    return concat({reshape(last, {1, 3}), all});
  };
  const Tensor w = tensor({{0.1f, 0.2f, 0.3f}, {0.4f, -0.5f, 0.6f}, {-0.7f, 0.8f, 0.9f}});
  for (int64_t steps : {1, 2, 7}) {
    expectSame(f, rng::normal({steps, 3}, 1), zeros({3}), w);
  }
}

TEST(Control, ScanOfNothingStacksNothing) {
  auto f = [](Tensor xs) {
    return scan([](Tensor h, Tensor x) { return std::pair{h + sum(x), cast(x, f64) * 2}; }, zeros({}), xs).second;
  };
  const Tensor none = f(zeros({0, 3}));
  ASSERT_TRUE(none.defined());
  EXPECT_EQ(none.type(), (TensorType{f64, {0, 3}}));
  EXPECT_EQ(jit(f)(zeros({0, 3})).type(), none.type());
}

TEST(Control, LoopsNest) {
  expectSame(
      [](Tensor x) {
        return for_loop(
            3,
            [&](Tensor i, Tensor s) {
              Tensor inner = for_loop(
                  4, [&](Tensor j, Tensor t) { return t + x * cast(i * j, f32); }, s);
              return cond(
                  sum(inner) > 40, [&] { return inner * 0.5f; }, [&] { return inner; });
            },
            x);
      },
      tensor({1.0f, 2.0f}));
}

TEST(Control, LargeCarriedTensors) {
  expectSame(
      [](Tensor x) {
        return for_loop(
            10, [](Tensor, Tensor s) { return sqrt(s * s + 1); }, x);
      },
      rng::normal({300, 700}, 3));
}

TEST(Control, VariablesInBodies) {
  Variable count(tensor(0.0f), "count"), scale(tensor(2.0f), "scale");
  auto f = [=](Tensor x) {
    return for_loop(
        3,
        [&](Tensor, Tensor s) {
          count.assign(count.value() + 1);
          return s * scale;
        },
        x);
  };
  EXPECT_EQ(floats(f(tensor({1.0f}))), (std::vector<float>{8}));
  EXPECT_EQ(count.value().item<float>(), 3);
  auto compiled = jit(f);
  for (int call = 1; call <= 3; ++call) {
    EXPECT_EQ(floats(compiled(tensor({1.0f}))), (std::vector<float>{8}));
    EXPECT_EQ(count.value().item<float>(), 3 + 3 * call);
  }
  auto maybe = jit([=](Tensor x) {
    cond(
        x > 0, [&] { count.assign(x); }, [] {});
    return count.value() + 1;
  });
  EXPECT_EQ(maybe(tensor(-5.0f)).item<float>(), 13);
  EXPECT_EQ(maybe(tensor(5.0f)).item<float>(), 6);
  EXPECT_EQ(maybe(tensor(-5.0f)).item<float>(), 6);
}

TEST(Control, ExportedLoopRunsWithoutTheCompiler) {
  const std::string path = std::filesystem::path(testing::TempDir()) / "loop.tsl";
  auto f = jit(
      [](Tensor x) { return while_loop([](Tensor v) { return sum(v) < 100; }, [](Tensor v) { return v * 2; }, x); });
  f.export_package(path, {.inputs = {{f32, {4}, "x"}}});
  auto package = runtime::Package::open(path);
  runtime::Context context = package.context();
  const float x[] = {1, 2, 3, 4};
  float out[4] = {};
  const void *inputs[] = {x};
  void *outputs[] = {out};
  context.run(inputs, outputs);
  EXPECT_EQ((std::vector<float>(out, out + 4)), (std::vector<float>{16, 32, 48, 64}));
}

TEST(Control, Errors) {
  const Tensor x = tensor({1.0f, 2.0f});
  auto traced = [&](auto fn) { return messageOf<Error>([&] { jit(fn)(x); }); };
  std::string text = traced([](Tensor x) {
    return cond(
        x > 0, [&] { return x; }, [&] { return x; });
  });
  EXPECT_NE(text.find("the condition must be one bool, not bool[2]"), std::string::npos) << text;
  EXPECT_NE(text.find("ControlTest.cpp"), std::string::npos) << text;
  text = traced([](Tensor x) {
    return cond(
        sum(x) > 0, [&] { return x; }, [&] { return sum(x); });
  });
  EXPECT_NE(text.find("the branches give different types: (f32[2]) and (f32[])"), std::string::npos) << text;
  text = traced([](Tensor x) {
    return for_loop(
        3, [](Tensor, Tensor v) { return sum(v); }, x);
  });
  EXPECT_NE(text.find("changes its type between (f32[2]) and (f32[])"), std::string::npos) << text;
  text = messageOf<ShapeError>([&] {
    for_loop(
        3, [](Tensor, Tensor v) { return sum(v); }, x);
  });
  EXPECT_NE(text.find("changes its type between (f32[2]) and (f32[])"), std::string::npos) << text;
  text = traced([](Tensor x) {
    Tensor leaked;
    for_loop(
        3, [&](Tensor, Tensor v) { return leaked = v + 1; }, x);
    return leaked * 2;
  });
  EXPECT_NE(text.find("made in a body"), std::string::npos) << text;
  for (const Tensor &count : {tensor({1.5}), tensor({1, 2}, i64)}) {
    text = messageOf<ShapeError>([&] {
      for_loop(
          count, [](Tensor, Tensor v) { return v; }, x);
    });
    EXPECT_NE(text.find("the number of iterations is one integer, not ("), std::string::npos) << text;
  }
  text = messageOf<ShapeError>([&] { scan([](Tensor c, Tensor v) { return std::pair{c, v}; }, x, sum(x)); });
  EXPECT_NE(text.find("do not share"), std::string::npos) << text;
  Variable v(tensor(1.0f), "v");
  text = traced([v](Tensor x) {
    return while_loop(
        [&](Tensor y) {
          v.assign(sum(y));
          return sum(y) < 3;
        },
        [](Tensor y) { return y + 1; }, x);
  });
  EXPECT_NE(text.find("the condition of a while_loop assigns 'v'"), std::string::npos) << text;
}
