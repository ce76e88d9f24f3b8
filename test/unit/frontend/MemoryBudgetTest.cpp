// What is computed again instead of being kept: under a memory budget, and by checkpoint(). The numbers are the same to
// the bit.
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <regex>

namespace tressel {
namespace {

/// Convolutions with batch normalization and dropout.
nn::Sequential network() {
  nn::Sequential net;
  for (int i = 0; i < 6; ++i) {
    net.add(nn::Conv2d(8, 3, {.padding = 1}));
    net.add(nn::BatchNorm());
    net.add(tanh);
    net.add(nn::Dropout(0.2));
  }
  net.add(nn::Flatten());
  net.add(nn::Dense(4));
  return net;
}

/// A compiled training step of a new network, each the same.
struct Training {
  nn::Sequential net = network();
  Tensor x = random_normal(1, {16, 3, 16, 16}), label = arange(0, 16) % int64_t(4);
  std::function<Tensor(Tensor, Tensor)> step;
  std::function<Prediction()> explain;

  explicit Training(JitOptions options = {}) {
    net.initialize({{f32, {16, 3, 16, 16}}}, 7);
    optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    auto run = jit(
        [net = net, opt](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        options);
    step = run;
    explain = [run] { return run.explain(); };
  }
  std::vector<float> losses(int count = 3) {
    std::vector<float> all;
    for (int i = 0; i < count; ++i)
      all.push_back(step(x, label).item<float>());
    for (const auto &[name, parameter] : net.parameters())
      all.push_back(sum(parameter.value()).item<float>());
    return all;
  }
};

TEST(MemoryBudgetTest, MemoryFallsWithTheBudgetAndTheNumbersStay) {
  Training unbounded;
  const std::vector<float> expected = unbounded.losses();
  const int64_t all = unbounded.explain().peak_bytes;
  int64_t before = all;
  size_t met = 0;
  for (double share : {0.95, 0.85, 0.75, 0.65, 0.55, 0.45}) {
    Training bounded({.memory_budget = MemoryBudget::share(share)});
    std::vector<float> losses;
    try {
      losses = bounded.losses();
    } catch (const Error &) {
      break; // how small a plan is found depends on the costs of this machine's kernels
    }
    ASSERT_EQ(losses, expected) << share;
    const Prediction plan = bounded.explain();
    EXPECT_LE(static_cast<double>(plan.peak_bytes), share * static_cast<double>(all));
    EXPECT_LE(plan.peak_bytes, before) << share;
    before = plan.peak_bytes;
    EXPECT_NE(plan.text.find(", within the budget of "), std::string::npos)
        << share << " " << plan.peak_bytes << " of " << all << plan.text;
    ++met;
  }
  EXPECT_GE(met, 3u);
}

TEST(MemoryBudgetTest, WhatCannotBeMetSaysTheLeastThatCan) {
  std::string message;
  try {
    Training({.memory_budget = 1000}).losses(1);
  } catch (const Error &error) {
    message = error.what();
  }
  std::smatch least;
  ASSERT_TRUE(std::regex_search(
      message, least, std::regex("budget of 1000 bytes cannot be met: .* take (\\d+) bytes, and (\\d+) at least")))
      << message;
  const int64_t bytes = std::stoll(least[2]);
  EXPECT_LT(bytes, std::stoll(least[1]));
  Training met({.memory_budget = bytes});
  EXPECT_EQ(met.losses(), Training().losses());
  EXPECT_LE(met.explain().peak_bytes, bytes);
}

TEST(MemoryBudgetTest, IsForTheHost) {
  use_machine("sim:2gpu-pcie3");
  const Tensor x = random_normal(1, {256, 256});
  auto f =
      jit([](Tensor x) { return with_device(gpu(0), [&] { return matmul(tanh(x), x); }); }, {.memory_budget = 1000});
  try {
    f(x).wait();
    ADD_FAILURE() << "it ran";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("a memory budget is for programs on the host alone"), std::string::npos)
        << error.what();
  }
  use_machine("cpu");
}

/// Layers whose values are dear to keep.
Tensor block(const Tensor &x, const std::vector<Tensor> &weights) {
  Tensor y = x;
  for (const Tensor &w : weights)
    y = tanh(matmul(y, w));
  return y;
}
struct Chain {
  static constexpr int kBlocks = 4, kLayers = 4;
  std::vector<Tensor> weights;
  Tensor x = random_normal(3, {256, 64});
  Chain() {
    for (int i = 0; i < kBlocks * kLayers; ++i)
      weights.push_back(random_normal(10 + i, {64, 64}) * 0.2f);
  }
  /// Loss and gradients.
  std::vector<Tensor> run(bool checkpointed, Prediction *plan = nullptr) const {
    auto f = jit([=](std::vector<Tensor> weights, Tensor x) {
      auto [loss, grads] = value_and_grad(
          [&] {
            Tensor y = x;
            for (int i = 0; i < kBlocks; ++i) {
              const std::vector<Tensor> part(weights.begin() + i * kLayers, weights.begin() + (i + 1) * kLayers);
              y = checkpointed ? autograd::checkpoint(block, y, part) : block(y, part);
            }
            return mean(y * y);
          },
          weights);
      grads.push_back(loss);
      return grads;
    });
    std::vector<Tensor> results = f(weights, x);
    if (plan)
      *plan = f.explain();
    return results;
  }
};
void expectSame(const std::vector<Tensor> &got, const std::vector<Tensor> &wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].to_vector<float>(), wanted[i].to_vector<float>()) << i;
}

TEST(RecomputeTest, KeepsWhatBlocksGiveAlone) {
  const Chain chain;
  Prediction kept, again;
  const std::vector<Tensor> wanted = chain.run(false, &kept);
  expectSame(chain.run(true, &again), wanted);
  // 16 values of 64 KiB are kept in one case, four and those of one block in the other.
  EXPECT_LT(static_cast<double>(again.peak_bytes), 0.65 * static_cast<double>(kept.peak_bytes))
      << kept.peak_bytes << " and " << again.peak_bytes;
  EXPECT_NE(again.text.find("run again for gradients, as checkpoint() asks"), std::string::npos) << again.text;
}

TEST(RecomputeTest, DropsTheSameNumbersAndAssignsOnce) {
  auto train = [&](bool checkpointed, bool compiled) {
    nn::Sequential net = network();
    net.initialize({{f32, {16, 3, 16, 16}}}, 7);
    const Tensor x = random_normal(1, {16, 3, 16, 16}), label = arange(0, 16) % int64_t(4);
    optim::SGD opt(net.parameters(), {.lr = 0.1});
    auto once = [=](Tensor x, Tensor label) {
      auto [loss, grads] = value_and_grad(
          [&] {
            return softmax_cross_entropy(
                checkpointed ? autograd::checkpoint([&](const Tensor &x) { return net(x); }, x) : net(x), label);
          },
          net.parameters());
      opt.update(grads);
      return loss;
    };
    auto run = jit(once, {.deterministic = true}); // else what is fused differs, and with it the last bits
    std::vector<float> all;
    for (int i = 0; i < 3; ++i)
      all.push_back((compiled ? run(x, label) : once(x, label)).item<float>());
    for (const auto &[name, state] : net.states())
      for (float each : cast(state.value(), f32).to_vector<float>())
        all.push_back(each);
    return all;
  };
  const std::vector<float> kept = train(false, true), imperative = train(false, false);
  EXPECT_EQ(train(true, true), kept);
  EXPECT_EQ(train(true, false), imperative);
  ASSERT_EQ(kept.size(), imperative.size());
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_NEAR(kept[i], imperative[i], 1e-3 * (1 + std::abs(kept[i]))) << i;
}

/// Rounds that read the number of the round, weights by it, and random numbers of it.
std::vector<Tensor> rounds(bool checkpointed, const Tensor &x, const Tensor &w, Prediction *plan = nullptr) {
  auto f = jit([=](Tensor x, Tensor w) {
    auto [loss, grads] = value_and_grad(
        [&] {
          auto round = [&](const Tensor &i, const Tensor &y) {
            const Tensor own = take(w, cast(i, i64), 0), noise = random_uniform(i, {64, 32});
            return tanh(matmul(tanh(y * noise + cast(i, f32)), own)) + y;
          };
          Tensor y = for_loop(
              6, [&](Tensor i, Tensor y) { return checkpointed ? autograd::checkpoint(round, i, y) : round(i, y); }, x);
          return mean(y * y);
        },
        std::vector<Tensor>{x, w});
    grads.push_back(loss);
    return grads;
  });
  std::vector<Tensor> results = f(x, w);
  if (plan)
    *plan = f.explain();
  return results;
}
TEST(RecomputeTest, InLoopsKeepsWhatRoundsGive) {
  const Tensor x = random_normal(1, {64, 32}), w = random_normal(2, {6, 32, 32}) * 0.3f;
  Prediction kept, again;
  const std::vector<Tensor> wanted = rounds(false, x, w, &kept), got = rounds(true, x, w, &again);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t k = 0; k < got.size(); ++k) {
    const std::vector<float> a = got[k].to_vector<float>(), b = wanted[k].to_vector<float>();
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << k << ", " << i;
  }
  EXPECT_LT(again.peak_bytes, kept.peak_bytes);
}

TEST(RecomputeTest, InEachOtherIsThatOfTheOuter) {
  const Chain chain;
  auto run = [&](int depth) {
    auto f = jit([=](std::vector<Tensor> weights, Tensor x) {
      auto inner = [&](const Tensor &x) {
        return depth > 1 ? autograd::checkpoint(block, x, weights) : block(x, weights);
      };
      auto [loss, grads] = value_and_grad(
          [&] { return mean(depth > 0 ? autograd::checkpoint(inner, x) * 2.0f : inner(x) * 2.0f); }, weights);
      grads.push_back(loss);
      return grads;
    });
    return f(chain.weights, chain.x);
  };
  expectSame(run(1), run(0));
  expectSame(run(2), run(0));
}

TEST(RecomputeTest, OfFunctionsWithSecondDerivatives) {
  const Tensor x = random_normal(1, {8, 8}), w = random_normal(2, {8, 8});
  auto run = [&](bool checkpointed) {
    auto f = jit([=](Tensor x, Tensor w) {
      auto fn = [&] {
        auto part = [&](const Tensor &x) { return tanh(matmul(tanh(x), w)); };
        const Tensor y = checkpointed ? autograd::checkpoint(part, x) : part(x);
        return sum(y * y * y);
      };
      return hessian_vector_product(fn, {x, w}, {ones({8, 8}), ones({8, 8})});
    });
    return f(x, w);
  };
  expectSame(run(true), run(false));
}

} // namespace
} // namespace tressel
