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
    deepest = structure.deepest;
    shift.assign(s.bodies.empty() ? 0 : s.buffers.size(), {});
    if (structure.prepare)
      walkPhase(s.prepare, Phase::Prepare);
    if (structure.prepare && structure.step)
      walkPhase(s.step, Phase::Step);
    return findings.take();
  }

private:
  /// The history of a space; null where nobody writes, so that nothing can go wrong.
  IntervalMap *historyOf(const BufferDesc &b, Phase phase) {
    const bool tracked = b.space == Space::Arena || b.space == Space::Output ||
                         (b.space == Space::State && s.states[b.index].kind != StateKind::Parameter);
    if (!tracked)
      return nullptr;
    auto [it, isNew] = spaces.try_emplace(uint64_t(b.space) << 32 | b.index);
    if (isNew)
      if (const int64_t bytes = *spaceBytes(s, b)) {
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
        findings.report(ViolationKind::ReadBeforeWrite, p, phase, now, nullptr,
                        concat("reads ", findings.describe(now.buffer), ", but nothing has written bytes ", it->first,
                               " to ", seg.end));
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
    if (findings.full())
      return;
    if (now.isSame(other))
      return findings.report(ViolationKind::Race, p, phase, now, &other,
                             concat(does, " ", findings.describe(now.buffer), ", which overlaps ",
                                    findings.describe(other.buffer),
                                    " of the same command: a written range may only coincide with one that is read"));
    findings.report(ViolationKind::Race, p, phase, now, &other,
                    concat(does, " ", findings.describe(now.buffer), " without waiting for ",
                           findings.place(*other.program, phase, other.command), ", which ", did, " ",
                           findings.describe(other.buffer)));
  }

  /// The bytes that an access touches at this point of the walk: a moving buffer is elsewhere in each iteration, and in
  /// the walk that stands for all iterations but the first it is everywhere that they find it.
  std::pair<int64_t, int64_t> rangeOf(const Program &p, Phase phase, const Epoch &now) {
    const BufferDesc &b = s.buffers[now.buffer];
    if (shift.empty() && *spaceBytes(s, b))
      return {b.offset, b.offset + b.bytes};
    const Shift moved = shift.empty() ? Shift() : shift[now.buffer];
    int64_t begin = 0, end = 0;
    if (__builtin_add_overflow(b.offset, moved.by, &begin) || __builtin_add_overflow(begin, b.bytes, &end) ||
        __builtin_add_overflow(end, moved.further, &end) || end > *spaceBytes(s, b)) {
      findings.report(ViolationKind::Structure, p, phase, now, nullptr,
                      concat("moves ", findings.describe(now.buffer), " out of its ", nameOf(b.space)));
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
      return findings.structure("too many streams for bodies nested that deep");
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
        findings.report(ViolationKind::Structure, p, phase, now, nullptr,
                        concat("leaves gaps in what it writes through ", findings.describe(buffer)));
      for (const auto &[other, otherHow] : touched) {
        const BufferDesc &o = s.buffers[other];
        if (other == buffer || (!how.written && !otherHow.written) || o.space != b.space || o.index != b.index)
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
                          concat("moves ", findings.describe(buffer), " over ", findings.describe(other),
                                 ", which it touches in other iterations"));
      }
    }
  }

  void checkOutputs() {
    for (uint32_t i = 0; i < s.outputs.size() && !findings.full(); ++i) {
      BufferDesc whole{.space = Space::Output, .index = i};
      for (const auto &[start, seg] : *historyOf(whole, Phase::Step))
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
  uint32_t deepest = 0;         ///< nesting
  std::vector<uint32_t> issued; ///< by stream, those within a stream where streamsWithin says
  /// Where a buffer is at this point of the walk: behind its own offset, and so many bytes further on as well.
  struct Shift {
    int64_t by = 0, further = 0;
  };
  std::vector<Shift> shift; ///< by buffer; empty without bodies
  std::map<uint32_t, std::vector<std::pair<uint32_t, int64_t>>>
      movedBy; ///< by buffer: loops that move it now, and strides
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
