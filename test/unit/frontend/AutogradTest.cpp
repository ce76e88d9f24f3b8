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

TEST(Autograd, Errors) {
  const Tensor x = ones({2}), n = tensor({1, 2}, i64);
  EXPECT_NE(messageOf([&] { value_and_grad([&] { return x * 2.0; }, std::vector{x}); }).find("reduce the loss with mean()"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { value_and_grad([&] { return sum(n); }, std::vector{n}); }).find("no gradient with respect to i64[2]"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { value_and_grad([&] { return sum(cumprod(x)); }, std::vector{x}); }).find("cumprod cannot be differentiated"),
            std::string::npos);
  Variable counter(n, "counter");
  EXPECT_NE(messageOf([&] { value_and_grad([&] { return sum(x); }, std::vector{counter}); }).find("'counter'"),
            std::string::npos);
  // What follows a failure is not recorded.
  EXPECT_FLOAT_EQ(sum(x).item<float>(), 2);
}

} // namespace
} // namespace tressel
