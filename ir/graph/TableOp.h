// How the op table becomes ops of MLIR: one model, registered once per row of the table. There are no generated op classes: a
// new row costs no compile time here, and ops that a program registers at run time would come in by the same door.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "ir/graph/GraphDialect.h.inc"

namespace tressel::graph {

/// Marks the ops of the table. The type id of such an op is the address of its OpInfo.
template <typename ConcreteT> class IsTableOp : public mlir::OpTrait::TraitBase<ConcreteT, IsTableOp> {};

/// Registers `info` as `tressel.<name>`.
void registerTableOp(mlir::Dialect &dialect, const op::OpInfo &info);

/// Value of attribute number `index` for MLIR; null for one that is absent.
mlir::Attribute toMlirAttr(mlir::MLIRContext *ctx, const op::Attr &attr);
/// Reads an attribute; false when it has another kind.
bool fromMlirAttr(mlir::Attribute attr, op::AttrKind kind, op::Attr &out);

/// The simplifications that hold for every op by what its OpInfo says: identities, idempotence, composition, views of
/// views, constants folded by evaluation (results up to kMaxFoldedBytes).
inline constexpr int64_t kMaxFoldedBytes = 4096;
mlir::LogicalResult foldTableOp(mlir::Operation *op, const op::OpInfo &info, llvm::ArrayRef<mlir::Attribute> operands,
                                llvm::SmallVectorImpl<mlir::OpFoldResult> &results);

mlir::LogicalResult verifyTableOp(mlir::Operation *op, const op::OpInfo &info);

/// Dense up to 256 bytes (splats always), else a resource blob, which shares the tensor's bytes: they must not change any more.
mlir::ElementsAttr elementsAttr(mlir::MLIRContext *ctx, const op::HostTensor &tensor);
/// A constant op with that value.
mlir::Value createConstant(mlir::OpBuilder &b, mlir::Location loc, const op::HostTensor &tensor);

} // namespace tressel::graph
