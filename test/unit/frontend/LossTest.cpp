// ctc_loss against the sum over all alignments, which are written down one by one; labels that are no classes.
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace tressel;

namespace {

using Labels = std::vector<int64_t>;

template <typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing thrown";
}

/// What an alignment says.
Labels labelsOf(const Labels &path, int64_t blank) {
  Labels labels;
  for (size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1]))
      labels.push_back(path[t]);
  return labels;
}

/// The negative log likelihood; `at(t, c)` is a log probability.
template <typename At>
double enumerated(const At &at, int64_t length, int64_t classes, const Labels &labels, int64_t blank) {
  double likelihood = 0;
  Labels path(static_cast<size_t>(length), 0);
  for (bool isDone = false; !isDone;) {
    if (labelsOf(path, blank) == labels) {
      double sum = 0;
      for (int64_t t = 0; t < length; ++t)
        sum += at(t, path[static_cast<size_t>(t)]);
      likelihood += std::exp(sum);
    }
    isDone = true;
    for (int64_t &c : path) {
      if (++c < classes) {
        isDone = false;
        break;
      }
      c = 0;
    }
  }
  return -std::log(likelihood);
}

constexpr int64_t kLength = 6, kBatch = 7, kClasses = 4, kMost = 3;

struct Case {
  Tensor targets = tensor({{1, 2, 3}, {1, 1, 9}, {2, -7, 0}, {0, 0, 0}, {3, 3, 3}, {1, 2, 1}, {3, 1, 3}}, i64);
  Labels inputs{6, 5, 6, 4, 5, 3, 2}, counts{3, 2, 1, 0, 3, 3, 3};
  // 3 3 3 needs blanks between: exactly 5 steps. 3 1 3 does not fit into 2.
  Labels labels(int64_t n) const {
    const std::vector<int64_t> all = targets.to_vector<int64_t>();
    const auto row = all.begin() + n * kMost;
    return {row, row + counts[static_cast<size_t>(n)]};
  }
  Tensor lengths(const Labels &values) const { return from_span(values, {kBatch}); }
};

Tensor logProbs(uint64_t seed, DType type = f64) {
  return cast(log_softmax(random_normal(seed, {kLength, kBatch, kClasses}, f64) * 2, 2), type);
}

template <typename Fn> Tensor gradientOf(const Fn &loss, const Tensor &x) {
  return grad([&] { return loss(x); }, std::vector{x})[0];
}

/// Each sequence's loss.
std::vector<double> expected(const Case &c, const std::vector<double> &probs, int64_t blank) {
  std::vector<double> losses;
  for (int64_t n = 0; n < kBatch; ++n)
    losses.push_back(
        enumerated([&](int64_t t, int64_t k) { return probs[static_cast<size_t>((t * kBatch + n) * kClasses + k)]; },
                   c.inputs[static_cast<size_t>(n)], kClasses, c.labels(n), blank));
  return losses;
}

void expectNear(const Tensor &got, const std::vector<double> &want, double tolerance) {
  const std::vector<double> values = cast(got, f64).to_vector<double>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i]))
      EXPECT_EQ(values[i], want[i]) << i;
    else
      EXPECT_NEAR(values[i], want[i], tolerance * (1 + std::abs(want[i]))) << i;
  }
}

TEST(Ctc, SumsOverAllAlignments) {
  const Case c;
  for (uint64_t seed : {1, 2, 3}) {
    const Tensor probs = logProbs(seed);
    const std::vector<double> want = expected(c, probs.to_vector<double>(), 0);
    EXPECT_TRUE(std::isinf(want.back())); // one is too short
    auto loss = [&](Tensor p) {
      return ctc_loss(p, c.targets, c.lengths(c.inputs), c.lengths(c.counts), {.reduction = "none"});
    };
    expectNear(loss(probs), want, 1e-12);
    expectNear(jit(loss)(probs), want, 1e-12);
    expectNear(loss(cast(probs, f32)), want, 1e-5);
    expectNear(loss(cast(probs, bf16)), expected(c, cast(cast(probs, bf16), f64).to_vector<double>(), 0), 8e-3);
  }
}

TEST(Ctc, BlankAndReductions) {
  Case c;
  c.targets = tensor({{1, 2, 0}, {1, 1, 9}, {2, -7, 0}, {0, 0, 0}, {0, 0, 0}, {1, 2, 1}, {0, 1, 0}}, i32);
  const Tensor probs = logProbs(4);
  const std::vector<double> want = [&] {
    Case wide = c;
    wide.targets = cast(c.targets, i64);
    return expected(wide, probs.to_vector<double>(), 3);
  }();
  auto loss = [&](CtcOptions options) {
    options.blank = 3;
    return ctc_loss(probs, c.targets, c.lengths(c.inputs), cast(c.lengths(c.counts), i32), options);
  };
  expectNear(loss({.reduction = "none"}), want, 1e-12);
  EXPECT_TRUE(std::isinf(loss({}).item<double>()));
  double sum = 0, mean = 0;
  for (size_t n = 0; n + 1 < want.size(); ++n)
    sum += want[n], mean += want[n] / static_cast<double>(std::max<int64_t>(c.counts[n], 1));
  EXPECT_NEAR(loss({.reduction = "sum", .zero_infinity = true}).item<double>(), sum, 1e-11);
  EXPECT_NEAR(loss({.reduction = "mean", .zero_infinity = true}).item<double>(), mean / kBatch, 1e-12);
}

TEST(Ctc, GradientIsThatOfDifferences) {
  const Case c;
  const Tensor logits = random_normal(5, {kLength, kBatch, kClasses}, f64);
  auto loss = [&](Tensor x) {
    return ctc_loss(log_softmax(x, 2), c.targets, c.lengths(c.inputs), c.lengths(c.counts),
                    {.reduction = "sum", .zero_infinity = true});
  };
  for (const Tensor &gradient : {gradientOf(loss, logits), jit([&](Tensor x) { return gradientOf(loss, x); })(logits)}) {
    const std::vector<double> got = gradient.to_vector<double>();
    std::vector<double> x = logits.to_vector<double>();
    for (size_t i = 0; i < x.size(); i += 5) {
      auto at = [&](double step) {
        std::vector<double> moved = x;
        moved[i] += step;
        return loss(from_span(moved, {kLength, kBatch, kClasses})).item<double>();
      };
      EXPECT_NEAR(got[i], (at(1e-5) - at(-1e-5)) / 2e-5, 1e-8) << i;
    }
    // What is not read has none: steps behind an input's length, and the sequence that does not fit.
    for (int64_t t = 0; t < kLength; ++t)
      for (int64_t n = 0; n < kBatch; ++n)
        for (int64_t k = 0; k < kClasses; ++k)
          if (t >= c.inputs[static_cast<size_t>(n)] || n == kBatch - 1)
            EXPECT_EQ(got[static_cast<size_t>((t * kBatch + n) * kClasses + k)], 0.0);
  }
}

/// Probabilities of 0 make alignments impossible, and no gradient NaN.
TEST(Ctc, ProbabilitiesOfZero) {
  const double never = -std::numeric_limits<double>::infinity(), half = std::log(0.5);
  const Tensor probs = tensor({{{half, half}}, {{never, 0.0}}, {{0.0, never}}});
  const Tensor two = from_span(Labels{3}, {1});
  auto loss = [&](const Tensor &p, const Tensor &labels) {
    return ctc_loss(p, labels, two, from_span(Labels{1}, {1}), {.reduction = "sum"});
  };
  const Tensor one = tensor({{1}}, i64);
  EXPECT_NEAR(loss(probs, one).item<double>(), 0, 1e-12); // -1- and 11-: both of the first step's classes
  for (double g : gradientOf([&](Tensor p) { return loss(p, one); }, probs).to_vector<double>())
    EXPECT_TRUE(std::isfinite(g)) << g;
}

/// The number of steps and of sequences may be symbols.
TEST(Ctc, SymbolicSizes) {
  auto loss = jit([](Tensor p, Tensor labels, Tensor inputs, Tensor counts) {
    return ctc_loss(p, labels, inputs, counts, {.zero_infinity = true});
  });
  loss.compile({f64, {"length", "batch", kClasses}}, {i64, {"batch", kMost}}, {i64, {"batch"}}, {i64, {"batch"}});
  const Case c;
  for (const auto &[length, batch] : {std::pair<int64_t, int64_t>{6, 2}, {5, 3}, {3, 4}, {4, 6}}) {
    const Tensor probs = slice(logProbs(6), {0, 0, 0}, {length, batch, kClasses}),
                 labels = slice(c.targets, {0, 0}, {batch, kMost});
    const Tensor inputs = minimum(slice(c.lengths(c.inputs), {0}, {batch}), length),
                 counts = slice(c.lengths(c.counts), {0}, {batch});
    EXPECT_NEAR(loss(probs, labels, inputs, counts).item<double>(),
                ctc_loss(probs, labels, inputs, counts, {.zero_infinity = true}).item<double>(), 1e-12);
  }
  EXPECT_EQ(loss.stats().traces, 1u);
}

TEST(Ctc, NamesWhatIsWrong) {
  const Case c;
  const Tensor probs = logProbs(7), inputs = c.lengths(c.inputs), counts = c.lengths(c.counts);
  auto expectMessage = [](const std::string &message, const std::string &part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("LossTest.cpp"), std::string::npos) << message;
  };
  expectMessage(messageOf([&] { ctc_loss(sum(probs, 0), c.targets, inputs, counts); }),
                "log_probs must be floats [length, batch, classes], not f64[7, 4]");
  expectMessage(messageOf([&] { ctc_loss(probs, cast(c.targets, f32), inputs, counts); }),
                "targets must be integers [7, most labels], not f32[7, 3]");
  expectMessage(messageOf([&] { ctc_loss(probs, c.targets, inputs, sum(counts)); }),
                "target_lengths must be integers of shape [7], not i64[]");
  expectMessage(messageOf([&] { ctc_loss(probs, c.targets, inputs, counts, {.reduction = "all"}); }),
                "reduction is 'mean', 'sum' or 'none', not 'all'");
  expectMessage(messageOf([&] { ctc_loss(probs, c.targets, inputs, counts, {.blank = 4}); }),
                "blank is 4, no class of f64[6, 7, 4]");
  expectMessage(messageOf([&] { ctc_loss(probs, c.targets, inputs, counts - 3).item<double>(); }), "out of range");
  expectMessage(messageOf([&] { ctc_loss(probs, c.targets, inputs, counts + 1).item<double>(); }), "out of range");
  expectMessage(messageOf([&] { ctc_loss(probs, c.targets + 2, inputs, counts).item<double>(); }), "out of range");
}

/// Whether called at once or compiled, in the loss or its gradient: an error at the user's line. Labels that are
/// ignored may be anything.
TEST(Losses, ALabelOutsideTheClassesFails) {
  const Variable w(ones({2, 3}), "w");
  const std::vector<std::function<Tensor(Tensor)>> losses{
      [&](Tensor label) { return softmax_cross_entropy(w, label); },
      [&](Tensor label) { return softmax_cross_entropy(w, label, "sum", 0.1); },
      [&](Tensor label) { return nll_loss(log_softmax(w), label, "none"); },
      [&](Tensor label) { return multi_margin_loss(w, label); },
      [&](Tensor label) {
        return value_and_grad([&] { return softmax_cross_entropy(w, label); }, NamedVariables{{"w", w}}).grads[0];
      },
  };
  const Tensor fine = tensor({0, 2}, i64), high = tensor({0, 3}, i64), low = tensor({-1, 2}, i64);
  for (const auto &loss : losses)
    for (const bool compiled : {false, true}) {
      auto run = [&](const Tensor &label) { return (compiled ? jit(loss)(label) : loss(label)).wait(); };
      run(fine);
      for (const Tensor &label : {high, low}) {
        const std::string message = messageOf([&] { run(label); });
        EXPECT_NE(message.find("an index, or a label of a class, is out of range"), std::string::npos) << message;
        EXPECT_NE(message.find("LossTest.cpp:"), std::string::npos) << message;
      }
    }
  EXPECT_NEAR(softmax_cross_entropy(w, tensor({-100, 1}, i64)).item<float>(), std::log(3.0f), 1e-6f);
  EXPECT_NEAR(nll_loss(w, tensor({7, 1}, i64), "mean", 7).item<float>(), -1, 1e-6f);
}

/// By the definitions: a label's loss times the weight of its class, and a mean over the labels' weights.
TEST(Losses, WeightsOfClasses) {
  const Tensor scores = tensor({{1.0, 2, 0.5}, {0.2, -1, 3}, {2, 0, 1}, {1, 1, 1}}), weight = tensor({1.0, 4, 0.5});
  const Tensor label = tensor({1, 2, -100, 0}, i64), logp = log_softmax(scores, 1);
  auto at = [](const Tensor &t, size_t i) { return t.to_vector<float>()[i]; };
  const float first = -4 * at(logp, 1), second = -0.5f * at(logp, 5), fourth = -at(logp, 9), weights = 4 + 0.5f + 1;
  const Tensor none = softmax_cross_entropy(scores, label, weight, "none");
  EXPECT_NEAR(at(none, 0), first, 1e-6f);
  EXPECT_NEAR(at(none, 1), second, 1e-6f);
  EXPECT_EQ(at(none, 2), 0);
  EXPECT_NEAR(softmax_cross_entropy(scores, label, weight).item<float>(), (first + second + fourth) / weights, 1e-6f);
  EXPECT_NEAR(nll_loss(logp, label, weight, "sum").item<float>(), first + second + fourth, 1e-5f);
  // Smoothed labels are distributions; the mean of those is over their number.
  const Tensor one = slice(scores, {0, 0}, {1, 3}), target = tensor({{0.0, 1, 0}});
  const float smooth = 0.2f / 3, expected = -(smooth * at(logp, 0) + (0.8f + smooth) * 4 * at(logp, 1) + smooth * 0.5f * at(logp, 2));
  EXPECT_NEAR(softmax_cross_entropy(one, target, weight, "mean", 0.2).item<float>(), expected, 1e-6f);
  EXPECT_NEAR(softmax_cross_entropy(one, tensor({1}, i64), weight, "mean", 0.2).item<float>(), expected / 4, 1e-6f);
  // Without weights the text may follow at once.
  EXPECT_EQ(softmax_cross_entropy(scores, label, "sum").item<float>(), softmax_cross_entropy(scores, label, Tensor(), "sum").item<float>());

  const Tensor x = tensor({-2.0, 0.5, 100, -100}), hit = tensor({1.0, 0.25, 0, 1});
  const Tensor found = bce_with_logits_loss(x, hit, tensor(3.0), "none");
  EXPECT_NEAR(at(found, 0), 3 * std::log1p(std::exp(2.f)), 1e-5f);
  EXPECT_NEAR(at(found, 1), 0.25f * 3 * std::log1p(std::exp(-0.5f)) + 0.75f * std::log1p(std::exp(0.5f)), 1e-6f);
  EXPECT_NEAR(at(found, 2), 100, 1e-4f);
  EXPECT_NEAR(at(found, 3), 300, 1e-3f);

  EXPECT_NE(messageOf([&] { softmax_cross_entropy(scores, label, tensor({1.0, 2})); }).find("weight must be floats of shape [3]"), std::string::npos);
  EXPECT_NE(messageOf([&] { nll_loss(logp, label, tensor({1, 2, 3}, i64)); }).find("weight must be floats of shape [3]"), std::string::npos);
  EXPECT_NE(messageOf([&] { bce_with_logits_loss(x, hit, ones({3})); }).find("pos_weight must be floats that broadcast to [4]"), std::string::npos);
}

/// The loss of what a sigmoid saturates is bounded, and so is its gradient.
TEST(Loss, BinaryCrossEntropyOfCertainPredictions) {
  for (const DType type : {f32, f64})
    for (const bool compiled : {false, true}) {
      const auto gradient = [](Tensor p) {
        return grad(
            [&] {
              return bce_loss(p, tensor({1.0f, 0.0f, 1.0f, 0.0f, 1.0f}), "sum");
            },
            std::vector<Tensor>{p})[0];
      };
      const Tensor p = cast(tensor({1.0f, 0.0f, 0.0f, 1.0f, 0.5f}), type);
      const std::vector<double> got = cast(compiled ? jit(gradient)(p) : gradient(p), f64).to_vector<double>();
      EXPECT_EQ(got, (std::vector<double>{-1, 1, 0, 0, -2}));
      EXPECT_NEAR(cast(bce_loss(p, cast(tensor({1.0f, 0.0f, 1.0f, 0.0f, 1.0f}), type), "sum"), f64).item<double>(),
                  200 + std::log(2.0), 1e-4);
    }
  EXPECT_TRUE(std::isnan(bce_loss(tensor({-0.5f}), tensor({1.0f})).item<float>()));
}

} // namespace
