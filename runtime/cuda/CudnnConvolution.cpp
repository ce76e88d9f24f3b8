#include "CudnnConvolution.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <climits>
#include <numeric>

namespace tressel::runtime::cuda {
namespace {

enum Id : int64_t { kImage = CudnnKernel::kResidual + 1, kWeights, kBias };

__int128 product(const std::vector<int64_t> &values) {
  return std::accumulate(values.begin(), values.end(), static_cast<__int128>(1),
                         [](__int128 all, int64_t value) { return all * value; });
}

} // namespace

CudnnConvolution::CudnnConvolution(const KernelDesc &desc, const json::Value &params, const json::Value &call,
                                   std::shared_ptr<const GpuKernel> generated, const Cudnn &library,
                                   Cudnn::CardHandle *handle, const Card &card, const Driver &driver)
    : CudnnKernel("convolution", desc, std::move(generated), library, handle, card, driver) {
  auto list = [&](std::string_view name) {
    std::vector<Size> sizes;
    for (const json::Value &value : call.at(name).items())
      sizes.push_back(sizeFrom(value));
    if (sizes.size() != 2 && sizes.size() != 3)
      throwError<InputError>("'", name, "' has ", sizes.size(), " sizes instead of 2 or 3");
    if (!in_.empty() && sizes.size() != in_.size())
      throwError<InputError>("'", name, "' has ", sizes.size(), " sizes and 'in' ", in_.size());
    return sizes;
  };
  try {
    if (!parseDType(call.at("type").asString(), type_) || !dataType(type_))
      throwError<InputError>("convolutions of ", call.at("type").asString(), " are not computed by cuDNN");
    const std::string layout = call.at("layout").asString();
    if (layout != "nchw" && layout != "nhwc")
      throwError<InputError>("'", layout, "' is no layout");
    channelsLast_ = layout == "nhwc";
    batch_ = sizeFrom(call.at("batch"));
    groups_ = call.at("groups").asInt();
    inChannels_ = call.at("in_channels").asInt(), outChannels_ = call.at("out_channels").asInt();
    if (groups_ < 1 || inChannels_ < 1 || outChannels_ < 1 || inChannels_ % groups_ || outChannels_ % groups_)
      throwError<InputError>(inChannels_, " and ", outChannels_, " channels do not make ", groups_, " groups");
    in_ = list("in"), out_ = list("out"), window_ = list("window");
    strides_ = list("strides"), dilations_ = list("dilations"), pad_ = list("pad");
    image_ = operandFrom(call.at("image")), weights_ = operandFrom(call.at("weights"));
    result_ = operandFrom(call.at("result"));
    if (const json::Value *found = call.find("bias"))
      bias_ = operandFrom(*found);
    if (const json::Value *found = call.find("residual"))
      residual_ = operandFrom(*found);
    if (const json::Value *found = call.find("alpha"))
      alpha_ = static_cast<float>(found->asDouble());
    if (const json::Value *found = call.find("relu"))
      relu_ = found->asBool();
    readSymbols(params);
  } catch (const InputError &problem) {
    refuseDescription(problem.message());
  }
  operands_ = {image_, weights_, residual_, bias_, result_};
  reads_ = {{kImage, image_}, {kWeights, weights_}};
  if (residual_)
    reads_.emplace_back(kResidual, *residual_);
  if (bias_)
    reads_.emplace_back(kBias, *bias_);
}

//--- Numbers ----------------------------------------------------------------------------------------------------------
std::optional<CudnnConvolution::Numbers> CudnnConvolution::numbersOf(std::span<const int64_t> scalars) const {
  const dim::Values values = valuesOf(scalars);
  Numbers n;
  try {
    n.batch = numberOf(batch_, values);
    for (const auto &[sizes, numbers] :
         {std::pair(&in_, &n.in), std::pair(&out_, &n.out), std::pair(&window_, &n.window),
          std::pair(&strides_, &n.strides), std::pair(&dilations_, &n.dilations), std::pair(&pad_, &n.pad)})
      for (const Size &size : *sizes)
        numbers->push_back(numberOf(size, values));
  } catch (const Error &) { // a symbol that the launch does not carry
    noteGenerated("the launch does not carry the sizes of its convolution");
    return std::nullopt;
  }
  // Sizes of 0 are the generated kernel's.
  bool isWhole = n.batch >= 1 && n.batch <= INT_MAX;
  for (const auto *list : {&n.in, &n.out, &n.window, &n.strides, &n.dilations})
    for (int64_t number : *list)
      isWhole &= number >= 1 && number <= INT_MAX;
  for (int64_t number : n.pad)
    isWhole &= number >= 0 && number <= INT_MAX;
  if (!isWhole)
    return std::nullopt;
  for (size_t d = 0; d < n.in.size(); ++d)
    if (const int64_t room = n.in[d] + 2 * n.pad[d] - n.dilations[d] * (n.window[d] - 1) - 1;
        room < 0 || room / n.strides[d] + 1 != n.out[d]) {
      noteGenerated("the sizes of its convolution are not what cuDNN makes of them");
      return std::nullopt;
    }
  return n;
}

void CudnnConvolution::checkElements(const Numbers &n, const Call &call) const {
  const __int128 result = product(n.out) * n.batch * outChannels_;
  needElements(call, image_, product(n.in) * n.batch * inChannels_, type_);
  needElements(call, weights_, product(n.window) * outChannels_ * (inChannels_ / groups_), type_);
  needElements(call, result_, result, type_);
  if (residual_)
    needElements(call, *residual_, result, type_);
  if (bias_)
    needElements(call, *bias_, outChannels_, type_);
}

std::vector<int64_t> CudnnConvolution::stridesOf(const std::vector<int64_t> &dims) const {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = channelsLast_ ? dims[1] : 1;
  for (size_t d = dims.size(); d-- > 2;)
    strides[d] = stride, stride *= dims[d];
  strides[1] = channelsLast_ ? 1 : stride;
  strides[0] = channelsLast_ ? stride : stride * dims[1];
  return strides;
}

//--- Graphs -----------------------------------------------------------------------------------------------------------
void CudnnConvolution::describe(CudnnGraph &graph, const Key &key, const Numbers &n) const {
  auto dimsOf = [](int64_t first, int64_t second, const std::vector<int64_t> &rest) {
    std::vector<int64_t> dims{first, second};
    dims.insert(dims.end(), rest.begin(), rest.end());
    return dims;
  };
  const dnn::DataType type = *dataType(type_);
  const std::vector<int64_t> imageDims = dimsOf(n.batch, inChannels_, n.in),
                             weightDims = dimsOf(outChannels_, inChannels_ / groups_, n.window),
                             resultDims = dimsOf(n.batch, outChannels_, n.out);
  // A window of one element has its weights in both layouts: then those are said to lie as the image does.
  std::vector<int64_t> weightStrides = stridesOf(weightDims);
  if (channelsLast_ && product(n.window) != 1) {
    int64_t stride = 1;
    for (size_t d = weightDims.size(); d-- > 0;)
      weightStrides[d] = stride, stride *= weightDims[d];
  }
  const CudnnDescriptor &image = graph.tensor(kImage, type, key.alignments[0], imageDims, stridesOf(imageDims)),
                        &weights = graph.tensor(kWeights, type, key.alignments[1], weightDims, weightStrides);

  const bool adds = residual_ || bias_;
  int operationsLeft = 1 + residual_.has_value() + bias_.has_value() + relu_;
  auto following = [&]() -> const CudnnDescriptor & {
    return --operationsLeft == 0 ? graph.tensor(kResult, type, key.alignments[4], resultDims, stridesOf(resultDims))
                                 : graph.between(dnn::kF32, resultDims, stridesOf(resultDims));
  };
  const auto dimensions = static_cast<int64_t>(n.in.size());
  const CudnnDescriptor &convolution =
      graph.part(dnn::kConvolution, "describing the convolution")
          .set(dnn::kConvolutionType, dnn::kTypeDataType, dnn::kF32)
          .set(dnn::kConvolutionMode, dnn::kTypeConvolutionMode, dnn::kCrossCorrelation)
          .set(dnn::kConvolutionSpaces, dimensions)
          .set(dnn::kConvolutionPadLow, n.pad)
          .set(dnn::kConvolutionPadHigh, n.pad)
          .set(dnn::kConvolutionStrides, n.strides)
          .set(dnn::kConvolutionDilations, n.dilations)
          .finalize();
  const CudnnDescriptor *value = &following();
  graph.add(graph.part(dnn::kConvolutionForward, "describing the operation of the convolution")
                .set(dnn::kForwardX, image)
                .set(dnn::kForwardW, weights)
                .set(dnn::kForwardY, *value)
                .set(dnn::kForwardConvolution, convolution)
                .set(dnn::kForwardAlpha, adds ? 1 : alpha_)
                .set(dnn::kForwardBeta, 0.0f));
  auto pointwise = [&](const CudnnGraph::Pointwise &what) {
    const CudnnDescriptor &to = following();
    graph.pointwise(what, *value, to);
    value = &to;
  };
  if (residual_)
    pointwise({.mode = dnn::kAdd,
               .other = &graph.tensor(kResidual, type, key.alignments[2], resultDims, stridesOf(resultDims)),
               .factor = alpha_});
  if (bias_) {
    const std::vector<int64_t> dims = dimsOf(1, outChannels_, std::vector<int64_t>(n.in.size(), 1));
    pointwise({.mode = dnn::kAdd,
               .other = &graph.tensor(kBias, type, key.alignments[3], dims, stridesOf(dims)),
               .factor = residual_ ? 1 : alpha_});
  }
  if (relu_)
    pointwise({.mode = dnn::kRelu});
}

//--- Plans ------------------------------------------------------------------------------------------------------------
std::unique_ptr<LibraryKernel::Plan> CudnnConvolution::make(const Key &key, const Call &call) const {
  const auto n = numbersOf(call.scalars);
  if (!n)
    return nullptr;
  checkElements(*n, call);
  if (writesWhatItReads(call))
    return nullptr;
  return planOf(
      call, problemOf(key, *n),
      concat(channelsLast_ ? "channels last" : "channels first", ", ", inChannels_, " to ", outChannels_, " channels"),
      [&](CudnnGraph &graph) { describe(graph, key, *n); });
}

std::string CudnnConvolution::problemOf(const Key &key, const Numbers &n) const {
  std::string text =
      concat(LibraryKernel::problemOf(library_.version), ",", nameOf(type_), channelsLast_ ? ",nhwc," : ",nchw,",
             n.batch, ",", groups_, ",", inChannels_, ",", outChannels_);
  for (const auto *list : {&n.in, &n.window, &n.strides, &n.dilations, &n.pad})
    for (int64_t number : *list)
      text += concat(",", number);
  text += concat(bias_ ? ",bias" : "", relu_ ? ",relu" : "", residual_ ? ",residual" : "",
                 key.hasWorkspace ? ",workspace" : "");
  for (uint16_t alignment : key.alignments)
    text += concat(",", alignment);
  return text;
}

} // namespace tressel::runtime::cuda
