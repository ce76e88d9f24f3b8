// Emits the ops of fragments (decompositions, reverse rules) as MLIR ops.
#pragma once

#include "ir/graph/Graph.h"

namespace tressel::graph {

/// Inserts ops at the builder's insertion point. A Ref is a Value.
class BuilderEmitter : public op::Emitter {
public:
  BuilderEmitter(mlir::OpBuilder &b, mlir::Location loc) : b_(b), loc_(loc) {}
  std::vector<Ref> emit(const op::OpInfo &info, std::span<const Ref> inputs, const op::Attrs &attrs) override;
  Ref constant(double number, DType type) override;
  Ref constant(const op::HostTensor &host) override;
  TensorType typeOf(Ref ref) override { return fromMlir(value(ref).getType()); }

  /// Sets the location of the ops that follow.
  void setLoc(mlir::Location loc) { loc_ = loc; }
  static mlir::Value value(Ref ref) { return mlir::Value::getFromOpaquePointer(ref); }

private:
  mlir::OpBuilder &b_;
  mlir::Location loc_;
};

} // namespace tressel::graph
