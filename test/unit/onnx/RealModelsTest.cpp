// Real models as modules: values as the compiled model gives them, gradients by finite differences.
#include <tressel/onnx.h>
#include <tressel/tressel.h>

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

namespace tressel {
namespace {

struct Case {
  const char *name, *file;
  std::map<std::string, int64_t> dims;
  const char *output = ""; ///< differentiable; "": the model's first
  std::map<std::string, int64_t> integers = {}; ///< inputs by name that are numbers of this value
};
std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

class RealModels : public testing::TestWithParam<Case> {};

int64_t sizeOf(const onnx::DeclaredShape &shape, size_t i, const std::map<std::string, int64_t> &dims) {
  if (shape.sizes[i] != kDynamic)
    return shape.sizes[i].number();
  const auto given = dims.find(shape.names[i]);
  return given == dims.end() ? 1 : given->second;
}

TEST_P(RealModels, GiveTheCompiledValuesAndRightGradients) {
  const Case &c = GetParam();
  const std::string path = std::string(TRESSEL_SOURCE_DIR "/build/models/") + c.file;
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there: ./dev setup fetches it";
  const onnx::Model net = onnx::load(path);
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  for (const onnx::Input &input : net.inputs()) {
    Shape shape;
    for (size_t i = 0; i < input.shape.sizes.size(); ++i)
      shape.push_back(sizeOf(input.shape, i, c.dims));
    if (const auto number = c.integers.find(input.name); number != c.integers.end()) {
      inputs.push_back(cast(zeros(shape, i64) + number->second, input.dtype));
      continue;
    }
    std::vector<float> values(static_cast<size_t>(shape.numElements()));
    for (float &v : values)
      v = static_cast<float>((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 40) / (1 << 24) - 0.5f;
    inputs.push_back(isFloat(input.dtype) ? from_span(values, shape) : cast((from_span(values, shape) + 0.5f) * 200, input.dtype));
  }
  const std::vector<Tensor> results = net(inputs);

  // Beside the program with constants.
  std::map<std::string, int64_t> dims;
  for (const onnx::Input &input : net.inputs())
    for (size_t i = 0; i < input.shape.names.size(); ++i)
      if (input.shape.sizes[i] == kDynamic)
        dims[input.shape.names[i]] = sizeOf(input.shape, i, c.dims);
  onnx::Compiled compiled = onnx::compile(path, {.dims = dims});
  std::vector<std::vector<std::byte>> outs;
  std::vector<const void *> in;
  std::vector<void *> out;
  for (const Tensor &t : inputs)
    in.push_back(t.data());
  for (const onnx::Port &port : compiled.outputs())
    out.push_back(outs.emplace_back(static_cast<size_t>(port.type.bytes())).data());
  compiled.run(in, out);
  ASSERT_EQ(results.size(), outs.size());
  for (size_t r = 0; r < results.size(); ++r) {
    ASSERT_EQ(results[r].type().str(), compiled.outputs()[r].type.str());
    if (!isFloat(results[r].dtype()))
      continue;
    const std::vector<float> mine = results[r].to_vector<float>();
    const auto *theirs = reinterpret_cast<const float *>(outs[r].data());
    for (size_t i = 0; i < mine.size(); ++i)
      ASSERT_NEAR(mine[i], theirs[i], 1e-4f * std::max(1.f, std::abs(theirs[i]))) << "output " << r << ", element " << i;
  }

  // The slope along all weights at once, in the direction that falls fastest.
  const onnx::Model part = *c.output ? onnx::load(path, {.outputs = {c.output}}) : net;
  ASSERT_FALSE(part.parameters().empty());
  std::vector<Tensor> few;
  for (const onnx::Input &input : part.inputs())
    for (size_t i = 0; i < net.inputs().size(); ++i)
      if (net.inputs()[i].name == input.name)
        few.push_back(inputs[i]);
  auto loss = jit([part](std::vector<Tensor> x) { return mean(square(part(x)[0])); });
  auto gradient = jit([part](std::vector<Tensor> x) {
    return value_and_grad([&] { return mean(square(part(x)[0])); }, part.parameters()).grads;
  });
  const std::vector<Tensor> grads = gradient(few);
  double squares = 0;
  for (const Tensor &g : grads) {
    const double s = sum(square(cast(g, f64))).item<double>();
    ASSERT_TRUE(std::isfinite(s));
    squares += s;
  }
  ASSERT_GT(squares, 0);
  std::vector<Tensor> before;
  for (const auto &[name, w] : part.parameters())
    before.push_back(w.value());
  auto at = [&](double step) {
    for (size_t p = 0; p < grads.size(); ++p)
      part.parameters()[p].second.assign(before[p] + cast(grads[p], before[p].dtype()) * step);
    return static_cast<double>(loss(few).item<float>());
  };
  // Long steps leave what is straight, short ones end in rounding: how long is too long depends on the model.
  double nearest = 1e30;
  for (const double share : {0.02, 0.003, 0.0005}) {
    const double step = share * std::abs(at(0)) / squares, ratio = (at(step) - at(-step)) / (2 * step) / squares;
    if (std::abs(ratio - 1) < std::abs(nearest - 1))
      nearest = ratio;
  }
  EXPECT_NEAR(nearest, 1, 0.05) << "squared norm of the gradient " << squares;
}

INSTANTIATE_TEST_SUITE_P(
    Onnx, RealModels,
    testing::Values(Case{"Timer", "openwakeword/timer_v0.1.onnx", {}, "input.7"}, Case{"HeyRhasspy", "openwakeword/hey_rhasspy_v0.1.onnx", {}},
                    Case{"Embedding", "openwakeword/embedding_model.onnx", {{"unk__314", 2}}},
                    Case{"Magika", "magika/model.onnx", {{"unk__214", 2}}, "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/Dense_1/AddV2:0"}, Case{"Silero", "silero/silero_vad_v6.onnx", {{"seq_len", 2}}},
                    Case{"SileroOfBranches", "openwakeword/silero_vad.onnx", {{"batch", 2}, {"sequence", 512}}, "", {{"sr", 16000}}},
                    Case{"BasicPitch", "basic-pitch/nmp.onnx", {}}, Case{"Angle", "ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx", {{"x.2", 48}, {"x.3", 96}}, "linear_1.tmp_1"},
                    Case{"Reader", "ppocr/ch_PP-OCRv4_rec_infer.onnx", {{"x.2", 48}, {"p2o.DynamicDimension.1", 96}}}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace tressel
