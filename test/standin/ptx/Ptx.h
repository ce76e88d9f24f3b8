// PTX, interpreted: the text that the driver would be given runs on the processor, as it stands.
//
//   text ──Module::parse──> Module ──find──> Kernel ──run(launch, memory)──> what it wrote, or a Fault
//
// The subset is what Tressel's back end emits, by the meaning that NVIDIA's "PTX ISA" gives it. What is not known, is
// refused when the text is parsed: an error that names the instruction and its line. Results are those of a card bit
// for bit where the ISA defines them (.rn arithmetic, integers, conversions); approximations (ex2.approx and the like)
// are computed as exactly as the host can, which a card does not.
//
// Blocks of a cluster take turns; all others run one after the other.
//
// Threads of a warp run together while they are at the same instruction, and apart where they are not (independent
// thread scheduling): of those that can go on, the ones with the lowest place in the text go first, so they meet again
// where branches join. Warps of a block take turns in an order that a seed chooses, and so do blocks. An instruction
// that names threads (bar.sync, bar.warp.sync, shfl.sync, vote.sync, mma.sync...) waits for all of them; when nothing
// can go on, the launch fails and says which threads wait where.
//
// As late as the ISA allows: the bytes of cp.async arrive when they are waited for, not before; those of
// cp.async.bulk.tensor when something waits for their mbarrier's phase, and until then their place holds no numbers;
// the sums of wgmma are in their registers behind wgmma.wait_group, and no numbers before. As unforgiving: shared
// memory starts as 0xFF bytes (a NaN in every floating-point type); an address that is not a multiple of the access's
// size is a fault, and so is one outside of the memory there is.
//
// Not here: races among the threads of a launch, which codegen/cuda/emulate looks for; time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::standin::ptx {

/// The text is not PTX, or has an instruction that is not interpreted: "line 12: 'tcgen05.cp...' is not interpreted".
class ParseError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Bytes of global memory that accesses may touch, [begin, end) in a kernel's addresses. The interpreter marks what it touches: a bit for each byte.
struct Span {
  uint64_t begin = 0, end = 0;
  std::byte *host = nullptr;         ///< where the byte at `begin` is in this process
  uint64_t *reads = nullptr;         ///< bit i is byte begin + i. Null: nothing is marked
  uint64_t *writes = nullptr;        ///< atomic operations count as writes
  uint64_t readsFrom = UINT64_MAX, readsTo = 0;   ///< offsets between which bits of `reads` may have been set, to be widened
  uint64_t writesFrom = UINT64_MAX, writesTo = 0; ///< and of `writes`
  bool isReadOnly = false;           ///< a write is a fault
};
/// What a kernel's addresses mean.
class Memory {
public:
  virtual ~Memory() = default;
  /// The span that has this address, null where nothing is. It stays as long as the launch.
  virtual Span *find(uint64_t address) = 0;
};

struct Launch {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned cluster = 1; ///< neighbouring blocks along x that are one
  unsigned dynamicSharedBytes = 0;
  std::span<const std::byte> params; ///< laid out as Kernel::params says
  uint64_t seed = 0;                 ///< of the order of blocks and warps; 0: ascending
};

struct Fault {
  enum class Kind { IllegalAddress, Misaligned, Trap, Hang } kind = Kind::IllegalAddress;
  std::string message; ///< the kernel, block and thread, the instruction with its line, the address
};

struct Param {
  std::string name;
  uint32_t offset = 0, bytes = 0, align = 0;
};

class Kernel {
public:
  virtual ~Kernel() = default;
  std::string name;
  std::vector<Param> params;
  uint32_t paramBytes = 0;
  uint32_t staticSharedBytes = 0;
  unsigned maxThreads = 1024; ///< of a block: .maxntid, .reqntid
  unsigned requiredThreads[3] = {0, 0, 0}; ///< .reqntid, 0: none
  /// Runs the whole launch in the calling thread. None: it has ended without fault; else what it wrote before stays written.
  virtual std::optional<Fault> run(const Launch &launch, Memory &memory) const = 0;
};

/// Immutable once made; kernels of it can run in several threads at once.
class Module {
public:
  /// Throws ParseError.
  static std::shared_ptr<const Module> parse(std::string_view text);
  const Kernel *find(std::string_view name) const; ///< null: it has none of this name
  const std::vector<std::unique_ptr<Kernel>> &kernels() const { return kernels_; }
  int target = 0;  ///< 90 for .target sm_90
  bool isArchitectureSpecific = false; ///< sm_90a: for that architecture alone
  int version = 0; ///< 80 for .version 8.0

private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

} // namespace tressel::standin::ptx
