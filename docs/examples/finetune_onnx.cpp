// Fine-tunes an image network in ONNX to tell ten kinds of clothes apart: first a new head alone, then, from the same
// start, all of it.
//
//   finetune_onnx MODEL.onnx [FOLDER] [--features NAME] [--size N] [--images N] [--steps N] [--seed N]
//                 [--log FILE.jsonl] [--curve FILE.svg]
//
// MODEL takes images [batch, 3, height, width] of -1 to 1. --features names the value within it that the new head looks at, which
// has one row per image: by default that of PP-OCR's classifier of text lines that stand on their heads, a MobileNetV3 which saw
// nothing but text. FOLDER has the four files of Fashion-MNIST, of which --images are learned from.
#include <tressel/onnx.h>
#include <tressel/tressel.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

using namespace tressel;

namespace {

struct Options {
  std::string model, dir = "/usr/share/datasets/fashion-mnist", features = "reshape2_0.tmp_0";
  int64_t size = 48, images = 2000, steps = 600;
  uint64_t seed = 1;
  ProgressOptions shown;
};

struct Classifier : nn::Module<Classifier> {
  onnx::Model body;
  nn::Dense head = child("head", nn::Dense(10));
  int64_t size;
  explicit Classifier(const Options &o) : body(child("body", onnx::load(o.model, {.outputs = {o.features}}))), size(o.size) {}
  Tensor forward(Tensor gray) const {
    Tensor image = resize(gray, {gray.dim(0), 1, size, size});
    return head(body(broadcast_to(image * 2 - 1, {gray.dim(0), 3, size, size})));
  }
};

double accuracyOf(const Classifier &net, const data::Dataset<data::Sample> &set) {
  const metrics::Accuracy accuracy;
  auto look = jit([net, accuracy](data::Sample b) {
    const Tensor scores = net(b.image);
    accuracy.update(scores, b.label);
    return scores;
  });
  for (const data::Sample &b : data::Loader<data::Sample>(set, {.batch = 500}).epoch(0))
    look(b);
  return accuracy.value();
}

/// Trains what is not frozen. The weights of the model learn at a third of the head's rate.
double train(const Options &o, bool headAlone, const data::Dataset<data::Sample> &few, const data::Dataset<data::Sample> &test) {
  const Classifier net(o);
  net.initialize({{f32, {64, 1, 28, 28}}}, o.seed);
  if (headAlone)
    net["body"].freeze();
  const optim::AdamW opt(net.parameters(),
                         {.lr = optim::cosine(3e-3, o.steps, o.steps / 10), .groups = {{.match = {"body.*"}, .lr_scale = 0.3}}});
  auto step = jit([net, opt](data::Sample b) {
    auto [loss, gradients] = value_and_grad([&] { return softmax_cross_entropy(net(b.image), b.label); }, net.parameters());
    opt.update(gradients);
    return loss;
  });
  ProgressOptions shown = headAlone ? ProgressOptions() : o.shown;
  shown.label = headAlone ? "head alone" : "all of it";
  Progress progress(o.steps, std::move(shown));
  data::Loader<data::Sample> loader(few, {.batch = 64, .shuffle = true, .drop_last = true, .workers = 1, .seed = o.seed});
  for (int64_t epoch = 0, done = 0; done < o.steps; ++epoch)
    for (const data::Sample &b : loader.epoch(epoch)) {
      progress.step({{"loss", step(b)}});
      if (++done % std::max<int64_t>(1, o.steps / 4) == 0)
        progress.note({{"accuracy", accuracyOf(net, test)}});
      if (done == o.steps)
        break;
    }
  progress.finish();
  return accuracyOf(net, test);
}

int run(const Options &o) {
  const auto begin = std::chrono::steady_clock::now();
  const auto few = data::slice(data::samples(data::fashion_mnist(o.dir, true)), 0, o.images);
  const auto test = data::slice(data::samples(data::fashion_mnist(o.dir, false)), 0, 2000);
  const double head = train(o, true, few, test), all = train(o, false, few, test);
  std::printf("accuracy %.4f with a new head alone, %.4f fine-tuned, after %lld images and %.0f s\n", head, all,
              static_cast<long long>(o.images), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return all > head ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Options o;
  CLI::App app("Fine-tunes an image network in ONNX", "finetune_onnx");
  app.add_option("MODEL", o.model)->required();
  app.add_option("FOLDER", o.dir);
  app.add_option("--features", o.features, "the value within the model that the new head looks at");
  app.add_option("--size", o.size, "height and width that images are brought to")->check(CLI::Range(28, 512));
  app.add_option("--images", o.images)->check(CLI::Range(64, 60'000));
  app.add_option("--steps", o.steps)->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", o.seed);
  app.add_option("--log", o.shown.log, "figures of the fine-tuning, as JSON lines");
  app.add_option("--curve", o.shown.curve, "the same as a picture (SVG)");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const Error &error) {
    std::fprintf(stderr, "finetune_onnx: %s\n", error.what());
    return 2;
  }
}
