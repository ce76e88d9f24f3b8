#include "frontend/trace/Replay.h"

#include "frontend/trace/Record.h"
#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace tressel::detail {

/// One op: its operands are values of the body by number, its results the next ones.
struct Replay::Step final : ScopeOwner {
  const op::OpInfo *info = nullptr; ///< null: a constant, or control flow
  Tensor constant;
  std::vector<size_t> operands;
  op::Attrs attrs;
  std::vector<size_t> lastUses; ///< values to drop after this step: no later step and no result needs them
  std::string label;            ///< how errors call it; may be empty

  // Control flow: operands are the condition (Cond), carried values, slices, invariants.
  ControlCall::Kind kind = ControlCall::Kind::Cond;
  size_t numCarried = 0, numSlices = 0;
  Size trips;
  std::optional<int64_t> bound;
  std::vector<Body> bodies;

  std::string typeName() const override { return label; }
  std::string nameOf(const ScopeOwner &) const override { return {}; }
};

/// Values are its arguments, then the results of its steps, in order.
struct Replay::Body {
  std::vector<std::unique_ptr<Step>> steps;
  std::vector<size_t> results;
  size_t numValues = 0;
};

static std::string labelOf(mlir::Operation &op) {
  const auto named = llvm::dyn_cast<mlir::NameLoc>(op.getLoc());
  return named ? "node '" + named.getName().str() + "'" : std::string();
}

Replay::Body Replay::bodyOf(mlir::Block &block) {
  Body body;
  llvm::DenseMap<mlir::Value, size_t> numbers;
  for (mlir::BlockArgument argument : block.getArguments())
    numbers[argument] = body.numValues++;
  for (mlir::Operation &op : block) {
    auto numberOf = [&](mlir::Value value) { return numbers.at(value); };
    if (op.hasTrait<mlir::OpTrait::IsTerminator>()) {
      for (mlir::Value value : op.getOperands())
        body.results.push_back(numberOf(value));
      break;
    }
    auto step = std::make_unique<Step>();
    step->label = labelOf(op);
    for (mlir::Value operand : op.getOperands()) // for control flow in the order of its operand groups
      step->operands.push_back(numberOf(operand));
    if (auto control = llvm::dyn_cast<graph::ControlOpInterface>(op)) {
      step->numCarried = control.numCarried();
      step->numSlices = control.numSlices();
      if (auto scan = llvm::dyn_cast<graph::ScanOp>(op)) {
        step->kind = ControlCall::Kind::Scan;
        step->trips = scan.getTrips();
      } else if (auto loop = llvm::dyn_cast<graph::WhileOp>(op)) {
        step->kind = ControlCall::Kind::While;
        step->bound = loop.getBound();
      }
      for (mlir::Region &region : op.getRegions())
        step->bodies.push_back(bodyOf(region.front()));
    } else if (const std::optional<op::HostTensor> value = op.getNumResults() == 1 ? graph::constantValue(op.getResult(0)) : std::nullopt) {
      step->constant = fromBytes(value->data.get(), value->type, std::source_location::current());
    } else if (const op::OpInfo *info = graph::infoOf(&op)) {
      step->info = info;
      step->attrs = graph::attrsOf(&op, *info);
    } else {
      throw InternalError("an op '" + op.getName().getStringRef().str() + "' cannot be called");
    }
    for (mlir::Value result : op.getResults())
      numbers[result] = body.numValues++;
    body.steps.push_back(std::move(step));
  }
  std::vector<bool> isNeeded(body.numValues);
  for (size_t result : body.results)
    isNeeded[result] = true;
  for (auto step = body.steps.rbegin(); step != body.steps.rend(); ++step)
    for (size_t operand : (*step)->operands)
      if (!isNeeded[operand]) {
        isNeeded[operand] = true;
        (*step)->lastUses.push_back(operand);
      }
  return body;
}

Replay::Replay(mlir::func::FuncOp function) : body_(std::make_unique<Body>(bodyOf(function.getBody().front()))) {}
Replay::~Replay() = default;

std::vector<Tensor> Replay::runControl(const Step &step, std::span<const Tensor> operands, const std::source_location &where) {
  ControlCall call{.kind = step.kind, .trips = step.trips, .bound = step.bound, .where = where};
  size_t next = 0;
  auto take = [&](size_t n) {
    std::vector<Tensor> taken(operands.begin() + static_cast<ptrdiff_t>(next), operands.begin() + static_cast<ptrdiff_t>(next + n));
    next += n;
    return taken;
  };
  if (step.kind == ControlCall::Kind::Cond)
    call.condition = take(1).front();
  else
    call.name = step.kind == ControlCall::Kind::While ? "while_loop" : "scan";
  call.carried = take(step.numCarried);
  call.slices = take(step.numSlices);
  const std::vector<Tensor> invariants = take(operands.size() - next);
  for (const Body &body : step.bodies)
    call.bodies.push_back([&](std::span<const Tensor> tensors) { // number, carried values and slices
      std::vector<Tensor> arguments(tensors.begin(), tensors.end());
      arguments.insert(arguments.end(), invariants.begin(), invariants.end());
      return run(body, arguments, where);
    });
  return ::tressel::detail::runControl(call);
}

std::vector<Tensor> Replay::run(const Body &body, std::span<const Tensor> arguments, const std::source_location &where) {
  std::vector<Tensor> values(arguments.begin(), arguments.end());
  values.reserve(body.numValues);
  for (const auto &step : body.steps) {
    if (step->constant.defined()) {
      values.push_back(step->constant);
      continue;
    }
    std::vector<Tensor> operands;
    for (size_t operand : step->operands)
      operands.push_back(values[operand]);
    std::optional<LocationScope> scope;
    if (!step->label.empty())
      scope.emplace(where, /*library=*/true, step.get());
    std::vector<Tensor> results;
    if (step->info) {
      std::vector<Arg> args;
      for (Tensor &operand : operands)
        args.emplace_back(std::move(operand), where);
      results = recordList(*step->info, args, step->attrs, where);
    } else {
      results = runControl(*step, operands, where);
    }
    std::ranges::move(results, std::back_inserter(values));
    for (size_t value : step->lastUses)
      values[value] = Tensor();
  }
  std::vector<Tensor> results;
  for (size_t result : body.results)
    results.push_back(values[result]);
  return results;
}

std::vector<Tensor> Replay::operator()(std::span<const Tensor> arguments, const std::source_location &where) const {
  return run(*body_, arguments, where);
}

} // namespace tressel::detail
