// A step of training as a package: run, saved and resumed by the runtime's C interface, with the files of save_state().
#include "Files.h"
#include "tressel/runtime/Package.h"
#include "tressel/runtime/tressel_runtime.h"

#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>

using namespace tressel;
using test::Folder;

namespace {

using Floats = std::vector<float>;

auto stepOf(nn::Sequential net, optim::Optimizer opt) {
  return jit([net, opt](Tensor x, Tensor label) mutable {
    auto [loss, gradients] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
    opt.update(gradients);
    return loss;
  });
}

/// A network with a buffer, random numbers and an optimizer, its step and a package of both.
struct Training {
  nn::Sequential net{nn::Dense(16, relu), nn::BatchNorm(), nn::Dropout(0.25), nn::Dense(3)};
  optim::Adam opt;
  decltype(stepOf(net, opt)) step;

  static nn::Sequential &initialized(nn::Sequential &net, uint64_t seed) {
    net.initialize({{f32, {8, 5}}}, seed);
    return net;
  }
  explicit Training(uint64_t seed = 1) : opt(initialized(net, seed).parameters(), {.lr = 0.01}), step(stepOf(net, opt)) {}
  TrainingState state() { return {{"net", net}, {"opt", opt}}; }
  void write(const std::string &path) {
    PackageBuilder package(named_states(state()));
    step.export_into(package, "step", {.inputs = {{f32, {8, 5}, "x"}, {i64, {8}, "label"}}, .outputs = {"loss"}, .cpu = "baseline"});
    net.export_into(package, "predict", {.inputs = {{f32, {"batch", 5}, "x"}}, .outputs = {"scores"}, .cpu = "baseline"});
    package.write(path);
  }
};

Floats batch(int number) {
  Floats x(40);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i * 7 + static_cast<size_t>(number) * 3));
  return x;
}
std::vector<int64_t> labels(int number) {
  std::vector<int64_t> label(8);
  for (size_t i = 0; i < label.size(); ++i)
    label[i] = (static_cast<int64_t>(i) + number) % 3;
  return label;
}

/// Packages and contexts behind C.
struct Opened {
  tressel_package *package = nullptr;
  std::vector<tressel_context *> contexts;
  explicit Opened(const std::string &path) {
    if (tressel_open(path.c_str(), &package))
      throw std::runtime_error(tressel_error());
  }
  ~Opened() {
    for (tressel_context *context : contexts)
      tressel_context_destroy(context);
    tressel_close(package);
  }
  tressel_context *context(const char *function, const tressel_context *states_of = nullptr, const char *machine = nullptr) {
    tressel_context_options options = {};
    options.struct_size = sizeof options, options.function = function, options.states_of = states_of, options.machine = machine;
    tressel_context *context = nullptr;
    if (tressel_context_create(package, &options, &context))
      throw std::runtime_error(tressel_error());
    contexts.push_back(context);
    return context;
  }
};
float step(tressel_context *context, int number) {
  Floats x = batch(number);
  std::vector<int64_t> label = labels(number);
  const int64_t sizes[] = {8, 5};
  const tressel_tensor in[] = {{TRESSEL_F32, 2, sizes, x.data()}, {TRESSEL_I64, 1, sizes, label.data()}};
  float loss = NAN;
  const tressel_tensor out = {TRESSEL_F32, 0, nullptr, &loss};
  EXPECT_EQ(tressel_run(context, in, 2, &out, 1), TRESSEL_OK) << tressel_error();
  return loss;
}
Floats predict(tressel_context *context) {
  Floats x = batch(100), scores(24);
  const int64_t in[] = {8, 5}, out[] = {8, 3};
  const tressel_tensor from = {TRESSEL_F32, 2, in, x.data()}, to = {TRESSEL_F32, 2, out, scores.data()};
  EXPECT_EQ(tressel_run(context, &from, 1, &to, 1), TRESSEL_OK) << tressel_error();
  return scores;
}
/// By name, as bytes.
std::map<std::string, std::string> valuesOf(tressel_context *context) {
  std::map<std::string, std::string> values;
  for (size_t i = 0; i < tressel_num_states(context); ++i) {
    tressel_value value;
    EXPECT_EQ(tressel_state(context, i, &value), TRESSEL_OK);
    TensorType type{static_cast<DType>(value.dtype), {}};
    for (int d = 0; d < value.rank; ++d)
      type.shape.push_back(value.sizes[d]);
    std::string bytes(static_cast<size_t>(type.bytes()), '\0');
    const tressel_tensor tensor = {value.dtype, value.rank, value.sizes, bytes.data()};
    EXPECT_EQ(tressel_read_state(context, i, &tensor), TRESSEL_OK) << tressel_error();
    values[value.name] = bytes;
  }
  return values;
}

class TrainingPackage : public testing::Test {
protected:
  void SetUp() override {
    path = folder / "train.tsl";
    training.write(path);
  }
  Folder folder;
  std::string path;
  Training training;
};

TEST_F(TrainingPackage, TrainsAsItsProgram) {
  Opened opened(path);
  tressel_context *context = opened.context("step");
  for (int i = 0; i < 20; ++i) {
    const float mine = training.step(from_span(batch(i), {8, 5}), from_span(labels(i), {8})).item<float>();
    EXPECT_NEAR(step(context, i), mine, 1e-4f * std::abs(mine)) << "step " << i;
  }
}

TEST_F(TrainingPackage, ResumesToTheSameBits) {
  Opened opened(path);
  std::vector<float> whole, parts;
  tressel_context *all = opened.context("step");
  for (int i = 0; i < 10; ++i)
    whole.push_back(step(all, i));
  const std::string file = folder / "run.safetensors";
  for (int part = 0; part < 5; ++part) {
    Opened again(path);
    tressel_context *context = again.context("step");
    if (part > 0)
      ASSERT_EQ(tressel_load_states(context, file.c_str()), TRESSEL_OK) << tressel_error();
    for (int i = 0; i < 2; ++i)
      parts.push_back(step(context, 2 * part + i));
    ASSERT_EQ(tressel_save_states(context, file.c_str()), TRESSEL_OK) << tressel_error();
    if (part == 4)
      EXPECT_EQ(valuesOf(context), valuesOf(all));
  }
  EXPECT_EQ(whole, parts);
}

TEST_F(TrainingPackage, PredictsWithWhatItHasLearned) {
  Opened opened(path);
  tressel_context *train = opened.context("step"), *shared = opened.context("predict", train), *apart = opened.context("predict");
  const Floats before = predict(shared);
  EXPECT_EQ(before, predict(apart));
  for (int i = 0; i < 5; ++i)
    step(train, i);
  const Floats after = predict(shared);
  EXPECT_NE(before, after);
  EXPECT_EQ(before, predict(apart));
  EXPECT_EQ(after, predict(shared));
  const std::string file = folder / "run.safetensors";
  ASSERT_EQ(tressel_save_states(shared, file.c_str()), TRESSEL_OK) << tressel_error();
  ASSERT_EQ(tressel_load_states(apart, file.c_str()), TRESSEL_OK) << tressel_error();
  EXPECT_EQ(after, predict(apart));

  // One state alone: the other context sees that too.
  const Floats zeros(48, 0.0f);
  size_t index = 0;
  tressel_value value;
  while (tressel_state(train, index, &value) == TRESSEL_OK && std::strcmp(value.name, "net.3.weight") != 0)
    ++index;
  ASSERT_STREQ(value.name, "net.3.weight");
  const tressel_tensor tensor = {TRESSEL_F32, value.rank, value.sizes, const_cast<float *>(zeros.data())};
  ASSERT_EQ(tressel_write_state(train, index, &tensor), TRESSEL_OK) << tressel_error();
  const Floats flat = predict(shared);
  for (size_t i = 3; i < flat.size(); ++i)
    EXPECT_EQ(flat[i], flat[i - 3]);
}

TEST_F(TrainingPackage, FromCpp) {
  auto package = runtime::Package::open(path);
  auto states = package.states();
  runtime::Context train = package.context({.states = states}, "step"), net = package.context({.states = states}, "predict");
  Opened opened(path);
  tressel_context *same = opened.context("step"), *samePredict = opened.context("predict", same);
  for (int i = 0; i < 3; ++i) {
    Floats x = batch(i), scores(24);
    std::vector<int64_t> label = labels(i);
    float loss = 0;
    const runtime::View in[] = {{x.data(), {f32, {8, 5}}}, {label.data(), {i64, {8}}}}, out[] = {{&loss, {f32, {}}}};
    train.run(std::span(in), std::span(out));
    EXPECT_EQ(loss, step(same, i));
    x = batch(100);
    const runtime::View from[] = {{x.data(), {f32, {8, 5}}}}, to[] = {{scores.data(), {f32, {8, 3}}}};
    net.run(std::span(from), std::span(to));
    EXPECT_EQ(scores, predict(samePredict));
  }
  EXPECT_THROW(states->set(0, {}), Error);
  Training other(2);
  other.net.replace("3", nn::Dense(4));
  other.net.initialize({{f32, {8, 5}}}, 1);
  other.net.export_package(folder / "other.tsl", {.inputs = {{f32, {8, 5}}}});
  EXPECT_THROW(runtime::Package::open(folder / "other.tsl").context({.states = states}), Error);
}

TEST_F(TrainingPackage, ItsFilesAreThoseOfSaveState) {
  Opened opened(path);
  tressel_context *context = opened.context("step");
  for (int i = 0; i < 4; ++i)
    step(context, i);
  const std::string file = folder / "run.safetensors";
  ASSERT_EQ(tressel_save_states(context, file.c_str()), TRESSEL_OK) << tressel_error();
  load_state(file, training.state());
  const float mine = training.step(from_span(batch(4), {8, 5}), from_span(labels(4), {8})).item<float>();
  EXPECT_NEAR(step(context, 4), mine, 1e-4f * std::abs(mine));

  save_state(file, training.state());
  Opened again(path);
  tressel_context *back = again.context("step");
  ASSERT_EQ(tressel_load_states(back, file.c_str()), TRESSEL_OK) << tressel_error();
  const float next = training.step(from_span(batch(5), {8, 5}), from_span(labels(5), {8})).item<float>();
  EXPECT_NEAR(step(back, 5), next, 1e-4f * std::abs(next));
}

TEST_F(TrainingPackage, OnAMachine) {
  Opened opened(path);
  tressel_context *here = opened.context("step"), *there = opened.context("step", nullptr, "cpu");
  const std::string file = folder / "run.safetensors";
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(step(here, i), step(there, i));
  EXPECT_EQ(valuesOf(here), valuesOf(there));
  ASSERT_EQ(tressel_save_states(there, file.c_str()), TRESSEL_OK) << tressel_error();
  const float next = step(here, 3);
  tressel_context *again = opened.context("step", nullptr, "cpu");
  ASSERT_EQ(tressel_load_states(again, file.c_str()), TRESSEL_OK) << tressel_error();
  EXPECT_EQ(step(again, 3), next);
  EXPECT_THROW(opened.context("predict", there), std::runtime_error);
}

TEST_F(TrainingPackage, BadFilesAndArguments) {
  Opened opened(path);
  tressel_context *context = opened.context("step");
  step(context, 0);
  const auto before = valuesOf(context);
  auto refuses = [&](tressel_status status, tressel_status want, const std::string &text) {
    EXPECT_EQ(status, want);
    EXPECT_NE(std::string(tressel_error()).find(text), std::string::npos) << tressel_error() << "\nlacks: " << text;
    EXPECT_EQ(valuesOf(context), before);
  };
  const std::string file = folder / "run.safetensors";
  refuses(tressel_load_states(context, file.c_str()), TRESSEL_BAD_PACKAGE, "run.safetensors: cannot be read");
  ASSERT_EQ(tressel_save_states(context, file.c_str()), TRESSEL_OK) << tressel_error();
  const std::string whole = test::get(file);
  for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
    test::put(folder / "cut", whole.substr(0, bytes));
    refuses(tressel_load_states(context, (folder / "cut").c_str()), TRESSEL_BAD_PACKAGE, "cut: ");
  }
  refuses(tressel_save_states(context, (folder / "none/run").c_str()), TRESSEL_RUN_FAILED, "none/run");
  refuses(tressel_save_states(context, nullptr), TRESSEL_INVALID_ARGUMENT, "path is null");
  refuses(tressel_load_states(nullptr, file.c_str()), TRESSEL_INVALID_ARGUMENT, "context is null");
  refuses(tressel_read_state(context, 1000, nullptr), TRESSEL_INVALID_ARGUMENT, "none is number 1000");
  refuses(tressel_read_state(context, 0, nullptr), TRESSEL_INVALID_ARGUMENT, "tensor is null");
  const tressel_tensor scalar = {TRESSEL_F16, 0, nullptr, nullptr};
  refuses(tressel_write_state(context, 0, &scalar), TRESSEL_INVALID_ARGUMENT, "given f16[]");

  // Of another optimizer, and of weights alone.
  Training other;
  save_state(file, {{"net", other.net}, {"opt", optim::Adam(other.net.parameters(), {.lr = 0.01, .beta1 = 0.8})}});
  refuses(tressel_load_states(context, file.c_str()), TRESSEL_BAD_PACKAGE, "holds the states of something else:\n  'tressel.part.opt' is 'Adam(beta1 0.8");
  save_state(file, {{"net", other.net}});
  refuses(tressel_load_states(context, file.c_str()), TRESSEL_BAD_PACKAGE, "is missing");
}

TEST(PackageBuilder, SaysWhatIsWrong) {
  const Folder folder;
  Training training;
  PackageBuilder package;
  EXPECT_THROW(package.write(folder / "a.tsl"), Error);
  training.net.export_into(package, "net", {.inputs = {{f32, {8, 5}}}});
  EXPECT_THROW(training.net.export_into(package, "net", {.inputs = {{f32, {8, 5}}}}), Error);
  EXPECT_THROW(PackageBuilder({.variables = {{"a", training.opt.states()[0].second}, {"a", training.opt.states()[0].second}}}), Error);
  data::Loader<data::Sample> loader(data::samples({zeros({4, 1, 2, 2}), from_span(std::vector<int64_t>(4), {4})}), {.batch = 2});
  EXPECT_THROW(named_states({{"loader", loader}}), Error);
}

} // namespace
