// Products of half the width, and the scale that keeps gradients within them.
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace tressel;

namespace {

using Floats = std::vector<float>;

template <typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing thrown";
}
double farthest(const Tensor &a, const Tensor &b) {
  const Floats x = a.to_vector<float>(), y = b.to_vector<float>();
  double most = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(x[i] - y[i]))), size = std::max(size, static_cast<double>(std::abs(y[i])));
  return most / size;
}

/// The operands rounded to the type, products in f32, the result rounded.
Tensor rounded(const Tensor &x, DType type) { return cast(cast(x, type), f32); }

TEST(Autocast, ProductsAreThoseOfRoundedOperands) {
  const Tensor a = random_normal(1, {33, 65}), b = random_normal(2, {65, 17});
  for (DType type : {bf16, f16}) {
    SCOPED_TRACE(nameOf(type));
    auto f = jit([](Tensor x, Tensor y) { return exp(matmul(x, y) * 0.1); }, {.autocast = type});
    const Tensor want = exp(rounded(matmul(rounded(a, type), rounded(b, type)), type) * 0.1);
    EXPECT_LT(farthest(f(a, b), want), type == bf16 ? 8e-3 : 1e-3);                 // half a unit of the result
    EXPECT_GT(farthest(f(a, b), exp(matmul(a, b) * 0.1)), type == bf16 ? 1e-3 : 1e-4); // it is not f32
  }
  const Tensor image = random_normal(3, {2, 8, 12, 12}), filter = random_normal(4, {16, 8, 3, 3}) * 0.1;
  auto convolved = jit([](Tensor x, Tensor w) { return conv(x, w); }, {.autocast = bf16});
  EXPECT_LT(farthest(convolved(image, filter), rounded(conv(rounded(image, bf16), rounded(filter, bf16)), bf16)), 8e-3);
}

TEST(Autocast, RefusesOtherTypes) {
  auto f = jit([](Tensor x) { return matmul(x, x); }, {.autocast = f64});
  EXPECT_NE(messageOf([&] { f(ones({2, 2})); }).find("products cannot be computed in f64"), std::string::npos) << messageOf([&] { f(ones({2, 2})); });
}

struct Trained {
  nn::Sequential net;
  double loss = 0, scale = 0;
};
/// A small classification; `shrink` makes its gradients as small.
Trained train(std::optional<DType> type, bool isScaled, double shrink = 1) {
  nn::Sequential net{nn::Dense(32, tanh), nn::LayerNorm(), nn::Dense(3)};
  net.initialize({{f32, {48, 4}}}, 5);
  optim::Adam opt(net.parameters(), {.lr = 0.01, .eps = 1e-30});
  optim::LossScale scale({.initial = 1 << 20, .interval = 20});
  const Tensor x = random_normal(7, {48, 4});
  std::vector<int64_t> labels;
  const Floats values = x.to_vector<float>();
  for (size_t i = 0; i < 48; ++i)
    labels.push_back(values[4 * i] > 0.4f ? 2 : values[4 * i + 1] > 0 ? 1 : 0);
  const Tensor label = from_span(labels, {48});
  auto step = jit(
      [=](Tensor x, Tensor label) {
        auto [loss, gradients] = value_and_grad(
            [&] {
              const Tensor loss = softmax_cross_entropy(net(x), label) * shrink;
              return isScaled ? scale(loss) : loss;
            },
            net.parameters());
        if (isScaled)
          return scale.update(opt, loss, gradients) / shrink;
        opt.update(gradients);
        return loss / shrink;
      },
      {.autocast = type});
  Trained trained{net};
  for (int i = 0; i < 150; ++i)
    trained.loss = step(x, label).item<float>();
  EXPECT_EQ(step.stats().traces, 1);
  trained.scale = scale.value();
  return trained;
}

TEST(Autocast, TrainsAsF32Does) {
  const double full = train({}, false).loss;
  EXPECT_LT(full, 0.1);
  for (DType type : {bf16, f16})
    EXPECT_NEAR(train(type, false).loss, full, 0.05) << nameOf(type);
}

TEST(LossScale, SavesGradientsThatF16CannotHold) {
  const double full = train({}, false, 1e-9).loss;
  EXPECT_LT(full, 0.1);
  EXPECT_GT(train(f16, false, 1e-9).loss, 0.5); // products of gradients are 0
  const Trained scaled = train(f16, true, 1e-9);
  EXPECT_NEAR(scaled.loss, full, 0.05);
  EXPECT_GT(scaled.scale, 1 << 20); // it has grown
}

TEST(LossScale, StepsThatOverflowAreLeftOut) {
  for (bool compiled : {false, true}) {
    Variable w(ones({2}), "w");
    optim::Adam opt({{"w", w}}, {.lr = 0.1});
    optim::LossScale scale({.initial = 8, .growth = 4, .backoff = 0.25, .interval = 2, .most = 64});
    auto fn = [=](Tensor x) {
      auto [loss, gradients] = value_and_grad([&] { return scale(sum(w.value() * x)); }, NamedVariables{{"w", w}});
      return scale.update(opt, loss, gradients);
    };
    auto step = jit(fn);
    auto take = [&](float x) { return compiled ? step(full({2}, x, f32)).item<float>() : fn(full({2}, x, f32)).item<float>(); };
    EXPECT_EQ(take(2), 4);
    EXPECT_EQ(opt.steps(), 1);
    EXPECT_EQ(scale.value(), 8);
    const Floats before = w.value().to_vector<float>();
    std::vector<Floats> states;
    for (const auto &[name, state] : opt.states())
      states.push_back(cast(state.value(), f32).to_vector<float>());
    take(std::numeric_limits<float>::infinity());
    take(NAN);
    EXPECT_EQ(opt.steps(), 1);
    EXPECT_EQ(w.value().to_vector<float>(), before);
    for (size_t i = 0; i < states.size(); ++i)
      if (opt.states()[i].first != "rate") // NaN: the schedule is followed
        EXPECT_EQ(cast(opt.states()[i].second.value(), f32).to_vector<float>(), states[i]) << opt.states()[i].first;
    EXPECT_EQ(scale.value(), 0.5);
    for (int i = 0; i < 4; ++i)
      take(1);
    EXPECT_EQ(scale.value(), 8); // twice
    EXPECT_EQ(opt.steps(), 5);
    for (int i = 0; i < 10; ++i)
      take(1);
    EXPECT_EQ(scale.value(), 64);
  }
}

TEST(LossScale, SumsOfPartsLeaveTheBadOnesOut) {
  Variable w(zeros({1}), "w");
  optim::SGD opt({{"w", w}}, {.lr = 1, .accumulate = 2});
  auto add = [&](float gradient, bool when) { opt.update_when(tensor(when), {full({1}, gradient, f32)}); };
  add(1, true);
  add(NAN, false);
  EXPECT_EQ(opt.steps(), 0);
  add(3, true);
  EXPECT_EQ(opt.steps(), 1);
  EXPECT_EQ(w.value().item<float>(), -2);
  EXPECT_NE(messageOf([&] { opt.update_when(ones({1}), {ones({1})}); }).find("is a bool[], not f32[1]"), std::string::npos);
}

TEST(LossScale, SaysWhatMeansNothing) {
  for (optim::LossScaleOptions options : {optim::LossScaleOptions{.initial = 0}, {.growth = 0.5}, {.backoff = 1}, {.interval = 0}, {.most = 1}, {.initial = NAN}})
    EXPECT_NE(messageOf([&] { optim::LossScale scale(options); }), "nothing thrown");
}

} // namespace
