#include "test/support/InterleavingJudge.h"

#include <map>
#include <unordered_set>
#include <vector>

namespace tressel::test {

using namespace runtime;

namespace {

constexpr size_t kMostCommands = 24;

/// Bytes of one memory: an arena, an input, ...
struct Memory {
  std::vector<bool> isThere; ///< before the step
  bool isOutput = false;
};

class Search {
public:
  Search(const Schedule &s, size_t mostStates) : s(s), list(s.step), mostStates(mostStates) {}

  std::optional<std::string> run() {
    if (!s.prepare.commands.empty() || !s.bodies.empty() || s.inFlight != 1 || list.commands.size() > kMostCommands)
      return std::nullopt;
    for (const StateDesc &state : s.states)
      if (state.kind == StateKind::Derived)
        return std::nullopt;
    if (!readCommands())
      return std::nullopt;
    if (!problem.empty())
      return problem;
    visit(0, 0);
    if (isTooMuch)
      return std::nullopt;
    return problem;
  }

private:
  struct Touch {
    size_t memory;
    int64_t begin, end;
    bool writes;
    bool meets(const Touch &other) const { return memory == other.memory && begin < other.end && other.begin < end; }
  };

  size_t memoryOf(Space space, uint32_t index) {
    const auto [at, isNew] = known.try_emplace({space, index}, memories.size());
    if (!isNew)
      return at->second;
    int64_t bytes = 0;
    switch (space) {
    case Space::Arena:
      bytes = s.arenas[index].bytes.number();
      break;
    case Space::Input:
      bytes = s.inputs[index].type.bytes();
      break;
    case Space::Output:
      bytes = s.outputs[index].type.bytes();
      break;
    case Space::Constant:
      bytes = s.constants[index].bytes;
      break;
    case Space::State:
      bytes = s.states[index].type.bytes();
      break;
    }
    const bool isThere = space == Space::Input || space == Space::Constant || space == Space::State;
    memories.push_back({std::vector<bool>(static_cast<size_t>(bytes), isThere), space == Space::Output});
    return at->second;
  }

  bool readCommands() {
    for (uint32_t i = 0; i < s.outputs.size(); ++i)
      memoryOf(Space::Output, i);
    std::map<uint32_t, size_t> last; // of each stream
    for (size_t i = 0; i < list.commands.size(); ++i) {
      const Command &c = list.commands[i];
      if (c.kind == CommandKind::Collective)
        return false;
      std::vector<Touch> &own = touches.emplace_back();
      for (uint32_t k = 0; k < c.numOperands; ++k) {
        const Operand &operand = list.operands[c.firstOperand + k];
        const BufferDesc &buffer = s.buffers[operand.buffer];
        const size_t memory = memoryOf(buffer.space, buffer.index);
        const int64_t begin = buffer.offset.number(), end = begin + buffer.bytes.number();
        if (begin < 0 || end > static_cast<int64_t>(memories[memory].isThere.size()))
          problem = "command " + std::to_string(i) + " reaches beyond its memory";
        for (bool writes : {false, true})
          if (operand.access == Access::ReadWrite || (operand.access == Access::Write) == writes)
            own.push_back({memory, begin, end, writes});
      }
      for (size_t a = 0; a < own.size(); ++a)
        for (size_t b = 0; b < own.size(); ++b) {
          const bool isSame = own[a].begin == own[b].begin && own[a].end == own[b].end;
          if (a != b && own[a].writes && own[a].meets(own[b]) && (own[b].writes || !isSame))
            problem = "command " + std::to_string(i) + " overwrites what it touches itself";
        }
      uint32_t &needs = before.emplace_back(0);
      if (const auto at = last.find(c.stream); at != last.end())
        needs |= uint32_t(1) << at->second;
      for (uint32_t w = 0; w < c.numWaits; ++w)
        needs |= uint32_t(1) << list.waits[c.firstWait + w].command;
      last[c.stream] = i;
    }
    return true;
  }

  /// Bytes of a memory that ended commands have written, or that were there.
  bool isWritten(const Touch &touch, uint32_t ended) const {
    std::vector<bool> there(memories[touch.memory].isThere);
    for (size_t i = 0; i < touches.size(); ++i)
      if (ended >> i & 1)
        for (const Touch &other : touches[i])
          if (other.writes && other.memory == touch.memory)
            for (int64_t at = other.begin; at < other.end; ++at)
              there[static_cast<size_t>(at)] = true;
    for (int64_t at = touch.begin; at < touch.end; ++at)
      if (!there[static_cast<size_t>(at)])
        return false;
    return true;
  }

  void visit(uint32_t begun, uint32_t ended) {
    if (!problem.empty() || isTooMuch || !seen.insert(uint64_t(begun) << 32 | ended).second)
      return;
    if (seen.size() > mostStates) {
      isTooMuch = true;
      return;
    }
    const size_t n = touches.size();
    for (size_t i = 0; i < n && problem.empty(); ++i) {
      if (begun >> i & 1) {
        if (!(ended >> i & 1)) {
          way.push_back("end " + std::to_string(i));
          visit(begun, ended | uint32_t(1) << i);
          way.pop_back();
        }
        continue;
      }
      if ((before[i] & ~ended) != 0)
        continue;
      way.push_back("begin " + std::to_string(i));
      begin(i, begun, ended);
      if (problem.empty())
        visit(begun | uint32_t(1) << i, ended);
      way.pop_back();
    }
    if (ended == (n == 32 ? ~0u : (uint32_t(1) << n) - 1) && problem.empty())
      for (size_t m = 0; m < memories.size(); ++m)
        if (memories[m].isOutput && !isWritten({m, 0, static_cast<int64_t>(memories[m].isThere.size()), false}, ended))
          problem = "an output is not complete";
  }

  void begin(size_t i, uint32_t begun, uint32_t ended) {
    for (const Touch &own : touches[i]) {
      for (size_t k = 0; k < touches.size(); ++k)
        if (begun >> k & 1 && !(ended >> k & 1))
          for (const Touch &other : touches[k])
            if (own.meets(other) && (own.writes || other.writes))
              return fail("commands " + std::to_string(k) + " and " + std::to_string(i) + " are at work on the same bytes");
      if (!own.writes && !isWritten(own, ended))
        return fail("command " + std::to_string(i) + " reads bytes that are not written");
    }
  }
  void fail(const std::string &why) {
    problem = why + ":";
    for (const std::string &each : way)
      problem += " " + each + ",";
    problem.pop_back();
  }

  const Schedule &s;
  const CommandList &list;
  size_t mostStates;
  std::map<std::pair<Space, uint32_t>, size_t> known;
  std::vector<Memory> memories;
  std::vector<std::vector<Touch>> touches; ///< by command
  std::vector<uint32_t> before;            ///< by command: what has to have ended, as bits
  std::unordered_set<uint64_t> seen;
  std::vector<std::string> way;
  std::string problem;
  bool isTooMuch = false;
};

} // namespace

std::optional<std::string> judgeInterleavings(const Schedule &schedule, size_t mostStates) {
  return Search(schedule, mostStates).run();
}

} // namespace tressel::test
