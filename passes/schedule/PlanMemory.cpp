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

/// Bytes that one or more buffers share, live from the first to the last command that touches them.
struct Slot {
  Size bytes;
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  Size offset;
  // The next two are for numeric sizes only.
  int64_t begin() const { return offset.number(); }
  int64_t end() const { return (offset + bytes).number(); }
  bool isLiveWith(const Slot &other) const { return first <= other.last && other.first <= last; }
};

/// Best fit: offset of the smallest gap between `taken` ranges (begin, end; sorted) that holds `bytes`, or the end of
/// the last range.
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

/// Best fit in a given order: each slot goes to the smallest gap between slots placed before that are live with it.
/// Compares all pairs.
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

/// Best fit, largest slots first. While the end exceeds `bound`, tries again with the slots that reach furthest moved
/// to the front, for a bounded number of rounds.
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

/// Local search over orders, for memories that the plans above do not fit: starts from the best order, and from those
/// by lifetime and by bytes times lifetime; then moves a slot that reaches the end, or a random slot, ahead in the
/// order, and keeps what is no worse. Small slots find gaps in any case, so only the order of the large ones is
/// searched. `numPairs` bounds the comparisons of slots.
std::vector<Slot> placeBySearch(const std::vector<Slot> &slots, std::vector<Slot> best, int64_t bound,
                                size_t numPairs) {
  constexpr size_t kRounds = 20'000;
  constexpr int64_t kSmall = 64; // share of the largest slot
  std::vector<Slot> large;
  // The bound only decides when the search stops, so a plan for a small bound is found for a larger one too.
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
  std::vector<Slot> latest; // placement for the best order
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
  uint64_t state = 88172645463325252; // a fixed seed: the same plan each time
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

/// First use order, as an allocator at run time would do: near linear, for programs too large for comparing all pairs.
std::vector<Slot> placeByTime(std::vector<Slot> slots) {
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  llvm::sort(order, [&](size_t a, size_t b) { return std::pair(slots[a].first, a) < std::pair(slots[b].first, b); });
  std::multimap<int64_t, size_t> ends; // live slots by last use
  std::map<int64_t, int64_t> taken;    // begin to end
  for (size_t i : order) {
    if (slots[i].bytes == 0)
      continue; // empty: it takes any offset, and must not hide a slot that begins there
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

/// Slots of symbolic size go to bins, one behind the other from `start` on, so that they are disjoint whatever the
/// sizes are. Slots that are not live together share a bin, which is as large as the largest of them. Returns the end.
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
      // If bytes become free only when another engine is done with them, a reuse waits for that engine. So slots are
      // extended to the predicted end of their last access, unless the result does not fit.
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
        } else { // no better: restore the slots
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

  /// Places the slots in `placed` and returns the end. `limit` makes it search longer for a plan that fits.
  Size place(ArrayRef<Slot> slots, std::vector<Slot> &placed, std::optional<int64_t> limit = {}) const {
    SmallVector<size_t> symbolic;
    for (auto [i, slot] : llvm::enumerate(slots))
      if (slot.bytes.isSymbolic())
        symbolic.push_back(i);
    std::vector<Slot> fixed(slots.begin(), slots.end()); // symbolic slots follow behind these
    for (size_t i : symbolic)
      fixed[i] = {};
    constexpr size_t kAllPairs = 2000;
    constexpr size_t kPairs = 20'000'000, kMostPairs = 200'000'000; // a tenth of a second, a second
    placed = placeByTime(fixed);
    if (slots.size() <= kAllPairs)
      if (std::vector<Slot> bySize = placeBySize(fixed, mostLive(fixed)); endOf(bySize) <= endOf(placed))
        placed = std::move(bySize);
    // Without a limit, the search runs only for gaps larger than this.
    constexpr int64_t kFineGaps = 50, kFewBytes = 1 << 20; // 1/50 of the live bytes, and bytes
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

  /// The bytes of a device's memory that its states leave.
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

  /// Commands by time, those of a body after the command it belongs to, and the ranges of time that repeat, inner ones
  /// first.
  struct Commands {
    struct Access {
      sched::CommandOpInterface command;
      int64_t time;
      int64_t parent = -1; ///< of a command in a body: the time of the outermost one that it belongs to
    };
    std::vector<Access> all;
    // By time, in picoseconds: predicted begin of the command, or of the outermost one that it belongs to, made
    // monotonic; and predicted end.
    bool isPlanned = false;
    std::vector<int64_t> begins, ends;
    struct Repeat {
      int64_t begin, end;
      sched::LoopOp loop; ///< null if the command is no loop
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
      // Operands of the command itself are live through all its bodies.
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

  /// Extends slots to the predicted end of all their accesses, that is, over all commands that begin before.
  void extendToEnds(const Commands &commands, std::vector<Slot> &slots) const {
    for (auto [i, slot] : llvm::enumerate(slots)) {
      if (slot.last < 0 || isWithinBody(slot, commands))
        continue;
      auto after = std::lower_bound(commands.begins.begin(), commands.begins.end(), endOfSlot[i].all);
      slot.last = std::max(slot.last, static_cast<int64_t>(after - commands.begins.begin()) - 1);
    }
  }
  /// Whether all accesses are in one body. The commands of a body run on one stream, one after the other.
  static bool isWithinBody(const Slot &slot, const Commands &commands) {
    const int64_t parent = commands.all[static_cast<size_t>(slot.first)].parent;
    return parent >= 0 && commands.all[static_cast<size_t>(slot.last)].parent == parent;
  }

  /// A slot touched both in a range that repeats and outside of it is live through all of that range: its value comes
  /// from another iteration, or goes to one. So is a slot that a loop moves over, as each iteration touches another
  /// part.
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

  /// Bytes including all views. A view may be larger than its base: one row of a tensor that has none, in a loop that
  /// then runs no iteration. Its bytes are reserved all the same.
  static Size bytesWithViews(Value buffer, Size bytes) {
    for (Operation *user : buffer.getUsers())
      if (auto view = dyn_cast<sched::ViewOp>(user))
        bytes = dim::max(bytes,
                         view.getOffset() + bytesWithViews(view->getResult(0), sched::bytesOf(view.getTensorType())));
    return bytes;
  }

  /// The slots of an arena's buffers. Buffers that no command touches have none. `waits`: a result may take an
  /// operand's bytes even where it then waits for another reader of them.
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

  /// Lets results of a launch take the slots of operands whose last use is the launch.
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
            (!waits &&
             endOfSlot[*to].before >
                 commands.begins[static_cast<size_t>(time)])) // another engine still reads it, a copy for example
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
  /// Whether the launch also reads these bytes by an operand that the result may not overwrite.
  static bool readsOtherwise(sched::LaunchOp launch, Operation *base, graph::KernelOp kernel, unsigned result) {
    for (auto [i, read] : llvm::enumerate(launch.getReads()))
      if (sched::rangeOf(read).base == base && !mayOverwrite(kernel, static_cast<unsigned>(i), result))
        return true;
    return false;
  }

  /// Largest sum of live bytes; symbolic sizes count with their lower bounds.
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

  /// Reports the command at which most bytes are live, with the largest buffers.
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

  /// Predicted end, in picoseconds, of the last command that touches a slot, and of all before it.
  struct EndOfSlot {
    int64_t all = 0, before = 0;
  };
  std::vector<EndOfSlot> endOfSlot;
  const runtime::MachineModel *machine;
  std::optional<int64_t> budget; ///< of the host's arena; set during a run
  llvm::DenseMap<Operation *, size_t> slotOf;
  std::vector<SmallVector<size_t, 0>> touchedAt; ///< slots by time; filled only if something repeats
  std::vector<size_t> sharedWith; ///< the slot that took over the buffers of a slot; else the slot itself
  std::shared_ptr<SymbolTableCollection> symbols; // set during a run
};
} // namespace

std::unique_ptr<Pass> createPlanMemory(const PlanMemoryOptions &options, const runtime::MachineModel *machine) {
  return std::make_unique<PlanMemory>(options, machine);
}

} // namespace tressel::passes
