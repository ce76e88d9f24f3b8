#include "ir/op/CustomOp.h"

#include "ir/op/Infer.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <deque>
#include <mutex>

namespace tressel::op {
namespace {

/// The declared attributes, with the values of a call.
std::vector<runtime::CustomAttr> valuesOf(const runtime::CustomOp &op, const Attrs &attrs) {
  std::vector<runtime::CustomAttr> values = op.attrs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (const auto *n = std::get_if<int64_t>(&attrs[i]))
      values[i].value = *n;
    else if (const auto *f = std::get_if<double>(&attrs[i]))
      values[i].value = *f;
    else if (const auto *s = std::get_if<std::string>(&attrs[i]))
      values[i].value = *s;
    else if (const auto *list = std::get_if<Ints>(&attrs[i]))
      values[i].value = *list;
  }
  return values;
}

std::string plural(int n, const char *what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

Inferred inferCustom(const OpInfo &info, std::span<const TensorType> operands, const Attrs &attrs) {
  const runtime::CustomOp &op = *info.custom;
  const int n = static_cast<int>(operands.size());
  if (n < op.minInputs || n > op.maxInputs)
    return inferError(info, 0,
                      "takes " + (op.minInputs == op.maxInputs ? "" : std::to_string(op.minInputs) + " to ") +
                          plural(op.maxInputs, "operand") + ", got " + std::to_string(n),
                      operands);
  Inferred inferred;
  try {
    inferred.types = op.infer(operands, valuesOf(op, attrs));
  } catch (const Error &e) {
    return inferError(info, 0, e.message(), operands);
  } catch (const std::exception &e) {
    return inferError(info, 0, std::string("its shape inference threw: ") + e.what(), operands);
  }
  if (static_cast<int>(inferred.types.size()) != op.numResults)
    return inferError(info, 0,
                      "its shape inference gives " + plural(static_cast<int>(inferred.types.size()), "type") +
                          ", but the op is registered with " + plural(op.numResults, "result"),
                      operands);
  for (const TensorType &type : inferred.types)
    if (!fitsMemory(type.shape))
      return inferError(info, 0, "the result " + type.str() + " does not fit into memory", operands);
  return inferred;
}

/// Symbolic sizes count as typical ones.
Size flopsOfCustom(const OpInfo &info, std::span<const TensorType> operands, std::span<const TensorType> results,
                   const Attrs &attrs) {
  auto typical = [](std::span<const TensorType> types) {
    std::vector<TensorType> list(types.begin(), types.end());
    for (TensorType &type : list)
      for (Size &size : type.shape)
        size = dim::hint(size);
    return list;
  };
  const Size flops = info.custom->flops(typical(operands), typical(results), valuesOf(*info.custom, attrs));
  if (flops.numberOr(0) < 0)
    throw Error({.message = "gives a negative number of floating-point operations", .op = info.name});
  return flops;
}

/// The kernel is its own reference, as nothing else is known of the op.
void evaluateCustom(const OpInfo &info, std::span<const HostTensor> inputs, const Attrs &attrs,
                    std::span<HostTensor> results) {
  std::vector<TensorType> inTypes, outTypes;
  std::vector<void *> buffers;
  for (const HostTensor &t : inputs) {
    inTypes.push_back(t.type);
    buffers.push_back(t.data.get());
  }
  for (const HostTensor &t : results) {
    outTypes.push_back(t.type);
    buffers.push_back(t.data.get());
  }
  const CustomWork work = customWork(info, inTypes, outTypes, attrs);
  tressel_kernel kernel = runtime::findCustomKernel(work.call.symbol);
  if (!kernel)
    throw RuntimeError({.message = "its kernel '" + work.call.symbol + "' is not in this program", .op = info.name});
  HostTensor scratch = HostTensor::allocate({DType::u8, {work.call.scratchBytes}});
  if (std::string error = runtime::callCustomKernel(kernel, work.call, buffers, scratch.data.get(), 0, work.call.range);
      !error.empty())
    throw RuntimeError({.message = error, .op = info.name});
}

/// An OpInfo with the storage behind its views. Lives until the process ends.
struct Registered : OpInfo {
  std::vector<OperandSpec> operandSpecs;
  std::vector<AttrSpec> attrSpecs;

  explicit Registered(const runtime::CustomOp &op) : OpInfo{} {
    static constexpr AttrKind kinds[] = {AttrKind::Int, AttrKind::Float, AttrKind::String, AttrKind::Ints};
    operandSpecs.push_back({"inputs", true, false});
    for (const runtime::CustomAttr &a : op.attrs)
      attrSpecs.push_back(
          {a.name.c_str(), kinds[a.value.index()], false, std::visit([](const auto &v) { return Attr(v); }, a.value)});
    name = op.name.c_str();
    family = Family::Custom;
    summary = op.summary.c_str();
    description = numpy = example = "";
    operands = operandSpecs;
    attrs = attrSpecs;
    numResults = op.numResults;
    infer = inferCustom;
    evaluate = evaluateCustom;
    if (op.flops)
      flops = flopsOfCustom;
    overwrites = -1;
    custom = &op;
    hasEffects = op.hasEffects;
  }
  Registered(const Registered &) = delete;
  Registered &operator=(const Registered &) = delete;
};

/// The runtime's ops, each with its OpInfo. Append-only, in order of registration.
struct Ops {
  std::mutex mutex;
  std::deque<Registered> list;

  Ops() { registerDebugOps(); }
  void update() {
    const std::vector<const runtime::CustomOp *> all = runtime::customOps();
    for (size_t i = list.size(); i < all.size(); ++i)
      list.emplace_back(*all[i]);
  }
};
Ops &ops() {
  static Ops &instance = *new Ops();
  return instance;
}

} // namespace

const OpInfo *findCustomOp(std::string_view name) {
  std::lock_guard lock(ops().mutex);
  ops().update();
  auto it = std::ranges::find(ops().list, name, [](const Registered &r) { return std::string_view(r.name); });
  return it == ops().list.end() ? nullptr : &*it;
}

std::vector<const OpInfo *> customOps() {
  std::lock_guard lock(ops().mutex);
  ops().update();
  std::vector<const OpInfo *> list;
  for (const Registered &r : ops().list)
    list.push_back(&r);
  return list;
}

CustomWork customWork(const OpInfo &info, std::span<const TensorType> operands, std::span<const TensorType> results,
                      const Attrs &attrs) {
  const runtime::CustomOp &op = *info.custom;
  CustomWork work;
  work.call.op = op.name;
  work.call.symbol = op.symbol;
  work.call.library = op.library;
  work.call.numInputs = static_cast<int32_t>(operands.size());
  work.call.operands.assign(operands.begin(), operands.end());
  work.call.operands.insert(work.call.operands.end(), results.begin(), results.end());
  work.call.attrs = valuesOf(op, attrs);
  // The op's cost functions only work with numbers.
  auto isStatic = [](const TensorType &type) { return type.shape.isStatic(); };
  if ((op.range || op.scratch) && !std::ranges::all_of(work.call.operands, isStatic)) {
    work.call.countsLater = true;
    work.grain = 1;
    return work;
  }
  work.call.range = op.range ? op.range(operands, results, work.call.attrs).number() : 1;
  work.grain = op.grain;
  work.call.scratchBytes = op.scratch ? op.scratch(operands, results, work.call.attrs).number() : 0;
  if (work.call.range < 0 || work.call.scratchBytes < 0)
    throw Error({.message = "gives a negative amount of work or scratch memory", .op = op.name});
  return work;
}

} // namespace tressel::op
