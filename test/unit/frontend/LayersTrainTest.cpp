// Every layer of the library can be trained: a compiled step gives the gradients of the imperative calls, and both those
// of differences along a direction. In f64, where differences tell.
#include <tressel/tressel.h>

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace tressel {
namespace {

using Fn = std::function<Tensor(Tensor)>;

/// The network holds f64 parameters; `fn` calls it and gives what a loss is made of.
void expectTrains(const nn::ModuleHandle &net, const Fn &fn, const Tensor &x) {
  // A number that depends on all of the output unevenly.
  auto loss = [&](Tensor x) {
    const Tensor y = fn(x);
    return sum(y * random_normal(99, y.shape(), y.dtype())) + mean(y * y);
  };
  auto gradients = [&](Tensor x) {
    auto [value, grads] = value_and_grad([&] { return loss(x); }, net.parameters());
    grads.push_back(value);
    return grads;
  };
  const std::vector<Tensor> imperative = gradients(x);
  auto compiled = jit([&](Tensor x) { return gradients(x); });
  compiled(x);
  const std::vector<Tensor> traced = compiled(x);
  const nn::NamedParameters parameters = net.parameters();
  ASSERT_EQ(traced.size(), imperative.size());
  for (size_t k = 0; k < traced.size(); ++k) {
    const std::string name = k < parameters.size() ? parameters[k].first : "the loss";
    const std::vector<double> a = traced[k].to_vector<double>(), b = imperative[k].to_vector<double>();
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i]))) << name << ", element " << i;
  }
  // Along one direction through all parameters.
  std::vector<Tensor> directions;
  double slope = 0;
  for (size_t k = 0; k < parameters.size(); ++k) {
    directions.push_back(random_normal(static_cast<int>(k) + 7, parameters[k].second.shape(), f64));
    slope += sum(directions[k] * imperative[k]).item<double>();
  }
  const double h = 1e-6;
  auto valueAt = [&](double s) {
    std::vector<Tensor> before;
    for (size_t k = 0; k < parameters.size(); ++k) {
      before.push_back(parameters[k].second.value());
      parameters[k].second.assign(before[k] + directions[k] * s);
    }
    const TrainScope train;
    const double value = loss(x).item<double>();
    for (size_t k = 0; k < parameters.size(); ++k)
      parameters[k].second.assign(before[k]);
    return value;
  };
  EXPECT_NEAR(slope, (valueAt(h) - valueAt(-h)) / (2 * h), 1e-5 * (1 + std::abs(slope)));
}

template <typename M> void expectTrains(M net, const std::vector<int64_t> &shape) {
  net.to(f64);
  net.initialize({{f64, Shape(shape)}}, 1);
  expectTrains(net, [&](Tensor x) { return net(x); }, random_normal(3, Shape(shape), f64));
}

using nn::Sequential;

TEST(LayersTrain, Dense) { expectTrains(Sequential{nn::Dense(5, gelu), nn::LayerNorm(), nn::Dense(4, silu), nn::RMSNorm(), nn::Dense(3, softplus)}, {4, 6}); }

TEST(LayersTrain, Convolutions) {
  expectTrains(Sequential{nn::Conv2d(4, 3, {.padding = 1, .activation = relu}), nn::BatchNorm(), nn::MaxPool2d(2), nn::Conv2d(6, 3, {.stride = 2}),
                          nn::GroupNorm(2), nn::AvgPool2d(2), nn::Flatten(), nn::Dense(2)},
               {3, 2, 12, 11});
  expectTrains(Sequential{nn::Conv1d(4, 3, {.dilation = 2}), nn::InstanceNorm(), nn::Conv1d(4, 3, {.groups = 4}), nn::Conv1d(6, 1, {.groups = 2})}, {2, 3, 12});
  expectTrains(Sequential{nn::Conv3d(2, 2), nn::MaxPool3d(2)}, {2, 2, 5, 5, 5});
  expectTrains(Sequential{nn::ConvTranspose2d(3, 3, {.stride = 2}), nn::Conv2d(2, 2)}, {2, 2, 3, 4});
}

TEST(LayersTrain, Recurrent) {
  nn::LSTM lstm(4, {.layers = 2, .bidirectional = true});
  lstm.to(f64);
  lstm.initialize({{f64, {5, 2, 3}}}, 1);
  expectTrains(lstm, [&](Tensor x) { return lstm(x).output; }, random_normal(3, {5, 2, 3}, f64));
  nn::GRU gru(4, {.batch_first = true});
  gru.to(f64);
  gru.initialize({{f64, {2, 5, 3}}}, 1);
  expectTrains(gru, [&](Tensor x) { return gru(x).output; }, random_normal(3, {2, 5, 3}, f64));
}

TEST(LayersTrain, Attention) {
  expectTrains(nn::MultiHeadAttention(8, 2), {2, 5, 8});
  expectTrains(nn::TransformerEncoderLayer(8, 2, 16, {.dropout = 0}), {2, 5, 8});
  nn::Embedding embedding(7, 4);
  Sequential net{embedding, nn::Dense(3)};
  net.to(f64);
  net.initialize({{i64, {2, 5}}}, 1);
  expectTrains(net, [&](Tensor x) { return net(x); }, tensor({{1, 2, 3, 2, 1}, {0, 6, 6, 6, 5}}, i64));
}

/// A library's kernel takes some images at a time and adds up: here several times, the last time fewer.
TEST(LayersTrain, GradientsByWeightsOfManyImages) {
  struct Case {
    int64_t channels, features, groups;
  };
  for (const Case &c : {Case{16, 32, 1}, Case{3, 24, 1}, Case{32, 32, 32}}) {
    const Tensor x = random_normal(1, {70, c.channels, 32, 32}), given = random_normal(2, {70, c.features, 30, 32});
    auto fn = [&](Tensor x, Tensor given) {
      return conv_by_weights(x, given, {3, 3}, {}, {0, 1}, {0, 1}, {}, c.groups);
    };
    const std::vector<float> got = jit(fn)(x, given).to_vector<float>();
    const std::vector<double> wanted = fn(cast(x, f64), cast(given, f64)).to_vector<double>();
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 0.02) << c.channels << " channels, element " << i; // sums of 67,200 products
  }
}

/// Channels last is another order of the same, whatever computes it.
TEST(LayersTrain, GradientsByDataInBothOrders) {
  struct Case {
    int64_t size, channels, features, stride, groups;
  };
  for (const Case &c : {Case{2, 64, 96, 1, 1}, Case{9, 16, 32, 2, 1}, Case{12, 3, 16, 1, 1}, Case{6, 8, 12, 2, 4}}) {
    const int64_t places = (c.size + c.stride - 1) / c.stride, beyond = c.size - ((places - 1) * c.stride + 1);
    const Tensor dy = random_normal(1, {6, c.features, places, places}),
                 w = random_normal(2, {c.features, c.channels / c.groups, 3, 3});
    auto first = [&](Tensor dy, Tensor w) {
      return conv_transpose(dy, w, {c.stride, c.stride}, {1, 1}, {1, 1}, {beyond, beyond}, {}, c.groups);
    };
    auto last = [&](Tensor dy, Tensor w) {
      return moveaxis(conv_transpose(moveaxis(dy, {1}, {-1}), w, {c.stride, c.stride}, {1, 1}, {1, 1}, {beyond, beyond},
                                     {}, c.groups,
                                     /*channels_last=*/true),
                      {-1}, {1});
    };
    const std::vector<double> wanted = first(cast(dy, f64), cast(w, f64)).to_vector<double>();
    EXPECT_EQ(last(cast(dy, f64), cast(w, f64)).to_vector<double>(), wanted);
    for (const Tensor &got : {jit(first)(dy, w), jit(last)(dy, w), first(dy, w), last(dy, w),
                              jit([&](Tensor dy) { return first(dy, w); })(dy)}) {
      const std::vector<float> values = got.to_vector<float>();
      ASSERT_EQ(values.size(), wanted.size());
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], wanted[i], 1e-3) << c.size << " wide, element " << i;
    }
  }
}

} // namespace
TEST(LayersTrain, DropoutAndBatchNormOfAnyBatch) {
  nn::Sequential net{nn::Dense(16, relu), nn::Dropout(0.5), nn::BatchNorm(), nn::Dense(3)};
  net.initialize({{f32, {"batch", 6}}}, 1);
  net.hybridize();
  TrainScope train;
  for (int64_t batch : {8, 8, 5, 2, 7})
    EXPECT_EQ(net(rng::normal({batch, 6}, 1)).shape(), (Shape{batch, 3}));
  EXPECT_LE(net.stats().traces, 2U);
}

TEST(LayersTrain, RunningVarianceOfAnyBatch) {
  auto train = [](bool dynamic) {
    nn::BatchNorm norm;
    norm.initialize({{f32, {"batch", 3}}}, 1);
    auto f = jit([norm](Tensor x) { return norm(x); }, {.infer_dynamic = dynamic});
    const TrainScope scope;
    for (int64_t batch : {8, 8, 5, 2, 7})
      f(rng::normal({batch, 3}, static_cast<uint64_t>(batch)));
    return norm.buffers()[1].second.value().to_vector<float>();
  };
  const std::vector<float> any = train(true), each = train(false);
  for (size_t i = 0; i < any.size(); ++i)
    EXPECT_NEAR(any[i], each[i], 1e-5);
}

} // namespace tressel
