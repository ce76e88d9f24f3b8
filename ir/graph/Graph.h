// The graph dialect seen generically: between MLIR's operations and OpInfo. Passes use this and never the op classes.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace tressel::graph {

/// Registers the `tressel` dialect and the upstream ones it needs (func).
void registerDialects(mlir::DialectRegistry &registry);

/// What MLIR's parser does not survive in a text of unknown origin, to be asked before it is parsed: it recurses on
/// brackets, so that a million of them exhaust the stack, and makes room for as many results as `%0#4000000000` says.
/// "path:3: more than 256 open brackets", or "" if there is nothing of the kind.
inline constexpr int kMaxNesting = 256;
inline constexpr uint64_t kMaxResults = 1 << 16;
std::string problemForParser(llvm::StringRef text, llvm::StringRef path);

/// Null if `op` is not an op of the graph dialect's table.
const op::OpInfo *infoOf(mlir::Operation *op);
op::Attrs attrsOf(mlir::Operation *op, const op::OpInfo &info);

/// f16 and the like map to builtin types; u8 is ui8, bool is i1, signed integers are signless. A type with symbolic sizes
/// has them as its encoding: tensor<?x784xf32, #tressel.dims<"n", 784>>.
mlir::RankedTensorType toMlir(mlir::MLIRContext *ctx, const TensorType &type);
TensorType fromMlir(mlir::Type type); ///< of a RankedTensorType this dialect accepts
bool isSupported(mlir::Type type);

/// Builds the op with inferred result types. The inputs must be acceptable to `info.infer` (asserts otherwise).
mlir::Operation *createOp(mlir::OpBuilder &b, mlir::Location loc, const op::OpInfo &info, mlir::ValueRange inputs,
                          const op::Attrs &attrs);
/// Builds what the composite `op` is made of, and returns the values that stand for its results. `op` stays.
llvm::SmallVector<mlir::Value> buildDecomposition(mlir::OpBuilder &b, mlir::Operation *op);
/// A `tressel.constant` from raw row-major bytes, which are copied. More than 256 bytes become a resource blob.
mlir::Value createConstant(mlir::OpBuilder &b, mlir::Location loc, const TensorType &type, std::span<const std::byte> bytes);
/// The bytes of a constant's value in Tressel's layout (bool one byte each, splats expanded); nothing if `v` is no constant.
std::optional<op::HostTensor> constantValue(mlir::Value v);
/// The same for the attribute of a constant; nothing for attributes that hold no bytes (a blob that is missing).
std::optional<op::HostTensor> elementsValue(mlir::Attribute value);

/// The symbols in the types and attributes of an op and of all ops inside it, in the order of their text; a kernel gets
/// their values as its scalars.
std::vector<Size> symbolsOf(mlir::Operation *op);
/// Fails with an error at `op` if two symbols in it have one name and different bounds.
llvm::LogicalResult verifySymbols(mlir::Operation *op);

/// The user's innermost file and line of a location, through call sites and fusions; empty file when unknown.
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
