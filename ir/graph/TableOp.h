// Registers the op table as MLIR ops, with one generic model instead of generated op classes. A new op costs no compile
// time here, and ops can be registered at run time in the same way.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "ir/graph/GraphDialect.h.inc"

namespace tressel::graph {

/// Trait of ops of the table. The type id of such an op is the address of its OpInfo.
template <typename ConcreteT> class IsTableOp : public mlir::OpTrait::TraitBase<ConcreteT, IsTableOp> {};

/// Registers `info` as `tressel.<name>`.
void registerTableOp(mlir::Dialect &dialect, const op::OpInfo &info);

/// The value of an attribute for MLIR; null if it is absent.
mlir::Attribute toMlirAttr(mlir::MLIRContext *ctx, const op::Attr &attr);
/// Reads an attribute; false if it has another kind.
bool fromMlirAttr(mlir::Attribute attr, op::AttrKind kind, op::Attr &out);

/// Largest constant that folding creates. Folding works for every op by its OpInfo: identities, idempotence,
/// composition, views of views, and evaluation of constants.
inline constexpr int64_t kMaxFoldedBytes = 4096;
mlir::LogicalResult foldTableOp(mlir::Operation *op, const op::OpInfo &info, llvm::ArrayRef<mlir::Attribute> operands,
                                llvm::SmallVectorImpl<mlir::OpFoldResult> &results);

mlir::LogicalResult verifyTableOp(mlir::Operation *op, const op::OpInfo &info);

/// Dense up to 256 bytes (splats always), else a resource blob that shares the tensor's bytes, which then must not
/// change.
mlir::ElementsAttr elementsAttr(mlir::MLIRContext *ctx, const op::HostTensor &tensor);
/// A constant op with that value.
mlir::Value createConstant(mlir::OpBuilder &b, mlir::Location loc, const op::HostTensor &tensor);

} // namespace tressel::graph
