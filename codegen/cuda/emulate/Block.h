// A block of threads at work: who runs, who waits for whom, shared memory.
#pragma once

#include "codegen/cuda/emulate/Fibre.h"
#include "codegen/cuda/emulate/Shadow.h"
#include "codegen/cuda/emulate/Site.h"

#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tressel::codegen::cuda::emulate {

class Block;

enum class State : uint8_t { Ready, AtBarrier, AtWarp, AtCluster, Done };

/// What generated code reads and writes, by offset.
struct Registers {
  uint32_t tid = 0, block = 0, threads = 0, blocks = 0;
  const uint64_t *arguments = nullptr; ///< pointers and scalars of the launch
  char *shared = nullptr;
  uint32_t in[16] = {};
  uint32_t out[8] = {};
};
/// What the code of a GPU thread is called with.
struct Thread : Registers {
  Block *home = nullptr;
  State state = State::Ready;
  std::unique_ptr<Fibre> fibre;
  const Site *site = nullptr; ///< where it waits
  struct Copy {
    char *to;
    const char *from;
    uint32_t bytes, given; ///< given are copied, the rest is 0
    const Site *site;
  };
  std::vector<Copy> copies;       ///< not waited for, in the order of issue
  std::vector<size_t> copyGroups; ///< how many of them were there when each group was committed
  uint32_t warp() const { return tid >> 5; }
  uint32_t lane() const { return tid & 31; }
};

/// A kernel that can run.
struct Code {
  std::string symbol;
  void (*entry)(Thread *) = nullptr;
  int numArguments = 0; ///< the last one is the status
  uint64_t sharedBytes = 0;
  struct Range {
    uint64_t begin, end;
  };
  std::vector<Range> gaps;                                 ///< of shared memory, that belong to no variable
  std::vector<std::pair<uint64_t, std::string>> variables; ///< offset and name
  uint32_t sharedGranule = 16, globalGranule = 16;         ///< of its accesses
  size_t stackBytes = 64 << 10;
  bool flushesSubnormals = true; ///< its instructions of f32 have .ftz
  bool ordersBlocks = false; ///< has fences or atomics that may order what different blocks do
  std::deque<Site> sites;
};

/// A buffer of a launch whose size is known.
struct Buffer {
  char *begin;
  uint64_t bytes;
  int number;
};

/// Runs blocks in the host thread that calls: one at a time, or those of a cluster in turns, each in a Block of its
/// own. Reused for launches of any kernel.
class Block {
public:
  Block() = default;
  ~Block();
  Block(const Block &) = delete;

  struct Launch {
    const Code *code = nullptr;
    std::span<const uint64_t> arguments;
    uint32_t threads = 0;
    uint32_t blocks = 0;
    std::vector<Buffer> buffers; ///< sorted by address; empty: accesses to global memory are not checked
    const void *status = nullptr;
    bool watchGlobal = false; ///< conflicts of accesses to the buffers are looked for
  };
  /// `first` of those of a cluster, which has begun: it counts time for all of them, and watches the buffers.
  void begin(Launch launch, Block *first = nullptr);
  /// Runs a cluster, whose first block has this number. Throws Error.
  static void run(std::span<Block *const> cluster, uint32_t block);

  // Called by the threads, each through enter(): when one fails, the block does not go on.
  void access(Thread &thread, void *address, uint64_t bytes, const Site &site);
  void barrier(Thread &thread, const Site &site);
  void clusterBarrier(Thread &thread, const Site &site);
  /// Where something of its shared memory is in another block's.
  char *placeInPeer(Thread &thread, const void *own, uint32_t rank, const Site &site);
  void warp(Thread &thread, const Site &site);
  void copyAsync(Thread &thread, void *to, const void *from, uint32_t given, const Site &site);
  void commitCopies(Thread &thread);
  void waitForCopies(Thread &thread, uint32_t pendingGroups);
  /// An access that may be one of many, in a loop that waits for another thread: lets the others run.
  void poll(Thread &thread, const Site &site);
  void refuse(Thread &thread, const Site &site) { fail(thread, &site, "executes what is not emulated"); }
  /// Does not return if something failed: the stack of the thread is given up, so nothing may live on it that owns
  /// anything.
  void leaveIfFailed(Thread &thread);

private:
  struct Meeting {
    uint32_t mask, arrived;
    const Site *site;
  };
  struct Warp {
    WarpClock clock;
    std::vector<Meeting> meetings;
  };

  void start(std::span<Block *const> cluster, uint32_t rank, uint32_t block);
  /// Runs what can run; false: nothing could.
  bool advance();
  bool hasEnded() const { return done_ == launch_.threads; }
  void fail(const Thread &thread, const Site *site, const std::string &message);
  void resume(Thread &thread);
  void wait(Thread &thread, State state, const Site &site);
  void ready(Thread &thread);
  void explainStandstill();
  std::string placeOf(const Thread &thread) const;
  uint32_t tick() { return ++first_->clock_; }
  /// The block of the cluster that has it in its shared memory; null: none.
  Block *homeOf(const void *address);
  bool isShared(const void *address) const {
    return address >= shared_ && address < shared_ + launch_.code->sharedBytes;
  }
  void record(Thread &thread, AccessKind kind, char *address, uint64_t bytes, const Site &site);
  static void runThread(void *thread);

  Launch launch_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::unique_ptr<Fibre>> idle_;
  std::vector<uint32_t> ready_; ///< a ring
  size_t readyBegin_ = 0, readyCount_ = 0;
  uint32_t done_ = 0, waitingAtBarrier_ = 0;
  uint32_t block_ = 0;
  uint64_t polls_ = 0; ///< since anything else happened
  char *shared_ = nullptr;
  size_t sharedCapacity_ = 0;
  Shadow sharedShadow_;
  std::vector<Shadow> globalShadows_; ///< one per buffer
  Block *first_ = this;               ///< of the cluster
  std::span<Block *const> cluster_;
  uint32_t rank_ = 0, waitingAtCluster_ = 0; ///< the threads of the cluster are counted by its first block
  uint32_t clock_ = 1;                       ///< of the first block
  uint32_t epoch_ = 1, clusterEpoch_ = 1, blockEpoch_ = 1, launchEpoch_ = 1;
  bool failed_ = false;
  std::string failure_;
};

/// What a warp computes when all lanes of a meeting have arrived: from `in` of its threads to `out`. `mask`: of the
/// lanes.
void computeWarp(const Site &site, std::span<Thread> lanes, uint32_t mask);

/// What generated code calls, by name.
struct Symbol {
  const char *name;
  void *address;
};
std::span<const Symbol> symbols();

} // namespace tressel::codegen::cuda::emulate
