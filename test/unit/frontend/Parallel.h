// What tests of training on several accelerators share: some steps on a machine, and whether they give what one device
// gives.
#pragma once

#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <functional>

namespace tressel::test {

/// Leaves the machine as it was.
class Parallel : public ::testing::Test {
protected:
  ~Parallel() override { use_machine("cpu"); }
};

using Floats = std::vector<float>;

inline const std::vector<Device> kTwo{gpu(0), gpu(1)};

struct Batch {
  Tensor x, label;
};

/// Losses and weights of some steps on a machine.
struct Trained {
  Floats losses;
  std::map<std::string, Floats> weights;
};

template <typename Net>
Trained train(const std::string &machine, Net net, const JitOptions &options, std::span<const Batch> batches,
              double clip = 0, const std::vector<Device> &on = {},
              const std::function<void(const std::type_identity_t<Net> &)> &place = {}) {
  use_machine(machine);
  if (!on.empty())
    net.on(on);
  if (place)
    place(net);
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto step = jit(
      [net, opt, clip](Tensor x, Tensor label) {
        auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
        if (clip > 0)
          clip_by_global_norm(grads, clip);
        opt.update(grads);
        return loss;
      },
      options);
  Trained trained;
  for (const Batch &batch : batches)
    trained.losses.push_back(step(batch.x, batch.label).template item<float>());
  for (const auto &[name, variable] : net.parameters())
    trained.weights[name] = variable.value().template to_vector<float>();
  for (const auto &[name, variable] : net.buffers())
    if (variable.dtype() == f32)
      trained.weights[name] = variable.value().template to_vector<float>();
  return trained;
}

inline void expectSame(const Trained &got, const Trained &want, float tolerance = 2e-5f) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance * std::abs(want.losses[i])) << "step " << i;
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (const auto &[name, values] : want.weights) {
    const Floats &own = got.weights.at(name);
    ASSERT_EQ(own.size(), values.size());
    float largest = 0, off = 0;
    for (size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(values[i])), off = std::max(off, std::abs(own[i] - values[i]));
    EXPECT_LE(off, tolerance * 10 * largest + 1e-7f) << name;
  }
}

inline std::vector<Batch> batchesOf(std::initializer_list<int64_t> sizes, const Shape &image, int64_t classes) {
  std::vector<Batch> batches;
  uint64_t seed = 1;
  for (int64_t n : sizes) {
    std::vector<Size> shape{n};
    shape.insert(shape.end(), image.begin(), image.end());
    batches.push_back({rng::normal(Shape(std::span<const Size>(shape)), seed),
                       randint(static_cast<int64_t>(seed + 1), 0, classes, {n})});
    seed += 2;
  }
  return batches;
}

inline nn::Sequential perceptron() {
  nn::Sequential net{nn::Dense(32, relu), nn::Dense(10)};
  net.initialize({{f32, {1, 20}}}, 1);
  return net;
}

inline nn::Sequential imageNetwork() {
  nn::Sequential net{nn::Conv2d(8, 3), nn::BatchNorm(), nn::Dropout(0.3), nn::MaxPool2d(2), nn::Conv2d(16, 3),
                     nn::BatchNorm(),  nn::Flatten(),   nn::Dropout(0.5), nn::Dense(10)};
  net.initialize({{f32, {1, 3, 14, 14}}}, 1);
  return net;
}

struct Recurrent : nn::Module<Recurrent> {
  nn::LSTM lstm;
  nn::Dense head;
  Recurrent() : lstm(child("lstm", nn::LSTM(12, {.batch_first = true}))), head(child("head", nn::Dense(10))) {}
  Tensor forward(Tensor x) const { return head(mean(lstm(x).output, 1)); }
};

inline Recurrent recurrentNetwork() {
  Recurrent net;
  net.initialize({{f32, {1, 5, 6}}}, 1);
  return net;
}

} // namespace tressel::test
