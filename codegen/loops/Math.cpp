#include "codegen/loops/Math.h"

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

#include <cmath>
#include <limits>

namespace tressel::codegen {

using llvm::Type;
using llvm::Value;

static Num operator+(Num a, Num b) { return {a.b, a.b->CreateFAdd(a.v, b.v)}; }
static Num operator-(Num a, Num b) { return {a.b, a.b->CreateFSub(a.v, b.v)}; }
static Num operator*(Num a, Num b) { return {a.b, a.b->CreateFMul(a.v, b.v)}; }
static Num operator/(Num a, Num b) { return {a.b, a.b->CreateFDiv(a.v, b.v)}; }
static Num operator-(Num a) { return {a.b, a.b->CreateFNeg(a.v)}; }
static Value *operator<(Num a, Num b) { return a.b->CreateFCmpOLT(a.v, b.v); }
static Value *operator>(Num a, Num b) { return a.b->CreateFCmpOGT(a.v, b.v); }
static Value *operator==(Num a, Num b) { return a.b->CreateFCmpOEQ(a.v, b.v); }

static constexpr double kInf = std::numeric_limits<double>::infinity();
static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// `scalar` with as many lanes as `like`.
static Type *likeVector(Type *like, Type *scalar) {
  if (auto *v = llvm::dyn_cast<llvm::FixedVectorType>(like))
    return llvm::FixedVectorType::get(scalar, v->getNumElements());
  return scalar;
}

Math::Math(llvm::IRBuilder<> &b, const CpuFeatures &features, Type *type)
    : b_(b), features_(features), type_(type), f64_(type->getScalarType()->isDoubleTy()) {
  intType_ = likeVector(type, f64_ ? b.getInt64Ty() : b.getInt32Ty());
}

Num Math::c(double value) const { return wrap(llvm::ConstantFP::get(type_, value)); }
Value *Math::integer(int64_t value) const { return llvm::ConstantInt::getSigned(intType_, value); }
Num Math::select(Value *cond, Num a, Num b) const { return wrap(b_.CreateSelect(cond, a.v, b.v)); }
Value *Math::isNan(Num x) const { return b_.CreateFCmpUNO(x.v, x.v); }
Value *Math::bits(Num x) const { return b_.CreateBitCast(x.v, intType_); }
Num Math::fromBits(Value *v) const { return wrap(b_.CreateBitCast(v, type_)); }

Num Math::poly(Num x, std::initializer_list<double> coefficients) const {
  auto it = coefficients.end();
  Num sum = c(*--it);
  while (it != coefficients.begin())
    sum = sum * x + c(*--it);
  return sum;
}

Num Math::abs(Num x) { return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v)); }
Num Math::sqrt(Num x) { return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.v)); }
Num Math::copySign(Num magnitude, Num sign) {
  return wrap(b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, sign.v));
}

Num Math::rint(Num x) {
  if (features_.sse41)
    return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x.v));
  // Adding and taking away 2^mantissa leaves an integer; what is larger is one already.
  const Num big = c(f64_ ? 0x1p52 : 0x1p23), a = abs(x);
  return copySign(select(a < big, (a + big) - big, a), x);
}
Num Math::floor(Num x) {
  if (features_.sse41)
    return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x.v));
  const Num n = rint(x);
  return copySign(select(n > x, n - c(1), n), x);
}
Num Math::ceil(Num x) {
  return features_.sse41 ? wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x.v)) : -floor(-x);
}
Num Math::trunc(Num x) {
  if (features_.sse41)
    return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x.v));
  return copySign(floor(abs(x)), x);
}

// Of equals the first: zeros of either sign are equal.
Num Math::min(Num a, Num b) { return wrap(b_.CreateSelect(b_.CreateOr(b_.CreateFCmpOLE(a.v, b.v), isNan(a)), a.v, b.v)); }
Num Math::max(Num a, Num b) { return wrap(b_.CreateSelect(b_.CreateOr(b_.CreateFCmpOGE(a.v, b.v), isNan(a)), a.v, b.v)); }
Num Math::sign(Num x) { return select(x == c(0), c(0), select(isNan(x), x, copySign(c(1), x))); }

Num Math::power2(Value *n) const {
  return fromBits(b_.CreateShl(b_.CreateAdd(n, integer(f64_ ? 1023 : 127)), integer(f64_ ? 52 : 23)));
}

Math::Reduced Math::reduceExp(Num x) const {
  // Adding 1.5 * 2^mantissa rounds to an integer that stands in the low bits: no conversion, which NaN would break.
  const Num magic = c(f64_ ? 0x1.8p52 : 0x1.8p23);
  const Num shifted = x * c(M_LOG2E) + magic;
  const Num n = shifted - magic;
  const Num r = f64_ ? x - n * c(0x1.62e42feep-1) - n * c(0x1.a39ef35793c76p-33)
                     : x - n * c(0x1.62e4p-1) - n * c(0x1.7f7d1cf8p-20);
  return {b_.CreateSub(bits(shifted), bits(magic)), n, r};
}

Num Math::expTail(Num r) const { // (exp(r) - 1 - r) / r^2 on |r| < 0.347
  if (f64_) // the Taylor series: its next term is below half a unit
    return poly(r, {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                    1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800});
  return poly(r, {0.5, 0.1666657666611992831, 0.04166655421298415031, 0.008363232883682618204, 0.001392625083149761172});
}

Num Math::exp(Num x) {
  // NaN passes through the comparisons. Two factors of 2^n, so that results may be denormal or infinite.
  const double high = f64_ ? 709.8 : 88.8, low = f64_ ? -746 : -104.5;
  const Num bounded = select(x > c(high), c(high), select(x < c(low), c(low), x));
  const Reduced e = reduceExp(bounded);
  const Num p = (expTail(e.r) * e.r + c(1)) * e.r + c(1);
  if (features_.avx512 && type_->isVectorTy() && type_->getPrimitiveSizeInBits() == 512) {
    // Scales by 2^n in one instruction, denormal and infinite results included.
    const auto id =
        f64_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
    Value *all = f64_ ? static_cast<Value *>(b_.getInt8(0xff)) : b_.getInt16(0xffff);
    return wrap(b_.CreateIntrinsic(id, {}, {p.v, e.nf.v, p.v, all, b_.getInt32(4)})); // 4: the current rounding
  }
  Value *half = b_.CreateAShr(e.n, integer(1));
  return p * power2(half) * power2(b_.CreateSub(e.n, half));
}

Num Math::expm1(Num x) {
  const double high = f64_ ? 709.8 : 88.8, low = f64_ ? -40 : -20;
  const Num bounded = select(x > c(high), c(high), select(x < c(low), c(low), x));
  const Reduced e = reduceExp(bounded);
  const Num p = (e.r * e.r) * expTail(e.r) + e.r; // expm1(r)
  // 2^n p + (2^n - 1), doubled last because 2^n itself may overflow.
  const Num half = power2(b_.CreateSub(e.n, integer(1)));
  const Num y = c(2) * (half * p + (half - c(0.5)));
  return select(x == c(0), x, y);
}

Num Math::log(Num x) {
  const double tiny = f64_ ? 0x1p-1022 : 0x1p-126;
  Value *denormal = x < c(tiny);
  const Num scaled = select(denormal, x * c(f64_ ? 0x1p54 : 0x1p25), x);
  Value *i = bits(scaled);
  // Split at sqrt(1/2), so that x = 2^n (1 + f) with f in [-0.293, 0.414].
  Value *root = integer(f64_ ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  Value *n = b_.CreateAShr(b_.CreateSub(i, root), integer(f64_ ? 52 : 23));
  const Num f = fromBits(b_.CreateSub(i, b_.CreateShl(n, integer(f64_ ? 52 : 23)))) - c(1);
  Num nf = wrap(b_.CreateSIToFP(n, type_));
  nf = select(denormal, nf - c(f64_ ? 54 : 25), nf);
  // log(1 + f) = f - f^2/2 + s (f^2/2 + R), s = f / (2 + f), R from the series of atanh.
  const Num s = f / (c(2) + f), z = s * s, half = c(0.5) * (f * f);
  const Num r = z * (f64_ ? poly(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                     2.0 / 19, 2.0 / 21, 2.0 / 23})
                          : poly(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11}));
  const Num ln2High = c(f64_ ? 0x1.62e42feep-1 : 0x1.62e4p-1),
            ln2Low = c(f64_ ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cf8p-20);
  Num y = nf * ln2High - ((half - (s * (half + r) + nf * ln2Low)) - f);
  y = select(x == c(kInf), x, y);
  y = select(x == c(0), c(-kInf), y);
  return select(b_.CreateFCmpULT(x.v, c(0).v), c(kNan), select(isNan(x), x, y));
}

Num Math::log1p(Num x) {
  const Num u = c(1) + x;
  const Num lost = select(abs(x) > c(1), c(1) - (u - x), x - (u - c(1)));
  const Num y = log(u) + select(u == c(kInf), c(0), lost / u);
  return select(abs(x) < c(f64_ ? 0x1p-54 : 0x1p-25), x, select(u == c(0), c(-kInf), y));
}

Num Math::inDouble(Num x, Num (Math::*f)(Num)) {
  Type *wide = likeVector(type_, b_.getDoubleTy());
  Math math(b_, features_, wide);
  const Num y = (math.*f)(math.wrap(b_.CreateFPExt(x.v, wide)));
  return wrap(b_.CreateFPTrunc(y.v, type_));
}

/// sin(x + quadrantShift pi/2), or tan.
Num Math::trig(Num x, int quadrantShift, bool tangent) {
  // n = rint(x 2/pi), with pi/2 in three parts: the products with the first two are exact while |n| < 2^20. README.md
  // says what that means for larger arguments.
  const Num magic = c(0x1.8p52);
  const Num shifted = x * c(M_2_PI) + magic;
  const Num n = shifted - magic;
  Num r = x - n * c(0x1.921fb544p+0);     // 33 bits
  const Num w1 = n * c(0x1.0b4611a6p-34); // 33 bits
  const Num t = r;
  r = t - w1;
  const Num e1 = (t - r) - w1; // what the subtraction lost
  const Num w2 = n * c(0x1.3198a2e037073p-69);
  // Beyond 2^52 nothing is left of the phase; the bound keeps the result one of a sine's. NaN and infinities pass as NaN.
  const Num reduced = r + (e1 - w2), bound = c(0.7853981633974484);
  const Num y = select(reduced > bound, bound, select(reduced < -bound, -bound, reduced));
  const Num tail = select(abs(reduced) > bound, c(0), (r - y) + (e1 - w2));
  const Num z = y * y;
  // Taylor series on |y| <= pi/4; `tail` is what y lacks.
  const Num s3 = poly(z, {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
                          -1.0 / 1307674368000, 1.0 / 355687428096000});
  const Num sine = y + (z * y * s3 + tail * (c(1) - c(0.5) * z));
  const Num c4 = poly(z, {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200,
                          1.0 / 20922789888000, -1.0 / 6402373705728000});
  const Num half = c(0.5) * z, head = c(1) - half;
  const Num cosine = head + (((c(1) - head) - half) + (z * z * c4 - y * tail));
  Value *quadrant = b_.CreateAdd(bits(shifted), integer(quadrantShift));
  Value *odd = b_.CreateICmpNE(b_.CreateAnd(quadrant, integer(1)), integer(0));
  Num result{nullptr, nullptr};
  if (tangent) {
    result = select(odd, -cosine, sine) / select(odd, sine, cosine);
  } else {
    result = select(odd, cosine, sine);
    Value *flip = b_.CreateShl(b_.CreateAnd(quadrant, integer(2)), integer(62));
    result = fromBits(b_.CreateXor(bits(result), flip));
  }
  // Infinities have no sine.
  result = select(b_.CreateFCmpUGE(abs(x).v, c(kInf).v), c(kNan), result);
  return quadrantShift ? result : select(x == c(0), x, result);
}

Num Math::sin(Num x) { return f64_ ? trig(x, 0, false) : inDouble(x, &Math::sin); }
Num Math::cos(Num x) { return f64_ ? trig(x, 1, false) : inDouble(x, &Math::cos); }
Num Math::tan(Num x) { return f64_ ? trig(x, 0, true) : inDouble(x, &Math::tan); }

Num Math::atan(Num x) {
  // Fold at tan(pi/8) and tan(3 pi/8) into |y| <= tan(pi/8), with one division.
  const Num a = abs(x);
  Value *large = a > c(2.414213562373095), *middle = a > c(0.4142135623730950);
  const Num y = select(large, c(-1), select(middle, a - c(1), a)) / select(large, a, select(middle, a + c(1), c(1)));
  const Num z = y * y;
  const Num g =
      f64_ ? poly(z, {-0.3333333333333333322, 0.1999999999999980453, -0.1428571428565982761, 0.1111111110515544657,
                      -0.09090908753500876844, 0.07692296375032142399, -0.06666424885738255333, 0.05878928997834775133,
                      -0.05230454270650244518, 0.04551593220626549169, -0.03457056198142774688, 0.01628575685522102829})
           : poly(z, {-0.3333333176116851985, 0.1999954048364896344, -0.142639555979846392, 0.1074373149079108304,
                      -0.06451928208121748758});
  const Num base = select(large, c(M_PI_2), select(middle, c(M_PI_4), c(0)));
  const double low = f64_ ? 0x1.1a62633145c07p-54 : -0x1.777a5cp-25; // what the rounded pi/2 lacks
  const Num baseLow = select(large, c(low), select(middle, c(low / 2), c(0)));
  return copySign(base + (y + (z * y * g + baseLow)), x);
}

Num Math::atan2(Num y, Num x) {
  const Num ax = abs(x), ay = abs(y);
  Value *steep = ay > ax;
  Num ratio = select(steep, ax, ay) / select(steep, ay, ax);
  ratio = select(b_.CreateAnd(ax == c(0), ay == c(0)), c(0), ratio);
  ratio = select(b_.CreateAnd(ax == c(kInf), ay == c(kInf)), c(1), ratio);
  Num angle = atan(ratio);
  angle = select(steep, c(M_PI_2) - angle, angle);
  Value *negative = b_.CreateICmpSLT(bits(x), integer(0));
  angle = select(negative, c(M_PI) - angle, angle);
  return select(b_.CreateOr(isNan(x), isNan(y)), x + y, copySign(angle, y));
}

Num Math::asin(Num x) {
  const Num y = atan(x / sqrt((c(1) - x) * (c(1) + x)));
  return select(abs(x) > c(1), c(kNan), select(x == c(0), x, y));
}
Num Math::acos(Num x) { return select(abs(x) > c(1), c(kNan), c(2) * atan(sqrt((c(1) - x) / (c(1) + x)))); }

Num Math::sinh(Num x) {
  const Num a = abs(x), t = expm1(a), small = c(0.5) * (t + t / (t + c(1)));
  const Num root = exp(c(0.5) * a), large = (c(0.5) * root) * root;
  return copySign(select(a > c(20), large, small), x);
}
Num Math::cosh(Num x) {
  const Num a = abs(x), e = exp(a), root = exp(c(0.5) * a);
  return select(a > c(20), (c(0.5) * root) * root, c(0.5) * (e + c(1) / e));
}
Num Math::tanh(Num x) {
  const Num a = abs(x), t = expm1(c(2) * a);
  const Num y = select(a > c(f64_ ? 22 : 10), c(1), quotient(t, t + c(2)));
  return select(isNan(x), x, copySign(y, x));
}

Num Math::logistic(Num x) {
  const Num e = exp(-abs(x));
  return quotient(select(x < c(0), e, c(1)), c(1) + e);
}

Num Math::quotient(Num a, Num d) {
  if (f64_ || !features_.avx512 || !type_->isVectorTy() || type_->getPrimitiveSizeInBits() != 512)
    return a / d;
  // Dividing vectors takes as long as 30 products. An estimate to 2^-14, and a step of Newton's.
  const Num estimate =
      wrap(b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {}, {d.v, d.v, b_.getInt16(0xffff)}));
  return a * (estimate + estimate * (c(1) - d * estimate));
}

/// x P(t) with t = 2 x^2 / 3.9375^2 - 1, up to where the result rounds to 1: cheaper than the two parts that f64 needs, and
/// than a quotient of lower degree, as a division of vectors costs as much as ten products.
Num Math::erfSingle(Num x) {
  const Num limit = c(3.9375), bounded = select(x > limit, limit, select(x < -limit, -limit, x));
  const Num t = bounded * bounded * c(2 / (3.9375 * 3.9375)) - c(1);
  const Num p = poly(t, {0.3591358251279237299, -0.1793253376245699915, 0.1335554618819260292, -0.1088663156346977689,
                         0.09051716362192000608, -0.07418309660035102273, 0.05884010463256506125, -0.04405588175711156955,
                         0.03009643724264686159, -0.02025627530366983267, 0.01490745038348258691, -0.008316858950027763266,
                         0.001828566380548635634, -0.001223266204189394404, 0.00229274377190870127, -0.000978422261882249054});
  const Num y = bounded * p;
  // Exactly 1 from there on, not a last place below, as gelu multiplies the difference by any x: the first coefficient is greater
  // by 6e-8 than the fit's, so that y passes 1 at the limit.
  return select(y > c(1), c(1), select(y < c(-1), c(-1), y));
}

Num Math::erf(Num x) {
  if (!f64_)
    return erfSingle(x);
  // log(erfc) is smooth where x P(x^2) would need too many terms.
  const Num a = abs(x), u = x * x, bounded = select(a > c(6), c(6), a), t = (bounded - c(3.5)) * c(1 / 2.5);
  const Num small =
      poly(u, {1.128379167095512574, -0.3761263890318375246, 0.1128379167095512563, -0.02686617064513121852,
               0.005223977625441674014, -0.0008548327023403000609, 0.0001205533297887948387, -0.00001492565023696750174,
               1.646211078201863639e-6, -1.636576864883207212e-7, 1.480602714612875166e-8, -1.227773448679552385e-9,
               9.323723518153026634e-11, -6.196736428787699983e-12, 2.806712819561126247e-13});
  const Num logErfc = poly(
      t, {-14.11243740214817376,     -18.16524897091297727,     -6.042206592138938642,     -0.08165090971779556003,
          0.03412841107974121877,    -0.01438454833082411236,   0.005953704476500266256,   -0.002373997272217966794,
          0.0008935765803576782152,  -0.0003078196384588672536, 0.00009090095179427460628, -0.00001847405574622963835,
          -1.477797264746648564e-6,  4.564131261214968402e-6,   -3.421145077573865686e-6,  1.922811452788474848e-6,
          -9.155125406278994369e-7,  3.752083470640887565e-7,   -1.304009386495331347e-7,  3.797617767340115634e-8,
          -3.457472221894704983e-9,  -1.022751133247370739e-8,  7.146217369907720077e-9,   3.35208008617742275e-10,
          -3.680057728058019529e-11, -2.247917164236813813e-9,  1.007808571518733384e-9,   2.959316930225313724e-10,
          -1.835308924843171348e-10});
  const Num large = copySign(c(1) - exp(logErfc), x);
  return select(b_.CreateFCmpOGT(a.v, c(1).v), large, x * small);
}

Num Math::pow(Num x, Num y) {
  if (!f64_) { // in f64 the error of log is far below f32's
    Type *wide = likeVector(type_, b_.getDoubleTy());
    Math math(b_, features_, wide);
    const Num p = math.pow(math.wrap(b_.CreateFPExt(x.v, wide)), math.wrap(b_.CreateFPExt(y.v, wide)));
    return wrap(b_.CreateFPTrunc(p.v, type_));
  }
  const Num a = abs(x);
  Num p = exp(y * log(a));
  // x < 0: an odd integer y gives a sign, another integer none, the rest NaN.
  Value *integral = rint(y) == y;
  const Num half = y * c(0.5);
  Value *odd = b_.CreateAnd(integral, b_.CreateNot(rint(half) == half));
  Value *negative = b_.CreateICmpSLT(bits(x), integer(0));
  p = select(b_.CreateAnd(odd, negative), -p, p);
  p = select(b_.CreateAnd(b_.CreateAnd(x < c(0), b_.CreateNot(integral)), b_.CreateNot(a == c(kInf))), c(kNan), p);
  p = select(b_.CreateAnd(a == c(1), abs(y) == c(kInf)), c(1), p);
  p = select(b_.CreateOr(isNan(x), isNan(y)), x + y, p);
  return select(b_.CreateOr(y == c(0), x == c(1)), c(1), p);
}

Num Math::rem(Num a, Num b) { // the result has the divisor's sign
  if (!f64_) {
    Type *wide = likeVector(type_, b_.getDoubleTy());
    Math math(b_, features_, wide);
    const Num r = math.rem(math.wrap(b_.CreateFPExt(a.v, wide)), math.wrap(b_.CreateFPExt(b.v, wide)));
    return wrap(b_.CreateFPTrunc(r.v, type_));
  }
  const Num m = abs(b), n = abs(a);
  // The product must be exact: by fma, or by halves of the mantissas.
  const Num q = trunc(n / m);
  Num r{nullptr, nullptr};
  if (features_.fma) {
    r = wrap(b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {(-q).v, m.v, n.v}));
  } else {
    auto high = [&](Num x) {
      const Num t = x * c(134217729);
      return t - (t - x);
    };
    const Num p = q * m, qh = high(q), ql = q - qh, mh = high(m), ml = m - mh;
    r = (n - p) - (((qh * mh - p) + qh * ml + ql * mh) + ql * ml);
  }
  r = select(r < c(0), r + m, r); // the quotient may have been rounded up
  r = select(b_.CreateFCmpOGE(r.v, m.v), r - m, r);
  r = select(b_.CreateAnd(m == c(kInf), n < c(kInf)), n, r);
  r = copySign(r, a);
  Value *differ = b_.CreateAnd(b_.CreateFCmpONE(r.v, c(0).v), b_.CreateXor(a < c(0), b < c(0)));
  r = select(differ, r + b, r);
  return select(r == c(0), copySign(r, b), r);
}

} // namespace tressel::codegen
