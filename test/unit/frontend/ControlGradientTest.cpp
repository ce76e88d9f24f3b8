// Gradients through control flow of traced functions: the same as of the imperative calls, which go round by round, and
// as those of differences; of a second order too.
#include <tressel/tressel.h>

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace tressel {
namespace {

using Tensors = std::vector<Tensor>;
using Fn = std::function<Tensor(const Tensors &)>;

Tensor normal(const std::vector<Size> &shape, int seed) { return random_normal(seed, shape, f64); }

void expectNear(const Tensors &got, const Tensors &wanted, double tolerance, const char *what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].type().str(), wanted[k].type().str());
    const std::vector<double> x = got[k].to_vector<double>(), y = wanted[k].to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(std::isfinite(x[i]) && std::isfinite(y[i])) << what;
      EXPECT_NEAR(x[i], y[i], tolerance * (1 + std::abs(y[i]))) << what << ", input " << k << ", element " << i;
    }
  }
}

Tensors differences(const Fn &fn, const Tensors &inputs) {
  Tensors all;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> at = inputs[k].to_vector<double>();
    std::vector<double> found;
    for (size_t i = 0; i < at.size(); ++i) {
      auto valueAt = [&](double x) {
        std::vector<double> moved = at;
        moved[i] = x;
        Tensors others = inputs;
        others[k] = from_span(moved, inputs[k].shape());
        return fn(others).item<double>();
      };
      const double h = 1e-5;
      found.push_back((valueAt(at[i] + h) - valueAt(at[i] - h)) / (2 * h));
    }
    all.push_back(from_span(found, inputs[k].shape()));
  }
  return all;
}

Tensors gradientsOf(const Fn &fn, const Tensors &inputs) {
  return value_and_grad([&] { return fn(inputs); }, inputs).grads;
}
/// A number made of the gradients, whose own gradient tells their derivatives.
Tensor mixed(const Fn &fn, const Tensors &inputs) {
  Tensor total = full({}, 0.0, f64);
  int seed = 100;
  for (const Tensor &grad : gradientsOf(fn, inputs))
    total = total + sum(grad * random_normal(++seed, grad.shape(), f64));
  return total;
}

void expectGradients(const Fn &fn, const Tensors &inputs) {
  const Tensors imperative = gradientsOf(fn, inputs);
  expectNear(imperative, differences(fn, inputs), 1e-6, "imperative");
  auto compiled = jit([&](Tensors in) { return gradientsOf(fn, in); });
  expectNear(compiled(inputs), imperative, 1e-11, "compiled");
  EXPECT_EQ(compiled.stats().traces, 1);

  const Fn second = [&](const Tensors &in) { return mixed(fn, in); };
  const Tensors again = gradientsOf(second, inputs);
  expectNear(again, differences(second, inputs), 1e-5, "imperative, second order");
  expectNear(jit([&](Tensors in) { return gradientsOf(second, in); })(inputs), again, 1e-10, "compiled, second order");
}

TEST(ControlGradient, OfAScanWithStackedResults) {
  expectGradients(
      [](const Tensors &in) {
        auto [last, all] = scan(
            [&](Tensor h, Tensor x) {
              h = tanh(matmul(in[1], h) + x * in[2]);
              return std::pair{h, h * h};
            },
            in[0], in[3]);
        return sum(last) + mean(all * all);
      },
      {normal({3}, 1), normal({3, 3}, 2), normal({3}, 3), normal({5, 3}, 4)});
}

TEST(ControlGradient, OfALoopThatReadsItsNumber) { // the number of the forward iteration, in the reverse loop too
  expectGradients(
      [](const Tensors &in) {
        const Tensor h = for_loop(4, [&](Tensor i, Tensor h) { return sin(h * cast(i + 1, f64)) + take(in[1], i, 0); }, in[0]);
        return sum(h * h);
      },
      {normal({3}, 1), normal({4, 3}, 2)});
}

TEST(ControlGradient, OfSeveralCarriedValuesOneOfThemReachedLate) { // b depends on x from the second iteration on
  expectGradients(
      [](const Tensors &in) {
        auto [a, b] = for_loop(
            3, [&](Tensor, Tensor a, Tensor b) { return std::tuple{a * in[0], b + sum(a * a)}; },
            std::tuple{full({2}, 1.5, f64), full({}, 0.0, f64)});
        return b + sum(a);
      },
      {normal({2}, 1)});
}

TEST(ControlGradient, OfAConditionBothWays) {
  for (double flag : {1.0, -1.0})
    expectGradients(
        [&](const Tensors &in) {
          return cond(
              sum(in[1]) * flag > 0, [&](Tensor x) { return sum(exp(x) * in[1]); }, [&](Tensor x) { return mean(x * x * x); }, in[0]);
        },
        {normal({3}, 1), abs(normal({3}, 2))});
}

TEST(ControlGradient, OfABranchThatWouldBeInfinite) { // the branch that is not taken adds nothing, not even 0 * inf
  const Tensor x = full({2}, 0.0, f64);
  auto fn = jit([](Tensor x) {
    return value_and_grad([&] { return cond(sum(x) > 0, [](Tensor x) { return sum(sqrt(x)); }, [](Tensor x) { return sum(x); }, x); }, std::vector{x}).grads[0];
  });
  EXPECT_EQ(fn(x).to_vector<double>(), (std::vector{1.0, 1.0}));
}

TEST(ControlGradient, OfALoopWithABound) {
  for (int64_t most : {1, 4, 9}) // cut short, exactly, and with room
    expectGradients(
        [&](const Tensors &in) {
          Tensor h = while_loop([](Tensor h) { return sum(h * h) < 4000.0; }, [&](Tensor h) { return h * in[1] + tanh(h); }, in[0],
                                {.max_trips = most});
          return sum(sin(h));
        },
        {full({2}, 3.0, f64), full({2}, 2.0, f64)});
}

TEST(ControlGradient, OfLoopsInLoopsAndBranches) {
  expectGradients(
      [](const Tensors &in) {
        auto [last, all] = scan(
            [&](Tensor h, Tensor x) {
              h = cond(
                  sum(x) > 0,
                  [&](Tensor h) { return for_loop(2, [&](Tensor i, Tensor h) { return tanh(h * in[1] + x) * cast(i + 1, f64); }, h); },
                  [&](Tensor h) { return h * x; }, h);
              Tensor inner = for_loop(3, [&](Tensor, Tensor g) { return sin(g + h); }, x);
              return std::pair{h + inner, sum(inner)};
            },
            in[0], in[2]);
        return sum(last * last) + sum(all);
      },
      {normal({2}, 1), normal({2}, 2), normal({4, 2}, 3)});
}

TEST(ControlGradient, InsideOfABody) { // the loop takes steps of gradient descent, and is itself differentiated
  expectGradients(
      [](const Tensors &in) {
        const Tensor x = for_loop(
            3,
            [&](Tensor, Tensor x) {
              const auto [value, grads] = value_and_grad([&] { return sum(exp(x * in[1]) - x); }, std::vector{x});
              return x - grads[0] * 0.1;
            },
            in[0]);
        return sum(x * x);
      },
      {normal({2}, 1), abs(normal({2}, 2))});
}

TEST(ControlGradient, OfVariablesThatABodyReadsAndAssigns) {
  Variable w(normal({3}, 1)), count(full({}, 0.0, f64));
  const Tensor x = normal({3}, 2);
  auto run = [&] {
    count.assign(full({}, 0.0, f64));
    return value_and_grad(
        [&] {
          Tensor h = for_loop(
              3,
              [&](Tensor, Tensor h) {
                count.assign(count + 1.0);
                return tanh(h * w * count);
              },
              x);
          return sum(h);
        },
        std::vector{w});
  };
  const Tensor imperative = run().grads[0];
  const Tensor counted = count.value();
  auto compiled = jit([&] { return run().grads; });
  const Tensor traced = compiled()[0];
  expectNear({traced}, {imperative}, 1e-12, "compiled");
  EXPECT_EQ(count.value().item<double>(), counted.item<double>());
}

TEST(ControlGradient, OfDropoutInALoopUsesTheMasksThatWereDrawn) {
  nn::Dropout drop(0.5);
  drop.initialize(7);
  const Tensor x = ones({64}, f64);
  auto step = jit([&](Tensor x) {
    const auto [value, grads] = value_and_grad(
        [&] { return sum(for_loop(3, [&](Tensor, Tensor h) { return drop(h); }, x)); }, std::vector{x});
    return std::pair{value, grads[0]};
  });
  for (int i = 0; i < 3; ++i) { // linear: the value is the gradient's sum where x is one
    const auto [value, grad] = step(x);
    EXPECT_EQ(value.item<double>(), sum(grad).item<double>());
    EXPECT_GT(value.item<double>(), 0);
    EXPECT_LT(value.item<double>(), 64 * 8);
  }
}

TEST(ControlGradient, WithASymbolicNumberOfIterations) {
  auto fn = [](Tensor xs, Tensor w) {
    return value_and_grad(
               [&] {
                 auto [last, all] = scan([&](Tensor h, Tensor x) { h = tanh(h * w + x); return std::pair{h, h}; }, ones({2}, f64), xs);
                 return sum(all * all) + sum(last);
               },
               std::vector{xs, w})
        .grads;
  };
  auto compiled = jit(fn); // its second size makes a dimension dynamic
  for (int64_t n : {3, 7, 5}) {
    const Tensor xs = normal({n, 2}, static_cast<int>(n)), w = normal({2}, 2);
    expectNear(compiled(xs, w), fn(xs, w), 1e-12, "compiled");
  }
  EXPECT_EQ(compiled.stats().traces, 2);
}

TEST(ControlGradient, WithRespectToATensorFromOutsideOfTheTrace) {
  const Tensor w = normal({3}, 1);
  auto run = [&](Tensor x) {
    return value_and_grad([&] { return sum(for_loop(3, [&](Tensor, Tensor h) { return tanh(h * w); }, x)); }, std::vector{w}).grads;
  };
  const Tensor x = normal({3}, 2);
  expectNear(jit(run)(x), run(x), 1e-12, "compiled");
}

TEST(ControlGradient, OfALoopWithoutABoundSaysWhatToDo) {
  auto fn = jit([](Tensor x) {
    return value_and_grad([&] { return while_loop([](Tensor x) { return x < 10.0; }, [](Tensor x) { return x * x; }, x); }, std::vector{x}).grads;
  });
  try {
    fn(full({}, 3.0));
    FAIL();
  } catch (const Error &e) {
    EXPECT_NE(std::string(e.what()).find("cannot be differentiated"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("max_trips"), std::string::npos) << e.what();
    EXPECT_EQ(e.where().line, static_cast<uint32_t>(__LINE__ - 8));
  }
  EXPECT_THROW(while_loop([](Tensor x) { return x < 10.0; }, [](Tensor x) { return x * x; }, full({}, 3.0), {.max_trips = -1}), ShapeError);
}

} // namespace
} // namespace tressel
