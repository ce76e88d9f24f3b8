// mbarrier objects, and copies of tensors that complete them. PTX ISA, "Parallel Synchronization and Communication
// Instructions: mbarrier" and "Data Movement and Conversion Instructions: Asynchronous copy".
//
// A copy's destination holds no numbers from the copy's issue on, and the bytes arrive when something waits for the
// barrier's phase that they belong to: between the two the ISA leaves them undefined.
#include "test/standin/ptx/Program.h"
#include "test/standin/ptx/Special.h"
#include "test/standin/ptx/TensorMap.h"

#include <algorithm>
#include <cstring>

namespace tressel::standin::ptx {
namespace {

constexpr uint32_t kMostArrivals = (1u << 20) - 1; ///< also the range of the transactions

template <class F> void forActive(const Warp &warp, F f) {
  for (uint32_t mask = warp.active; mask; mask &= mask - 1)
    f(static_cast<unsigned>(std::countr_zero(mask)));
}

/// The 64 bits of an object in shared memory.
uint64_t patternOf(const BarrierObject &barrier) {
  return 0x6d62617272696572 ^ (uint64_t(barrier.phase) << 40 | uint64_t(barrier.pending) << 20) ^
         static_cast<uint64_t>(barrier.transactions);
}

/// The objects of a block as one lane of an instruction sees them.
class View {
public:
  View(Warp &warp, const Instr &instr, unsigned lane) : warp_(warp), block_(*warp.block), instr_(instr), lane_(lane) {}

  uint64_t offsetOf(uint64_t address) const {
    if (instr_.space == Space::Generic && (address & ~(kSharedWindow - 1)) == kSharedWindow)
      address -= kSharedWindow;
    return address;
  }
  [[noreturn]] void trap(const std::string &what) const { block_.stop(warp_, instr_, lane_, Fault::Kind::Trap, what); }
  std::byte *bytesAt(uint64_t address) {
    return block_.locate(warp_, instr_, Space::Shared, lane_, address, 8, true, true);
  }
  BarrierObject &at(uint64_t address) {
    const std::byte *bytes = bytesAt(address);
    const auto found = block_.barrierObjects.find(address);
    if (found == block_.barrierObjects.end())
      trap("there is no mbarrier object at " + std::to_string(address) + " of shared memory,");
    uint64_t there;
    std::memcpy(&there, bytes, 8);
    if (there != patternOf(found->second))
      trap("something wrote over the mbarrier object at " + std::to_string(address) + " of shared memory,");
    return found->second;
  }
  void keep(uint64_t address, const BarrierObject &barrier) {
    const uint64_t pattern = patternOf(barrier);
    std::memcpy(bytesAt(address), &pattern, 8);
  }
  void initialize(uint64_t address, uint32_t count) {
    if (!count || count > kMostArrivals)
      trap("an mbarrier for " + std::to_string(count) + " arrivals");
    if (block_.barrierObjects.contains(address))
      trap("the mbarrier object is there, and was not invalidated,");
    bytesAt(address);
    BarrierObject &barrier = block_.barrierObjects[address];
    barrier.expected = barrier.pending = count;
    keep(address, barrier);
    ++block_.arrivals;
  }
  void invalidate(uint64_t address) {
    at(address);
    block_.barrierObjects.erase(address);
    std::memset(bytesAt(address), 0xff, 8);
  }
  /// `arrivals` and a change of the transactions that are expected, then the phase ends if nothing is left.
  void change(uint64_t address, uint32_t arrivals, int64_t transactions) {
    BarrierObject &barrier = at(address);
    if (arrivals > barrier.pending)
      trap("there are more arrivals than the mbarrier's phase has,");
    barrier.pending -= arrivals;
    barrier.transactions += transactions;
    if (barrier.transactions > kMostArrivals || barrier.transactions < -static_cast<int64_t>(kMostArrivals))
      trap("the mbarrier's count of transactions leaves its range");
    if (!barrier.pending && !barrier.transactions)
      ++barrier.phase, barrier.pending = barrier.expected;
    keep(address, barrier);
    ++block_.arrivals;
  }
  bool hasCompleted(uint64_t address, uint32_t phase) { return at(address).phase != phase; }

private:
  Warp &warp_;
  Block &block_;
  const Instr &instr_;
  unsigned lane_;
};

uint64_t addressOf(Warp &warp, const Instr &instr, unsigned operand, unsigned lane) {
  return View(warp, instr, lane)
      .offsetOf(warp.source<uint64_t>(instr.op[operand])[lane] + static_cast<uint64_t>(instr.imm));
}

void initialize(Warp &warp, const Instr &instr) {
  forActive(warp, [&](unsigned l) {
    View(warp, instr, l).initialize(addressOf(warp, instr, 0, l), warp.source<uint32_t>(instr.op[1])[l]);
  });
}
void invalidate(Warp &warp, const Instr &instr) {
  forActive(warp, [&](unsigned l) { View(warp, instr, l).invalidate(addressOf(warp, instr, 0, l)); });
}
/// Operands: the state, the address, arrivals, bytes that are expected.
void arrive(Warp &warp, const Instr &instr) {
  forActive(warp, [&](unsigned l) {
    View view(warp, instr, l);
    const uint64_t address = addressOf(warp, instr, 1, l);
    const uint64_t phase = view.at(address).phase;
    const uint32_t arrivals = warp.source<uint32_t>(instr.op[2])[l], bytes = warp.source<uint32_t>(instr.op[3])[l];
    if (instr.sub == 0 && !arrivals)
      view.trap("an arrival of none");
    view.change(address, arrivals, bytes);
    warp.target<uint64_t>(instr.op[0])[l] = phase;
  });
}

// ---- Tensors

struct Place {
  std::byte *host;
  bool isReadOnly;
};

TensorMap mapOf(Warp &warp, const Instr &instr, unsigned lane, uint64_t address) {
  Block &block = *warp.block;
  if (address % 64)
    block.stop(warp, instr, lane, Fault::Kind::Misaligned, "a tensor map at an address that is not a multiple of 64");
  TensorMap map;
  for (unsigned i = 0; i < sizeof map; i += 8)
    std::memcpy(reinterpret_cast<std::byte *>(&map) + i,
                block.locate(warp, instr, Space::Generic, lane, address + i, 8, true, false), 8);
  if (map.magic != TensorMap::kMagic)
    block.stop(warp, instr, lane, Fault::Kind::Trap, "there is no tensor map at the address given");
  return map;
}

/// fn(place in shared memory, bytes, element's place in global memory, or none outside of the tensor) for the runs of
/// the box along its first dimension; returns how many bytes it has.
template <class F> uint64_t forRuns(const TensorMap &map, const TensorCopy &copy, F fn) {
  uint64_t rows = 1, shared = copy.to;
  for (unsigned d = 1; d < map.rank; ++d)
    rows *= map.box[d];
  const uint64_t bytes = uint64_t(map.box[0]) * map.elementBytes;
  for (uint64_t row = 0; row < rows; ++row, shared += bytes) {
    uint64_t rest = row, from = map.address;
    bool isInside = true;
    for (unsigned d = 1; d < map.rank; ++d) {
      const int64_t at = copy.at[d] + static_cast<int64_t>(rest % map.box[d]) * map.steps[d];
      rest /= map.box[d];
      isInside &= at >= 0 && at < static_cast<int64_t>(map.sizes[d]);
      from += static_cast<uint64_t>(at) * map.strides[d - 1];
    }
    const int64_t first = copy.at[0], end = first + map.box[0], size = static_cast<int64_t>(map.sizes[0]);
    const int64_t begin = std::clamp<int64_t>(first, 0, size),
                  stop = isInside ? std::clamp<int64_t>(end, begin, size) : begin;
    fn(shared, bytes, static_cast<uint64_t>(begin - first) * map.elementBytes,
       from + static_cast<uint64_t>(begin) * map.elementBytes, static_cast<uint64_t>(stop - begin) * map.elementBytes);
  }
  return rows * bytes;
}

/// Where a byte of a box that lies in shared memory from `address` on without swizzling is.
std::byte *sharedAt(const Block &block, const TensorMap &map, uint64_t address) {
  return block.shared.host + swizzled(address, map.swizzle);
}

void issue(Warp &warp, const Instr &instr) {
  const unsigned rank = instr.count;
  forActive(warp, [&](unsigned l) {
    Block &block = *warp.block;
    View view(warp, instr, l);
    TensorCopy copy{
        .map = warp.source<uint64_t>(instr.op[1])[l], .rank = rank, .lane = l, .warp = &warp, .instr = &instr};
    copy.to = warp.source<uint64_t>(instr.op[0])[l] + static_cast<uint64_t>(instr.imm);
    copy.barrier = warp.source<uint64_t>(instr.op[2])[l];
    for (unsigned d = 0; d < rank; ++d)
      copy.at[d] = warp.source<int32_t>(instr.op[3 + d])[l];
    const TensorMap map = mapOf(warp, instr, l, copy.map);
    if (map.rank != rank)
      view.trap("the tensor map has " + std::to_string(map.rank) + " dimensions");
    if (copy.to % 128)
      block.stop(warp, instr, l, Fault::Kind::Misaligned, "the destination is not a multiple of 128 bytes");
    constexpr unsigned kSpans[] = {0, 32, 64, 128};
    if (const unsigned span = kSpans[static_cast<unsigned>(map.swizzle)]; span && map.box[0] * map.elementBytes != span)
      view.trap("rows of a box that are shorter than the span of its swizzle are not interpreted");
    if (!view.at(copy.barrier).isFenced)
      view.trap("the mbarrier was initialized without a fence behind it");
    uint64_t bytes = forRuns(map, copy, [](auto...) {});
    if (map.swizzle != TensorMap::Swizzle::None)
      bytes = (bytes + 1023) / 1024 * 1024;
    if (copy.to > block.shared.bytes || bytes > block.shared.bytes - copy.to)
      block.stop(warp, instr, l, Fault::Kind::IllegalAddress, "the box does not fit into shared memory");
    forRuns(map, copy, [&](uint64_t shared, uint64_t count, auto...) {
      for (uint64_t i = 0; i < count; i += 16)
        std::memset(sharedAt(block, map, shared + i), 0xff, 16);
    });
    block.tensorCopies.push_back(copy);
  });
}

/// The bytes of copies that complete this barrier arrive, in some order.
void deliver(Block &block, uint64_t barrier) {
  for (;;) {
    std::vector<size_t> due;
    for (size_t i = 0; i < block.tensorCopies.size(); ++i)
      if (block.tensorCopies[i].barrier == barrier)
        due.push_back(i);
    if (due.empty())
      return;
    const size_t chosen = due[block.random % due.size()];
    const TensorCopy copy = block.tensorCopies[chosen];
    block.tensorCopies.erase(block.tensorCopies.begin() + static_cast<std::ptrdiff_t>(chosen));
    Warp &warp = *copy.warp;
    const Instr &instr = *copy.instr;
    const TensorMap map = mapOf(warp, instr, copy.lane, copy.map);
    const uint64_t bytes =
        forRuns(map, copy, [&](uint64_t shared, uint64_t count, uint64_t skipped, uint64_t from, uint64_t given) {
          std::byte row[256 * 16] = {};
          for (uint64_t done = 0; done < given;) {
            const uint64_t part =
                std::min<uint64_t>(uint64_t(1) << std::countr_zero((from + done) | 16), std::bit_floor(given - done));
            std::memcpy(row + skipped + done,
                        block.locate(warp, instr, Space::Global, copy.lane, from + done, static_cast<unsigned>(part),
                                     true, false),
                        part);
            done += part;
          }
          for (uint64_t i = 0; i < count; i += 16)
            std::memcpy(sharedAt(block, map, shared + i), row + i, std::min<uint64_t>(16, count - i));
        });
    View(warp, instr, copy.lane).change(copy.barrier, 0, -static_cast<int64_t>(bytes));
  }
}

/// And products that arrive at it (TensorMemory.cpp).
void deliverAll(Block &block, uint64_t barrier) {
  deliver(block, barrier);
  deliverProducts(block, barrier, [](const TensorMemory::Commit &commit) {
    View(*commit.warp, *commit.instr, commit.lane).change(commit.barrier, 1, 0);
  });
}

/// Operands: the predicate, the address, the phase: its parity, or with sub 1 the state of an arrival. count: 1 where
/// it may fail though the phase has ended.
void wait(Warp &warp, const Instr &instr) {
  Block &block = *warp.block;
  uint32_t mask = 0;
  forActive(warp, [&](unsigned l) {
    View view(warp, instr, l);
    const uint64_t address = addressOf(warp, instr, 1, l);
    const bool isState = instr.sub;
    auto hasEnded = [&] {
      const uint32_t phase = view.at(address).phase;
      return isState ? phase != warp.source<uint64_t>(instr.op[2])[l]
                     : (phase & 1) != (warp.source<uint32_t>(instr.op[2])[l] & 1);
    };
    if (!hasEnded())
      deliverAll(block, address);
    mask |= static_cast<uint32_t>(hasEnded()) << l;
  });
  // It is free to say no: now and then it does.
  if (block.random && mask) {
    block.random ^= block.random << 13, block.random ^= block.random >> 7, block.random ^= block.random << 17;
    if (block.random % 4 == 0)
      mask = 0;
  }
  auto *target = warp.target<uint32_t>(instr.op[0]);
  *target = (*target & ~warp.active) | mask;
  if (mask)
    ++block.arrivals;
  warp.failedWaits = mask == warp.active ? 0 : warp.failedWaits + 1;
}

void fence(Warp &warp, const Instr &) {
  for (auto &[address, barrier] : warp.block->barrierObjects)
    barrier.isFenced = true;
}

} // namespace

void endAsync(Block &block) {
  if (block.tensorCopies.empty())
    return;
  const TensorCopy &copy = block.tensorCopies.front();
  block.stop(*copy.warp, *copy.instr, copy.lane, Fault::Kind::Trap,
             "the block ended before its copy of a tensor had arrived, issued");
}

void addAsyncHandlers(std::unordered_map<std::string, Handler> &handlers) {
  handlers["mbarrier.init"] = initialize;
  handlers["mbarrier.inval"] = invalidate;
  handlers["mbarrier.arrive"] = arrive;
  handlers["mbarrier.wait"] = wait;
  handlers["cp.async.bulk.tensor"] = issue;
  handlers["fence.async"] = fence;
}

} // namespace tressel::standin::ptx
