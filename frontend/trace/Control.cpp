// cond, while_loop, for_loop and scan: as C++ control flow, or as bodies of a trace.
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/Recorder.h"

#include <tressel/control.h>
#include <tressel/ops.h>

#include <algorithm>

namespace tressel::detail {
namespace {

using Kind = ControlCall::Kind;

[[noreturn]] void failShape(const ControlCall &call, std::string message, std::string hint = {}) {
  fail<ShapeError>(std::move(message), toLoc(call.where), call.name, std::move(hint));
}

bool isFlag(const TensorType &type) {
  return type.dtype == DType::boolean && type.shape.isStatic() && type.shape.numElements() == 1;
}

void checkFlag(const ControlCall &call, std::span<const Tensor> flag) {
  if (flag.size() != 1 || !flag[0].defined() || !isFlag(flag[0].type()))
    failShape(call,
              "the condition must be one bool, not " +
                  (flag.size() == 1 && flag[0].defined() ? flag[0].type().str() : std::string("an empty tensor")),
              "compare, or reduce with any() or all()");
}

std::string describe(std::span<const Tensor> tensors) {
  std::string s;
  for (const Tensor &t : tensors)
    s += (s.empty() ? "" : ", ") + (t.defined() ? t.type().str() : std::string("empty"));
  return "(" + s + ")";
}

void checkSame(const ControlCall &call, std::span<const Tensor> got, std::span<const Tensor> wanted, const char *what) {
  const bool same =
      std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(),
                 [](const Tensor &a, const Tensor &b) { return a.defined() && b.defined() && a.type() == b.type(); });
  if (!same)
    failShape(call, std::string(what) + describe(wanted) + " and " + describe(got),
              "convert with cast() or reshape() so that the types agree");
}

Tensor sliceOf(const Tensor &stacked, int64_t i, const std::source_location &where) {
  std::vector<Size> starts(static_cast<size_t>(stacked.rank())), limits, shape;
  for (Size size : stacked.type().shape) {
    limits.push_back(size);
    shape.push_back(size);
  }
  starts[0] = i;
  limits[0] = i + 1;
  shape.erase(shape.begin());
  return reshape(Arg(slice(Arg(stacked, where), starts, limits), where), shape);
}

Tensor stack(std::vector<Tensor> parts, const std::source_location &where) {
  std::vector<Size> shape{1};
  for (Size size : parts.front().type().shape)
    shape.push_back(size);
  std::vector<Arg> rows;
  for (const Tensor &part : parts)
    rows.push_back(Arg(reshape(Arg(part, where), shape), where));
  return concat(std::move(rows), 0, where);
}

/// The empty stacks of a scan without iterations. Their types are inferred, without running the body.
std::vector<Tensor> stacksOfNothing(const ControlCall &call) {
  InferRecorder recorder;
  RecorderScope scope(&recorder);
  std::vector<Tensor> arguments{recorder.input({i64, {}}, toLoc(call.where))};
  for (const Tensor &t : call.carried)
    arguments.push_back(recorder.input(t.type(), toLoc(call.where)));
  for (const Tensor &slices : call.slices) {
    TensorType type{slices.dtype(), {}};
    for (int i = 1; i < slices.rank(); ++i)
      type.shape.push_back(slices.type().shape[i]);
    arguments.push_back(recorder.input(type, toLoc(call.where)));
  }
  std::vector<Tensor> results = call.bodies[0](arguments);
  results.erase(results.begin(), results.begin() + static_cast<ptrdiff_t>(std::min(results.size(), call.carried.size())));
  for (Tensor &result : results) {
    Shape shape{0};
    for (Size size : result.type().shape)
      shape.push_back(size);
    result = filled(shape, 0, result.dtype(), call.where, call.name);
  }
  return results;
}

/// Plain C++ control flow.
std::vector<Tensor> runNow(const ControlCall &call) {
  if (call.kind == Kind::Cond)
    return call.bodies[call.condition.item<bool>(call.where) ? 0 : 1](call.carried);
  std::vector<Tensor> carried = call.carried;
  if (call.kind == Kind::While) {
    for (;;) {
      const std::vector<Tensor> flag = call.bodies[0](carried);
      checkFlag(call, flag);
      if (!flag[0].item<bool>(call.where))
        return carried;
      std::vector<Tensor> next = call.bodies[1](carried);
      checkSame(call, next, call.carried, "the loop's value changes its type between ");
      carried = std::move(next);
    }
  }
  std::vector<std::vector<Tensor>> stacked;
  for (int64_t i = 0; i < call.trips.number(); ++i) {
    std::vector<Tensor> arguments{Arg(i, call.where).as_tensor()};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    for (const Tensor &slices : call.slices)
      arguments.push_back(sliceOf(slices, i, call.where));
    std::vector<Tensor> next = call.bodies[0](arguments);
    if (next.size() < carried.size())
      failShape(call, "the body gives " + std::to_string(next.size()) + " tensors, fewer than are carried");
    checkSame(call, std::span(next).first(carried.size()), call.carried, "the carried value changes its type between ");
    stacked.resize(next.size() - carried.size());
    for (size_t k = 0; k < stacked.size(); ++k)
      stacked[k].push_back(next[carried.size() + k]);
    next.resize(carried.size());
    carried = std::move(next);
  }
  if (call.trips == 0 && !call.slices.empty())
    for (Tensor &stack : stacksOfNothing(call))
      carried.push_back(std::move(stack));
  for (std::vector<Tensor> &parts : stacked)
    carried.push_back(stack(std::move(parts), call.where));
  return carried;
}

} // namespace

Size leadingSize(std::span<const Tensor> tensors, const std::source_location &where) {
  if (tensors.empty())
    fail<ShapeError>("there is nothing to take slices of", toLoc(where), "scan", "use for_loop() without slices");
  for (const Tensor &t : tensors)
    if (!t.defined() || t.rank() == 0 || t.type().shape[0] != tensors[0].type().shape[0])
      fail<ShapeError>("slices are taken along one first dimension, which " + describe(tensors) + " do not share",
                       toLoc(where), "scan");
  return tensors[0].type().shape[0];
}

int64_t checkedBound(int64_t bound, const std::source_location &where) {
  if (bound < 0)
    fail<ShapeError>("a loop cannot run at most " + std::to_string(bound) + " times", toLoc(where), "while_loop");
  return bound;
}

Tensor withBound(const Tensor &condition, const Tensor &count, int64_t bound, const std::source_location &where) {
  return logical_and(Arg(condition, where), Arg(Arg(count, where) < Arg(bound, where), where));
}

Tensor countOf(const Arg &n, const std::source_location &where) {
  const Tensor count = n.as_tensor();
  const bool fits =
      count.defined() && isInteger(count.dtype()) && (count.rank() == 0 || count.type().shape == Shape{1});
  if (!fits)
    fail<ShapeError>("the number of iterations is one integer, not " + describe({&count, 1}), toLoc(where), "for_loop");
  return count.rank() == 0 ? count : reshape(count, {});
}

std::vector<Tensor> runControl(const ControlCall &call) {
  if (call.kind == Kind::Cond)
    checkFlag(call, {&call.condition, 1});
  Recorder *recorder = Recorder::current();
  return recorder ? recorder->control(call) : runNow(call);
}

//--- In a trace -------------------------------------------------------------------------------------------------------

Tensor Recorder::readVariable(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) {
  return bodies_.empty() ? read(variable, where) : bodyVariable(bodies_.size() - 1, variable, where).current;
}

void Recorder::assignVariable(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where) {
  if (bodies_.empty())
    return assign(variable, value, where);
  if (bodies_.back()->isCondition)
    fail<TraceError>("the condition of a while_loop assigns '" + variable->name + "'", where, "assign",
                     "assign Variables in the loop's body");
  BodyVariable &state = bodyVariable(bodies_.size() - 1, variable, where);
  state.current = value;
  state.assigned = true;
}

Recorder::BodyVariable &Recorder::bodyVariable(size_t depth, const std::shared_ptr<VariableImpl> &variable,
                                               SourceLoc where) {
  BodyRecord &body = *bodies_[depth];
  for (BodyVariable &known : body.variables)
    if (known.variable == variable)
      return known;
  const Tensor outside = depth == 0 ? read(variable, where) : bodyVariable(depth - 1, variable, where).current;
  Tensor argument = bodyArgument(depth, outside.type(), where);
  body.variables.push_back({variable, outside, argument, argument, false});
  return body.variables.back();
}

namespace {
/// Counts the calls of bodies, as a body that calls the function it is part of may recurse without end.
class BodyCall {
public:
  explicit BodyCall(const ControlCall &call) {
    if (!enterCall(/*isBody=*/true))
      failEndless("the function with this '" + std::string(call.name) + "'", call.where);
  }
  ~BodyCall() { leaveCall(); }
  BodyCall(const BodyCall &) = delete;
  BodyCall &operator=(const BodyCall &) = delete;
};
} // namespace

std::vector<Tensor> Recorder::control(const ControlCall &call) {
  const SourceLoc where = toLoc(call.where);
  for (const std::vector<Tensor> &tensors : {call.carried, call.slices})
    for (const Tensor &t : tensors)
      if (!t.defined())
        fail<Error>("an operand is an empty Tensor", where, call.name, "assign it a value first");
  beginControl(call);
  std::vector<BodyRecord> records(call.bodies.size());
  for (size_t b = 0; b < records.size(); ++b) {
    BodyRecord &record = records[b];
    record.isCondition = call.kind == Kind::While && b == 0;
    bodies_.push_back(&record);
    struct Leave {
      std::vector<BodyRecord *> &bodies;
      ~Leave() { bodies.pop_back(); }
    } leave{bodies_};
    const size_t depth = bodies_.size() - 1;
    beginBody();
    if (call.kind == Kind::Scan)
      record.arguments.push_back(bodyArgument(depth, {DType::i64, {}}, where));
    for (const Tensor &t : call.carried)
      record.arguments.push_back(bodyArgument(depth, t.type(), where));
    for (const Tensor &t : call.slices) {
      const Shape &shape = t.type().shape;
      record.arguments.push_back(
          bodyArgument(depth, {t.type().dtype, Shape(std::span(shape.begin() + 1, shape.end()))}, where));
    }
    const BodyCall body(call);
    record.results = call.bodies[b](record.arguments);
    endBody(record, where);
  }
  checkResults(call, records);

  // A Variable that some body assigns becomes a further result.
  std::vector<Tensor> outside;
  std::vector<std::shared_ptr<VariableImpl>> assigned;
  for (const BodyRecord &record : records)
    for (const BodyVariable &v : record.variables)
      if (v.assigned && std::find(assigned.begin(), assigned.end(), v.variable) == assigned.end())
        assigned.push_back(v.variable);
  std::vector<TensorType> types;
  const BodyRecord &last = records.back();
  for (size_t i = 0; i < last.results.size(); ++i) {
    TensorType type = last.results[i].type();
    if (call.kind == Kind::Scan && i >= call.carried.size()) {
      Shape shape;
      shape.push_back(call.trips);
      for (Size size : type.shape)
        shape.push_back(size);
      type.shape = shape;
    }
    types.push_back(type);
  }
  for (const auto &variable : assigned)
    types.push_back(variable->value.type());
  std::vector<Tensor> results = endControl(call, records, assigned, types);
  for (size_t i = 0; i < assigned.size(); ++i)
    assignVariable(assigned[i], results[last.results.size() + i], where);
  results.resize(last.results.size());
  return results;
}

void Recorder::checkResults(const ControlCall &call, std::span<const BodyRecord> records) const {
  for (const BodyRecord &record : records)
    for (const Tensor &t : record.results)
      if (!t.defined())
        fail<TraceError>("a body returned an empty Tensor", toLoc(call.where), call.name);
  switch (call.kind) {
  case Kind::Cond:
    return checkSame(call, records[1].results, records[0].results, "the branches give different types: ");
  case Kind::While:
    checkFlag(call, records[0].results);
    return checkSame(call, records[1].results, call.carried, "the loop's value changes its type between ");
  case Kind::Scan:
    if (records[0].results.size() < call.carried.size())
      failShape(call,
                "the body gives " + std::to_string(records[0].results.size()) + " tensors, fewer than are carried");
    return checkSame(call, std::span(records[0].results).first(call.carried.size()), call.carried,
                     "the carried value changes its type between ");
  }
}

Tensor Recorder::bodyArgument(size_t, const TensorType &type, SourceLoc where) {
  return makeValue(type, nullptr, where);
}

std::vector<Tensor> Recorder::endControl(const ControlCall &call, std::span<const BodyRecord>,
                                         std::span<const std::shared_ptr<VariableImpl>>,
                                         std::span<const TensorType> types) {
  std::vector<Tensor> results;
  for (const TensorType &type : types)
    results.push_back(makeValue(type, nullptr, toLoc(call.where)));
  return results;
}

std::vector<Tensor> Recorder::pullBack(void *, std::span<const Tensor>, std::span<const uint8_t>,
                                       const std::source_location &) {
  throw InternalError("a recorder that notes no control flow is asked for its gradient");
}

} // namespace tressel::detail
