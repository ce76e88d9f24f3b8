// Matrix products of a warp. Layouts: PTX ISA, "Matrix fragments for mma.m16n8k...": of the 32 lanes, group = lane / 4 and t = lane % 4. A register
// of a or b holds `per` neighbours in k; lane t has those from t * per on, and a next register those 4 * per further.
#pragma once

#include "test/standin/ptx/ExecuteConvert.h"

namespace tressel::standin::ptx::PTX_EXECUTE {

enum class Element : uint8_t { Half, Bfloat, Tensor, Signed, Unsigned };

template <Element E> inline void unpack(uint32_t bits, double *out) {
  if constexpr (E == Element::Half) {
    out[0] = Half::toDouble(static_cast<uint16_t>(bits));
    out[1] = Half::toDouble(static_cast<uint16_t>(bits >> 16));
  } else if constexpr (E == Element::Bfloat) {
    out[0] = Bfloat::toDouble(static_cast<uint16_t>(bits));
    out[1] = Bfloat::toDouble(static_cast<uint16_t>(bits >> 16));
  } else if constexpr (E == Element::Tensor)
    out[0] = static_cast<double>(std::bit_cast<float>(bits & 0xffffe000)); // the other bits are not looked at
  else
    for (unsigned i = 0; i < 4; ++i)
      out[i] = E == Element::Signed ? static_cast<double>(static_cast<int8_t>(bits >> (8 * i))) : static_cast<double>(bits >> (8 * i) & 255);
}

template <Element E, Element F, unsigned K, bool HalfSums> void multiply(Warp &warp, const Instr &instr) {
  constexpr unsigned kPer = E == Element::Tensor ? 1 : E == Element::Half || E == Element::Bfloat ? 2 : 4;
  constexpr unsigned kB = K / (4 * kPer), kA = 2 * kB, kC = HalfSums ? 2 : 4;
  constexpr bool kIsInteger = kPer == 4;
  const uint32_t *more = warp.block->program->extra.data() + instr.aux;
  const uint32_t *source[kA + kB + kC];
  for (unsigned i = 0; i < kA + kB + kC; ++i)
    source[i] = warp.source<uint32_t>(kC + i < 8 ? instr.op[kC + i] : more[kC + i - 8]);
  // Products are exact as doubles, and so nearly always are sums of this few of them.
  alignas(64) double a[16][K], b[K][8], c[16][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned group = lane >> 2, t = lane & 3;
    for (unsigned r = 0; r < kA; ++r)
      unpack<E>(source[r][lane], &a[group + (r & 1) * 8][(r >> 1) * 4 * kPer + t * kPer]);
    for (unsigned r = 0; r < kB; ++r) {
      double x[4];
      unpack<F>(source[kA + r][lane], x);
      for (unsigned i = 0; i < kPer; ++i)
        b[r * 4 * kPer + t * kPer + i][group] = x[i];
    }
    for (unsigned i = 0; i < 4; ++i) {
      double value;
      if constexpr (HalfSums)
        value = Half::toDouble(static_cast<uint16_t>(source[kA + kB + i / 2][lane] >> (16 * (i & 1))));
      else if constexpr (kIsInteger)
        value = static_cast<double>(static_cast<int32_t>(source[kA + kB + i][lane]));
      else
        value = static_cast<double>(std::bit_cast<float>(source[kA + kB + i][lane]));
      c[group + (i >> 1) * 8][t * 2 + (i & 1)] = value;
    }
  }
  for (unsigned row = 0; row < 16; ++row) {
    alignas(64) double sum[8] = {};
    for (unsigned k = 0; k < K; ++k)
      for (unsigned column = 0; column < 8; ++column)
        sum[column] += a[row][k] * b[k][column];
    for (unsigned column = 0; column < 8; ++column)
      c[row][column] += sum[column];
  }
  uint32_t result[kC][kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned group = lane >> 2, t = lane & 3;
    for (unsigned i = 0; i < 4; ++i) {
      const double value = c[group + (i >> 1) * 8][t * 2 + (i & 1)];
      if constexpr (HalfSums) {
        const uint32_t half = Half::fromDouble(value, kNearest);
        result[i / 2][lane] = i & 1 ? result[i / 2][lane] | half << 16 : half;
      } else if constexpr (kIsInteger) // sums wrap
        result[i][lane] = static_cast<uint32_t>(static_cast<int64_t>(value));
      else
        result[i][lane] = std::bit_cast<uint32_t>(canonical(static_cast<float>(value)));
    }
  }
  for (unsigned i = 0; i < kC; ++i)
    perLane<uint32_t>(warp, instr.op[i], [&r = result[i]](unsigned l) { return r[l]; });
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
}

} // namespace tressel::standin::ptx::PTX_EXECUTE
