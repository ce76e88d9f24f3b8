// The walk, over interval maps that cut each space into segments of bytes with equal history (ByteHistory.h).
#include "tressel/runtime/VerifySchedule.h"

#include "ByteHistory.h"
#include "Concat.h"
#include "ScheduleSizes.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Instantiate.h"

#include <optional>
#include <set>

namespace tressel::runtime {
namespace {

class Verifier {
public:
  Verifier(const Schedule &schedule, size_t limit) : s(schedule), limit(limit) {}

  std::vector<Violation> run() {
    checkTables();
    if (!found.empty())
      return std::move(found); // nothing below is meaningful
    firstLaunch.assign(s.kernels.size(), {});
    bodyOwned.assign(s.bodies.size(), false);
    shift.assign(s.bodies.empty() ? 0 : s.buffers.size(), {});
    const bool prepareOk = checkProgram(s.prepare, Phase::Prepare);
    const bool stepOk = checkProgram(s.step, Phase::Step);
    for (size_t i = 0; i < s.bodies.size() && prepareOk && stepOk; ++i)
      if (!bodyOwned[i])
        structure(concat("body ", i, " belongs to no command"));
    if (prepareOk)
      walkPhase(s.prepare, Phase::Prepare);
    if (prepareOk && stepOk)
      walkPhase(s.step, Phase::Step);
    return std::move(found);
  }

private:
  //--- Messages -----------------------------------------------------------------------------------------------------
  bool full() const { return found.size() >= limit; }

  std::string place(const Program &p, Phase phase, int64_t command) const {
    const int64_t body = bodyOf(p);
    std::string text = body >= 0 ? concat("body ", body) : phase == Phase::Prepare ? "prepare" : "step";
    text += concat(" command ", command);
    const Command &c = p.commands[static_cast<size_t>(command)];
    if (c.loc < s.locations.size()) {
      const Location &l = s.locations[c.loc];
      if (!l.op.empty() || !l.file.empty())
        text += concat(" (", l.op, l.file.empty() ? "" : concat(" at ", l.file, ":", l.line), ")");
    }
    if (c.stream < s.streams.size() && s.streams.size() > 1)
      text += concat(" on stream '", s.streams[c.stream].name, "'");
    return text;
  }
  /// The number of a body; -1 for prepare and step.
  int64_t bodyOf(const Program &p) const {
    const bool isBody = !s.bodies.empty() && &p >= s.bodies.data() && &p < s.bodies.data() + s.bodies.size();
    return isBody ? &p - s.bodies.data() : -1;
  }
  std::string describe(uint32_t buffer) const {
    const BufferDesc &b = s.buffers[buffer];
    std::string text = concat("buffer ", buffer, " (", nameOf(b.space), " ", b.index);
    if (b.space == Space::State)
      text += concat(" '", s.states[b.index].name, "'");
    if (b.space == Space::Input || b.space == Space::Output)
      text += concat(" '", (b.space == Space::Input ? s.inputs : s.outputs)[b.index].name, "'");
    return concat(text, ", bytes ", b.offset, " to ", b.offset + b.bytes, ")");
  }

  void structure(std::string message) {
    if (!full())
      found.push_back({.message = concat("schedule: ", std::move(message))});
  }
  void structure(const Program &p, Phase phase, size_t command, const std::string &message) {
    if (!full())
      found.push_back({.phase = phase,
                       .command = static_cast<int64_t>(command),
                       .body = bodyOf(p),
                       .loc = p.commands[command].loc,
                       .message = concat(place(p, phase, static_cast<int64_t>(command)), ": ", message)});
  }
  void report(ViolationKind kind, const Program &p, Phase phase, const Epoch &now, const Epoch *other,
              const std::string &message) {
    if (full())
      return;
    Violation v{.kind = kind, .phase = phase, .command = now.command, .body = bodyOf(p), .buffer = now.buffer};
    v.loc = p.commands[now.command].loc;
    if (other) {
      v.otherCommand = other->command;
      v.otherBody = bodyOf(*other->program);
      v.otherBuffer = other->buffer;
      v.otherLoc = other->program->commands[other->command].loc;
    }
    v.message = concat(place(p, phase, now.command), " ", message);
    found.push_back(std::move(v));
  }

  //--- Tables -------------------------------------------------------------------------------------------------------
  void checkTables() {
    auto named = [](const char *table, size_t i) { return concat(table, " ", i); };
    if (s.streams.size() > kMaxStreams)
      structure(concat("more than ", kMaxStreams, " streams"));
    for (size_t i = 0; i < s.streams.size(); ++i)
      if (s.streams[i].kind > StreamKind::Lane || s.streams[i].device.kind > DeviceKind::Gpu)
        structure(concat(named("stream", i), " is of an unknown kind"));
    int64_t total = 0;
    for (size_t i = 0; i < s.arenas.size(); ++i) {
      if (s.arenas[i].memory > MemoryKind::Host || s.arenas[i].device.kind > DeviceKind::Gpu)
        structure(concat(named("arena", i), " is of an unknown kind"));
      if (s.arenas[i].bytes < 0 || s.arenas[i].bytes > kMaxBytes || (total += s.arenas[i].bytes) > kMaxBytes) {
        structure(concat(named("arena", i), " has an impossible size of ", s.arenas[i].bytes, " bytes"));
        return;
      }
    }
    auto checkType = [&](const char *table, size_t i, const TensorType &type) {
      if (!typeBytes(type))
        structure(concat(named(table, i), " has an impossible type"));
    };
    for (size_t i = 0; i < s.inputs.size(); ++i)
      checkType("input", i, s.inputs[i].type);
    for (size_t i = 0; i < s.outputs.size(); ++i)
      checkType("output", i, s.outputs[i].type);
    for (size_t i = 0; i < s.states.size(); ++i) {
      checkType("state", i, s.states[i].type);
      if (s.states[i].kind > StateKind::Derived)
        structure(concat(named("state", i), " is of an unknown kind"));
    }
    for (size_t i = 0; i < s.constants.size(); ++i) {
      const ConstantDesc &c = s.constants[i];
      if (c.offset < 0 || c.offset > kMaxBytes || c.bytes < 0 || c.bytes > kMaxBytes || c.offset % 64)
        structure(concat(named("constant", i), " has an impossible place"));
    }
    std::unordered_map<std::string_view, size_t> symbols;
    for (size_t i = 0; i < s.kernels.size(); ++i) {
      const KernelDesc &k = s.kernels[i];
      if (k.symbol.empty() || k.provider.empty())
        structure(concat(named("kernel", i), " has no symbol or no provider"));
      else if (!symbols.emplace(k.symbol, i).second)
        structure(concat(named("kernel", i), " has the symbol '", k.symbol, "' of kernel ", symbols[k.symbol]));
      if (k.range < 0 || k.range > kMaxBytes || k.grain < 1 || k.scratchBytes < 0 || k.scratchBytes > kMaxBytes)
        structure(concat(named("kernel", i), " '", k.symbol, "' has an impossible range, grain or scratch size"));
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
    const std::string name = concat("buffer ", i);
    if (b.space > Space::Constant)
      return structure(concat(name, " is of an unknown space"));
    const auto limitBytes = spaceBytes(b);
    const auto bytes = typeBytes(b.type);
    if (!limitBytes)
      structure(concat(name, " names ", nameOf(b.space), " ", b.index, ", which does not exist"));
    else if (*limitBytes == 0 && b.offset == 0 && b.bytes >= 0 && bytes)
      return; // a part of nothing, moved by a loop that runs no iteration: whoever touches it is told
    else if (b.offset < 0 || b.bytes < 0 || b.offset > *limitBytes || b.bytes > *limitBytes - b.offset)
      structure(concat(name, ": bytes ", b.offset, " to ",
                       static_cast<uint64_t>(b.offset) + static_cast<uint64_t>(b.bytes), " leave ", nameOf(b.space),
                       " ", b.index, " of ", *limitBytes, " bytes"));
    else if (b.space == Space::Arena && b.offset % 64)
      structure(concat(name, ": offset ", b.offset, " in an arena is not a multiple of 64"));
    else if (!bytes)
      structure(concat(name, " has an impossible type"));
    else if (*bytes > b.bytes)
      structure(concat(name, " has ", b.bytes, " bytes, its type ", b.type.str(), " needs ", *bytes));
  }

  //--- Programs -----------------------------------------------------------------------------------------------------
  /// Structure and access kinds; false if the program must not be walked.
  bool checkProgram(const Program &p, Phase phase, uint32_t depth = 0) {
    const size_t before = found.size();
    deepest = std::max(deepest, depth);
    if (p.commands.size() > UINT32_MAX) {
      structure("too many commands");
      return false;
    }
    bool indices = true;
    for (size_t i = 0; i < p.commands.size() && !full(); ++i) {
      if (!checkIndices(p, phase, i)) {
        indices = false;
        continue;
      }
      if (checkShape(p, phase, i); hasBodies(p.commands[i].kind) && found.size() == before)
        for (uint32_t k = 0; k < numBodies(p.commands[i].kind); ++k)
          checkBody(p, phase, i, p.commands[i].body + k, depth + 1);
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
    if (c.kind > CommandKind::Loop)
      return bad("unknown kind of command");
    if (c.stream >= s.streams.size())
      return bad(concat("stream ", c.stream, " does not exist"));
    if (c.loc != 0 && c.loc >= s.locations.size())
      return bad(concat("location ", c.loc, " does not exist"));
    if (uint64_t(c.firstOperand) + c.numOperands > p.operands.size())
      return bad("its operands leave the table");
    if (uint64_t(c.firstScalar) + c.numScalars > p.scalars.size())
      return bad("its scalars leave the table");
    if (uint64_t(c.firstWait) + c.numWaits > p.waits.size())
      return bad("its waits leave the table");
    if (c.kind == CommandKind::Launch && c.kernel >= s.kernels.size())
      return bad(concat("kernel ", c.kernel, " does not exist"));
    if (uint64_t(c.body) + numBodies(c.kind) > s.bodies.size() && hasBodies(c.kind))
      return bad("its bodies do not exist");
    for (const Operand &o : operandsOf(p, i))
      if (o.buffer >= s.buffers.size() || o.access > Access::ReadWrite)
        return bad(concat("buffer ", o.buffer, " does not exist, or is accessed in an unknown way"));
    for (const Wait &w : waitsOf(p, i))
      if (w.command >= i || w.reason > WaitReason::Rank)
        return bad(concat("waits for command ", w.command, ", which is not before it"));
    return true;
  }

  /// A body stands behind the program that runs it, so that there is no cycle, and nobody else runs it.
  void checkBody(const Program &p, Phase phase, size_t i, uint32_t body, uint32_t depth) {
    if (depth > kMaxDepth)
      return structure(p, phase, i, concat("bodies are nested deeper than ", kMaxDepth));
    if (static_cast<int64_t>(body) <= bodyOf(p) || bodyOwned[body])
      return structure(p, phase, i, concat("body ", body, " belongs to another command"));
    bodyOwned[body] = true;
    checkProgram(s.bodies[body], phase, depth);
  }

  /// Operands as the kind of command, and the other launches of the same kernel, want them.
  void checkShape(const Program &p, Phase phase, size_t i) {
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
                  concat("has ", operands.size(), " operands, kernel '", s.kernels[c.kernel].symbol, "' has ",
                         numInputs, " inputs alone"));
      auto &[program, first] = firstLaunch[c.kernel];
      if (!program) {
        firstLaunch[c.kernel] = {&p, i};
        break;
      }
      const auto expected = operandsOf(*program, first);
      bool equal = expected.size() == operands.size();
      for (size_t k = 0; equal && k < operands.size(); ++k)
        equal = expected[k].access == operands[k].access && bytesOf(expected[k]) == bytesOf(operands[k]);
      if (!equal)
        structure(p, phase, i,
                  concat("launches '", s.kernels[c.kernel].symbol, "' with other operands than ",
                         place(*program, phase, static_cast<int64_t>(first))));
      break;
    }
    case CommandKind::HostCall:
    case CommandKind::Collective:
      break;
    case CommandKind::Branch:
    case CommandKind::While:
      if (operands.size() != 1 || operands[0].access != Access::Read || bytesOf(operands[0]) != 1)
        structure(p, phase, i, "reads one flag, a byte, to choose");
      break;
    case CommandKind::Loop:
      checkLoop(p, phase, i);
      break;
    }
  }

  void checkLoop(const Program &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    if (c.numScalars == 0)
      return structure(p, phase, i, "a loop has a trip count");
    const LoopParts loop = loopParts(p, i);
    if (loop.trips < 0 || loop.trips > kMaxBytes)
      return structure(p, phase, i, concat("runs its body ", loop.trips, " times, which is impossible"));
    const auto operands = operandsOf(p, i);
    const size_t numIndices = operands.size() - loop.moving.size();
    if (operands.size() < loop.strides.size() || numIndices > 1 ||
        (numIndices && (operands[0].access != Access::Write || s.buffers[operands[0].buffer].bytes != 8)))
      return structure(p, phase, i,
                       "a loop writes its number into 8 bytes, and has one number of bytes per moving buffer");
    // One that moves by nothing is like any other buffer. So do parts of something empty, which nobody touches.
    for (size_t m = 0; m < loop.moving.size(); ++m) {
      const BufferDesc &b = s.buffers[loop.moving[m].buffer];
      int64_t furthest = 0;
      const bool twice = std::any_of(loop.moving.begin(), loop.moving.begin() + static_cast<ptrdiff_t>(m),
                                     [&](const Operand &o) { return o.buffer == loop.moving[m].buffer; });
      if (twice || loop.moving[m].access != Access::Read || loop.strides[m] < 0 || loop.strides[m] > kMaxBytes ||
          (loop.trips > 1 && loop.strides[m] != 0 && loop.strides[m] < b.bytes) ||
          __builtin_mul_overflow(std::max<int64_t>(loop.trips - 1, 0), loop.strides[m], &furthest) ||
          furthest > kMaxBytes)
        structure(p, phase, i,
                  concat(describe(loop.moving[m].buffer), " moves by ", loop.strides[m],
                         " bytes: twice, less than it has, or further than there are"));
    }
  }

  /// A loop's trip count and the buffers that move, with how far.
  struct LoopParts {
    int64_t trips = 0;
    uint32_t body = 0; ///< tells loops apart
    std::span<const Operand> moving;
    std::span<const int64_t> strides;
  };
  static LoopParts loopParts(const Program &p, size_t i) {
    const Command &c = p.commands[i];
    LoopParts parts{.trips = p.scalars[c.firstScalar], .body = c.body};
    parts.strides = {p.scalars.data() + c.firstScalar + 1, c.numScalars - size_t(1)};
    parts.moving = operandsOf(p, i);
    if (parts.moving.size() > parts.strides.size())
      parts.moving = parts.moving.last(parts.strides.size());
    return parts;
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
             concat(writes ? "writes " : "reads ", describe(o.buffer), ": ", why));
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

  bool sameRange(uint32_t a, uint32_t b) const {
    return s.buffers[a].offset == s.buffers[b].offset && s.buffers[a].bytes == s.buffers[b].bytes;
  }

  void read(const Program &p, Phase phase, const Epoch &now, const Clock &clock) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes ? historyOf(b, phase) : nullptr;
    const auto [begin, end] = rangeOf(p, phase, now);
    if (!map || begin == end)
      return;
    splitAt(*map, begin);
    splitAt(*map, end);
    bool reported = false;
    for (auto it = map->find(begin); it != map->end() && it->first < end; ++it) {
      Segment &seg = it->second;
      if (!seg.written && !reported) {
        reported = true;
        report(ViolationKind::ReadBeforeWrite, p, phase, now, nullptr,
               concat("reads ", describe(now.buffer), ", but nothing has written bytes ", it->first, " to ", seg.end));
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
      seg.mixedReads = same->isSame(now) && (seg.mixedReads || !sameRange(same->buffer, now.buffer));
      *same = now;
    }
  }

  void write(const Program &p, Phase phase, const Epoch &now, const Clock &clock) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes ? historyOf(b, phase) : nullptr;
    if (!map)
      return;
    const auto [begin, end] = rangeOf(p, phase, now);
    if (begin == end)
      return;
    splitAt(*map, begin);
    splitAt(*map, end);
    auto first = map->find(begin), it = first;
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
        if (r.isSame(now) ? !seg.mixedReads && sameRange(r.buffer, now.buffer) : before(r, clock))
          continue;
        reported = true;
        race(p, phase, now, r, "writes", "reads");
        break;
      }
    }
    // One history from here on.
    Segment merged{.end = end, .written = true, .initial = false, .write = now};
    map->erase(first, it);
    map->emplace(begin, std::move(merged));
  }

  void race(const Program &p, Phase phase, const Epoch &now, const Epoch &other, const char *does, const char *did) {
    if (full())
      return;
    if (now.isSame(other))
      return report(ViolationKind::Race, p, phase, now, &other,
                    concat(does, " ", describe(now.buffer), ", which overlaps ", describe(other.buffer),
                           " of the same command: a written range may only coincide with one that is read"));
    report(ViolationKind::Race, p, phase, now, &other,
           concat(does, " ", describe(now.buffer), " without waiting for ", place(*other.program, phase, other.command),
                  ", which ", did, " ", describe(other.buffer)));
  }

  /// The bytes that an access touches at this point of the walk: a moving buffer is elsewhere in each iteration, and in
  /// the walk that stands for all iterations but the first it is everywhere that they find it.
  std::pair<int64_t, int64_t> rangeOf(const Program &p, Phase phase, const Epoch &now) {
    const BufferDesc &b = s.buffers[now.buffer];
    if (shift.empty() && *spaceBytes(b))
      return {b.offset, b.offset + b.bytes};
    const Shift moved = shift.empty() ? Shift() : shift[now.buffer];
    int64_t begin = 0, end = 0;
    if (__builtin_add_overflow(b.offset, moved.by, &begin) || __builtin_add_overflow(begin, b.bytes, &end) ||
        __builtin_add_overflow(end, moved.further, &end) || end > *spaceBytes(b)) {
      report(ViolationKind::Structure, p, phase, now, nullptr,
             concat("moves ", describe(now.buffer), " out of its ", nameOf(b.space)));
      return {0, 0};
    }
    return {begin, end};
  }

  void walkPhase(const Program &p, Phase phase) {
    if (phase == Phase::Step) {
      // Arenas hold nothing between the programs; derived states hold what prepare left, finished.
      std::erase_if(spaces, [](const auto &entry) { return entry.first >> 32 != uint64_t(Space::State); });
      for (auto &[key, map] : spaces)
        for (auto &[start, seg] : map) {
          seg.initial = true;
          seg.reads.clear();
        }
    }
    size_t numClocks = s.streams.size();
    for (uint32_t depth = 0; depth < deepest && numClocks <= kMaxStreams * 16; ++depth)
      numClocks = s.streams.size() * (numClocks + 1);
    if (numClocks > kMaxStreams * 16)
      return structure("too many streams for bodies nested that deep");
    issued.assign(numClocks, 0);
    walk(p, phase, 0, Clock(numClocks, 0));
    if (phase == Phase::Step)
      checkOutputs();
  }

  /// The streams of the bodies that a stream runs: their own for each, since commands of two streams run side by side.
  uint32_t streamsWithin(uint32_t stream) const { return static_cast<uint32_t>(s.streams.size()) * (stream + 1); }

  /// Walks a program whose commands begin when what `begin` says is finished, on streams from `firstStream` on. Returns
  /// what is finished when all are.
  Clock walk(const Program &p, Phase phase, uint32_t firstStream, const Clock &begin) {
    const size_t n = s.streams.size();
    std::vector<Clock> streamClocks(n, begin);
    // Clocks are kept for commands that somebody waits for, until the last does.
    std::vector<uint32_t> waiters(p.commands.size(), 0);
    std::vector<Clock> finished(p.commands.size());
    for (size_t i = 0; i < p.commands.size(); ++i)
      for (const Wait &w : waitsOf(p, i))
        ++waiters[w.command];

    for (size_t i = 0; i < p.commands.size() && !full(); ++i) {
      const uint32_t stream = firstStream + p.commands[i].stream;
      Clock &clock = streamClocks[p.commands[i].stream];
      for (const Wait &w : waitsOf(p, i)) {
        join(clock, finished[w.command]);
        if (--waiters[w.command] == 0)
          Clock().swap(finished[w.command]);
      }
      if (hasBodies(p.commands[i].kind))
        walkBodies(p, phase, stream, i, clock);
      else
        access(p, phase, i, operandsOf(p, i), stream, clock);
      if (waiters[i])
        finished[i] = clock;
    }
    Clock end = begin;
    for (const Clock &clock : streamClocks)
      join(end, clock);
    return end;
  }

  /// A run of command i that touches these operands: all reads come before the writes. Afterwards it counts as
  /// finished.
  Epoch access(const Program &p, Phase phase, size_t i, std::span<const Operand> operands, uint32_t stream,
               Clock &clock) {
    Epoch now{stream, issued[stream]++, static_cast<uint32_t>(i), 0, &p};
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
    return now;
  }

  //--- Bodies -------------------------------------------------------------------------------------------------------
  void walkBodies(const Program &p, Phase phase, uint32_t stream, size_t i, Clock &clock) {
    const Command &c = p.commands[i];
    const uint32_t inner = streamsWithin(stream); // the first; there count also what the command does between bodies
    auto body = [&](uint32_t k, const Clock &begin) { return walk(s.bodies[c.body + k], phase, inner, begin); };
    auto readFlag = [&](Clock &at) { access(p, phase, i, operandsOf(p, i), inner, at); };
    // What holds when either came last.
    auto alternatives = [&](Spaces &other) {
      const Epoch end = access(p, phase, i, {}, stream, clock);
      mergeAlternatives(spaces, other, end);
    };
    switch (c.kind) {
    case CommandKind::Branch: {
      readFlag(clock);
      makeHistories(p, phase, i);
      Spaces other = spaces;
      Clock end = body(0, clock);
      std::swap(spaces, other);
      join(end, body(1, clock));
      clock = std::move(end);
      alternatives(other);
      break;
    }
    case CommandKind::While: {
      makeHistories(p, phase, i);
      clock = body(0, clock);
      readFlag(clock);
      Spaces none = spaces; // after no iteration
      for (int iteration = 0; iteration < 2; ++iteration) {
        clock = body(1, clock);
        clock = body(0, clock);
        readFlag(clock);
      }
      alternatives(none);
      break;
    }
    default: {
      const LoopParts loop = loopParts(p, i);
      const auto index = operandsOf(p, i).first(c.numOperands - loop.moving.size());
      if (loop.trips > 1)
        checkMoving(p, phase, i, loop);
      for (int64_t iteration = 0; iteration < std::min<int64_t>(loop.trips, 2); ++iteration) {
        if (iteration == 1)
          move(loop, 1);
        access(p, phase, i, index, inner, clock);
        clock = body(0, clock);
        if (iteration == 1)
          move(loop, -1);
      }
      access(p, phase, i, {}, stream, clock);
    }
    }
  }

  /// Puts the moving buffers where iterations 1 and on find them, or back.
  void move(const LoopParts &loop, int64_t sign) {
    for (size_t m = 0; m < loop.moving.size(); ++m) {
      Shift &moved = shift[loop.moving[m].buffer];
      moved.by += sign * loop.strides[m];
      moved.further += sign * (loop.trips - 2) * loop.strides[m];
      auto &by = movedBy[loop.moving[m].buffer];
      sign > 0 ? by.push_back({loop.body, loop.strides[m]}) : by.pop_back();
    }
  }

  /// Calls fn(operand, reach) for everything that the bodies of a command touch; loops in them move the operand's
  /// buffer over so many further bytes.
  template <typename Fn> void forEachAccess(const Program &p, size_t i, Fn fn) {
    std::unordered_map<uint32_t, int64_t> reach;
    forEachAccess(p, i, reach, fn);
  }
  template <typename Fn>
  void forEachAccess(const Program &p, size_t i, std::unordered_map<uint32_t, int64_t> &reach, Fn fn) {
    for (uint32_t k = 0; k < numBodies(p.commands[i].kind); ++k) {
      const Program &body = s.bodies[p.commands[i].body + k];
      for (size_t c = 0; c < body.commands.size(); ++c) {
        LoopParts loop;
        if (body.commands[c].kind == CommandKind::Loop)
          loop = loopParts(body, c);
        // The operands that a loop moves are named there, not touched.
        for (const Operand &o : operandsOf(body, c).first(body.commands[c].numOperands - loop.moving.size())) {
          auto it = reach.find(o.buffer);
          fn(o, it == reach.end() ? 0 : it->second);
        }
        if (body.commands[c].kind == CommandKind::Loop && loop.trips == 0)
          continue;
        for (size_t m = 0; m < loop.moving.size(); ++m)
          reach[loop.moving[m].buffer] += (loop.trips - 1) * loop.strides[m];
        forEachAccess(body, c, reach, fn);
        for (size_t m = 0; m < loop.moving.size(); ++m)
          reach[loop.moving[m].buffer] -= (loop.trips - 1) * loop.strides[m];
      }
    }
  }

  /// Histories of all that the bodies touch, so that alternatives have the same.
  void makeHistories(const Program &p, Phase phase, size_t i) {
    forEachAccess(p, i, [&](const Operand &o, int64_t) { historyOf(s.buffers[o.buffer], phase); });
  }

  /// A buffer that moves meets in no other iteration what the loop writes: whatever overlaps the bytes that it passes
  /// over moves with it, within the same step of the way. So iterations can be told apart by the first two alone. And
  /// what is written on the way leaves no gap.
  void checkMoving(const Program &p, Phase phase, size_t i, const LoopParts &loop) {
    if (loop.moving.empty())
      return;
    struct Touched {
      bool written = false;
      int64_t stride = 0, least = INT64_MAX, most = 0; ///< bytes that inner loops move it over, written or touched
    };
    std::map<uint32_t, Touched> touched;
    forEachAccess(p, i, [&](const Operand &o, int64_t reach) {
      Touched &t = touched[o.buffer];
      t.most = std::max(t.most, reach);
      if (o.access != Access::Read)
        t.written = true, t.least = std::min(t.least, reach);
    });
    for (const Operand &index : operandsOf(p, i).first(operandsOf(p, i).size() - loop.moving.size()))
      touched[index.buffer].written = true;
    for (size_t m = 0; m < loop.moving.size(); ++m)
      if (auto it = touched.find(loop.moving[m].buffer); it != touched.end())
        it->second.stride = loop.strides[m];
    auto begin = [&](uint32_t buffer) { return s.buffers[buffer].offset + shift[buffer].by; };
    auto end = [&](uint32_t buffer) {
      return begin(buffer) + s.buffers[buffer].bytes + shift[buffer].further + touched[buffer].most;
    };
    Epoch now{0, 0, static_cast<uint32_t>(i), 0, &p};
    for (const auto &[buffer, how] : touched) {
      const BufferDesc &b = s.buffers[buffer];
      if (how.stride == 0 || b.bytes == 0)
        continue;
      now.buffer = buffer;
      if (how.written && (how.stride != b.bytes + how.least || how.least != how.most))
        report(ViolationKind::Structure, p, phase, now, nullptr,
               concat("leaves gaps in what it writes through ", describe(buffer)));
      for (const auto &[other, otherHow] : touched) {
        const BufferDesc &o = s.buffers[other];
        if (other == buffer || (!how.written && !otherHow.written) || o.space != b.space || o.index != b.index)
          continue;
        const int64_t way = (loop.trips - 1) * how.stride, otherWay = (loop.trips - 1) * otherHow.stride;
        const bool meets = begin(buffer) < end(other) + otherWay && begin(other) < end(buffer) + way;
        // Loops around this one that move both move them together.
        const int64_t common = movedBy[buffer] == movedBy[other] ? shift[buffer].further : 0;
        const bool together = otherHow.stride == how.stride &&
            std::max(end(buffer), end(other)) - common - std::min(begin(buffer), begin(other)) <= how.stride;
        if (meets && !together)
          report(ViolationKind::Race, p, phase, now, nullptr,
                 concat("moves ", describe(buffer), " over ", describe(other), ", which it touches in other iterations"));
      }
    }
  }

  void checkOutputs() {
    for (uint32_t i = 0; i < s.outputs.size() && !full(); ++i) {
      BufferDesc whole{.space = Space::Output, .index = i};
      for (const auto &[start, seg] : *historyOf(whole, Phase::Step))
        if (!seg.written) {
          found.push_back({.kind = ViolationKind::OutputIncomplete,
                           .message = concat("step: nothing writes bytes ", start, " to ", seg.end, " of output ", i,
                                             " '", s.outputs[i].name, "'")});
          break;
        }
    }
  }

  const Schedule &s;
  const size_t limit;
  std::vector<Violation> found;
  Spaces spaces;
  std::vector<std::pair<const Program *, size_t>> firstLaunch; ///< by kernel
  std::vector<bool> bodyOwned;
  uint32_t deepest = 0;         ///< nesting
  std::vector<uint32_t> issued; ///< by stream, those within a stream where streamsWithin says
  /// Where a buffer is at this point of the walk: behind its own offset, and so many bytes further on as well.
  struct Shift {
    int64_t by = 0, further = 0;
  };
  std::vector<Shift> shift; ///< by buffer; empty without bodies
  std::map<uint32_t, std::vector<std::pair<uint32_t, int64_t>>> movedBy; ///< by buffer: loops that move it now, and strides
};

} // namespace

std::vector<Violation> verifySchedule(const Schedule &schedule, size_t limit) {
  if (limit == 0)
    limit = 1;
  if (schedule.dims.empty())
    return Verifier(schedule, limit).run();
  // For the least and for typical sizes. Those of a call are verified when it comes (Context).
  auto broken = [](std::string what) {
    return std::vector<Violation>{{.message = concat("schedule: ", std::move(what))}};
  };
  dim::Values least, typical;
  for (int64_t symbol : schedule.dims) {
    if (!dim::isSymbol(symbol) || !least.bind(symbol, dim::bounds(symbol).lo))
      return broken("a dimension stands twice, or has no name");
    typical.bind(symbol, dim::hint(symbol));
    const bool isInputs = std::any_of(schedule.inputs.begin(), schedule.inputs.end(), [&](const ValueDesc &input) {
      return std::find(input.type.shape.begin(), input.type.shape.end(), symbol) != input.type.shape.end();
    });
    if (!isInputs)
      return broken(concat("'", dim::symbolName(symbol), "' is the size of no input's dimension"));
  }
  for (const dim::Values *values : {&least, &typical}) {
    try {
      const Schedule numbers = instantiate(schedule, *values);
      if (auto found = Verifier(numbers, limit).run(); !found.empty())
        return found;
    } catch (const Error &error) {
      return broken(error.message());
    }
  }
  return {};
}

} // namespace tressel::runtime
