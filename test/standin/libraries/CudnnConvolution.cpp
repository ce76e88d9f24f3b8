// Convolutions of the stand-in cuDNN: a convolution forward with a chain of additions and relu behind it.
#include "CudnnGraph.h"

namespace tressel::standin::cudnn {
namespace {

struct Operation {
  bool isForward = false, isRelu = false, flips = false;
  Tensor x, w, y; ///< w: weights, or what is added
  std::vector<int64_t> low, strides, dilations;
  float alpha = 1, beta = 0, alpha2 = 1;
};
Operation operationOf(const Descriptor &d) {
  Operation o;
  if (d.kind == kForward) {
    const Descriptor &c = d.other(702);
    o.isForward = true;
    o.x = tensorOf(d.other(704)), o.w = tensorOf(d.other(703)), o.y = tensorOf(d.other(705));
    o.low = c.list(105), o.strides = c.list(103), o.dilations = c.list(102);
    o.flips = c.one(101) == 0;
    o.alpha = static_cast<float>(d.real(700, 1)), o.beta = static_cast<float>(d.real(701, 0));
    return o;
  }
  o.isRelu = d.other(750).one(0) == 100;
  o.x = tensorOf(d.other(751)), o.y = tensorOf(d.other(753));
  if (d.has(752))
    o.w = tensorOf(d.other(752));
  o.alpha = static_cast<float>(d.real(754, 1)), o.alpha2 = static_cast<float>(d.real(755, 1));
  return o;
}

/// In the order in which the heuristics propose them.
enum Engine : int64_t {
  kTf32 = 3,      ///< rounds inputs of f32
  kWinograd = 5,  ///< rounds more than its sums do
  kAtomic = 7,    ///< adds up in another order each time
  kHalfSums = 8,  ///< adds up in f16
  kTiled = 20,    ///< needs tensors at 16 bytes, and channels by fours
  kSplit = 21,    ///< adds up two halves of the channels apart from each other, in the workspace
  kPlain = 22,    ///< knob 12: 1 adds up backwards
  kFallback = 30, ///< that of the fallback mode
};
constexpr Engine kProposed[] = {kTf32, kWinograd, kAtomic, kHalfSums, kTiled, kSplit, kPlain};

float roundTo10Bits(float value) { // tf32's
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x0fff + (bits >> 13 & 1)) & ~uint32_t(0x1fff);
  std::memcpy(&value, &bits, 4);
  return value;
}

class Convolution final : public Graph {
public:
  explicit Convolution(const Descriptor &graph) {
    for (const Descriptor *each : cudnn::operationsOf(graph)) {
      isChain_ &= each->kind == (operations_.empty() ? kForward : kPointwiseOp);
      if (isChain_)
        operations_.push_back(operationOf(*each));
      if (each->kind == kPointwiseOp)
        isChain_ &= each->other(750).one(0) == kAdd || each->other(750).one(0) == kRelu;
    }
  }
  int check() const override {
    if (!isChain_)
      return refuse(kPattern, "the operations are no chain behind a convolution");
    std::set<int64_t> ids;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation &o = operations_[i];
      if (i > 0 && o.x.id != operations_[i - 1].y.id)
        return refuse(kPattern, "the operations are no chain behind a convolution");
      if (o.y.isVirtual != (i + 1 < operations_.size()))
        return refuse(kPattern, "what lies between operations is virtual, and the result is not");
      if ((i == 0 && o.x.isVirtual) || o.w.isVirtual)
        return refuse(kPattern, "nothing makes a virtual tensor");
      if (o.x.isByValue || o.w.isByValue || o.y.isByValue)
        return refuse(kPattern, "no tensor of a convolution is passed by value");
      for (const Tensor *t : {i == 0 ? &o.x : nullptr, o.w.isThere() ? &o.w : nullptr, &o.y})
        if (t && !ids.insert(t->id).second)
          return refuse(kDuplicated, "two tensors have one number");
    }
    if (operations_.front().beta != 0 && operations_.size() > 1)
      return refuse(kPattern, "a virtual result is added to");
    return kOk;
  }
  std::vector<Proposal> proposals(bool isFallback) const override {
    if (isFallback)
      return {{kFallback, {}}};
    std::vector<Proposal> all;
    for (const Engine engine : kProposed)
      if (hasOrder(engine))
        all.insert(all.end(), {{engine, 1}, {engine, 0}});
      else
        all.push_back({engine, {}});
    return all;
  }
  bool hasOrder(int64_t engine) const override { return engine == kPlain; }
  std::vector<int64_t> notesOf(int64_t engine) const override {
    switch (engine) {
    case kTf32:
      return {0, 1};
    case kWinograd:
      return {5, 6};
    case kAtomic:
      return {4};
    case kHalfSums:
      return {2};
    default:
      return {};
    }
  }
  const char *missing(int64_t engine) const override {
    const Operation &first = operations_.front();
    switch (engine) {
    case kTf32:
      return first.x.dataType == kF32 ? nullptr : "the engine is for f32";
    case kTiled:
      for (const Operation &o : operations_)
        for (const Tensor *t : {&o.x, &o.w, &o.y})
          if (t->isThere() && !t->isVirtual && t->alignment % 16)
            return "the engine needs tensors that are aligned better";
      return first.w.dims[1] % 4 ? "the engine needs channels by fours" : nullptr;
    case kSplit:
      return first.w.dims[1] < 2 ? "there is nothing to split" : nullptr;
    case kWinograd:
    case kAtomic:
    case kHalfSums:
    case kPlain:
    case kFallback:
      return nullptr;
    default:
      return "no such engine";
    }
  }
  int64_t workspaceOf(int64_t engine) const override {
    return engine == kSplit ? 8 * operations_.front().y.elements() : 0;
  }
  std::vector<std::pair<Tensor, bool>> touched() const override {
    std::vector<std::pair<Tensor, bool>> all;
    for (const Operation &o : operations_) {
      if (o.isForward)
        all.emplace_back(o.x, false);
      if (o.w.isThere())
        all.emplace_back(o.w, false);
      if (o.isForward && o.beta != 0)
        all.emplace_back(o.y, false);
      all.emplace_back(o.y, true);
    }
    return all;
  }
  void compute(const Launch &launch) const override {
    const Tensor &result = operations_.back().y;
    for (int64_t i = 0; i < result.elements(); ++i) {
      const std::vector<int64_t> index = result.indexOf(i);
      float sum = 0;
      for (const Operation &o : operations_) {
        if (o.isForward) {
          sum = o.alpha * convolve(launch, o, index, i);
          if (o.beta != 0)
            sum += o.beta * launch.value(o.y, index);
        } else if (o.isRelu)
          sum = sum > 0 ? sum : 0; // of NaN too
        else
          sum = o.alpha * sum + o.alpha2 * launch.value(o.w, index);
        if (o.y.isVirtual)
          sum = rounded(sum, o.y.number());
      }
      store(launch.place(result, index), result.number(), sum);
    }
  }

private:
  float term(const Launch &launch, const Operation &o, const std::vector<int64_t> &y, int64_t channel,
             std::vector<int64_t> &tap) const {
    const int64_t inGroup = o.w.dims[1], outGroup = o.w.dims[0] / (o.x.dims[1] / inGroup);
    std::vector<int64_t> x = y;
    x[1] = y[1] / outGroup * inGroup + channel;
    tap[0] = y[1], tap[1] = channel;
    std::vector<int64_t> w = tap;
    for (size_t s = 0; s < o.low.size(); ++s) {
      x[2 + s] = y[2 + s] * o.strides[s] - o.low[s] + tap[2 + s] * o.dilations[s];
      if (x[2 + s] < 0 || x[2 + s] >= o.x.dims[2 + s])
        return 0;
      if (o.flips)
        w[2 + s] = o.w.dims[2 + s] - 1 - tap[2 + s];
    }
    float image = launch.value(o.x, x), weight = launch.value(o.w, w);
    if (launch.engine == kTf32 || launch.engine == kWinograd)
      image = roundTo10Bits(image), weight = roundTo10Bits(weight);
    return image * weight;
  }
  float convolve(const Launch &launch, const Operation &o, const std::vector<int64_t> &y, int64_t number) const {
    const int64_t channels = o.w.dims[1];
    int64_t taps = 1;
    for (size_t s = 2; s < o.w.dims.size(); ++s)
      taps *= o.w.dims[s];
    std::vector<int64_t> tap(y.size());
    float parts[2] = {0, 0};
    for (int64_t i = 0; i < channels * taps; ++i) {
      int64_t left = launch.isBackwards ? channels * taps - 1 - i : i;
      const int64_t channel = left / taps;
      left %= taps;
      for (size_t s = y.size(); s-- > 2;)
        tap[s] = left % o.w.dims[s], left /= o.w.dims[s];
      float &part = parts[launch.engine == kSplit && channel >= channels / 2];
      part += term(launch, o, y, channel, tap);
      if (launch.engine == kHalfSums)
        part = rounded(part, Number::Half);
    }
    if (launch.engine == kSplit)
      return launch.sumByWorkspace(number, parts);
    return parts[0];
  }

  bool isChain_ = true;
  std::vector<Operation> operations_;
};

} // namespace

std::unique_ptr<Graph> convolutionGraph(const Descriptor &graph) { return std::make_unique<Convolution>(graph); }

int finalizeForward(const Descriptor &d) {
  const Operation o = operationOf(d);
  const Descriptor &c = d.other(702);
  const size_t rank = o.x.dims.size();
  if (rank != o.low.size() + 2 || o.w.dims.size() != rank || o.y.dims.size() != rank)
    return refuse(kShapeMismatch, "tensors of a convolution have other dimensions than it");
  if (o.x.dims[1] % o.w.dims[1] || o.w.dims[0] % (o.x.dims[1] / o.w.dims[1]))
    return refuse(kShapeMismatch, "channels make no groups");
  if (o.y.dims[0] != o.x.dims[0] || o.y.dims[1] != o.w.dims[0])
    return refuse(kShapeMismatch, "the result has another batch, or other channels");
  for (size_t s = 0; s < o.low.size(); ++s) {
    const int64_t room = o.x.dims[2 + s] + o.low[s] + c.list(104)[s] - (o.w.dims[2 + s] - 1) * o.dilations[s] - 1;
    if (room < 0 || room / o.strides[s] + 1 != o.y.dims[2 + s])
      return refuse(kShapeMismatch, "the result of a convolution has another size");
  }
  if (o.x.dataType != o.w.dataType || (!o.y.isVirtual && o.y.dataType != o.x.dataType))
    return refuse(kDataType, "the types of the tensors together");
  return kOk;
}

} // namespace tressel::standin::cudnn
