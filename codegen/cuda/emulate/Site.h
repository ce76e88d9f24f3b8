// The places in a kernel's code that need the emulator: accesses to memory, and instructions that are more than
// arithmetic of one thread.
#pragma once

#include <cstdint>
#include <string>

namespace tressel::codegen::cuda::emulate {

enum class Op : uint8_t {
  // Memory.
  Load,
  Store,
  Atomic,
  // All threads of the block: in[0] is the barrier's number, in[1] a predicate.
  Barrier,
  BarrierCount,
  BarrierAnd,
  BarrierOr,
  ClusterBarrier, // all threads of the cluster
  // A warp together; in[0] is the mask of lanes.
  WarpSync,
  ShuffleIndex, // in[1] value, in[2] lane, in[3] clamp and segment; out[0] value, out[1] whether it was in range
  ShuffleUp,
  ShuffleDown,
  ShuffleXor,
  VoteAll, // in[1] predicate
  VoteAny,
  VoteUniform,
  VoteBallot,
  MatchAny, // in[1], in[2] value
  MatchAll,
  Elect,
  ReduceAdd, // in[1] value
  ReduceMin,
  ReduceMax,
  ReduceUnsignedMin,
  ReduceUnsignedMax,
  ReduceAnd,
  ReduceOr,
  ReduceXor,
  // A whole warp; in[0] is all ones, then the fragments of a, b and c; out: that of d.
  MmaF16, // 16 x 8 x k, products of f16 into f32
  MmaBF16,
  MmaTF32,
  MmaS8,
  LoadMatrix, // in[1], in[2] the address
};

enum class Space : uint8_t { Generic, Global, Shared, Cluster };

struct Site {
  Op op = Op::Load;
  Space space = Space::Generic;
  uint32_t bytes = 0;     ///< of an access; 0: told by the code
  uint32_t alignment = 1; ///< that the access needs
  uint8_t k = 0;          ///< of a matrix product; number of matrices that are loaded
  bool transposed = false;
  bool aligned = false; ///< a barrier that all threads of a warp reach at the same place
  std::string text;     ///< the instruction, for messages
};

} // namespace tressel::codegen::cuda::emulate
