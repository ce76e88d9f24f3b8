// What kind of file is it? Magika's network tells from the first and last kilobyte.
//
//   filetype MODEL_DIR FILES...
#include "Magika.h"
#include "tressel/onnx.h"

#include <algorithm>
#include <cstdio>
#include <exception>

int main(int argc, char **argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: filetype MODEL_DIR FILES...\n"
                         "MODEL_DIR holds magika's model.onnx and config.min.json.\n");
    return 2;
  }
  const std::string folder = argv[1], model = folder + "/model.onnx";
  const MagikaConfig config = MagikaConfig::load(folder);

  std::vector<Features> features;
  std::vector<Verdict> verdicts(static_cast<size_t>(argc - 2));
  std::vector<size_t> asked; // files that the network is asked about
  for (int i = 2; i < argc; ++i) {
    features.push_back(extractFeatures(argv[i], config));
    if (features.back().label.empty())
      asked.push_back(features.size() - 1);
    else
      verdicts[features.size() - 1].label = features.back().label;
  }

  if (!asked.empty()) {
    // The model leaves the number of files open. It is compiled once, for batches of one size; the last is filled up.
    const size_t batch = std::min<size_t>(asked.size(), 16);
    tressel::onnx::DeclaredShape shape = tressel::onnx::declared_input(model, 0);
    tressel::onnx::CompileOptions options;
    if (!shape.sizes.empty() && shape.sizes[0] == tressel::kDynamic)
      options.dims[shape.names[0]] = static_cast<int64_t>(batch);
    tressel::onnx::Compiled net = tressel::onnx::compile(model, options);

    const size_t width = static_cast<size_t>(config.featureSize()), labels = config.labels.size();
    const int64_t rows = static_cast<int64_t>(batch);
    if (net.inputs().size() != 1 || net.outputs().size() != 1 ||
        net.inputs()[0].type != tressel::TensorType{tressel::i32, {rows, config.featureSize()}} ||
        net.outputs()[0].type != tressel::TensorType{tressel::f32, {rows, static_cast<int64_t>(labels)}}) {
      std::fprintf(stderr, "filetype: %s does not fit its config.min.json\n", model.c_str());
      return 1;
    }
    std::vector<int32_t> tokens(batch * width, config.paddingToken);
    std::vector<float> scores(batch * labels);
    for (size_t first = 0; first < asked.size(); first += batch) {
      const size_t count = std::min(batch, asked.size() - first);
      for (size_t k = 0; k < count; ++k)
        std::ranges::copy(features[asked[first + k]].tokens, tokens.begin() + static_cast<long>(k * width));
      const void *in = tokens.data();
      void *out = scores.data();
      net.run({&in, 1}, {&out, 1});
      for (size_t k = 0; k < count; ++k)
        verdicts[asked[first + k]] = judge(&scores[k * labels], features[asked[first + k]], config);
    }
  }

  int column = 4;
  for (int i = 2; i < argc; ++i)
    column = std::max(column, static_cast<int>(std::string(argv[i]).size()));
  std::printf("%-*s  %-14s  %s\n", column, "file", "type", "score");
  for (size_t i = 0; i < verdicts.size(); ++i)
    std::printf("%-*s  %-14s  %.4f\n", column, argv[i + 2], verdicts[i].label.c_str(), verdicts[i].score);
  return 0;
} catch (const std::exception &e) {
  std::fprintf(stderr, "filetype: %s\n", e.what());
  return 1;
}
