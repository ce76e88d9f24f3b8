#include "codegen/OpKernel.h"

#include "codegen/CostModel.h"
#include "codegen/cpu/CompileKernels.h"
#include "codegen/cpu/LoopCost.h"
#include "ir/op/Infer.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <charconv>

namespace tressel::codegen {
namespace {

std::string spell(const Shape &shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i)
    text += (i ? ", " : "") + dim::spell(shape[i]);
  return text + "]";
}

/// Every bit of a number counts: two attributes that print alike are not one kernel.
std::string spell(const op::Attr &attr) {
  return std::visit(
      [](const auto &v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return "-";
        } else if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return dim::spell(v);
        } else if constexpr (std::is_same_v<T, double>) {
          char text[32];
          return {text, std::to_chars(text, text + sizeof text, v, std::chars_format::hex).ptr};
        } else if constexpr (std::is_same_v<T, DType>) {
          return std::string(nameOf(v));
        } else if constexpr (std::is_same_v<T, std::string>) {
          return '"' + v + '"';
        } else if constexpr (std::is_same_v<T, Size>) {
          return dim::spell(v);
        } else {
          std::string text = "(";
          for (Size i : v)
            text += (text.size() > 1 ? " " : "") + dim::spell(i);
          return text + ")";
        }
      },
      attr);
}

/// Decompositions unfold into the values of a kernel. What stands in the way (a table of constants, an op that is no
/// loop nest) is thrown as NotOne.
struct NotOne {};

class GraphEmitter : public op::Emitter {
public:
  explicit GraphEmitter(KernelGraph &graph) : graph_(graph) {}

  static Ref refOf(int32_t value) { return reinterpret_cast<Ref>(static_cast<intptr_t>(value) + 1); }
  static int32_t valueOf(Ref ref) { return static_cast<int32_t>(reinterpret_cast<intptr_t>(ref) - 1); }

  std::vector<Ref> emit(const op::OpInfo &info, std::span<const Ref> inputs, const op::Attrs &given) override {
    op::Attrs attrs = given;
    if (!op::completeAttrs(info, attrs).empty())
      throw NotOne();
    std::vector<TensorType> types;
    for (Ref ref : inputs)
      types.push_back(typeOf(ref));
    // A library's work, or a kernel's that was written by hand: neither is better generated over unknown sizes.
    const bool forLibrary = op::isProduct(info.family);
    if (forLibrary || info.custom || info.hasEffects)
      throw NotOne();
    const op::Inferred inferred = op::inferTypes(info, types, attrs);
    if (!inferred || std::ranges::any_of(inferred.types, [](const TensorType &t) { return !dim::isKnown(t.shape); }))
      throw NotOne();
    std::optional<op::LoopForm> form;
    if (info.loopForm && inferred.types.size() == 1)
      form = info.loopForm(info, types, inferred.types, attrs);
    if (!form && info.decompose && ++depth_ < kDeepest) {
      auto results = info.decompose(info, *this, inputs, attrs);
      --depth_;
      return results;
    }
    // What moves elements is computed again for each place that it is read at, so a chain of such doubles with each.
    const bool moves = info.family != op::Family::Elementwise && info.family != op::Family::Reduction;
    if (!form || (numMoves_ += moves) > kMostMoves || graph_.ops.size() >= kMostOps)
      throw NotOne();
    KernelGraph::Op made;
    made.form = std::move(*form);
    for (Ref ref : inputs)
      made.operands.push_back(valueOf(ref));
    made.result = graph_.addValue(inferred.types.front());
    graph_.ops.push_back(std::move(made));
    return {refOf(graph_.ops.back().result)};
  }
  Ref constant(double value, DType type) override {
    const int32_t v = graph_.addValue({type, {}});
    const bool fits = value > -0x1p63 && value < 0x1p63;
    graph_.splats.push_back({v, value, fits ? static_cast<int64_t>(value) : 0});
    return refOf(v);
  }
  Ref constant(const op::HostTensor &) override { throw NotOne(); }
  TensorType typeOf(Ref value) override { return graph_.types[static_cast<size_t>(valueOf(value))]; }

private:
  static constexpr int kDeepest = 8; ///< of decompositions in each other
  static constexpr int kMostMoves = 3;
  static constexpr size_t kMostOps = 32;
  KernelGraph &graph_;
  int depth_ = 0, numMoves_ = 0;
};

std::optional<LoopPlan> planOf(const OpCall &call, std::vector<TensorType> &results) {
  KernelGraph graph;
  std::vector<op::Emitter::Ref> inputs;
  for (const TensorType &type : call.operands) {
    graph.inputs.push_back(graph.addValue(type));
    inputs.push_back(GraphEmitter::refOf(graph.inputs.back()));
  }
  GraphEmitter emitter(graph);
  try {
    for (op::Emitter::Ref ref : emitter.emit(*call.op, inputs, call.attrs)) {
      const int32_t value = GraphEmitter::valueOf(ref);
      // A result that is an operand or a constant as it is would take a copy: a program knows how.
      if (std::ranges::none_of(graph.ops, [&](const KernelGraph::Op &o) { return o.result == value; }))
        return std::nullopt;
      graph.results.push_back(value);
      results.push_back(graph.types[static_cast<size_t>(value)]);
    }
  } catch (const NotOne &) {
    return std::nullopt;
  } catch (const Error &) { // sizes that are only known later do not suit the op
    return std::nullopt;
  }
  return buildLoopPlan(graph);
}

} // namespace

std::string OpCall::str() const {
  std::string text = op->name;
  for (const TensorType &t : operands)
    text += " " + std::string(nameOf(t.dtype)) + spell(t.shape);
  for (const op::Attr &a : attrs)
    text += " " + spell(a);
  return text;
}

std::string OpCall::symbol() const {
  const std::string text = str();
  const std::string_view parts[] = {text};
  return "op_" + cacheKeyOf(parts).hex().substr(0, 24);
}

std::optional<OpKernel> planOpKernel(const OpCall &call, const std::string &cpu) {
  OpKernel kernel;
  std::optional<LoopPlan> plan = planOf(call, kernel.results);
  if (!plan)
    return std::nullopt;
  auto source = std::make_shared<KernelSource>();
  source->schedule = scheduleLoops(*plan, Target(cpu).features());
  source->signature.symbol = kernel.symbol = call.symbol();
  source->signature.symbols = call.symbols;
  kernel.range = source->schedule.range;
  kernel.floats = plan->floats();
  for (const LoopDim &d : plan->dims)
    kernel.points *= d.size;
  const int64_t units = std::max<int64_t>(1, dim::hint(source->schedule.range)), grain = std::max<int64_t>(1, source->schedule.grain);
  const double seconds =
      predictSeconds(costsOf(*plan, source->schedule, Target(cpu).level()), static_cast<double>(plan->bytes()), (units + grain - 1) / grain);
  const auto points = static_cast<double>(plan->parallelPoints()) * static_cast<double>(plan->reducedPoints());
  kernel.nsPerPoint = 1e9 * std::max(seconds, 0.0) / std::max(points, 1.0);
  source->plan = std::move(*plan);
  kernel.source = std::move(source);
  return kernel;
}

std::vector<std::byte> compileOpKernels(std::span<const OpKernel> kernels, const std::string &cpu, ObjectCache *cache) {
  std::vector<KernelSource> sources;
  for (const OpKernel &kernel : kernels)
    sources.push_back(*kernel.source);
  return linkImage(compileKernels(sources, Target(cpu), cache));
}

} // namespace tressel::codegen
