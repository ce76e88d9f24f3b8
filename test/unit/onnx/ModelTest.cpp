// Models as modules: what is a weight, what is computed, gradients, training, other outputs, errors.
#include "ModelBuilder.h"

#include <tressel/onnx.h>
#include <tressel/tressel.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tressel {
namespace {

using test::ModelBuilder;

/// A model in a file as long as the test runs.
class ModelOnDisk {
public:
  explicit ModelOnDisk(const ModelBuilder &b)
      : path_(testing::TempDir() + "tressel-model-" + std::to_string(getpid()) + "-" + std::to_string(++count) + ".onnx") {
    std::ofstream(path_, std::ios::binary) << b.bytes();
  }
  ~ModelOnDisk() { std::filesystem::remove(path_); }
  operator const std::string &() const { return path_; }

private:
  static inline int count = 0;
  std::string path_;
};

std::vector<float> someFloats(int64_t n, float scale = 0.5f, float offset = 0) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(offset + scale * std::sin(static_cast<float>(i) * 1.7f + 0.3f));
  return values;
}
Tensor someTensor(const Shape &shape, float scale = 0.5f) { return from_span(someFloats(shape.numElements(), scale), shape); }

std::vector<std::string> namesOf(const nn::NamedParameters &named) {
  std::vector<std::string> names;
  for (const auto &[name, variable] : named)
    names.push_back(name);
  return names;
}

void expectNear(const Tensor &a, const Tensor &b, float tolerance = 1e-5f) {
  ASSERT_EQ(a.type().str(), b.type().str());
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], tolerance) << "element " << i;
}

template <typename E, typename Fn> std::string messageOf(Fn fn) {
  try {
    fn();
  } catch (const E &error) {
    return error.what();
  }
  return "nothing was thrown";
}

using Names = std::vector<std::string>;

/// Of PyTorch's names: convolution, normalization, relu, mean over the image, linear.
ModelBuilder smallNet(int64_t batch = -1) {
  ModelBuilder b;
  b.input("image", {batch, 2, 6, 6}).output("logits");
  b.floats("conv.weight", {4, 2, 3, 3}, someFloats(72));
  b.floats("conv.bias", {4}, someFloats(4));
  b.floats("bn.weight", {4}, someFloats(4, 0.2f, 1));
  b.floats("bn.bias", {4}, someFloats(4));
  b.floats("bn.running_mean", {4}, someFloats(4, 0.1f));
  b.floats("bn.running_var", {4}, someFloats(4, 0.2f, 1));
  b.floats("fc.weight", {3, 4}, someFloats(12));
  b.floats("fc.bias", {3}, someFloats(3));
  b.node("Conv", {"image", "conv.weight", "conv.bias"}, {"c"}, "/conv/Conv");
  b.node("BatchNormalization", {"c", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, {"n"}, "/bn/BatchNormalization");
  b.node("Relu", {"n"}, {"r"});
  b.node("GlobalAveragePool", {"r"}, {"p"});
  b.node("Flatten", {"p"}, {"features"});
  auto &fc = b.node("Gemm", {"features", "fc.weight", "fc.bias"}, {"logits"}, "/fc/Gemm");
  test::setInt(fc, "transB", 1);
  return b;
}

TEST(OnnxTrainable, ComputesWhatTheCompiledModelDoes) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  const Tensor x = someTensor({5, 2, 6, 6});
  onnx::Compiled compiled = onnx::compile(file, {.dims = {{"d1", 5}}});
  std::vector<float> in = x.to_vector<float>(), out(15);
  const void *input = in.data();
  void *output = out.data();
  compiled.run({&input, 1}, {&output, 1});
  const Tensor expected = from_span(out, {5, 3});
  expectNear(net(x), expected);
  auto f = jit([net](Tensor image) { return net(image); });
  expectNear(f(x), expected);
  expectNear(net(std::vector{x})[0], expected);
  EXPECT_EQ(net.inputs()[0].name, "image");
  EXPECT_EQ(net.inputs()[0].shape.names[0], "d1");
  EXPECT_EQ(net.outputs(), Names{"logits"});
  EXPECT_EQ(net.type_name(), "Model");
}

TEST(OnnxTrainable, WeightsAreParametersByTheirNamesInTheFile) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  EXPECT_EQ(namesOf(net.parameters()), (Names{"conv.weight", "conv.bias", "bn.weight", "bn.bias", "fc.weight", "fc.bias"}));
  EXPECT_EQ(namesOf(net.buffers()), (Names{"bn.running_mean", "bn.running_var"}));
  EXPECT_EQ(net.parameter_count(), 72 + 4 + 4 + 4 + 12 + 3);
  EXPECT_EQ(net["conv"].parameters()[0].second.value().to_vector<float>(), someFloats(72));
  net["conv"].freeze();
  EXPECT_TRUE(net.parameters()[0].second.frozen());
  EXPECT_FALSE(net.parameters()[2].second.frozen());
}

TEST(OnnxTrainable, WhatIsNoWeight) {
  ModelBuilder b(18);
  b.input("x", {1, 2, 4, 4}).output("y");
  b.floats("scale", {}, {2});              // a number in a formula
  b.floats("eps", {1, 1, 1, 1}, {0.5f});   // the same, broadcast
  b.floats("scales", {4}, {1, 1, 2, 2});   // must be known
  b.floats("gain", {1}, {3});              // a bias, say, of one output
  b.floats("unused", {7}, someFloats(7));
  b.floats("shift", {2, 1, 1}, {1, 2});
  b.ints("axes", {2, 3});
  b.node("Mul", {"x", "scale"}, {"a"});
  b.node("Add", {"a", "eps"}, {"b"});
  b.node("Mul", {"b", "gain"}, {"c"});
  b.node("Add", {"c", "shift"}, {"d"});
  auto &resize = b.node("Resize", {"d", "", "scales"}, {"e"});
  auto *mode = resize.add_attribute();
  mode->set_name("mode"), mode->set_type(::onnx::AttributeProto::STRING), mode->set_s("nearest");
  auto &mean = b.node("ReduceMean", {"e", "axes"}, {"y"});
  test::setInt(mean, "keepdims", 0);
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  EXPECT_EQ(namesOf(net.parameters()), (Names{"gain", "shift"}));
  EXPECT_EQ(namesOf(onnx::load(file, {.constants = {"sh*"}}).parameters()), (Names{"gain"}));
  EXPECT_NE(messageOf<InputError>([&] { onnx::load(file, {.constants = {"fc.*"}}); }).find("no weight has a name like 'fc.*'"), std::string::npos);
  EXPECT_EQ(net(zeros({1, 2, 4, 4})).to_vector<float>(), (std::vector<float>{2.5f, 3.5f}));
}

TEST(OnnxTrainable, ConstantNodesAreWeightsToo) {
  ModelBuilder b;
  b.input("x", {-1, 3}).output("y");
  auto &constant = b.node("Constant", {}, {"linear_0.w_0"});
  auto *a = constant.add_attribute();
  a->set_name("value"), a->set_type(::onnx::AttributeProto::TENSOR);
  a->mutable_t()->set_data_type(::onnx::TensorProto::FLOAT);
  a->mutable_t()->add_dims(3), a->mutable_t()->add_dims(2);
  for (float v : someFloats(6))
    a->mutable_t()->add_float_data(v);
  b.node("Identity", {"linear_0.w_0"}, {"w"});
  b.node("MatMul", {"x", "w"}, {"y"});
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  EXPECT_EQ(namesOf(net.parameters()), (Names{"linear_0.w_0"}));
  const Tensor x = someTensor({2, 3});
  expectNear(net(x), matmul(x, someTensor({3, 2})));
  net.parameters()[0].second.assign(zeros({3, 2}));
  expectNear(net(x), zeros({2, 2}));
}

TEST(OnnxTrainable, QuantizationKeepsItsScales) {
  ModelBuilder b;
  b.input("x", {4, 3}).output("y");
  b.floats("s", {3}, {0.5f, 0.25f, 0.125f});
  auto *zero = b.model.mutable_graph()->add_initializer();
  zero->set_name("z"), zero->set_data_type(::onnx::TensorProto::INT8), zero->add_dims(3);
  for (int i = 0; i < 3; ++i)
    zero->add_int32_data(0);
  b.floats("w", {3}, {1, 2, 3});
  auto &q = b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  test::setInt(q, "axis", 1);
  auto &d = b.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  test::setInt(d, "axis", 1);
  b.node("Mul", {"d", "w"}, {"y"});
  const ModelOnDisk file(b);
  EXPECT_EQ(namesOf(onnx::load(file).parameters()), (Names{"w"}));
}

TEST(OnnxTrainable, StatisticsAreWhatNothingElseUses) {
  ModelBuilder b;
  b.input("x", {2, 2, 3, 3}).output("y");
  b.floats("w", {2, 2, 1, 1}, someFloats(4));
  b.floats("zero", {2}, {0, 0});
  b.floats("one", {2}, {1, 1});
  b.floats("mean", {2}, {0.1f, 0.2f});
  auto &variance = b.floats("variance", {2}, {});
  variance.set_data_type(::onnx::TensorProto::DOUBLE);
  variance.add_double_data(1), variance.add_double_data(2);
  b.node("Conv", {"x", "w", "zero"}, {"c"});
  b.node("Identity", {"zero"}, {"same"});
  b.node("BatchNormalization", {"c", "one", "zero", "same", "one"}, {"n"}); // exporters make equal constants one
  auto &cast = b.node("Cast", {"variance"}, {"narrow"});
  test::setInt(cast, "to", ::onnx::TensorProto::FLOAT);
  b.node("BatchNormalization", {"n", "one", "zero", "mean", "narrow"}, {"y"});
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  EXPECT_EQ(namesOf(net.parameters()), (Names{"w", "zero", "one"}));
  EXPECT_EQ(namesOf(net.buffers()), (Names{"mean", "variance"}));
}

TEST(OnnxTrainable, FactorsOfSizesAreConstants) {
  ModelBuilder b(18);
  b.input("x", {1, 2, -1, -2}).output("y");
  b.floats("factors", {2}, {2, 2});
  b.floats("gain", {2, 1, 1}, {1, 3});
  b.ints("from", {2});
  b.ints("to", {4});
  b.ints("lead", {1, 2});
  b.node("Mul", {"x", "gain"}, {"m"});
  b.node("Shape", {"m"}, {"shape"});
  b.node("Slice", {"shape", "from", "to"}, {"size"});
  auto &wide = b.node("Cast", {"size"}, {"sizes"});
  test::setInt(wide, "to", ::onnx::TensorProto::FLOAT);
  b.node("Mul", {"sizes", "factors"}, {"larger"});
  auto &back = b.node("Cast", {"larger"}, {"whole"});
  test::setInt(back, "to", ::onnx::TensorProto::INT64);
  auto &all = b.node("Concat", {"lead", "whole"}, {"target"});
  test::setInt(all, "axis", 0);
  b.node("Resize", {"m", "", "", "target"}, {"y"});
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  EXPECT_EQ(namesOf(net.parameters()), Names{"gain"});
  EXPECT_EQ(net(ones({1, 2, 3, 5})).shape(), (Shape{1, 2, 6, 10}));
}

TEST(OnnxTrainable, NamesWithoutAPathOfTheirOwn) {
  ModelBuilder b;
  b.input("x", {2}).output("y");
  for (const char *name : {"a", "a.b", "a_b", ".c", "d.e.f", "d.e"})
    b.floats(name, {2}, {1, 2});
  std::string last = "x";
  int k = 0;
  for (const char *name : {"a", "a.b", "a_b", ".c", "d.e.f", "d.e"}) {
    const std::string next = std::string(name) == "d.e" ? "y" : "v" + std::to_string(k++);
    b.node("Add", {last, name}, {next});
    last = next;
  }
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  EXPECT_EQ(namesOf(net.parameters()), (Names{"a", "a_b", "a_b_2", "_c", "d_e", "d.e.f"}));
  EXPECT_EQ(net(zeros({2})).to_vector<float>(), (std::vector<float>{6, 12}));

  std::string deep = "a"; // deeper than any path
  for (int i = 0; i < 60'000; ++i)
    deep += ".a";
  ModelBuilder c;
  c.input("x", {2}).output("y");
  c.floats(deep, {2}, {1, 2});
  c.node("Add", {"x", deep}, {"y"});
  const ModelOnDisk other(c);
  EXPECT_EQ(onnx::load(other).parameters().size(), 1u);
}

TEST(OnnxTrainable, GradientsOfWeights) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  const Tensor x = someTensor({4, 2, 6, 6}), label = from_span(std::vector<int64_t>{0, 1, 2, 1}, {4});
  auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
  ASSERT_EQ(grads.size(), 6u);
  // By finite differences along a direction.
  for (size_t p = 0; p < grads.size(); ++p) {
    const Variable w = net.parameters()[p].second;
    const Tensor before = w.value(), direction = someTensor(w.shape(), 1);
    auto at = [&](float step) {
      w.assign(before + direction * step);
      return softmax_cross_entropy(net(x), label).item<float>();
    };
    const float slope = (at(0.01f) - at(-0.01f)) / 0.02f, expected = sum(grads[p] * direction).item<float>();
    w.assign(before);
    EXPECT_NEAR(slope, expected, 2e-3f * std::max(1.f, std::abs(expected))) << net.parameters()[p].first;
  }
  // The same in a compiled function.
  auto step = jit([net](Tensor image, Tensor kind) {
    return value_and_grad([&] { return softmax_cross_entropy(net(image), kind); }, net.parameters()).grads;
  });
  const auto compiled = step(x, label);
  for (size_t p = 0; p < grads.size(); ++p)
    expectNear(compiled[p], grads[p]);
}

TEST(OnnxTrainable, Trains) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  net["conv"].freeze();
  const Tensor conv = net["conv"].parameters()[0].second.value(), mean = net.buffers()[0].second.value();
  const optim::SGD opt(net.parameters(), {.lr = 0.3, .momentum = 0.9});
  auto step = jit([net, opt](Tensor x, Tensor label) {
    auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
    opt.update(grads);
    return loss;
  }, {.strict_donation = true});
  const Tensor x = someTensor({6, 2, 6, 6}, 2), label = from_span(std::vector<int64_t>{0, 1, 2, 0, 1, 2}, {6});
  const TrainScope training;
  const float first = step(x, label).item<float>();
  float last = first;
  for (int i = 0; i < 200; ++i)
    last = step(x, label).item<float>();
  EXPECT_LT(last, first * 0.6f);
  EXPECT_EQ(step.stats().traces, 1);
  EXPECT_EQ(net["conv"].parameters()[0].second.value().to_vector<float>(), conv.to_vector<float>());
  EXPECT_EQ(net.buffers()[0].second.value().to_vector<float>(), mean.to_vector<float>());
  net.initialize(3); // back to what the file says, whatever the seed
  EXPECT_EQ(net["fc"].parameters()[0].second.value().to_vector<float>(), someFloats(12));
}

TEST(OnnxTrainable, FreezingAGroupReachesCompiledPrograms) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  const optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = jit([net, opt](Tensor x) {
    auto [loss, grads] = value_and_grad([&] { return mean(square(net(x))); }, net.parameters());
    opt.update(grads);
    return loss;
  });
  const Tensor x = someTensor({2, 2, 6, 6});
  auto weight = [&] { return net["conv"].parameters()[0].second.value().to_vector<float>(); };
  for (const int calls : {1, 3}) { // programs are trusted after a few
    for (const bool frozen : {true, false}) {
      net["conv"].freeze(frozen);
      const std::vector<float> before = weight();
      for (int i = 0; i < calls; ++i)
        step(x).wait();
      EXPECT_EQ(weight() == before, frozen) << calls << " calls";
    }
  }
}

struct Classifier : nn::Module<Classifier> {
  onnx::Model body;
  nn::Dense head = child("head", nn::Dense(2));
  explicit Classifier(const std::string &file) : body(child("body", onnx::load(file, {.outputs = {"features"}}))) {}
  Tensor forward(Tensor x) const { return head(body(x)); }
};

TEST(OnnxTrainable, ANewHeadOnValuesFromWithin) {
  const ModelOnDisk file(smallNet());
  const Classifier net(file);
  net.initialize({{f32, {3, 2, 6, 6}}}, 7);
  EXPECT_EQ(namesOf(net.parameters()), (Names{"body.conv.weight", "body.conv.bias", "body.bn.weight", "body.bn.bias", "head.weight", "head.bias"}));
  EXPECT_EQ(net["body.conv"].parameters()[0].second.value().to_vector<float>(), someFloats(72));
  EXPECT_EQ(net(someTensor({3, 2, 6, 6})).shape(), (Shape{3, 2}));
  net["body"].freeze();
  auto loss = [&] { return sum(net(someTensor({3, 2, 6, 6}))); };
  EXPECT_EQ(value_and_grad(loss, net.parameters()).grads.size(), 6u);
  // A copy is a module of its own.
  const Classifier copy = net.clone();
  copy["body.conv"].parameters()[0].second.assign(zeros({4, 2, 3, 3}));
  EXPECT_EQ(net["body.conv"].parameters()[0].second.value().to_vector<float>(), someFloats(72));
  EXPECT_GT(sum(abs(net(someTensor({3, 2, 6, 6})) - copy(someTensor({3, 2, 6, 6})))).item<float>(), 1e-4f);

  EXPECT_NE(messageOf<InputError>([&] { onnx::load(file, {.outputs = {"feature"}}); })
                .find("no node gives a value 'feature'; from the last node backwards they give 'logits', 'features', 'p'"),
            std::string::npos);
  EXPECT_NE(messageOf<InputError>([&] { onnx::load(file, {.outputs = {"p", "p"}}); }).find("'p' is asked for twice"), std::string::npos);
  EXPECT_NE(messageOf<Error>([&] { net.replace("body.conv", nn::Conv2d(4, 3)); }).find("is a group of weights, which nothing calls"),
            std::string::npos);
  const onnx::Model both = onnx::load(file, {.outputs = {"logits", "features"}});
  EXPECT_EQ(both(std::vector{someTensor({3, 2, 6, 6})})[1].shape(), (Shape{3, 4}));
  EXPECT_NE(messageOf<Error>([&] { both(someTensor({3, 2, 6, 6})); }).find("has 1 inputs and 2 outputs"), std::string::npos);
}

TEST(OnnxTrainable, SizesOfTheCall) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  net.hybridize();
  net.compile({{f32, {"batch", 2, 6, 6}}});
  for (int64_t n : {1, 3, 17})
    EXPECT_EQ(net(someTensor({n, 2, 6, 6})).shape(), (Shape{n, 3}));
  EXPECT_EQ(net.stats().traces, 1);
  const onnx::Model plain = onnx::load(file);
  expectNear(net(someTensor({17, 2, 6, 6})), plain(someTensor({17, 2, 6, 6})));
  EXPECT_NE(net.summary({{f32, {2, 2, 6, 6}}}).find("f32[2, 3]"), std::string::npos);
}

TEST(OnnxTrainable, ThrowsWhenMovedFrom) {
  const ModelOnDisk file(smallNet());
  onnx::Model net = onnx::load(file);
  const onnx::Model other = std::move(net);
  const Tensor x = zeros({1, 2, 6, 6});
  for (const auto &use :
       std::vector<std::function<void()>>{[&] { net(x); }, [&] { net.forward({x}); }, [&] { net.placeholders(); },
                                          [&] { (void)net.inputs(); }, [&] { (void)net.outputs(); }})
    EXPECT_THROW(use(), Error);
  EXPECT_EQ(other(x).shape(), (Shape{1, 3}));
}

TEST(OnnxTrainable, RefusesOtherInputs) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  auto refusal = [&](const Tensor &x) { return messageOf<ShapeError>([&] { net(x); }); };
  EXPECT_NE(refusal(zeros({1, 2, 6})).find("is f32[d1, 2, 6, 6], and f32[1, 2, 6] was given"), std::string::npos) << refusal(zeros({1, 2, 6}));
  EXPECT_NE(refusal(zeros({1, 2, 6, 6}, f64)).find("convert it with cast() first"), std::string::npos);
  EXPECT_NE(refusal(zeros({1, 2, 7, 6})).find("dimension open (dynamic)"), std::string::npos);
  EXPECT_NE(refusal(zeros({0, 2, 6, 6})).find("sizes are at least 1"), std::string::npos);
  EXPECT_NE(refusal(Tensor()).find("an empty tensor was given"), std::string::npos);
  EXPECT_NE(messageOf<ShapeError>([&] { net(std::vector<Tensor>{}); }).find("has 1 inputs, and 0 tensors were given"), std::string::npos);

  ModelBuilder b;
  b.input("x", {-1, 3}).input("y", {-1, 3}).output("z");
  b.node("Add", {"x", "y"}, {"z"});
  const ModelOnDisk two(b);
  const onnx::Model sum = onnx::load(two);
  EXPECT_NE(messageOf<ShapeError>([&] { sum({zeros({2, 3}), zeros({4, 3})}); }).find("but 'd1' is 2 in input 'x'"), std::string::npos);
  EXPECT_NE(messageOf<Error>([&] { sum(zeros({2, 3})); }).find("pass a std::vector<Tensor>"), std::string::npos);

  // What a node says against the sizes names the node.
  ModelBuilder c;
  c.input("x", {-1, -2}).output("y");
  c.floats("w", {4, 2}, someFloats(8));
  c.node("MatMul", {"x", "w"}, {"y"}, "/fc/MatMul");
  const ModelOnDisk open(c);
  const onnx::Model linear = onnx::load(open);
  EXPECT_EQ(linear(zeros({3, 4})).shape(), (Shape{3, 2}));
  EXPECT_NE(messageOf<ShapeError>([&] { linear(zeros({3, 5})); }).find("node '/fc/MatMul'"), std::string::npos);
  EXPECT_NE(messageOf<InputError>([] { onnx::load("no-such.onnx"); }).find("no-such.onnx"), std::string::npos);
}

TEST(OnnxTrainable, ErrorsOfOpsNameTheNode) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  b.floats("w", {4}, {1, 2, 3, 4});
  b.node("Mul", {"x", "w"}, {"m"}, "/scale/Mul");
  b.node("Log", {"m"}, {"y"}, "/head/Log");
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  const CheckNan check;
  const std::string message = messageOf<RuntimeError>([&] { net(from_span(std::vector<float>{1, -1, 1, 1}, {4})); });
  EXPECT_NE(message.find("node '/head/Log'"), std::string::npos) << message;
}

TEST(OnnxTrainable, ConvertedWeightsAreStoredSoAndComputedAsTheFileSays) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  const Tensor x = someTensor({2, 2, 6, 6}), before = net(x);
  net.to(bf16);
  EXPECT_EQ(net.parameters()[0].second.dtype(), bf16);
  expectNear(net(x), before, 2e-2f);
}

TEST(OnnxTrainable, PackagesOfIt) {
  const ModelOnDisk file(smallNet());
  const onnx::Model net = onnx::load(file);
  const std::string path = testing::TempDir() + "tressel-onnx-model.tsl";
  net.export_package(path, {.inputs = {{f32, {"batch", 2, 6, 6}, "image"}}, .outputs = {"logits"}});
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
  std::filesystem::remove(path);
}

//--- Control flow -----------------------------------------------------------------------------------------------------

TEST(OnnxTrainable, LossGoesBackThroughBranches) {
  ModelBuilder then, otherwise, b;
  then.node("Mul", {"x", "w"}, {"a"});
  then.outputs({"a"});
  otherwise.node("Sub", {"x", "w"}, {"c"});
  otherwise.outputs({"c"});
  b.input("x", {3}).input("flag", {}, ::onnx::TensorProto::BOOL).output("y");
  b.floats("w", {3}, {1, 2, 3});
  auto &branch = b.node("If", {"flag"}, {"y"});
  test::setBody(branch, "then_branch", then);
  test::setBody(branch, "else_branch", otherwise);
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  ASSERT_EQ(namesOf(net.parameters()), Names{"w"});
  const Tensor x = from_span(std::vector<float>{4, 5, 6}, {3});
  auto gradient = jit([net](Tensor x, Tensor flag) {
    return value_and_grad([&] { return sum(net({x, flag})[0]); }, net.parameters()).grads[0];
  });
  for (bool flag : {true, false}) {
    const std::vector<float> expected = flag ? std::vector<float>{4, 5, 6} : std::vector<float>{-1, -1, -1};
    EXPECT_EQ(gradient(x, tensor(flag)).to_vector<float>(), expected);
    auto [value, grads] = value_and_grad([&] { return sum(net({x, tensor(flag)})[0]); }, net.parameters());
    EXPECT_EQ(grads[0].to_vector<float>(), expected);
    EXPECT_EQ(value.item<float>(), flag ? 32 : 9);
  }
}

TEST(OnnxTrainable, RecurrentNetworksOfAnyLength) {
  ModelBuilder b;
  b.input("x", {-1, 2, 3}).output("last");
  b.floats("W", {1, 16, 3}, someFloats(48));
  b.floats("R", {1, 16, 4}, someFloats(64));
  b.floats("B", {1, 32}, someFloats(32));
  auto &lstm = b.node("LSTM", {"x", "W", "R", "B"}, {"", "h"});
  test::setInt(lstm, "hidden_size", 4);
  b.ints("axes", {0});
  b.node("Squeeze", {"h", "axes"}, {"last"});
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  EXPECT_EQ(namesOf(net.parameters()), (Names{"W", "R", "B"}));
  const Tensor x = someTensor({5, 2, 3}, 1);
  auto loss = [net](Tensor x) { return sum(square(net(x))); };
  auto [value, grads] = value_and_grad([&] { return loss(x); }, net.parameters());
  auto compiled = jit([&](Tensor x) { return value_and_grad([&] { return loss(x); }, net.parameters()).grads; });
  const auto same = compiled(x);
  for (size_t p = 0; p < 3; ++p) {
    expectNear(same[p], grads[p]);
    const Variable w = net.parameters()[p].second;
    const Tensor before = w.value(), direction = someTensor(w.shape(), 1);
    auto at = [&](float step) {
      w.assign(before + direction * step);
      return loss(x).item<float>();
    };
    const float slope = (at(0.01f) - at(-0.01f)) / 0.02f, expected = sum(grads[p] * direction).item<float>();
    w.assign(before);
    EXPECT_NEAR(slope, expected, 2e-3f * std::max(1.f, std::abs(expected)));
  }
  EXPECT_EQ(net(someTensor({9, 2, 3})).shape(), (Shape{2, 4}));
}

TEST(OnnxTrainable, LoopsWithWeightsFromOutside) {
  ModelBuilder body, b;
  body.input("i", {}, ::onnx::TensorProto::INT64).input("go", {}, ::onnx::TensorProto::BOOL).input("v", {2});
  body.node("Mul", {"v", "w"}, {"next"});
  body.node("Identity", {"go"}, {"again"});
  body.outputs({"again", "next"});
  b.input("x", {2}).output("y");
  b.floats("w", {2}, {2, 3});
  auto *count = b.model.mutable_graph()->add_initializer();
  count->set_name("n"), count->set_data_type(::onnx::TensorProto::INT64), count->add_int64_data(3);
  b.flag("true", true);
  auto &loop = b.node("Loop", {"n", "true", "x"}, {"y"});
  test::setBody(loop, "body", body);
  const ModelOnDisk file(b);
  const onnx::Model net = onnx::load(file);
  auto gradient = jit([net](Tensor x) { return value_and_grad([&] { return sum(net(x)); }, net.parameters()).grads[0]; });
  EXPECT_EQ(net(ones({2})).to_vector<float>(), (std::vector<float>{8, 27}));
  EXPECT_EQ(gradient(ones({2})).to_vector<float>(), (std::vector<float>{12, 27})); // 3 w^2
}

} // namespace
} // namespace tressel
