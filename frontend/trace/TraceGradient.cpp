// Gradients of control flow in a trace.
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/TensorTape.h"
#include "frontend/trace/TraceImpl.h"

#include "ir/graph/ControlGradient.h"

#include "llvm/Support/SaveAndRestore.h"

namespace tressel::detail {

void *TraceRecorder::valueIn(const Tensor &t, SourceLoc where) { return impl_->valueIn(t, where).getAsOpaquePointer(); }

void TraceRecorder::keep(const Tensor &t) {
  if (!t.traced() || !t.impl()->value)
    return;
  mlir::Operation *op = mlir::Value::getFromOpaquePointer(t.impl()->value).getDefiningOp();
  if (op && graph::segmentOf(op))
    op->setAttr(graph::kKeptAttr, mlir::UnitAttr::get(op->getContext()));
}

Fingerprint *TraceRecorder::fingerprintOf() { return &impl_->fingerprint; }

/// Lets gradients that are built in the trace use custom ops' gradient functions, which call ops on tensors.
class TraceRecorder::Gradient final : public graph::GradientContext {
public:
  Gradient(TraceRecorder &recorder, SourceLoc where, bool again)
      : recorder_(recorder), where_(where), again_(again), inGradient_(recorder.impl_->inGradient, true), tape_(threadState.tape, nullptr) {}

  std::vector<Tensor> tensorsOf(mlir::ValueRange values) {
    std::vector<Tensor> tensors;
    for (mlir::Value value : values)
      tensors.push_back(value ? recorder_.makeValue(graph::fromMlir(value.getType()), value.getAsOpaquePointer(), where_) : Tensor());
    return tensors;
  }

private:
  std::optional<llvm::SmallVector<mlir::Value>> pullBack(mlir::OpBuilder &, mlir::Operation *op, llvm::ArrayRef<mlir::Value> given) override {
    const op::OpInfo *info = graph::infoOf(op);
    if (!info)
      return std::nullopt;
    const auto made = customGradient(*info, tensorsOf(op->getOperands()), tensorsOf(op->getResults()), tensorsOf(given), where_);
    if (!made)
      return std::nullopt;
    llvm::SmallVector<mlir::Value> values;
    for (const Tensor &t : *made)
      values.push_back(t.defined() ? recorder_.impl_->valueIn(t, where_) : mlir::Value());
    return values;
  }
  bool again() const override { return again_; }

  TraceRecorder &recorder_;
  const SourceLoc where_;
  const bool again_;
  llvm::SaveAndRestore<bool> inGradient_;
  llvm::SaveAndRestore<TensorTape *> tape_; ///< outer tapes must not record ops that are built in bodies
};

std::vector<Tensor> TraceRecorder::pullBack(void *control, std::span<const Tensor> cotangents, std::span<const uint8_t> wanted,
                                            const std::source_location &where) {
  mlir::OpBuilder &b = impl_->builder;
  mlir::Block &block = *b.getInsertionBlock();
  mlir::Operation *last = block.empty() ? nullptr : &block.back();
  llvm::SmallVector<mlir::Value> given;
  for (const Tensor &t : cotangents)
    given.push_back(t.defined() ? impl_->valueIn(t, toLoc(where)) : mlir::Value());
  std::vector<Tensor> made;
  {
    Gradient gradient(*this, userLine(toLoc(where)), /*again=*/threadState.tape != nullptr);
    made = gradient.tensorsOf(graph::pullBack(b, llvm::cast<graph::ControlOpInterface>(static_cast<mlir::Operation *>(control)), given,
                                              llvm::ArrayRef(wanted.data(), wanted.size()), gradient));
  }
  if (threadState.tape)
    for (auto it = last ? std::next(last->getIterator()) : block.begin(); it != block.end(); ++it)
      noteOnTapes(&*it, where);
  return made;
}

void TraceRecorder::noteOnTapes(void *made, const std::source_location &where) {
  auto *op = static_cast<mlir::Operation *>(made);
  auto tensorsOf = [&](mlir::ValueRange values) {
    std::vector<Tensor> tensors;
    for (mlir::Value value : values)
      tensors.push_back(makeAlias(graph::fromMlir(value.getType()), value.getAsOpaquePointer(), userLine(toLoc(where))));
    return tensors;
  };
  const std::vector<Tensor> operands = tensorsOf(op->getOperands()), results = tensorsOf(op->getResults());
  if (const op::OpInfo *info = graph::infoOf(op))
    detail::noteOnTapes(*info, operands, graph::attrsOf(op, *info), results, where);
  else if (op->getNumRegions() > 0)
    noteControlOnTapes(op, operands, results, where);
}

} // namespace tressel::detail
