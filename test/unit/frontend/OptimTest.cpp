// Optimizers against their formulas in plain C++, schedules against theirs; in traced steps one program does for all.
#include <tressel/tressel.h>

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>

namespace tressel {
namespace {

using optim::Schedule;
using Vector = std::vector<double>;

std::string messageOf(const std::function<void()> &fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing thrown";
}

/// The gradient at step t, from 1 on.
Vector gradientAt(int t, size_t n) {
  Vector g;
  for (size_t i = 0; i < n; ++i)
    g.push_back(std::sin(1.3 * t + 0.7 * static_cast<double>(i)) * (i == 1 ? 10 : 1));
  return g;
}

constexpr double kRate = 0.05;
const Vector kStart{0.5, -1.25, 2, 0.125};

/// Steps of an optimizer, imperative or traced, from kStart in f64.
template <typename Make> Vector stepsOf(Make make, int count, bool traced, const std::vector<Size> &shape = {4}) {
  Variable w(reshape(from_span(kStart, {4}), shape), "w");
  const optim::Optimizer opt = make(NamedVariables{{"w", w}});
  auto step = jit([opt](Tensor g) {
    opt.update({g});
    return g;
  });
  for (int t = 1; t <= count; ++t) {
    const Tensor g = reshape(from_span(gradientAt(t, 4), {4}), shape);
    traced ? static_cast<void>(step(g)) : opt.update({g});
  }
  EXPECT_EQ(opt.steps(), count);
  if (traced)
    EXPECT_EQ(step.stats().traces, 1U);
  return w.value().to_vector<double>();
}

/// fn(w, g, t, state): the element's next value; the state begins as zeros.
using Formula = std::function<double(double w, double g, int t, Vector &state)>;

template <typename Make> void expectFormula(Make make, const Formula &formula, int count = 7) {
  Vector w = kStart;
  std::vector<Vector> states(4, Vector(4, 0.0));
  for (int t = 1; t <= count; ++t) {
    const Vector g = gradientAt(t, 4);
    for (size_t i = 0; i < 4; ++i)
      w[i] = formula(w[i], g[i], t, states[i]);
  }
  for (bool traced : {false, true}) {
    const Vector got = stepsOf(make, count, traced);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(got[i], w[i], 1e-12 * (1 + std::abs(w[i]))) << (traced ? "traced" : "imperative") << ", element " << i;
  }
}

TEST(Optim, SGD) {
  using optim::SGD;
  expectFormula([](const NamedVariables &p) { return SGD(p, {.lr = kRate}); }, [](double w, double g, int, Vector &) { return w - kRate * g; });
  expectFormula([](const NamedVariables &p) { return SGD(p, {.lr = kRate, .momentum = 0.9, .weight_decay = 0.1}); },
                [](double w, double g, int, Vector &s) {
                  s[0] = 0.9 * s[0] + g + 0.1 * w;
                  return w - kRate * s[0];
                });
  expectFormula([](const NamedVariables &p) { return SGD(p, {.lr = kRate, .momentum = 0.9, .nesterov = true}); },
                [](double w, double g, int, Vector &s) {
                  s[0] = 0.9 * s[0] + g;
                  return w - kRate * (g + 0.9 * s[0]);
                });
  expectFormula([](const NamedVariables &p) { return SGD(p, {.lr = kRate, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1, .decoupled = true}); },
                [](double w, double g, int t, Vector &s) {
                  s[0] = t == 1 ? g : 0.9 * s[0] + 0.5 * g;
                  return w - kRate * 0.1 * w - kRate * s[0];
                });
}

TEST(Optim, Adam) {
  auto adam = [](double decay, bool decoupled, bool amsgrad) {
    return [=](double w, double g, int t, Vector &s) {
      g += decoupled ? 0 : decay * w;
      w -= decoupled ? kRate * decay * w : 0;
      s[0] = 0.9 * s[0] + 0.1 * g;
      s[1] = 0.999 * s[1] + 0.001 * g * g;
      s[2] = std::max(s[2], s[1]);
      const double v = (amsgrad ? s[2] : s[1]) / (1 - std::pow(0.999, t));
      return w - kRate * (s[0] / (1 - std::pow(0.9, t))) / (std::sqrt(v) + 1e-8);
    };
  };
  expectFormula([](const NamedVariables &p) { return optim::Adam(p, {.lr = kRate}); }, adam(0, false, false));
  expectFormula([](const NamedVariables &p) { return optim::Adam(p, {.lr = kRate, .amsgrad = true, .weight_decay = 0.1}); }, adam(0.1, false, true));
  expectFormula([](const NamedVariables &p) { return optim::AdamW(p, {.lr = kRate}); }, adam(0.01, true, false));
}

TEST(Optim, RMSPropAndAdagrad) {
  expectFormula([](const NamedVariables &p) { return optim::RMSProp(p, {.lr = kRate}); },
                [](double w, double g, int, Vector &s) {
                  s[0] = 0.99 * s[0] + 0.01 * g * g;
                  return w - kRate * g / (std::sqrt(s[0]) + 1e-8);
                });
  expectFormula([](const NamedVariables &p) { return optim::RMSProp(p, {.lr = kRate, .momentum = 0.5, .centered = true}); },
                [](double w, double g, int, Vector &s) {
                  s[0] = 0.99 * s[0] + 0.01 * g * g;
                  s[1] = 0.99 * s[1] + 0.01 * g;
                  s[2] = 0.5 * s[2] + g / (std::sqrt(s[0] - s[1] * s[1]) + 1e-8);
                  return w - kRate * s[2];
                });
  expectFormula([](const NamedVariables &p) { return optim::Adagrad(p, {.lr = kRate}); },
                [](double w, double g, int, Vector &s) {
                  s[0] += g * g;
                  return w - kRate * g / (std::sqrt(s[0]) + 1e-10);
                });
}

TEST(Optim, Lion) {
  expectFormula([](const NamedVariables &p) { return optim::Lion(p, {.lr = kRate, .weight_decay = 0.1}); },
                [](double w, double g, int, Vector &s) {
                  const double c = 0.9 * s[0] + 0.1 * g;
                  s[0] = 0.99 * s[0] + 0.01 * g;
                  return w - kRate * 0.1 * w - kRate * (c > 0 ? 1 : c < 0 ? -1 : 0);
                });
}

double norm(const Vector &v) {
  double sum = 0;
  for (double x : v)
    sum += x * x;
  return std::sqrt(sum);
}

TEST(Optim, LAMB) {
  Vector w = kStart, m(4, 0.0), v(4, 0.0);
  for (int t = 1; t <= 5; ++t) {
    const Vector g = gradientAt(t, 4);
    Vector r(4);
    for (size_t i = 0; i < 4; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      r[i] = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-6) + 0.01 * w[i];
    }
    const double trust = norm(w) / norm(r);
    for (size_t i = 0; i < 4; ++i)
      w[i] -= kRate * trust * r[i];
  }
  const Vector got = stepsOf([](const NamedVariables &p) { return optim::LAMB(p, {.lr = kRate}); }, 5, true);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(got[i], w[i], 1e-12);
}

TEST(Optim, MuonStepsAreOrthogonal) {
  for (std::vector<Size> shape : {std::vector<Size>{2, 2}, std::vector<Size>{1, 4}, std::vector<Size>{4, 1}, std::vector<Size>{2, 1, 2}}) {
    const Vector got = stepsOf([](const NamedVariables &p) { return optim::Muon(p, {.lr = kRate, .weight_decay = 0}); }, 1, true, shape);
    Vector step;
    for (size_t i = 0; i < 4; ++i)
      step.push_back((kStart[i] - got[i]) / (kRate * 0.2 * std::sqrt(shape[0] == 2 ? 2 : 4)));
    // All singular values lie around one: so does their root mean square, which the norm tells.
    const double rank = shape[0] == 2 ? 2 : 1;
    EXPECT_NEAR(norm(step) / std::sqrt(rank), 1, 0.35);
  }
  // A vector follows AdamW.
  const Vector adamw = stepsOf([](const NamedVariables &p) { return optim::AdamW(p, {.lr = kRate, .beta2 = 0.95}); }, 3, true);
  const Vector muon = stepsOf([](const NamedVariables &p) { return optim::Muon(p, {.lr = kRate}); }, 3, true);
  EXPECT_EQ(adamw, muon);
}

TEST(Optim, Schedules) {
  auto expect = [](const Schedule &schedule, const std::vector<std::pair<int64_t, double>> &values) {
    for (auto [step, rate] : values)
      EXPECT_NEAR(schedule.at(step), rate, 1e-12) << "step " << step;
  };
  expect(optim::constant(0.5, 4), {{0, 0.125}, {3, 0.5}, {100, 0.5}});
  expect(optim::step_decay(1, 10, 0.5), {{0, 1}, {9, 1}, {10, 0.5}, {25, 0.25}});
  expect(optim::exponential(2, 0.5), {{0, 2}, {3, 0.25}});
  expect(optim::cosine(0.1, 110, 10, 0.01), {{0, 0.01}, {9, 0.1}, {10, 0.1}, {60, 0.055}, {110, 0.01}, {1000, 0.01}});
  expect(optim::linear(1, 10), {{0, 1}, {5, 0.5}, {10, 0}, {20, 0}});
  expect(optim::inverse_sqrt(1, 4), {{0, 0.25}, {3, 1}, {15, 0.5}});
  expect(optim::piecewise({{0, 1}, {5, 0.5}, {7, 2}}), {{0, 1}, {4, 1}, {5, 0.5}, {6, 0.5}, {7, 2}});
  expect(optim::one_cycle(1, 101, {.rise = 0.3, .start_factor = 0.1, .end_factor = 0.01}), {{0, 0.1}, {15, 0.55}, {30, 1}, {65, 0.505}, {100, 0.01}, {200, 0.01}});
  expect(Schedule([](const Tensor &step) { return step * 0.5; }), {{3, 1.5}});
}

TEST(Optim, OneTraceForAThousandStepsUnderEverySchedule) {
  for (const Schedule &schedule : {Schedule(0.01), optim::cosine(0.01, 1000, 100), optim::one_cycle(0.01, 1000), optim::step_decay(0.01, 100),
                                   optim::linear(0.01, 1000, 10), optim::inverse_sqrt(0.01, 50)}) {
    Variable compiled(full({3}, 1.0, f64), "w"), imperative(full({3}, 1.0, f64), "w");
    optim::SGD opt({{"w", compiled}}, {.lr = schedule, .momentum = 0.9}), other({{"w", imperative}}, {.lr = schedule, .momentum = 0.9});
    auto gradientOf = [](const Variable &w) { return grad([&] { return sum(square(w.value() - tensor({1.0, 2.0, 3.0}, f64))); }, std::vector{w}); };
    auto step = jit([&, compiled, opt] {
      const std::vector<Tensor> grads = gradientOf(compiled);
      opt.update(grads);
      return grads[0];
    });
    optim::Plateau plateau(opt, {.patience = 100}), otherPlateau(other, {.patience = 100});
    for (int i = 0; i < 1000; ++i) {
      if (i == 500)
        opt.lr = 0.002, other.lr = 0.002;
      if (i == 700)
        opt.lr.follow_schedule(), other.lr.follow_schedule();
      plateau.observe(1);
      step();
      if (i < 100) { // the same by imperative calls, for a while
        otherPlateau.observe(1);
        other.update(gradientOf(imperative));
        if (i == 99)
          for (int k = 0; k < 3; ++k)
            EXPECT_NEAR(compiled.value().to_vector<double>()[static_cast<size_t>(k)], imperative.value().to_vector<double>()[static_cast<size_t>(k)], 1e-12);
      }
    }
    EXPECT_EQ(step.stats().traces, 1U);
    EXPECT_EQ(opt.steps(), 1000);
  }
}

TEST(Optim, TheRateCanBeAssignedAndFollowsItsScheduleAgain) {
  Variable w(full({}, 1.0, f64), "w");
  optim::SGD opt({{"w", w}}, {.lr = optim::step_decay(1, 1, 0.5)});
  EXPECT_EQ(opt.lr.value(), 1);
  opt.update({full({}, 0.0, f64)});
  EXPECT_EQ(opt.lr.value(), 0.5);
  opt.lr = 0.125;
  EXPECT_EQ(opt.lr.value(), 0.125);
  opt.lr.follow_schedule();
  EXPECT_EQ(opt.lr.value(), 0.5);
}

TEST(Optim, Groups) {
  auto one = [](double v) { return Variable(full({2}, v)); };
  Variable a = one(1), b = one(1), c = one(1);
  optim::SGD opt({{"body.w", a}, {"head.w", b}, {"head.bias", c}},
                 {.lr = 0.1, .weight_decay = 0.5, .groups = {{.match = {"*.bias"}, .weight_decay = 0.0}, {.match = {"head.*"}, .lr = 0.01, .lr_scale = 2}}});
  const Tensor g = full({2}, 1.0);
  opt.update({g, g, g});
  EXPECT_FLOAT_EQ(a.value().to_vector<float>()[0], 1 - 0.1f * 1.5f);
  EXPECT_FLOAT_EQ(b.value().to_vector<float>()[0], 1 - 0.02f * 1.5f);
  EXPECT_FLOAT_EQ(c.value().to_vector<float>()[0], 1 - 0.1f);
  EXPECT_NE(messageOf([&] { optim::SGD({{"w", a}}, {.groups = {{.match = {"haed.*"}}}}); }).find("haed.*"), std::string::npos);
}

TEST(Optim, AccumulatesInConstantMemory) {
  Variable one(from_span(kStart, {4}), "w"), many(from_span(kStart, {4}), "w");
  optim::Adam whole({{"w", one}}, {.lr = kRate}), parts({{"w", many}}, {.lr = kRate, .accumulate = 3});
  auto step = jit([parts](Tensor g) {
    parts.update({g});
    return g;
  });
  for (int t = 1; t <= 4; ++t) {
    Tensor mean = zeros({4}, f64);
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(parts.steps(), t - 1);
      const Tensor g = from_span(gradientAt(3 * t + k, 4), {4});
      step(g);
      mean = mean + g / 3.0;
    }
    whole.update({mean});
    EXPECT_EQ(parts.steps(), t);
    const Vector x = one.value().to_vector<double>(), y = many.value().to_vector<double>();
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(x[i], y[i], 1e-12);
  }
  EXPECT_EQ(step.stats().traces, 1U);
}

TEST(Optim, SmallUpdatesOfHalfPrecisionParametersAddUp) {
  Variable w(full({2}, 1.0, bf16), "w"); // a step of 2^-12 is lost in bf16
  optim::SGD opt({{"w", w}}, {.lr = 1.0 / 4096});
  for (int i = 0; i < 2048; ++i)
    opt.update({full({2}, 1.0, bf16)});
  EXPECT_EQ(cast(w.value(), f32).to_vector<float>()[0], 0.5f);
}

TEST(Optim, HalfPrecisionParametersThatAreAssignedAnewStay) {
  Variable w(full({2}, 1.0, bf16), "w");
  optim::SGD opt({{"w", w}}, {.lr = 0.25});
  opt.update({full({2}, 1.0, bf16)});
  w.assign(full({2}, 3.0, bf16)); // loaded, say: the copy in f32 is of before
  opt.update({full({2}, 1.0, bf16)});
  EXPECT_EQ(cast(w.value(), f32).to_vector<float>()[0], 2.75f);
}

TEST(Optim, Clipping) {
  std::vector<Tensor> grads{tensor({3.0f, 0.0f}), Tensor(), full({}, 4.0, f16)};
  EXPECT_FLOAT_EQ(clip_by_global_norm(grads, 10).item<float>(), 5);
  EXPECT_EQ(grads[0].to_vector<float>()[0], 3);
  EXPECT_FLOAT_EQ(clip_by_global_norm(grads, 1).item<float>(), 5);
  EXPECT_NEAR(grads[0].to_vector<float>()[0], 0.6, 1e-6);
  EXPECT_EQ(grads[2].dtype(), f16);
  EXPECT_NEAR(cast(grads[2], f32).item<float>(), 0.8, 1e-3);
  std::vector<Tensor> values{tensor({3.0f, -5.0f})};
  clip_by_value(values, 4);
  EXPECT_EQ(values[0].to_vector<float>(), (std::vector<float>{3, -4}));
  EXPECT_NE(messageOf([&] { clip_by_value(values, -1); }).find("positive"), std::string::npos);
}

TEST(Optim, MovingAverages) {
  Variable w(full({}, 1.0, f64), "w");
  optim::MovingAverage average({{"w", w}}, 0.5);
  w.assign(full({}, 3.0, f64));
  average.update(); // decay 1 / 10
  EXPECT_NEAR(average.states()[1].second.value().item<double>(), 2.8, 1e-12);
  average.exchange();
  EXPECT_NEAR(w.value().item<double>(), 2.8, 1e-12);
  average.exchange();
  EXPECT_EQ(w.value().item<double>(), 3);
}

TEST(Optim, Plateaus) {
  Variable w(full({}, 1.0), "w");
  optim::SGD opt({{"w", w}}, {.lr = 0.1});
  optim::Plateau plateau(opt, {.factor = 0.5, .patience = 1, .min_rate = 0.04});
  EXPECT_FALSE(plateau.observe(1));
  EXPECT_FALSE(plateau.observe(0.5));
  EXPECT_FALSE(plateau.observe(0.5));
  EXPECT_TRUE(plateau.observe(std::nan("")));
  EXPECT_DOUBLE_EQ(opt.lr.value(), 0.05);
  EXPECT_FALSE(plateau.observe(0.6));
  EXPECT_TRUE(plateau.observe(0.6));
  EXPECT_DOUBLE_EQ(opt.lr.value(), 0.04);
  EXPECT_FALSE(plateau.observe(0.6));
  EXPECT_FALSE(plateau.observe(0.6)); // the least rate
}

TEST(Optim, Errors) {
  Variable w(full({2}, 1.0), "w"), n(tensor({1, 2}, i64), "n");
  optim::SGD opt({{"w", w}}, {.lr = 0.1});
  auto contains = [](const std::string &text, const char *part) { EXPECT_NE(text.find(part), std::string::npos) << text; };
  contains(messageOf([&] { opt.update({}); }), "0 gradients for 1 parameters");
  contains(messageOf([&] { opt.update({ones({3})}); }), "the gradient of 'w' is f32[3], but the parameter is f32[2]");
  contains(messageOf([&] { opt.lr = 0; }), "changes nothing");
  contains(messageOf([&] { opt.lr = std::numeric_limits<double>::infinity(); }), "finite");
  contains(messageOf([&] { optim::SGD({{"w", w}}, {.lr = -0.1}); }), "negative");
  contains(messageOf([&] { optim::SGD({{"w", w}}, {.lr = 0}); }), "changes nothing");
  contains(messageOf([&] { optim::SGD({{"w", w}}, {.momentum = 1}); }), "momentum");
  contains(messageOf([&] { optim::SGD({{"w", w}}, {.nesterov = true}); }), "Nesterov");
  contains(messageOf([&] { optim::Adam({{"w", w}}, {.beta2 = 1.5}); }), "beta2");
  contains(messageOf([&] { optim::Adam({{"w", w}}, {.weight_decay = std::nan("")}); }), "weight decay");
  contains(messageOf([&] { optim::Adam({{"w", w}}, {.accumulate = 0}); }), "at least one gradient");
  contains(messageOf([&] { optim::Adam({{"w", w}, {"w", w}}); }), "two parameters are called 'w'");
  contains(messageOf([&] { optim::Adam({{"n", n}}); }), "holds i64[2]");
  contains(messageOf([&] { optim::Optimizer({{"w", w}}, {.name = "mine"}, {}); }), "set Rule::apply");
  contains(messageOf([&] { optim::Adam({{"u", Variable()}}); }), "no value yet");
  contains(messageOf([&] { optim::cosine(0.1, 10, 10); }), "behind the warm-up");
  contains(messageOf([&] { jit([&](Tensor x) { optim::SGD late({{"w", w}}); return x; })(ones({1})); }), "not made in a trace");
  EXPECT_EQ(opt.steps(), 0); // none of this was a step
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1, 1}));
}

} // namespace
} // namespace tressel
