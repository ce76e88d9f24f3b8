#include "test/support/ScheduleOracle.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tressel::test {

using namespace runtime;

namespace {

struct Unsafe {
  std::string why;
};

/// Which way each choice of a run goes: the odometer over all of them.
class Choices {
public:
  /// One of `ways`, and the next call's the next one.
  int next(int ways) {
    if (at == taken.size())
      taken.push_back({0, ways});
    return taken[at++].first;
  }
  /// To the next path; false if there is none.
  bool advance() {
    for (at = 0; !taken.empty(); taken.pop_back())
      if (++taken.back().first < taken.back().second)
        return true;
    return false;
  }

private:
  std::vector<std::pair<int, int>> taken;
  size_t at = 0;
};

class Run {
public:
  explicit Run(const Schedule &s) : s(s), moved(s.buffers.size(), 0) {}

  /// Bytes of `space` number `index` of call `call` that are there before the run.
  std::map<std::pair<Space, uint32_t>, std::vector<bool>> derived; ///< in: of prepare

  void prepare(Choices &choices) {
    program(s.prepare, none(), {}, choices);
    check();
    for (uint32_t i = 0; i < s.states.size(); ++i)
      if (s.states[i].kind == StateKind::Derived)
        derived[{Space::State, i}] = written[{Space::State, i, 0}];
  }

  void calls(Choices &choices) {
    // Each call follows the one before in every stream; it begins when the one that had its arenas has ended.
    std::vector<int> last(s.streams.size(), -1);
    std::vector<int> ends;
    for (uint32_t k = 0; k <= s.inFlight; ++k) {
      call = k;
      const int begin = node({});
      if (k >= s.inFlight)
        before(begin, ends[k - s.inFlight]);
      std::vector<int> first = last;
      ends.push_back(program(s.step, begin, first, choices));
      last = first;
    }
    check();
    for (uint32_t k = 0; k <= s.inFlight; ++k)
      for (uint32_t i = 0; i < s.outputs.size(); ++i) {
        const auto &bytes = written[{Space::Output, i, k}];
        const auto all = static_cast<size_t>(s.outputs[i].type.bytes());
        if (bytes.size() < all || std::find(bytes.begin(), bytes.end(), false) != bytes.end())
          if (all)
            throw Unsafe{"output " + std::to_string(i) + " is not complete"};
      }
  }

private:
  struct Touch {
    Space space;
    uint32_t index, call;
    int64_t begin, end;
    bool writes;
  };
  static int none() { return -1; }

  int node(std::vector<Touch> touches) {
    nodes.push_back(std::move(touches));
    reach.emplace_back((nodes.size() + 63) / 64, 0);
    return static_cast<int>(nodes.size() - 1);
  }
  /// `other` has ended when `i` begins, and so has all that had ended when `other` began.
  void before(int i, int other) {
    if (other < 0)
      return;
    auto &mine = reach[static_cast<size_t>(i)];
    const auto &theirs = reach[static_cast<size_t>(other)];
    for (size_t w = 0; w < theirs.size(); ++w)
      mine[w] |= theirs[w];
    mine[static_cast<size_t>(other) / 64] |= uint64_t(1) << (other % 64);
  }
  bool isBefore(size_t other, size_t i) const { return reach[i][other / 64] >> (other % 64) & 1; }

  Touch touch(const Operand &o) const {
    const BufferDesc &b = s.buffers[o.buffer];
    // What is shared by calls in flight, and what each has for itself.
    const uint32_t which = b.space == Space::Arena                               ? call % s.inFlight
                           : b.space == Space::Input || b.space == Space::Output ? call
                                                                                 : 0;
    const int64_t begin = (b.offset + moved[o.buffer]).number();
    return {b.space, b.index, which, begin, (begin + b.bytes).number(), o.access != Access::Read};
  }
  std::vector<Touch> touches(const CommandList &p, const Command &c, size_t count) const {
    std::vector<Touch> list;
    for (size_t k = 0; k < count; ++k) {
      const Operand &o = p.operands[c.firstOperand + k];
      if (o.access == Access::ReadWrite) {
        list.push_back(touch({o.buffer, Access::Read}));
        list.push_back(touch({o.buffer, Access::Write}));
      } else {
        list.push_back(touch(o));
      }
    }
    return list;
  }

  /// Writes a program out. `last` is the latest node of each stream before it, and in the end. Returns the node of its
  /// end.
  int program(const CommandList &p, int begin, std::vector<int> &&last, Choices &choices) {
    return program(p, begin, last, choices);
  }
  int program(const CommandList &p, int begin, std::vector<int> &last, Choices &choices) {
    last.resize(s.streams.size(), none());
    std::vector<int> endOf(p.commands.size(), none());
    for (size_t i = 0; i < p.commands.size(); ++i) {
      const Command &c = p.commands[i];
      const size_t numMoving = c.kind == CommandKind::Loop ? c.numScalars - 1u : 0;
      const bool isBodies = hasBodies(c.kind);
      // A while reads its flag later.
      int now = node(isBodies && c.kind != CommandKind::Branch ? std::vector<Touch>() : touches(p, c, c.numOperands));
      before(now, begin);
      before(now, last[c.stream]);
      for (uint32_t w = 0; w < c.numWaits; ++w)
        before(now, endOf[p.waits[c.firstWait + w].command]);
      auto follow = [&](std::vector<Touch> own) {
        const int next = node(std::move(own));
        before(next, now);
        now = next;
      };
      auto body = [&](uint32_t k) { now = program(s.bodies[c.body + k], now, {}, choices); };
      switch (c.kind) {
      case CommandKind::Branch:
        body(static_cast<uint32_t>(choices.next(2)));
        break;
      case CommandKind::While:
        for (int left = choices.next(3);; --left) {
          body(0);
          follow(touches(p, c, 1));
          if (left == 0)
            break;
          body(1);
        }
        break;
      case CommandKind::Loop: {
        const int64_t trips = p.scalars[c.firstScalar].number();
        const size_t numIndex = c.numOperands - numMoving;
        auto move = [&](int64_t times) {
          for (size_t m = 0; m < numMoving; ++m)
            moved[p.operands[c.firstOperand + numIndex + m].buffer] +=
                (times * p.scalars[c.firstScalar + 1 + m]).number();
        };
        for (int64_t trip = 0; trip < trips; ++trip) {
          follow(touches(p, c, numIndex));
          body(0);
          move(1);
        }
        move(-trips);
        break;
      }
      default:
        break;
      }
      if (isBodies)
        follow({});
      endOf[i] = last[c.stream] = now;
    }
    const int end = node({});
    before(end, begin);
    for (int each : endOf)
      before(end, each);
    return end;
  }

  std::vector<bool> &writtenIn(const Touch &t) {
    auto [it, isNew] = written.try_emplace({t.space, t.index, t.call});
    if (!isNew)
      return it->second;
    int64_t bytes = 0;
    bool initial = false;
    switch (t.space) {
    case Space::Arena:
      bytes = s.arenas[t.index].bytes.number();
      break;
    case Space::Input:
      bytes = s.inputs[t.index].type.bytes(), initial = true;
      break;
    case Space::Output:
      bytes = s.outputs[t.index].type.bytes();
      break;
    case Space::Constant:
      bytes = s.constants[t.index].bytes, initial = true;
      break;
    case Space::State:
      bytes = s.states[t.index].type.bytes(), initial = s.states[t.index].kind != StateKind::Derived;
      if (auto known = derived.find({t.space, t.index}); known != derived.end())
        return it->second = known->second;
    }
    it->second.assign(static_cast<size_t>(bytes), initial);
    return it->second;
  }

  void check() {
    auto overlap = [](const Touch &a, const Touch &b) {
      return a.space == b.space && a.index == b.index && a.call == b.call && a.begin < b.end && b.begin < a.end;
    };
    std::map<std::tuple<Space, uint32_t, uint32_t>, std::vector<std::pair<size_t, Touch>>> earlier;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const Touch &a : nodes[i])
        for (const auto &[j, b] : earlier[{a.space, a.index, a.call}])
          if ((a.writes || b.writes) && overlap(a, b) && !isBefore(j, i))
            throw Unsafe{"two commands meet"};
      for (const Touch &a : nodes[i])
        earlier[{a.space, a.index, a.call}].emplace_back(i, a);
      for (size_t a = 0; a < nodes[i].size(); ++a)
        for (size_t b = 0; b < nodes[i].size(); ++b) {
          const Touch &x = nodes[i][a], &y = nodes[i][b];
          if (a != b && x.writes && overlap(x, y) && (y.writes || x.begin != y.begin || x.end != y.end))
            throw Unsafe{"a command's operands overlap"};
        }
      for (const Touch &t : nodes[i]) {
        const auto &bytes = writtenIn(t);
        if (t.begin == t.end)
          continue;
        if (t.begin < 0 || t.end > static_cast<int64_t>(bytes.size()))
          throw Unsafe{"bytes outside"};
        for (int64_t k = t.begin; k < t.end && !t.writes; ++k)
          if (!bytes[static_cast<size_t>(k)])
            throw Unsafe{"bytes that nobody has written"};
      }
      for (const Touch &t : nodes[i]) {
        auto &bytes = writtenIn(t);
        for (int64_t k = t.begin; k < t.end && t.writes; ++k)
          bytes[static_cast<size_t>(k)] = true;
      }
    }
  }

  const Schedule &s;
  std::vector<int64_t> moved;
  uint32_t call = 0;
  std::vector<std::vector<Touch>> nodes;
  std::vector<std::vector<uint64_t>> reach; ///< by node, a bit per earlier one
  std::map<std::tuple<Space, uint32_t, uint32_t>, std::vector<bool>> written;
};

DeviceRef deviceOf(const Schedule &s, const BufferDesc &b) {
  return b.space == Space::Arena    ? s.arenas[b.index].device
         : b.space == Space::State  ? s.states[b.index].home.device
         : b.space == Space::Input  ? s.inputs[b.index].home.device
         : b.space == Space::Output ? s.outputs[b.index].home.device
                                    : DeviceRef{};
}

/// What can be said without an order.
void checkForm(const Schedule &s, const CommandList &p, bool prepare) {
  for (const Command &c : p.commands)
    for (uint32_t k = 0; k < c.numOperands; ++k) {
      const Operand &o = p.operands[c.firstOperand + k];
      const BufferDesc &b = s.buffers[o.buffer];
      const bool writes = o.access != Access::Read;
      if (writes && (b.space == Space::Input || b.space == Space::Constant))
        throw Unsafe{"writes what is only read"};
      if (b.space == Space::State && writes &&
          s.states[b.index].kind != (prepare ? StateKind::Derived : StateKind::Mutable))
        throw Unsafe{"writes a state at the wrong time"};
      if (c.kind != CommandKind::Copy && !(deviceOf(s, b) == s.streams[c.stream].device))
        throw Unsafe{"touches another device's memory"};
    }
  for (const Command &c : p.commands)
    if (c.kind == CommandKind::Copy &&
        s.buffers[p.operands[c.firstOperand].buffer].bytes != s.buffers[p.operands[c.firstOperand + 1].buffer].bytes)
      throw Unsafe{"copies to another number of bytes"};
  // Members issue their collectives in one order.
  for (const CollectiveDesc &desc : s.collectives) {
    std::vector<std::vector<uint32_t>> issued;
    for (uint32_t stream : desc.members) {
      issued.emplace_back();
      for (const Command &c : p.commands)
        if (c.kind == CommandKind::Collective && c.stream == stream && s.collectives[c.kernel].members == desc.members)
          issued.back().push_back(c.kernel);
    }
    for (const auto &each : issued)
      if (each != issued[0])
        throw Unsafe{"members issue collectives in different orders"};
  }
}

void checkBuffers(const Schedule &s) {
  for (const BufferDesc &b : s.buffers)
    if (b.offset < 0 || b.type.bytes() > b.bytes ||
        (b.space == Space::Arena && (b.offset % 64 || b.offset + b.bytes > s.arenas[b.index].bytes)))
      throw Unsafe{"a buffer that has no room"};
}

} // namespace

std::optional<std::string> judge(const Schedule &s, size_t mostPaths) {
  try {
    checkBuffers(s);
    checkForm(s, s.prepare, true);
    checkForm(s, s.step, false);
    for (const CommandList &body : s.bodies)
      checkForm(s, body, false);
    size_t paths = 0;
    std::map<std::pair<Space, uint32_t>, std::vector<bool>> derived;
    Choices choices;
    do {
      Run run(s);
      run.prepare(choices);
      for (auto &[state, bytes] : run.derived) {
        bytes.resize(static_cast<size_t>(s.states[state.second].type.bytes()), false);
        auto [it, isNew] = derived.emplace(state, bytes);
        for (size_t i = 0; !isNew && i < bytes.size(); ++i)
          it->second[i] = it->second[i] && bytes[i];
      }
      if (++paths > mostPaths)
        return std::nullopt;
    } while (choices.advance());
    choices = {};
    do {
      Run run(s);
      run.derived = derived;
      run.calls(choices);
      if (++paths > mostPaths)
        return std::nullopt;
    } while (choices.advance());
  } catch (const Unsafe &found) {
    return found.why;
  }
  return "";
}

} // namespace tressel::test
