#include "test/support/ScheduleMutations.h"

#include "test/support/ScheduleOracle.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tressel::test {

using namespace runtime;

const char *nameOf(Mutation kind) {
  static constexpr const char *names[kNumMutations] = {"removed wait", "swapped collectives", "shortened arena",
                                                       "shortened slot", "moved slot"};
  return names[static_cast<int>(kind)];
}

/// "add at model.cpp:3 on gpu0".
static std::string describe(const Schedule &s, const Command &c) {
  const Location &where = s.locations[c.loc];
  return where.op + (where.file.empty() ? "" : " at " + where.file + ":" + std::to_string(where.line)) + " on " +
         nameOf(s.streams[c.stream].device);
}

void forEachMutation(const Schedule &schedule,
                     const std::function<void(Mutation, const std::string &, const Schedule &)> &fn) {
  Schedule s = schedule; // each mistake is made in it and undone
  auto each = [&](const std::string &name, CommandList &p) {
    for (size_t i = 0; i < p.commands.size(); ++i) {
      Command &c = p.commands[i];
      for (uint16_t w = 0; w < c.numWaits; ++w) {
        // The wait goes behind those that the command keeps.
        Wait &gone = p.waits[c.firstWait + w], &last = p.waits[c.firstWait + c.numWaits - 1u];
        const std::string ends = describe(s, c) + ", which waits for " + describe(s, p.commands[gone.command]);
        std::swap(gone, last);
        --c.numWaits;
        fn(Mutation::RemovedWait,
           name + " command " + std::to_string(i) + " wait " + std::to_string(w) + " (" + ends + ")", s);
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
  auto mark = [&](const CommandList &p) {
    for (const Command &c : p.commands)
      for (uint32_t k = 0; k < c.numOperands; ++k)
        used[p.operands[c.firstOperand + k].buffer] = true;
  };
  mark(s.prepare), mark(s.step);
  for (const CommandList &body : s.bodies)
    mark(body);
  for (uint32_t a = 0; a < s.arenas.size(); ++a) {
    int64_t end = 0;
    for (size_t i = 0; i < s.buffers.size(); ++i)
      if (used[i] && s.buffers[i].space == Space::Arena && s.buffers[i].index == a)
        end = std::max(end, (s.buffers[i].offset + s.buffers[i].bytes).number());
    if (end == 0)
      continue;
    const int64_t bytes = s.arenas[a].bytes.number();
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
    b.bytes -= 1;
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

void MutationTally::add(const MutationTally &other) {
  schedules += other.schedules, commands += other.commands, judged += other.judged;
  for (int k = 0; k < kNumMutations; ++k)
    made[k] += other.made[k], rejected[k] += other.rejected[k];
}

std::string MutationTally::text() const {
  std::string line = std::to_string(schedules) + " schedules of " + std::to_string(commands) +
                     " commands; mistakes refused of those made:";
  for (int k = 0; k < kNumMutations; ++k)
    line += std::string(k ? ", " : " ") + nameOf(Mutation(k)) + " " + std::to_string(rejected[k]) + " of " +
            std::to_string(made[k]);
  return line + " (harmless as the oracle says: " + std::to_string(judged) + ")";
}

std::string tryMutations(const Schedule &s, MutationTally &tally, std::span<const Schedule> otherSizes) {
  auto verdict = [](const Schedule &each) {
    const auto found = verifySchedule(each, 1);
    return found.empty() ? "" : found[0].message;
  };
  ++tally.schedules;
  tally.commands += s.prepare.commands.size() + s.step.commands.size();
  for (const CommandList &body : s.bodies)
    tally.commands += body.commands.size();
  if (const std::string wrong = verdict(s); !wrong.empty())
    return "the schedule is refused: " + wrong;
  // The oracle is slow: it looks at all pairs of commands, and at every byte.
  constexpr size_t kJudged = 3, kJudgedCommands = 200;
  constexpr int64_t kJudgedBytes = 100'000;
  int64_t bytes = 0;
  for (const BufferDesc &b : s.buffers)
    bytes += b.bytes.number();
  const bool isSmall = s.step.commands.size() <= kJudgedCommands && bytes <= kJudgedBytes;
  size_t judged = 0;
  std::string problem;
  std::set<std::string> unused; // waits
  forEachMutation(s, [&](Mutation kind, const std::string &where, const Schedule &mutant) {
    ++tally.made[static_cast<size_t>(kind)];
    if (!verdict(mutant).empty()) {
      ++tally.rejected[static_cast<size_t>(kind)];
    } else if (kind == Mutation::RemovedWait) {
      unused.insert(where);
    } else if (kind != Mutation::MovedSlot) {
      if (problem.empty())
        problem = std::string(nameOf(kind)) + " survives: " + where;
    } else if (isSmall && judged < kJudged) {
      ++judged;
      const auto found = judge(mutant, 60);
      if (found && !found->empty() && problem.empty())
        problem = std::string(nameOf(kind)) + " survives: " + where + ": " + *found;
      tally.judged += found && found->empty();
    }
  });
  for (const Schedule &other : otherSizes)
    if (!unused.empty())
      forEachMutation(other, [&](Mutation kind, const std::string &where, const Schedule &mutant) {
        if (kind == Mutation::RemovedWait && unused.contains(where) && !verdict(mutant).empty())
          unused.erase(where);
      });
  if (problem.empty() && !unused.empty())
    problem = "removed wait survives: " + *unused.begin();
  return problem;
}

} // namespace tressel::test
