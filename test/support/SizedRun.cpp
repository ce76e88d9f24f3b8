#include "test/support/SizedRun.h"

#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"
#include "tressel/runtime/Error.h"

namespace tressel::test {

ProgramBuilder::ProgramBuilder(mlir::MLIRContext &context) : builder_(&context) {
  context.loadAllAvailableDialects();
  const mlir::Location loc = builder_.getUnknownLoc();
  module_ = mlir::ModuleOp::create(loc);
  builder_.setInsertionPointToEnd(module_->getBody());
  main_ = mlir::func::FuncOp::create(builder_, loc, "main", builder_.getFunctionType({}, {}));
  builder_.setInsertionPointToStart(main_.addEntryBlock());
}

mlir::Value ProgramBuilder::argument(const TensorType &type, std::string name, llvm::StringRef attribute) {
  mlir::Block &body = main_.getBody().front();
  mlir::Value value = body.addArgument(graph::toMlir(builder_.getContext(), type), builder_.getUnknownLoc());
  names_.push_back({attribute.str(), name.empty() ? "x" + std::to_string(names_.size()) : name});
  return value;
}
mlir::Value ProgramBuilder::input(const TensorType &type, std::string name) {
  return argument(type, std::move(name), graph::kNameAttr);
}
mlir::Value ProgramBuilder::state(const TensorType &type, std::string name) {
  return argument(type, std::move(name), graph::kStateAttr);
}

mlir::Value ProgramBuilder::op(std::string_view name, std::initializer_list<mlir::Value> operands,
                               std::initializer_list<std::pair<const char *, op::Attr>> named) {
  const op::OpInfo *info = op::findOp(name);
  if (!info)
    throw Error("there is no op '" + std::string(name) + "'");
  op::Attrs attrs(info->attrs.size());
  for (const auto &[attr, value] : named)
    attrs.at(static_cast<size_t>(info->attrIndex(attr))) = value;
  std::string error = op::completeAttrs(*info, attrs);
  std::vector<TensorType> types;
  for (mlir::Value v : operands)
    types.push_back(graph::fromMlir(v.getType()));
  if (error.empty())
    error = info->infer(*info, types, attrs).error;
  if (!error.empty())
    throw ShapeError(error);
  std::vector<mlir::Value> values(operands);
  return graph::createOp(builder_, builder_.getUnknownLoc(), *info, values, attrs)->getResult(0);
}

std::vector<mlir::Value> ProgramBuilder::call(const op::OpInfo &info, const std::vector<mlir::Value> &operands,
                                              const op::Attrs &attrs) {
  mlir::Operation *created = graph::createOp(builder_, builder_.getUnknownLoc(), info, operands, attrs);
  return {created->result_begin(), created->result_end()};
}

mlir::OwningOpRef<mlir::ModuleOp> ProgramBuilder::finish(const std::vector<mlir::Value> &values) {
  mlir::func::ReturnOp::create(builder_, builder_.getUnknownLoc(), values);
  main_.setFunctionType(
      builder_.getFunctionType(main_.getBody().front().getArgumentTypes(), mlir::ValueRange(values).getTypes()));
  for (unsigned i = 0; i < names_.size(); ++i)
    main_.setArgAttr(i, names_[i].first, builder_.getStringAttr(names_[i].second));
  return std::move(module_);
}

SizedRun::SizedRun(mlir::ModuleOp module, const codegen::CompileOptions &options)
    : module_(mlir::cast<mlir::ModuleOp>(module->clone())) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = mlir::cast<mlir::ModuleOp>(module->clone());
  codegen::CompiledProgram program = codegen::compile(*copy, options);
  executable_ = program.load();
  context_ = std::make_unique<runtime::Context>(executable_);
}

std::string SizedRun::differsAt(const dim::Values &dims, op::interp::Tolerance tolerance, uint64_t seed) {
  auto main = module_->lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<op::HostTensor> values = graph::randomInputs(main, seed, -1, 1, dims);
  graph::Interpretation expected = graph::interpret(main, values);
  if (!expected)
    return "the interpreter: " + expected.error;
  std::vector<void *> states, outputs;
  std::vector<const void *> inputs;
  for (size_t i = 0; i < values.size(); ++i)
    if (main.getArgAttr(static_cast<unsigned>(i), graph::kStateAttr))
      states.push_back(values[i].data.get());
    else
      inputs.push_back(values[i].data.get());
  std::vector<op::HostTensor> got;
  for (const op::HostTensor &want : expected.outputs) {
    got.push_back(op::HostTensor::allocate(want.type));
    outputs.push_back(got.back().data.get());
  }
  try {
    context_->bindStates(states);
    context_->run(inputs, outputs, dims);
  } catch (const Error &error) {
    return error.what();
  }
  for (size_t i = 0; i < got.size(); ++i)
    if (std::string why = op::interp::compare(got[i], expected.outputs[i], tolerance); !why.empty())
      return "output " + std::to_string(i) + " " + got[i].type.str() + ": " + why;
  return "";
}

dim::Values sizes(std::initializer_list<std::pair<Size, int64_t>> values) {
  dim::Values out;
  for (auto [symbol, value] : values)
    out.bind(symbol, value);
  return out;
}

} // namespace tressel::test
