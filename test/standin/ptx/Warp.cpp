// The threads of a block, in turns. Lanes of a warp that are at one place form a group; the group with the lowest place
// goes on, and takes along those that it meets.
#include "test/standin/ptx/Program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tressel::standin::ptx {

unsigned exchangeControl(unsigned value) {
#ifdef __x86_64__
  const unsigned old = _mm_getcsr();
  _mm_setcsr(value);
  return old;
#else
  return value;
#endif
}

unsigned controlOf(unsigned mode) {
  // Exceptions masked, the rounding in bits 13 and 14, flushing of results and of operands in bits 15 and 6.
  return 0x1f80 | (mode & 3) << 13 | (mode & kFlush ? 0x8040 : 0);
}

namespace {

constexpr uint32_t kModeFlags = (1u << kModes) - 1;
/// Jumps backwards before others have a turn: lanes may wait in a loop for what others do.
constexpr unsigned kPatience = 1u << 14;

/// Blocks of the text that lanes execute, once they have their turn so, before the lowest go first again.
constexpr unsigned kInsistence = 1u << 10;

/// Waits for an mbarrier that nothing completes, before it is said that nothing ever will: one may fail without need.
constexpr unsigned kVainRounds = 64;

enum class Turn { Ended, Waits, Gives };

class Executor {
public:
  explicit Executor(Block &block) : block_(block), code_(block.program->code.data()) {
    for (Warp &warp : block_.warps) {
      warp.groups.clear();
      warp.groups.push_back({.pc = 0, .mask = warp.live});
      ready_.push_back(&warp);
    }
  }
  bool hasEnded() const { return ready_.empty(); }
  /// A turn of each warp that can go on, in some order.
  struct Round {
    bool hasMoved = false;
    bool hasWaitedOnly = true; ///< for mbarriers
  };
  Round round();
  [[noreturn]] void standstill();

private:
  Turn run(Warp &warp);
  /// Makes the group of the lowest place that can go on the one that executes; false: there is none.
  bool choose(Warp &warp, unsigned skip);
  void control(Warp &warp, const Instr &instr, uint32_t lanes);
  void branch(Warp &warp, uint32_t target, uint32_t lanes);
  void collective(Warp &warp, const Instr &instr, uint32_t lanes);
  void meet(Warp &warp);
  void barrier(Warp &warp, const Instr &instr, uint32_t lanes);
  void release(unsigned number);
  void clusterBarrier(Warp &warp, const Instr &instr, uint32_t lanes);
  /// When all threads of the cluster that have not exited have arrived, they go on.
  void releaseCluster();
  /// The lanes that execute stop here, in a group of their own.
  void park(Warp &warp, const Group &group);
  void leave(Warp &warp, uint32_t lanes);
  void setActive(Warp &warp, uint32_t lanes) {
    warp.active = lanes;
    warp.isPartial = lanes != warp.live;
  }
  void watch(Warp &warp) {
    const bool isAlone = warp.groups.empty();
    warp.attention = (kModeFlags & ~(1u << mode_)) | kControl | kGuarded | (isAlone ? 0 : kBlockStart);
  }
  void setMode(unsigned mode) {
    mode_ = mode;
    exchangeControl(controlOf(mode));
  }
  uint64_t random() {
    block_.random ^= block_.random << 13, block_.random ^= block_.random >> 7, block_.random ^= block_.random << 17;
    return block_.random;
  }

  Block &block_;
  const Instr *code_;
  unsigned mode_ = kNearest;
  unsigned jumps_ = 0; ///< backwards, in this turn
  std::vector<Warp *> ready_;
};

bool Executor::choose(Warp &warp, unsigned skip) {
  // Groups at the same place become one.
  auto &groups = warp.groups;
  size_t ready[kLanes], count = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].isWaiting)
      continue;
    for (size_t j = i + 1; j < groups.size();) {
      if (!groups[j].isWaiting && groups[j].pc == groups[i].pc) {
        groups[i].mask |= groups[j].mask;
        groups.erase(groups.begin() + static_cast<ptrdiff_t>(j));
      } else
        ++j;
    }
    ready[count++] = i;
  }
  if (!count)
    return false;
  std::sort(ready, ready + count, [&](size_t a, size_t b) { return groups[a].pc < groups[b].pc; });
  const size_t chosen = ready[skip % count];
  warp.pc = groups[chosen].pc;
  setActive(warp, groups[chosen].mask);
  groups.erase(groups.begin() + static_cast<ptrdiff_t>(chosen));
  watch(warp);
  return true;
}

void Executor::park(Warp &warp, const Group &group) {
  warp.groups.push_back(group);
  setActive(warp, warp.active & ~group.mask);
  watch(warp);
}

void Executor::leave(Warp &warp, uint32_t lanes) {
  warp.live &= ~lanes;
  setActive(warp, warp.active & ~lanes);
  releaseCluster();
}

void Executor::branch(Warp &warp, uint32_t target, uint32_t lanes) {
  if (target <= warp.pc)
    jumps_ += warp.failedWaits ? kPatience + 1 : 1; // it waits for others: their turn
  if (lanes == warp.active) {
    warp.pc = target;
    return;
  }
  if (lanes)
    park(warp, {.pc = target, .mask = lanes});
  ++warp.pc;
}

void Executor::control(Warp &warp, const Instr &instr, uint32_t lanes) {
  switch (instr.kind) {
  case Kind::Branch:
    return branch(warp, instr.aux, lanes);
  case Kind::BranchIndexed: {
    const auto *index = warp.source<uint32_t>(instr.op[0]);
    uint32_t rest = lanes;
    while (rest) {
      const uint32_t which = index[std::countr_zero(rest)];
      uint32_t same = 0;
      for (uint32_t r = rest; r; r &= r - 1)
        if (index[std::countr_zero(r)] == which)
          same |= r & (0 - r);
      if (which >= static_cast<uint64_t>(instr.imm))
        block_.stop(warp, instr, static_cast<unsigned>(std::countr_zero(rest)), Fault::Kind::Trap,
                    "branches behind the end of the list");
      rest &= ~same;
      const uint32_t target = block_.program->extra[instr.aux + which];
      if (same == warp.active) {
        jumps_ += target <= warp.pc;
        warp.pc = target;
        return;
      }
      park(warp, {.pc = target, .mask = same});
    }
    ++warp.pc;
    return;
  }
  case Kind::Exit:
    leave(warp, lanes);
    ++warp.pc;
    return;
  case Kind::Trap:
    if (lanes)
      block_.stop(warp, instr, static_cast<unsigned>(std::countr_zero(lanes)), Fault::Kind::Trap, "stops");
    ++warp.pc;
    return;
  case Kind::Barrier:
    return barrier(warp, instr, lanes);
  case Kind::Collective:
    return collective(warp, instr, lanes);
  case Kind::Plain:
    break;
  }
}

void Executor::collective(Warp &warp, const Instr &instr, uint32_t lanes) {
  if (lanes != warp.active) {
    // A guard: the others do not take part.
    const uint32_t others = warp.active & ~lanes;
    if (lanes)
      park(warp, {.pc = warp.pc + 1, .mask = others});
    else {
      ++warp.pc;
      return;
    }
  }
  const bool isMatrix = static_cast<Together>(instr.sub) == Together::Matrix;
  uint32_t named = warp.exists;
  if (!isMatrix) {
    const auto *masks = warp.source<uint32_t>(instr.op[7]);
    const uint32_t given = masks[std::countr_zero(warp.active)];
    uint32_t alike = instr.op[7] & 1 ? warp.active : 0; // a constant is that of all
    for (uint32_t rest = warp.active & ~alike; rest; rest &= rest - 1)
      if (masks[std::countr_zero(rest)] == given)
        alike |= rest & (0 - rest);
    if (alike != warp.active) // these name other lanes: they come here again
      park(warp, {.pc = warp.pc, .mask = warp.active & ~alike, .isWaiting = false});
    named = given & warp.exists;
  }
  const Party party{&instr, warp.active};
  if (!(named & ~warp.active)) {
    executeTogether(warp, {&party, 1});
    ++warp.pc;
    return;
  }
  park(warp, {.pc = warp.pc, .mask = warp.active, .isWaiting = true, .needs = named});
  meet(warp);
}

/// Do lanes that wait make up all that one of them names?
void Executor::meet(Warp &warp) {
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    const Group &first = warp.groups[i];
    if (!first.isWaiting || first.barrier >= 0)
      continue;
    const Instr &instr = code_[first.pc];
    const bool isMatrix = static_cast<Together>(instr.sub) == Together::Matrix;
    uint32_t here = 0;
    std::vector<Party> parties;
    auto isAlike = [&](const Group &group) {
      const Instr &other = code_[group.pc];
      return group.isWaiting && group.barrier < 0 && group.needs == first.needs && other.sub == instr.sub &&
             other.count == instr.count && (!isMatrix || &other == &instr);
    };
    for (const Group &group : warp.groups)
      if (isAlike(group)) {
        here |= group.mask;
        auto known = std::ranges::find(parties, &code_[group.pc], &Party::instr);
        if (known == parties.end())
          parties.push_back({&code_[group.pc], group.mask});
        else
          known->mask |= group.mask;
      }
    if (first.needs & ~here)
      continue;
    const uint32_t active = warp.active;
    setActive(warp, here);
    std::vector<Group *> going;
    for (Group &group : warp.groups)
      if (isAlike(group))
        going.push_back(&group);
    executeTogether(warp, parties);
    for (Group *group : going)
      group->isWaiting = false, ++group->pc;
    setActive(warp, active);
    return;
  }
}

void Executor::barrier(Warp &warp, const Instr &instr, uint32_t lanes) {
  if (!lanes) {
    ++warp.pc;
    return;
  }
  // Lanes whose guard is false, and those that name another barrier, are on their own.
  if (lanes != warp.active)
    park(warp, {.pc = warp.pc + 1, .mask = warp.active & ~lanes});
  if (instr.sub >= kArrivesAtCluster)
    return clusterBarrier(warp, instr, lanes);
  const auto *numbers = warp.source<uint32_t>(instr.op[1]);
  const auto first = static_cast<unsigned>(std::countr_zero(lanes));
  const uint32_t number = numbers[first];
  uint32_t alike = 0;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    if (numbers[std::countr_zero(rest)] == number)
      alike |= rest & (0 - rest);
  if (alike != lanes)
    park(warp, {.pc = warp.pc, .mask = lanes & ~alike});
  if (number >= block_.barriers.size())
    block_.stop(warp, instr, first, Fault::Kind::Trap, "names barrier " + std::to_string(number) + ", of 16");
  Barrier &barrier = block_.barriers[number];
  const uint32_t expected = instr.count ? warp.source<uint32_t>(instr.op[2])[first] : block_.threads;
  if (instr.count && (!expected || expected % kLanes))
    block_.stop(warp, instr, first, Fault::Kind::Trap,
                "waits for " + std::to_string(expected) + " threads, which are not whole warps,");
  if (barrier.arrived && barrier.expected != expected)
    block_.stop(warp, instr, first, Fault::Kind::Trap,
                "waits for " + std::to_string(expected) + " threads, where others wait for " +
                    std::to_string(barrier.expected) + ",");
  barrier.expected = expected;
  // With a number of threads, a warp counts as a whole.
  const bool isWholeWarp = instr.count && alike == warp.exists;
  barrier.arrived += isWholeWarp ? kLanes : static_cast<uint32_t>(std::popcount(alike));
  if (instr.sub >= 2)
    barrier.count += static_cast<uint32_t>(std::popcount(warp.predicate(instr.op[3]) & alike));
  if (instr.sub == 1)
    ++warp.pc; // arrives without waiting
  else
    park(warp, {.pc = warp.pc, .mask = alike, .isWaiting = true, .needs = 0, .barrier = static_cast<int>(number)});
  if (barrier.arrived >= barrier.expected)
    release(number);
}

void Executor::release(unsigned number) {
  Barrier &barrier = block_.barriers[number];
  for (Warp &warp : block_.warps)
    for (Group &group : warp.groups) {
      if (group.barrier != static_cast<int>(number))
        continue;
      const Instr &instr = code_[group.pc];
      if (instr.sub == 2) {
        auto *target = warp.target<uint32_t>(instr.op[0]);
        for (uint32_t rest = group.mask; rest; rest &= rest - 1)
          target[std::countr_zero(rest)] = barrier.count;
      } else if (instr.sub > 2) {
        const bool isTrue = instr.sub == 3 ? barrier.count == barrier.arrived : barrier.count != 0;
        auto *target = warp.target<uint32_t>(instr.op[0]);
        *target = (*target & ~group.mask) | (isTrue ? group.mask : 0);
      }
      group.isWaiting = false, group.barrier = -1;
      ++group.pc;
    }
  barrier = Barrier{};
}

void Executor::clusterBarrier(Warp &warp, const Instr &instr, uint32_t lanes) {
  const auto first = static_cast<unsigned>(std::countr_zero(lanes));
  if (instr.sub == kArrivesAtCluster) {
    if ((warp.atCluster | warp.clusterMet) & lanes)
      block_.stop(warp, instr, first, Fault::Kind::Trap,
                  "arrives at the cluster's barrier, without a wait since it last did,");
    warp.atCluster |= lanes;
    ++warp.pc;
    return releaseCluster();
  }
  if (lanes & ~(warp.atCluster | warp.clusterMet))
    block_.stop(warp, instr, first, Fault::Kind::Trap, "waits at the cluster's barrier, where it has not arrived,");
  if (const uint32_t waiting = lanes & warp.atCluster)
    park(warp, {.pc = warp.pc, .mask = waiting, .isWaiting = true, .needs = 0, .barrier = kClusterBarrier});
  warp.clusterMet &= ~warp.active;
  ++warp.pc;
}

void Executor::releaseCluster() {
  bool hasArrived = false;
  for (const Block &block : block_.cluster)
    for (const Warp &warp : block.warps) {
      if (warp.live & ~warp.atCluster)
        return;
      hasArrived |= warp.atCluster != 0;
    }
  if (!hasArrived)
    return;
  for (Block &block : block_.cluster)
    for (Warp &warp : block.warps) {
      warp.clusterMet |= std::exchange(warp.atCluster, 0);
      for (Group &group : warp.groups)
        if (group.barrier == kClusterBarrier) {
          group.isWaiting = false, group.barrier = -1;
          ++group.pc;
          warp.clusterMet &= ~group.mask;
        }
    }
}

Turn Executor::run(Warp &warp) {
  unsigned skip = warp.gaveWay, insists = 0; // not the lowest again, which has waited in vain
  warp.gaveWay = false;
  jumps_ = 0;
  while (choose(warp, skip)) {
    insists = skip ? kInsistence : 0;
    skip = 0;
    while (warp.active) {
      const Instr *at = code_ + warp.pc;
      for (const uint32_t attention = warp.attention; !(at->flags & attention); ++at) // none of these changes it
        at->run(warp, *at);
      warp.pc = static_cast<uint32_t>(at - code_);
      const Instr &instr = *at;
      const uint32_t special = instr.flags & warp.attention;
      if (special & kModeFlags) {
        setMode(static_cast<unsigned>(std::countr_zero(instr.flags & kModeFlags)));
        watch(warp);
      }
      if (special & kBlockStart) {
        // There are others: the lanes with the lowest place go on.
        insists -= insists != 0;
        bool isLowest = true, hasMet = false;
        for (const Group &group : warp.groups) {
          isLowest &= group.isWaiting || group.pc > warp.pc;
          hasMet |= !group.isWaiting && group.pc == warp.pc;
        }
        if (hasMet || (!isLowest && !insists)) {
          park(warp, {.pc = warp.pc, .mask = warp.active});
          break;
        }
      }
      if (jumps_ > kPatience) {
        block_.clock += kPatience;
        park(warp, {.pc = warp.pc, .mask = warp.active});
        warp.gaveWay = true;
        return Turn::Gives;
      }
      if (!(instr.flags & (kGuarded | kControl))) {
        instr.run(warp, instr);
        ++warp.pc;
        continue;
      }
      uint32_t lanes = warp.active;
      if (instr.flags & kGuarded) {
        const uint32_t guard = warp.predicate(instr.guard);
        lanes &= instr.flags & kGuardNegated ? ~guard : guard;
      }
      if (instr.flags & kControl) {
        control(warp, instr, lanes);
        continue;
      }
      if (lanes) {
        const uint32_t active = warp.active;
        setActive(warp, lanes);
        instr.run(warp, instr);
        setActive(warp, active);
      }
      ++warp.pc;
    }
  }
  return warp.groups.empty() ? Turn::Ended : Turn::Waits;
}

Executor::Round Executor::round() {
  Round round;
  setMode(mode_);
  if (block_.random)
    for (size_t i = ready_.size(); i > 1; --i)
      std::swap(ready_[i - 1], ready_[random() % i]);
  size_t kept = 0;
  for (Warp *warp : ready_) {
    const bool canGo = std::ranges::any_of(warp->groups, [](const Group &group) { return !group.isWaiting; });
    round.hasMoved |= canGo;
    if (!canGo) {
      ready_[kept++] = warp;
      continue;
    }
    warp->failedWaits = 0;
    const Turn turn = run(*warp);
    round.hasWaitedOnly &= turn == Turn::Gives && warp->failedWaits;
    if (turn != Turn::Ended)
      ready_[kept++] = warp;
  }
  ready_.resize(kept);
  return round;
}

void Executor::standstill() {
  // The first lane that waits, and where the other lanes are.
  std::string waits, others;
  unsigned more = 0;
  auto look = [&](const Block &block) {
    for (const Warp &warp : block.warps)
      for (unsigned l = 0; l < kLanes; ++l) {
        if (!(warp.exists >> l & 1))
          continue;
        const auto group = std::ranges::find_if(warp.groups, [l](const Group &g) { return g.mask >> l & 1; });
        const bool hasExited = group == warp.groups.end();
        const std::string where = hasExited ? "has exited" : "waits in " + block.describe(code_[group->pc]);
        if (!hasExited && waits.empty())
          waits = block.describe(warp, l) + ": " + where;
        else if (waits.find(where) == std::string::npos && others.find(where) == std::string::npos && more++ < 4)
          others += (&block == &block_ ? "; thread (" : "; of another block thread (") +
                    std::to_string(warp.tid[0][l]) + ", " + std::to_string(warp.tid[1][l]) + ", " +
                    std::to_string(warp.tid[2][l]) + ") " + where;
      }
  };
  look(block_);
  for (const Block &block : block_.cluster)
    if (&block != &block_)
      look(block);
  throw Stop{{Fault::Kind::Hang, waits + ", where not all that it names arrive" + others}};
}

} // namespace

void executeCluster(std::span<Block> blocks) {
  std::vector<Executor> executors;
  for (Block &block : blocks)
    executors.emplace_back(block);
  const auto hasEnded = [](const Executor &executor) { return executor.hasEnded(); };
  unsigned vain = 0; // rounds in which all that could go on waited for mbarriers that did not change
  while (!std::ranges::all_of(executors, hasEnded)) {
    const auto arrivals = [&] {
      uint64_t all = 0;
      for (const Block &block : blocks)
        all += block.arrivals;
      return all;
    };
    const uint64_t before = arrivals();
    Executor::Round all;
    const size_t first = blocks.front().random % executors.size();
    for (size_t i = 0; i < executors.size(); ++i)
      if (Executor &each = executors[(first + i) % executors.size()]; !each.hasEnded()) {
        const Executor::Round round = each.round();
        all.hasMoved |= round.hasMoved;
        all.hasWaitedOnly &= round.hasWaitedOnly || !round.hasMoved;
      }
    vain = all.hasWaitedOnly && before == arrivals() ? vain + 1 : 0;
    if (!all.hasMoved || vain > kVainRounds)
      std::ranges::find_if_not(executors, hasEnded)->standstill();
  }
}

} // namespace tressel::standin::ptx
