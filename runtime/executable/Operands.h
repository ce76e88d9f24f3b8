// Where the operands of a program's commands are, for one set of sizes: laid out once, so that a call changes only the pointers to what the
// caller gives it.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace tressel::runtime {

/// Command lists by number: 0 prepare, 1 step, 2 and on the bodies.
inline const CommandList &listOf(const Schedule &s, uint32_t list) {
  return list == 0 ? s.prepare : list == 1 ? s.step : s.bodies[list - 2];
}
constexpr uint32_t bodyNumber(const Command &c, uint32_t k = 0) { return 2 + c.body + k; }
/// A loop's body wants the number of the iteration, in its first operand.
constexpr bool hasIndex(const Command &loop) { return loop.numOperands == loop.numScalars; }

class Operands {
public:
  /// For prepare (0) or step (1) and the bodies that it runs, of a schedule of numbers, which must outlive this. All pointers are null.
  void layOut(const Schedule &s, uint32_t root);
  /// One pointer for each operand of the list, in its order. They stay where they are until the next `layOut`.
  std::span<void *const> of(uint32_t list) const { return pointers_[list]; }
  std::span<void *const> of(uint32_t list, const Command &c) const {
    return std::span<void *const>(pointers_[list]).subspan(c.firstOperand, c.numOperands);
  }

  /// Where the inputs, outputs, states, constants or arenas begin, by their numbers.
  void bind(Space space, std::span<void *const> begins) {
    for (const Patch &patch : patches_[static_cast<size_t>(space)])
      *patch.slot = static_cast<std::byte *>(begins[patch.index]) + patch.offset;
  }
  /// One of them.
  void bind(Space space, uint32_t index, void *begin);

  /// Moves what a loop moves by so many iterations, in its body (that list) and in bodies of that.
  void move(uint32_t body, int64_t iterations) {
    for (const Move &move : moves_[body])
      *move.slot = static_cast<std::byte *>(*move.slot) + iterations * move.stride;
  }

  /// By how much a loop moves a pointer of `of` in an iteration: 0 where it stays. `body` is the loop's.
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
  std::vector<std::vector<Move>> moves_; ///< by list that is a loop's body
};

} // namespace tressel::runtime
