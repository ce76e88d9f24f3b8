#include "Producers.h"

#include <algorithm>
#include <map>

namespace tressel::runtime {
namespace {

class Producers {
public:
  Producers(const Schedule &schedule, const CommandList &list) : s(schedule), p(list), moved(s.buffers.size(), 0) {}

  std::vector<std::vector<uint32_t>> run() {
    std::vector<std::vector<uint32_t>> producers(p.commands.size());
    for (uint32_t i = 0; i < p.commands.size(); ++i) {
      visit(p, i, false, [&](const BufferDesc &b, int64_t bytes) { read(b, bytes, producers[i]); });
      visit(p, i, true, [&](const BufferDesc &b, int64_t bytes) { write(b, bytes, i); });
      std::ranges::sort(producers[i]);
      producers[i].erase(std::unique(producers[i].begin(), producers[i].end()), producers[i].end());
    }
    return producers;
  }

private:
  struct Piece {
    int64_t end;
    uint32_t writer;
  };
  using Written = std::map<int64_t, Piece>;
  Written &spaceOf(const BufferDesc &b) { return spaces[{b.space, b.index}]; }

  /// Calls fn(buffer, bytes) for all bytes that the command reads, or writes; for a buffer that loops move, the bytes
  /// of all iterations.
  template <typename Fn> void visit(const CommandList &list, size_t i, bool writes, const Fn &fn) {
    const Command &c = list.commands[i];
    const Operand *operands = list.operands.data() + c.firstOperand;
    const uint32_t numMoving = c.kind == CommandKind::Loop ? c.numScalars - 1u : 0, own = c.numOperands - numMoving;
    for (uint32_t k = 0; k < own; ++k)
      if (writes ? operands[k].access != Access::Read : operands[k].access != Access::Write)
        fn(s.buffers[operands[k].buffer], s.buffers[operands[k].buffer].bytes.number() + moved[operands[k].buffer]);
    const int64_t trips = c.kind == CommandKind::Loop ? list.scalars[c.firstScalar].number() : 1;
    if (trips == 0)
      return;
    for (uint32_t m = 0; m < numMoving; ++m)
      moved[operands[own + m].buffer] += (trips - 1) * list.scalars[c.firstScalar + 1 + m].number();
    for (uint32_t k = 0; k < numBodies(c.kind); ++k)
      for (size_t inner = 0; inner < s.bodies[c.body + k].commands.size(); ++inner)
        visit(s.bodies[c.body + k], inner, writes, fn);
    for (uint32_t m = 0; m < numMoving; ++m)
      moved[operands[own + m].buffer] -= (trips - 1) * list.scalars[c.firstScalar + 1 + m].number();
  }

  void read(const BufferDesc &b, int64_t bytes, std::vector<uint32_t> &writers) {
    Written &space = spaceOf(b);
    auto it = space.upper_bound(b.offset.number());
    if (it != space.begin())
      --it;
    for (; it != space.end() && it->first < b.offset.number() + bytes; ++it)
      if (it->second.end > b.offset.number())
        writers.push_back(it->second.writer);
  }
  void write(const BufferDesc &b, int64_t bytes, uint32_t writer) {
    if (bytes == 0)
      return;
    Written &space = spaceOf(b);
    const int64_t begin = b.offset.number(), end = begin + bytes;
    auto it = space.upper_bound(begin);
    if (it != space.begin() && std::prev(it)->second.end > begin) {
      --it;
      const Piece old = it->second;
      it->second.end = begin;
      if (old.end > end)
        space.emplace(end, old);
      it = it->first == begin ? space.erase(it) : std::next(it);
    }
    while (it != space.end() && it->first < end) {
      if (it->second.end > end)
        space.emplace(end, it->second);
      it = space.erase(it);
    }
    space.emplace(begin, Piece{end, writer});
  }

  const Schedule &s;
  const CommandList &p;
  std::vector<int64_t> moved; ///< bytes by which the enclosing loops move each buffer
  std::map<std::pair<Space, uint32_t>, Written> spaces;
};

} // namespace

std::vector<std::vector<uint32_t>> producersOf(const Schedule &schedule, const CommandList &list) {
  return Producers(schedule, list).run();
}

} // namespace tressel::runtime
