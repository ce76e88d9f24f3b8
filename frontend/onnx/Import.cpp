#include "frontend/onnx/Import.h"

#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/TensorData.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "onnx.pb.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <map>
#include <optional>

namespace tressel::onnx {

static Size symbolOf(std::string name, int64_t lo, int64_t hi, const std::vector<BoundDim> &others) {
  if (lo == hi || lo < 1)
    return lo;
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.')
      c = '_';
  if (!std::isalpha(static_cast<unsigned char>(name[0])))
    name.insert(0, "_");
  // Two names may differ in such signs alone.
  auto isTaken = [&](const std::string &symbol) {
    return std::ranges::any_of(
        others, [&](const BoundDim &b) { return dim::isSymbol(b.size) && dim::symbolName(b.size) == symbol; });
  };
  std::string unique = name;
  for (int k = 2; isTaken(unique); ++k)
    unique = name + "_" + std::to_string(k);
  return dim::symbol(unique, lo, std::min(hi, dim::kMaxSize));
}

std::vector<BoundDim> bindDims(const ModelFile &model, const ImportOptions &options) {
  std::vector<BoundDim> bound;
  for (const DeclaredValue &input : model.inputs())
    for (const DeclaredDim &dim : input.dims) {
      if (dim.size != kDynamic || std::ranges::find(bound, dim.name, &BoundDim::name) != bound.end())
        continue;
      if (auto given = options.sizes.find(dim.name); given != options.sizes.end()) {
        bound.push_back({dim.name, given->second, false, {}});
        continue;
      }
      auto it = options.dims.find(dim.name);
      if (it != options.dims.end())
        bound.push_back({dim.name, symbolOf(dim.name, it->second.first, it->second.second, bound), false, {}});
      else
        bound.push_back({dim.name,
                         options.keepDynamic ? symbolOf(dim.name, 1, dim::kMaxSize, bound) : Size(1),
                         !options.keepDynamic,
                         {}});
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
  GraphImporter(const ModelFile &model, mlir::MLIRContext &context, const ImportOptions &options,
                std::vector<Malformed> *malformed = nullptr)
      : state_(model, &context), options_(options), dims_(bindDims(model, options)) {
    state_.malformed = malformed;
  }

  mlir::OwningOpRef<mlir::ModuleOp> run() {
    const ModelFile &model = state_.model;
    mlir::OpBuilder &b = state_.builder;
    mlir::Location fileLoc = mlir::FileLineColLoc::get(b.getContext(), model.name(), 0, 0);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b, fileLoc);
    b.setInsertionPointToEnd(module->getBody());

    std::vector<mlir::Type> argTypes;
    for (const DeclaredValue &input : model.inputs())
      argTypes.push_back(graph::toMlir(b.getContext(), inputType(input)));
    for (const Weight &weight : options_.weights)
      argTypes.push_back(graph::toMlir(b.getContext(), weight.type));
    auto func = mlir::func::FuncOp::create(b, fileLoc, "main", b.getFunctionType(argTypes, {}));
    mlir::Block *body = func.addEntryBlock();
    b.setInsertionPointToEnd(body);
    state_.entry = body;
    for (auto [i, input] : llvm::enumerate(model.inputs())) {
      func.setArgAttr(static_cast<unsigned>(i), graph::kNameAttr, b.getStringAttr(input.name));
      state_.scopes[0].emplace(input.name, Value(inputType(input), body->getArgument(static_cast<unsigned>(i))));
    }
    auto argument = static_cast<unsigned>(model.inputs().size());
    for (const Weight &weight : options_.weights) { // before the constants of the same names, which are skipped
      func.setArgAttr(argument, graph::kNameAttr, b.getStringAttr(weight.name));
      state_.scopes[0].emplace(weight.name, Value(weight.type, body->getArgument(argument++)));
    }
    for (auto [i, tensor] : llvm::enumerate(model.graph().initializer()))
      if (!state_.scopes[0].contains(tensor.name()))
        state_.scopes[0].emplace(
            tensor.name(), Value(tensorData(tensor, model.name(), model.folder(), model.rawData(static_cast<int>(i)))));
    state_.passedOver = unusedNodes(model, options_);

    importNodes(state_, model.graph());
    if (state_.malformed)
      return nullptr;
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

  /// Checks the computed type against the declared one. A declared size that may come from a given open dimension is
  /// not checked: exporters leave there the size of their own run.
  void checkOutput(const DeclaredValue &output, const TensorType &type) const {
    const bool isForAllSizes = std::ranges::all_of(dims_, [](const BoundDim &d) { return d.size.isSymbolic(); });
    bool fits = !output.hasType || output.dtype == type.dtype;
    if (output.hasShape) {
      fits &= output.dims.size() == static_cast<size_t>(type.rank());
      for (size_t i = 0; fits && isForAllSizes && i < output.dims.size(); ++i) {
        const Size declared = output.dims[i].size, computed = type.shape[static_cast<int>(i)];
        fits = declared == kDynamic || declared == 0 || computed.isSymbolic() ||
               declared == computed; // some exporters write 0 for unknown
      }
    }
    if (fits)
      return;
    const std::string full = output.type(), element(nameOf(output.dtype));
    state_.model.fail("output '" + output.name + "' is declared as " +
                      (!output.hasShape ? element : output.hasType ? full : "a tensor of shape " + full.substr(element.size())) +
                      ", but what is computed is " + type.str());
  }

  void finish(mlir::func::FuncOp func, mlir::Location loc) {
    mlir::OpBuilder &b = state_.builder;
    std::vector<mlir::Value> results;
    std::vector<mlir::Type> resultTypes;
    const std::vector<std::string> names = outputNames(state_.model, options_.outputs);
    for (const std::string &name : names) {
      NodeImporter emitter(state_, ::onnx::NodeProto::default_instance(), "output '" + name + "'", loc);
      Value v = *state_.find(name);
      const auto &outputs = state_.model.outputs();
      const auto declared =
          std::ranges::find(outputs, name, &DeclaredValue::name); // values within the graph are not declared outputs
      if (v.symbolic && declared != outputs.end() &&
          isInteger(declared->dtype)) // sizes are i64 until here, whatever type they were converted to
        v = emitter.cast(Value(v.type, emitter.materialize(v)), declared->dtype);
      results.push_back(emitter.materialize(v));
      resultTypes.push_back(results.back().getType());
      if (declared != outputs.end())
        checkOutput(*declared, graph::fromMlir(resultTypes.back()));
    }
    mlir::func::ReturnOp::create(b, loc, results);
    func.setFunctionType(b.getFunctionType(func.getArgumentTypes(), resultTypes));
    for (auto [i, name] : llvm::enumerate(names))
      func.setResultAttr(static_cast<unsigned>(i), graph::kNameAttr, b.getStringAttr(name));
  }

  GraphState state_;
  const ImportOptions &options_;
  std::vector<BoundDim> dims_;
};

} // namespace

Imported import(const ModelFile &model, mlir::MLIRContext &context, const ImportOptions &options) {
  return {GraphImporter(model, context, options).run(), bindDims(model, options)};
}

Imported importOpen(const ModelFile &model, mlir::MLIRContext &context, ImportOptions options) {
  options.keepDynamic = true;
  std::vector<std::string> open; // dimensions without a given size
  for (const BoundDim &b : bindDims(model, options))
    if (!options.dims.contains(b.name))
      open.push_back(b.name);

  std::map<std::vector<bool>, std::string> refused; // by which of `open` were fixed
  std::exception_ptr last;
  auto attempt = [&](const std::vector<bool> &isFixed) -> std::optional<Imported> {
    ImportOptions tried = options;
    for (size_t i = 0; i < open.size(); ++i)
      if (isFixed[i])
        tried.dims[open[i]] = {1, 1};
    try {
      return import(model, context, tried);
    } catch (const Error &error) {
      refused.emplace(isFixed, error.message());
      last = std::current_exception();
      return std::nullopt;
    }
  };
  const std::vector<bool> none(open.size(), false), all(open.size(), true);
  std::vector<bool> isFixed = none;
  std::optional<Imported> found = attempt(none);
  if (found)
    return std::move(*found);
  if (open.empty())
    std::rethrow_exception(last);
  std::optional<Imported> least = attempt(all);
  if (!least) // try both, as giving sizes or bounds may help
    throw InputError(refused.at(all) + "\n  That is with 1 for each dimension that is not given (--dim). They cannot stay "
                                       "dynamic: " + refused.at(none));
  isFixed = all;
  // Smaller sets first: then each member of a set is necessary, as the set without it failed. Each try is an import, so
  // with many dimensions only some sets are tried.
  constexpr size_t kMostTries = 16;
  for (size_t size = 1; size < open.size() && !found; ++size) {
    std::vector<bool> set = none;
    std::fill_n(set.begin(), size, true);
    do {
      if (refused.size() > kMostTries)
        break;
      if ((found = attempt(set)))
        isFixed = set;
    } while (!found && std::prev_permutation(set.begin(), set.end()));
  }
  Imported result = std::move(found ? *found : *least);
  for (size_t i = 0; i < open.size(); ++i)
    if (isFixed[i]) {
      auto without = isFixed;
      without[i] = false;
      const auto why = refused.find(without);
      BoundDim &dim = *std::ranges::find(result.dims, open[i], &BoundDim::name);
      dim.assumed = true, dim.why = why != refused.end() ? why->second : refused.at(none);
    }
  return result;
}

std::vector<Malformed> findMalformed(const ModelFile &model, mlir::MLIRContext &context) {
  std::vector<Malformed> found;
  for (bool keepDynamic : {true, false}) // an op that needs a size as a number is skipped while the size is open
    try {
      ImportOptions options;
      options.keepDynamic = keepDynamic;
      std::vector<Malformed> list;
      GraphImporter(model, context, options, &list).run();
      for (Malformed &m : list)
        if (std::ranges::find(found, m.node, &Malformed::node) == found.end())
          found.push_back(std::move(m));
    } catch (const InputError &) { // the whole model cannot have such sizes
    }
  return found;
}

} // namespace tressel::onnx
