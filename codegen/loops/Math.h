// Elementary functions in f32 and f64 as polynomial expansions, vectorized. README.md lists the error bounds, which the
// unit test asserts. Infinities, NaN, signed zeros and denormals come out as in libm, unless the table says otherwise.
#pragma once

#include "codegen/loops/ScalarEmitter.h"

namespace tressel::codegen {

/// A float value or vector with arithmetic, so that formulas read as formulas.
struct Num {
  llvm::IRBuilder<> *b;
  llvm::Value *v;
};

class Math {
public:
  Math(llvm::IRBuilder<> &b, const CpuFeatures &features, llvm::Type *type);

  Num wrap(llvm::Value *v) const { return {&b_, v}; }

  Num rint(Num x), trunc(Num x), floor(Num x), ceil(Num x);
  Num sqrt(Num x), abs(Num x), copySign(Num magnitude, Num sign);
  Num exp(Num x), expm1(Num x), log(Num x), log1p(Num x);
  Num sin(Num x), cos(Num x), tan(Num x);
  Num asin(Num x), acos(Num x), atan(Num x), atan2(Num y, Num x);
  Num sinh(Num x), cosh(Num x), tanh(Num x);
  Num erf(Num x), logistic(Num x), pow(Num x, Num y), rem(Num a, Num b);
  Num min(Num a, Num b), max(Num a, Num b); ///< NaN if either is
  Num sign(Num x);

private:
  Num c(double value) const;
  Num poly(Num x, std::initializer_list<double> coefficients) const; ///< lowest first
  Num select(llvm::Value *cond, Num a, Num b) const;
  llvm::Value *isNan(Num x) const;
  llvm::Value *bits(Num x) const;
  Num fromBits(llvm::Value *v) const;
  llvm::Value *integer(int64_t value) const; ///< of the float's width
  /// n = rint(x * log2 e) as integer and float, r = x - n ln 2.
  struct Reduced {
    llvm::Value *n;
    Num nf, r;
  };
  Reduced reduceExp(Num x) const;
  Num expTail(Num r) const;         ///< (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2
  Num power2(llvm::Value *n) const; ///< for normal results
  Num quotient(Num a, Num d);       ///< to 2 units in the last place, for 1 <= d < 2^126; a NaN of either passes
  Num erfSingle(Num x);
  Num trig(Num x, int quadrantShift, bool tangent);
  Num inDouble(Num x, Num (Math::*f)(Num));

  llvm::IRBuilder<> &b_;
  const CpuFeatures &features_;
  llvm::Type *type_;
  llvm::Type *intType_;
  bool f64_;
};

} // namespace tressel::codegen
