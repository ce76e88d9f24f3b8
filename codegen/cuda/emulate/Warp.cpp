// Instructions that a warp executes together. Layouts of fragments: PTX ISA, "Matrix fragments for mma.m16n8k..." and
// "ldmatrix"; shuffles: PTX ISA, "shfl.sync".
#include "codegen/cuda/emulate/Block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>

namespace tressel::codegen::cuda::emulate {
namespace {

constexpr uint32_t kPoison = 0xffffffff;

const std::array<float, 1 << 16> &halves() {
  static const auto table = [] {
    auto all = std::make_unique<std::array<float, 1 << 16>>();
    for (uint32_t bits = 0; bits < all->size(); ++bits) {
      const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
      const float a = exponent == 31 ? (mantissa ? NAN : INFINITY)
                      : exponent     ? std::ldexp(float(1024 + mantissa), exponent - 25)
                                     : std::ldexp(float(mantissa), -24);
      (*all)[bits] = bits & 0x8000 ? -a : a;
    }
    return all;
  }();
  return *table;
}

void shuffle(Op op, std::span<Thread> lanes, uint32_t mask) {
  for (Thread &thread : lanes) {
    const uint32_t lane = thread.lane();
    if (!(mask >> lane & 1))
      continue;
    const auto l = static_cast<int>(lane), b = static_cast<int>(thread.in[2] & 31);
    const uint32_t clamp = thread.in[3] & 31, segment = thread.in[3] >> 8 & 31;
    const auto most = static_cast<int>((lane & segment) | (clamp & ~segment));
    int from = op == Op::ShuffleUp     ? l - b
               : op == Op::ShuffleDown ? l + b
               : op == Op::ShuffleXor  ? l ^ b
                                      : static_cast<int>((lane & segment) | (static_cast<uint32_t>(b) & ~segment & 31));
    const bool inRange = op == Op::ShuffleUp ? from >= most : from <= most;
    if (!inRange)
      from = l;
    // A lane that takes no part has nothing to give.
    thread.out[0] = mask >> from & 1 ? lanes[static_cast<size_t>(from)].in[1] : kPoison;
    thread.out[1] = inRange;
  }
}

void vote(Op op, std::span<Thread> lanes, uint32_t mask) {
  uint32_t ballot = 0;
  for (const Thread &thread : lanes)
    if (mask >> thread.lane() & 1 && thread.in[1])
      ballot |= 1u << thread.lane();
  const uint32_t result = op == Op::VoteBallot ? ballot
                          : op == Op::VoteAll  ? ballot == mask
                          : op == Op::VoteAny  ? ballot != 0
                                               : ballot == mask || ballot == 0;
  for (Thread &thread : lanes)
    thread.out[0] = result;
}

void match(Op op, std::span<Thread> lanes, uint32_t mask) {
  auto value = [](const Thread &t) { return t.in[1] | uint64_t(t.in[2]) << 32; };
  for (Thread &thread : lanes) {
    if (!(mask >> thread.lane() & 1))
      continue;
    uint32_t equal = 0;
    for (const Thread &other : lanes)
      if (mask >> other.lane() & 1 && value(other) == value(thread))
        equal |= 1u << other.lane();
    thread.out[0] = op == Op::MatchAny || equal == mask ? equal : 0;
    thread.out[1] = equal == mask;
  }
}

void reduce(Op op, std::span<Thread> lanes, uint32_t mask) {
  auto combine = [op](uint32_t a, uint32_t b) -> uint32_t {
    const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
    switch (op) {
    case Op::ReduceAdd:
      return a + b;
    case Op::ReduceMin:
      return static_cast<uint32_t>(std::min(x, y));
    case Op::ReduceMax:
      return static_cast<uint32_t>(std::max(x, y));
    case Op::ReduceUnsignedMin:
      return std::min(a, b);
    case Op::ReduceUnsignedMax:
      return std::max(a, b);
    case Op::ReduceAnd:
      return a & b;
    case Op::ReduceOr:
      return a | b;
    default:
      return a ^ b;
    }
  };
  uint32_t result = lanes[static_cast<size_t>(std::countr_zero(mask))].in[1];
  for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1)
    result = combine(result, lanes[static_cast<size_t>(std::countr_zero(rest))].in[1]);
  for (Thread &thread : lanes)
    thread.out[0] = result;
}

void multiply(const Site &site, std::span<Thread> lanes) {
  constexpr int kRows = 16, kColumns = 8, kMost = 32;
  const Op op = site.op;
  const int k = site.k, per = op == Op::MmaTF32 ? 1 : op == Op::MmaS8 ? 4 : 2;
  // A register covers 4 * per of k; those of a alternate between the upper and the lower half of the rows.
  const int steps = k / (4 * per), aRegisters = 2 * steps;
  double a[kRows][kMost] = {}, b[kMost][kColumns] = {};
  const auto &half = halves();
  auto element = [&half, op](uint32_t bits, int i) -> double {
    switch (op) {
    case Op::MmaF16:
      return half[bits >> (16 * i) & 0xffff];
    case Op::MmaBF16:
      return std::bit_cast<float>((bits >> (16 * i) & 0xffff) << 16);
    case Op::MmaTF32:
      return std::bit_cast<float>(bits & 0xffffe000); // the other bits are not looked at
    default:
      return static_cast<int8_t>(bits >> (8 * i) & 0xff);
    }
  };
  for (const Thread &thread : lanes) {
    const int group = static_cast<int>(thread.lane() >> 2), t = static_cast<int>(thread.lane() & 3);
    for (int r = 0; r < aRegisters; ++r)
      for (int i = 0; i < per; ++i)
        a[group + (r & 1) * 8][(r >> 1) * 4 * per + t * per + i] = element(thread.in[1 + r], i);
    for (int r = 0; r < steps; ++r)
      for (int i = 0; i < per; ++i)
        b[r * 4 * per + t * per + i][group] = element(thread.in[1 + aRegisters + r], i);
  }
  for (Thread &thread : lanes) {
    const int group = static_cast<int>(thread.lane() >> 2), t = static_cast<int>(thread.lane() & 3);
    for (int i = 0; i < 4; ++i) {
      const int row = group + (i >> 1) * 8, column = t * 2 + (i & 1);
      const uint32_t c = thread.in[1 + aRegisters + steps + i];
      double sum = 0; // products are exact, and so, nearly, are sums of this few
      for (int j = 0; j < k; ++j)
        sum += a[row][j] * b[j][column];
      thread.out[i] = op == Op::MmaS8 ? c + static_cast<uint32_t>(static_cast<int32_t>(sum))
                                      : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<float>(c) + sum));
    }
  }
}

void loadMatrices(const Site &site, std::span<Thread> lanes) {
  for (Thread &thread : lanes)
    for (uint32_t m = 0; m < site.k; ++m) {
      uint32_t bits = 0;
      for (uint32_t i = 0; i < 2; ++i) {
        uint32_t row = thread.lane() >> 2, column = (thread.lane() & 3) * 2 + i;
        if (site.transposed)
          std::swap(row, column);
        const Thread &giver = lanes[8 * m + row];
        const auto *line = reinterpret_cast<const uint16_t *>(giver.in[1] | uint64_t(giver.in[2]) << 32);
        bits |= uint32_t(line[column]) << (16 * i);
      }
      thread.out[m] = bits;
    }
}

} // namespace

void computeWarp(const Site &site, std::span<Thread> lanes, uint32_t mask) {
  switch (site.op) {
  case Op::ShuffleIndex:
  case Op::ShuffleUp:
  case Op::ShuffleDown:
  case Op::ShuffleXor:
    return shuffle(site.op, lanes, mask);
  case Op::VoteAll:
  case Op::VoteAny:
  case Op::VoteUniform:
  case Op::VoteBallot:
    return vote(site.op, lanes, mask);
  case Op::MatchAny:
  case Op::MatchAll:
    return match(site.op, lanes, mask);
  case Op::Elect:
    for (Thread &thread : lanes) {
      thread.out[0] = static_cast<uint32_t>(std::countr_zero(mask));
      thread.out[1] = thread.lane() == thread.out[0];
    }
    return;
  case Op::MmaF16:
  case Op::MmaBF16:
  case Op::MmaTF32:
  case Op::MmaS8:
    return multiply(site, lanes);
  case Op::LoadMatrix:
    return loadMatrices(site, lanes);
  default:
    return reduce(site.op, lanes, mask);
  }
}

} // namespace tressel::codegen::cuda::emulate
