#include "test/support/ScheduleMutations.h"

#include <algorithm>
#include <vector>

namespace tressel::test {

using namespace runtime;

const char *nameOf(Mutation kind) {
  static constexpr const char *names[kNumMutations] = {"removed wait", "swapped collectives", "shortened arena",
                                                       "shortened slot", "moved slot"};
  return names[static_cast<int>(kind)];
}

void forEachMutation(const Schedule &schedule,
                     const std::function<void(Mutation, const std::string &, const Schedule &)> &fn) {
  Schedule s = schedule; // each mistake is made in it and undone
  auto each = [&](const std::string &name, Program &p) {
    for (size_t i = 0; i < p.commands.size(); ++i) {
      Command &c = p.commands[i];
      for (uint16_t w = 0; w < c.numWaits; ++w) {
        // The wait goes behind those that the command keeps.
        Wait &gone = p.waits[c.firstWait + w], &last = p.waits[c.firstWait + c.numWaits - 1u];
        std::swap(gone, last);
        --c.numWaits;
        fn(Mutation::RemovedWait, name + " command " + std::to_string(i) + " wait " + std::to_string(w), s);
        ++c.numWaits;
        std::swap(gone, last);
      }
    }
    for (size_t i = 0; i < p.commands.size(); ++i)
      for (size_t j = i + 1; j < p.commands.size(); ++j) {
        Command &a = p.commands[i], &b = p.commands[j];
        if (a.kind != CommandKind::Collective || b.kind != CommandKind::Collective || a.stream != b.stream ||
            s.collectives[a.kernel].members != s.collectives[b.kernel].members)
          continue;
        auto exchange = [&] {
          std::swap(a.kernel, b.kernel);
          std::swap(a.firstOperand, b.firstOperand);
          std::swap(a.numOperands, b.numOperands);
        };
        exchange();
        fn(Mutation::SwappedCollectives, name + " commands " + std::to_string(i) + " and " + std::to_string(j), s);
        exchange();
      }
  };
  each("prepare", s.prepare);
  each("step", s.step);
  for (size_t i = 0; i < s.bodies.size(); ++i)
    each("body " + std::to_string(i), s.bodies[i]);

  std::vector<bool> used(s.buffers.size(), false); // of what nobody touches every mutant is as good
  auto mark = [&](const Program &p) {
    for (const Command &c : p.commands)
      for (uint32_t k = 0; k < c.numOperands; ++k)
        used[p.operands[c.firstOperand + k].buffer] = true;
  };
  mark(s.prepare), mark(s.step);
  for (const Program &body : s.bodies)
    mark(body);
  for (uint32_t a = 0; a < s.arenas.size(); ++a) {
    int64_t end = 0;
    for (size_t i = 0; i < s.buffers.size(); ++i)
      if (used[i] && s.buffers[i].space == Space::Arena && s.buffers[i].index == a)
        end = std::max(end, s.buffers[i].offset + s.buffers[i].bytes);
    if (end == 0)
      continue;
    const int64_t bytes = s.arenas[a].bytes;
    s.arenas[a].bytes = end - 1;
    fn(Mutation::ShortenedArena, "arena " + std::to_string(a), s);
    s.arenas[a].bytes = bytes;
  }
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    BufferDesc &b = s.buffers[i];
    if (!used[i] || b.bytes == 0)
      continue;
    const std::string name = "buffer " + std::to_string(i);
    const BufferDesc before = b;
    --b.bytes;
    fn(Mutation::ShortenedSlot, name, s);
    b = before;
    if (b.space != Space::Arena)
      continue;
    for (int64_t by : {-64, 64}) {
      b.offset += by;
      fn(Mutation::MovedSlot, name + (by < 0 ? " down" : " up"), s);
      b = before;
    }
  }
}

} // namespace tressel::test
