// The walk. A command is known by its epoch: (stream, position in the stream). A vector clock says, per stream, how
// many of its commands are certainly finished; so "before" is one comparison. Interval maps cut each space into
// segments of bytes with equal history: the last write, and one read epoch per stream since then (a later one in the
// same stream implies the earlier).
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace tressel::runtime {
namespace {

/// Sizes beyond these are not of this world, and keep sums of a few of them from overflowing.
constexpr int64_t kMaxBytes = int64_t(1) << 48;
constexpr size_t kMaxStreams = 256;

struct Epoch {
  uint32_t stream = 0, position = 0;
  uint32_t command = 0, buffer = 0;
};

/// How many commands of each stream are known to be finished.
using Clock = std::vector<uint32_t>;
void join(Clock &clock, const Clock &other) {
  for (size_t i = 0; i < clock.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}
bool before(const Epoch &epoch, const Clock &clock) { return epoch.position < clock[epoch.stream]; }

/// Product of sizes without overflow; nothing if dynamic, negative or beyond kMaxBytes.
std::optional<int64_t> typeBytes(const TensorType &type) {
  if (static_cast<int>(type.dtype) >= kNumDTypes || type.rank() < 0 || type.rank() > kMaxRank)
    return std::nullopt;
  int64_t n = sizeOf(type.dtype);
  bool empty = false;
  for (int64_t d : type.shape) {
    if (d < 0 || d > kMaxBytes)
      return std::nullopt;
    empty |= d == 0;
    if (d && n > kMaxBytes / d)
      n = kMaxBytes + 1; // an empty dimension may still follow
    else if (d)
      n *= d;
  }
  if (empty)
    return 0;
  return n <= kMaxBytes ? std::optional(n) : std::nullopt;
}

const char *nameOf(Space space) {
  constexpr const char *names[] = {"arena", "input", "output", "state", "constant"};
  return names[static_cast<int>(space)];
}

class Verifier {
public:
  Verifier(const Schedule &schedule, size_t limit) : s(schedule), limit(limit) {}

  std::vector<Violation> run() {
    checkTables();
    if (!found.empty())
      return std::move(found); // nothing below is meaningful
    const bool prepareOk = checkProgram(s.prepare, Phase::Prepare);
    const bool stepOk = checkProgram(s.step, Phase::Step);
    spaces.clear();
    if (prepareOk)
      walk(s.prepare, Phase::Prepare);
    if (prepareOk && stepOk)
      walk(s.step, Phase::Step);
    return std::move(found);
  }

private:
  /// Bytes [start of the key, end) with one history.
  struct Segment {
    int64_t end = 0;
    bool written = false;
    bool initial = true;     ///< written before the program began
    bool mixedReads = false; ///< the latest reader reads these bytes through different ranges
    Epoch write;
    std::vector<Epoch> reads; ///< at most one per stream, since the write
  };
  using IntervalMap = std::map<int64_t, Segment>;

  //--- Messages -----------------------------------------------------------------------------------------------------
  bool full() const { return found.size() >= limit; }

  std::string place(const Program &p, Phase phase, int64_t command) const {
    std::string text =
        std::string(phase == Phase::Prepare ? "prepare" : "step") + " command " + std::to_string(command);
    const Command &c = p.commands[static_cast<size_t>(command)];
    if (c.loc < s.locations.size()) {
      const Location &l = s.locations[c.loc];
      if (!l.op.empty() || !l.file.empty())
        text += " (" + l.op + (l.file.empty() ? "" : " at " + l.file + ":" + std::to_string(l.line)) + ")";
    }
    if (c.stream < s.streams.size() && s.streams.size() > 1)
      text += " on stream '" + s.streams[c.stream].name + "'";
    return text;
  }
  std::string describe(uint32_t buffer) const {
    const BufferDesc &b = s.buffers[buffer];
    std::string text = "buffer " + std::to_string(buffer) + " (" + nameOf(b.space) + " " + std::to_string(b.index);
    if (b.space == Space::State)
      text += " '" + s.states[b.index].name + "'";
    if (b.space == Space::Input || b.space == Space::Output)
      text += " '" + (b.space == Space::Input ? s.inputs : s.outputs)[b.index].name + "'";
    return text + ", bytes " + std::to_string(b.offset) + " to " + std::to_string(b.offset + b.bytes) + ")";
  }

  void structure(std::string message) {
    if (!full())
      found.push_back({.message = "schedule: " + std::move(message)});
  }
  void structure(const Program &p, Phase phase, size_t command, const std::string &message) {
    if (!full())
      found.push_back({.phase = phase,
                       .command = static_cast<int64_t>(command),
                       .loc = p.commands[command].loc,
                       .message = place(p, phase, static_cast<int64_t>(command)) + ": " + message});
  }
  void report(ViolationKind kind, const Program &p, Phase phase, const Epoch &now, const Epoch *other,
              const std::string &message) {
    if (full())
      return;
    Violation v{.kind = kind, .phase = phase, .command = now.command, .buffer = now.buffer};
    v.loc = p.commands[now.command].loc;
    if (other) {
      v.otherCommand = other->command;
      v.otherBuffer = other->buffer;
      v.otherLoc = p.commands[other->command].loc;
    }
    v.message = place(p, phase, now.command) + " " + message;
    found.push_back(std::move(v));
  }

  //--- Tables -------------------------------------------------------------------------------------------------------
  void checkTables() {
    auto named = [](const char *table, size_t i) { return std::string(table) + " " + std::to_string(i); };
    if (s.streams.size() > kMaxStreams)
      structure("more than " + std::to_string(kMaxStreams) + " streams");
    for (size_t i = 0; i < s.streams.size(); ++i)
      if (s.streams[i].kind > StreamKind::Lane || s.streams[i].device.kind > DeviceKind::Gpu)
        structure(named("stream", i) + " is of an unknown kind");
    int64_t total = 0;
    for (size_t i = 0; i < s.arenas.size(); ++i) {
      if (s.arenas[i].memory > MemoryKind::Host || s.arenas[i].device.kind > DeviceKind::Gpu)
        structure(named("arena", i) + " is of an unknown kind");
      if (s.arenas[i].bytes < 0 || s.arenas[i].bytes > kMaxBytes || (total += s.arenas[i].bytes) > kMaxBytes) {
        structure(named("arena", i) + " has an impossible size of " + std::to_string(s.arenas[i].bytes) + " bytes");
        return;
      }
    }
    auto checkType = [&](const char *table, size_t i, const TensorType &type) {
      if (!typeBytes(type))
        structure(named(table, i) + " has an impossible type");
    };
    for (size_t i = 0; i < s.inputs.size(); ++i)
      checkType("input", i, s.inputs[i].type);
    for (size_t i = 0; i < s.outputs.size(); ++i)
      checkType("output", i, s.outputs[i].type);
    for (size_t i = 0; i < s.states.size(); ++i) {
      checkType("state", i, s.states[i].type);
      if (s.states[i].kind > StateKind::Derived)
        structure(named("state", i) + " is of an unknown kind");
    }
    for (size_t i = 0; i < s.constants.size(); ++i) {
      const ConstantDesc &c = s.constants[i];
      if (c.offset < 0 || c.offset > kMaxBytes || c.bytes < 0 || c.bytes > kMaxBytes || c.offset % 64)
        structure(named("constant", i) + " has an impossible place");
    }
    std::unordered_map<std::string_view, size_t> symbols;
    for (size_t i = 0; i < s.kernels.size(); ++i) {
      const KernelDesc &k = s.kernels[i];
      if (k.symbol.empty() || k.provider.empty())
        structure(named("kernel", i) + " has no symbol or no provider");
      else if (!symbols.emplace(k.symbol, i).second)
        structure(named("kernel", i) + " has the symbol '" + k.symbol + "' of kernel " +
                  std::to_string(symbols[k.symbol]));
      if (k.range < 0 || k.range > kMaxBytes || k.grain < 1 || k.scratchBytes < 0 || k.scratchBytes > kMaxBytes)
        structure(named("kernel", i) + " '" + k.symbol + "' has an impossible range, grain or scratch size");
    }
    for (size_t i = 0; i < s.buffers.size() && !full(); ++i)
      checkBuffer(i);
  }

  /// Bytes of the space that the buffer lies in; nothing if there is no such space.
  std::optional<int64_t> spaceBytes(const BufferDesc &b) const {
    switch (b.space) {
    case Space::Arena:
      return b.index < s.arenas.size() ? std::optional(s.arenas[b.index].bytes) : std::nullopt;
    case Space::Input:
      return b.index < s.inputs.size() ? typeBytes(s.inputs[b.index].type) : std::nullopt;
    case Space::Output:
      return b.index < s.outputs.size() ? typeBytes(s.outputs[b.index].type) : std::nullopt;
    case Space::State:
      return b.index < s.states.size() ? typeBytes(s.states[b.index].type) : std::nullopt;
    case Space::Constant:
      return b.index < s.constants.size() ? std::optional(s.constants[b.index].bytes) : std::nullopt;
    }
    return std::nullopt;
  }

  void checkBuffer(size_t i) {
    const BufferDesc &b = s.buffers[i];
    const std::string name = "buffer " + std::to_string(i);
    if (b.space > Space::Constant)
      return structure(name + " is of an unknown space");
    const auto limitBytes = spaceBytes(b);
    const auto bytes = typeBytes(b.type);
    if (!limitBytes)
      structure(name + " names " + nameOf(b.space) + " " + std::to_string(b.index) + ", which does not exist");
    else if (b.offset < 0 || b.bytes < 0 || b.offset > *limitBytes || b.bytes > *limitBytes - b.offset)
      structure(name + ": bytes " + std::to_string(b.offset) + " to " +
                std::to_string(static_cast<uint64_t>(b.offset) + static_cast<uint64_t>(b.bytes)) + " leave " +
                nameOf(b.space) + " " + std::to_string(b.index) + " of " + std::to_string(*limitBytes) + " bytes");
    else if (b.space == Space::Arena && b.offset % 64)
      structure(name + ": offset " + std::to_string(b.offset) + " in an arena is not a multiple of 64");
    else if (!bytes)
      structure(name + " has an impossible type");
    else if (*bytes > b.bytes)
      structure(name + " has " + std::to_string(b.bytes) + " bytes, its type " + b.type.str() + " needs " +
                std::to_string(*bytes));
  }

  //--- Programs -----------------------------------------------------------------------------------------------------
  /// Structure and access kinds; false if the program must not be walked.
  bool checkProgram(const Program &p, Phase phase) {
    const size_t before = found.size();
    if (p.commands.size() > UINT32_MAX) {
      structure("too many commands");
      return false;
    }
    std::vector<int64_t> firstLaunch(s.kernels.size(), -1);
    bool indices = true;
    for (size_t i = 0; i < p.commands.size() && !full(); ++i) {
      if (!checkIndices(p, phase, i)) {
        indices = false;
        continue;
      }
      checkShape(p, phase, i, firstLaunch);
      for (const Operand &o : operandsOf(p, i))
        checkAccess(p, phase, i, o);
    }
    return indices && found.size() == before;
  }

  static std::span<const Operand> operandsOf(const Program &p, size_t command) {
    const Command &c = p.commands[command];
    return {p.operands.data() + c.firstOperand, c.numOperands};
  }
  static std::span<const Wait> waitsOf(const Program &p, size_t command) {
    const Command &c = p.commands[command];
    return {p.waits.data() + c.firstWait, c.numWaits};
  }

  bool checkIndices(const Program &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    auto bad = [&](const std::string &what) {
      structure(p, phase, i, what);
      return false;
    };
    if (c.kind > CommandKind::Collective)
      return bad("unknown kind of command");
    if (c.stream >= s.streams.size())
      return bad("stream " + std::to_string(c.stream) + " does not exist");
    if (c.loc != 0 && c.loc >= s.locations.size())
      return bad("location " + std::to_string(c.loc) + " does not exist");
    if (uint64_t(c.firstOperand) + c.numOperands > p.operands.size())
      return bad("its operands leave the table");
    if (uint64_t(c.firstScalar) + c.numScalars > p.scalars.size())
      return bad("its scalars leave the table");
    if (uint64_t(c.firstWait) + c.numWaits > p.waits.size())
      return bad("its waits leave the table");
    if (c.kind == CommandKind::Launch && c.kernel >= s.kernels.size())
      return bad("kernel " + std::to_string(c.kernel) + " does not exist");
    for (const Operand &o : operandsOf(p, i))
      if (o.buffer >= s.buffers.size() || o.access > Access::ReadWrite)
        return bad("buffer " + std::to_string(o.buffer) + " does not exist, or is accessed in an unknown way");
    for (const Wait &w : waitsOf(p, i))
      if (w.command >= i || w.reason > WaitReason::Rank)
        return bad("waits for command " + std::to_string(w.command) + ", which is not before it");
    return true;
  }

  /// Operands as the kind of command, and the other launches of the same kernel, want them.
  void checkShape(const Program &p, Phase phase, size_t i, std::vector<int64_t> &firstLaunch) {
    const Command &c = p.commands[i];
    const auto operands = operandsOf(p, i);
    auto bytesOf = [&](const Operand &o) { return s.buffers[o.buffer].bytes; };
    switch (c.kind) {
    case CommandKind::Copy:
      if (operands.size() != 2 || operands[0].access != Access::Read || operands[1].access != Access::Write ||
          bytesOf(operands[0]) != bytesOf(operands[1]))
        structure(p, phase, i, "a copy reads one buffer and writes another of as many bytes");
      break;
    case CommandKind::Fill:
      if (operands.size() != 1 || operands[0].access != Access::Write ||
          bytesOf(operands[0]) % sizeOf(s.buffers[operands[0].buffer].type.dtype))
        structure(p, phase, i, "a fill writes whole elements of one buffer");
      break;
    case CommandKind::Launch: {
      const int32_t numInputs = s.kernels[c.kernel].numInputs;
      if (numInputs < 0 || static_cast<size_t>(numInputs) > operands.size())
        structure(p, phase, i,
                  "has " + std::to_string(operands.size()) + " operands, kernel '" + s.kernels[c.kernel].symbol +
                      "' has " + std::to_string(numInputs) + " inputs alone");
      int64_t &first = firstLaunch[c.kernel];
      if (first < 0) {
        first = static_cast<int64_t>(i);
        break;
      }
      const auto expected = operandsOf(p, static_cast<size_t>(first));
      bool equal = expected.size() == operands.size();
      for (size_t k = 0; equal && k < operands.size(); ++k)
        equal = expected[k].access == operands[k].access && bytesOf(expected[k]) == bytesOf(operands[k]);
      if (!equal)
        structure(p, phase, i,
                  "launches '" + s.kernels[c.kernel].symbol + "' with other operands than command " +
                      std::to_string(first));
      break;
    }
    case CommandKind::HostCall:
    case CommandKind::Collective:
      break;
    }
  }

  void checkAccess(const Program &p, Phase phase, size_t i, const Operand &o) {
    const BufferDesc &b = s.buffers[o.buffer];
    const bool writes = o.access != Access::Read, prepare = phase == Phase::Prepare;
    const char *why = nullptr;
    switch (b.space) {
    case Space::Arena:
      break;
    case Space::Input:
      why = writes ? "inputs are only read" : prepare ? "there are no inputs in prepare" : nullptr;
      break;
    case Space::Output:
      why = prepare ? "there are no outputs in prepare" : nullptr;
      break;
    case Space::Constant:
      why = writes ? "constants are only read" : nullptr;
      break;
    case Space::State:
      switch (s.states[b.index].kind) {
      case StateKind::Parameter:
        why = writes ? "parameters are only read" : nullptr;
        break;
      case StateKind::Mutable:
        why = prepare ? "mutable states belong to the step" : nullptr;
        break;
      case StateKind::Derived:
        why = writes && !prepare ? "only prepare writes derived states" : nullptr;
        break;
      }
    }
    if (why)
      report(ViolationKind::Access, p, phase, {0, 0, static_cast<uint32_t>(i), o.buffer}, nullptr,
             std::string(writes ? "writes " : "reads ") + describe(o.buffer) + ": " + why);
  }

  //--- The walk -----------------------------------------------------------------------------------------------------
  /// The history of a space; null where nobody writes, so that nothing can go wrong.
  IntervalMap *historyOf(const BufferDesc &b, Phase phase) {
    const bool tracked = b.space == Space::Arena || b.space == Space::Output ||
                         (b.space == Space::State && s.states[b.index].kind != StateKind::Parameter);
    if (!tracked)
      return nullptr;
    auto [it, isNew] = spaces.try_emplace(uint64_t(b.space) << 32 | b.index);
    if (isNew)
      if (const int64_t bytes = *spaceBytes(b)) {
        const bool initial = b.space == Space::State && s.states[b.index].kind == StateKind::Mutable;
        it->second.emplace(0, Segment{.end = bytes, .written = initial});
      }
    return &it->second;
  }

  /// Makes `at` a boundary.
  static void split(IntervalMap &map, int64_t at) {
    auto it = map.upper_bound(at);
    if (it == map.begin())
      return;
    --it;
    if (it->first == at || it->second.end <= at)
      return;
    Segment tail = it->second;
    it->second.end = at;
    map.emplace_hint(std::next(it), at, std::move(tail));
  }

  bool sameRange(uint32_t a, uint32_t b) const {
    return s.buffers[a].offset == s.buffers[b].offset && s.buffers[a].bytes == s.buffers[b].bytes;
  }

  void read(const Program &p, Phase phase, const Epoch &now, const Clock &clock) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes ? historyOf(b, phase) : nullptr;
    if (!map)
      return;
    const int64_t end = b.offset + b.bytes;
    split(*map, b.offset);
    split(*map, end);
    bool reported = false;
    for (auto it = map->find(b.offset); it != map->end() && it->first < end; ++it) {
      Segment &seg = it->second;
      if (!seg.written && !reported) {
        reported = true;
        report(ViolationKind::ReadBeforeWrite, p, phase, now, nullptr,
               "reads " + describe(now.buffer) + ", but nothing has written bytes " + std::to_string(it->first) +
                   " to " + std::to_string(seg.end));
      } else if (seg.written && !seg.initial && !before(seg.write, clock) && !reported) {
        reported = true;
        race(p, phase, now, seg.write, "reads", "writes");
      }
      auto same =
          std::find_if(seg.reads.begin(), seg.reads.end(), [&](const Epoch &r) { return r.stream == now.stream; });
      if (same == seg.reads.end()) {
        seg.reads.push_back(now);
        seg.mixedReads = false;
        continue;
      }
      seg.mixedReads = same->command == now.command && (seg.mixedReads || !sameRange(same->buffer, now.buffer));
      *same = now;
    }
  }

  void write(const Program &p, Phase phase, const Epoch &now, const Clock &clock) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes ? historyOf(b, phase) : nullptr;
    if (!map)
      return;
    const int64_t end = b.offset + b.bytes;
    split(*map, b.offset);
    split(*map, end);
    auto first = map->find(b.offset), it = first;
    bool reported = false;
    for (; it != map->end() && it->first < end; ++it) {
      Segment &seg = it->second;
      if (reported)
        continue;
      if (seg.written && !seg.initial && !before(seg.write, clock)) {
        reported = true;
        race(p, phase, now, seg.write, "writes", "writes");
        continue;
      }
      for (const Epoch &r : seg.reads) {
        if (r.command == now.command ? !seg.mixedReads && sameRange(r.buffer, now.buffer) : before(r, clock))
          continue;
        reported = true;
        race(p, phase, now, r, "writes", "reads");
        break;
      }
    }
    // One history from here on.
    Segment merged{.end = end, .written = true, .initial = false, .write = now};
    map->erase(first, it);
    map->emplace(b.offset, std::move(merged));
  }

  void race(const Program &p, Phase phase, const Epoch &now, const Epoch &other, const char *does, const char *did) {
    if (full())
      return;
    if (now.command == other.command)
      return report(ViolationKind::Race, p, phase, now, &other,
                    std::string(does) + " " + describe(now.buffer) + ", which overlaps " + describe(other.buffer) +
                        " of the same command: a written range may only coincide with one that is read");
    report(ViolationKind::Race, p, phase, now, &other,
           std::string(does) + " " + describe(now.buffer) + " without waiting for " + place(p, phase, other.command) +
               ", which " + did + " " + describe(other.buffer));
  }

  void walk(const Program &p, Phase phase) {
    if (phase == Phase::Step) {
      // Arenas hold nothing between the programs; derived states hold what prepare left, finished.
      std::erase_if(spaces, [](const auto &entry) { return entry.first >> 32 != uint64_t(Space::State); });
      for (auto &[key, map] : spaces)
        for (auto &[start, seg] : map) {
          seg.initial = true;
          seg.reads.clear();
        }
    }
    const size_t n = s.streams.size();
    std::vector<Clock> streamClocks(n, Clock(n, 0));
    std::vector<uint32_t> issued(n, 0);
    // Clocks are kept for commands that somebody waits for, until the last does.
    std::vector<uint32_t> waiters(p.commands.size(), 0);
    std::vector<Clock> finished(p.commands.size());
    for (size_t i = 0; i < p.commands.size(); ++i)
      for (const Wait &w : waitsOf(p, i))
        ++waiters[w.command];

    for (size_t i = 0; i < p.commands.size() && !full(); ++i) {
      const uint32_t stream = p.commands[i].stream;
      Clock &clock = streamClocks[stream];
      for (const Wait &w : waitsOf(p, i)) {
        join(clock, finished[w.command]);
        if (--waiters[w.command] == 0)
          Clock().swap(finished[w.command]);
      }
      Epoch now{stream, issued[stream]++, static_cast<uint32_t>(i), 0};
      const auto operands = operandsOf(p, i);
      for (const Operand &o : operands)
        if (o.access != Access::Write) {
          now.buffer = o.buffer;
          read(p, phase, now, clock);
        }
      for (const Operand &o : operands)
        if (o.access != Access::Read) {
          now.buffer = o.buffer;
          write(p, phase, now, clock);
        }
      clock[stream] = issued[stream];
      if (waiters[i])
        finished[i] = clock;
    }
    if (phase == Phase::Step)
      checkOutputs();
  }

  void checkOutputs() {
    for (uint32_t i = 0; i < s.outputs.size() && !full(); ++i) {
      BufferDesc whole{.space = Space::Output, .index = i};
      for (const auto &[start, seg] : *historyOf(whole, Phase::Step))
        if (!seg.written) {
          found.push_back({.kind = ViolationKind::OutputIncomplete,
                           .message = "step: nothing writes bytes " + std::to_string(start) + " to " +
                                      std::to_string(seg.end) + " of output " + std::to_string(i) + " '" +
                                      s.outputs[i].name + "'"});
          break;
        }
    }
  }

  const Schedule &s;
  const size_t limit;
  std::vector<Violation> found;
  std::unordered_map<uint64_t, IntervalMap> spaces; ///< by space and index
};

} // namespace

std::vector<Violation> verifySchedule(const Schedule &schedule, size_t limit) {
  return Verifier(schedule, limit ? limit : 1).run();
}

void reduceWaits(Program &program, size_t numStreams) {
  std::vector<Clock> streamClocks(numStreams, Clock(numStreams, 0));
  std::vector<uint32_t> position(program.commands.size()), issued(numStreams, 0);
  std::vector<bool> waitedFor(program.commands.size(), false);
  for (const Wait &w : program.waits)
    waitedFor[w.command] = true;
  std::vector<Clock> finished(program.commands.size());
  std::vector<Wait> kept, own;
  for (size_t i = 0; i < program.commands.size(); ++i) {
    Command &c = program.commands[i];
    own.assign(program.waits.begin() + c.firstWait, program.waits.begin() + c.firstWait + c.numWaits);
    // Latest first: an earlier command may follow from a later one, never the other way round.
    std::sort(own.begin(), own.end(), [](const Wait &a, const Wait &b) {
      return a.command != b.command ? a.command > b.command : a.reason < b.reason;
    });
    Clock &clock = streamClocks[c.stream];
    c.firstWait = static_cast<uint32_t>(kept.size());
    for (const Wait &w : own) {
      const uint32_t stream = program.commands[w.command].stream;
      if (position[w.command] < clock[stream])
        continue;
      kept.push_back(w);
      join(clock, finished[w.command]);
    }
    c.numWaits = static_cast<uint16_t>(kept.size() - c.firstWait);
    position[i] = issued[c.stream]++;
    clock[c.stream] = issued[c.stream];
    if (waitedFor[i])
      finished[i] = clock;
  }
  program.waits = std::move(kept);
}

} // namespace tressel::runtime
