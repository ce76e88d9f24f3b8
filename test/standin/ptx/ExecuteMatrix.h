// Matrix products of a warp. Layouts: PTX ISA, "Matrix fragments for mma.m16n8k...": of the 32 lanes, group = lane / 4
// and t = lane % 4. A register of a or b holds `per` neighbours in k; lane t has those from t * per on, and a next
// register those 4 * per further.
#pragma once

#include "test/standin/ptx/ExecuteConvert.h"

namespace tressel::standin::ptx::PTX_EXECUTE {

enum class Element : uint8_t { Half, Bfloat, Tensor, Signed, Unsigned };

template <Element E>
constexpr unsigned kPerRegister = E == Element::Tensor                         ? 1
                                  : E == Element::Half || E == Element::Bfloat ? 2
                                                                               : 4;

/// The numbers of a register of all lanes: of 8 rows (or of b, columns) 4 * per each, one after the other, as lanes go
/// over t first.
template <Element E> inline void expand(const uint32_t *lanes, double *out) {
  if constexpr (E == Element::Half) {
    alignas(32) float wide[2 * kLanes];
    floatsOf(reinterpret_cast<const uint16_t *>(lanes), wide);
    floatsOf(reinterpret_cast<const uint16_t *>(lanes) + kLanes, wide + kLanes);
    for (unsigned i = 0; i < 2 * kLanes; ++i)
      out[i] = static_cast<double>(wide[i]);
  } else if constexpr (E == Element::Bfloat) {
    const auto *numbers = reinterpret_cast<const uint16_t *>(lanes);
    for (unsigned i = 0; i < 2 * kLanes; ++i)
      out[i] = static_cast<double>(std::bit_cast<float>(uint32_t(numbers[i]) << 16));
  } else if constexpr (E == Element::Tensor)
    for (unsigned i = 0; i < kLanes; ++i)
      out[i] = static_cast<double>(std::bit_cast<float>(lanes[i] & 0xffffe000)); // the other bits are not looked at
  else if constexpr (E == Element::Signed)
    for (unsigned i = 0; i < 4 * kLanes; ++i)
      out[i] = static_cast<double>(reinterpret_cast<const int8_t *>(lanes)[i]);
  else
    for (unsigned i = 0; i < 4 * kLanes; ++i)
      out[i] = static_cast<double>(reinterpret_cast<const uint8_t *>(lanes)[i]);
}

template <Element E, Element F, unsigned K, bool HalfSums> void multiply(Warp &warp, const Instr &instr) {
  constexpr unsigned kPer = kPerRegister<E>, kRun = 4 * kPer, kB = K / kRun, kA = 2 * kB, kC = HalfSums ? 2 : 4;
  constexpr bool kIsInteger = kPer == 4;
  const uint32_t *more = warp.block->program->extra.data() + instr.aux;
  const uint32_t *source[kA + kB + kC];
  for (unsigned i = 0; i < kA + kB + kC; ++i)
    source[i] = warp.source<uint32_t>(kC + i < 8 ? instr.op[kC + i] : more[kC + i - 8]);
  // Products are exact as doubles, and so nearly always are sums of this few of them.
  alignas(64) double a[kA][8][kRun], b[K][8], column[8][kRun];
  for (unsigned r = 0; r < kA; ++r)
    expand<E>(source[r], a[r][0]);
  for (unsigned r = 0; r < kB; ++r) {
    expand<F>(source[kA + r], column[0]);
    for (unsigned n = 0; n < 8; ++n)
      for (unsigned k = 0; k < kRun; ++k)
        b[r * kRun + k][n] = column[n][k];
  }
  // Two registers side by side are rows of 8.
  alignas(64) uint32_t c[2][2 * kLanes];
  for (unsigned upper = 0; upper < 2; ++upper) {
    const uint32_t *const *given = source + kA + kB;
    if constexpr (HalfSums)
      std::memcpy(c[upper], given[upper], sizeof(uint32_t) * kLanes);
    else
      for (unsigned l = 0; l < kLanes; ++l)
        c[upper][2 * l] = given[2 * upper][l], c[upper][2 * l + 1] = given[2 * upper + 1][l];
  }
  for (unsigned upper = 0; upper < 2; ++upper)
    for (unsigned row = 0; row < 8; ++row) {
      double sum[8] = {};
      for (unsigned r = 0; r < kB; ++r)
        for (unsigned k = 0; k < kRun; ++k) {
          const double factor = a[2 * r + upper][row][k];
          for (unsigned n = 0; n < 8; ++n)
            sum[n] = fused(factor, b[r * kRun + k][n], sum[n]);
        }
      for (unsigned n = 0; n < 8; ++n)
        if constexpr (HalfSums) {
          auto *half = reinterpret_cast<uint16_t *>(c[upper]) + 8 * row + n;
          *half = Half::fromDouble(Half::toDouble(*half) + sum[n], kNearest);
        } else if constexpr (kIsInteger) // sums wrap
          c[upper][8 * row + n] += static_cast<uint32_t>(static_cast<int32_t>(sum[n]));
        else
          c[upper][8 * row + n] = std::bit_cast<uint32_t>(
              canonical(static_cast<float>(static_cast<double>(std::bit_cast<float>(c[upper][8 * row + n])) + sum[n])));
    }
  for (unsigned i = 0; i < kC; ++i)
    if constexpr (HalfSums)
      perLane<uint32_t>(warp, instr.op[i], [x = c[i]](unsigned l) { return x[l]; });
    else
      perLane<uint32_t>(warp, instr.op[i], [x = c[i / 2] + (i & 1)](unsigned l) { return x[2 * l]; });
}

/// The sums of a warp's part of a wgmma: warp.small.
inline void multiplySmall(Warp &warp, const Instr &) {
  const SmallProduct &p = *warp.small;
  alignas(64) double sum[256];
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned n = 0; n < p.n; ++n)
      sum[n] = 0;
    for (unsigned k = 0; k < 16; ++k) {
      const auto factor = static_cast<double>(p.a[row * 16 + k]);
      const float *b = p.b + k * p.n;
      for (unsigned n = 0; n < p.n; ++n) // of b and sum, neither of which is the other
        sum[n] = fused(factor, static_cast<double>(b[n]), sum[n]);
    }
    float *c = p.c + row * p.n;
    for (unsigned n = 0; n < p.n; ++n)
      c[n] = canonical(static_cast<float>(static_cast<double>(c[n]) + sum[n]));
  }
}

inline void addMatrixHandlers(const Table &add) {
  using enum Element;
  add("mma", "m16n8k16.f32.f16.f16.f32", multiply<Element::Half, Element::Half, 16, false>);
  add("mma", "m16n8k8.f32.f16.f16.f32", multiply<Element::Half, Element::Half, 8, false>);
  add("mma", "m16n8k16.f16.f16.f16.f16", multiply<Element::Half, Element::Half, 16, true>);
  add("mma", "m16n8k8.f16.f16.f16.f16", multiply<Element::Half, Element::Half, 8, true>);
  add("mma", "m16n8k16.f32.bf16.bf16.f32", multiply<Element::Bfloat, Element::Bfloat, 16, false>);
  add("mma", "m16n8k8.f32.bf16.bf16.f32", multiply<Element::Bfloat, Element::Bfloat, 8, false>);
  add("mma", "m16n8k8.f32.tf32.tf32.f32", multiply<Tensor, Tensor, 8, false>);
  add("mma", "m16n8k4.f32.tf32.tf32.f32", multiply<Tensor, Tensor, 4, false>);
  add("mma", "m16n8k32.s32.s8.s8.s32", multiply<Signed, Signed, 32, false>);
  add("mma", "m16n8k32.s32.u8.u8.s32", multiply<Unsigned, Unsigned, 32, false>);
  add("mma", "m16n8k32.s32.s8.u8.s32", multiply<Signed, Unsigned, 32, false>);
  add("mma", "m16n8k32.s32.u8.s8.s32", multiply<Unsigned, Signed, 32, false>);
  add("mma", "m16n8k16.s32.s8.s8.s32", multiply<Signed, Signed, 16, false>);
  add("mma", "m16n8k16.s32.u8.u8.s32", multiply<Unsigned, Unsigned, 16, false>);
  add("wgmma", "sums", multiplySmall);
}

} // namespace tressel::standin::ptx::PTX_EXECUTE
