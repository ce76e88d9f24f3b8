// The generic view of the graph dialect: converts between MLIR's operations and OpInfo. Passes use it instead of op
// classes.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace tressel::graph {

/// Registers the `tressel` dialect and the upstream ones it needs (func).
void registerDialects(mlir::DialectRegistry &registry);

/// Detects text from unknown origin that would crash MLIR's parser; to be called before parsing. The parser recurses on
/// brackets, so a million of them exhaust the stack, and allocates as many results as `%0#4000000000` says. Returns
/// "path:3: more than 256 open brackets", or "" if the text is safe.
inline constexpr int kMaxNesting = 256;
inline constexpr uint64_t kMaxResults = 1 << 16;
std::string problemForParser(llvm::StringRef text, llvm::StringRef path);

/// Null if `op` is not an op of the graph dialect's table.
const op::OpInfo *infoOf(mlir::Operation *op);
op::Attrs attrsOf(mlir::Operation *op, const op::OpInfo &info);

/// Element types map to builtin types; u8 is ui8, bool is i1, signed integers are signless. Symbolic sizes become the
/// encoding of the type: tensor<?x784xf32, #tressel.dims<"n", 784>>.
mlir::RankedTensorType toMlir(mlir::MLIRContext *ctx, const TensorType &type);
TensorType fromMlir(mlir::Type type); ///< of a RankedTensorType this dialect accepts
bool isSupported(mlir::Type type);

/// Builds the op with inferred result types. The inputs must be acceptable to `info.infer` (asserts otherwise).
mlir::Operation *createOp(mlir::OpBuilder &b, mlir::Location loc, const op::OpInfo &info, mlir::ValueRange inputs,
                          const op::Attrs &attrs);
/// Builds the decomposition of the composite `op`, and returns the values for its results. `op` is not erased.
llvm::SmallVector<mlir::Value> buildDecomposition(mlir::OpBuilder &b, mlir::Operation *op);
/// A `tressel.constant` from raw row-major bytes, which are copied. More than 256 bytes become a resource blob.
mlir::Value createConstant(mlir::OpBuilder &b, mlir::Location loc, const TensorType &type, std::span<const std::byte> bytes);
/// The bytes of a constant's value in Tressel's layout (bool one byte each, splats expanded); nothing if `v` is no constant.
std::optional<op::HostTensor> constantValue(mlir::Value v);
/// Likewise for the attribute of a constant; nothing for attributes without bytes (a missing blob).
std::optional<op::HostTensor> elementsValue(mlir::Attribute value);

/// The symbols in the types and attributes of an op and of ops nested in it, in textual order: the order of a kernel's
/// scalars.
std::vector<Size> symbolsOf(mlir::Operation *op);
/// Fails with an error at `op` if two symbols in it have one name and different bounds.
llvm::LogicalResult verifySymbols(mlir::Operation *op);

/// The innermost file and line of the user's code in a location, through call sites and fusions; an empty file if
/// unknown.
struct FileLine {
  std::string file;
  unsigned line = 0;
};
FileLine fileLineOf(mlir::Location loc);

// Attributes of a program's arguments and results (func.func @main):
//   {tressel.name = "x"}     an input or output by name
//   {tressel.state = "0.weight"}  on an argument: a Variable's value; on a result: the Variable's next value
inline constexpr llvm::StringLiteral kNameAttr = "tressel.name", kStateAttr = "tressel.state";

} // namespace tressel::graph
