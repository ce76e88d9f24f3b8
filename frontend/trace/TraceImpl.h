// The state behind TraceRecorder: the module of a trace, and the MLIR values of its tensors, Variables and bodies.
#pragma once

#include "frontend/tensor/Fail.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/Recorder.h"
#include "frontend/trace/Trace.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Stage.h"
#include "tressel/runtime/Engine.h"
#include "tressel/runtime/Shutdown.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <mutex>
#include <set>
#include <unordered_map>

namespace tressel::detail {

/// Making a context costs more than compiling a small program in it, so some are kept. What is uniqued in one stays
/// until it goes, so it goes after a number of uses, and when large constants were put into it.
class ContextLease {
public:
  ContextLease() {
    std::lock_guard lock(pool().mutex);
    if (!pool().spare.empty()) {
      entry_ = std::move(pool().spare.back());
      pool().spare.pop_back();
    }
    if (!entry_) {
      mlir::DialectRegistry registry;
      graph::registerDialects(registry);
      entry_ = std::make_unique<Entry>();
      entry_->context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
      entry_->context->loadAllAvailableDialects();
    }
  }
  ~ContextLease() {
    if (++entry_->uses >= 256 || holdsBlobs_)
      return;
    std::lock_guard lock(pool().mutex);
    if (pool().spare.size() < 4)
      pool().spare.push_back(std::move(entry_));
  }
  ContextLease(const ContextLease &) = delete;
  ContextLease &operator=(const ContextLease &) = delete;

  mlir::MLIRContext &operator*() const { return *entry_->context; }
  mlir::MLIRContext *get() const { return entry_->context.get(); }
  void noteBlob() { holdsBlobs_ = true; }

private:
  struct Entry {
    std::unique_ptr<mlir::MLIRContext> context;
    int uses = 0;
  };
  struct Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<Entry>> spare;
  };
  /// Never destroyed: threads may still trace while the process ends.
  static Pool &pool() {
    static auto *pool = new Pool;
    return *pool;
  }
  std::unique_ptr<Entry> entry_;
  bool holdsBlobs_ = false;
};

inline mlir::Value valueOf(const Tensor &t) { return mlir::Value::getFromOpaquePointer(t.impl()->value); }

inline std::span<const std::byte> bytesOf(const Tensor &t) {
  return {static_cast<const std::byte *>(elementsOf(*t.impl(), t.impl()->where, "a constant of the trace")),
          static_cast<size_t>(t.type().bytes())};
}

struct TraceRecorder::Impl {
  const runtime::StaticsUse use; // first in, last out
  enum class ArgKind : uint8_t { Input, State };
  struct ArgInfo {
    ArgKind kind = ArgKind::Input;
    std::string name;
    size_t state = 0; ///< index into `states`
  };
  struct State {
    std::shared_ptr<VariableImpl> variable;
    std::string name;
    Tensor initial, current;
    bool assigned = false;
    uint32_t home = 0; ///< of the Variable, when it was first touched
  };

  ContextLease context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  mlir::OpBuilder builder{context.get()};
  std::vector<ArgInfo> args;
  SourceLoc at;                                   ///< of what is wrong with all of it: where the first input was given
  std::vector<std::pair<size_t, uint32_t>> homes; ///< of arguments that are not on the host: TensorImpl::home
  std::vector<State> states;
  std::unordered_map<const VariableImpl *, size_t> stateOf;
  std::set<std::string> names;
  std::map<const VariableImpl *, std::string> givenNames; ///< of states
  std::unordered_map<const TensorImpl *, mlir::Value> constants;
  Fingerprint fingerprint;
  std::vector<Tensor> captured; ///< keeps the keys of `constants` alive
  /// Bodies of control flow that are being recorded, or wait for the op that they become part of.
  struct Body {
    std::unique_ptr<mlir::Block> block = std::make_unique<mlir::Block>();
    std::vector<mlir::Value> results;
    std::vector<std::pair<VariableImpl *, mlir::Value>> variables; ///< at its end
    mlir::OpBuilder::InsertPoint outside;
  };
  std::vector<Body> open, closed;
  bool inGradient = false; ///< values of bodies that are recorded may be read: they become residuals
  bool hasEffects = false; ///< the program does more than compute what it returns
  SourceLoc lastWhere, lastUser;
  mlir::Location lastLocation = mlir::UnknownLoc::get(context.get());

  Impl() {
    module = mlir::ModuleOp::create(lastLocation);
    builder.setInsertionPointToEnd(module->getBody());
    func = mlir::func::FuncOp::create(builder, lastLocation, "main", builder.getFunctionType({}, {}));
    builder.setInsertionPointToEnd(func.addEntryBlock());
  }

  mlir::Location fileLine(SourceLoc where) {
    if (!where)
      return mlir::UnknownLoc::get(context.get());
    return mlir::FileLineColLoc::get(context.get(), where.file, where.line, 0);
  }
  /// The user's line; an op inside a layer of the library has both lines. Ops of one line follow each other, so the
  /// last location is kept.
  mlir::Location locate(SourceLoc where) {
    const SourceLoc user = userLine(where);
    auto equal = [](SourceLoc a, SourceLoc b) { return a.file == b.file && a.line == b.line; };
    if (equal(where, lastWhere) && equal(user, lastUser))
      return lastLocation;
    lastWhere = where;
    lastUser = user;
    lastLocation = equal(where, user) ? fileLine(where) : mlir::CallSiteLoc::get(fileLine(where), fileLine(user));
    return lastLocation;
  }

  mlir::Value addArgument(const TensorType &type, ArgKind kind, std::string name, size_t state, SourceLoc where) {
    args.push_back({kind, std::move(name), state});
    return func.getBody().front().addArgument(graph::toMlir(context.get(), type), locate(where));
  }

  std::string uniqueName(std::string wanted) {
    for (std::string name = wanted;; name = wanted + "." + std::to_string(names.size()))
      if (names.insert(name).second)
        return name;
  }

  /// A tensor from outside becomes a constant of the program.
  mlir::Value constant(const Tensor &t, SourceLoc where) {
    auto [it, isNew] = constants.try_emplace(t.impl());
    if (isNew) {
      runtime::Engine::global().wait(*t.impl()->storage, where, "a constant of the trace");
      mlir::OpBuilder::InsertionGuard guard(builder);
      if (builder.getInsertionBlock() != &func.getBody().front()) // for all bodies
        builder.setInsertionPointToStart(&func.getBody().front());
      it->second = graph::createConstant(builder, locate(where), t.type(), bytesOf(t));
      captured.push_back(t);
      if (t.type().bytes() > 256)
        context.noteBlob();
    }
    return it->second;
  }
  mlir::Value valueIn(const Tensor &t, SourceLoc where) {
    if (!t.traced())
      return constant(t, where);
    mlir::Value value = valueOf(t);
    mlir::Block *block = value.getParentBlock();
    if (!inGradient && block != &func.getBody().front() &&
        llvm::none_of(open, [&](const Body &body) { return body.block.get() == block; }))
      fail<TraceError>("a tensor " + t.type().str() + " that was made in a body (at " + t.impl()->where.str() +
                           ") is used outside of it",
                       where, "control flow", "return it from the body");
    return value;
  }

  size_t stateIndex(Recorder &recorder, const std::shared_ptr<VariableImpl> &variable, SourceLoc where);

  /// Where the scopes of this thread say.
  static void place(mlir::Operation *op) {
    if (const auto device = currentDevice(); device && !graph::isTransfer(op)) [[unlikely]]
      graph::setDevice(op, *device);
    if (const auto stage = currentStage()) [[unlikely]]
      graph::setStage(op, *stage, threadState.goesBack);
    if (threadState.segment) [[unlikely]]
      graph::setSegment(op, threadState.segment);
  }

  /// Ends the function with these results; the attributes say what arguments and results are.
  struct Result {
    mlir::Value value;
    mlir::StringRef attr;
    std::string name;
  };
  void close(const std::vector<Result> &results);
  /// Arguments and next values of Variables are where they are, and outputs stay where they are computed.
  void placeValues(size_t numOutputs);
  /// The mesh and the pipeline, and how inputs and Variables are cut over it.
  void cutValues(const FinishOptions &options);
  /// Throws Error where a Variable lies on several accelerators that are not those of the mesh, or of its stage, or on
  /// one that is not its stage's: each call would copy it. Also where the accelerators of a row have no stages.
  void checkHomes(const FinishOptions &options);
  std::vector<SpreadUse> spreadStates(const FinishOptions &options,
                                      std::map<std::string, std::shared_ptr<VariableImpl>> &parts);
  /// States lie where the compiler likes: of a program whose caller copies their values there and back.
  void freeStates();
  /// Inputs and outputs lie in memory that can be pinned.
  void pinValues(size_t numOutputs);
  /// The next values of Variables that are assigned are further results.
  void addNextStates(std::vector<Result> &results) {
    for (const State &state : states)
      if (state.assigned)
        results.push_back({valueIn(state.current, {}), graph::kStateAttr, state.name});
  }
};

} // namespace tressel::detail
