// Runs every layer on random inputs, op by op, compiled, and from a package, checks that the three agree, and writes
// inputs, weights and results for the NumPy oracle: one safetensors file per case.
//   module-cases DIR
#include <tressel/runtime/Package.h>
#include <tressel/tressel.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

using namespace tressel;
using nlohmann::json;

namespace {

std::string folder;
int failures = 0;

void expectNear(const std::string &name, const char *what, const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
    for (size_t k = 0; k < x.size(); ++k)
      if (!(std::fabs(x[k] - y[k]) <= 2e-5 * (1 + std::fabs(x[k]))) && !(std::isnan(x[k]) && std::isnan(y[k]))) {
        std::printf("%s: %s: element %zu of result %zu is %g instead of %g\n", name.c_str(), what, k, i, y[k], x[k]);
        ++failures;
        return;
      }
  }
}

/// No value is one that formulas could forget: biases and means differ from 0, scales and variances from 1.
void randomize(const nn::ModuleHandle &module) {
  uint64_t seed = 100;
  for (const auto &named : {module.parameters(), module.buffers()})
    for (const auto &[name, variable] : named) {
      Tensor v = rng::normal(variable.shape(), seed++, 0, 0.5);
      variable.assign(cast(name.ends_with("running_var") ? abs(v) + 0.5 : v, variable.dtype()));
    }
}

std::vector<Tensor> runPackage(const std::string &path, const std::vector<Tensor> &inputs) {
  const runtime::Package package = runtime::Package::open(path);
  runtime::Context context = package.context();
  std::vector<Tensor> outputs;
  std::vector<const void *> in;
  std::vector<void *> out;
  for (const Tensor &t : inputs)
    in.push_back(t.data());
  for (const auto &output : package.schedule().outputs) {
    outputs.push_back(zeros(output.type.shape, output.type.dtype));
    out.push_back(const_cast<void *>(outputs.back().data()));
  }
  context.run(in, out);
  return outputs;
}

struct CaseOptions {
  bool train = false;
};

/// `config` is what the oracle needs to know beside shapes: "kind", and options.
template <typename M, typename... Inputs>
void check(const std::string &name, const json &config, const CaseOptions &options, const M &module,
           const Inputs &...inputs) {
  const std::vector<Tensor> in{inputs...};
  std::vector<TensorSpec> types;
  for (const Tensor &t : in)
    types.emplace_back(t.type());
  module.initialize(types, 1);
  randomize(module);
  std::map<std::string, Tensor> tensors;
  for (const auto &named : {module.parameters(), module.buffers()})
    for (const auto &[path, variable] : named)
      tensors.emplace("weight." + path, variable.value());
  TrainScope mode(options.train);

  const M eager = module.clone(), compiled = module.clone();
  const std::vector<Tensor> results = nn::detail::tensorsOf(eager(inputs...));
  compiled.hybridize();
  const std::vector<Tensor> again = nn::detail::tensorsOf(compiled(inputs...));
  expectNear(name, "compiled", results, again);
  const nn::NamedParameters after = eager.buffers(), afterCompiled = compiled.buffers();
  for (size_t i = 0; i < after.size(); ++i) {
    expectNear(name, "compiled statistics", {after[i].second.value()}, {afterCompiled[i].second.value()});
    tensors.emplace("after." + after[i].first, after[i].second.value());
  }
  const std::string package = folder + "/" + name + ".tsl";
  module.export_package(package, {.inputs = types});
  expectNear(name, "package", results, runPackage(package, in));
  std::filesystem::remove(package);

  for (size_t i = 0; i < in.size(); ++i)
    tensors.emplace("in." + std::to_string(i), in[i]);
  for (size_t i = 0; i < results.size(); ++i)
    tensors.emplace("out." + std::to_string(i), results[i]);
  save_safetensors(folder + "/" + name + ".safetensors", tensors, {{"config", config.dump()}});
}
template <typename M, typename... Inputs>
void check(const std::string &name, const json &config, const M &module, const Inputs &...inputs) {
  check(name, config, CaseOptions{}, module, inputs...);
}

struct Attention : nn::Module<Attention> {
  explicit Attention(nn::AttentionOptions options) : inner(child("m", nn::MultiHeadAttention(8, 2, options))) {}
  Tensor forward(Tensor q, Tensor k, Tensor scores, Tensor keys) const {
    return inner(q, k, k, nn::AttentionMasks{scores, keys});
  }
  nn::MultiHeadAttention inner;
};
struct StatefulLSTM : nn::Module<StatefulLSTM> {
  explicit StatefulLSTM(nn::RecurrentOptions options) : inner(child("m", nn::LSTM(3, options))) {}
  nn::LSTMOutput forward(Tensor x, Tensor h, Tensor c) const { return inner(x, nn::LSTMState{h, c}); }
  nn::LSTM inner;
};
struct StatefulGRU : nn::Module<StatefulGRU> {
  explicit StatefulGRU(nn::RecurrentOptions options) : inner(child("m", nn::GRU(3, options))) {}
  nn::GRUOutput forward(Tensor x, Tensor h) const { return inner(x, std::optional<Tensor>(h)); }
  nn::GRU inner;
};

Tensor random(const Shape &shape, uint64_t seed = 7) { return rng::normal(shape, seed, 0.3, 1.2); }

void convolutions() {
  check("conv1d", {{"kind", "conv"}, {"stride", {2}}, {"pad", {{1, 1}}}, {"dilation", {2}}, {"groups", 2}},
        nn::Conv1d(4, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}), random({2, 6, 11}));
  check("conv2d",
        {{"kind", "conv"}, {"stride", {1, 2}}, {"pad", {{0, 0}, {2, 2}}}, {"dilation", {1, 1}}, {"groups", 1}},
        nn::Conv2d(3, {2, 3}, {.stride = {1, 2}, .padding = {0, 2}}), random({2, 2, 5, 6}));
  check("conv2d-same",
        {{"kind", "conv"}, {"stride", {1, 1}}, {"pad", {{1, 2}, {2, 2}}}, {"dilation", {1, 2}}, {"groups", 1}},
        nn::Conv2d(2, {4, 3}, {.padding = "same", .dilation = {1, 2}}), random({1, 2, 5, 6}));
  check("conv3d",
        {{"kind", "conv"},
         {"stride", {1, 1, 2}},
         {"pad", {{1, 1}, {0, 0}, {1, 1}}},
         {"dilation", {1, 1, 1}},
         {"groups", 1}},
        nn::Conv3d(3, {2, 1, 3}, {.stride = {1, 1, 2}, .padding = {1, 0, 1}, .bias = false}), random({1, 2, 3, 4, 5}));
}

void transposedConvolutions() {
  auto config = [](json stride, json pad, json more, json dilation, int groups) -> json {
    return {{"kind", "conv-transpose"}, {"stride", stride}, {"pad", pad}, {"more", more},
            {"dilation", dilation},     {"groups", groups}};
  };
  check("conv-transpose1d", config({3}, {1}, {2}, {1}, 1),
        nn::ConvTranspose1d(4, 4, {.stride = 3, .padding = 1, .output_padding = 2}), random({2, 3, 5}));
  check(
      "conv-transpose2d", config({2, 1}, {0, 2}, {1, 0}, {1, 2}, 2),
      nn::ConvTranspose2d(
          4, {3, 2}, {.stride = {2, 1}, .padding = {0, 2}, .output_padding = {1, 0}, .dilation = {1, 2}, .groups = 2}),
      random({2, 6, 4, 5}));
  check("conv-transpose3d", config({1, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}, 1),
        nn::ConvTranspose3d(2, {1, 2, 3}, {.stride = {1, 2, 2}, .bias = false}), random({1, 3, 2, 3, 4}));
}

void pools() {
  check("max-pool1d", {{"kind", "pool"}, {"max", true}, {"window", {3}}, {"stride", {2}}, {"pad", {1}}},
        nn::MaxPool1d(3, 2, 1), random({2, 3, 9}));
  check("max-pool3d",
        {{"kind", "pool"}, {"max", true}, {"window", {2, 2, 2}}, {"stride", {2, 2, 2}}, {"pad", {0, 0, 0}}},
        nn::MaxPool3d(2), random({1, 2, 4, 5, 6}));
  check("avg-pool2d", {{"kind", "pool"}, {"window", {3, 2}}, {"stride", {3, 2}}, {"pad", {1, 0}}},
        nn::AvgPool2d({3, 2}, 0, {1, 0}), random({2, 3, 6, 6}));
  check("avg-pool2d-inside",
        {{"kind", "pool"}, {"window", {3, 3}}, {"stride", {2, 2}}, {"pad", {1, 1}}, {"inside", true}},
        nn::AvgPool2d(3, 2, 1, {.count_padding = false}), random({2, 3, 6, 6}));
  check("adaptive-uneven", {{"kind", "adaptive"}, {"out", {3, 4}}}, nn::AdaptiveAvgPool2d({3, 4}),
        random({2, 3, 7, 6}));
  check("adaptive-even", {{"kind", "adaptive"}, {"out", {2, 3, 1}}}, nn::AdaptiveAvgPool3d({2, 3, 1}),
        random({1, 2, 4, 6, 5}));
  check("global-avg", {{"kind", "global"}, {"max", false}}, nn::GlobalAvgPool(), random({2, 3, 4, 5}));
  check("global-max", {{"kind", "global"}, {"max", true}}, nn::GlobalMaxPool(), random({2, 3, 4}));
}

void basics() {
  check("dense", {{"kind", "dense"}}, nn::Dense(4, tanh), random({2, 3, 5}));
  check("embedding", {{"kind", "embedding"}}, nn::Embedding(7, 3), tensor({{0, 6, 3}, {2, 2, 1}}));
  check("positions", {{"kind", "positions"}}, nn::PositionalEmbedding(9), random({2, 5, 4}));
  check("flatten", {{"kind", "flatten"}}, nn::Flatten(), random({3, 2, 4}));
  check("prelu", {{"kind", "prelu"}}, nn::PRelu(true), random({2, 3, 4}));
  check("leaky-relu", {{"kind", "leaky"}, {"slope", 0.1}}, nn::LeakyRelu(0.1), random({6}));
  check("elu", {{"kind", "elu"}, {"alpha", 0.5}}, nn::Elu(0.5), random({6}));
  check("softmax", {{"kind", "softmax"}, {"axis", 1}}, nn::Softmax(1), random({2, 3, 4}));
}

void norms() {
  const json batch = {{"kind", "batch-norm"}, {"epsilon", 1e-3}, {"momentum", 0.25}, {"train", false}};
  json train = batch;
  train["train"] = true;
  check("batch-norm", batch, nn::BatchNorm({.epsilon = 1e-3, .momentum = 0.25}), random({3, 4, 5}));
  check("batch-norm-train", train, {.train = true}, nn::BatchNorm({.epsilon = 1e-3, .momentum = 0.25}),
        random({3, 4, 5, 2}));
  check("batch-norm-train-plain", train, {.train = true},
        nn::BatchNorm({.epsilon = 1e-3, .momentum = 0.25, .affine = false}), random({6, 4}));
  check("layer-norm", {{"kind", "layer-norm"}, {"axes", 1}}, nn::LayerNorm(), random({3, 4, 5}));
  check("layer-norm-2", {{"kind", "layer-norm"}, {"axes", 2}}, nn::LayerNorm({.axes = 2}), random({3, 4, 5}));
  check("layer-norm-plain", {{"kind", "layer-norm"}, {"axes", 1}}, nn::LayerNorm({.affine = false}), random({3, 5}));
  check("rms-norm", {{"kind", "rms-norm"}}, nn::RMSNorm(), random({3, 4, 5}));
  check("group-norm", {{"kind", "group-norm"}, {"groups", 3}}, nn::GroupNorm(3), random({2, 6, 3, 2}));
  check("instance-norm", {{"kind", "group-norm"}, {"groups", 4}}, nn::InstanceNorm(), random({2, 4, 5}));
  check("instance-norm-affine", {{"kind", "group-norm"}, {"groups", 4}}, nn::InstanceNorm({.affine = true}),
        random({2, 4, 3, 3}));
}

void attention() {
  const Tensor x = random({2, 5, 8}), keys = random({2, 4, 6}, 8);
  check("attention", {{"kind", "attention"}, {"heads", 2}}, nn::MultiHeadAttention(8, 2), x);
  check("attention-causal", {{"kind", "attention"}, {"heads", 4}, {"causal", true}},
        nn::MultiHeadAttention(8, 4, {.bias = false, .causal = true}), x);
  const Tensor valid = tensor({{1, 1, 0, 1}, {1, 0, 0, 0}}) > 0;
  check("attention-masks", {{"kind", "attention"}, {"heads", 2}, {"prefix", "m."}}, Attention({}), x, keys,
        random({5, 4}, 9), valid);
  check("attention-bool-mask", {{"kind", "attention"}, {"heads", 2}, {"prefix", "m."}}, Attention({}), x, keys,
        random({2, 2, 5, 4}, 10) > -2, valid);
  for (bool pre : {false, true})
    check(pre ? "encoder-pre" : "encoder-post", {{"kind", "encoder"}, {"heads", 2}, {"pre", pre}, {"causal", pre}},
          nn::TransformerEncoderLayer(8, 2, 12, {.pre_norm = pre, .causal = pre}), x);
}

void recurrent() {
  const Tensor x = random({4, 2, 5});
  check("lstm-cell", {{"kind", "lstm-cell"}}, nn::LSTMCell(3), random({2, 5}));
  check("gru-cell", {{"kind", "gru-cell"}}, nn::GRUCell(3), random({2, 5}));
  check("lstm", {{"kind", "lstm"}, {"layers", 1}}, nn::LSTM(3), x);
  check("gru", {{"kind", "gru"}, {"layers", 1}}, nn::GRU(3), x);
  const nn::RecurrentOptions deep{.layers = 2, .bidirectional = true, .batch_first = true};
  const json deepConfig = {{"layers", 2}, {"bidirectional", true}, {"batch_first", true}, {"prefix", "m."}};
  json lstm = deepConfig, gru = deepConfig;
  lstm["kind"] = "lstm";
  gru["kind"] = "gru";
  check("lstm-deep", lstm, StatefulLSTM(deep), random({2, 4, 5}), random({4, 2, 3}, 8), random({4, 2, 3}, 9));
  check("gru-deep", gru, StatefulGRU(deep), random({2, 4, 5}), random({4, 2, 3}, 8));
  check("lstm-no-bias", {{"kind", "lstm"}, {"layers", 1}}, nn::LSTM(3, {.bias = false}), x);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: module-cases DIR\n");
    return 2;
  }
  folder = argv[1];
  basics();
  convolutions();
  transposedConvolutions();
  pools();
  norms();
  attention();
  recurrent();
  return failures ? 1 : 0;
}
