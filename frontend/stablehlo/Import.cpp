#include "frontend/stablehlo/Import.h"

#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"
#include "frontend/stablehlo/Sharding.h"
#include "ir/graph/Control.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace tressel::stablehlo {

Form detectForm(std::string_view text) {
  Form form = Form::None;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (size_t comment = line.find("//"); comment != std::string_view::npos)
      line = line.substr(0, comment);
    for (std::string_view dialect : {"stablehlo.", "chlo."})
      for (size_t at = line.find(dialect); at != std::string_view::npos; at = line.find(dialect, at + 1)) {
        char before = at ? line[at - 1] : ' ';
        if (before == '"')
          return Form::Generic;
        if (before == ' ' || before == '\t' || before == '=')
          form = Form::Pretty;
      }
  }
  return form;
}

std::string prettyFormMessage(const std::string &path) {
  return path + ": is StableHLO in its pretty form, and only the generic one is read; print it with "
                "lowered.compiler_ir('stablehlo').operation.get_asm(print_generic_op_form=True) in JAX, or with "
                "stablehlo-opt --mlir-print-op-generic";
}

UnsupportedError::UnsupportedError(const std::string &file, std::vector<Unsupported> items)
    : InputError([&] {
        std::string text = file + ": not supported:";
        for (const Unsupported &u : items)
          text += "\n  " + u.op + " at " + u.where + (u.why.empty() ? "" : ": " + u.why);
        return text;
      }()),
      list(std::move(items)) {}

namespace {

/// A bound on ops: calls are inlined, so a small file can expand to a huge program.
constexpr int64_t kMaxOps = 1'000'000;

class ModuleImporter {
public:
  ModuleImporter(mlir::ModuleOp source, const std::string &path) : source_(source), state_(path, source.getContext()) {}

  mlir::OwningOpRef<mlir::ModuleOp> run() {
    auto main = source_.lookupSymbol<mlir::func::FuncOp>("main");
    if (!main || main.isDeclaration())
      throw InputError(state_.path + ": holds no func.func @main with a body");
    for (mlir::TypeRange types : {main.getArgumentTypes(), main.getResultTypes()})
      for (mlir::Type type : types)
        if (checkType(type, main) && graphType(type) != type)
          report(main, "type " + textOf(type) + " of an argument or result");

    mlir::OpBuilder &b = state_.builder;
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b, source_.getLoc());
    b.setInsertionPointToEnd(module->getBody());
    auto func = mlir::func::FuncOp::create(b, main.getLoc(), "main", b.getFunctionType(main.getArgumentTypes(), {}));
    mlir::Block *body = func.addEntryBlock();
    b.setInsertionPointToEnd(body);
    std::vector<mlir::Value> results;
    if (unsupported_.empty())
      results = importFunction(main, {body->args_begin(), body->args_end()});
    if (unsupported_.empty())
      cut(main, func, results);
    if (!unsupported_.empty())
      throw UnsupportedError(state_.path, unsupported_);

    mlir::func::ReturnOp::create(b, main.getLoc(), results);
    func.setFunctionType(b.getFunctionType(main.getArgumentTypes(), mlir::ValueRange(results).getTypes()));
    if (mlir::failed(mlir::verify(*module)))
      throw InternalError(state_.path + ": the importer made a module that is not valid");
    return module;
  }

private:
  bool checkType(mlir::Type type, mlir::Operation *op) {
    auto ranked = llvm::dyn_cast<mlir::RankedTensorType>(type);
    std::string why;
    if (!ranked || !graph::isSupported(graphType(type)) || ranked.getRank() > kMaxRank)
      why = "type " + textOf(type);
    else if (!ranked.hasStaticShape())
      why = "type " + textOf(type) + ": sizes that are known only when the program runs; export with fixed sizes";
    if (!why.empty())
      report(op, why);
    return why.empty();
  }

  /// Sets the shardings of arguments and results.
  void cut(mlir::func::FuncOp main, mlir::func::FuncOp func, std::vector<mlir::Value> &results) {
    constexpr llvm::StringLiteral kSharding = "sdy.sharding";
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (mlir::Attribute sharding = main.getArgAttr(i, kSharding))
        if (const std::string words = wordsOf(main, sharding, main.getArgumentTypes()[i]); !words.empty())
          func.setArgAttr(i, graph::kShardingAttr, state_.builder.getStringAttr(words));
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (mlir::Attribute sharding = main.getResultAttr(i, kSharding))
        if (const std::string words = wordsOf(main, sharding, main.getResultTypes()[i]); !words.empty())
          results[i] = OpImporter(state_, main).emit("shard", {results[i]}, {{"axes", words}});
    if (!mesh_.empty())
      func->setAttr(graph::kMeshAttr, state_.builder.getStringAttr(mesh_));
  }

  /// The sharding as text, "data, -"; empty where the annotation has none or is reported as unsupported.
  std::string wordsOf(mlir::Operation *op, mlir::Attribute sharding, mlir::Type type) {
    try {
      const auto rank = static_cast<size_t>(llvm::cast<mlir::RankedTensorType>(type).getRank());
      const ShardingText text = shardingText(sharding, rank);
      mlir::Operation *mesh = nullptr;
      for (mlir::Operation &each : *source_.getBody())
        if (each.getName().getStringRef() == "sdy.mesh" && OpImporter(state_, &each).text("sym_name") == text.mesh)
          mesh = &each;
      if (!mesh)
        throw InputError(where(op) + ": there is no sdy.mesh @" + text.mesh);
      const std::string axes = meshText(OpImporter(state_, mesh).attribute("mesh"));
      if (axes.empty())
        return "";
      if (!mesh_.empty() && mesh_ != axes)
        throw OpUnsupported{"a second mesh, of " + axes + " beside " + mesh_};
      mesh_ = axes;
      return text.words;
    } catch (const OpUnsupported &e) {
      report(op, e.why);
      return "";
    }
  }

  void importConstraint(OpImporter &n) {
    n.wantInputs(1);
    const std::string words = wordsOf(n.operation(), n.attribute("sharding"), n.operation()->getResultTypes()[0]);
    n.out(0, words.empty() ? n.in(0) : n.emit("shard", {n.in(0)}, {{"axes", words}}));
  }

  /// The results of a function in the graph dialect; empty when something in it is not supported.
  std::vector<mlir::Value> importFunction(mlir::func::FuncOp func, std::vector<mlir::Value> args) {
    if (std::ranges::find(calls_, func) != calls_.end())
      throw InputError(where(func) + ": function @" + func.getName().str() + " calls itself");
    if (!func.getBody().hasOneBlock())
      throw InputError(where(func) + ": function @" + func.getName().str() + " has more than one block");
    calls_.push_back(func);
    std::vector<mlir::Value> results = importBlock(func.getBody().front(), args);
    calls_.pop_back();
    return results;
  }

  /// Operands of the terminator. An op that is not supported leaves its results undefined, and so do those that depend
  /// on it: the rest is imported all the same, so that everything unsupported is found in one go.
  std::vector<mlir::Value> importBlock(mlir::Block &block, std::vector<mlir::Value> args) {
    for (auto [from, to] : llvm::zip_equal(block.getArguments(), args))
      state_.values[from] = to;
    for (mlir::Operation &op : llvm::drop_end(block)) // the terminator is an op of no registered dialect
      importOp(&op);
    std::vector<mlir::Value> results;
    for (mlir::Value v : block.back().getOperands())
      results.push_back(state_.values.lookup(v));
    return results;
  }

  void importOp(mlir::Operation *op) {
    if (++numOps_ > kMaxOps)
      throw InputError(where(op) + ": more than " + std::to_string(kMaxOps) + " ops once the calls are inlined");
    for (mlir::Value result : op->getResults())
      state_.values.erase(result); // it may have a value from an earlier call of the same function
    bool fits = true;
    for (mlir::Type type : op->getResultTypes())
      fits = fits && checkType(type, op);
    llvm::StringRef name = op->getName().getStringRef();
    bool isCall = name == "func.call" || name == "stablehlo.composite";
    bool isBranch = name == "stablehlo.case" || name == "stablehlo.if", isLoop = name == "stablehlo.while";
    const bool isConstraint = name == "sdy.sharding_constraint" || name == "sdy.reshard";
    ImportFn fn = findImporter(name.str());
    if (!fn && !isCall && !isBranch && !isLoop && !isConstraint)
      return report(op, "");
    bool ready = llvm::all_of(op->getOperands(), [&](mlir::Value v) { return state_.values.lookup(v); });
    if (!fits || !ready)
      return;
    OpImporter importer(state_, op);
    try {
      if (isCall)
        return importCall(importer);
      if (isBranch)
        return importBranch(importer);
      if (isLoop)
        return importLoop(importer);
      isConstraint ? importConstraint(importer) : fn(importer);
      importer.checkAllRead();
      for (mlir::Value result : op->getResults())
        if (!state_.values.lookup(result))
          throw InternalError(where(op) + ": " + name.str() + " was imported without all of its results");
    } catch (const OpUnsupported &e) {
      report(op, e.why);
    }
  }

  void importCall(OpImporter &n) {
    const bool composite = n.name() == "stablehlo.composite"; // the body of a composite is always a function
    std::string callee = n.symbol(composite ? "decomposition" : "callee");
    auto func = source_.lookupSymbol<mlir::func::FuncOp>(callee);
    if (!func || func.isDeclaration())
      n.fail("there is no function @" + callee + " with a body");
    if (mlir::TypeRange(func.getArgumentTypes()) != n.operation()->getOperandTypes() ||
        mlir::TypeRange(func.getResultTypes()) != n.operation()->getResultTypes())
      n.fail("function @" + callee + " has another type");
    std::vector<mlir::Value> results = importFunction(func, n.inputs(0, n.numInputs()));
    for (auto [i, value] : llvm::enumerate(results))
      if (value)
        n.out(static_cast<int>(i), value);
  }

  /// A region's block, checked to take and to give values of these types.
  mlir::Block &bodyOf(OpImporter &n, int number, mlir::TypeRange arguments, mlir::TypeRange results) {
    mlir::Region &region = n.region(number);
    if (region.front().empty() || mlir::TypeRange(region.front().getArgumentTypes()) != arguments ||
        mlir::TypeRange(region.front().back().getOperandTypes()) != results)
      n.fail("region " + std::to_string(number) + " has arguments or results of other types");
    return region.front();
  }

  /// Fills a body of a graph op with the ops that `values` emits; false if one of them is unsupported.
  bool fill(mlir::Region &region, OpImporter &n, mlir::TypeRange arguments,
            llvm::function_ref<std::vector<mlir::Value>(mlir::Block &)> values) {
    mlir::OpBuilder &b = state_.builder;
    mlir::OpBuilder::InsertionGuard guard(b);
    mlir::Location loc = n.operation()->getLoc();
    mlir::Block *block =
        b.createBlock(&region, {}, arguments, llvm::SmallVector<mlir::Location>(arguments.size(), loc));
    const std::vector<mlir::Value> yielded = values(*block);
    if (llvm::is_contained(yielded, mlir::Value()))
      return false;
    graph::YieldOp::create(b, loc, yielded);
    return true;
  }

  void setResults(OpImporter &n, const std::vector<mlir::Value> &values) {
    for (auto [i, value] : llvm::enumerate(values))
      if (value)
        n.out(static_cast<int>(i), value);
  }

  /// Inlines a branch that a constant chooses: JAX leaves such branches where its own functions branch.
  void importBranch(OpImporter &n) {
    mlir::Operation *op = n.operation();
    if (op->getNumOperands() != 1 || op->getNumRegions() == 0)
      n.fail("needs one operand and a region per branch");
    const bool isCase = n.name() == "stablehlo.case";
    mlir::Value index = n.inputs(0, 1).front();
    if (typeOf(index) != TensorType{isCase ? i32 : DType::boolean, {}} || (!isCase && op->getNumRegions() != 2))
      n.fail("needs one index");
    n.checkAllRead();
    std::vector<mlir::Block *> branches;
    for (unsigned i = 0; i < op->getNumRegions(); ++i)
      branches.push_back(&bodyOf(n, static_cast<int>(i), {}, op->getResultTypes()));
    if (isCase) { // an index outside means the last branch
      mlir::Value last = n.scalar(i32, static_cast<double>(branches.size() - 1)), first = n.scalar(i32, 0);
      mlir::Value outside = n.emit("logical_or", {n.emit("less", {index, first}), n.emit("greater", {index, last})});
      index = n.emit("where", {outside, last, index});
    }
    setResults(n, choose(n, index, branches, 0));
  }

  /// The results of branch number `index`, where `branches` are those from number `first` on. A binary search of conds,
  /// since bodies do not nest deeply. A bool chooses the first of two.
  std::vector<mlir::Value> choose(OpImporter &n, mlir::Value index, llvm::ArrayRef<mlir::Block *> branches,
                                  size_t first) {
    if (branches.size() == 1)
      return importBlock(*branches.front(), {});
    const size_t half = branches.size() / 2;
    mlir::Value isBefore = index;
    if (typeOf(index).dtype != DType::boolean)
      isBefore = n.emit("less", {index, n.scalar(i32, static_cast<double>(first + half))});
    const auto before = branches.take_front(half), behind = branches.drop_front(half);
    if (std::optional<op::HostTensor> known = graph::constantValue(isBefore))
      return *known->as<bool>() ? choose(n, index, before, first) : choose(n, index, behind, first + half);
    mlir::TypeRange types = n.operation()->getResultTypes();
    auto op = graph::CondOp::create(state_.builder, n.operation()->getLoc(), llvm::map_to_vector(types, graphType),
                                    isBefore, mlir::ValueRange());
    bool whole = fill(op.getThen(), n, {}, [&](mlir::Block &) { return choose(n, index, before, first); });
    whole &= fill(op.getOtherwise(), n, {}, [&](mlir::Block &) { return choose(n, index, behind, first + half); });
    return finish(op, whole);
  }

  void importLoop(OpImporter &n) {
    mlir::Operation *op = n.operation();
    mlir::TypeRange types = op->getOperandTypes();
    if (types != mlir::TypeRange(op->getResultTypes()) || op->getNumRegions() != 2)
      n.fail("needs two regions, and results of its operands' types");
    n.checkAllRead();
    mlir::Type flag = mlir::RankedTensorType::get({}, state_.builder.getI1Type());
    mlir::Block &condition = bodyOf(n, 0, types, flag), &body = bodyOf(n, 1, types, types);
    const auto carried = llvm::map_to_vector(types, graphType);
    auto loop = graph::WhileOp::create(state_.builder, op->getLoc(), carried, n.inputs(0, n.numInputs()),
                                       mlir::ValueRange(), mlir::IntegerAttr());
    auto in = [&](mlir::Block &source) {
      return [&](mlir::Block &block) { return importBlock(source, {block.args_begin(), block.args_end()}); };
    };
    bool whole = fill(loop.getCondition(), n, carried, in(condition));
    whole &= fill(loop.getBody(), n, carried, in(body));
    setResults(n, finish(loop, whole));
  }

  /// The op's results, after its bodies got operands for the outside values that they use; undefined ones if not all of
  /// it is supported.
  static std::vector<mlir::Value> finish(graph::ControlOpInterface op, bool whole) {
    if (!whole)
      return std::vector<mlir::Value>(op->getNumResults());
    graph::captureInvariants(op);
    return {op->result_begin(), op->result_end()};
  }

  void report(mlir::Operation *op, const std::string &why) {
    if (reported_.insert(op).second)
      unsupported_.push_back({op->getName().getStringRef().str(), where(op), why});
  }
  std::string where(mlir::Operation *op) { return OpImporter(state_, op).where(); }
  static std::string textOf(mlir::Type type) {
    std::string text;
    llvm::raw_string_ostream os(text);
    type.print(os);
    return text;
  }

  mlir::ModuleOp source_;
  ImportState state_;
  std::vector<mlir::func::FuncOp> calls_; ///< functions being inlined, outermost first
  std::vector<Unsupported> unsupported_;
  std::set<mlir::Operation *> reported_;
  std::string mesh_; ///< "data=4, model=2", where an annotation names one
  int64_t numOps_ = 0;
};

} // namespace

mlir::OwningOpRef<mlir::ModuleOp> import(mlir::ModuleOp source, const std::string &path) {
  return ModuleImporter(source, path).run();
}

} // namespace tressel::stablehlo
