#include "passes/place/Footprint.h"
#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/sched/Sched.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/SetVector.h"

#include <limits>
#include <map>
#include <numeric>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {
Size aligned(Size bytes) { return dim::alignUp(bytes, 64); }

/// Bytes that one or several buffers share, and the commands from the first to the last that touch them.
struct Slot {
  Size bytes;
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  Size offset;
  // Where sizes are numbers.
  int64_t begin() const { return offset.number(); }
  int64_t end() const { return (offset + bytes).number(); }
  bool isLiveWith(const Slot &other) const { return first <= other.last && other.first <= last; }
};

/// The smallest gap between `taken` ranges (begin, end; sorted) that holds `bytes`, or the place behind them all.
int64_t bestGap(ArrayRef<std::pair<int64_t, int64_t>> taken, int64_t bytes) {
  int64_t best = -1, bestSize = std::numeric_limits<int64_t>::max(), end = 0;
  for (auto [from, to] : taken) {
    if (int64_t gap = from - end; gap >= bytes && gap < bestSize) {
      best = end;
      bestSize = gap;
    }
    end = std::max(end, to);
  }
  return best >= 0 ? best : end;
}

int64_t endOf(ArrayRef<Slot> slots) {
  int64_t end = 0;
  for (const Slot &slot : slots)
    end = std::max(end, slot.end());
  return end;
}

/// Each in the smallest gap left by those before it that live with it. Compares all pairs.
std::vector<Slot> placeInOrder(std::vector<Slot> slots, ArrayRef<size_t> order) {
  SmallVector<size_t> placed;
  for (size_t i : order) {
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (size_t other : placed)
      if (slots[i].isLiveWith(slots[other]))
        taken.push_back({slots[other].begin(), slots[other].end()});
    llvm::sort(taken);
    slots[i].offset = bestGap(taken, slots[i].bytes.number());
    placed.push_back(i);
  }
  return slots;
}

/// The largest first. While that needs more than `bound`, those that reach furthest come first the next time, for a number of
/// times that keeps the work in bounds: whoever has no good gap left gets to choose.
std::vector<Slot> placeBySize(const std::vector<Slot> &slots, int64_t bound) {
  SmallVector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  llvm::sort(order, [&](size_t a, size_t b) { return std::pair(-slots[a].bytes, a) < std::pair(-slots[b].bytes, b); });
  std::vector<Slot> best = placeInOrder(slots, order), latest = best;
  constexpr size_t kPairs = 4'000'000, kRounds = 100; // about a tenth of a second
  const size_t rounds = std::min(kRounds, kPairs / (slots.size() * slots.size() + 1));
  for (size_t round = 0; round < rounds && endOf(best) > bound; ++round) {
    const int64_t end = endOf(latest);
    SmallVector<size_t> next, rest;
    for (size_t i : order)
      (latest[i].end() == end ? next : rest).push_back(i);
    next.append(rest);
    order = std::move(next);
    latest = placeInOrder(slots, order);
    if (endOf(latest) < endOf(best))
      best = latest;
  }
  return best;
}

/// For memories that the others do not fit: starts from the best order, and from those that go by how much of time or
/// of both a slot takes; then moves a slot that reaches too far, or any slot, ahead in the order, as long as that is no worse.
/// What is small finds a gap in the end, so only the order of the rest is searched. `numPairs`: of slots that are
/// compared in all.
std::vector<Slot> placeBySearch(const std::vector<Slot> &slots, std::vector<Slot> best, int64_t bound,
                                size_t numPairs) {
  constexpr size_t kRounds = 20'000;
  constexpr int64_t kSmall = 64; // of the largest
  std::vector<Slot> large;
  // Nothing but when it ends depends on the bound: what is found for one is found for a larger one.
  int64_t largest = 0;
  for (const Slot &slot : slots)
    largest = std::max(largest, slot.bytes.number());
  SmallVector<size_t> numberOf, small; // in `slots`
  for (auto [i, slot] : llvm::enumerate(slots))
    if (slot.bytes.number() * kSmall >= largest) {
      large.push_back(slot);
      numberOf.push_back(i);
    } else {
      small.push_back(i);
    }
  llvm::sort(small, [&](size_t a, size_t b) { return std::pair(-slots[a].bytes, a) < std::pair(-slots[b].bytes, b); });
  if (large.empty())
    return best;
  const size_t rounds = std::min(kRounds, numPairs / (large.size() * large.size() + 1));
  SmallVector<size_t> order(large.size()), bestOrder;
  std::iota(order.begin(), order.end(), size_t{0});
  auto lengthOf = [&](size_t i) { return static_cast<double>(large[i].last - large[i].first + 1); };
  auto sortBy = [&](llvm::function_ref<double(size_t)> key) {
    llvm::sort(order, [&](size_t a, size_t b) { return std::pair(-key(a), a) < std::pair(-key(b), b); });
  };
  int64_t least = std::numeric_limits<int64_t>::max();
  std::vector<Slot> latest; // of the best order
  auto tryOrder = [&](ArrayRef<size_t> next) {
    std::vector<Slot> placed = placeInOrder(large, next);
    const int64_t end = endOf(placed);
    if (end > least)
      return;
    const bool isBetter = end < least;
    least = end;
    bestOrder.assign(next.begin(), next.end());
    latest = std::move(placed);
    if (end >= endOf(best) || !isBetter)
      return;
    SmallVector<size_t> all = llvm::map_to_vector(next, [&](size_t i) { return numberOf[i]; });
    all.append(small);
    if (std::vector<Slot> whole = placeInOrder(slots, all); endOf(whole) < endOf(best))
      best = std::move(whole);
  };
  for (int start = 0; start < 4 && endOf(best) > bound; ++start) {
    sortBy([&](size_t i) {
      const auto bytes = static_cast<double>(large[i].bytes);
      return start == 0   ? bytes
             : start == 1 ? bytes * lengthOf(i)
             : start == 2 ? lengthOf(i)
                          : -static_cast<double>(large[i].first);
    });
    tryOrder(order);
  }
  uint64_t state = 88172645463325252; // any seed: the same plan each time
  auto random = [&](size_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<size_t>(state % n);
  };
  for (size_t round = 0; round < rounds && endOf(best) > bound; ++round) {
    SmallVector<size_t> next = bestOrder;
    size_t from = random(next.size());
    if (round % 2) { // a slot that reaches too far
      SmallVector<size_t> culprits;
      for (auto [place, i] : llvm::enumerate(bestOrder))
        if (latest[i].end() == least)
          culprits.push_back(place);
      if (!culprits.empty())
        from = culprits[random(culprits.size())];
    }
    const size_t to = random(from + 1);
    std::rotate(next.begin() + static_cast<ptrdiff_t>(to), next.begin() + static_cast<ptrdiff_t>(from),
                next.begin() + static_cast<ptrdiff_t>(from) + 1);
    tryOrder(next);
  }
  return best;
}

/// In the order of first use, as an allocator would at run time: near linear, for programs too large for the other.
std::vector<Slot> placeByTime(std::vector<Slot> slots) {
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  llvm::sort(order, [&](size_t a, size_t b) { return std::pair(slots[a].first, a) < std::pair(slots[b].first, b); });
  std::multimap<int64_t, size_t> ends; // live slots by last use
  std::map<int64_t, int64_t> taken;    // begin to end
  for (size_t i : order) {
    if (slots[i].bytes == 0)
      continue; // anywhere: and it must not stand for what begins where it does
    while (!ends.empty() && ends.begin()->first < slots[i].first) {
      taken.erase(slots[ends.begin()->second].begin());
      ends.erase(ends.begin());
    }
    SmallVector<std::pair<int64_t, int64_t>> ranges(taken.begin(), taken.end());
    slots[i].offset = bestGap(ranges, slots[i].bytes.number());
    taken[slots[i].begin()] = slots[i].end();
    ends.insert({slots[i].last, i});
  }
  return slots;
}

/// Slots of symbolic size: bins, one behind the other from `start` on, disjoint whatever the sizes are. Slots that are
/// not live together share one, which is as large as the largest. Returns the end.
Size placeSymbolic(std::vector<Slot> &slots, ArrayRef<size_t> symbolic, Size start) {
  struct Bin {
    Size bytes;
    int64_t last = -1;
    SmallVector<size_t> slots;
  };
  std::vector<Bin> bins;
  SmallVector<size_t> order(symbolic);
  llvm::sort(order, [&](size_t a, size_t b) { return std::pair(slots[a].first, a) < std::pair(slots[b].first, b); });
  for (size_t i : order) {
    Bin *best = nullptr;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (Bin &bin : bins) {
      if (bin.last >= slots[i].first)
        continue;
      const int64_t misfit = std::abs(dim::hint(bin.bytes) - dim::hint(slots[i].bytes));
      if (misfit < least)
        least = misfit, best = &bin;
    }
    if (!best)
      best = &bins.emplace_back();
    best->bytes = dim::max(best->bytes, slots[i].bytes);
    best->last = std::max(best->last, slots[i].last);
    best->slots.push_back(i);
  }
  for (const Bin &bin : bins) {
    for (size_t i : bin.slots)
      slots[i].offset = start;
    start += bin.bytes;
  }
  return start;
}

class PlanMemory : public impl::PlanMemoryBase<PlanMemory> {
public:
  PlanMemory(const PlanMemoryOptions &options, const runtime::MachineModel *machine) : PlanMemoryBase(options), machine(machine) {}

  void runOnOperation() override {
    symbols = std::make_shared<SymbolTableCollection>();
    budget.reset();
    if (auto bytes = dyn_cast_if_present<IntegerAttr>(getOperation()->removeAttr(kMemoryBudgetAttr)))
      budget = bytes.getInt();
    for (auto program : getOperation().getOps<sched::ProgramOp>())
      if (failed(plan(program)))
        return signalPassFailure();
  }

private:
  LogicalResult plan(sched::ProgramOp program) {
    Commands commands;
    for (Region *phase :
         {program.getPrepare() ? &program.getPrepare().getBody() : nullptr, &program.getStep().getBody()})
      if (phase)
        collect(phase->front(), commands);

    Size peak, bound;
    int64_t hostTaken = 0;
    for (auto arena : program.getBody().getOps<sched::ArenaOp>()) {
      std::vector<sched::BufferOp> buffers;
      std::vector<Slot> slots = slotsOf(arena, commands, buffers, /*waits=*/false);
      const int64_t leastLive = mostLive(slots);
      std::optional<int64_t> limit = limitOf(arena);
      if (limit && arena.getDevice() == sched::DeviceKind::Cpu)
        *limit -= hostTaken;
      auto isTooMuch = [&](Size bytes) { return limit && bytes.numberOr(0) > *limit; };
      // Bytes that are free only when another engine is done with them would make this one wait: so buffers keep theirs
      // for as long as they are predicted to be read, unless that does not fit.
      std::vector<Slot> placed = slots;
      Size end = place(slots, placed, limit);
      if (commands.isPlanned && !measure) {
        std::vector<Slot> longer = slots, placedLonger;
        extendToEnds(commands, longer);
        placedLonger = longer;
        if (Size longerEnd = place(longer, placedLonger); !isTooMuch(longerEnd)) {
          placed = std::move(placedLonger);
          end = longerEnd;
        }
      }
      if (commands.isPlanned && isTooMuch(end)) {
        buffers.clear();
        std::vector<Slot> closer = slotsOf(arena, commands, buffers, /*waits=*/true), placedCloser;
        if (const Size closerEnd = place(closer, placedCloser, limit); dim::less(closerEnd, end).value_or(false)) {
          slots = closer;
          placed = std::move(placedCloser);
          end = closerEnd;
        } else { // as it was
          buffers.clear();
          slotsOf(arena, commands, buffers, /*waits=*/false);
        }
      }
      if (isTooMuch(end) && !measure)
        return tooLarge(program, arena, end.number(), *limit, slots, buffers, commands);
      if (arena.getDevice() == sched::DeviceKind::Cpu && !end.isSymbolic())
        hostTaken += end.number();
      for (sched::BufferOp buffer : buffers)
        buffer.setOffset(placed[*slotIndex(buffer)].offset);
      arena.setSize(end);
      peak += end;
      bound += leastLive;
    }
    program.setPeakBytes(peak);
    program.setPeakLowerBoundBytes(bound);
    for (Commands::Access &access : commands.all)
      access.command->removeAttr(sched::kPlannedAttr);
    return success();
  }

  /// Fills `placed`; returns the bytes that it takes, which had better be no more than `limit`.
  Size place(ArrayRef<Slot> slots, std::vector<Slot> &placed, std::optional<int64_t> limit = {}) const {
    SmallVector<size_t> symbolic;
    for (auto [i, slot] : llvm::enumerate(slots))
      if (slot.bytes.isSymbolic())
        symbolic.push_back(i);
    std::vector<Slot> fixed(slots.begin(), slots.end()); // those of symbolic size stand behind
    for (size_t i : symbolic)
      fixed[i] = {};
    constexpr size_t kAllPairs = 2000;
    constexpr size_t kPairs = 20'000'000, kMostPairs = 200'000'000; // a tenth of a second, a second
    placed = placeByTime(fixed);
    if (slots.size() <= kAllPairs)
      if (std::vector<Slot> bySize = placeBySize(fixed, mostLive(fixed)); endOf(bySize) <= endOf(placed))
        placed = std::move(bySize);
    // Without a limit, a search is for gaps that are worth its time.
    constexpr int64_t kFineGaps = 50, kFewBytes = 1 << 20; // a share of what is live, and bytes
    if (const int64_t least = mostLive(fixed), most = limit.value_or(std::max(least + least / kFineGaps, least + kFewBytes));
        slots.size() <= kAllPairs && endOf(placed) > most && least <= most)
      placed = placeBySearch(fixed, std::move(placed), most, limit && budget ? kMostPairs : kPairs);
    Size end = endOf(placed);
    if (!symbolic.empty()) {
      for (size_t i : symbolic)
        placed[i] = slots[i];
      end = placeSymbolic(placed, symbolic, end);
    }
    return end;
  }

  /// What a memory leaves beside the states that it holds.
  std::optional<int64_t> limitOf(sched::ArenaOp arena) const {
    if (arena.getDevice() == sched::DeviceKind::Cpu && budget)
      return budget;
    if (!machine)
      return std::nullopt;
    const runtime::DeviceModel *device = machine->find(deviceOf(arena));
    if (!device)
      return std::nullopt;
    int64_t left = device->memoryBytes;
    for (auto state : arena->getBlock()->getOps<sched::StateOp>())
      if (isIn(state, arena))
        left -= aligned(sched::bytesOf(state.getTensorType())).number();
    return left;
  }
  static runtime::DeviceRef deviceOf(sched::ArenaOp arena) {
    return {arena.getDevice() == sched::DeviceKind::Gpu ? runtime::DeviceKind::Gpu : runtime::DeviceKind::Cpu,
            static_cast<uint16_t>(arena.getIndex())};
  }
  static bool isIn(sched::StateOp state, sched::ArenaOp arena) {
    return state.getDevice() == arena.getDevice() && state.getIndex() == arena.getIndex();
  }

  /// Commands by time, those of bodies behind the command that they belong to, and the stretches of time that repeat,
  /// inner ones first.
  struct Commands {
    struct Access {
      sched::CommandOpInterface command;
      int64_t time;
      int64_t parent = -1; ///< of a command in a body: the time of the outermost one that it belongs to
    };
    std::vector<Access> all;
    // By time, in picoseconds: when the command, or the one that it belongs to, is predicted to begin, no earlier than
    // those before it, and to end.
    bool isPlanned = false;
    std::vector<int64_t> begins, ends;
    struct Repeat {
      int64_t begin, end;
      sched::LoopOp loop; ///< null of a command that is none
    };
    std::vector<Repeat> repeats;
    int64_t now = 0;
  };
  static void collect(Block &block, Commands &commands, int64_t parent = -1) {
    for (auto command : block.getOps<sched::CommandOpInterface>()) {
      const int64_t begin = commands.now++;
      notePlan(command, commands, parent);
      commands.all.push_back({command, begin, parent});
      if (command->getNumRegions() == 0)
        continue;
      for (Region &body : command->getRegions())
        collect(body.front(), commands, parent < 0 ? begin : parent);
      if (isa<sched::BranchOp>(*command))
        continue;
      // What the command itself touches, between its bodies, it touches all the time.
      const int64_t end = commands.now++;
      notePlan(command, commands, parent);
      commands.all.push_back({command, end, parent});
      commands.repeats.push_back({begin, end, dyn_cast<sched::LoopOp>(*command)});
    }
  }
  static void notePlan(Operation *command, Commands &commands, int64_t parent) {
    int64_t begin = commands.begins.empty() ? 0 : commands.begins.back(), end = begin;
    if (auto planned = command->getAttrOfType<DenseI64ArrayAttr>(sched::kPlannedAttr); planned && planned.size() == 2) {
      commands.isPlanned = true;
      begin = std::max(begin, planned[0]);
      end = std::max(begin, planned[1]);
    } else if (parent >= 0) {
      end = commands.ends[static_cast<size_t>(parent)];
    }
    commands.begins.push_back(begin);
    commands.ends.push_back(end);
  }

  /// A buffer lives until all who touch it have ended: over all commands that begin before.
  void extendToEnds(const Commands &commands, std::vector<Slot> &slots) const {
    for (auto [i, slot] : llvm::enumerate(slots)) {
      if (slot.last < 0 || isWithinBody(slot, commands))
        continue;
      auto after = std::lower_bound(commands.begins.begin(), commands.begins.end(), endOfSlot[i].all);
      slot.last = std::max(slot.last, static_cast<int64_t>(after - commands.begins.begin()) - 1);
    }
  }
  /// A body's commands are of one stream.
  static bool isWithinBody(const Slot &slot, const Commands &commands) {
    const int64_t parent = commands.all[static_cast<size_t>(slot.first)].parent;
    return parent >= 0 && commands.all[static_cast<size_t>(slot.last)].parent == parent;
  }

  /// What is touched in a stretch that repeats, and outside of it, lives through all of it: it comes from another
  /// iteration, or goes to one. So does what a loop moves over: each iteration touches another part of it.
  void extendOverRepeats(const Commands &commands, std::vector<Slot> &slots) {
    for (auto [begin, end, loop] : commands.repeats) {
      llvm::SmallSetVector<size_t, 16> touched;
      for (int64_t time = begin; time <= end; ++time)
        for (size_t slot : touchedAt[static_cast<size_t>(time)])
          touched.insert(slot);
      llvm::SmallDenseSet<size_t, 8> movedOver;
      if (loop)
        for (Value moving : loop.getMoving())
          if (std::optional<size_t> slot = slotIndex(sched::rangeOf(moving).base))
            movedOver.insert(*slot);
      for (size_t slot : touched)
        if (movedOver.contains(slot) || slots[slot].first < begin || slots[slot].last > end) {
          slots[slot].first = std::min(slots[slot].first, begin);
          slots[slot].last = std::max(slots[slot].last, end);
        }
    }
  }

  /// A view may be larger than what it is a part of: one row of a tensor that turns out to have none, of a loop that
  /// then does not run. It has its place all the same.
  static Size bytesWithViews(Value buffer, Size bytes) {
    for (Operation *user : buffer.getUsers())
      if (auto view = dyn_cast<sched::ViewOp>(user))
        bytes = dim::max(bytes,
                         view.getOffset() + bytesWithViews(view->getResult(0), sched::bytesOf(view.getTensorType())));
    return bytes;
  }

  /// The slots of an arena's buffers. Those that no command touches need no memory. `waits`: results take the bytes of operands also
  /// where they then wait for whoever still reads these.
  std::vector<Slot> slotsOf(sched::ArenaOp arena, Commands &commands, std::vector<sched::BufferOp> &buffers, bool waits) {
    slotOf.clear();
    sharedWith.clear();
    std::vector<Slot> slots;
    for (Operation *user : arena.getArena().getUsers())
      if (auto buffer = dyn_cast<sched::BufferOp>(user)) {
        slotOf[buffer] = slots.size();
        sharedWith.push_back(slots.size());
        slots.push_back({aligned(bytesWithViews(buffer->getResult(0), sched::bytesOf(buffer.getTensorType())))});
        buffers.push_back(buffer);
      }
    endOfSlot.assign(slots.size(), {});
    touchedAt.assign(static_cast<size_t>(commands.now), {});
    for (auto [command, time, parent] : commands.all)
      for (OperandRange operands : {command.getReads(), command.getWrites()})
        for (Value operand : operands)
          if (std::optional<size_t> at = slotIndex(sched::rangeOf(operand).base)) {
            Slot &slot = slots[*at];
            EndOfSlot &ends = endOfSlot[*at];
            if (slot.last != time)
              ends.before = ends.all;
            ends.all = std::max(ends.all, commands.ends[static_cast<size_t>(time)]);
            slot.first = std::min(slot.first, time);
            slot.last = std::max(slot.last, time);
            if (!commands.repeats.empty())
              touchedAt[static_cast<size_t>(time)].push_back(*at);
          }
    extendOverRepeats(commands, slots);
    if (inPlace)
      for (auto [command, time, parent] : commands.all)
        if (auto launch = dyn_cast<sched::LaunchOp>(*command))
          shareWithOperand(launch, time, slots, commands, waits);
    return slots;
  }

  /// Lets results of a launch take the slots of operands that die there.
  void shareWithOperand(sched::LaunchOp launch, int64_t time, std::vector<Slot> &slots, const Commands &commands,
                        bool waits) {
    auto kernel = symbols->lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
    llvm::SmallDenseSet<size_t, 4> taken;
    for (auto [k, write] : llvm::enumerate(launch.getWrites())) {
      const auto result = static_cast<unsigned>(k);
      const std::optional<size_t> from = slotIndex(sched::rangeOf(write).base);
      if (!from || slots[*from].first != time)
        continue;
      for (auto [i, read] : llvm::enumerate(launch.getReads())) {
        sched::BufferRange range = sched::rangeOf(read);
        std::optional<size_t> to = slotIndex(range.base);
        if (!to || *to == *from || taken.contains(*to) || slots[*to].last != time || range.offset != 0 ||
            slots[*to].bytes != slots[*from].bytes || !mayOverwrite(kernel, static_cast<unsigned>(i), result) ||
            readsOtherwise(launch, range.base, kernel, result) ||
            (!waits && endOfSlot[*to].before > commands.begins[static_cast<size_t>(time)])) // it is being copied, say
          continue;
        slots[*to].last = slots[*from].last;
        slots[*from] = {};
        endOfSlot[*to] = {endOfSlot[*from].all, std::max(endOfSlot[*from].before, endOfSlot[*to].all)};
        sharedWith[*from] = *to;
        taken.insert(*to);
        ++numInPlace;
        break;
      }
    }
  }
  /// Whether the launch reads the memory also through an operand that does not allow it to be overwritten by the
  /// result.
  static bool readsOtherwise(sched::LaunchOp launch, Operation *base, graph::KernelOp kernel, unsigned result) {
    for (auto [i, read] : llvm::enumerate(launch.getReads()))
      if (sched::rangeOf(read).base == base && !mayOverwrite(kernel, static_cast<unsigned>(i), result))
        return true;
    return false;
  }

  /// With the least that symbolic sizes may be.
  static int64_t mostLive(ArrayRef<Slot> slots) {
    std::map<int64_t, int64_t> changes;
    for (const Slot &slot : slots)
      if (slot.last >= 0) {
        const int64_t bytes = std::max<int64_t>(0, dim::bounds(slot.bytes).lo);
        changes[slot.first] += bytes;
        changes[slot.last + 1] -= bytes;
      }
    int64_t now = 0, most = 0;
    for (auto [time, change] : changes)
      most = std::max(most, now += change);
    return most;
  }

  /// The slot of a buffer op of the arena at hand.
  std::optional<size_t> slotIndex(Operation *base) {
    auto at = slotOf.find(base);
    if (at == slotOf.end())
      return std::nullopt;
    size_t slot = at->second;
    while (sharedWith[slot] != slot)
      slot = sharedWith[slot] = sharedWith[sharedWith[slot]];
    return slot;
  }

  /// Names the command at which most is live, with the largest buffers.
  LogicalResult tooLarge(sched::ProgramOp program, sched::ArenaOp arena, int64_t needed, int64_t limit, ArrayRef<Slot> slots,
                         std::vector<sched::BufferOp> &buffers, Commands &commands) {
    std::vector<int64_t> live(static_cast<size_t>(commands.now) + 1, 0);
    for (const Slot &slot : slots)
      if (slot.last >= 0) {
        live[static_cast<size_t>(slot.first)] += slot.bytes.numberOr(0);
        live[static_cast<size_t>(slot.last) + 1] -= slot.bytes.numberOr(0);
      }
    std::partial_sum(live.begin(), live.end(), live.begin());
    const auto at = static_cast<size_t>(std::max_element(live.begin(), live.end()) - live.begin());
    Operation *command = at < commands.all.size() ? commands.all[at].command.getOperation() : program.getOperation();
    SmallVector<std::pair<int64_t, std::string>> holders;
    for (auto [i, buffer] : llvm::enumerate(buffers))
      if (slotIndex(buffer) == i && slots[i].first <= static_cast<int64_t>(at) && slots[i].last >= static_cast<int64_t>(at))
        holders.push_back({slots[i].bytes.numberOr(0),
                           "the result of " + spell(commands.all[static_cast<size_t>(slots[i].first)].command)});
    std::string besides;
    if (const runtime::DeviceModel *device = machine->find(deviceOf(arena)); device && device->memoryBytes > limit)
      besides = " beside " + std::to_string(device->memoryBytes - limit) + " that are taken all the time";
    return command->emitError() << spell(command) << " runs when most is live: the program needs " << needed << " bytes of "
                                << runtime::nameOf(deviceOf(arena)) << ", which has " << limit << " for them" << besides << "; "
                                << live[at] << " here: " << spellHolders(holders);
  }
  /// "'exp, add' (model.cpp:12)".
  std::string spell(Operation *command) {
    std::string name = command->getName().stripDialect().str();
    if (auto launch = dyn_cast<sched::LaunchOp>(command))
      if (auto kernel = symbols->lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr()))
        name = graph::describeBody(kernel.getBody(), kernel.getProvider());
    const graph::FileLine line = graph::fileLineOf(command->getLoc());
    return "'" + name + "'" + (line.file.empty() ? "" : " (" + line.file + ":" + std::to_string(line.line) + ")");
  }

  /// In picoseconds: when all who touch a slot have ended, and all but the last.
  struct EndOfSlot {
    int64_t all = 0, before = 0;
  };
  std::vector<EndOfSlot> endOfSlot;
  const runtime::MachineModel *machine;
  std::optional<int64_t> budget; ///< of the host, of one run
  llvm::DenseMap<Operation *, size_t> slotOf;
  std::vector<SmallVector<size_t, 0>> touchedAt;  ///< slots by time, where something repeats
  std::vector<size_t> sharedWith;                 ///< a slot that gave its buffers away names the one that has them
  std::shared_ptr<SymbolTableCollection> symbols; // of one run
};
} // namespace

std::unique_ptr<Pass> createPlanMemory(const PlanMemoryOptions &options, const runtime::MachineModel *machine) {
  return std::make_unique<PlanMemory>(options, machine);
}

} // namespace tressel::passes
