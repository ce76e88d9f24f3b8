// Queries on programs that several passes share.
#pragma once

#include "passes/cluster/KernelProvider.h"

#include "ir/graph/Structure.h"
#include "ir/op/LoopForm.h"
#include "ir/op/OpInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tressel::passes {

/// The function that is compiled: exactly one func.func, named @main, with one block. Null if the module has none (it
/// is scheduled already, or holds something else); an error if there are others.
llvm::FailureOr<mlir::func::FuncOp> findMain(mlir::ModuleOp module);

/// Fuses locations, the first being the primary one; at most eight are kept.
mlir::Location fuseLocations(mlir::MLIRContext *context, llvm::ArrayRef<mlir::Location> locations);

/// Types of an op's operands or results in the op table's form.
std::vector<TensorType> tableTypes(mlir::TypeRange types);
/// The op's loop form; nothing if the op is not in the table or has none.
std::optional<op::LoopForm> loopFormOf(mlir::Operation *op);
/// The op's kernel form; nothing if no bitcode kernel runs the op.
std::optional<op::KernelForm> kernelFormOf(mlir::Operation *op);
/// Whether the op's kernel is written by hand, here or by a user, and reads all operands from memory, constants of one
/// value too: nothing fuses with it.
bool hasOwnKernel(mlir::Operation *op);
/// Bytes of a tensor, for comparing costs: a typical size where sizes are symbolic.
int64_t bytesOf(mlir::Type tensor);
int64_t flopsOf(mlir::Operation *op);

/// The best of the providers' bids to run `op` alone; of equal bids the first.
std::optional<Bid> cheapestBid(llvm::ArrayRef<const KernelProvider *> providers, mlir::Operation *op,
                               llvm::function_ref<bool(mlir::Value)> isParameterOnly);

/// The op that determines the loops of a kernel: the first product, else the last reduction or
/// window, else the last op.
mlir::Operation *rootOf(llvm::ArrayRef<mlir::Operation *> ops);

/// The permutation of an op that only permutes dimensions: dimension i of the result is dimension order[i] of its
/// operand. Nothing for other ops.
std::optional<op::Ints> permutationOf(mlir::Operation *op);

/// Whether operand `i` is read at exactly the index at which the result is written.
bool readsPointwise(const op::LoopForm &form, size_t i);
/// Whether the form has no reduction: one value per point.
inline bool isPointParallel(const op::LoopForm &form) { return form.combine == op::Combine::None; }

/// An op of the table that needs a kernel: neither a view nor a constant.
bool isComputation(mlir::Operation *op);
/// A constant of one value, which kernels take in as an immediate.
bool isInlineConstant(mlir::Value value);
/// Whether the op's kernel takes the operand in as an immediate.
inline bool isImmediate(mlir::Operation *user, mlir::Value operand) {
  return isInlineConstant(operand) && !hasOwnKernel(user);
}

/// Whether a result of the kernel may lie on the bytes of input `i`: each element of the input is read only for the
/// element of the result that replaces it, or the op's kernel says that it may.
bool mayOverwrite(graph::KernelOp kernel, unsigned i, unsigned result = 0);

/// An op whose kernel writes all results, used or not.
bool writesAllResults(mlir::Operation *op);
/// Whether an op, or the kernel it runs, does something besides computing its results.
bool hasEffects(mlir::Operation *op, mlir::SymbolTableCollection &symbols);
/// Whether an op, or the kernel it runs, may fail on some values of its operands: it checks indices, asserts, or is a
/// custom op.
bool mayFail(mlir::Operation *op, mlir::SymbolTableCollection &symbols);
/// Whether an op, or the kernel it runs, draws random numbers.
bool isRandom(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

/// The three questions above for many ops: caches the answers for the kernels that launches run.
class EffectFacts {
public:
  bool hasEffects(mlir::Operation *op) { return ask(op).effects; }
  bool isRandom(mlir::Operation *op) { return ask(op).random; }
  bool mayFail(mlir::Operation *op) { return ask(op).fails; }

private:
  struct Facts {
    bool effects, random, fails;
  };
  Facts ask(mlir::Operation *op);
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Attribute, Facts> ofKernel;
};

/// The values of @main and of bodies in it that depend only on constants and on states that the program does not write,
/// so that `prepare` can compute them. Results of random ops are not among them: they differ from call to call.
llvm::DenseSet<mlir::Value> parameterOnlyValues(mlir::func::FuncOp main);

} // namespace tressel::passes
