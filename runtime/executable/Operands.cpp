#include "Operands.h"

namespace tressel::runtime {

void Operands::layOut(const Schedule &s, uint32_t root) {
  for (std::vector<Patch> &patches : patches_)
    patches.clear();
  pointers_.assign(s.bodies.size() + 2, {});
  moves_.assign(s.bodies.size() + 2, {});
  layOutList(s, root);
}

void Operands::layOutList(const Schedule &s, uint32_t list) {
  const CommandList &commands = listOf(s, list);
  std::vector<void *> &pointers = pointers_[list];
  pointers.assign(commands.operands.size(), nullptr);
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (commands.operands[i].buffer >= s.buffers.size())
      continue; // an entry that no command uses
    const BufferDesc &b = s.buffers[commands.operands[i].buffer];
    patches_[static_cast<size_t>(b.space)].push_back({&pointers[i], b.index, b.offset.number()});
  }
  for (const Command &c : commands.commands) {
    for (uint32_t k = 0; k < numBodies(c.kind); ++k)
      layOutList(s, bodyNumber(c, k));
    if (c.kind != CommandKind::Loop)
      continue;
    const uint32_t numMoving = c.numScalars - 1u, firstMoving = c.firstOperand + c.numOperands - numMoving;
    for (uint32_t m = 0; m < numMoving; ++m)
      collectMoves(s, bodyNumber(c), commands.operands[firstMoving + m].buffer,
                   commands.scalars[c.firstScalar + 1 + m].number(), moves_[bodyNumber(c)]);
  }
}

void Operands::collectMoves(const Schedule &s, uint32_t list, uint32_t buffer, int64_t stride, std::vector<Move> &moves) {
  const CommandList &commands = listOf(s, list);
  for (size_t i = 0; i < commands.operands.size(); ++i)
    if (commands.operands[i].buffer == buffer)
      moves.push_back({&pointers_[list][i], stride});
  for (const Command &c : commands.commands)
    for (uint32_t k = 0; k < numBodies(c.kind); ++k)
      collectMoves(s, bodyNumber(c, k), buffer, stride, moves);
}

void Operands::bind(Space space, uint32_t index, void *begin) {
  for (const Patch &patch : patches_[static_cast<size_t>(space)])
    if (patch.index == index)
      *patch.slot = static_cast<std::byte *>(begin) + patch.offset;
}

} // namespace tressel::runtime
