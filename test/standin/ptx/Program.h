// A kernel as it is executed: instructions with their operands' places, and the state of a block that executes them.
//
// A warp's registers lie side by side in its frame: 32 lanes of 2, 4 or 8 bytes each; predicates are masks of a bit for
// each lane. Constants lie likewise in a pool that all warps share, so that an operand is an offset either way.
#pragma once

#include "test/standin/ptx/Ptx.h"
#include "test/standin/ptx/Syntax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <unordered_map>

namespace tressel::standin::ptx {

constexpr unsigned kLanes = 32;
constexpr uint32_t kAllLanes = ~0u;

/// Generic addresses of the spaces that are not global memory: above all of its addresses.
constexpr unsigned kWindowShift = 48;
/// Addresses of the cluster's shared memory (.shared::cluster): below, those of the block's own; above, by what mapa
/// gives, block 0's, block 1's...
constexpr unsigned kPeerShift = 24;
constexpr uint64_t kSharedWindow = uint64_t(1) << kWindowShift, kLocalWindow = uint64_t(2) << kWindowShift,
                   kParamWindow = uint64_t(3) << kWindowShift, kConstWindow = uint64_t(4) << kWindowShift,
                   kModuleWindow = uint64_t(5) << kWindowShift; ///< the module's .global variables

struct Warp;
struct Instr;
struct Block;
struct Program;
using Handler = void (*)(Warp &, const Instr &);

enum class Kind : uint8_t {
  Plain, ///< its handler does it all, for the lanes that are active
  Branch,
  BranchIndexed,
  Exit,
  Trap,
  Barrier,   ///< of the block
  Collective ///< of lanes of the warp
};

/// How MXCSR rounds and flushes for an instruction: a rounding mode, plus kFlush. Those without floating point have
/// none.
constexpr unsigned kNearest = 0, kDown = 1, kUp = 2, kZero = 3, kFlush = 4, kModes = 8;
/// Instr::flags: bit m: it needs mode m.
constexpr uint32_t kBlockStart = 1u << 8, ///< lanes may wait here while others are elsewhere
    kGuarded = 1u << 9, kGuardNegated = 1u << 10,
                   kControl = 1u << 11; ///< its kind is not Plain

struct Instr {
  Handler run = nullptr;
  uint32_t op[8] =
      {}; ///< places of operands, destinations first; see Warp::at. A ninth and later ones are in Program::extra
  int64_t imm = 0;
  uint32_t flags = 0;
  uint32_t guard = 0; ///< a predicate's place
  uint32_t aux = 0;   ///< a target, an index into Program::extra or the cache of spans
  Kind kind = Kind::Plain;
  Space space = Space::Generic;
  uint8_t count = 0;
  uint8_t sub = 0; ///< a variant, as its handler says
};
static_assert(sizeof(Instr) == 64);

/// What the warps of a collective instruction do together, and how it is told from others.
enum class Together : uint8_t {
  ShuffleUp,
  ShuffleDown,
  ShuffleXor,
  ShuffleIndex,
  VoteAll,
  VoteAny,
  VoteUniform,
  VoteBallot,
  MatchAny,
  MatchAll,
  ReduceAdd,
  ReduceMin,
  ReduceMax,
  ReduceAnd,
  ReduceOr,
  ReduceXor,
  Sync,
  Elect,
  Matrix
};

struct Program {
  std::string name;
  std::shared_ptr<const std::string> text;
  std::vector<Instr> code;
  struct Place {
    unsigned line = 0;
    std::string_view text;
  };
  std::vector<Place> places; ///< of the instructions
  std::vector<uint32_t> extra;
  std::vector<std::byte> constants;
  uint32_t frameBytes = 0;
  std::vector<std::pair<uint32_t, uint32_t>>
      uninitialized;   ///< offsets and sizes in a frame: read before anything is written, perhaps
  uint32_t caches = 0; ///< spans that instructions remember
  uint32_t paramBytes = 0, localBytes = 0, sharedBytes = 0;
  uint32_t dynamicBegin = 0; ///< where dynamic shared memory begins
  /// The module's .global and .const variables.
  std::shared_ptr<struct Storage> storage;
};

struct Storage {
  std::vector<uint64_t> globals, constants; ///< of 64 bits for their alignment
  Span span;                                ///< of the .global variables
  uint64_t constantBytes = 0;
};

/// Bytes that lanes of a block address from `begin` on.
struct Region {
  std::byte *host = nullptr;
  uint64_t bytes = 0;
};

/// A cp.async that has not been waited for.
struct Copy {
  std::byte *to = nullptr;
  const std::byte *from = nullptr;
  uint8_t bytes = 0, given = 0; ///< zeros after the given ones
  uint8_t lane = 0;
  uint32_t group = 0;
};

/// An mbarrier object. Its bytes in shared memory are opaque: here they are a pattern that nothing else writes.
struct BarrierObject {
  uint32_t expected = 0, pending = 0;
  uint32_t phase = 0; ///< how many have been completed
  int64_t transactions = 0;
  bool isFenced = false; ///< asynchronous copies know of it
};

/// A cp.async.bulk.tensor whose bytes have not arrived.
struct TensorCopy {
  uint64_t map = 0; ///< generic address of the tensor map
  int32_t at[5] = {};
  unsigned rank = 0, lane = 0;
  uint64_t to = 0, barrier = 0; ///< in shared memory
  Warp *warp = nullptr;
  const Instr *instr = nullptr;
};

/// A wgmma.mma_async that has not been waited for, as its warp sees it.
struct WarpgroupProduct {
  const Instr *instr = nullptr;
  uint64_t left = 0, right = 0; ///< descriptors
  std::vector<std::byte> seen;  ///< the bytes that it read
  uint32_t group = 0;
  bool isCommitted = false;
};
/// Accumulators of products in flight: the registers hold no numbers meanwhile.
struct Accumulators {
  std::vector<uint32_t> places;
  std::vector<float> sums; ///< 16 rows
  size_t products = 0;     ///< in flight
};
/// Tensor memory: 128 lanes of 512 columns of 32 bits, of a block.
struct TensorMemory {
  static constexpr unsigned kLanes = 128, kColumns = 512;
  struct Product { ///< a tcgen05.mma that has not ended
    uint32_t sums = 0, form = 0;
    uint64_t left = 0, right = 0;
    bool adds = false;
    std::vector<std::byte> seen; ///< the bytes that it reads
    Warp *warp = nullptr;
    const Instr *instr = nullptr;
    unsigned lane = 0;
    int64_t commit = -1; ///< of those below
  };
  struct Commit { ///< an arrival at an mbarrier when all products before it have ended
    uint64_t barrier = 0;
    Warp *warp = nullptr;
    const Instr *instr = nullptr;
    unsigned lane = 0;
  };
  std::vector<uint32_t> words;                 ///< by lane and column; empty: none was asked for
  std::map<uint32_t, uint32_t> allocated;      ///< columns, by the first
  std::vector<Product> products;               ///< in order
  std::vector<Commit> commits;                 ///< in order
  uint64_t ended = 0;                          ///< commits that have arrived
  std::array<uint64_t, kColumns> written = {}; ///< by column: `ended` when a product had last written it
  bool isRelinquished = false;
};
/// A tcgen05.ld that has not been waited for.
struct TensorLoad {
  std::vector<uint32_t> places, values;
};

/// What a handler of the processor's vector instructions multiplies: c (16 x n) += a (16 x 16) b (16 x n).
struct SmallProduct {
  const float *a = nullptr, *b = nullptr;
  float *c = nullptr;
  unsigned n = 0;
};

/// Lanes of a warp at one place.
struct Group {
  uint32_t pc = 0, mask = 0;
  bool isWaiting = false;
  uint32_t needs = 0; ///< lanes of the warp that a collective instruction names
  int barrier = -1;   ///< of the block, that it waits at
};

struct alignas(64) Warp {
  std::byte *base[2] = {}; ///< the frame, and the constants less one
  uint32_t active = 0;     ///< lanes that execute
  uint32_t live = 0;       ///< lanes that have not exited
  bool isPartial = false;  ///< live lanes are not active: what is written must be blended
  uint32_t attention = 0;  ///< flags of instructions that need more than a call of their handler
  uint32_t pc = 0;
  uint32_t exists = 0; ///< lanes that are threads of the block
  uint32_t carry = 0;
  bool gaveWay = false; ///< its last turn ended in a loop that waits, perhaps
  uint32_t atCluster = 0, clusterMet = 0; ///< lanes that have arrived at the cluster's barrier; that all have, since
  unsigned index = 0;
  Block *block = nullptr;
  alignas(64) std::byte scratch[8 * kLanes] = {};
  uint32_t tid[3][kLanes] = {};
  std::vector<Group> groups; ///< but that which executes
  std::vector<Copy> copies;
  std::array<uint32_t, kLanes> committed{}; ///< groups of copies
  std::array<uint32_t, kLanes> barrierInput{};
  unsigned failedWaits = 0; ///< for an mbarrier, since it last went on
  std::vector<WarpgroupProduct> products;
  std::vector<Accumulators> accumulators;
  uint32_t committedProducts = 0;
  bool isFenced = false;      ///< wgmma.fence, since accumulators were its own again
  uint64_t warpgroupWork = 0; ///< what it has done as a part of its warpgroup: equal for all four warps
  SmallProduct *small = nullptr;
  std::vector<TensorLoad> tensorLoads;
  uint64_t tensorSeen = 0; ///< commits that had arrived when it last executed tcgen05.fence::after_thread_sync

  /// An operand's place in memory: of a constant if its lowest bit is set.
  std::byte *at(uint32_t place) const { return base[place & 1] + place; }
  template <class T> const T *source(uint32_t place) const { return reinterpret_cast<const T *>(at(place)); }
  template <class T> T *target(uint32_t place) const {
    return reinterpret_cast<T *>(base[0] + place);
  } ///< a constant is none
  uint32_t predicate(uint32_t place) const { return *source<uint32_t>(place); }
};

struct Barrier {
  uint32_t arrived = 0, expected = 0;
  uint32_t count = 0; ///< of true predicates
};
/// Group::barrier of lanes that wait for the cluster, and Instr::sub of a barrier of the cluster.
constexpr int kClusterBarrier = 16;
constexpr uint8_t kArrivesAtCluster = 5, kWaitsForCluster = 6;

struct Block {
  const Program *program = nullptr;
  const Launch *launch = nullptr;
  Memory *memory = nullptr;
  unsigned index[3] = {};
  unsigned threads = 0;
  Region shared, local, params, constants; ///< local: of all threads, one after the other
  uint64_t sharedBegin = 0;
  Span **caches = nullptr;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  std::unordered_map<uint64_t, BarrierObject> barrierObjects; ///< by address in shared memory
  std::vector<TensorCopy> tensorCopies;
  TensorMemory tensor;
  std::span<Block> cluster; ///< it, and those beside it
  uint64_t arrivals = 0;    ///< whatever may let a wait for an mbarrier succeed
  uint64_t clock = 0;
  uint64_t random = 0;

  Span *find(uint64_t address) const;
  bool hasEnded() const {
    return std::ranges::all_of(warps, [](const Warp &warp) { return !warp.live; });
  }
  uint32_t rank() const { return static_cast<uint32_t>(this - cluster.data()); }
  const Region &region(Space space) const;
  /// Where these bytes are for a lane, checked and marked. Throws Stop.
  std::byte *locate(Warp &warp, const Instr &instr, Space space, unsigned lane, uint64_t address, unsigned bytes,
                    bool isRead, bool isWrite);
  [[noreturn]] void stop(const Warp &warp, const Instr &instr, unsigned lane, Fault::Kind kind,
                         const std::string &what) const;
  std::string describe(const Warp &warp, unsigned lane) const; ///< "kernel 'k', block (0, 0, 0), thread (3, 0, 0)"
  std::string describe(const Instr &instr) const;              ///< "'bar.sync 0;' (line 12)"
};

/// Ends a launch.
struct Stop {
  Fault fault;
};

/// Marks bytes of a span: bits [from, to).
void mark(uint64_t *bits, uint64_t from, uint64_t to);
inline void markReads(Span &span, uint64_t from, uint64_t to) {
  if (!span.reads)
    return;
  span.readsFrom = from < span.readsFrom ? from : span.readsFrom;
  span.readsTo = to > span.readsTo ? to : span.readsTo;
  mark(span.reads, from, to);
}
inline void markWrites(Span &span, uint64_t from, uint64_t to) {
  if (!span.writes)
    return;
  span.writesFrom = from < span.writesFrom ? from : span.writesFrom;
  span.writesTo = to > span.writesTo ? to : span.writesTo;
  mark(span.writes, from, to);
}

/// Handlers by the names that Lower.cpp gives to what they do: "add.u32", "ld.global.b32.v4"; of the better of two
/// instruction sets.
Handler findHandler(const std::string &name);
/// Those that are compiled for the least processor from now on, or again the best: to test both.
void useBaseline(bool yes);

/// Handlers that need no vector instructions of the processor.
void addCommonHandlers(std::unordered_map<std::string, Handler> &handlers);
/// What a collective instruction does, for groups of lanes that have met: an instruction and the lanes that are there,
/// of each.
struct Party {
  const Instr *instr = nullptr;
  uint32_t mask = 0;
};
void executeTogether(Warp &warp, std::span<const Party> parties);

/// What asynchronous instructions leave behind when a block has ended (Async.cpp, Warpgroup.cpp). Throws Stop.
void addAsyncHandlers(std::unordered_map<std::string, Handler> &handlers);
void addWarpgroupHandlers(std::unordered_map<std::string, Handler> &handlers);
void endAsync(Block &block);
void endWarpgroups(Block &block);
void addTensorHandlers(std::unordered_map<std::string, Handler> &handlers);
void endTensorMemory(Block &block);
/// Ends the products behind which a commit to this barrier is, for each of which `arrive` is called.
void deliverProducts(Block &block, uint64_t barrier, const std::function<void(const TensorMemory::Commit &)> &arrive);

/// A matrix of 16-bit elements in shared memory, as a descriptor describes it: PTX ISA, "Matrix Descriptor Format" and
/// "Canonical Layouts". Rows are those of the left matrix, or the right one's columns.
struct MatrixDescriptor {
  uint64_t start = 0, leading = 0, stride = 0;
  unsigned span = 16;        ///< of the swizzle, in bytes; 16: none
  bool isTransposed = false; ///< neighbours are along the rows, not along the depth
  /// Where 8 neighbouring elements are: along the depth from (row, depth) on, or if transposed along the rows.
  uint64_t chunk(unsigned row, unsigned depth) const;
  /// Rows of 16, a chunk of 16 bytes at a time; false, and `wrong` is where, if some are not in shared memory.
  bool gather(const Region &shared, unsigned firstRow, unsigned rows, std::vector<std::byte> &bytes,
              uint64_t &wrong) const;
};
/// Element (row, depth) of what gather() gave goes to out[row * rowStep + depth * depthStep].
void expandMatrix(const std::byte *bytes, unsigned rows, bool isTransposed, bool isBfloat, float *out, unsigned rowStep,
                  unsigned depthStep);

/// Sets MXCSR, and gives what it was.
unsigned exchangeControl(unsigned value);
unsigned controlOf(unsigned mode);

/// Executes until all threads of a cluster's blocks have exited. Throws Stop.
void executeCluster(std::span<Block> blocks);

} // namespace tressel::standin::ptx
