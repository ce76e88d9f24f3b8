// Attention forward of the stand-in cuDNN: two products, and between them what turns scores into weights. Each
// operation is computed by itself, from what its descriptors say; what engines take is what NVIDIA's do.
//
// NVIDIA's engines know attention by its pattern, which has to have the logarithm of each row's sum and that added to
// its largest score, whether that is wanted or not.
#include "CudnnGraph.h"

#include <algorithm>
#include <cmath>

namespace tressel::standin::cudnn {
namespace {

struct Operation {
  Kind kind = kPointwiseOp;
  int64_t mode = 0, axis = 0; ///< mode: pointwise, or of a reduction
  float alpha = 1, alpha2 = 1;
  std::vector<Tensor> in;
  Tensor out;

  bool isPointwise(int64_t wanted) const { return kind == kPointwiseOp && mode == wanted; }
  bool isReduction(int64_t wanted) const { return kind == kReductionOp && mode == wanted; }
};
Operation operationOf(const Descriptor &d) {
  Operation o{.kind = d.kind};
  auto take = [&](std::initializer_list<int> inputs, int output) {
    for (int each : inputs)
      if (d.has(each))
        o.in.push_back(tensorOf(d.other(each)));
    o.out = tensorOf(d.other(output));
  };
  if (d.kind == kMatmulOp)
    take({1520, 1521}, 1522);
  else if (d.kind == kReductionOp)
    take({1610}, 1611), o.mode = d.other(1612).one(1600);
  else if (d.kind == kPointwiseOp) {
    take({751, 752, 758}, 753);
    o.mode = d.other(750).one(0), o.axis = d.other(750).one(9);
    o.alpha = static_cast<float>(d.real(754, 1)), o.alpha2 = static_cast<float>(d.real(755, 1));
  }
  return o;
}

/// In the order in which the heuristics propose them.
enum Engine : int64_t {
  kAtomic = 40,   ///< adds up in another order each time
  kHalfSums = 41, ///< adds up in f16
  kOrdered = 42,  ///< knob 12: 1 adds up backwards
  kSplit = 43,    ///< adds up two halves of the second product's terms apart from each other, in the workspace
  kFallback = 50, ///< that of the fallback mode
};

/// The tensors while a launch runs: elements in the order of dimensions.
using Values = std::map<int64_t, std::vector<float>>;

class Attention final : public Graph {
public:
  explicit Attention(const Descriptor &graph) {
    for (const Descriptor *each : operationsOf(graph))
      operations_.push_back(operationOf(*each));
  }
  int check() const override {
    std::map<int64_t, Tensor> known;
    std::set<int64_t> made;
    for (const Operation &o : operations_) {
      if (o.kind != kMatmulOp && o.kind != kPointwiseOp && o.kind != kReductionOp)
        return refuse(kPattern, "an operation that no engine knows");
      for (const Tensor &t : o.in)
        if (t.isVirtual && !made.contains(t.id))
          return refuse(kPattern, "nothing makes a virtual tensor");
      for (const Tensor &t : o.in)
        if (const auto [at, isNew] = known.emplace(t.id, t); !isNew && at->second != t)
          return refuse(kDuplicated, "two tensors have one number");
      if (!known.emplace(o.out.id, o.out).second)
        return refuse(kDuplicated, "two tensors have one number");
      if (o.out.isVirtual != (&o != &operations_.back()) || o.out.isByValue)
        return refuse(kPattern, "what lies between operations is virtual, and the result is not");
      made.insert(o.out.id);
    }
    return kOk;
  }
  std::vector<Proposal> proposals(bool isFallback) const override {
    if (isFallback)
      return {{kFallback, {}}};
    return {{kAtomic, {}}, {kHalfSums, {}}, {kOrdered, 1}, {kOrdered, 0}, {kSplit, {}}};
  }
  bool hasOrder(int64_t engine) const override { return engine == kOrdered; }
  std::vector<int64_t> notesOf(int64_t engine) const override {
    if (engine == kAtomic)
      return {0, 4};
    if (engine == kHalfSums)
      return {0, 2};
    return {0};
  }
  const char *missing(int64_t engine) const override {
    if (engine != kAtomic && engine != kHalfSums && engine != kOrdered && engine != kSplit && engine != kFallback)
      return "no such engine";
    if (const char *why = notThePattern())
      return why;
    const Tensor &q = first().in[0], &k = first().in[1], &v = last().in[1], &o = last().out;
    if (q.dims.size() != 4)
      return "attention has batch, heads, rows and columns";
    for (const Tensor *t : {&q, &k, &v, &o})
      if ((t->dataType != kF16 && t->dataType != kBf16) || t->dataType != q.dataType)
        return "the engine is for f16 and bf16";
    if (last().in[0].dataType != q.dataType)
      return "weights are rounded to the operands' type before the second product";
    if (q.dims[3] % 8 || v.dims[3] % 8 || q.dims[3] > 256 || v.dims[3] > 256)
      return "the sizes of heads are no multiples of 8, or beyond 256";
    if (q.strides[3] != 1 || k.strides[2] != 1 || v.strides[3] != 1 || o.strides[3] != 1)
      return "the elements of a head are not behind each other";
    for (const Tensor *t : {&q, &k, &v, &o})
      if (t->alignment % 16)
        return "the engine needs tensors that are aligned better";
    return engine == kSplit && v.dims[2] < 2 ? "there is nothing to split" : nullptr;
  }
  int64_t workspaceOf(int64_t engine) const override { return engine == kSplit ? 8 * last().out.elements() : 0; }
  std::vector<std::pair<Tensor, bool>> touched() const override {
    std::vector<std::pair<Tensor, bool>> all;
    for (const Operation &o : operations_) {
      for (const Tensor &t : o.in)
        all.emplace_back(t, false);
      all.emplace_back(o.out, true);
    }
    return all;
  }
  void compute(const Launch &launch) const override {
    Values values;
    for (const Operation &o : operations_) {
      for (const Tensor &t : o.in)
        if (auto &to = values[t.id]; to.empty())
          for (int64_t i = 0; i < t.elements(); ++i)
            to.push_back(t.isByValue ? launch.values.at(t.id) : launch.value(t, t.indexOf(i)));
      std::vector<float> made = o.kind == kMatmulOp      ? product(o, values, launch)
                                : o.kind == kReductionOp ? reduction(o, values)
                                                         : pointwise(o, values);
      if (o.out.dataType == kF16 || o.out.dataType == kBf16)
        for (float &value : made)
          value = rounded(value, o.out.number());
      values[o.out.id] = std::move(made);
    }
    const Tensor &result = last().out;
    for (int64_t i = 0; i < result.elements(); ++i)
      store(launch.place(result, result.indexOf(i)), result.number(), values.at(result.id)[static_cast<size_t>(i)]);
  }

private:
  const Operation &first() const { return operations_.front(); }
  const Operation &last() const { return operations_.back(); }

  const char *notThePattern() const {
    int64_t products = 0;
    for (const Operation &o : operations_)
      products += o.kind == kMatmulOp;
    if (products != 2 || last().kind != kMatmulOp)
      return "attention has a product at its begin and one at its end";
    // Backwards from the weights, then forwards to the logarithm that belongs to them.
    const Operation *divide = maker(last().in[0]);
    const Operation *raise = divide && divide->isPointwise(kDiv) ? maker(divide->in[0]) : nullptr;
    const Operation *sum = raise ? maker(divide->in[1]) : nullptr;
    const Operation *subtract = raise && raise->isPointwise(kExp) ? maker(raise->in[0]) : nullptr;
    const Operation *most = subtract && subtract->isPointwise(kSub) ? maker(subtract->in[1]) : nullptr;
    if (!most || !sum || !most->isReduction(kMost) || !sum->isReduction(kSum) || most->in[0].id != subtract->in[0].id ||
        sum->in[0].id != raise->out.id)
      return "what is between the products is no softmax";
    for (const Operation &o : operations_)
      if (o.isPointwise(kAdd) && o.in[0].id == most->out.id)
        if (const Operation *log = maker(o.in[1]); log && log->isPointwise(kLog) && log->in[0].id == sum->out.id)
          return nullptr;
    return "the logarithm of the sums is missing";
  }
  const Operation *maker(const Tensor &t) const {
    const auto at =
        std::find_if(operations_.begin(), operations_.end(), [&](const Operation &o) { return o.out.id == t.id; });
    return at == operations_.end() ? nullptr : &*at;
  }

  /// An element of a tensor whose dimensions of 1 are repeated. With fewer along a dimension, but not 1, neighbours of
  /// the index share them.
  static float at(const Values &values, const Tensor &t, const std::vector<int64_t> &index,
                  const std::vector<int64_t> &dims) {
    int64_t number = 0;
    for (size_t d = 0; d < t.dims.size(); ++d)
      number = number * t.dims[d] + index[d] / (dims[d] / t.dims[d]);
    return values.at(t.id)[static_cast<size_t>(number)];
  }

  std::vector<float> product(const Operation &o, const Values &values, const Launch &launch) const {
    const Tensor &a = o.in[0], &b = o.in[1], &c = o.out;
    const size_t rank = c.dims.size();
    const int64_t depth = a.dims[rank - 1];
    const bool splits = launch.engine == kSplit && &o == &last();
    std::vector<int64_t> bDims = c.dims;
    bDims[rank - 2] = depth;
    std::vector<float> made;
    for (int64_t i = 0; i < c.elements(); ++i) {
      std::vector<int64_t> left = c.indexOf(i), right = left;
      float parts[2] = {0, 0};
      for (int64_t n = 0; n < depth; ++n) {
        left[rank - 1] = right[rank - 2] = launch.isBackwards ? depth - 1 - n : n;
        float &part = parts[splits && n >= depth / 2];
        part += at(values, a, left, a.dims) * at(values, b, right, bDims);
        if (launch.engine == kHalfSums)
          part = rounded(part, Number::Half);
      }
      made.push_back(splits ? launch.sumByWorkspace(i, parts) : parts[0]);
    }
    return made;
  }
  static std::vector<float> reduction(const Operation &o, const Values &values) {
    const Tensor &x = o.in[0], &y = o.out;
    std::vector<float> made(static_cast<size_t>(y.elements()), o.mode == kMost ? -INFINITY : 0);
    for (int64_t i = 0; i < x.elements(); ++i) {
      const std::vector<int64_t> index = x.indexOf(i);
      int64_t number = 0;
      for (size_t d = 0; d < y.dims.size(); ++d)
        number = number * y.dims[d] + (y.dims[d] == 1 ? 0 : index[d]);
      float &to = made[static_cast<size_t>(number)];
      const float value = values.at(x.id)[static_cast<size_t>(i)];
      to = o.mode == kMost ? std::max(to, value) : to + value;
    }
    return made;
  }
  static std::vector<float> pointwise(const Operation &o, const Values &values) {
    std::vector<float> made;
    for (int64_t i = 0; i < o.out.elements(); ++i) {
      const std::vector<int64_t> index = o.out.indexOf(i);
      auto operand = [&](size_t number) { return at(values, o.in[number], index, o.out.dims); };
      const float x = operand(0), y = o.in.size() > 1 ? operand(1) : 0;
      switch (o.mode) {
      case kAdd:
        made.push_back(o.alpha * x + o.alpha2 * y);
        break;
      case kMul:
        made.push_back(x * y);
        break;
      case kDiv:
        made.push_back(x / y);
        break;
      case kSub:
        made.push_back(x - y);
        break;
      case kExp:
        made.push_back(std::exp(x));
        break;
      case kLog:
        made.push_back(std::log(x));
        break;
      case kRelu:
        made.push_back(x > 0 ? x : 0);
        break;
      case kGreaterEqual:
        made.push_back(x >= y);
        break;
      case kIndex:
        made.push_back(static_cast<float>(index[static_cast<size_t>(o.axis)]));
        break;
      default: // kSelect
        made.push_back(operand(2) != 0 ? x : y);
      }
    }
    return made;
  }

  std::vector<Operation> operations_;
};

} // namespace

std::unique_ptr<Graph> attentionGraph(const Descriptor &graph) { return std::make_unique<Attention>(graph); }

} // namespace tressel::standin::cudnn
