// Targets of kernels, and symbolic sizes, as attributes (Attributes.td).
#pragma once

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "tressel/runtime/Size.h"

namespace tressel {
inline llvm::hash_code hash_value(Size size) { return llvm::hash_value(size.bits()); }
} // namespace tressel

#include "ir/graph/AttributeEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/graph/Attributes.h.inc"

namespace tressel::graph {

/// Whether the attribute is a size: a 64-bit integer, or a SizeAttr.
bool isSize(mlir::Attribute attr);
/// The size that an attribute holds; 0 for null.
Size sizeOf(mlir::Attribute attr);
mlir::Attribute sizeAttr(mlir::MLIRContext *context, Size size);

// Parses and prints `64` or `"4*n"` in the syntax of an op.
mlir::ParseResult parseSize(mlir::OpAsmParser &parser, mlir::Attribute &size);
void printSize(mlir::OpAsmPrinter &p, mlir::Operation *op, mlir::Attribute size);

} // namespace tressel::graph
