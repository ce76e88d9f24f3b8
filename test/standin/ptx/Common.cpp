// Handlers that work lane by lane: special registers, atomic operations, copies that are not waited for.
#include "test/standin/ptx/Program.h"
#include "test/standin/ptx/Special.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace tressel::standin::ptx {
namespace {

template <class F> void forActive(const Warp &warp, F f) {
  for (uint32_t mask = warp.active; mask; mask &= mask - 1)
    f(static_cast<unsigned>(std::countr_zero(mask)));
}

void special(Warp &warp, const Instr &instr) {
  Block &block = *warp.block;
  const auto which = static_cast<Special>(instr.sub);
  const unsigned axis = instr.count;
  auto *target = warp.target<uint32_t>(instr.op[0]);
  auto *wide = warp.target<uint64_t>(instr.op[0]);
  forActive(warp, [&](unsigned l) {
    switch (which) {
    case Special::Thread:
      target[l] = warp.tid[axis][l];
      break;
    case Special::BlockSize:
      target[l] = block.launch->block[axis];
      break;
    case Special::BlockIndex:
      target[l] = block.index[axis];
      break;
    case Special::GridSize:
      target[l] = block.launch->grid[axis];
      break;
    case Special::Lane:
      target[l] = l;
      break;
    case Special::Warp:
      target[l] = warp.index;
      break;
    case Special::Warps:
      target[l] = static_cast<uint32_t>(block.warps.size());
      break;
    case Special::ClusterRank:
      target[l] = block.rank();
      break;
    case Special::ClusterSize:
      target[l] = static_cast<uint32_t>(block.cluster.size());
      break;
    case Special::Zero:
      target[l] = 0;
      break;
    case Special::One:
      target[l] = 1;
      break;
    case Special::LanesEqual:
      target[l] = 1u << l;
      break;
    case Special::LanesLess:
      target[l] = (1u << l) - 1;
      break;
    case Special::LanesLessEqual:
      target[l] = (2u << l) - 1;
      break;
    case Special::LanesGreater:
      target[l] = ~((2u << l) - 1);
      break;
    case Special::LanesGreaterEqual:
      target[l] = ~((1u << l) - 1);
      break;
    case Special::Clock:
      target[l] = static_cast<uint32_t>(block.clock);
      break;
    case Special::WideClock:
      wide[l] = block.clock;
      break;
    case Special::SharedBytes:
      target[l] = static_cast<uint32_t>(block.shared.bytes);
      break;
    case Special::DynamicSharedBytes:
      target[l] = block.launch->dynamicSharedBytes;
      break;
    }
  });
  ++block.clock;
}

void activeMask(Warp &warp, const Instr &instr) {
  forActive(warp, [&](unsigned l) { warp.target<uint32_t>(instr.op[0])[l] = warp.active; });
}

void nothing(Warp &, const Instr &) {}

/// Operands: where that is in the shared memory of another block of the cluster, an address of the own, which block.
template <class T> void mapToPeer(Warp &warp, const Instr &instr) {
  Block &block = *warp.block;
  forActive(warp, [&](unsigned l) {
    const uint32_t rank = warp.source<uint32_t>(instr.op[2])[l];
    const T own = warp.source<T>(instr.op[1])[l];
    if (rank >= block.cluster.size() || own >> kPeerShift)
      block.stop(warp, instr, l, Fault::Kind::Trap,
                 "there is no place " + std::to_string(own) + " in block " + std::to_string(rank) +
                     " of a cluster of " + std::to_string(block.cluster.size()));
    warp.target<T>(instr.op[0])[l] = static_cast<T>(own | T(rank + 1) << kPeerShift);
  });
}

// ---- Addresses of windows: imm is the window of the space.

void toGeneric(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint64_t>(instr.op[1]);
  forActive(warp, [&](unsigned l) { warp.target<uint64_t>(instr.op[0])[l] = a[l] + static_cast<uint64_t>(instr.imm); });
}
void fromGeneric(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint64_t>(instr.op[1]);
  forActive(warp, [&](unsigned l) { warp.target<uint64_t>(instr.op[0])[l] = a[l] - static_cast<uint64_t>(instr.imm); });
}
void isInSpace(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint64_t>(instr.op[1]);
  uint32_t mask = 0;
  forActive(warp, [&](unsigned l) {
    const uint64_t window = a[l] >> kWindowShift << kWindowShift;
    const bool isIn = instr.imm ? window == static_cast<uint64_t>(instr.imm) : !window || window == kModuleWindow;
    mask |= static_cast<uint32_t>(isIn) << l;
  });
  auto *target = warp.target<uint32_t>(instr.op[0]);
  *target = (*target & ~warp.active) | mask;
}

// ---- Atomic operations. Operands: the old value, the address, one or two values. sub: the operation, count: the type.

template <class T> T combine(Atomic op, T old, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Atomic::Add)
      return old + b;
    if (op == Atomic::Min)
      return std::fmin(old, b);
    if (op == Atomic::Max)
      return std::fmax(old, b);
    return op == Atomic::Exchange ? b : old == b ? c : old;
  } else {
    using U = std::make_unsigned_t<T>;
    switch (op) {
    case Atomic::Add:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    case Atomic::Min:
      return old < b ? old : b;
    case Atomic::Max:
      return old > b ? old : b;
    case Atomic::And:
      return old & b;
    case Atomic::Or:
      return old | b;
    case Atomic::Xor:
      return old ^ b;
    case Atomic::Exchange:
      return b;
    case Atomic::Increment:
      return static_cast<U>(old) >= static_cast<U>(b) ? T(0) : static_cast<T>(old + 1);
    case Atomic::Decrement:
      return old == 0 || static_cast<U>(old) > static_cast<U>(b) ? b : static_cast<T>(old - 1);
    default:
      return old == b ? c : old;
    }
  }
}

template <class T> void atomic(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint64_t>(instr.op[1]);
  const T *b = warp.source<T>(instr.op[2]), *c = warp.source<T>(instr.op[3]);
  forActive(warp, [&](unsigned l) {
    std::byte *at =
        warp.block->locate(warp, instr, instr.space, l, a[l] + static_cast<uint64_t>(instr.imm), sizeof(T), true, true);
    T old;
    std::memcpy(&old, at, sizeof(T));
    const T now = combine<T>(static_cast<Atomic>(instr.sub), old, b[l], c[l]);
    std::memcpy(at, &now, sizeof(T));
    warp.target<T>(instr.op[0])[l] = old;
  });
}

// ---- cp.async. Operands: where to in shared memory, where from in global memory, how many bytes; count: bytes; imm
// and aux: offsets.

void copyLater(Warp &warp, const Instr &instr) {
  const auto *to = warp.source<uint64_t>(instr.op[0]), *from = warp.source<uint64_t>(instr.op[1]);
  const auto *given = warp.source<uint32_t>(instr.op[2]);
  forActive(warp, [&](unsigned l) {
    Block &block = *warp.block;
    Copy copy{.bytes = instr.count,
              .given = static_cast<uint8_t>(std::min<uint32_t>(given[l], instr.count)),
              .lane = static_cast<uint8_t>(l),
              .group = warp.committed[l]};
    copy.to =
        block.locate(warp, instr, Space::Shared, l, to[l] + static_cast<uint64_t>(instr.imm), instr.count, false, true);
    const uint64_t source = from[l] + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(instr.aux)));
    if (source % instr.count)
      block.stop(warp, instr, l, Fault::Kind::Misaligned, "copies from an address that is not a multiple of its bytes");
    // Of the source only what is given is read: that may be less than a power of two.
    for (unsigned done = 0; done < copy.given;) {
      const unsigned size = 1u << std::countr_zero(unsigned((source + done) | 16));
      const unsigned part = std::min<unsigned>(size, std::bit_floor(unsigned(copy.given - done)));
      const std::byte *host = block.locate(warp, instr, Space::Global, l, source + done, part, true, false);
      if (!done)
        copy.from = host;
      done += part;
    }
    warp.copies.push_back(copy);
  });
}
void commitCopies(Warp &warp, const Instr &) {
  forActive(warp, [&](unsigned l) { ++warp.committed[l]; });
}
/// Waits until at most imm groups are under way; of all, also those that are in no group, if imm is negative.
void waitForCopies(Warp &warp, const Instr &instr) {
  size_t kept = 0;
  for (const Copy &copy : warp.copies) {
    const bool isActive = warp.active >> copy.lane & 1;
    const bool isDue = instr.imm < 0 || copy.group + static_cast<uint64_t>(instr.imm) < warp.committed[copy.lane];
    if (isActive && isDue) {
      std::memset(copy.to, 0, copy.bytes);
      if (copy.given)
        std::memcpy(copy.to, copy.from, copy.given);
    } else
      warp.copies[kept++] = copy;
  }
  warp.copies.resize(kept);
}

} // namespace

void addCommonHandlers(std::unordered_map<std::string, Handler> &handlers) {
  handlers["special"] = special;
  handlers["activemask"] = activeMask;
  handlers["nothing"] = nothing;
  handlers["mapa.b32"] = mapToPeer<uint32_t>;
  handlers["mapa.b64"] = mapToPeer<uint64_t>;
  handlers["cvta"] = toGeneric;
  handlers["cvta.to"] = fromGeneric;
  handlers["isspacep"] = isInSpace;
  handlers["atom.u32"] = atomic<uint32_t>;
  handlers["atom.s32"] = atomic<int32_t>;
  handlers["atom.u64"] = atomic<uint64_t>;
  handlers["atom.s64"] = atomic<int64_t>;
  handlers["atom.u16"] = atomic<uint16_t>;
  handlers["atom.f32"] = atomic<float>;
  handlers["atom.f64"] = atomic<double>;
  handlers["cp.async"] = copyLater;
  handlers["cp.async.commit_group"] = commitCopies;
  handlers["cp.async.wait_group"] = waitForCopies;
}

} // namespace tressel::standin::ptx
