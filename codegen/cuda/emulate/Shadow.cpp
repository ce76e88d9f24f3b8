#include "codegen/cuda/emulate/Shadow.h"

#include <algorithm>
#include <bit>

namespace tressel::codegen::cuda::emulate {

static constexpr uint32_t kWarpShift = 5;

void WarpClock::meet(uint32_t mask) {
  ++now_;
  if (mask == ~0u) {
    all_ = now_;
    return;
  }
  if (!partial_)
    for (auto &row : known_)
      row.fill(0);
  partial_ = true;
  std::array<uint32_t, 32> joined{};
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      for (uint32_t i = 0; i < 32; ++i)
        joined[i] = std::max(joined[i], known_[lane][i]);
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      joined[lane] = now_;
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      known_[lane] = joined;
}

void Shadow::cover(uint64_t bytes, uint32_t granule) {
  granule_ = granule, shift_ = static_cast<uint32_t>(std::countr_zero(granule));
  bytes_ = bytes;
  cells_.assign((bytes + granule - 1) >> shift_, {});
}

void Shadow::forbid(uint64_t begin, uint64_t end) {
  for (uint64_t i = begin >> shift_; i < end >> shift_; ++i)
    cells_[i].forbidden = true;
}

void Shadow::setInFlight(uint64_t offset, uint64_t bytes, bool inFlight) {
  for (uint64_t i = offset >> shift_; i < (offset + bytes) >> shift_; ++i)
    cells_[i].inFlight = inFlight;
}

std::string Shadow::conflict(const Cell &cell, const Access &a, const WarpClock &clock) const {
  const uint32_t warp = a.thread >> kWarpShift, lane = a.thread & 31;
  auto rankOf = [](uint32_t thread) { return thread / kMaxBlockThreads; };
  auto name = [&](uint32_t thread) {
    return "thread " + std::to_string(thread % kMaxBlockThreads) +
           (rankOf(thread) == rankOf(a.thread) ? "" : " of the cluster's block " + std::to_string(rankOf(thread)));
  };
  const bool seesOthers = a.mustBeWritten || !a.blocksAreOrdered;
  auto isUnordered = [&](uint32_t epoch, uint32_t thread) {
    return rankOf(thread) == rankOf(a.thread) ? epoch == a.epoch : seesOthers && epoch >= a.clusterEpoch;
  };
  // With who wrote last.
  if (cell.writeEpoch < a.blockEpoch) {
    if (a.mustBeWritten && a.kind != AccessKind::Write)
      return "which nobody wrote";
    if (!a.blocksAreOrdered && cell.writeEpoch >= a.launchEpoch && cell.writeEpoch &&
        !(cell.atomic && a.kind == AccessKind::Atomic))
      return "which " + name(cell.writer) + " of another block wrote";
  } else if (isUnordered(cell.writeEpoch, cell.writer) && !(cell.atomic && a.kind == AccessKind::Atomic)) {
    if (cell.writer != a.thread &&
        (uint32_t(cell.writer) >> kWarpShift != warp || !clock.knows(lane, cell.writer & 31, cell.writeStamp)))
      return "which " + name(cell.writer) + " wrote, and no barrier is between";
    if (cell.manyAtomics)
      return "which threads of several warps changed, and no barrier is between";
  }
  if (a.kind == AccessKind::Read)
    return {};
  // With those who read.
  if (!a.blocksAreOrdered && cell.firstRead && cell.firstRead >= a.launchEpoch && cell.firstRead < a.blockEpoch)
    return "which a thread of another block read";
  if (cell.farReadEpoch && rankOf(cell.farReader) != rankOf(a.thread) && isUnordered(cell.farReadEpoch, cell.farReader))
    return "which " + name(cell.farReader) + " read, and no barrier is between";
  if (cell.readEpoch && isUnordered(cell.readEpoch, uint32_t(cell.readWarp) << kWarpShift)) {
    if (cell.manyWarps)
      return "which threads of several warps read, and no barrier is between";
    for (uint32_t mask = cell.readMask; mask; mask &= mask - 1) {
      const auto other = static_cast<uint32_t>(std::countr_zero(mask));
      if (cell.readWarp != warp || (other != lane && !clock.knows(lane, other, cell.readStamp)))
        return "which " + name((uint32_t(cell.readWarp) << kWarpShift) + other) + " read, and no barrier is between";
    }
  }
  return {};
}

void Shadow::record(Cell &cell, const Access &a, const WarpClock &clock) const {
  const uint32_t stamp = clock.now();
  const auto warp = static_cast<uint16_t>(a.thread >> kWarpShift);
  const uint32_t bit = 1u << (a.thread & 31);
  if (a.kind == AccessKind::Read && a.isFar) {
    cell.farReadEpoch = a.epoch, cell.farReader = static_cast<uint16_t>(a.thread);
    return;
  }
  if (a.kind == AccessKind::Read) {
    if (cell.readEpoch != a.epoch)
      cell.readMask = 0, cell.manyWarps = false;
    else if (cell.readMask && cell.readWarp != warp)
      cell.manyWarps = true;
    if (cell.readWarp != warp || clock.allKnow(cell.readStamp))
      cell.readMask = 0;
    if (cell.firstRead < a.launchEpoch || !cell.firstRead)
      cell.firstRead = a.epoch;
    cell.readEpoch = a.epoch, cell.readStamp = stamp, cell.readWarp = warp;
    cell.readMask |= bit;
    return;
  }
  const bool atomic = a.kind == AccessKind::Atomic;
  cell.manyAtomics = atomic && cell.atomic && cell.writeEpoch == a.epoch &&
                     (cell.manyAtomics || uint32_t(cell.writer) >> kWarpShift != warp);
  cell.writeEpoch = a.epoch, cell.writeStamp = stamp, cell.writer = static_cast<uint16_t>(a.thread);
  cell.atomic = atomic;
  cell.readMask = 0, cell.readEpoch = 0, cell.farReadEpoch = 0, cell.manyWarps = false;
}

std::string Shadow::check(const Access &a, const WarpClock &clock) {
  for (uint64_t i = a.offset >> shift_; i < (a.offset + a.bytes) >> shift_; ++i) {
    Cell &cell = cells_[i];
    std::string what;
    if (cell.forbidden)
      what = "which is in no variable";
    else if (cell.inFlight)
      what = "where a cp.async may still write, as nobody has waited for it";
    else
      what = conflict(cell, a, clock);
    if (!what.empty())
      return "byte " + std::to_string(i << shift_) + ", " + what;
    record(cell, a, clock);
  }
  return {};
}

} // namespace tressel::codegen::cuda::emulate
