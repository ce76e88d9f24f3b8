// The programs of docs/modules.md.
#include <tressel/tressel.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

using namespace tressel;

struct Block : nn::Module<Block> {
  nn::Conv2d conv = child("conv", nn::Conv2d(8, 3, {.padding = "same"}));
  nn::BatchNorm norm = child("norm", nn::BatchNorm());
  Tensor forward(Tensor x) const { return relu(norm(conv(x))); }
};
struct Net : nn::Module<Net> {
  Block body = child("body", Block());
  nn::Dropout drop = child("drop", nn::Dropout(0.5));
  nn::Dense head = child("head", nn::Dense(10));
  Tensor forward(Tensor x) const { return head(drop(mean(body(x), {2, 3}))); }
};

static void require(bool ok, const char *what) {
  if (!ok) {
    std::fprintf(stderr, "modules: %s\n", what);
    std::exit(1);
  }
}

static void useIt(const std::string &dir) {
  Net net;
  net.initialize({{f32, {"batch", 1, 28, 28}}}, /*seed=*/1);
  Tensor x = rng::normal({4, 1, 28, 28}, 7);

  Tensor y = net(x); // op by op
  net.hybridize();   // from now on compiled
  y = net(x);
  net.export_package(dir + "/net.tsl", {.inputs = {{f32, {4, 1, 28, 28}, "image"}}, .outputs = {"logits"}});
  require(y.shape() == Shape{4, 10}, "shape");
  require(std::filesystem::exists(dir + "/net.tsl"), "package");
  std::cout << net.summary({{f32, {4, 1, 28, 28}}});
}

static void modes() {
  Net net;
  net.initialize({{f32, {4, 1, 28, 28}}}, 1);
  Tensor x = rng::normal({4, 1, 28, 28}, 7);

  {
    TrainScope train;
    net(x); // drops, normalizes by the batch, and moves the running statistics
  }
  net(x); // does none of it
  net.body.freeze();
  for (auto &[path, variable] : net.parameters())
    std::cout << path << (variable.frozen() ? " is frozen\n" : " is learned\n");
}

static void state() {
  Tensor x = ones({1000});
  Variable w(zeros({1000}), "w");
  auto step = jit([=](Tensor x) { w.assign(w.value() * 0.9 + x); }, {.name = "step"});
  Tensor before = w.value(); // holds the value
  step(x);                   // so it is copied once; `before` keeps what it had
  step(x);                   // in place
  require(before.to_vector<float>()[0] == 0 && w.value().to_vector<float>()[0] > 1.8f, "state");
}

static void tree() {
  Net net;
  net.initialize({{f32, {4, 1, 28, 28}}}, 1);

  nn::Dense wide(100, nullptr, {.weight_init = nn::init::orthogonal()});
  wide.initialize({{f32, {1, 8}}}, 2);
  net.replace("head", wide); // net.head(x) calls it too
  net["body.norm"].freeze(); // any module by its path
  net.apply(
      [](const std::string &path, const nn::ModuleHandle &m) { std::cout << path << ": " << m.type_name() << "\n"; });
  Net copy = net.clone(); // parameters of its own; plain copies share
  net.to(f16);            // parameters; statistics stay f32
  require(copy.parameters()[0].second.dtype() == f32 && net.parameters()[0].second.dtype() == f16, "types");
}

/// Adds to what it wraps: the fine-tuning of a frozen layer.
struct Adapter : nn::Module<Adapter> {
  nn::Dense base, down = child("down", nn::Dense(2, nullptr, {.bias = false}));
  nn::Dense up = child("up", nn::Dense(10, nullptr, {.bias = false, .weight_init = nn::init::zeros()}));
  explicit Adapter(const nn::Dense &wrapped) : base(child("base", wrapped)) { base.freeze(); }
  Tensor forward(Tensor x) const { return base(x) + up(down(x)); }
};

static void adapt() {
  Net net;
  net.initialize({{f32, {4, 1, 28, 28}}}, 1);
  Tensor x = rng::normal({4, 1, 28, 28}, 7), y = net(x);

  Adapter adapter(net.head);
  adapter.down.initialize({{f32, {1, 8}}}, 2);
  adapter.up.initialize({{f32, {1, 2}}}, 3);
  net.replace("head", adapter);
  require(net(x).to_vector<float>() == y.to_vector<float>(), "an adapter of zeros changes nothing");
}

static void weights(const std::string &dir) {
  Net net, other;
  net.initialize({{f32, {4, 1, 28, 28}}}, 1);
  other.initialize({{f32, {4, 1, 28, 28}}}, 2);
  std::map<std::string, Tensor> foreign; // as another framework would have written it
  for (const auto &named : {net.parameters(), net.buffers()})
    for (const auto &[path, variable] : named)
      foreign["module." + path] = variable.value();
  foreign["module.head.weight"] = transpose(foreign["module.head.weight"]);
  foreign["module.body.norm.weight"] = foreign.extract("module.body.norm.scale").mapped();
  foreign["module.body.norm.num_batches_tracked"] = tensor(int64_t(0));
  const std::string path = dir + "/net.safetensors";
  save_safetensors(path, foreign);

  LoadReport report = other.load_weights(path, {.rename = {{"module.", ""}},
                                                .rename_regex = {{R"(norm\.weight$)", "norm.scale"}},
                                                .skip = {"*.num_batches_tracked"},
                                                .transpose = {"head.weight"}});
  std::cout << report.str();
  require(report.loaded.size() == 8, "everything was loaded");
}

static void recurrent() {
  nn::LSTM lstm(16, {.layers = 2, .bidirectional = true, .batch_first = true});
  lstm.initialize({{f32, {3, 5, 8}}}, 1);
  auto [output, state] = lstm(rng::normal({3, 5, 8}, 1));
  std::cout << output.type().str() << " " << state.hidden.type().str() << "\n"; // f32[3, 5, 32] f32[4, 3, 16]

  nn::MultiHeadAttention attention(32, 4, {.causal = true});
  attention.initialize({{f32, {3, 5, 32}}}, 1);
  Tensor valid = tensor({{1, 1, 1, 1, 0}, {1, 1, 0, 0, 0}, {1, 1, 1, 1, 1}}) > 0;
  Tensor mixed = attention(output, output, output, nn::AttentionMasks{.keys = valid});
  require(mixed.shape() == output.shape(), "attention");
}

int main() {
  const std::string dir = std::filesystem::temp_directory_path() / "tressel-modules-example";
  std::filesystem::create_directories(dir);
  useIt(dir);
  modes();
  state();
  tree();
  adapt();
  weights(dir);
  recurrent();
  std::filesystem::remove_all(dir);
}
