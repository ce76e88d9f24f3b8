// Layers: every float type, wrong options and inputs. What they compute is checked by test/oracle/module_oracle.py.
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace tressel;

namespace {

std::string message(const std::function<void()> &fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// The results in f64, f16 and bf16 are of that type and near those in f32, op by op and compiled.
template <typename M> void expectAllTypes(const char *name, const M &module, const Tensor &x) {
  module.initialize({{x.type()}}, 1);
  const auto expected = nn::detail::tensorsOf(module.clone()(x));
  for (DType dtype : {f64, f16, bf16}) {
    const M typed = module.clone();
    typed.to(dtype);
    for (bool compiled : {false, true}) {
      const M fresh = typed.clone();
      if (compiled)
        fresh.hybridize();
      const auto results = nn::detail::tensorsOf(fresh(cast(x, dtype)));
      for (size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(results[i].dtype(), dtype) << name;
        const auto a = results[i].template to_vector<double>(), b = expected[i].template to_vector<double>();
        const double tolerance = dtype == f64 ? 1e-5 : dtype == f16 ? 2e-2 : 1e-1;
        for (size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], tolerance * (1 + std::abs(b[k]))) << name << " " << nameOf(dtype) << " " << k;
      }
    }
  }
}

/// A recurrent layer is one loop in a program: its size does not depend on the length, and one program serves all lengths.
TEST(Layers, RecurrentLayersAreLoops) {
  nn::LSTM lstm(3, {.bidirectional = true});
  nn::GRU gru(3);
  lstm.initialize({{f32, {4, 2, 5}}}, 1);
  gru.initialize({{f32, {4, 2, 6}}}, 2);
  auto run = [lstm, gru](Tensor x) { return gru(lstm(x).output).output; };
  auto f = jit(run);
  auto ops = [&](int64_t length) {
    const std::string text = f.graph(ones({length, 2, 5}));
    EXPECT_NE(text.find("tressel.scan"), std::string::npos);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(ops(4), ops(400));
  f.compile({f32, {"length", 2, 5}});
  for (int64_t length : {1, 2, 7, 33}) {
    const Tensor x = rng::normal({length, 2, 5}, static_cast<uint64_t>(length));
    const auto got = f(x).to_vector<float>(), expected = run(x).to_vector<float>();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 1e-5) << length << " " << i;
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

} // namespace

TEST(LayerTypes, ResultsKeepTheInputsType) {
  struct Dense : nn::Module<Dense> {
    nn::Dense inner = child("inner", nn::Dense(3, tanh));
    Tensor forward(Tensor x) const { return inner(x); }
  };
  expectAllTypes("dense", Dense(), rng::normal({4, 5}, 1));
  struct Window : nn::Module<Window> {
    nn::Conv2d conv = child("conv", nn::Conv2d(4, 3, {.padding = "same"}));
    nn::ConvTranspose2d up = child("up", nn::ConvTranspose2d(2, 2, {.stride = 2}));
    nn::AdaptiveAvgPool2d pool = child("pool", nn::AdaptiveAvgPool2d({3, 4}));
    nn::PRelu slope = child("slope", nn::PRelu(true));
    Tensor forward(Tensor x) const { return slope(pool(up(conv(x)))); }
  };
  expectAllTypes("window", Window(), rng::normal({1, 2, 5, 5}, 1));
  struct Norms : nn::Module<Norms> {
    nn::BatchNorm batch = child("batch", nn::BatchNorm());
    nn::GroupNorm group = child("group", nn::GroupNorm(2));
    nn::InstanceNorm instance = child("instance", nn::InstanceNorm());
    nn::LayerNorm layer = child("layer", nn::LayerNorm());
    nn::RMSNorm rms = child("rms", nn::RMSNorm());
    std::vector<Tensor> forward(Tensor x) const { return {batch(x), group(x), instance(x), layer(x), rms(x)}; }
  };
  expectAllTypes("norms", Norms(), rng::normal({3, 4, 6}, 1));
  TrainScope train;
  expectAllTypes("norms in training", Norms(), rng::normal({3, 4, 6}, 1));
}

TEST(LayerTypes, AttentionAndRecurrentLayers) {
  struct Attention : nn::Module<Attention> {
    nn::TransformerEncoderLayer inner = child("inner", nn::TransformerEncoderLayer(4, 2, 6, {.causal = true}));
    Tensor forward(Tensor x) const { return inner(x); }
  };
  expectAllTypes("attention", Attention(), rng::normal({2, 3, 4}, 1));
  struct Recurrent : nn::Module<Recurrent> {
    nn::LSTM lstm = child("lstm", nn::LSTM(3, {.bidirectional = true}));
    nn::GRU gru = child("gru", nn::GRU(2));
    Tensor forward(Tensor x) const { return gru(lstm(x).output).output; }
  };
  expectAllTypes("recurrent", Recurrent(), rng::normal({4, 2, 3}, 1));
}

// Dropout of the weights takes another way through the ops: with next to none of it, the results are the same.
TEST(Attention, WeightsAndTheFusedOpAgree) {
  nn::MultiHeadAttention attention(8, 2, {.dropout = 1e-9, .causal = true});
  attention.initialize({{f32, {2, 5, 8}}}, 1);
  Tensor x = rng::normal({2, 5, 8}, 2), scores = rng::normal({5, 5}, 3);
  Tensor valid = tensor({{1, 1, 1, 1, 0}, {1, 1, 1, 0, 0}}) > 0;
  for (const nn::AttentionMasks &masks :
       {nn::AttentionMasks{}, nn::AttentionMasks{.scores = scores}, nn::AttentionMasks{.keys = valid},
        nn::AttentionMasks{scores, valid}, nn::AttentionMasks{scores > -2, valid}}) {
    const auto fused = attention(x, x, x, masks).to_vector<float>();
    TrainScope train;
    const auto dropped = attention(x, x, x, masks).to_vector<float>();
    for (size_t i = 0; i < fused.size(); ++i)
      if (!std::isnan(fused[i]))
        EXPECT_NEAR(fused[i], dropped[i], 1e-5) << i;
  }
}

TEST(LayerErrors, WrongOptions) {
  EXPECT_NE(message([] { nn::Conv2d(3, 2, {.groups = 2}); }).find("3 channels do not split into 2 groups"),
            std::string::npos);
  EXPECT_NE(message([] { nn::Conv1d(2, 3, {.stride = 2, .padding = "same"}); }).find("stride of 1"), std::string::npos);
  EXPECT_NE(message([] { nn::Conv1d(2, 3, {.padding = "full"}); }).find("\"full\""), std::string::npos);
  EXPECT_THROW(nn::Conv3d(0, 1), Error);
  EXPECT_THROW(nn::ConvTranspose1d(2, 3, {.stride = 2, .output_padding = 2}), Error);
  EXPECT_THROW(nn::MultiHeadAttention(10, 3), Error);
  EXPECT_THROW(nn::LSTM(0), Error);
  EXPECT_THROW(nn::GRU(3, {.layers = 0}), Error);
  EXPECT_THROW(nn::Dropout(1), Error);
  EXPECT_THROW(nn::Embedding(0, 3), Error);
  EXPECT_THROW(nn::GroupNorm(0), Error);
  EXPECT_THROW(nn::PositionalEmbedding(0), Error);
}

TEST(LayerErrors, WrongInputsNameTheModuleAndTheLine) {
  const auto expect = [](const auto &layer, const Tensor &x, const std::string &text) {
    layer.initialize(1);
    try {
      layer(x);
      FAIL() << "nothing was thrown: " << text;
    } catch (const Error &e) {
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("(in a " + layer.type_name() + ")"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.where().file).find("LayersTest"), std::string::npos) << e.what();
    }
  };
  expect(nn::Conv2d(2, 3), ones({1, 3, 5}), "at least 4 dimensions, not f32[1, 3, 5]");
  expect(nn::Dense(2), ones({}), "at least 1 dimensions");
  expect(nn::PositionalEmbedding(3), ones({1, 4, 2}), "3 positions");
  expect(nn::GroupNorm(2), ones({1, 3, 2}), "2 groups");
  expect(nn::MultiHeadAttention(4, 2), ones({3, 4}), "[batch, length, width]");
  expect(nn::LSTM(3), ones({3, 4}), "at least one step");
  expect(nn::LSTM(3), ones({0, 2, 4}), "at least one step");
  expect(nn::GRUCell(3), ones({4}), "[batch, width]");
  expect(nn::AdaptiveAvgPool1d(2), ones({1, 1, 0}), "at least 1");
  TrainScope train;
  expect(nn::Dropout(0.5, {1}), ones({2}), "no dimension 1");
  expect(nn::BatchNorm(), ones({1, 3}), "one element per channel");
  nn::LSTM lstm(3);
  lstm.initialize({{f32, {2, 2, 4}}}, 1);
  EXPECT_NE(message([&] {
              lstm(ones({2, 2, 4}), nn::LSTMState{ones({1, 1, 3}), ones({1, 1, 3})});
            }).find("f32[1, 1, 3] instead of f32[1, 2, 3]"),
            std::string::npos);
}

TEST(Sequential, LayersAddedLaterReachCopies) {
  nn::Sequential net{nn::Dense(3), nn::Relu()}, copy = net;
  EXPECT_EQ(net.children()[1].second.type_name(), "Relu");
  net.add(nn::Dense(2));
  EXPECT_EQ(copy.size(), 3u);
  copy.initialize({{f32, {1, 4}}}, 1);
  EXPECT_EQ(copy(ones({1, 4})).shape(), (Shape{1, 2}));
  nn::Sequential clone = net.clone();
  net.add(tanh);
  EXPECT_EQ(clone.size(), 3u);
  net.hybridize();
  net(ones({1, 4}));
  net.add(nn::Dense(7));
  EXPECT_THROW(net(ones({1, 4})), Error) << "the new layer has no values";
}
/// A causal layer computes a sequence in parts, at once or compiled, as it does as a whole.
TEST(Attention, InPartsIsThatOfTheWhole) {
  for (const bool preNorm : {false, true}) {
    nn::TransformerEncoderLayer layer(8, 2, 16, {.pre_norm = preNorm, .causal = true});
    layer.initialize({{f32, {3, 7, 8}}}, 1);
    const Tensor x = rng::uniform({3, 7, 8}, 5);
    const std::vector<float> whole = layer(x).to_vector<float>();
    for (const bool compiled : {false, true}) {
      const nn::KeyValueCache cache = layer.cache(3, 9);
      auto part = [&](const Tensor &t, const Tensor &first) { return layer.forward_at(t, first, cache); };
      auto program = jit([layer, cache](Tensor t, Tensor first) { return layer.forward_at(t, first, cache); });
      std::vector<Tensor> parts;
      for (const auto [first, length] : {std::pair<int64_t, int64_t>{0, 4}, {4, 1}, {5, 1}, {6, 1}}) {
        const Tensor t = slice(x, {0, first, 0}, {3, first + length, 8}), at = tensor(first, i64);
        parts.push_back(compiled ? program(t, at) : part(t, at));
      }
      const std::vector<float> got = concat({parts[0], parts[1], parts[2], parts[3]}, 1).to_vector<float>();
      ASSERT_EQ(got.size(), whole.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], whole[i], 1e-5f) << i;
    }
  }
  nn::TransformerEncoderLayer open(8, 2, 16);
  open.initialize({{f32, {3, 7, 8}}}, 1);
  EXPECT_THROW(open.forward_at(zeros({3, 1, 8}), tensor(0, i64), open.cache(3, 9)), Error);
}

