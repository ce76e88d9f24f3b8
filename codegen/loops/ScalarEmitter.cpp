#include "codegen/loops/ScalarEmitter.h"

#include "codegen/loops/Math.h"

#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/ErrorHandling.h"

#include <cmath>
#include <limits>

namespace tressel::codegen {

using llvm::Type;
using llvm::Value;
using op::Combine;
using op::ScalarOp;

static bool isHalf(DType t) { return t == DType::f16 || t == DType::bf16; }
static int widthOf(DType t) { return t == DType::boolean ? 1 : static_cast<int>(8 * sizeOf(t)); }
static Type *like(Value *v, Type *scalar) {
  if (auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType()))
    return llvm::FixedVectorType::get(scalar, vector->getNumElements());
  return scalar;
}
static Value *intLike(Value *v, uint64_t n) { return llvm::ConstantInt::get(v->getType(), n); }

Type *ScalarEmitter::registerType(DType type) const {
  switch (type) {
  case DType::f32:
    return b_.getFloatTy();
  case DType::f64:
    return b_.getDoubleTy();
  case DType::f16:
  case DType::bf16:
  case DType::i16:
    return b_.getInt16Ty();
  case DType::i8:
  case DType::u8:
    return b_.getInt8Ty();
  case DType::i32:
    return b_.getInt32Ty();
  case DType::i64:
    return b_.getInt64Ty();
  case DType::boolean:
    return b_.getInt1Ty();
  }
  llvm_unreachable("element type");
}

Type *ScalarEmitter::memoryType(DType type) const {
  return type == DType::boolean ? b_.getInt8Ty() : registerType(type);
}

Value *ScalarEmitter::splat(Value *v, unsigned lanes) {
  if (v->getType()->isVectorTy() || lanes == 0)
    return v;
  return b_.CreateVectorSplat(lanes, v);
}

Value *ScalarEmitter::constant(DType type, double f, int64_t i) {
  if (type == DType::f32 || type == DType::f64)
    return llvm::ConstantFP::get(registerType(type), f);
  if (isHalf(type)) {
    llvm::APFloat value(f);
    bool inexact;
    value.convert(type == DType::f16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(),
                  llvm::APFloat::rmNearestTiesToEven, &inexact);
    return llvm::ConstantInt::get(b_.getInt16Ty(), value.bitcastToAPInt());
  }
  if (type == DType::boolean)
    return b_.getInt1(i != 0);
  return llvm::ConstantInt::get(b_.getContext(),
                                llvm::APInt(static_cast<unsigned>(widthOf(type)), static_cast<uint64_t>(i),
                                            /*isSigned=*/true, /*implicitTrunc=*/true));
}

Value *ScalarEmitter::widen(Value *bits, DType from) {
  Type *single = like(bits, b_.getFloatTy()), *i32 = like(bits, b_.getInt32Ty());
  if (from == DType::bf16)
    return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bits, i32), 16), single);
  if (features_.f16c)
    return b_.CreateFPExt(b_.CreateBitCast(bits, like(bits, b_.getHalfTy())), single);
  // Exponent and mantissa in f32's place, and the difference of the biases. A subnormal one is 2^-14 with its bits behind, less
  // 2^-14: no operand is subnormal as f32, which the thread's mode may flush.
  Value *wide = b_.CreateZExt(bits, i32);
  Value *magnitude = b_.CreateShl(b_.CreateAnd(wide, 0x7fff), 13);
  Value *behind = b_.CreateBitCast(b_.CreateAdd(magnitude, intLike(magnitude, 0x38800000)), single);
  Value *small = b_.CreateBitCast(b_.CreateFSub(behind, llvm::ConstantFP::get(single, 0x1p-14)), i32);
  Value *normal = b_.CreateAdd(magnitude, intLike(magnitude, 0x38000000));
  Value *special = b_.CreateICmpUGE(magnitude, intLike(magnitude, 0x0f800000)); // infinity and NaN
  Value *out = b_.CreateSelect(b_.CreateICmpULT(magnitude, intLike(magnitude, 0x00800000)), small, normal);
  out = b_.CreateSelect(special, b_.CreateOr(magnitude, intLike(magnitude, 0x7f800000)), out);
  return b_.CreateBitCast(b_.CreateOr(out, b_.CreateShl(b_.CreateAnd(wide, 0x8000), 16)), single);
}

Value *ScalarEmitter::narrow(Value *single, DType to) {
  Type *i32 = like(single, b_.getInt32Ty()), *i16 = like(single, b_.getInt16Ty());
  if (to == DType::f16 ? features_.f16c : features_.bf16) {
    // A value just rounded from f64 is not to be converted from there in one step: that needs a library.
    Value *fenced = b_.CreateArithmeticFence(single, single->getType());
    Type *half = to == DType::f16 ? b_.getHalfTy() : b_.getBFloatTy();
    return b_.CreateBitCast(b_.CreateFPTrunc(fenced, like(single, half)), i16);
  }
  Value *bits = b_.CreateBitCast(single, i32);
  Value *nan = b_.CreateFCmpUNO(single, single);
  if (to == DType::bf16) {
    Value *odd = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
    Value *rounded = b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(odd, intLike(odd, 0x7fff))), 16);
    Value *quiet = b_.CreateOr(b_.CreateLShr(bits, 16), intLike(bits, 0x40));
    return b_.CreateTrunc(b_.CreateSelect(nan, quiet, rounded), i16);
  }
  // Denormal results: adding 1/2 aligns the mantissa to multiples of 2^-24. Normal ones: rebias and round by integers.
  Value *sign = b_.CreateAnd(b_.CreateLShr(bits, 16), 0x8000), *a = b_.CreateAnd(bits, 0x7fffffff);
  Value *aligned = b_.CreateFAdd(b_.CreateBitCast(a, single->getType()), llvm::ConstantFP::get(single->getType(), 0.5));
  Value *small = b_.CreateSub(b_.CreateBitCast(aligned, i32), intLike(a, 0x3f000000));
  Value *odd = b_.CreateAnd(b_.CreateLShr(a, 13), 1);
  Value *normal = b_.CreateLShr(b_.CreateAdd(a, b_.CreateAdd(odd, intLike(odd, 0xc8000fff))), 13);
  Value *out = b_.CreateSelect(b_.CreateICmpULT(a, intLike(a, 0x38800000)), small, normal);
  out = b_.CreateSelect(b_.CreateICmpUGE(a, intLike(a, 0x477ff000)), intLike(a, 0x7c00), out); // beyond the largest
  out = b_.CreateSelect(nan, intLike(a, 0x7e00), out);
  return b_.CreateTrunc(b_.CreateOr(out, sign), i16);
}

/// Truncates; what the type cannot hold becomes its nearest value, NaN becomes 0.
Value *ScalarEmitter::floatToInteger(Value *v, DType to) {
  Type *type = like(v, registerType(to));
  const bool isSigned = tressel::isSigned(to);
  // Through i32 where it holds the target, because vectors convert to it in one instruction.
  const int width = widthOf(to);
  const double low = isSigned ? -std::ldexp(1.0, width - 1) : 0;
  const double limit = std::ldexp(1.0, isSigned ? width - 1 : width); // first value too large, exact in both floats
  Value *tooLow = b_.CreateFCmpULT(v, llvm::ConstantFP::get(v->getType(), low)); // NaN as well
  Value *tooHigh = b_.CreateFCmpOGE(v, llvm::ConstantFP::get(v->getType(), limit));
  Value *safe = b_.CreateSelect(b_.CreateOr(tooLow, tooHigh), llvm::ConstantFP::get(v->getType(), 0), v);
  Value *through = b_.CreateFPToSI(safe, width < 32 ? like(v, b_.getInt32Ty()) : type);
  Value *out = width < 32 ? b_.CreateTrunc(through, type) : through;
  const uint64_t maximum = isSigned ? (uint64_t(1) << (width - 1)) - 1 : (uint64_t(1) << width) - 1;
  const uint64_t minimum = isSigned ? uint64_t(1) << (width - 1) : 0;
  Value *nan = b_.CreateFCmpUNO(v, v);
  out = b_.CreateSelect(tooHigh, llvm::ConstantInt::get(type, maximum), out);
  return b_.CreateSelect(b_.CreateAnd(tooLow, b_.CreateNot(nan)), llvm::ConstantInt::get(type, minimum), out);
}

Value *ScalarEmitter::cast(Value *v, DType from, DType to) {
  if (from == to)
    return v;
  if (isHalf(from) && to == DType::f64)
    return b_.CreateFPExt(widen(v, from), like(v, b_.getDoubleTy()));
  if (isHalf(from))
    return cast(widen(v, from), DType::f32, to);
  if (isHalf(to)) {
    Value *single = from == DType::f64 ? b_.CreateFPTrunc(v, like(v, b_.getFloatTy())) : cast(v, from, DType::f32);
    if (from == DType::f64) {
      // Rounding twice would be wrong in ties, so the first time rounds to odd: towards zero, with the last bit set
      // when anything was lost.
      Value *back = b_.CreateFPExt(single, v->getType());
      Value *lost = b_.CreateFCmpONE(back, v);
      Value *larger = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                       b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
      Value *bits = b_.CreateBitCast(single, like(v, b_.getInt32Ty()));
      bits = b_.CreateSub(bits, b_.CreateZExt(larger, bits->getType()));
      bits = b_.CreateOr(bits, b_.CreateZExt(lost, bits->getType()));
      single = b_.CreateBitCast(bits, single->getType());
    }
    return narrow(single, to);
  }
  Type *type = like(v, registerType(to));
  if (from == DType::f32 && (to == DType::boolean || to == DType::f64))
    v = flushedExplicitly(v);
  if (to == DType::boolean)
    return isFloat(from) ? b_.CreateFCmpUNE(v, llvm::ConstantFP::get(v->getType(), 0))
                         : b_.CreateICmpNE(v, llvm::ConstantInt::get(v->getType(), 0));
  if (isFloat(from) && isFloat(to))
    return to == DType::f64 ? b_.CreateFPExt(v, type) : flushedExplicitly(b_.CreateFPTrunc(v, type));
  if (isFloat(from))
    return floatToInteger(v, to);
  const bool isSigned = tressel::isSigned(from);
  if (isFloat(to)) {
    if (widthOf(from) < 32)
      v = b_.CreateIntCast(v, like(v, b_.getInt32Ty()), isSigned);
    return b_.CreateSIToFP(v, type);
  }
  return b_.CreateIntCast(v, type, isSigned);
}

Value *ScalarEmitter::compare(ScalarOp op, DType type, Value *a, Value *b) {
  if (isHalf(type))
    return compare(op, DType::f32, widen(a, type), widen(b, type));
  using P = llvm::CmpInst::Predicate;
  P p = P::BAD_ICMP_PREDICATE;
  const bool s = isSigned(type);
  switch (op) {
  case ScalarOp::Eq:
    p = isFloat(type) ? P::FCMP_OEQ : P::ICMP_EQ;
    break;
  case ScalarOp::Ne:
    p = isFloat(type) ? P::FCMP_UNE : P::ICMP_NE;
    break;
  case ScalarOp::Lt:
    p = isFloat(type) ? P::FCMP_OLT : s ? P::ICMP_SLT : P::ICMP_ULT;
    break;
  case ScalarOp::Le:
    p = isFloat(type) ? P::FCMP_OLE : s ? P::ICMP_SLE : P::ICMP_ULE;
    break;
  case ScalarOp::Gt:
    p = isFloat(type) ? P::FCMP_OGT : s ? P::ICMP_SGT : P::ICMP_UGT;
    break;
  case ScalarOp::Ge:
    p = isFloat(type) ? P::FCMP_OGE : s ? P::ICMP_SGE : P::ICMP_UGE;
    break;
  default:
    llvm_unreachable("not a comparison");
  }
  return b_.CreateCmp(p, flushedExplicitly(a), flushedExplicitly(b));
}

Value *ScalarEmitter::emitInteger(ScalarOp op, DType type, llvm::ArrayRef<Value *> args) {
  Value *a = args[0], *b = args.size() > 1 ? args[1] : nullptr;
  const bool s = isSigned(type);
  switch (op) {
  case ScalarOp::Add:
    return type == DType::boolean ? b_.CreateOr(a, b) : b_.CreateAdd(a, b);
  case ScalarOp::Sub:
    return b_.CreateSub(a, b);
  case ScalarOp::Mul:
    return type == DType::boolean ? b_.CreateAnd(a, b) : b_.CreateMul(a, b);
  case ScalarOp::Min:
    return b_.CreateSelect(b_.CreateICmp(s ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT, a, b), a, b);
  case ScalarOp::Max:
    return b_.CreateSelect(b_.CreateICmp(s ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_UGT, a, b), a, b);
  case ScalarOp::Neg:
    return b_.CreateNeg(a);
  case ScalarOp::Abs:
    return s ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse()) : a;
  case ScalarOp::Sign: {
    Value *zero = intLike(a, 0);
    Value *positive = b_.CreateZExt(s ? b_.CreateICmpSGT(a, zero) : b_.CreateICmpNE(a, zero), a->getType());
    return s ? b_.CreateOr(positive, b_.CreateSExt(b_.CreateICmpSLT(a, zero), a->getType())) : positive;
  }
  case ScalarOp::Floor: case ScalarOp::Ceil: case ScalarOp::Round: case ScalarOp::Trunc: return a;
  case ScalarOp::And: return b_.CreateAnd(a, b);
  case ScalarOp::Or: return b_.CreateOr(a, b);
  case ScalarOp::Xor: return b_.CreateXor(a, b);
  case ScalarOp::Not: return b_.CreateNot(a);
  case ScalarOp::Shl: case ScalarOp::Shr: {
    // Shifts by the width or more leave nothing; zeros come in from the right and from the left, signed or not.
    Value *limit = intLike(b, static_cast<uint64_t>(widthOf(type)) - 1), *over = b_.CreateICmpUGT(b, limit);
    Value *by = b_.CreateSelect(over, intLike(b, 0), b);
    return b_.CreateSelect(over, intLike(a, 0), op == ScalarOp::Shl ? b_.CreateShl(a, by) : b_.CreateLShr(a, by));
  }
  case ScalarOp::Div:
  case ScalarOp::Rem: {
    Value *zero = intLike(a, 0), *one = intLike(a, 1), *byZero = b_.CreateICmpEQ(b, zero);
    if (!s) {
      Value *d = b_.CreateSelect(byZero, one, b);
      return b_.CreateSelect(byZero, zero, op == ScalarOp::Div ? b_.CreateUDiv(a, d) : b_.CreateURem(a, d));
    }
    // -1 is apart because the least integer divided by it overflows.
    Value *minus = b_.CreateICmpEQ(b, llvm::ConstantInt::getSigned(b->getType(), -1));
    Value *d = b_.CreateSelect(b_.CreateOr(byZero, minus), one, b);
    Value *q = b_.CreateSDiv(a, d), *r = b_.CreateSub(a, b_.CreateMul(q, d));
    Value *down = b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, d), zero));
    Value *out = op == ScalarOp::Div
                     ? b_.CreateSelect(minus, b_.CreateNeg(a), b_.CreateAdd(q, b_.CreateSExt(down, a->getType())))
                     : b_.CreateSelect(minus, zero, b_.CreateSelect(down, b_.CreateAdd(r, d), r));
    return b_.CreateSelect(byZero, zero, out);
  }
  case ScalarOp::Pow: {
    // By squaring, the exponent's bits one after the other. A negative exponent leaves 0 except for bases 1 and -1.
    Value *result = intLike(a, 1), *base = a;
    for (int bit = 0; bit < widthOf(type); ++bit) {
      Value *set = b_.CreateICmpNE(b_.CreateAnd(b, intLike(b, uint64_t(1) << bit)), intLike(b, 0));
      result = b_.CreateSelect(set, b_.CreateMul(result, base), result);
      base = b_.CreateMul(base, base);
    }
    if (s) {
      Value *minusOne = llvm::ConstantInt::getSigned(a->getType(), -1);
      Value *unit = b_.CreateOr(b_.CreateICmpEQ(a, intLike(a, 1)), b_.CreateICmpEQ(a, minusOne));
      Value *negative = b_.CreateICmpSLT(b, intLike(b, 0));
      // The powers of 1 and -1 follow from the exponent's lowest bit, which squaring has seen.
      result = b_.CreateSelect(b_.CreateAnd(negative, b_.CreateNot(unit)), intLike(a, 0), result);
    }
    return result;
  }
  default:
    break;
  }
  // A float function of integers: the records cast before they call it, so this is a malformed program.
  llvm::report_fatal_error("scalar program: a function of floats applied to integers");
}

/// Whether arithmetic has made the number, so that the mode has flushed it where it flushes.
static bool isResult(Value *v) {
  if (auto *binary = llvm::dyn_cast<llvm::BinaryOperator>(v))
    return binary->getType()->isFPOrFPVectorTy();
  if (auto *constant = llvm::dyn_cast<llvm::Constant>(v))
    return constant->isNullValue();
  if (auto *select = llvm::dyn_cast<llvm::SelectInst>(v))
    return isResult(select->getTrueValue()) && isResult(select->getFalseValue());
  if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(v); call && call->getIntrinsicID() == llvm::Intrinsic::fabs)
    return isResult(call->getOperand(0));
  else if (call)
    return call->getIntrinsicID() == llvm::Intrinsic::canonicalize || call->getIntrinsicID() == llvm::Intrinsic::sqrt;
  if (auto *unary = llvm::dyn_cast<llvm::UnaryOperator>(v))
    return isResult(unary->getOperand(0));
  if (auto *shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(v)) // a splat
    return isResult(shuffle->getOperand(0));
  if (auto *insert = llvm::dyn_cast<llvm::InsertElementInst>(v))
    return llvm::isa<llvm::UndefValue>(insert->getOperand(0)) && isResult(insert->getOperand(1));
  return llvm::isa<llvm::FPTruncInst, llvm::SIToFPInst, llvm::UIToFPInst>(v);
}

Value *ScalarEmitter::flushed(Value *v) {
  if (!v || !v->getType()->getScalarType()->isFloatTy())
    return v;
  if (!flushesExplicitly_) { // the mode decides
    if (isResult(v))
      return v;
    if (features_.canonicalizes)
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::canonicalize, v);
    // What that stands for: a product with a 1 that LLVM does not see.
    return b_.CreateFMul(v, b_.CreateArithmeticFence(llvm::ConstantFP::get(v->getType(), 1), v->getType()));
  }
  Value *bits = b_.CreateBitCast(v, like(v, b_.getInt32Ty()));
  Value *subnormal = b_.CreateICmpEQ(b_.CreateAnd(bits, 0x7f800000), intLike(bits, 0));
  return b_.CreateBitCast(b_.CreateSelect(subnormal, b_.CreateAnd(bits, 0x80000000), bits), v->getType());
}

/// Results that may be an operand's bits, as the operand is close to zero.
static bool mayPassOperand(ScalarOp op) {
  return op == ScalarOp::Expm1 || op == ScalarOp::Log1p || op == ScalarOp::Asin || op == ScalarOp::Min ||
         op == ScalarOp::Max;
}

/// Computed in f64, from where LLVM takes an operand that is chosen for a result back as it was.
static bool isWidened(ScalarOp op) {
  return op == ScalarOp::Sin || op == ScalarOp::Tan || op == ScalarOp::Rem || op == ScalarOp::Pow;
}

Value *ScalarEmitter::emitFlushed(ScalarOp op, llvm::ArrayRef<Value *> args) {
  if (op == ScalarOp::Neg || op == ScalarOp::Abs) // of the sign alone
    return emitFloat(op, args);
  llvm::SmallVector<Value *, 3> operands;
  for (Value *a : args)
    operands.push_back(isWidened(op) ? flushed(a) : flushedExplicitly(a));
  Value *result = emitFloat(op, operands);
  return mayPassOperand(op) ? flushed(result) : flushedExplicitly(result);
}

Value *ScalarEmitter::emitFloat(ScalarOp op, llvm::ArrayRef<Value *> args) {
  Value *a = args[0], *b = args.size() > 1 ? args[1] : nullptr;
  Math m(b_, features_, a->getType());
  const Num x = m.wrap(a), y = m.wrap(b);
  switch (op) {
  case ScalarOp::Add:
    return b_.CreateFAdd(a, b);
  case ScalarOp::Sub:
    return b_.CreateFSub(a, b);
  case ScalarOp::Mul:
    return b_.CreateFMul(a, b);
  case ScalarOp::Div:
    return b_.CreateFDiv(a, b);
  case ScalarOp::Rem:
    return m.rem(x, y).v;
  case ScalarOp::Pow:
    return m.pow(x, y).v;
  case ScalarOp::Min:
    return m.min(x, y).v;
  case ScalarOp::Max:
    return m.max(x, y).v;
  case ScalarOp::Atan2:
    return m.atan2(x, y).v;
  case ScalarOp::Neg:
    return b_.CreateFNeg(a);
  case ScalarOp::Abs:
    return m.abs(x).v;
  case ScalarOp::Sign:
    return m.sign(x).v;
  case ScalarOp::Floor:
    return m.floor(x).v;
  case ScalarOp::Ceil:
    return m.ceil(x).v;
  case ScalarOp::Round:
    return m.rint(x).v;
  case ScalarOp::Trunc:
    return m.trunc(x).v;
  case ScalarOp::Sqrt:
    return m.sqrt(x).v;
  case ScalarOp::Rsqrt:
    return b_.CreateFDiv(llvm::ConstantFP::get(a->getType(), 1), m.sqrt(x).v);
  case ScalarOp::Exp:
    return m.exp(x).v;
  case ScalarOp::Expm1:
    return m.expm1(x).v;
  case ScalarOp::Log:
    return m.log(x).v;
  case ScalarOp::Log1p:
    return m.log1p(x).v;
  case ScalarOp::Sin:
    return m.sin(x).v;
  case ScalarOp::Cos:
    return m.cos(x).v;
  case ScalarOp::Tan:
    return m.tan(x).v;
  case ScalarOp::Asin:
    return m.asin(x).v;
  case ScalarOp::Acos:
    return m.acos(x).v;
  case ScalarOp::Atan:
    return m.atan(x).v;
  case ScalarOp::Sinh:
    return m.sinh(x).v;
  case ScalarOp::Cosh:
    return m.cosh(x).v;
  case ScalarOp::Tanh:
    return m.tanh(x).v;
  case ScalarOp::Erf:
    return m.erf(x).v;
  case ScalarOp::Logistic:
    return m.logistic(x).v;
  default:
    break;
  }
  llvm::report_fatal_error("scalar program: a function of integers applied to floats");
}

Value *ScalarEmitter::emit(ScalarOp op, DType type, llvm::ArrayRef<Value *> args, DType argType) {
  switch (op) {
  case ScalarOp::Cast:
    return cast(args[0], argType, type);
  case ScalarOp::Select:
    return b_.CreateSelect(args[0], args[1], args[2]);
  case ScalarOp::Eq:
  case ScalarOp::Ne:
  case ScalarOp::Lt:
  case ScalarOp::Le:
  case ScalarOp::Gt:
  case ScalarOp::Ge:
    return compare(op, argType, args[0], args[1]);
  case ScalarOp::IsNan: {
    if (!isFloat(argType))
      return llvm::ConstantInt::getFalse(like(args[0], b_.getInt1Ty()));
    Value *v = isHalf(argType) ? widen(args[0], argType) : args[0];
    return b_.CreateFCmpUNO(v, v);
  }
  default:
    break;
  }
  if (isHalf(type)) {
    llvm::SmallVector<Value *, 3> wide;
    for (Value *a : args)
      wide.push_back(widen(a, type));
    return narrow(emitFlushed(op, wide), type);
  }
  return isFloat(type) ? emitFlushed(op, args) : emitInteger(op, type, args);
}

Value *ScalarEmitter::identity(Combine combine, DType type) {
  const double inf = std::numeric_limits<double>::infinity();
  const int width = widthOf(type);
  const bool s = isSigned(type);
  const auto most = static_cast<int64_t>((s ? (uint64_t(1) << (width - 1)) : (uint64_t(1) << width)) - 1);
  switch (combine) {
  case Combine::Prod:
    return constant(type, 1, 1);
  case Combine::Max:
  case Combine::ArgMax:
    return constant(type, -inf, s ? -most - 1 : 0);
  case Combine::Min:
  case Combine::ArgMin:
    return constant(type, inf, most);
  case Combine::All:
    return constant(type, 1, 1);
  default:
    return constant(type, 0, 0);
  }
}

Value *ScalarEmitter::combine(Combine combine, DType type, Value *a, Value *b) {
  switch (combine) {
  case Combine::Sum:
    return emit(ScalarOp::Add, type, {a, b}, type);
  case Combine::Prod:
    return emit(ScalarOp::Mul, type, {a, b}, type);
  case Combine::Max:
  case Combine::Min: {
    const ScalarOp op = combine == Combine::Max ? ScalarOp::Max : ScalarOp::Min;
    if (isHalf(type))
      return narrow(emitFloat(op, {widen(a, type), widen(b, type)}), type);
    return isFloat(type) ? emitFloat(op, {a, b}) : emitInteger(op, type, {a, b});
  }
  case Combine::Any:
    return b_.CreateOr(a, b);
  case Combine::All:
    return b_.CreateAnd(a, b);
  default:
    llvm_unreachable("not combined by one step");
  }
}

Value *ScalarEmitter::combined(Combine combine, DType type, Value *v) {
  if (!isFloat(type) || (!flushesExplicitly_ && combine != Combine::Max && combine != Combine::Min))
    return v;
  return isHalf(type) ? narrow(flushed(widen(v, type)), type) : flushed(v);
}

ScalarEmitter::Place ScalarEmitter::better(Combine combine, DType type, Place a, Place b) {
  Type *indexType = a.index->getType();
  Value *unset = llvm::ConstantInt::get(indexType, llvm::APInt::getSignedMaxValue(indexType->getScalarSizeInBits()));
  const ScalarOp op = combine == Combine::ArgMax ? ScalarOp::Gt : ScalarOp::Lt;
  Value *better = emit(op, DType::boolean, {b.value, a.value}, type);
  Value *equal =
      b_.CreateOr(emit(ScalarOp::Eq, DType::boolean, {a.value, b.value}, type), b_.CreateICmpEQ(a.index, unset));
  if (isFloat(type)) {
    Value *nanA = b_.CreateFCmpUNO(a.value, a.value), *nanB = b_.CreateFCmpUNO(b.value, b.value);
    better = b_.CreateOr(better, b_.CreateAnd(nanB, b_.CreateNot(nanA)));
    equal = b_.CreateOr(equal, b_.CreateAnd(nanA, nanB));
  }
  Value *set = b_.CreateICmpNE(b.index, unset);
  better = b_.CreateAnd(b_.CreateOr(better, b_.CreateAnd(equal, b_.CreateICmpSLT(b.index, a.index))), set);
  return {b_.CreateSelect(better, b.value, a.value), b_.CreateSelect(better, b.index, a.index)};
}

} // namespace tressel::codegen
