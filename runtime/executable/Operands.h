// Pointers to the operands of a program's commands, for one set of sizes: laid out once, so that a call only rebinds
// its inputs and outputs.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace tressel::runtime {

/// A command list by number: 0 is prepare, 1 the step, 2 and on the bodies.
inline const CommandList &listOf(const Schedule &s, uint32_t list) {
  return list == 0 ? s.prepare : list == 1 ? s.step : s.bodies[list - 2];
}
constexpr uint32_t bodyNumber(const Command &c, uint32_t k = 0) { return 2 + c.body + k; }
/// Whether the loop's body takes the number of the iteration, as its first operand.
constexpr bool hasIndex(const Command &loop) { return loop.numOperands == loop.numScalars; }

class Operands {
public:
  /// Lays out prepare (0) or the step (1) with the bodies that it runs, of a schedule of numbers, which must outlive
  /// this. All pointers are null.
  void layOut(const Schedule &s, uint32_t root);
  /// One pointer per operand of the list, in order. Their addresses are stable until the next `layOut`.
  std::span<void *const> of(uint32_t list) const { return pointers_[list]; }
  std::span<void *const> of(uint32_t list, const Command &c) const {
    return std::span<void *const>(pointers_[list]).subspan(c.firstOperand, c.numOperands);
  }

  /// Sets the addresses of all inputs, outputs, states, constants or arenas, by number.
  void bind(Space space, std::span<void *const> begins) {
    for (const Patch &patch : patches_[static_cast<size_t>(space)])
      *patch.slot = static_cast<std::byte *>(begins[patch.index]) + patch.offset;
  }
  /// Sets the address of one of them.
  void bind(Space space, uint32_t index, void *begin);

  /// Advances the operands that a loop moves by `iterations`, in its body (this list) and in bodies nested in it.
  void move(uint32_t body, int64_t iterations) {
    for (const Move &move : moves_[body])
      *move.slot = static_cast<std::byte *>(*move.slot) + iterations * move.stride;
  }

  /// Bytes by which a loop advances a pointer of `of` per iteration: 0 if it does not. `body` is the loop's.
  int64_t strideOf(uint32_t body, void *const *pointer) const {
    for (const Move &move : moves_[body])
      if (move.slot == pointer)
        return move.stride;
    return 0;
  }

private:
  struct Patch {
    void **slot;
    uint32_t index;
    int64_t offset;
  };
  struct Move {
    void **slot;
    int64_t stride;
  };
  void layOutList(const Schedule &s, uint32_t list);
  void collectMoves(const Schedule &s, uint32_t list, uint32_t buffer, int64_t stride, std::vector<Move> &moves);

  std::vector<std::vector<void *>> pointers_; ///< by list
  std::array<std::vector<Patch>, kNumSpaces> patches_;
  std::vector<std::vector<Move>> moves_; ///< by list, for bodies of loops
};

} // namespace tressel::runtime
