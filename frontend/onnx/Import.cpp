#include "frontend/onnx/Import.h"

#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
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
      : state_{model, mlir::OpBuilder(&context), {}}, dims_(std::move(dims)) {}

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
    for (auto [i, input] : llvm::enumerate(model.inputs())) {
      func.setArgAttr(static_cast<unsigned>(i), graph::kNameAttr, b.getStringAttr(input.name));
      state_.values.emplace(input.name, Value(inputType(input), body->getArgument(static_cast<unsigned>(i))));
    }
    for (const auto &tensor : model.graph().initializer())
      state_.values.emplace(tensor.name(), Value(tensorData(tensor, model.name(), model.folder())));

    unsupported_ = model.unsupportedOps();
    for (int i = 0; i < model.graph().node_size(); ++i)
      importNode(i);
    if (!unsupported_.empty())
      throw UnsupportedError(model.name(), unsupported_);

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

  /// A node that is not supported leaves its outputs undefined, and so do those that depend on it: the rest is imported
  /// all the same, so that everything unsupported is found in one go.
  void importNode(int i) {
    const Model &model = state_.model;
    const auto &node = model.graph().node(i);
    ImportFn fn = findImporter(node.domain(), node.op_type(), model.opset(node.domain()));
    bool ready = std::ranges::all_of(
        node.input(), [&](const std::string &name) { return name.empty() || state_.values.contains(name); });
    if (!fn || !ready)
      return;
    mlir::Location loc = mlir::NameLoc::get(
        state_.builder.getStringAttr(nodeLabel(node, i)),
        mlir::FileLineColLoc::get(state_.builder.getContext(), model.name(), static_cast<unsigned>(i + 1), 0));
    NodeImporter importer(state_, node, i, loc);
    try {
      fn(importer);
      importer.checkAllRead();
      for (int o = 0; o < node.output_size(); ++o)
        if (importer.wants(o) && !state_.values.contains(node.output(o)))
          importer.unsupported("its output number " + std::to_string(o));
    } catch (const NodeUnsupported &e) {
      unsupported_.push_back({qualifiedOp(node), nodeLabel(node, i), model.opset(node.domain()), e.why});
    }
  }

  void finish(mlir::func::FuncOp func, mlir::Location loc) {
    mlir::OpBuilder &b = state_.builder;
    std::vector<mlir::Value> results;
    std::vector<mlir::Type> resultTypes;
    for (const DeclaredValue &output : state_.model.outputs()) {
      const Value &v = state_.values.at(output.name);
      if (!*v.ir)
        *v.ir = graph::createConstant(b, loc, v.type, {v.host->data.get(), static_cast<size_t>(v.type.bytes())});
      results.push_back(*v.ir);
      resultTypes.push_back(results.back().getType());
    }
    mlir::func::ReturnOp::create(b, loc, results);
    func.setFunctionType(b.getFunctionType(func.getArgumentTypes(), resultTypes));
    for (auto [i, output] : llvm::enumerate(state_.model.outputs()))
      func.setResultAttr(static_cast<unsigned>(i), graph::kNameAttr, b.getStringAttr(output.name));
  }

  GraphState state_;
  std::vector<BoundDim> dims_;
  std::vector<Unsupported> unsupported_;
};

} // namespace

Imported import(const Model &model, mlir::MLIRContext &context, const ImportOptions &options) {
  std::vector<BoundDim> dims = bindDims(model, options);
  return {GraphImporter(model, context, dims).run(), dims};
}

} // namespace tressel::onnx
