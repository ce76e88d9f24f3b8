// The tree of modules: paths, freezing, replacing, types, tables, files of weights and of the whole state.
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <filesystem>

using namespace tressel;

namespace {

using Names = std::vector<std::string>;

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }
Names namesOf(const nn::NamedParameters &named) {
  Names names;
  for (const auto &[name, variable] : named)
    names.push_back(name);
  return names;
}
std::string message(const std::function<void()> &fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing was thrown";
}
std::string temporary(const std::string &name) { return testing::TempDir() + "module_tree_" + name; }

struct Block : nn::Module<Block> {
  nn::Dense inner = child("inner", nn::Dense(4, relu));
  nn::BatchNorm norm = child("norm", nn::BatchNorm());
  Tensor forward(Tensor x) const { return norm(inner(x)) + x; }
};
struct Net : nn::Module<Net> {
  Block first = child("first", Block()), second = child("second", Block());
  nn::Dropout drop = child("drop", nn::Dropout(0.5));
  nn::Dense head = child("head", nn::Dense(2));
  Tensor forward(Tensor x) const { return head(drop(second(first(x)))); }
};

Net makeNet() {
  Net net;
  net.initialize({{f32, {"batch", 4}}}, 1);
  return net;
}

TEST(ModuleTree, PathsChildrenAndRoles) {
  Net net = makeNet();
  Names children;
  for (const auto &[name, module] : net.children())
    children.push_back(name + " " + module.type_name());
  EXPECT_EQ(children, (Names{"first Block", "second Block", "drop Dropout", "head Dense"}));
  EXPECT_EQ(namesOf(net["first"].parameters()), (Names{"inner.weight", "inner.bias", "norm.scale", "norm.bias"}));
  EXPECT_EQ(namesOf(net["second.norm"].buffers()), (Names{"running_mean", "running_var"}));
  EXPECT_EQ(namesOf(net.states()), (Names{"drop.key"}));
  EXPECT_EQ(net.parameter_count(), 2 * (16 + 4 + 4 + 4) + 8 + 2);
  EXPECT_TRUE(net.contains("first.norm"));
  EXPECT_FALSE(net.contains("first.nrm"));
  EXPECT_NE(message([&] { net["first.nrm"]; }).find("first.nrm"), std::string::npos);
  EXPECT_NE(message([&] { net["third"]; }).find("first, second, drop, head"), std::string::npos);
  Names all;
  net.apply([&](const std::string &path, const nn::ModuleHandle &) { all.push_back(path); });
  EXPECT_EQ(all,
            (Names{"", "first", "first.inner", "first.norm", "second", "second.inner", "second.norm", "drop", "head"}));
  EXPECT_EQ(nn::Conv2d(1, 1).type_name(), "Conv2d");
}

TEST(ModuleTree, ErrorsNameModuleAndLine) {
  Net net = makeNet();
  unsigned line = 0;
  try {
    line = __LINE__ + 1;
    net.first(ones({2, 5}));
    FAIL() << "nothing was thrown";
  } catch (const ShapeError &e) {
    EXPECT_NE(std::string(e.what()).find("(in 'inner', a Dense)"), std::string::npos) << e.what();
    EXPECT_EQ(e.trace().back().line, line) << "the innermost line is the call in Block";
  }
  const std::string text = message([&] { net(ones({2, 5})); });
  EXPECT_NE(text.find("(in 'first.inner', a Dense)"), std::string::npos) << text;
}

struct Branches : nn::Module<Branches> {
  nn::TransformerEncoderLayer encoder = child("encoder", nn::TransformerEncoderLayer(4, 2, 8));
  Tensor forward(Tensor x) const { return encoder(x); }
};

TEST(ModuleTree, LinesOfNestedLibraryModulesAreTheUsers) {
  Branches net;
  net.initialize({{f32, {1, 3, 4}}}, 1);
  try {
    net(ones({1, 3, 5}));
    FAIL() << "nothing was thrown";
  } catch (const ShapeError &e) {
    EXPECT_NE(std::string(e.where().file).find("ModuleTreeTest.cpp"), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("'encoder.attention.query'"), std::string::npos) << e.what();
  }
}

TEST(ModuleTree, FreezeMarksParametersAndStopsStatistics) {
  Net net = makeNet();
  net["first"].freeze();
  net["first.inner"].freeze(false);
  Names frozen;
  for (const auto &[name, variable] : net.parameters())
    if (variable.frozen())
      frozen.push_back(name);
  EXPECT_EQ(frozen, (Names{"first.norm.scale", "first.norm.bias"}));
  TrainScope train;
  net(rng::normal({8, 4}, 2));
  EXPECT_EQ(floats(net["first.norm"].buffers()[0].second.value()), std::vector<float>(4, 0));
  EXPECT_NE(floats(net["second.norm"].buffers()[0].second.value()), std::vector<float>(4, 0));
}

TEST(ModuleTree, FreezingReachesCompiledPrograms) {
  nn::BatchNorm norm;
  norm.initialize({{f32, {8, 3}}}, 1);
  auto step = jit([norm](Tensor x) { return norm(x); });
  Tensor x = rng::normal({8, 3}, 2, 5);
  TrainScope train;
  for (int i = 0; i < 3; ++i)
    step(x);
  const auto before = floats(norm.buffers()[0].second.value());
  EXPECT_GT(before[0], 1);
  norm.freeze();
  Tensor y = step(x);
  EXPECT_EQ(floats(norm.buffers()[0].second.value()), before);
  EXPECT_GT(floats(mean(y))[0], 1) << "the running statistics normalize now";
  EXPECT_EQ(step.stats().traces, 2u);
  EXPECT_NE(step.stats().retraces.back().find("module"), std::string::npos);
  step(x);
  EXPECT_EQ(step.stats().traces, 2u);
}

TEST(ModuleTree, ReplaceInSequential) {
  nn::Sequential net{nn::Dense(3, relu), nn::Dense(2)};
  net.initialize({{f32, {1, 4}}}, 1);
  net.hybridize();
  Tensor x = rng::normal({5, 4}, 2);
  net(x);
  nn::Sequential shared = net;
  nn::Dense wide(6);
  wide.initialize({{f32, {1, 3}}}, 3);
  net.replace("1", wide);
  EXPECT_EQ(net(x).shape(), (Shape{5, 6}));
  EXPECT_EQ(shared(x).shape(), (Shape{5, 6}));
  EXPECT_EQ(net.stats().traces, 2u);
  EXPECT_EQ(net.parameters()[2].second.shape(), (Shape{3, 6}));
  net.replace("1", nn::Lambda([](Tensor t) { return t * 2; })); // once more
  EXPECT_EQ(net(x).shape(), (Shape{5, 3}));
  EXPECT_NE(message([&] { net.replace("2", wide); }).find("'2'"), std::string::npos);
}

TEST(ModuleTree, NewModulesGetValuesAsIfTheyHadBeenThere) {
  nn::Sequential net{nn::Dense(3), relu, nn::Dense(5)}, other{nn::Dense(3), relu, nn::Dense(2)};
  net.initialize({{f32, {1, 4}}}, 1);
  other.initialize({{f32, {1, 4}}}, 1);
  net.freeze();
  net.replace("2", nn::Dense(2));
  net["2"].freeze(false);
  Tensor x = rng::normal({5, 4}, 2);
  EXPECT_EQ(floats(net(x)), floats(other(x)));
  EXPECT_EQ(net.parameters()[2].second.name(), "2.weight");
  EXPECT_FALSE(net.parameters()[2].second.frozen());
  EXPECT_TRUE(net.parameters()[0].second.frozen());
}

/// Adds to what it wraps.
struct Adapter : nn::Module<Adapter> {
  nn::Dense base;
  nn::Dense extra = child("extra", nn::Dense(2));
  explicit Adapter(const nn::Dense &wrapped) : base(child("base", wrapped)) {}
  Tensor forward(Tensor x) const { return base(x) + extra(x); }
};

TEST(ModuleTree, ReplacementsMayWrapWhatTheyReplace) {
  Net net = makeNet();
  Tensor x = rng::normal({3, 4}, 2), before = net(x);
  Adapter adapter(net.head);
  adapter.extra.initialize({{f32, {1, 4}}}, 5);
  net.replace("head", adapter);
  Tensor extra = adapter.extra(net.second(net.first(x)));
  auto y = floats(net(x)), expected = floats(before + extra);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], expected[i], 1e-5);
  EXPECT_TRUE(net.contains("head.base"));
  Net clone = net.clone();
  for (auto &[name, variable] : net.parameters())
    variable.assign(zeros(variable.shape()));
  auto z = floats(clone(x));
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(z[i], expected[i], 1e-5) << "the clone has a replacement of its own";
}

/// Attends evenly, with the arguments of the attention that it stands for.
struct Even : nn::Module<Even> {
  Tensor forward(Tensor queries, std::optional<Tensor> keys, std::optional<Tensor> values, nn::AttentionMasks) const {
    return queries * 0 + mean(values.value_or(keys.value_or(queries)), 1, true);
  }
};

TEST(ModuleTree, ReplacementsTakeSeveralArguments) {
  nn::TransformerEncoderLayer layer(4, 2, 8);
  layer.initialize({{f32, {1, 3, 4}}}, 1);
  Tensor x = rng::normal({1, 3, 4}, 2), before = layer(x);
  layer.replace("attention", Even());
  Tensor y = layer(x);
  EXPECT_NE(floats(y), floats(before));
  layer.hybridize();
  auto a = floats(layer(x)), b = floats(y);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(ModuleTree, ReplacementsOfAnotherFormAreRefused) {
  struct Two : nn::Module<Two> {
    Tensor forward(Tensor a, Tensor b) const { return a + b; }
  };
  nn::Sequential net{nn::Dense(3)};
  net.initialize({{f32, {1, 4}}}, 1);
  net.replace("0", Two());
  const std::string text = message([&] { net(ones({1, 4})); });
  EXPECT_NE(text.find("a Dense was replaced by a "), std::string::npos) << text;
}

TEST(ModuleTree, ToAnotherTypeAndBack) {
  Net net = makeNet();
  net.hybridize();
  Tensor x = rng::normal({3, 4}, 2), y = net(x);
  auto step = jit([weight = net.head.parameters()[0].second](Tensor t) { return t * sum(cast(weight, f32)); });
  step(x);
  net.to(f16);
  EXPECT_EQ(net.parameters()[0].second.dtype(), f16);
  EXPECT_EQ(net.buffers()[0].second.dtype(), f32);
  Tensor half = net(cast(x, f16));
  EXPECT_EQ(half.dtype(), f16);
  auto a = floats(y), b = floats(half);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 2e-2);
  step(x);
  EXPECT_EQ(step.stats().traces, 2u) << "the Variable's type is part of the program";
  net.to(f32);
  auto c = floats(net(x));
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], c[i], 1e-2);
  EXPECT_THROW(net.to(i32), Error);
  nn::Dense early(2);
  early.to(f64);
  early.initialize({{f64, {1, 2}}}, 1);
  EXPECT_EQ(early.parameters()[0].second.dtype(), f64);
}

TEST(ModuleTree, Summary) {
  Net net = makeNet();
  net.head.freeze();
  EXPECT_EQ(net.summary({{f32, {7, 4}}}), "path          class      result     parameters\n"
                                          "              Net        f32[7, 2]\n"
                                          "first         Block      f32[7, 4]\n"
                                          "first.inner   Dense      f32[7, 4]          20\n"
                                          "first.norm    BatchNorm  f32[7, 4]           8\n"
                                          "second        Block      f32[7, 4]\n"
                                          "second.inner  Dense      f32[7, 4]          20\n"
                                          "second.norm   BatchNorm  f32[7, 4]           8\n"
                                          "drop          Dropout    f32[7, 4]\n"
                                          "head          Dense      f32[7, 2]          10\n"
                                          "66 parameters, 10 of them frozen\n");
}

TEST(ModuleTree, NamesAreChecked) {
  struct Bad : nn::Module<Bad> {
    explicit Bad(const std::string &name) { child(name, nn::Dense(1)); }
    Tensor forward(Tensor x) const { return x; }
  };
  EXPECT_THROW(Bad("a.b"), Error);
  EXPECT_THROW(Bad(""), Error);
}

TEST(Weights, BuffersTravelWithThem) {
  Net net = makeNet(), other = makeNet();
  {
    TrainScope train;
    net(rng::normal({8, 4}, 2));
  }
  const std::string path = temporary("weights.safetensors");
  net.save_weights(path);
  LoadReport report = other.load_weights(path);
  EXPECT_EQ(report.loaded.size(), 14u);
  Tensor x = rng::normal({3, 4}, 3);
  EXPECT_EQ(floats(net(x)), floats(other(x)));
  const std::string again = temporary("again.safetensors");
  other.save_weights(again);
  auto a = load_safetensors(path), b = load_safetensors(again);
  for (const auto &[name, tensor] : a)
    EXPECT_EQ(tensor.to_vector<float>(), b.at(name).to_vector<float>());
  std::filesystem::remove(path);
  std::filesystem::remove(again);
}

TEST(State, TrainingGoesOnAsIfItHadNotStopped) {
  const std::string path = temporary("state.safetensors");
  Net net = makeNet();
  TrainScope train;
  Tensor x = rng::normal({8, 4}, 2);
  net(x);
  rng::uniform({2}).wait();
  net.save_state(path);
  const auto expected = floats(net(x)), numbers = floats(rng::uniform({3}));
  Net other;
  other.initialize({{f32, {8, 4}}}, 9);
  rng::uniform({3}).wait();
  other.load_state(path);
  EXPECT_EQ(floats(rng::uniform({3})), numbers);
  EXPECT_EQ(floats(other(x)), expected) << "dropout's numbers and running statistics go on";
  nn::Dense small(2);
  small.initialize({{f32, {1, 4}}}, 1);
  EXPECT_THROW(small.load_state(path), InputError);
  std::filesystem::remove(path);
}

// Train, inference, train on one hybridized net: two traces in all, statistics right.
TEST(Modes, TrainAndInferenceOfBatchNorm) {
  Net net = makeNet(), imperative = makeNet();
  net.hybridize();
  Tensor x = rng::normal({16, 4}, 2, 3, 2);
  for (int i = 0; i < 3; ++i) {
    {
      TrainScope train;
      auto a = floats(net(x)), b = floats(imperative(x));
      for (size_t k = 0; k < a.size(); ++k)
        EXPECT_NEAR(a[k], b[k], 1e-4) << i;
    }
    auto a = floats(net(x)), b = floats(imperative(x));
    for (size_t k = 0; k < a.size(); ++k)
      EXPECT_NEAR(a[k], b[k], 1e-4) << i;
    for (size_t v = 0; v < net.buffers().size(); ++v) {
      auto m = floats(net.buffers()[v].second.value()), n = floats(imperative.buffers()[v].second.value());
      for (size_t k = 0; k < m.size(); ++k)
        EXPECT_NEAR(m[k], n[k], 1e-5);
    }
  }
  EXPECT_EQ(net.stats().traces, 2u);
  nn::BatchNorm norm;
  norm.initialize({{f32, {16, 4}}}, 1);
  TrainScope train;
  norm(x);
  Tensor centre = mean(x, 0), variance = sum(square(x - centre), 0) / 15;
  auto running = floats(norm.buffers()[0].second.value()), m = floats(centre * 0.1);
  auto runningVariance = floats(norm.buffers()[1].second.value()), v = floats(variance * 0.1 + 0.9);
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(running[k], m[k], 1e-5);
    EXPECT_NEAR(runningVariance[k], v[k], 1e-5);
  }
}

TEST(Init, Others) {
  auto values = nn::init::truncated_normal(2)({1000}, f32, 1).to_vector<float>();
  for (float v : values)
    EXPECT_LE(std::abs(v), 4);
  Tensor q = nn::init::orthogonal()({3, 5}, f32, 1), product = matmul(q, transpose(q));
  auto p = floats(product);
  for (size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(p[i], i % 4 == 0, 1e-5);
  Tensor tall = nn::init::orthogonal(2)({5, 3}, f32, 1);
  auto t = floats(matmul(transpose(tall), tall));
  for (size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(t[i], i % 4 == 0 ? 4 : 0, 1e-5);
  EXPECT_EQ(floats(nn::init::identity()({2, 3}, f32, 1)), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(floats(nn::init::value(tensor({1.0, 2}))({2}, f32, 1)), (std::vector<float>{1, 2}));
  EXPECT_THROW(nn::init::value(tensor({1.0, 2}))({3}, f32, 1), ShapeError);
  EXPECT_THROW(nn::init::orthogonal()({3}, f32, 1), ShapeError);
}

} // namespace
