#include "frontend/onnx/Import.h"

#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/TensorData.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "onnx.pb.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cctype>

namespace tressel::onnx {

static int64_t symbolOf(std::string name, int64_t lo, int64_t hi) {
  if (lo == hi || lo < 1)
    return lo;
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return dim::symbol(std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name, lo,
                     std::min(hi, dim::kMaxSize));
}

std::vector<BoundDim> bindDims(const Model &model, const ImportOptions &options) {
  std::vector<BoundDim> bound;
  for (const DeclaredValue &input : model.inputs())
    for (const DeclaredDim &dim : input.dims) {
      if (dim.size != kDynamic || std::ranges::find(bound, dim.name, &BoundDim::name) != bound.end())
        continue;
      auto it = options.dims.find(dim.name);
      if (it != options.dims.end())
        bound.push_back({dim.name, symbolOf(dim.name, it->second.first, it->second.second), false});
      else
        bound.push_back({dim.name, options.keepDynamic ? symbolOf(dim.name, 1, dim::kMaxSize) : 1, !options.keepDynamic});
    }
  for (const auto &[name, range] : options.dims) {
    const int64_t size = range.first;
    if (std::ranges::find(bound, name, &BoundDim::name) == bound.end()) {
      std::string known;
      for (const BoundDim &b : bound)
        known += (known.empty() ? "" : ", ") + b.name;
      model.fail("has no symbolic dimension '" + name + "'" +
                 (known.empty() ? "; all its sizes are fixed" : "; it has: " + known));
    }
    if (size < 1)
      model.fail("dimension '" + name + "' must be at least 1, not " + std::to_string(size));
  }
  return bound;
}

namespace {

class GraphImporter {
public:
  GraphImporter(const Model &model, mlir::MLIRContext &context, std::vector<BoundDim> dims)
      : state_(model, &context), dims_(std::move(dims)) {}

  mlir::OwningOpRef<mlir::ModuleOp> run() {
    const Model &model = state_.model;
    mlir::OpBuilder &b = state_.builder;
    mlir::Location fileLoc = mlir::FileLineColLoc::get(b.getContext(), model.name(), 0, 0);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b, fileLoc);
    b.setInsertionPointToEnd(module->getBody());

    std::vector<mlir::Type> argTypes;
    for (const DeclaredValue &input : model.inputs())
      argTypes.push_back(graph::toMlir(b.getContext(), inputType(input)));
    auto func = mlir::func::FuncOp::create(b, fileLoc, "main", b.getFunctionType(argTypes, {}));
    mlir::Block *body = func.addEntryBlock();
    b.setInsertionPointToEnd(body);
    state_.entry = body;
    for (auto [i, input] : llvm::enumerate(model.inputs())) {
      func.setArgAttr(static_cast<unsigned>(i), graph::kNameAttr, b.getStringAttr(input.name));
      state_.scopes[0].emplace(input.name, Value(inputType(input), body->getArgument(static_cast<unsigned>(i))));
    }
    for (const auto &tensor : model.graph().initializer())
      state_.scopes[0].emplace(tensor.name(), Value(tensorData(tensor, model.name(), model.folder())));

    importNodes(state_, model.graph());
    if (state_.exhausted)
      state_.unsupported = {*state_.exhausted};
    if (!state_.unsupported.empty())
      throw UnsupportedError(model.name(), state_.unsupported);

    finish(func, fileLoc);
    if (mlir::failed(mlir::verify(*module)))
      throw InternalError(model.name() + ": the importer made a module that is not valid");
    return module;
  }

private:
  TensorType inputType(const DeclaredValue &input) {
    TensorType type{input.dtype, {}};
    for (const DeclaredDim &dim : input.dims)
      type.shape.push_back(dim.size != kDynamic ? dim.size : std::ranges::find(dims_, dim.name, &BoundDim::name)->size);
    if (!fitsMemory(type))
      state_.model.fail("input '" + input.name + "' of type " + type.str() + " is larger than any memory");
    return type;
  }

  void finish(mlir::func::FuncOp func, mlir::Location loc) {
    mlir::OpBuilder &b = state_.builder;
    std::vector<mlir::Value> results;
    std::vector<mlir::Type> resultTypes;
    for (const DeclaredValue &output : state_.model.outputs()) {
      NodeImporter emitter(state_, ::onnx::NodeProto::default_instance(), "output '" + output.name + "'", loc);
      Value v = *state_.find(output.name);
      if (v.symbolic && isInteger(output.dtype)) // i64 until now, whatever it was converted to
        v = emitter.cast(Value(v.type, emitter.materialize(v)), output.dtype);
      results.push_back(emitter.materialize(v));
      resultTypes.push_back(results.back().getType());
    }
    mlir::func::ReturnOp::create(b, loc, results);
    func.setFunctionType(b.getFunctionType(func.getArgumentTypes(), resultTypes));
    for (auto [i, output] : llvm::enumerate(state_.model.outputs()))
      func.setResultAttr(static_cast<unsigned>(i), graph::kNameAttr, b.getStringAttr(output.name));
  }

  GraphState state_;
  std::vector<BoundDim> dims_;
};

} // namespace

Imported import(const Model &model, mlir::MLIRContext &context, const ImportOptions &options) {
  std::vector<BoundDim> dims = bindDims(model, options);
  return {GraphImporter(model, context, dims).run(), dims};
}

} // namespace tressel::onnx
