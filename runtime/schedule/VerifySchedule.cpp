// The walk, over interval maps that cut each space into segments of bytes with equal history (ByteHistory.h).
#include "tressel/runtime/VerifySchedule.h"

#include "ScheduleFindings.h"
#include "ScheduleSizes.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Instantiate.h"

#include <optional>
#include <set>

namespace tressel::runtime {
namespace {

class Verifier {
public:
  Verifier(const Schedule &schedule, size_t limit) : s(schedule), findings(schedule, limit) {}

  std::vector<Violation> run() {
    const StructureResult structure = checkStructure(s, findings);
    if (!structure.tables)
      return findings.take();
    shift.assign(s.bodies.empty() ? 0 : s.buffers.size(), {});
    movedBy.resize(shift.size());
    reach.resize(shift.size());
    spaces.resize(firstState() + s.states.size());
    forget(Space::State, s.states.size());
    if (structure.prepare)
      walkPhase(s.prepare, Phase::Prepare);
    if (structure.prepare && structure.step)
      walkPhase(s.step, Phase::Step);
    return findings.take();
  }

private:
  /// The history of a space; null where nobody writes, so that nothing can go wrong.
  IntervalMap *historyOf(const BufferDesc &b) {
    if (b.space == Space::Arena)
      return &spaces[b.index];
    if (b.space == Space::Output)
      return &spaces[s.arenas.size() + b.index];
    return b.space == Space::State && s.states[b.index].kind != StateKind::Parameter ? &spaces[firstState() + b.index]
                                                                                     : nullptr;
  }
  size_t firstState() const { return s.arenas.size() + s.outputs.size(); }
  void forget(Space space, size_t count) {
    for (BufferDesc whole{.space = space}; whole.index < count; ++whole.index) {
      IntervalMap *map = historyOf(whole);
      if (!map)
        continue;
      map->clear();
      if (const int64_t bytes = *spaceBytes(s, whole))
        map->emplace(0, Segment{.end = bytes,
                                .written = space == Space::State && s.states[whole.index].kind == StateKind::Mutable});
    }
  }
  /// What another command list or call has written there is not seen.
  void keepStates() {
    forget(Space::Arena, s.arenas.size());
    forget(Space::Output, s.outputs.size());
  }

  bool sameRange(uint32_t a, uint32_t b) const {
    return s.buffers[a].offset == s.buffers[b].offset && s.buffers[a].bytes == s.buffers[b].bytes;
  }

  void read(const CommandList &p, Phase phase, const Epoch &now, const Clock &clock) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes ? historyOf(b) : nullptr;
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
        findings.report(
            ViolationKind::ReadBeforeWrite, p, phase, now, nullptr,
            {"reads ", findings.describe(now.buffer), ", but nothing has written bytes ", it->first, " to ", seg.end});
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

  void write(const CommandList &p, Phase phase, const Epoch &now, const Clock &clock) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes ? historyOf(b) : nullptr;
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
      if (!seg.initial && !before(seg.write, clock)) {
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

  void race(const CommandList &p, Phase phase, const Epoch &now, const Epoch &other, const char *does, const char *did) {
    if (findings.full())
      return;
    if (now.isSame(other))
      return findings.report(ViolationKind::Race, p, phase, now, &other,
                             {does, " ", findings.describe(now.buffer), ", which overlaps ",
                              findings.describe(other.buffer),
                              " of the same command: a written range may only coincide with one that is read"});
    findings.report(ViolationKind::Race, p, phase, now, &other,
                    {does, " ", findings.describe(now.buffer), " without waiting for ",
                     findings.place(*other.list, phase, other.command),
                     other.position < earlierCalls[other.stream] ? " of an earlier call" : "", ", which ", did, " ",
                     findings.describe(other.buffer)});
  }

  /// The bytes that an access touches at this point of the walk: a moving buffer is elsewhere in each iteration, and in
  /// the walk that stands for all iterations but the first it is everywhere that they find it.
  std::pair<int64_t, int64_t> rangeOf(const CommandList &p, Phase phase, const Epoch &now) {
    const BufferDesc &b = s.buffers[now.buffer];
    if (shift.empty() && *spaceBytes(s, b))
      return {b.offset, b.offset + b.bytes};
    const Shift moved = shift.empty() ? Shift() : shift[now.buffer];
    int64_t begin = 0, end = 0;
    if (__builtin_add_overflow(b.offset, moved.by, &begin) || __builtin_add_overflow(begin, b.bytes, &end) ||
        __builtin_add_overflow(end, moved.further, &end) || end > *spaceBytes(s, b)) {
      findings.report(ViolationKind::Structure, p, phase, now, nullptr,
                      {"moves ", findings.describe(now.buffer), " out of its ", nameOf(b.space)});
      return {0, 0};
    }
    return {begin, end};
  }

  void walkPhase(const CommandList &p, Phase phase) {
    keepStates();
    for (IntervalMap &map : spaces) // derived states hold what prepare left, finished
      for (auto &[start, seg] : map) {
        seg.initial = true;
        seg.reads.clear();
      }
    within.assign(s.streams.size(), 0);
    countClocks(p, 0);
    const size_t numClocks = within.size();
    if (numClocks > kMaxStreams * 16)
      return findings.structure({"too many streams that run bodies"});
    issued.assign(numClocks, 0);
    std::vector<Clock> streamClocks(s.streams.size(), Clock(numClocks, 0));
    // Calls in flight follow each other in each stream, and share states alone. Those further apart have arenas of the
    // ring in common, and are ordered by that.
    for (uint32_t call = 0; call < (phase == Phase::Step ? s.inFlight : 1); ++call) {
      earlierCalls = issued;
      if (call > 0)
        keepStates();
      walk(p, phase, 0, streamClocks, Clock(numClocks, 0));
    }
    if (phase == Phase::Step)
      checkOutputs();
  }
  /// The streams of the bodies that a stream runs are its own, since commands of two streams run side by side.
  void countClocks(const CommandList &p, uint32_t firstStream) {
    for (const Command &c : p.commands) {
      if (!hasBodies(c.kind) || within.size() > kMaxStreams * 16)
        continue;
      const uint32_t stream = firstStream + c.stream;
      if (within[stream] == 0) {
        within[stream] = static_cast<uint32_t>(within.size());
        within.resize(within.size() + s.streams.size());
      }
      for (uint32_t k = 0; k < numBodies(c.kind); ++k)
        countClocks(s.bodies[c.body + k], within[stream]);
    }
  }

  /// Walks a command list whose commands begin when what `begin` says is finished, on streams from `firstStream` on. Returns
  /// what is finished when all are.
  Clock walk(const CommandList &p, Phase phase, uint32_t firstStream, const Clock &begin) {
    std::vector<Clock> streamClocks(s.streams.size(), begin);
    return walk(p, phase, firstStream, streamClocks, begin);
  }
  Clock walk(const CommandList &p, Phase phase, uint32_t firstStream, std::vector<Clock> &streamClocks, Clock end) {
    // Clocks are kept for commands that somebody waits for, until the last does.
    std::vector<uint32_t> waiters(p.commands.size(), 0);
    std::vector<Clock> finished(p.commands.size());
    for (size_t i = 0; i < p.commands.size(); ++i)
      for (const Wait &w : waitsOf(p, i))
        ++waiters[w.command];

    for (size_t i = 0; i < p.commands.size() && !findings.full(); ++i) {
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
    for (const Clock &clock : streamClocks)
      join(end, clock);
    return end;
  }

  /// A run of command i that touches these operands: all reads come before the writes. Afterwards it counts as
  /// finished.
  Epoch access(const CommandList &p, Phase phase, size_t i, std::span<const Operand> operands, uint32_t stream,
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
  void walkBodies(const CommandList &p, Phase phase, uint32_t stream, size_t i, Clock &clock) {
    const Command &c = p.commands[i];
    const uint32_t inner = within[stream]; // the first; there count also what the command does between bodies
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
      Spaces other = spaces;
      Clock end = body(0, clock);
      std::swap(spaces, other);
      join(end, body(1, clock));
      clock = std::move(end);
      alternatives(other);
      break;
    }
    case CommandKind::While: {
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

  /// What the bodies of a command touch; loops in them move the buffer over so many further bytes.
  struct Touch {
    uint32_t buffer;
    bool writes;
    int64_t reach;
  };
  void collect(const CommandList &p, size_t i, std::vector<Touch> &touches) {
    for (uint32_t k = 0; k < numBodies(p.commands[i].kind); ++k) {
      const CommandList &body = s.bodies[p.commands[i].body + k];
      for (size_t c = 0; c < body.commands.size(); ++c) {
        LoopParts loop;
        if (body.commands[c].kind == CommandKind::Loop)
          loop = loopParts(body, c);
        // The operands that a loop moves are named there, not touched.
        for (const Operand &o : operandsOf(body, c).first(body.commands[c].numOperands - loop.moving.size()))
          touches.push_back({o.buffer, o.access != Access::Read, reach[o.buffer]});
        if (body.commands[c].kind == CommandKind::Loop && loop.trips == 0)
          continue;
        for (size_t m = 0; m < loop.moving.size(); ++m)
          reach[loop.moving[m].buffer] += (loop.trips - 1) * loop.strides[m];
        collect(body, c, touches);
        for (size_t m = 0; m < loop.moving.size(); ++m)
          reach[loop.moving[m].buffer] -= (loop.trips - 1) * loop.strides[m];
      }
    }
  }

  /// A buffer that moves meets in no other iteration what the loop writes: whatever overlaps the bytes that it passes
  /// over moves with it, within the same step of the way. So iterations can be told apart by the first two alone. And
  /// what is written on the way leaves no gap.
  void checkMoving(const CommandList &p, Phase phase, size_t i, const LoopParts &loop) {
    if (loop.moving.empty())
      return;
    struct Touched {
      bool any = false, written = false;
      int64_t stride = 0, least = INT64_MAX, most = 0; ///< bytes that inner loops move it over, written or touched
    };
    std::vector<Touched> touched(s.buffers.size());
    std::vector<Touch> touches;
    collect(p, i, touches);
    for (const Operand &index : operandsOf(p, i).first(operandsOf(p, i).size() - loop.moving.size()))
      touches.push_back({index.buffer, true, 0});
    for (const Touch &touch : touches) {
      Touched &t = touched[touch.buffer];
      t.any = true;
      t.most = std::max(t.most, touch.reach);
      if (touch.writes)
        t.written = true, t.least = std::min(t.least, touch.reach);
    }
    for (size_t m = 0; m < loop.moving.size(); ++m)
      if (Touched &t = touched[loop.moving[m].buffer]; t.any)
        t.stride = loop.strides[m];
    auto begin = [&](uint32_t buffer) { return s.buffers[buffer].offset + shift[buffer].by; };
    auto end = [&](uint32_t buffer) {
      return begin(buffer) + s.buffers[buffer].bytes + shift[buffer].further + touched[buffer].most;
    };
    Epoch now{0, 0, static_cast<uint32_t>(i), 0, &p};
    for (uint32_t buffer = 0; buffer < touched.size(); ++buffer) {
      const Touched &how = touched[buffer];
      const BufferDesc &b = s.buffers[buffer];
      if (how.stride == 0 || b.bytes == 0)
        continue;
      now.buffer = buffer;
      if (how.written && (how.stride != b.bytes + how.least || how.least != how.most))
        findings.report(ViolationKind::Structure, p, phase, now, nullptr,
                        {"leaves gaps in what it writes through ", findings.describe(buffer)});
      for (uint32_t other = 0; other < touched.size(); ++other) {
        const Touched &otherHow = touched[other];
        const BufferDesc &o = s.buffers[other];
        if (other == buffer || !otherHow.any || (!how.written && !otherHow.written) || o.space != b.space ||
            o.index != b.index)
          continue;
        const int64_t way = (loop.trips - 1) * how.stride, otherWay = (loop.trips - 1) * otherHow.stride;
        const bool meets = begin(buffer) < end(other) + otherWay && begin(other) < end(buffer) + way;
        // Loops around this one that move both move them together.
        const int64_t common = movedBy[buffer] == movedBy[other] ? shift[buffer].further : 0;
        const bool together =
            otherHow.stride == how.stride &&
            std::max(end(buffer), end(other)) - common - std::min(begin(buffer), begin(other)) <= how.stride;
        if (meets && !together)
          findings.report(ViolationKind::Race, p, phase, now, nullptr,
                          {"moves ", findings.describe(buffer), " over ", findings.describe(other),
                           ", which it touches in other iterations"});
      }
    }
  }

  void checkOutputs() {
    for (uint32_t i = 0; i < s.outputs.size() && !findings.full(); ++i) {
      BufferDesc whole{.space = Space::Output, .index = i};
      for (const auto &[start, seg] : *historyOf(whole))
        if (!seg.written) {
          findings.add({.kind = ViolationKind::OutputIncomplete,
                        .message = concat("step: nothing writes bytes ", start, " to ", seg.end, " of output ", i, " '",
                                          s.outputs[i].name, "'")});
          break;
        }
    }
  }

  const Schedule &s;
  ScheduleFindings findings;
  Spaces spaces;
  std::vector<uint32_t> within;       ///< by stream that runs bodies: the first of the streams that these have
  std::vector<uint32_t> issued;       ///< by stream
  std::vector<uint32_t> earlierCalls; ///< likewise, before this call
  /// Where a buffer is at this point of the walk: behind its own offset, and so many bytes further on as well.
  struct Shift {
    int64_t by = 0, further = 0;
  };
  std::vector<Shift> shift; ///< by buffer; empty without bodies
  /// By buffer: loops that move it now, and strides.
  std::vector<std::vector<std::pair<uint32_t, int64_t>>> movedBy;
  std::vector<int64_t> reach; ///< by buffer, in forEachAccess: how far the loops in between move it
};

} // namespace

std::vector<Violation> verifySchedule(const Schedule &schedule, size_t limit) {
  if (limit == 0)
    limit = 1;
  if (schedule.dims.empty())
    return Verifier(schedule, limit).run();
  // For the least and for typical sizes. Those of a call are verified when it comes (Context).
  auto broken = [&](std::initializer_list<MessagePart> what) {
    ScheduleFindings findings(schedule, 1);
    findings.structure(what);
    return findings.take();
  };
  dim::Values least, typical;
  for (int64_t symbol : schedule.dims) {
    if (!dim::isSymbol(symbol) || !least.bind(symbol, dim::bounds(symbol).lo))
      return broken({"a dimension stands twice, or has no name"});
    typical.bind(symbol, dim::hint(symbol));
    const bool isInputs = std::any_of(schedule.inputs.begin(), schedule.inputs.end(), [&](const ValueDesc &input) {
      return std::find(input.type.shape.begin(), input.type.shape.end(), symbol) != input.type.shape.end();
    });
    if (!isInputs)
      return broken({"'", dim::symbolName(symbol), "' is the size of no input's dimension"});
  }
  for (const dim::Values *values : {&least, &typical}) {
    try {
      const Schedule numbers = instantiate(schedule, *values);
      if (auto found = Verifier(numbers, limit).run(); !found.empty())
        return found;
    } catch (const Error &error) {
      return broken({error.message()});
    }
  }
  return {};
}

} // namespace tressel::runtime
