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

/// An MLIR context from a pool, as making one costs more than compiling a small program. A context never frees what it
/// uniques, so it is destroyed after a number of uses, or once it holds large constants.
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
  const runtime::StaticsUse use; // declared first, so destroyed last
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
  SourceLoc at; ///< of errors about the whole program: where the first input was given
  std::vector<std::pair<size_t, uint32_t>> homes; ///< TensorImpl::home of the arguments that are not on the host
  std::vector<State> states;
  std::unordered_map<const VariableImpl *, size_t> stateOf;
  std::set<std::string> names;
  std::map<const VariableImpl *, std::string> givenNames; ///< from nameStates()
  std::unordered_map<const TensorImpl *, mlir::Value> constants;
  Fingerprint fingerprint;
  std::vector<Tensor> captured; ///< keeps the keys of `constants` alive
  /// Bodies that are being recorded (open), or are recorded and wait for their op (closed).
  struct Body {
    std::unique_ptr<mlir::Block> block = std::make_unique<mlir::Block>();
    std::vector<mlir::Value> results;
    std::vector<std::pair<VariableImpl *, mlir::Value>> variables; ///< values of Variables at its end
    mlir::OpBuilder::InsertPoint outside;
  };
  std::vector<Body> open, closed;
  bool inGradient = false; ///< values of closed bodies may be read: they become residuals
  bool hasEffects = false; ///< the program does more than compute its results
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
  /// The user's line; for an op inside a layer of the library both lines. The last location is cached, as ops of one
  /// line follow each other.
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
      if (builder.getInsertionBlock() != &func.getBody().front()) // dominates all bodies
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

  /// Sets device, stage and segment as this thread's scopes say.
  static void place(mlir::Operation *op) {
    if (const auto device = currentDevice(); device && !graph::isTransfer(op)) [[unlikely]]
      graph::setDevice(op, *device);
    if (const auto stage = currentStage()) [[unlikely]]
      graph::setStage(op, *stage, threadState.goesBack);
    if (threadState.segment) [[unlikely]]
      graph::setSegment(op, threadState.segment);
  }

  /// Ends the function with these results; the attribute of each says what it is.
  struct Result {
    mlir::Value value;
    mlir::StringRef attr;
    std::string name;
  };
  void close(const std::vector<Result> &results);
  /// Arguments and next values of Variables get their homes; outputs stay where they are computed.
  void placeValues(size_t numOutputs);
  /// Sets the mesh and the pipeline, and the sharding of inputs and Variables.
  void cutValues(const FinishOptions &options);
  /// Throws Error where a Variable is not on the accelerators of the mesh, or of the stage that uses it, as each call
  /// would copy it. Also where a pipeline has several accelerators in a row and no op has a stage.
  void checkHomes(const FinishOptions &options);
  std::vector<SpreadUse> spreadStates(const FinishOptions &options,
                                      std::map<std::string, std::shared_ptr<VariableImpl>> &parts);
  /// Lets the compiler place the states: for a program whose caller copies their values in and out.
  void freeStates();
  /// Inputs and outputs get memory that can be pinned.
  void pinValues(size_t numOutputs);
  /// The next values of assigned Variables become further results.
  void addNextStates(std::vector<Result> &results) {
    for (const State &state : states)
      if (state.assigned)
        results.push_back({valueIn(state.current, {}), graph::kStateAttr, state.name});
  }
};

} // namespace tressel::detail
