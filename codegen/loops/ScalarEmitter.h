// Scalar functions as LLVM IR, over single values or vectors of any length: the same code serves both. What neither the
// instruction set nor LLVM has without a call into a library is expanded here.
#pragma once

#include "ir/op/LoopForm.h"
#include "tressel/runtime/Cpu.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"

namespace tressel::codegen {

/// What the instruction set offers beyond SSE2 that changes which code is emitted.
struct CpuFeatures {
  runtime::CpuLevel level = runtime::CpuLevel::Baseline;
  int vectorBytes = 16;
  int numVectorRegisters = 16;
  bool sse41 = false; ///< rounding
  bool fma = false;
  bool f16c = false;
  bool avx512 = false;
  bool bf16 = false; ///< conversion to bf16
  bool canonicalizes = false; ///< llvm.canonicalize, which LLVM 22 cannot select for vectors with SSE alone
};

/// In registers, bool is i1, and f16 and bf16 are their bits in i16.
class ScalarEmitter {
public:
  ScalarEmitter(llvm::IRBuilder<> &b, const CpuFeatures &features) : b_(b), features_(features) {}

  /// The code runs in a mode that keeps subnormal numbers, but flushes those of f32 itself: f64 is computed beside them.
  void flushExplicitly() { flushesExplicitly_ = true; }

  llvm::Type *registerType(DType type) const;
  llvm::Type *memoryType(DType type) const;

  /// All of `args` are single values, or all are vectors of one length. `argType` is the type of the arguments of a
  /// comparison or a cast (Select: of the second).
  llvm::Value *emit(op::ScalarOp op, DType type, llvm::ArrayRef<llvm::Value *> args, DType argType);
  llvm::Value *constant(DType type, double f, int64_t i);
  llvm::Value *cast(llvm::Value *v, DType from, DType to);
  llvm::Value *splat(llvm::Value *v, unsigned lanes);
  /// The value that leaves others unchanged under `combine`, and one step of it. ArgMax and ArgMin are not here.
  llvm::Value *identity(op::Combine combine, DType type);
  llvm::Value *combine(op::Combine combine, DType type, llvm::Value *a, llvm::Value *b);
  /// What all steps of `combine` gave, as arithmetic leaves a result: steps only choose between numbers and keep their bits.
  llvm::Value *combined(op::Combine combine, DType type, llvm::Value *v);
  /// The better of two values under ArgMax or ArgMin with where it is: NaN before all, of equals the first. What is not
  /// set yet has the greatest index of its type, and loses.
  struct Place {
    llvm::Value *value, *index;
  };
  Place better(op::Combine combine, DType type, Place a, Place b);

private:
  llvm::Value *emitFloat(op::ScalarOp op, llvm::ArrayRef<llvm::Value *> args);
  llvm::Value *emitFlushed(op::ScalarOp op, llvm::ArrayRef<llvm::Value *> args); ///< with zeros for subnormal numbers
  /// The number as arithmetic sees an operand and leaves a result: a subnormal f32 is zero, in a mode that flushes. Other
  /// instructions flush by themselves: this is for bits that were only moved, and for kernels that flush explicitly.
  llvm::Value *flushed(llvm::Value *v);
  llvm::Value *flushedExplicitly(llvm::Value *v) { return flushesExplicitly_ ? flushed(v) : v; }
  llvm::Value *emitInteger(op::ScalarOp op, DType type, llvm::ArrayRef<llvm::Value *> args);
  llvm::Value *compare(op::ScalarOp op, DType type, llvm::Value *a, llvm::Value *b);
  llvm::Value *widen(llvm::Value *bits, DType from);  ///< f16 or bf16 to f32
  llvm::Value *narrow(llvm::Value *single, DType to); ///< f32 to f16 or bf16, to nearest even
  llvm::Value *floatToInteger(llvm::Value *v, DType to);

  llvm::IRBuilder<> &b_;
  const CpuFeatures &features_;
  bool flushesExplicitly_ = false;
};

} // namespace tressel::codegen
