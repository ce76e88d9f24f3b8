// Instructions by which lanes of a warp exchange something. PTX ISA: shfl.sync, vote.sync, match.sync, redux.sync,
// elect.sync, ldmatrix.
#include "test/standin/ptx/Program.h"

#include <algorithm>
#include <cstring>

namespace tressel::standin::ptx {
namespace {

/// What lanes that give nothing are read as.
constexpr uint32_t kPoison = 0xffffffff;

template <class F> void forLanes(uint32_t mask, F f) {
  for (; mask; mask &= mask - 1)
    f(static_cast<unsigned>(std::countr_zero(mask)));
}

void setLanes(Warp &warp, uint32_t place, uint32_t lanes, uint32_t bits) {
  auto *target = warp.target<uint32_t>(place);
  *target = (*target & ~lanes) | (bits & lanes);
}

// Operands: the result, whether the lane asked is in range (a predicate), the value, the lane, the clamp.
void shuffle(Warp &warp, std::span<const Party> parties, Together what, uint32_t present) {
  uint32_t given[kLanes];
  const Instr &only = *parties[0].instr;
  if (present == kAllLanes && parties.size() == 1 && what == Together::ShuffleXor && only.op[3] & only.op[4] & 1 &&
      *warp.source<uint32_t>(only.op[4]) == 31) {
    // The usual one: by a constant, over the whole warp.
    const unsigned by = *warp.source<uint32_t>(only.op[3]) & 31;
    std::memcpy(given, warp.source<uint32_t>(only.op[2]), sizeof given);
    auto *target = warp.target<uint32_t>(only.op[0]);
    for (unsigned l = 0; l < kLanes; ++l)
      target[l] = given[l ^ by];
    *warp.target<uint32_t>(only.op[1]) = kAllLanes;
    return;
  }
  for (const Party &party : parties) {
    const auto *value = warp.source<uint32_t>(party.instr->op[2]);
    if (parties.size() == 1)
      std::memcpy(given, value, sizeof given);
    else
      forLanes(party.mask, [&](unsigned l) { given[l] = value[l]; });
  }
  for (const Party &party : parties) {
    const Instr &instr = *party.instr;
    const auto *lanes = warp.source<uint32_t>(instr.op[3]), *clamps = warp.source<uint32_t>(instr.op[4]);
    uint32_t result[kLanes], inRange = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
      const auto lane = static_cast<int>(l), asked = static_cast<int>(lanes[l] & 31);
      const uint32_t clamp = clamps[l] & 31, segment = clamps[l] >> 8 & 31;
      const auto least = static_cast<int>(l & segment), most = static_cast<int>((l & segment) | (clamp & ~segment));
      int from = what == Together::ShuffleUp     ? lane - asked
                 : what == Together::ShuffleDown ? lane + asked
                 : what == Together::ShuffleXor
                     ? lane ^ asked
                     : static_cast<int>(static_cast<uint32_t>(least) | (static_cast<uint32_t>(asked) & ~segment));
      const bool isIn = what == Together::ShuffleUp ? from >= most : from <= most;
      from = isIn ? from : lane;
      inRange |= static_cast<uint32_t>(isIn) << l;
      result[l] = present >> from & 1 ? given[from] : kPoison;
    }
    auto *target = warp.target<uint32_t>(instr.op[0]);
    if (party.mask == kAllLanes)
      std::memcpy(target, result, sizeof result);
    else
      forLanes(party.mask, [&](unsigned l) { target[l] = result[l]; });
    setLanes(warp, instr.op[1], party.mask, inRange);
  }
}

// Operands: the result, a predicate.
void vote(Warp &warp, std::span<const Party> parties, Together what, uint32_t named) {
  uint32_t ballot = 0;
  for (const Party &party : parties)
    ballot |= warp.predicate(party.instr->op[1]) & party.mask;
  ballot &= named;
  const bool isTrue = what == Together::VoteAll   ? ballot == named
                      : what == Together::VoteAny ? ballot != 0
                                                  : ballot == named || !ballot;
  for (const Party &party : parties)
    if (what == Together::VoteBallot) {
      auto *target = warp.target<uint32_t>(party.instr->op[0]);
      forLanes(party.mask, [&](unsigned l) { target[l] = ballot; });
    } else
      setLanes(warp, party.instr->op[0], party.mask, isTrue ? kAllLanes : 0);
}

// Operands: the lanes, whether all are equal (a predicate), the value of `count` bytes.
void match(Warp &warp, std::span<const Party> parties, Together what, uint32_t named) {
  uint64_t values[kLanes] = {};
  for (const Party &party : parties)
    forLanes(party.mask, [&](unsigned l) {
      values[l] = party.instr->count == 8 ? warp.source<uint64_t>(party.instr->op[2])[l]
                                          : warp.source<uint32_t>(party.instr->op[2])[l];
    });
  for (const Party &party : parties)
    forLanes(party.mask, [&](unsigned l) {
      uint32_t equal = 0;
      forLanes(named, [&](unsigned other) { equal |= static_cast<uint32_t>(values[other] == values[l]) << other; });
      warp.target<uint32_t>(party.instr->op[0])[l] = what == Together::MatchAny || equal == named ? equal : 0;
      setLanes(warp, party.instr->op[1], 1u << l, equal == named ? kAllLanes : 0);
    });
}

// Operands: the result, the value; count: 1 for those with sign.
void reduce(Warp &warp, std::span<const Party> parties, Together what) {
  uint32_t result = 0;
  bool isFirst = true;
  for (const Party &party : parties)
    forLanes(party.mask, [&](unsigned l) {
      const uint32_t b = warp.source<uint32_t>(party.instr->op[1])[l], a = result;
      const bool isLess = party.instr->count ? static_cast<int32_t>(b) < static_cast<int32_t>(a) : b < a;
      result = what == Together::ReduceAdd   ? a + b
               : what == Together::ReduceAnd ? a & b
               : what == Together::ReduceOr  ? a | b
               : what == Together::ReduceXor ? a ^ b
               : what == Together::ReduceMin ? (isLess ? b : a)
                                             : (isLess ? a : b);
      if (isFirst)
        result = b, isFirst = false;
    });
  for (const Party &party : parties)
    forLanes(party.mask, [&](unsigned l) { warp.target<uint32_t>(party.instr->op[0])[l] = result; });
}

/// ldmatrix: lanes 8m to 8m + 7 have the addresses of the rows of matrix m. Operands: count results, the address. aux:
/// transposed.
void loadMatrices(Warp &warp, const Instr &instr) {
  const unsigned count = instr.count;
  const bool isTransposed = instr.aux;
  const auto *addresses = warp.source<uint64_t>(instr.op[count]);
  const std::byte *rows[kLanes];
  const Region &shared = warp.block->shared;
  for (unsigned l = 0; l < 8 * count; ++l)
    if (const uint64_t at = addresses[l] + static_cast<uint64_t>(instr.imm);
        at % 16 == 0 && at < shared.bytes && shared.bytes - at >= 16)
      rows[l] = shared.host + at;
    else // it is at fault
      rows[l] = warp.block->locate(warp, instr, instr.space, l, addresses[l] + static_cast<uint64_t>(instr.imm), 16,
                                   true, false);
  // A row is what four lanes have, in order.
  uint32_t result[4][kLanes];
  for (unsigned m = 0; m < count; ++m) {
    if (!isTransposed) {
      for (unsigned row = 0; row < 8; ++row)
        std::memcpy(&result[m][4 * row], rows[8 * m + row], 16);
      continue;
    }
    uint16_t matrix[8][8], turned[8][8];
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(matrix[row], rows[8 * m + row], 16);
    for (unsigned row = 0; row < 8; ++row)
      for (unsigned column = 0; column < 8; ++column)
        turned[column][row] = matrix[row][column];
    std::memcpy(result[m], turned, sizeof turned);
  }
  for (unsigned m = 0; m < count; ++m)
    if (warp.active == kAllLanes)
      std::memcpy(warp.target<uint32_t>(instr.op[m]), result[m], sizeof result[m]);
    else
      forLanes(warp.active, [&](unsigned l) { warp.target<uint32_t>(instr.op[m])[l] = result[m][l]; });
}

} // namespace

void executeTogether(Warp &warp, std::span<const Party> parties) {
  const Instr &instr = *parties[0].instr;
  const auto what = static_cast<Together>(instr.sub);
  uint32_t present = 0;
  for (const Party &party : parties)
    present |= party.mask;
  switch (what) {
  case Together::ShuffleUp:
  case Together::ShuffleDown:
  case Together::ShuffleXor:
  case Together::ShuffleIndex:
    return shuffle(warp, parties, what, present);
  case Together::VoteAll:
  case Together::VoteAny:
  case Together::VoteUniform:
  case Together::VoteBallot:
    return vote(warp, parties, what, present);
  case Together::MatchAny:
  case Together::MatchAll:
    return match(warp, parties, what, present);
  case Together::Sync:
    return;
  case Together::Elect:
    for (const Party &party : parties) {
      forLanes(party.mask, [&](unsigned l) {
        warp.target<uint32_t>(party.instr->op[0])[l] = static_cast<uint32_t>(std::countr_zero(present));
      });
      setLanes(warp, party.instr->op[1], party.mask, present & (0 - present));
    }
    return;
  case Together::Matrix:
    if (instr.run)
      instr.run(warp, instr);
    else
      loadMatrices(warp, instr);
    return;
  default:
    return reduce(warp, parties, what);
  }
}

} // namespace tressel::standin::ptx
