// The interpreter of PTX: what instructions compute, compared with other code that computes the same.
#include "PtxHarness.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <random>

namespace tressel::standin::ptx::test {
namespace {

using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;

/// Numbers at the ends, and others.
template <class T> std::vector<T> integers(unsigned seed, size_t count = 200) {
  std::mt19937_64 random(seed);
  std::vector<T> result;
  const uint64_t ends[] = {0,
                           1,
                           2,
                           ~0ull,
                           ~1ull,
                           0x7f,
                           0x80,
                           0x7fff,
                           0x8000,
                           0x7fffffff,
                           0x80000000,
                           0x7fffffffffffffff,
                           0x8000000000000000,
                           31,
                           32,
                           33,
                           63,
                           64};
  for (size_t i = 0; i < count; ++i) {
    const uint64_t number = random();
    result.push_back(static_cast<T>(number % 4 ? number >> (random() % 64) : ends[random() % std::size(ends)]));
  }
  return result;
}

template <class D, class A, class B, class F>
void check2(const std::string &text, const std::vector<A> &a, const std::vector<B> &b, F f) {
  const auto result = apply<D, A, B>(text, a, b);
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(result[i], static_cast<D>(f(a[i], b[i]))) << text << " " << +a[i] << " " << +b[i];
}
template <class D, class A, class F> void check1(const std::string &text, const std::vector<A> &a, F f) {
  const auto result = apply<D, A>(text, a);
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(result[i], static_cast<D>(f(a[i]))) << text << " " << +a[i];
}

template <class S> void checkIntegers(const std::string &s, const std::string &u, const std::string &b) {
  using U = std::make_unsigned_t<S>;
  using I = __int128;
  constexpr int kBits = 8 * sizeof(U);
  const auto x = integers<U>(1), y = integers<U>(2);
  const auto n = integers<U32>(3);
  check2<U>("add." + s + " $d, $a, $b;", x, y, [](U p, U q) { return I(p) + q; });
  check2<U>("sub." + u + " $d, $a, $b;", x, y, [](U p, U q) { return I(p) - q; });
  check2<U>("mul.lo." + s + " $d, $a, $b;", x, y, [](U p, U q) { return I(p) * q; });
  check2<U>("mul.hi." + s + " $d, $a, $b;", x, y, [](U p, U q) { return I(S(p)) * S(q) >> kBits; });
  check2<U>("mul.hi." + u + " $d, $a, $b;", x, y,
            [](U p, U q) { return static_cast<unsigned __int128>(p) * q >> kBits; });
  check2<U>("div." + u + " $d, $a, $b;", x, y, [](U p, U q) { return q ? I(p) / q : -1; });
  check2<U>("div." + s + " $d, $a, $b;", x, y, [](U p, U q) { return q ? I(S(p)) / S(q) : -1; });
  check2<U>("rem." + s + " $d, $a, $b;", x, y, [](U p, U q) { return q ? I(S(p)) % S(q) : I(p); });
  check2<U>("min." + s + " $d, $a, $b;", x, y, [](U p, U q) { return std::min(S(p), S(q)); });
  check2<U>("max." + u + " $d, $a, $b;", x, y, [](U p, U q) { return std::max(p, q); });
  check2<U>("and." + b + " $d, $a, $b;", x, y, [](U p, U q) { return p & q; });
  check2<U>("xor." + b + " $d, $a, $b;", x, y, [](U p, U q) { return p ^ q; });
  check2<U>("shl." + b + " $d, $a, $b;", x, n, [](U p, U32 q) { return q >= unsigned(kBits) ? I(0) : I(p) << q; });
  check2<U>("shr." + u + " $d, $a, $b;", x, n, [](U p, U32 q) { return q >= unsigned(kBits) ? I(0) : I(p) >> q; });
  check2<U>("shr." + s + " $d, $a, $b;", x, n, [](U p, U32 q) { return I(S(p)) >> std::min(q, 100u); });
  check1<U>("neg." + s + " $d, $a;", x, [](U p) { return -I(p); });
  check1<U>("abs." + s + " $d, $a;", x, [](U p) { return S(p) < 0 ? -I(S(p)) : I(S(p)); });
  check1<U>("not." + b + " $d, $a;", x, [](U p) { return ~p; });
  check2<U32>("setp.lt." + s + " %p1, $a, $b; selp.u32 $d, 1, 0, %p1;", x, y, [](U p, U q) { return S(p) < S(q); });
  check2<U32>("setp.hs." + u + " %p1, $a, $b; selp.u32 $d, 1, 0, %p1;", x, y, [](U p, U q) { return p >= q; });
  check2<U32>("setp.eq." + b + " %p1, $a, $b; selp.u32 $d, 1, 0, %p1;", x, y, [](U p, U q) { return p == q; });
}

TEST(PtxArithmetic, Integers) {
  checkIntegers<int16_t>("s16", "u16", "b16");
  checkIntegers<int32_t>("s32", "u32", "b32");
  checkIntegers<int64_t>("s64", "u64", "b64");
  check2<U64>("mul.wide.u32 $d, $a, $b;", integers<U32>(4), integers<U32>(5), [](U32 p, U32 q) { return U64(p) * q; });
  check2<U64>("mul.wide.s32 $d, $a, $b;", integers<U32>(4), integers<U32>(5),
              [](U32 p, U32 q) { return int64_t(int32_t(p)) * int32_t(q); });
  check2<U32>("mul.wide.u16 $d, $a, $b;", integers<U16>(4), integers<U16>(5), [](U16 p, U16 q) { return U32(p) * q; });
  check2<U32>("add.sat.s32 $d, $a, $b;", integers<U32>(6), integers<U32>(7),
              [](U32 p, U32 q) { return std::clamp<int64_t>(int64_t(int32_t(p)) + int32_t(q), INT32_MIN, INT32_MAX); });
}

TEST(PtxArithmetic, Bits) {
  const auto a = integers<U32>(8), b = integers<U32>(9), c = integers<U32>(10);
  const auto wide = integers<U64>(11);
  check1<U32>("popc.b64 $d, $a;", wide, [](U64 x) { return __builtin_popcountll(x); });
  check1<U32>("clz.b32 $d, $a;", a, [](U32 x) { return x ? __builtin_clz(x) : 32; });
  check1<U64>("brev.b64 $d, $a;", wide, [](U64 x) { return __builtin_bitreverse64(x); });
  check1<U32>("bfind.u32 $d, $a;", a, [](U32 x) { return x ? 31 - __builtin_clz(x) : ~0u; });
  // Bit by bit, as the ISA has it.
  const auto fields = apply<U32, U32>("bfe.s32 $d, $a, $b, $c;", a, b, c);
  const auto plain = apply<U64, U64, U32, U32>("bfe.u64 $d, $a, $b, $c;", wide, b, c);
  const auto inserted = apply<U32, U32>("bfi.b32 $d, $a, $b, $c, 9;", a, b, c);
  const auto permuted = apply<U32, U32>("prmt.b32 $d, $a, $b, $c;", a, b, c),
             logic = apply<U32, U32>("lop3.b32 $d, $a, $b, $c, 0xca;", a, b, c);
  const auto left = apply<U32, U32>("shf.l.wrap.b32 $d, $a, $b, $c;", a, b, c),
             right = apply<U32, U32>("shf.r.clamp.b32 $d, $a, $b, $c;", a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    const unsigned position = b[i] & 255, length = c[i] & 255;
    U32 field = 0, sign = length && std::min(position + length - 1, 31u) < 32
                              ? a[i] >> std::min(position + length - 1, 31u) & 1
                              : 0;
    for (unsigned k = 0; k < 32; ++k)
      field |= (k < length && position + k < 32 ? a[i] >> (position + k) & 1 : sign) << k;
    EXPECT_EQ(fields[i], field) << a[i] << " " << position << " " << length;
    U64 bits = 0;
    for (unsigned k = 0; k < 64; ++k)
      bits |= (k < length && position + k < 64 ? wide[i] >> (position + k) & 1 : 0) << k;
    EXPECT_EQ(plain[i], bits);
    U32 into = b[i];
    for (unsigned k = 0; k < 9 && length + k < 32; ++k)
      into = (into & ~(1u << (length + k))) | (a[i] >> k & 1) << (length + k);
    EXPECT_EQ(inserted[i], into);
    U32 bytes = 0;
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned selector = c[i] >> (4 * k) & 15, which = selector & 7;
      const U32 byte = (which < 4 ? a[i] >> (8 * which) : b[i] >> (8 * (which - 4))) & 255;
      bytes |= (selector & 8 ? (byte >> 7) * 255 : byte) << (8 * k);
    }
    EXPECT_EQ(permuted[i], bytes);
    EXPECT_EQ(logic[i], (a[i] & b[i]) | (~a[i] & c[i]));
    EXPECT_EQ(left[i], c[i] & 31 ? b[i] << (c[i] & 31) | a[i] >> (32 - (c[i] & 31)) : b[i]);
    EXPECT_EQ(right[i], c[i] >= 32 ? b[i] : c[i] ? a[i] >> c[i] | b[i] << (32 - c[i]) : a[i]);
  }
  const auto sums = perThread<U64>("mov.b64 %rd1, 0xfffffffffffffff0; cvt.u64.u32 %rd2, %r0; mov.b64 {%r1, %r2}, %rd1; "
                                   "add.cc.u32 %r3, %r1, %r0; addc.u32 %r4, %r2, 0;"
                                   "mov.b64 %rd3, {%r3, %r4}; st.global.u64 [%rd20], %rd3;");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(sums[l], 0xfffffffffffffff0 + l);
}

std::vector<float> floats(unsigned seed, size_t count = 400) {
  std::mt19937 random(seed);
  const U32 ends[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x7f800000,
                      0xff800000, 0x7fc00000, 0xffc00001, 0x3f800000, 0xbf800000, 0x3f000000, 0x4f000000, 0xcf000000};
  std::vector<float> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(random() % 3 ? std::bit_cast<float>(
                                        static_cast<U32>(random() % 4 ? 0x3f000000 + random() % 0x2000000 : random()))
                                  : std::bit_cast<float>(ends[random() % std::size(ends)]));
  return result;
}
U32 bitsOf(float a) { return a != a ? 0x7fffffff : std::bit_cast<U32>(a); }
float flush(float a) { return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a; }

TEST(PtxArithmetic, Floats) {
  const auto a = floats(1), b = floats(2), c = floats(3);
  auto check = [&](const std::string &text, auto f, bool flushes) {
    const auto result = apply<float, float>(text, a, b, c);
    for (size_t i = 0; i < a.size(); ++i) {
      const float x = flushes ? flush(a[i]) : a[i], y = flushes ? flush(b[i]) : b[i], z = flushes ? flush(c[i]) : c[i];
      const float expected =
          static_cast<float>(f(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)));
      ASSERT_EQ(std::bit_cast<U32>(result[i]), bitsOf(flushes ? flush(expected) : expected))
          << text << " " << a[i] << " " << b[i] << " " << c[i];
    }
  };
  for (const bool flushes : {false, true}) {
    const std::string ftz = flushes ? ".ftz" : "";
    // A double has more than twice the digits: rounding twice is rounding once.
    check("add.rn" + ftz + ".f32 $d, $a, $b;", [](double x, double y, double) { return x + y; }, flushes);
    check("sub" + ftz + ".f32 $d, $a, $b;", [](double x, double y, double) { return x - y; }, flushes);
    check("mul" + ftz + ".f32 $d, $a, $b;", [](double x, double y, double) { return x * y; }, flushes);
    check("div.rn" + ftz + ".f32 $d, $a, $b;", [](double x, double y, double) { return x / y; }, flushes);
    check("sqrt.rn" + ftz + ".f32 $d, $a;", [](double x, double, double) { return std::sqrt(x); }, flushes);
    check("rcp.rn" + ftz + ".f32 $d, $a;", [](double x, double, double) { return 1 / x; }, flushes);
    check(
        "fma.rn" + ftz + ".f32 $d, $a, $b, $c;",
        [](double x, double y, double z) {
          return std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
        },
        flushes);
    check(
        "min" + ftz + ".f32 $d, $a, $b;",
        [](double x, double y, double) {
          return x != x ? y : y != y ? x : x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
        },
        flushes);
    check(
        "max" + ftz + ".f32 $d, $a, $b;",
        [](double x, double y, double) {
          return x != x ? y : y != y ? x : x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
        },
        flushes);
    check(
        "max.NaN" + ftz + ".f32 $d, $a, $b;",
        [](double x, double y, double) {
          return x != x || y != y ? double(NAN) : x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
        },
        flushes);
    check(
        "add.sat" + ftz + ".f32 $d, $a, $b;",
        [](double x, double y, double) {
          return x + y > 0 ? std::min(static_cast<double>(static_cast<float>(x + y)), 1.0) : 0;
        },
        flushes);
  }
}

TEST(PtxArithmetic, RoundingModes) {
  const auto a = floats(4), b = floats(5);
  const std::pair<const char *, int> modes[] = {{"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto &[name, mode] : modes) {
    const auto sums = apply<float, float>("add." + std::string(name) + ".f32 $d, $a, $b;", a, b),
               products = apply<float, float>("mul." + std::string(name) + ".f32 $d, $a, $b;", a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      std::fesetround(mode);
      volatile float x = a[i], y = b[i], sum = x + y, product = x * y;
      std::fesetround(FE_TONEAREST);
      ASSERT_EQ(std::bit_cast<U32>(sums[i]), bitsOf(sum)) << name << a[i] << " " << b[i];
      ASSERT_EQ(std::bit_cast<U32>(products[i]), bitsOf(product)) << name << a[i] << " " << b[i];
    }
  }
}

TEST(PtxArithmetic, Comparisons) {
  const auto a = floats(6), b = floats(7);
  auto check = [&](const std::string &how, auto f) {
    const auto result = apply<U32, float>("setp." + how + ".f32 %p1, $a, $b; selp.u32 $d, 1, 0, %p1;", a, b);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(result[i], static_cast<U32>(f(a[i], b[i]))) << how << a[i] << " " << b[i];
  };
  auto unordered = [](float x, float y) { return x != x || y != y; };
  check("eq", [](float x, float y) { return x == y; });
  check("ne", [&](float x, float y) { return !unordered(x, y) && x != y; });
  check("lt", [](float x, float y) { return x < y; });
  check("ge", [](float x, float y) { return x >= y; });
  check("equ", [&](float x, float y) { return unordered(x, y) || x == y; });
  check("neu", [](float x, float y) { return x != y; });
  check("ltu", [&](float x, float y) { return unordered(x, y) || x < y; });
  check("geu", [&](float x, float y) { return unordered(x, y) || x >= y; });
  check("num", [&](float x, float y) { return !unordered(x, y); });
  check("nan", unordered);
  const auto both = apply<U32, U32>("setp.gt.u32 %p2, $c, 5; setp.lt.and.u32 %p1|%p2, $a, $b, !%p2; selp.u32 %r20, 1, "
                                    "0, %p1; selp.u32 %r21, 2, 0, %p2; or.b32 $d, %r20, %r21;",
                                    {1, 2, 1, 2}, std::vector<U32>{2, 1, 2, 1}, std::vector<U32>{0, 0, 9, 9});
  EXPECT_EQ(both, (std::vector<U32>{1, 2, 0, 0}));
}

TEST(PtxArithmetic, ConversionsToIntegers) {
  const auto a = floats(8);
  auto check = [&](const std::string &text, auto round, double low, double high, auto none) {
    using D = decltype(none);
    const auto result = apply<D, float>(text, a);
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = round(static_cast<double>(a[i]));
      const D expected = x != x      ? none
                         : x <= low  ? static_cast<D>(low)
                         : x >= high ? static_cast<D>(high >= 1.8e19 ? ~0ull
                                                      : high > 9e18  ? INT64_MAX
                                                                     : static_cast<int64_t>(high))
                                     : static_cast<D>(x);
      ASSERT_EQ(result[i], expected) << text << " " << a[i];
    }
  };
  check("cvt.rzi.s32.f32 $d, $a;", [](double x) { return std::trunc(x); }, INT32_MIN, INT32_MAX, int32_t(0));
  check("cvt.rni.u32.f32 $d, $a;", [](double x) { return std::nearbyint(x); }, 0, UINT32_MAX, uint32_t(0));
  check("cvt.rmi.s64.f32 $d, $a;", [](double x) { return std::floor(x); }, -0x1p63, 0x1p63, INT64_MIN);
  check("cvt.rpi.u64.f32 $d, $a;", [](double x) { return std::ceil(x); }, 0, 0x1p64, uint64_t(1) << 63);
  check("cvt.rzi.s16.f32 $d, $a;", [](double x) { return std::trunc(x); }, INT16_MIN, INT16_MAX, int16_t(0));
}

TEST(PtxArithmetic, ConversionsOfIntegers) {
  const auto wide = integers<U64>(12);
  const auto words = integers<U32>(13);
  check1<U64>("cvt.s64.s32 $d, $a;", words, [](U32 x) { return int64_t(int32_t(x)); });
  check1<U32>("cvt.s16.s8 %h1, %h2; cvt.u32.u64 $d, $a;", wide, [](U64 x) { return x; });
  check1<U32>("cvt.u16.u32 %h1, $a; cvt.s16.s8 %h2, %h1; cvt.s32.s16 $d, %h2;", words, [](U32 x) { return int8_t(x); });
  check1<U32>("cvt.s8.s32 %h1, $a; cvt.s32.s16 $d, %h1;", words, [](U32 x) { return int8_t(x); });
  check1<U32>("cvt.sat.u8.s32 $d, $a;", words, [](U32 x) { return std::clamp(int32_t(x), 0, 255); });
  const auto single = apply<float, U64>("cvt.rn.f32.s64 $d, $a;", wide),
             natural = apply<float, U64>("cvt.rn.f32.u64 $d, $a;", wide);
  const auto doubles = apply<double, U32>("cvt.rn.f64.u32 $d, $a;", words);
  const auto down = apply<float, U32>("cvt.rz.f32.u32 $d, $a;", words);
  for (size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(single[i], static_cast<float>(static_cast<long double>(static_cast<int64_t>(wide[i]))));
    EXPECT_EQ(natural[i], static_cast<float>(static_cast<long double>(wide[i])));
    EXPECT_EQ(doubles[i], static_cast<double>(words[i]));
    const unsigned width = words[i] ? 32 - static_cast<unsigned>(__builtin_clz(words[i])) : 0;
    EXPECT_EQ(static_cast<double>(down[i]),
              static_cast<double>(width > 24 ? words[i] >> (width - 24) << (width - 24) : words[i]));
  }
}

/// A number of 16 bits from its definition.
double small(U16 bits, int fraction) {
  const int exponent = (bits & 0x7fff) >> fraction, least = 2 - (1 << (14 - fraction)),
            significand = bits & ((1 << fraction) - 1);
  const double magnitude = exponent ? std::ldexp((1 << fraction) + significand, exponent - 1 + least - fraction)
                                    : std::ldexp(significand, least - fraction);
  const bool isSpecial = exponent == (1 << (15 - fraction)) - 1;
  const double value = isSpecial ? (significand ? NAN : INFINITY) : magnitude;
  return bits & 0x8000 ? -value : value;
}
/// The nearest of 16 bits, found by looking at all that there are.
U16 nearest(double x, int fraction) {
  if (x != x)
    return 0x7fff;
  const U16 sign = std::signbit(x) ? 0x8000 : 0, infinity = static_cast<U16>(0x7fff >> fraction << fraction);
  x = std::fabs(x);
  U16 low = 0, high = infinity; // the greatest that is not above x
  while (high - low > 1) {
    const auto middle = static_cast<U16>((low + high) / 2);
    (small(middle, fraction) <= x ? low : high) = middle;
  }
  if (x == INFINITY)
    return sign | infinity;
  // Infinity is where the next number would be.
  const double above = low + 1 == infinity ? 2 * small(low, fraction) - small(static_cast<U16>(low - 1), fraction)
                                           : small(static_cast<U16>(low + 1), fraction);
  const double half = (small(low, fraction) + above) / 2;
  return static_cast<U16>(sign | (x > half || (x == half && low & 1) ? low + 1 : low));
}

TEST(PtxArithmetic, NumbersOf16Bits) {
  std::vector<U16> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<U16>(i * 40503);
  std::vector<U16> other(all.rbegin(), all.rend()), third(all);
  std::rotate(third.begin(), third.begin() + 777, third.end());
  const auto wide = apply<float, U16>("cvt.f32.f16 $d, $a;", all),
             wideB = apply<float, U16>("cvt.f32.bf16 $d, $a;", all);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<U32>(wide[i]), bitsOf(static_cast<float>(small(all[i], 10)))) << all[i];
    ASSERT_EQ(std::bit_cast<U32>(wideB[i]), bitsOf(static_cast<float>(small(all[i], 7)))) << all[i];
  }
  auto numbers = floats(9, 4000);
  for (size_t i = 0; i < 2000; ++i) // halfway, and next to it
    numbers.push_back(std::bit_cast<float>((std::bit_cast<U32>(static_cast<float>(small(all[i], 10))) | 0x1000) +
                                           static_cast<U32>(i % 3) - 1));
  const auto half = apply<U16, float>("cvt.rn.f16.f32 $d, $a;", numbers),
             brain = apply<U16, float>("cvt.rn.bf16.f32 $d, $a;", numbers);
  const auto toZero = apply<U16, float>("cvt.rz.f16.f32 $d, $a;", numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(half[i], nearest(numbers[i], 10)) << numbers[i];
    ASSERT_EQ(brain[i], nearest(numbers[i], 7)) << numbers[i];
    if (numbers[i] == numbers[i])
      ASSERT_LE(std::fabs(small(toZero[i], 10)), std::fabs(static_cast<double>(numbers[i])));
  }
  const size_t n = 6000;
  all.resize(n), other.resize(n), third.resize(n);
  const auto sum = apply<U16, U16>("add.f16 $d, $a, $b;", all, other),
             product = apply<U16, U16>("mul.rn.bf16 $d, $a, $b;", all, other);
  const auto fused = apply<U16, U16>("fma.rn.f16 $d, $a, $b, $c;", all, other, third);
  for (size_t i = 0; i < n; ++i) {
    const double x = small(all[i], 10), y = small(other[i], 10), z = small(third[i], 10);
    ASSERT_EQ(sum[i], nearest(x + y, 10)) << x << " " << y;
    ASSERT_EQ(product[i], nearest(small(all[i], 7) * small(other[i], 7), 7));
    ASSERT_EQ(fused[i], nearest(x * y + z, 10)) << x << " " << y << " " << z;
  }
  const auto pair = apply<U32, float>("cvt.rn.f16x2.f32 $d, $a, $b; mul.f16x2 $d, $d, $d;", {1.5f, 2, 3},
                                      std::vector<float>{4, 5, 0.5f});
  EXPECT_EQ(pair, (std::vector<U32>{U32(nearest(2.25, 10)) << 16 | nearest(16, 10),
                                    U32(nearest(4, 10)) << 16 | nearest(25, 10),
                                    U32(nearest(9, 10)) << 16 | nearest(0.25, 10)}));
}

TEST(PtxArithmetic, Doubles) {
  std::mt19937_64 random(5);
  std::vector<double> a, b, c;
  for (int i = 0; i < 300; ++i) {
    a.push_back(std::bit_cast<double>(random() >> 2 | random() << 63)),
        b.push_back(static_cast<double>(static_cast<int64_t>(random())) * 1e-18);
    c.push_back(std::bit_cast<double>(random() % 10 ? std::bit_cast<U64>(-a.back() * b.back()) + 1 : random()));
  }
  const auto fused = apply<double, double>("fma.rn.f64 $d, $a, $b, $c;", a, b, c),
             quotient = apply<double, double>("div.rn.f64 $d, $a, $b;", a, b);
  const auto single = apply<float, double>("cvt.rn.f32.f64 $d, $b;", a, b),
             flushed = apply<float, double>("cvt.rn.ftz.f32.f64 $d, $a;", {1e-40, -1e-40, 1.0});
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<U64>(fused[i]), std::bit_cast<U64>(std::fma(a[i], b[i], c[i])));
    ASSERT_EQ(quotient[i], a[i] / b[i]);
    ASSERT_EQ(single[i], static_cast<float>(b[i]));
  }
  EXPECT_EQ(std::bit_cast<U32>(flushed[0]), 0u);
  EXPECT_EQ(std::bit_cast<U32>(flushed[1]), 0x80000000u);
  // Subnormal doubles are kept, between instructions that flush floats.
  const auto kept = perThread<double>("mov.f64 %d1, 0d0000000000000001; mov.f32 %f1, 0f00000001; add.ftz.f32 %f2, %f1, "
                                      "%f1; add.f64 %d2, %d1, %d1; cvt.ftz.f64.f32 %d3, %f2; add.f64 %d2, "
                                      "%d2, %d3; st.global.f64 [%rd20], %d2;");
  EXPECT_EQ(std::bit_cast<U64>(kept[3]), 2u);
}

TEST(PtxArithmetic, Approximations) {
  const std::vector<float> a = {0.1f, 1, 2, 3.7f, 0.9f};
  const auto power = apply<float, float>("ex2.approx.ftz.f32 $d, $a;", a),
             logarithm = apply<float, float>("lg2.approx.f32 $d, $a;", a),
             sine = apply<float, float>("sin.approx.f32 $d, $a;", a);
  const auto root = apply<float, float>("rsqrt.approx.f32 $d, $a;", a),
             tangent = apply<float, float>("tanh.approx.f32 $d, $a;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_FLOAT_EQ(power[i], std::exp2(a[i]));
    EXPECT_FLOAT_EQ(logarithm[i], std::log2(a[i]));
    EXPECT_FLOAT_EQ(sine[i], std::sin(a[i]));
    EXPECT_FLOAT_EQ(root[i], 1 / std::sqrt(a[i]));
    EXPECT_FLOAT_EQ(tangent[i], std::tanh(a[i]));
  }
}

// ---- Matrix products: fragments by the tables of the ISA, and three loops.

struct Shape3 {
  const char *name;
  unsigned k, per; ///< numbers in a register
  int fraction;    ///< of 16 bits; 0: tf32, -1: s8
};

TEST(PtxMatrix, ProductsOfFragments) {
  for (const Shape3 &shape : {Shape3{"m16n8k16.row.col.f32.f16.f16.f32", 16, 2, 10},
                              {"m16n8k8.row.col.f32.bf16.bf16.f32", 8, 2, 7},
                              {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 2, 7},
                              {"m16n8k8.row.col.f32.tf32.tf32.f32", 8, 1, 0},
                              {"m16n8k4.row.col.f32.tf32.tf32.f32", 4, 1, 0},
                              {"m16n8k32.row.col.s32.s8.s8.s32", 32, 4, -1}}) {
    const unsigned k = shape.k, per = shape.per, bRegisters = k / (4 * per), aRegisters = 2 * bRegisters,
                   width = 32 / per;
    std::mt19937 random(k);
    auto element = [&](int value) -> U32 {
      return shape.fraction > 0    ? nearest(value, shape.fraction)
             : shape.fraction == 0 ? std::bit_cast<U32>(static_cast<float>(value))
                                   : static_cast<U32>(value) & 255;
    };
    std::vector<std::vector<int>> a(16, std::vector<int>(k)), b(k, std::vector<int>(8)), c(16, std::vector<int>(8));
    for (auto *matrix : {&a, &b, &c})
      for (auto &row : *matrix)
        for (int &value : row)
          value = static_cast<int>(random() % 17) - 8;
    // Registers of a lane, 16 words each: a, b, c.
    std::vector<U32> in(32 * 16), out(32 * 4);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned group = lane / 4, t = lane % 4;
      for (unsigned r = 0; r < aRegisters; ++r)
        for (unsigned i = 0; i < per; ++i)
          in[16 * lane + r] |= element(a[group + 8 * (r % 2)][r / 2 * 4 * per + t * per + i]) << (width * i % 32);
      for (unsigned r = 0; r < bRegisters; ++r)
        for (unsigned i = 0; i < per; ++i)
          in[16 * lane + 4 + r] |= element(b[r * 4 * per + t * per + i][group]) << (width * i % 32);
      for (unsigned i = 0; i < 4; ++i) {
        const int value = c[group + 8 * (i / 2)][2 * t + i % 2];
        in[16 * lane + 8 + i] =
            shape.fraction < 0 ? static_cast<U32>(value) : std::bit_cast<U32>(static_cast<float>(value));
      }
    }
    auto list = [](unsigned from, unsigned count) {
      std::string text;
      for (unsigned i = 0; i < count; ++i)
        text += (i ? ", %r" : "%r") + std::to_string(from + i);
      return count == 1 ? text : "{" + text + "}";
    };
    for (const bool isBaseline : {false, true}) {
      useBaseline(isBaseline);
      Card card;
      const std::vector<uint64_t> params{card.add(in), card.add(out)};
      const auto fault = runText(
          kernelText(
              "mul.wide.u32 %rd2, %r0, 64; add.u64 %rd0, %rd0, %rd2; mul.wide.u32 %rd2, %r0, 16; add.u64 %rd1, %rd1, "
              "%rd2;"
              "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd0]; ld.global.v4.u32 {%r14, %r15, %r16, %r17}, [%rd0+16];"
              "ld.global.v4.u32 {%r18, %r19, %r20, %r21}, [%rd0+32]; mma.sync.aligned." +
                  std::string(shape.name) + " {%r1, %r2, %r3, %r4}, " + list(10, aRegisters) + ", " +
                  list(14, bRegisters) + ", {%r18, %r19, %r20, %r21}; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};",
              2),
          card, params);
      useBaseline(false);
      ASSERT_FALSE(fault) << messageOf(fault);
      const auto result = card.get<U32>(params[1]);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < 4; ++i) {
          const unsigned row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
          int sum = c[row][column];
          for (unsigned j = 0; j < k; ++j)
            sum += a[row][j] * b[j][column];
          ASSERT_EQ(result[4 * lane + i],
                    shape.fraction < 0 ? static_cast<U32>(sum) : std::bit_cast<U32>(static_cast<float>(sum)))
              << shape.name << " " << lane << " " << i;
        }
    }
  }
}

} // namespace
} // namespace tressel::standin::ptx::test
