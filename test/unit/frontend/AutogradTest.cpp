// value_and_grad: imperative calls and traced functions give the same gradients, those of differences.
#include <tressel/tressel.h>

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace tressel {
namespace {

std::string messageOf(const std::function<void()> &fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing thrown";
}

void expectNear(const Tensor &a, const Tensor &b, double tolerance) {
  ASSERT_EQ(a.type().str(), b.type().str());
  const std::vector<double> x = cast(a, f64).to_vector<double>(), y = cast(b, f64).to_vector<double>();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], y[i], tolerance * (1 + std::abs(y[i]))) << "element " << i;
}

/// Compares gradients with differences of the function, in f64.
void expectDifferences(const std::function<Tensor(const std::vector<Tensor> &)> &fn, std::vector<Tensor> inputs) {
  const auto [value, grads] = value_and_grad([&] { return fn(inputs); }, inputs);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> at = inputs[k].to_vector<double>(), got = grads[k].to_vector<double>();
    for (size_t i = 0; i < at.size(); ++i) {
      auto valueAt = [&](double x) {
        std::vector<double> moved = at;
        moved[i] = x;
        std::vector<Tensor> others = inputs;
        others[k] = from_span(moved, inputs[k].shape());
        return fn(others).item<double>();
      };
      const double h = 1e-5, wanted = (valueAt(at[i] + h) - valueAt(at[i] - h)) / (2 * h);
      EXPECT_NEAR(got[i], wanted, 1e-6 * (1 + std::abs(wanted))) << "input " << k << ", element " << i;
    }
  }
}

Tensor normal64(const std::vector<Size> &shape, int seed) { return random_normal(seed, shape, f64); }

TEST(Autograd, IsThatOfDifferences) {
  expectDifferences(
      [](const std::vector<Tensor> &in) {
        Tensor h = tanh(matmul(in[0], in[1]) + in[2]);
        return mean(softmax(h, -1) * log_softmax(h * 2.0, -1)) + sum(h * h) / 7.0;
      },
      {normal64({3, 4}, 1), normal64({4, 5}, 2), normal64({5}, 3)});
}

TEST(Autograd, OfAValueThatIsUsedTwiceAndOfOneThatIsNotUsed) {
  const Tensor x = full({}, 3.0), unused = full({2}, 1.0);
  const auto [y, grads] = value_and_grad([&] { return x * x * x + x; }, {x, unused});
  EXPECT_FLOAT_EQ(y.item<float>(), 30);
  EXPECT_FLOAT_EQ(grads[0].item<float>(), 28);
  EXPECT_EQ(grads[1].to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Autograd, OfGradients) {
  const Tensor x = full({}, 2.0);
  const auto [slope, second] = value_and_grad(
      [&] { return value_and_grad([&] { return pow(x, 4.0) + exp(x); }, std::vector{x}).grads[0]; }, std::vector{x});
  EXPECT_NEAR(slope.item<float>(), 32 + std::exp(2.0), 1e-4);
  EXPECT_NEAR(second[0].item<float>(), 48 + std::exp(2.0), 1e-4);
}

struct Net : nn::Module<Net> {
  nn::Conv2d conv = child("conv", nn::Conv2d(4, 3));
  nn::BatchNorm norm = child("norm", nn::BatchNorm());
  nn::Dense head = child("head", nn::Dense(3));
  Tensor forward(Tensor x) const {
    Tensor h = max_pool(relu(norm(conv(x))), {2, 2});
    return head(reshape(h, {x.dim(0), -1}));
  }
};

TEST(Autograd, TracedAndImperativeGradientsAgree) {
  Net net;
  net.initialize({{f32, {5, 2, 8, 8}}}, 1);
  const Tensor x = random_normal(3, {5, 2, 8, 8}), label = tensor({0, 2, 1, 1, 0}, i64);
  auto run = [net](Tensor images, Tensor labels) {
    auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(images), labels); }, net.parameters());
    grads.push_back(loss);
    return grads;
  };
  auto traced = jit(run);
  const std::vector<Tensor> now = run(x, label), compiled = traced(x, label);
  ASSERT_EQ(now.size(), net.parameters().size() + 1);
  for (size_t i = 0; i < now.size(); ++i)
    expectNear(now[i], compiled[i], 1e-4);
  net.hybridize();
  const std::vector<Tensor> hybrid = run(x, label);
  for (size_t i = 0; i < now.size(); ++i)
    expectNear(hybrid[i], now[i], 1e-4);
}

TEST(Autograd, AStepOfTrainingIsOneProgram) {
  Net net;
  net.initialize({{f32, {16, 2, 8, 8}}}, 1);
  const Tensor x = random_normal(3, {16, 2, 8, 8}), label = randint(4, 0, 3, {16});
  Variable rate(full({}, 0.1), "rate");
  auto step = jit([net, rate](Tensor images, Tensor labels) {
    auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(images), labels); }, net.parameters());
    size_t i = 0;
    for (const auto &[name, parameter] : net.parameters())
      parameter.assign(parameter.value() - grads[i++] * rate.value());
    return loss;
  });
  const float first = step(x, label).item<float>();
  float last = first;
  for (int i = 0; i < 30; ++i) {
    rate.assign(full({}, 0.1 / (1 + 0.1 * i)));
    last = step(x, label).item<float>();
  }
  EXPECT_LT(last, first / 4);
  EXPECT_EQ(step.stats().traces, 1u);
}

TEST(Autograd, ImperativeControlFlow) {
  const Tensor x = full({}, 1.5);
  const auto [y, grads] = value_and_grad(
      [&] { return for_loop(3, [&](Tensor, Tensor v) { return v * x; }, x); }, std::vector{x});
  EXPECT_FLOAT_EQ(grads[0].item<float>(), 4 * 1.5f * 1.5f * 1.5f);
}

/// Runs imperatively and compiled, and compares.
std::vector<Tensor> both(const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &fn,
                         const std::vector<Tensor> &inputs) {
  const std::vector<Tensor> imperative = fn(inputs);
  auto compiled = jit([&](std::vector<Tensor> in) { return fn(in); });
  compiled(inputs);
  const std::vector<Tensor> traced = compiled(inputs); // the second call is compared with the first
  EXPECT_EQ(imperative.size(), traced.size());
  for (size_t i = 0; i < traced.size(); ++i)
    expectNear(traced[i], imperative[i], 1e-11);
  return imperative;
}

TEST(Autograd, VectorJacobianProducts) {
  const Tensor x = normal64({3}, 1), a = normal64({2}, 2), b = normal64({3}, 3), w = normal64({3, 2}, 4);
  const auto got = both(
      [](const std::vector<Tensor> &in) {
        auto out = vjp([&] { return std::pair{matmul(in[0], in[3]), exp(in[0])}; }, {in[0]});
        const Tensor first = out.pull_back({in[1], in[2]})[0],
                     second = out.pull_back({in[1], Tensor()})[0]; // as often as one likes
        return std::vector{first, second};
      },
      {x, a, b, w});
  expectNear(got[0], matmul(w, a) + exp(x) * b, 1e-12);
  expectNear(got[1], matmul(w, a), 1e-12);
}

TEST(Autograd, JacobianVectorProducts) {
  const Tensor x = normal64({3}, 1), t = normal64({3}, 2), w = normal64({3, 2}, 3);
  const auto got = both(
      [](const std::vector<Tensor> &in) {
        auto out = jvp([&] { return std::pair{tanh(matmul(in[0], in[2])), argmax(in[0])}; }, {in[0]}, {in[1]});
        EXPECT_FALSE(out.tangent.second.defined()); // of integers
        return std::vector{out.value.first, out.tangent.first};
      },
      {x, t, w});
  const double h = 1e-6;
  auto at = [&](double s) { return tanh(matmul(x + t * s, w)); };
  expectNear(got[0], at(0), 1e-12);
  expectNear(got[1], (at(h) - at(-h)) / (2 * h), 1e-8);
}

TEST(Autograd, JacobianVectorProductsThroughLoops) { // forward over what goes back over a scan
  const Tensor x = normal64({2}, 1), t = normal64({2}, 2), w = normal64({2}, 3);
  auto fn = [](const Tensor &x, const Tensor &w) {
    return for_loop(
        3, [&](Tensor, Tensor h) { return sin(h * w); }, x);
  };
  const auto got = both(
      [&](const std::vector<Tensor> &in) {
        return std::vector{jvp([&] { return fn(in[0], in[2]); }, {in[0]}, {in[1]}).tangent};
      },
      {x, t, w});
  const double h = 1e-6;
  expectNear(got[0], (fn(x + t * h, w) - fn(x - t * h, w)) / (2 * h), 1e-8);
}

TEST(Autograd, Jacobians) {
  const Tensor x = normal64({3}, 1), w = normal64({2, 3}, 2);
  const auto got =
      both([](const std::vector<Tensor> &in) { return jacobian([&] { return matmul(in[1], in[0]); }, in); }, {x, w});
  expectNear(got[0], w, 1e-12);
  ASSERT_EQ(got[1].type().str(), "f64[2, 2, 3]");
  const std::vector<double> j = got[1].to_vector<double>(), at = x.to_vector<double>();
  for (size_t i = 0; i < 2; ++i)
    for (size_t k = 0; k < 2; ++k)
      for (size_t l = 0; l < 3; ++l)
        EXPECT_DOUBLE_EQ(j[(i * 2 + k) * 3 + l], i == k ? at[l] : 0);
}

TEST(Autograd, HessianVectorProducts) {
  const Tensor x = normal64({3}, 1), v = normal64({3}, 2);
  const auto got = both(
      [](const std::vector<Tensor> &in) {
        return hessian_vector_product([&] { return sum(exp(in[0]) * in[0]) + prod(sin(in[0])); }, {in[0]}, {in[1]});
      },
      {x, v});
  const double h = 1e-5;
  auto gradAt = [&](double s) {
    const Tensor at = x + v * s;
    return grad([&] { return sum(exp(at) * at) + prod(sin(at)); }, std::vector{at})[0];
  };
  expectNear(got[0], (gradAt(h) - gradAt(-h)) / (2 * h), 1e-7);
}

TEST(Autograd, StopGradient) {
  const Tensor x = tensor({2.0, 3.0}, f64);
  const auto got = both(
      [](const std::vector<Tensor> &in) {
        return grad(
            [&] {
              return sum(in[0] * stop_gradient(in[0] * in[0])) +
                     sum(for_loop(
                         2, [&](Tensor, Tensor h) { return h * stop_gradient(h); }, in[0]));
            },
            in);
      },
      {x});
  // x * c gives c = x^2; h -> h * c twice, with c counted as constants: x * x^2 gives x * x^2.
  expectNear(got[0], square(x) + x * square(x), 1e-12);
}

TEST(Autograd, CustomGradients) {
  const Tensor x = normal64({3}, 1);
  const auto got = both(
      [](const std::vector<Tensor> &in) {
        auto fn = [&] {
          // The rounded value, straight through.
          const std::vector<Tensor> y = custom_gradient(
              [](const std::vector<Tensor> &x) { return std::vector{round(x[0] * 4.0) / 4.0}; },
              [](const std::vector<Tensor> &, const std::vector<Tensor> &, const std::vector<Tensor> &d) { return d; },
              {in[0]});
          return sum(y[0] * in[0]);
        };
        return grad(fn, in);
      },
      {x});
  expectNear(got[0], round(x * 4.0) / 4.0 + x, 1e-12);
  auto inBody = jit([](Tensor x) {
    return grad(
        [&] {
          return sum(for_loop(
              2,
              [](Tensor, Tensor h) {
                return custom_gradient([](const std::vector<Tensor> &h) { return h; },
                                       [](auto &, auto &, auto &d) { return d; }, {h})[0];
              },
              x));
        },
        std::vector{x})[0];
  });
  EXPECT_NE(messageOf([&] { inBody(x); }).find("in a body of control flow"), std::string::npos);
}

TEST(Autograd, RecordAndBackward) {
  Variable w(normal64({3}, 1), "w");
  auto recording = autograd::record(std::vector{w});
  EXPECT_TRUE(training());
  const Tensor loss = sum(square(w.value()));
  const Tensor grad = recording.backward(loss)[0];
  expectNear(grad, w.value() * 2.0, 1e-12);
}

TEST(Autograd, OfFrozenParametersNothingIsComputed) {
  nn::Sequential net{nn::Dense(4, tanh), nn::Dense(1)};
  net.initialize({{f32, {2, 3}}}, 1);
  net["0"].freeze();
  const Tensor x = random_normal(1, {2, 3});
  auto step = jit([net](Tensor x) { return value_and_grad([&] { return mean(net(x)); }, net.parameters()).grads; });
  const std::vector<Tensor> grads = value_and_grad([&] { return mean(net(x)); }, net.parameters()).grads;
  ASSERT_EQ(grads.size(), 4U);
  EXPECT_FALSE(grads[0].defined());
  EXPECT_FALSE(grads[1].defined());
  EXPECT_TRUE(grads[2].defined());
}

TEST(Autograd, ChecksCotangents) {
  const Tensor x = normal64({3}, 1);
  const auto out = vjp([&] { return exp(x); }, {x});
  EXPECT_NE(messageOf([&] { out.pull_back(ones({2}, f64)); }).find("cotangent 0 is f64[2], but the result is f64[3]"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { jvp([&] { return exp(x); }, {x}, {}); }).find("0 tangents for 1 inputs"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { jacobian([&] { return argmax(x); }, {x}); }).find("a tensor of floats"), std::string::npos);
}

TEST(Autograd, Errors) {
  const Tensor x = ones({2}), n = tensor({1, 2}, i64);
  EXPECT_NE(messageOf([&] { value_and_grad([&] { return x * 2.0; }, std::vector{x}); }).find("reduce the loss with mean()"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { value_and_grad([&] { return sum(n); }, std::vector{n}); }).find("no gradient with respect to i64[2]"),
            std::string::npos);
  int line = 0;
  const std::string noRule = messageOf([&] {
    value_and_grad(
        [&] {
          line = __LINE__ + 1;
          const Tensor y = put_along_axis(x, tensor({0, 1}, i64), x, 0, "mul");
          return sum(y);
        },
        std::vector{x});
  });
  EXPECT_NE(noRule.find("writes of mode 'mul' cannot be differentiated"), std::string::npos) << noRule;
  EXPECT_NE(noRule.find("AutogradTest.cpp:" + std::to_string(line)), std::string::npos) << noRule;
  Variable counter(n, "counter");
  EXPECT_NE(messageOf([&] { value_and_grad([&] { return sum(x); }, std::vector{counter}); }).find("'counter'"),
            std::string::npos);
  const std::string ofGrad = messageOf([&] { grad([&] { return x * 2.0; }, std::vector{x}); });
  EXPECT_NE(ofGrad.find(" grad: "), std::string::npos) << ofGrad; // not the function that does the same
  // What follows a failure is not recorded.
  EXPECT_FLOAT_EQ(sum(x).item<float>(), 2);
}

} // namespace
} // namespace tressel
