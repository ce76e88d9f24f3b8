// Training states in files: what goes on from one ends with the same bits; files of something else are refused as a whole.
#include "test/unit/frontend/Files.h"

#include <tressel/tressel.h>

#include <cmath>
#include <filesystem>
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

struct Batch {
  Tensor x, y;
};

/// A small training: a network with dropout and batch norm, an optimizer with a schedule, a loader that shuffles.
struct Training {
  nn::Sequential net{nn::Dense(8, tanh), nn::BatchNorm(), nn::Dropout(0.3), nn::Dense(1)};
  optim::AdamW opt;
  data::Loader<Batch> loader{data::rows(Batch{random_normal(1, {40, 3}), random_normal(2, {40, 1})}),
                             {.batch = 8, .shuffle = true, .seed = 5}};
  optim::MovingAverage average;
  Variable best{full({}, 100.0), "best"};

  static nn::Sequential &initialized(nn::Sequential &net) {
    net.initialize({{f32, {8, 3}}}, 1);
    return net;
  }
  explicit Training(double rate = 0.01)
      : opt(initialized(net).parameters(), {.lr = optim::cosine(rate, 40, 4)}), average(net.parameters(), 0.9) {}
  TrainingState state() const { return {{"net", net}, {"opt", opt}, {"average", average}, {"loader", loader}, {"best", best}}; }

  void run(int64_t untilEpoch, int64_t stopAfter = 1000) {
    auto step = jit([net = net, opt = opt, average = average](Batch b) {
      auto [loss, grads] = value_and_grad([&] { return mse_loss(net(b.x), b.y); }, net.parameters());
      opt.update(grads);
      average.update();
      return loss;
    });
    for (int64_t e = loader.position().epoch; e < untilEpoch; ++e)
      for (Batch b : loader.epoch(e)) {
        step(b).wait();
        if (--stopAfter == 0)
          return;
      }
  }
  std::map<std::string, std::vector<float>> values() const {
    std::map<std::string, std::vector<float>> all;
    for (const auto &[name, v] : net.parameters())
      all[name] = v.value().to_vector<float>();
    for (const auto &[name, v] : net.buffers())
      all[name] = v.value().to_vector<float>();
    for (const auto &[name, v] : opt.states())
      all["opt." + name] = cast(v.value(), f32).to_vector<float>();
    for (const auto &[name, v] : average.states())
      all["average." + name] = cast(v.value(), f32).to_vector<float>();
    all.erase("opt.rate"); // NaN while the schedule is followed
    return all;
  }
};

TEST(Checkpoint, TrainingGoesOnToTheSameBits) {
  const test::Folder folder;
  const std::string path = folder / "state.safetensors";
  Training whole;
  whole.run(6);
  for (const bool async : {false, true}) {
    {
      Training first;
      first.run(6, 13); // in the middle of an epoch
      if (async) {
        PendingSave saving = save_state_async(path, first.state());
        first.run(6); // the file is of before
        saving.wait();
        EXPECT_TRUE(saving.done());
      } else {
        save_state(path, first.state());
      }
    }
    Training second;
    second.best.assign(full({}, 7.0));
    load_state(path, second.state());
    EXPECT_EQ(second.opt.steps(), 13);
    EXPECT_EQ(second.loader.position(), (data::Position{2, 3}));
    EXPECT_EQ(second.best.value().item<float>(), 100);
    second.run(6);
    EXPECT_EQ(second.values(), whole.values());
  }
}

TEST(Checkpoint, HoldsPlateausAndMetrics) {
  const test::Folder folder;
  const std::string path = folder / "state.safetensors";
  struct Parts {
    Variable w{full({}, 1.0), "w"};
    optim::SGD opt{NamedVariables{{"w", w}}, {.lr = 0.1}};
    optim::Plateau plateau{opt, {.factor = 0.5, .patience = 1}};
    metrics::Accuracy accuracy;
    metrics::Perplexity perplexity;
    TrainingState state() const {
      return {{"opt", opt}, {"plateau", plateau}, {"accuracy", accuracy}, {"perplexity", perplexity}};
    }
  } first, second;
  first.plateau.observe(1);
  first.plateau.observe(2);
  first.accuracy.update(tensor({{1.0f, 0.0f}, {1.0f, 0.0f}}), tensor({0, 1}, i64));
  first.perplexity.update(full({2}, 0.5));
  save_state(path, first.state());
  load_state(path, second.state());
  EXPECT_TRUE(second.plateau.observe(1)); // the second without an improvement
  EXPECT_DOUBLE_EQ(second.opt.lr.value(), 0.05);
  EXPECT_EQ(second.accuracy.value(), 0.5);
  EXPECT_NEAR(second.perplexity.value(), std::exp(0.5), 1e-6);
}

TEST(Checkpoint, ComparesGroups) {
  const test::Folder folder;
  const std::string path = folder / "state.safetensors";
  Variable w(full({}, 1.0), "w");
  const NamedVariables parameters{{"w", w}};
  save_state(path, {{"opt", optim::SGD(parameters, {.lr = 0.1, .groups = {{.match = {"*"}, .weight_decay = 0.0}}})}});
  EXPECT_EQ(messageOf([&] {
              load_state(path, {{"opt", optim::SGD(parameters,
                                                   {.lr = 0.2, .groups = {{.match = {"*"}, .weight_decay = 0.0}}})}});
            }),
            "nothing thrown");
  const std::string message = messageOf([&] { load_state(path, {{"opt", optim::SGD(parameters, {.lr = 0.1})}}); });
  EXPECT_NE(message.find("groups: [*] weight_decay 0"), std::string::npos) << message;
}

TEST(Checkpoint, SavesThatFailAreNotLost) {
  testing::internal::CaptureStderr();
  Variable w(full({}, 1.0), "w");
  save_state_async("/no/such/folder/x", {{"w", w}});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("a failure that nobody waited for"), std::string::npos) << said;
  EXPECT_NE(said.find("/no/such/folder"), std::string::npos) << said;
}

TEST(Checkpoint, HasTheNamesOfItsParts) {
  const test::Folder folder;
  const std::string path = folder / "state.safetensors";
  Training training;
  training.run(1);
  save_state(path, training.state());
  const auto tensors = load_safetensors(path);
  EXPECT_TRUE(tensors.contains("net.0.weight"));
  EXPECT_TRUE(tensors.contains("opt.mean.0.weight"));
  EXPECT_TRUE(tensors.contains("average.parameters.0.weight"));
  EXPECT_TRUE(tensors.contains("loader"));
  EXPECT_TRUE(tensors.contains("best"));
  EXPECT_EQ(tensors.at("opt.step").item<int64_t>(), 5);
  // The weights alone, for another program.
  nn::Sequential net{nn::Dense(8, tanh), nn::BatchNorm(), nn::Dropout(0.3), nn::Dense(1)};
  net.initialize({{f32, {8, 3}}}, 2);
  net.load_weights(path, {.strict = false, .rename = {{"net.", ""}}});
  EXPECT_EQ(net.parameters()[0].second.value().to_vector<float>(), training.net.parameters()[0].second.value().to_vector<float>());
}

TEST(Checkpoint, OfSomethingElseChangesNothing) {
  const test::Folder folder;
  const std::string path = folder / "state.safetensors";
  Training saved;
  saved.run(1);
  save_state(path, saved.state());

  Training other;
  const auto before = other.values();
  auto expectRefused = [&](const TrainingState &state, const std::vector<const char *> &parts) {
    const std::string message = messageOf([&] { load_state(path, state); });
    for (const char *part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(other.values(), before);
    EXPECT_EQ(other.loader.position(), (data::Position{0, 0}));
  };
  expectRefused({{"net", other.net}, {"opt", optim::SGD(other.net.parameters())}, {"average", other.average}, {"loader", other.loader}},
                {"'opt' was AdamW(beta1 0.9", "and is SGD(momentum 0", "'opt.mean.0.weight' is unexpected", "'best' is unexpected"});
  nn::Sequential wider{nn::Dense(9, tanh), nn::BatchNorm(), nn::Dropout(0.3), nn::Dense(1)};
  wider.initialize({{f32, {8, 3}}}, 1);
  TrainingState state = other.state();
  state[0].second = StatePart(wider);
  expectRefused(state, {"'net.0.weight' is f32[3, 8] in the file, and f32[3, 9] here"});
  state = other.state();
  state[3].second = data::Loader<Batch>(data::rows(Batch{random_normal(1, {40, 3}), random_normal(2, {40, 1})}), {.batch = 8, .shuffle = true, .seed = 6});
  expectRefused(state, {"seed"});
  // Options of an optimizer count, as does its schedule's place, which is in the file.
  state = other.state();
  state[1].second = optim::AdamW(other.net.parameters(), {.beta2 = 0.95});
  expectRefused(state, {"beta2 0.999", "beta2 0.95"});

  save_safetensors(folder / "weights.safetensors", {{"w", ones({2})}});
  EXPECT_NE(messageOf([&] { load_state(folder / "weights.safetensors", other.state()); }).find("holds no state of training"), std::string::npos);
  save_safetensors(folder / "later.safetensors", {{"w", ones({2})}}, {{"tressel.state", "2"}});
  EXPECT_NE(messageOf([&] { load_state(folder / "later.safetensors", other.state()); }).find("version 2"), std::string::npos);
  EXPECT_NE(messageOf([&] { load_state(folder / "none.safetensors", other.state()); }).find("none.safetensors"), std::string::npos);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  expectRefused(other.state(), {"state.safetensors"});
}

TEST(Checkpoint, Errors) {
  Variable a(ones({2})), empty;
  EXPECT_NE(messageOf([&] { save_state("/tmp/x", {{"a", a}, {"a", a}}); }).find("'a'"), std::string::npos);
  EXPECT_NE(messageOf([&] { save_state("/tmp/x", {{"a", empty}}); }).find("no value yet"), std::string::npos);
  EXPECT_THROW(save_state("/no/such/folder/x", {{"a", a}}), RuntimeError);
  PendingSave saving = save_state_async("/no/such/folder/x", {{"a", a}});
  EXPECT_THROW(saving.wait(), RuntimeError);
  saving.wait(); // once
}

} // namespace
} // namespace tressel
