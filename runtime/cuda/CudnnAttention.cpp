#include "CudnnAttention.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <climits>
#include <cmath>
#include <limits>

namespace tressel::runtime::cuda {
namespace {

enum Id : int64_t { kQ = CudnnKernel::kResidual + 1, kK, kV, kMask, kScale, kHidden };
constexpr int64_t kSizeStep = 8; // elements, that sizes of heads are multiples of
// What cudnn-frontend keeps from versions of the library.
constexpr size_t kFirstFaulty = 91000, kLastFaulty = 91001; // attention is wrong
constexpr size_t kInfinityFrom = 91000;                     // scores may be -infinity

} // namespace

CudnnAttention::CudnnAttention(const KernelDesc &desc, const json::Value &params, const json::Value &call,
                               std::shared_ptr<const GpuKernel> generated, const Cudnn &library,
                               Cudnn::CardHandle *handle, const Card &card, const Driver &driver)
    : CudnnKernel("attention", desc, std::move(generated), library, handle, card, driver) {
  double scale = 0;
  try {
    if (!parseDType(call.at("type").asString(), type_) || (type_ != f16 && type_ != bf16))
      throwError<InputError>("attention of ", call.at("type").asString(), " is not computed by cuDNN");
    const char *const names[kDims] = {"batch", "heads", "groups", "queries", "keys", "size", "width"};
    for (size_t d = 0; d < kDims; ++d)
      dims_[d] = sizeFrom(call.at(names[d]));
    causal_ = call.at("causal").asBool();
    scale = call.at("scale").asDouble();
    if (!std::isfinite(scale) || scale <= 0)
      throwError<InputError>("the scale of scores is no positive number");
    q_ = operandFrom(call.at("q")), k_ = operandFrom(call.at("k")), v_ = operandFrom(call.at("v"));
    result_ = operandFrom(call.at("result"));
    if (const json::Value *found = call.find("mask"))
      mask_ = {operandFrom(found->at("buffer")), found->at("by_batch").asBool(), found->at("by_head").asBool(),
               found->at("by_query").asBool()};
    readSymbols(params);
  } catch (const InputError &problem) {
    refuseDescription(problem.message());
  }
  reads_ = {{kQ, q_}, {kK, k_}, {kV, v_}};
  if (mask_)
    reads_.emplace_back(kMask, mask_->operand);
  for (const auto &[id, operand] : reads_)
    operands_.push_back(operand);
  operands_.push_back(result_);
  numbers_ = {{kScale, static_cast<float>(scale)}};
  if (causal_)
    numbers_.emplace_back(kHidden, library_.version < kInfinityFrom ? std::numeric_limits<float>::lowest()
                                                                    : -std::numeric_limits<float>::infinity());
}

//--- Numbers ----------------------------------------------------------------------------------------------------------
std::optional<CudnnAttention::Numbers> CudnnAttention::numbersOf(std::span<const int64_t> scalars) const {
  const dim::Values values = valuesOf(scalars);
  Numbers n{};
  for (size_t d = 0; d < kDims; ++d) {
    try {
      n[d] = numberOf(dims_[d], values);
    } catch (const Error &) { // a symbol that the launch does not carry
      noteGenerated("the launch does not carry the sizes of its attention");
      return std::nullopt;
    }
    if (n[d] < 1 || n[d] > INT_MAX) // sizes of 0 are the generated kernel's
      return std::nullopt;
  }
  return n;
}

bool CudnnAttention::isRefused(const Key &key, const Numbers &n) const {
  const char *why = nullptr;
  if (library_.version >= kFirstFaulty && library_.version <= kLastFaulty)
    why = "attention of cuDNN 9.10.0 and 9.10.1 is faulty";
  else if (mask_ && library_.version < kInfinityFrom)
    why = "cuDNN takes masks whose elements may be -infinity from 9.10.2 on";
  else if (n[kHeads] % n[kGroups] || n[kSize] % kSizeStep || n[kWidth] % kSizeStep)
    why = "cuDNN takes attention whose sizes of heads are multiples of 8";
  for (uint16_t alignment : key.alignments) // the library counts on it, whatever descriptors say
    if (alignment < CudnnGraph::kMostAlignment)
      why = "cuDNN takes operands of attention at addresses that are multiples of 16";
  if (why) {
    noteGenerated(why);
    return true;
  }
  // Strides of scores, which have no memory.
  return static_cast<__int128>(n[kBatch]) * n[kHeads] * n[kQueries] > INT64_MAX / n[kKeys];
}

std::array<int64_t, 4> CudnnAttention::maskDims(const Numbers &n) const {
  return {mask_->byBatch ? n[kBatch] : 1, mask_->byHead ? n[kHeads] : 1, mask_->byQuery ? n[kQueries] : 1, n[kKeys]};
}

void CudnnAttention::checkElements(const Numbers &n, const Call &call) const {
  const auto batch = static_cast<__int128>(n[kBatch]);
  needElements(call, q_, batch * n[kHeads] * n[kQueries] * n[kSize], type_);
  needElements(call, k_, batch * n[kGroups] * n[kKeys] * n[kSize], type_);
  needElements(call, v_, batch * n[kGroups] * n[kKeys] * n[kWidth], type_);
  needElements(call, result_, batch * n[kHeads] * n[kQueries] * n[kWidth], type_);
  if (mask_) {
    __int128 elements = 1;
    for (int64_t dim : maskDims(n))
      elements *= dim;
    needElements(call, mask_->operand, elements, type_);
  }
}

//--- Graphs -----------------------------------------------------------------------------------------------------------
void CudnnAttention::describe(CudnnGraph &graph, const Numbers &n) const {
  using Dims = std::array<int64_t, 4>;
  const dnn::DataType type = *dataType(type_);
  const Dims scoreDims{n[kBatch], n[kHeads], n[kQueries], n[kKeys]}, rowDims{n[kBatch], n[kHeads], n[kQueries], 1};
  auto rows = [&](int64_t id, const Dims &dims) -> const CudnnDescriptor & {
    return graph.tensor(id, type, CudnnGraph::kMostAlignment, dims);
  };
  auto scores = [&](dnn::DataType of = dnn::kF32) -> const CudnnDescriptor & { return graph.between(of, scoreDims); };
  auto then = [&](const CudnnGraph::Pointwise &what, const CudnnDescriptor &x,
                  const CudnnDescriptor &y) -> const CudnnDescriptor & { return graph.pointwise(what, x, y), y; };

  const CudnnDescriptor &q = rows(kQ, {n[kBatch], n[kHeads], n[kQueries], n[kSize]}),
                        &k = graph.tensor(kK, type, CudnnGraph::kMostAlignment,
                                          Dims{n[kBatch], n[kGroups], n[kSize], n[kKeys]}, // k^T
                                          Dims{n[kGroups] * n[kKeys] * n[kSize], n[kKeys] * n[kSize], 1, n[kSize]}),
                        &v = rows(kV, {n[kBatch], n[kGroups], n[kKeys], n[kWidth]}),
                        &result = rows(kResult, {n[kBatch], n[kHeads], n[kQueries], n[kWidth]});
  const CudnnDescriptor *x = &scores();
  graph.multiply(q, k, *x);
  x = &then({.mode = dnn::kMul, .other = &graph.number(kScale, 4)}, *x, scores());
  if (mask_)
    x = &then({.mode = dnn::kAdd, .other = &rows(kMask, maskDims(n))}, *x, scores());
  if (causal_) {
    const CudnnDescriptor &row = then({.mode = dnn::kIndex, .axis = 2}, *x, scores(dnn::kI32)),
                          &column = then({.mode = dnn::kIndex, .axis = 3}, *x, scores(dnn::kI32)),
                          &sees = then({.mode = dnn::kGreaterEqual, .computed = dnn::kBool, .other = &column}, row,
                                       scores(dnn::kBool));
    x = &then({.mode = dnn::kSelect, .other = &graph.number(kHidden, 4), .third = &sees}, *x, scores());
  }
  const CudnnDescriptor &most = graph.between(dnn::kF32, rowDims), &sum = graph.between(dnn::kF32, rowDims);
  graph.reduce(dnn::kMost, *x, most);
  const CudnnDescriptor &less = then({.mode = dnn::kSub, .other = &most}, *x, scores()),
                        &raised = then({.mode = dnn::kExp}, less, scores());
  graph.reduce(dnn::kSum, raised, sum);
  const CudnnDescriptor &log = then({.mode = dnn::kLog}, sum, graph.between(dnn::kF32, rowDims));
  graph.pointwise({.mode = dnn::kAdd, .other = &log}, most, graph.between(dnn::kF32, rowDims));
  graph.multiply(then({.mode = dnn::kDiv, .other = &sum}, raised, scores(type)), v, result);
}

//--- Plans ------------------------------------------------------------------------------------------------------------
std::unique_ptr<LibraryKernel::Plan> CudnnAttention::make(const Key &key, const Call &call) const {
  const auto n = numbersOf(call.scalars);
  if (!n)
    return nullptr;
  checkElements(*n, call);
  if (isRefused(key, *n) || writesWhatItReads(call))
    return nullptr;
  return planOf(call, problemOf(key, *n), concat((*n)[kHeads], " heads of ", (*n)[kSize]),
                [&](CudnnGraph &graph) { describe(graph, *n); });
}

std::string CudnnAttention::problemOf(const Key &key, const Numbers &n) const {
  std::string text = concat(LibraryKernel::problemOf(library_.version), ",attention,", nameOf(type_));
  for (int64_t number : n)
    text += concat(",", number);
  text += causal_ ? ",causal" : "";
  if (mask_)
    for (int64_t dim : maskDims(n))
      text += concat(",", dim);
  return text + (key.hasWorkspace ? ",workspace" : "");
}

} // namespace tressel::runtime::cuda
