// Modules, layers, first values, clones, modes.
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <set>

using namespace tressel;

namespace {

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }
void expectNear(const Tensor &a, const Tensor &b, float tolerance = 1e-5f) {
  ASSERT_EQ(a.type(), b.type());
  auto x = floats(a), y = floats(b);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], y[i], tolerance) << "element " << i;
}

struct Net : nn::Module<Net> {
  nn::Conv2d conv = child("conv", nn::Conv2d(4, 3, {.padding = 1}));
  nn::Dropout drop = child("drop", nn::Dropout(0.5));
  nn::Dense head = child("head", nn::Dense(10));
  nn::Parameter scale = parameter("scale", {1}, nn::init::constant(2));
  Tensor forward(Tensor x) const { return head(drop(reshape(relu(conv(x)), {x.dim(0), -1}))) * scale; }
};

// The class in Module<> is the deriving one, as its forward is called; a template between passes itself.
struct Wrong : nn::Module<Net> {
  Tensor forward(Tensor x) const { return -x; }
};
static_assert(!std::is_default_constructible_v<Wrong> && std::is_default_constructible_v<Net>);
template <typename D> struct Doubled : nn::Module<D> {
  Doubled() : nn::Module<D>(this) {}
  Tensor twice(Tensor x) const { return x * 2; }
};
struct Right : Doubled<Right> {
  nn::Parameter bias = parameter("bias", {1}, nn::init::ones());
  Tensor forward(Tensor x) const { return twice(x) + bias; }
};
struct Derived : Right {};
struct Open : nn::Module<Open> {
  virtual Tensor forward(Tensor x) const { return x; }
};
struct Negative : Open {
  Tensor forward(Tensor x) const override { return -x; }
};

TEST(Module, ClassesBetweenAModuleAndItsTemplate) {
  Right a;
  a.initialize(1);
  EXPECT_EQ(a(tensor(3.0)).item<float>(), 7);
  auto b = Right{};
  b.initialize(1);
  EXPECT_EQ(b(tensor(3.0)).item<float>(), 7);
  Derived c{};
  c.initialize(1);
  EXPECT_EQ(c(tensor(3.0)).item<float>(), 7);
  EXPECT_EQ(nn::Sequential(Right{}, Right()).size(), 2u);
  Negative d;
  d.hybridize();
  EXPECT_EQ(d(tensor(3.0)).item<float>(), -3) << "virtual";
}

TEST(Module, ParametersAreNamedInOrder) {
  Net net;
  net.initialize({{f32, {"batch", 1, 6, 6}}}, 1);
  std::vector<std::string> names;
  for (auto &[name, variable] : net.parameters()) {
    names.push_back(name + " " + variable.type().str());
    EXPECT_EQ(variable.name(), name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"scale f32[1]", "conv.weight f32[4, 1, 3, 3]", "conv.bias f32[4]",
                                             "head.weight f32[144, 10]", "head.bias f32[10]"}));
}

TEST(Module, CompiledEqualsImperative) {
  Net net;
  net.initialize({{f32, {2, 1, 6, 6}}}, 1);
  Tensor x = rng::normal({2, 1, 6, 6}, 2), y = net(x);
  net.hybridize();
  expectNear(net(x), y);
  expectNear(net(x), y);
  EXPECT_EQ(net.stats().traces, 1u);
}

TEST(Module, FirstValuesDependOnSeedAndPathOnly) {
  Net a, b, c;
  a.initialize({{f32, {2, 1, 6, 6}}}, 1);
  b.initialize(1); // deferred to the first call
  b(rng::normal({2, 1, 6, 6}, 2));
  c.initialize({{f32, {2, 1, 6, 6}}}, 3);
  auto pa = a.parameters(), pb = b.parameters(), pc = c.parameters();
  for (size_t i = 0; i < pa.size(); ++i)
    EXPECT_EQ(floats(pa[i].second.value()), floats(pb[i].second.value())) << pa[i].first;
  EXPECT_NE(floats(pa[1].second.value()), floats(pc[1].second.value()));
}

TEST(Module, CallBeforeInitializeIsAnError) {
  nn::Dense layer(3);
  EXPECT_THROW(layer(ones({2, 2})), Error);
  layer.initialize(1);
  layer.hybridize();
  EXPECT_THROW(layer(ones({2, 2})), TraceError) << "a compiled function cannot make parameters";
}

TEST(Module, CopiesShareClonesDoNot) {
  Net net;
  net.initialize({{f32, {2, 1, 6, 6}}}, 1);
  Tensor x = rng::normal({2, 1, 6, 6}, 2), y = net(x);
  Net shared = net, clone = net.clone();
  net.parameters()[0].second.assign(tensor({4.0}));
  expectNear(shared(x), y * 2);
  expectNear(clone(x), y);
  EXPECT_EQ(clone.parameters().size(), net.parameters().size());
  clone.parameters()[0].second.assign(tensor({8.0}));
  expectNear(clone(x), y * 4);
  expectNear(net(x), y * 2);
}

TEST(Module, AssignedParametersReachCompiledPrograms) {
  nn::Sequential net{nn::Dense(3, relu), nn::Dense(2)};
  net.initialize({{f32, {4, 5}}}, 1);
  net.hybridize();
  Tensor x = rng::normal({4, 5}, 2);
  net(x).wait();
  for (auto &[name, variable] : net.parameters())
    variable.assign(zeros(variable.shape()));
  EXPECT_EQ(floats(net(x)), std::vector<float>(8, 0));
  EXPECT_EQ(net.stats().traces, 1u);
}

TEST(Sequential, NamesAndFunctions) {
  nn::Sequential net{nn::Flatten(), nn::Dense(4), relu, nn::Dense(2, tanh)};
  net.initialize({{f32, {3, 2, 2}}}, 1);
  auto parameters = net.parameters();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].first, "1.weight");
  EXPECT_EQ(parameters[2].first, "3.weight");
  Tensor x = rng::normal({3, 2, 2}, 1);
  Tensor h = relu(matmul(reshape(x, {3, 4}), parameters[0].second) + parameters[1].second);
  expectNear(net(x), tanh(matmul(h, parameters[2].second) + parameters[3].second));
  nn::Sequential copy{net};
  EXPECT_EQ(copy.size(), 4u) << "a copy, not a nested one";
  expectNear(net.clone()(x), net(x));
}

TEST(Sequential, ErrorsNameTheCallersLine) {
  nn::Sequential net{nn::Dense(4), nn::Dense(2)};
  net.initialize({{f32, {3, 5}}}, 1);
  unsigned line = 0;
  try {
    line = __LINE__ + 1;
    net(ones({3, 6}));
    FAIL() << "nothing was thrown";
  } catch (const ShapeError &e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_NE(std::string(e.where().file).find("ModuleTest.cpp"), std::string::npos) << e.where().file;
  }
}

struct TwoInputs : nn::Module<TwoInputs> {
  nn::Dense dense = child("dense", nn::Dense(3));
  std::pair<Tensor, Tensor> forward(Tensor a, std::vector<Tensor> b) const { return {dense(a) + b[0], a}; }
};

TEST(Module, TreesInAndOut) {
  TwoInputs m;
  m.initialize(1);
  Tensor a = ones({2, 2}), b = ones({3});
  auto [eager, same1] = m(a, std::vector<Tensor>{b});
  m.hybridize();
  auto [compiled, same2] = m(a, std::vector<Tensor>{b});
  expectNear(eager, compiled);
  EXPECT_TRUE(same(same2, a));
}

TEST(Layers, ConvAgainstItsOps) {
  nn::Conv2d layer(3, {2, 3}, {.stride = {2, 1}, .padding = {1, 0}, .activation = relu});
  layer.initialize({{f32, {1, 2, 5, 5}}}, 1);
  Tensor x = rng::normal({1, 2, 5, 5}, 2);
  auto p = layer.parameters();
  EXPECT_EQ(p[0].second.shape(), (Shape{3, 2, 2, 3}));
  Tensor y = relu(conv(x, p[0].second, {2, 1}, {1, 0}, {1, 0}) + reshape(p[1].second, {3, 1, 1}));
  expectNear(layer(x), y);
  EXPECT_EQ(layer(x).shape(), (Shape{1, 3, 3, 3}));
}

TEST(Layers, Pools) {
  Tensor x = reshape(cast(arange(16), f32), {1, 1, 4, 4});
  EXPECT_EQ(floats(nn::MaxPool2d(2)(x)), (std::vector<float>{5, 7, 13, 15}));
  EXPECT_EQ(floats(nn::AvgPool2d(2)(x)), (std::vector<float>{2.5, 4.5, 10.5, 12.5}));
  EXPECT_EQ(floats(nn::MaxPool2d(2, 1)(x)).size(), 9u);
  EXPECT_EQ(floats(nn::GlobalAvgPool()(x)), (std::vector<float>{7.5}));
  EXPECT_EQ(floats(nn::GlobalMaxPool()(x)), (std::vector<float>{15}));
  Tensor row = reshape(cast(arange(6), f32), {1, 1, 6});
  EXPECT_EQ(floats(nn::MaxPool1d(3)(row)), (std::vector<float>{2, 5}));
  EXPECT_EQ(floats(nn::AvgPool1d(2)(row)), (std::vector<float>{0.5, 2.5, 4.5}));
}

TEST(Layers, LayerNormAndConv1d) {
  nn::Sequential net{nn::Conv1d(4, 3, {.padding = 1}), nn::LayerNorm()};
  net.initialize({{f32, {2, 3, 8}}}, 1);
  Tensor y = net(rng::normal({2, 3, 8}, 3));
  EXPECT_EQ(y.shape(), (Shape{2, 4, 8}));
  for (float m : floats(mean(y, -1)))
    EXPECT_NEAR(m, 0, 1e-5);
  for (float v : floats(mean(square(y), -1)))
    EXPECT_NEAR(v, 1, 1e-2);
}

TEST(Layers, DropoutFollowsTheMode) {
  nn::Dropout drop(0.25);
  drop.initialize(1);
  Tensor x = ones({10'000});
  EXPECT_TRUE(same(drop(x), x));
  TrainScope train;
  auto first = floats(drop(x)), second = floats(drop(x));
  EXPECT_NE(first, second) << "each call has its own numbers";
  double kept = 0;
  for (float v : first) {
    EXPECT_TRUE(v == 0 || std::abs(v - 4.0f / 3) < 1e-6);
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 10'000, 0.75, 0.03);
  nn::Dropout again(0.25);
  again.initialize(1);
  again.hybridize();
  EXPECT_EQ(floats(again(x)), first) << "compiled, the numbers are the same";
  EXPECT_EQ(floats(again(x)), second);
}

// Train, inference, train on one hybridized net: two programs in all.
TEST(Layers, ModeIsNotBaked) {
  Net net;
  net.initialize({{f32, {2, 1, 6, 6}}}, 1);
  net.hybridize();
  Tensor x = rng::normal({2, 1, 6, 6}, 2), y = net(x);
  for (int i = 0; i < 2; ++i) {
    {
      TrainScope train;
      EXPECT_NE(floats(net(x)), floats(y));
    }
    EXPECT_EQ(floats(net(x)), floats(y));
  }
  EXPECT_EQ(net.stats().traces, 2u);
}

TEST(Init, Deviations) {
  auto deviation = [](const Tensor &t) {
    double squares = 0;
    for (float v : floats(t))
      squares += double(v) * v;
    return std::sqrt(squares / static_cast<double>(t.size()));
  };
  const Shape matrix{200, 300}, window{50, 20, 3, 3};
  EXPECT_NEAR(deviation(nn::init::xavier_uniform()(matrix, f32, 1)), std::sqrt(2.0 / 500), 1e-3);
  EXPECT_NEAR(deviation(nn::init::xavier_normal()(matrix, f32, 1)), std::sqrt(2.0 / 500), 1e-3);
  EXPECT_NEAR(deviation(nn::init::he_normal()(window, f32, 1)), std::sqrt(2.0 / 180), 3e-3);
  EXPECT_NEAR(deviation(nn::init::he_uniform()(matrix, f32, 1)), std::sqrt(2.0 / 200), 1e-3);
  EXPECT_EQ(floats(nn::init::constant(3)({2}, f32, 1)), (std::vector<float>{3, 3}));
}

TEST(HybridizedModule, NamesItselfWhereAnArgumentIsEmpty) {
  nn::Dense dense(3);
  dense.initialize({{f32, {1, 4}}}, 1);
  dense.hybridize();
  const Tensor none;
  auto twice = jit([](Tensor t) { return t + t; });
  auto named = jit([](Tensor t) { return t + t; }, {.name = "twice"});
  const std::pair<std::string, std::function<void()>> calls[] = {
      {"hybridized module", [&] { dense(none); }}, {"jit", [&] { twice(none); }}, {"twice", [&] { named(none); }}};
  for (const auto &[op, call] : calls)
    try {
      call();
      ADD_FAILURE() << op;
    } catch (const Error &e) {
      EXPECT_EQ(e.op(), op);
      EXPECT_EQ(e.message(), "tensor 0 of the arguments is empty");
    }
}

TEST(Weights, RoundTrip) {
  nn::Sequential a{nn::Dense(3), nn::Dense(2)}, b{nn::Dense(3), nn::Dense(2)};
  a.initialize({{f32, {1, 4}}}, 1);
  b.initialize({{f32, {1, 4}}}, 2);
  const std::string path = testing::TempDir() + "module_weights.safetensors";
  a.save_weights(path);
  LoadReport report = b.load_weights(path);
  EXPECT_EQ(report.loaded.size(), 4u);
  Tensor x = rng::normal({1, 4}, 3);
  EXPECT_EQ(floats(a(x)), floats(b(x)));
  nn::Sequential other{nn::Dense(5)};
  other.initialize({{f32, {1, 4}}}, 1);
  try { // errors are of the function that was called
    other.load_weights(path);
    ADD_FAILURE();
  } catch (const InputError &e) {
    EXPECT_EQ(e.op(), "load_weights") << e.what();
  }
  try {
    other.load_state(path);
    ADD_FAILURE();
  } catch (const InputError &e) {
    EXPECT_EQ(e.op(), "load_state") << e.what();
  }
  try {
    nn::Sequential{nn::Dense(5)}.save_weights(path);
    ADD_FAILURE();
  } catch (const Error &e) {
    EXPECT_EQ(e.op(), "save_weights") << e.what();
  }
  report = other.load_weights(path, {.strict = false});
  EXPECT_FALSE(report.mismatched.empty());
  EXPECT_FALSE(report.unexpected.empty());
  std::filesystem::remove(path);
}

} // namespace
