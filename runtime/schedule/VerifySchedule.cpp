// The second part of the verifier: walks the command lists over interval maps, which divide each space into segments of
// bytes with equal history (ByteHistory.h).
#include "tressel/runtime/VerifySchedule.h"

#include "RankRules.h"
#include "ScheduleFindings.h"
#include "ScheduleSizes.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Ranks.h"

#include <optional>
#include <set>

namespace tressel::runtime {
namespace {

class Verifier {
public:
  /// `rules`: from the symbolic form; null without a mesh.
  Verifier(const Schedule &schedule, size_t limit, const RankRules *rules)
      : s(schedule), findings(schedule, limit), rules(rules) {}

  std::vector<Violation> run() {
    const StructureResult structure = checkStructure(s, findings);
    if (!structure.tables)
      return findings.take();
    shift.assign(s.bodies.empty() ? 0 : s.buffers.size(), {});
    movedBy.resize(shift.size());
    reach.resize(shift.size());
    spaces.resize(firstState() + s.states.size());
    forget(Space::State, s.states.size());
    if (structure.prepare && structure.step)
      findCollectives();
    if (structure.prepare)
      walkPhase(s.prepare, Phase::Prepare);
    if (structure.prepare && structure.step)
      walkPhase(s.step, Phase::Step);
    return findings.take();
  }

private:
  /// The history of a space; null for spaces that are never written, which need no checks.
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
  /// Resets all spaces but states: their bytes from another command list or call are not valid.
  void keepStates() {
    forget(Space::Arena, s.arenas.size());
    forget(Space::Output, s.outputs.size());
  }

  bool sameRange(uint32_t a, uint32_t b) const {
    return s.buffers[a].offset == s.buffers[b].offset && s.buffers[a].bytes == s.buffers[b].bytes;
  }

  void read(const CommandList &p, Phase phase, const Epoch &now, const Clock &clock) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes != 0 ? historyOf(b) : nullptr;
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

  /// `uniform`: the command writes the same bytes on all ranks.
  void write(const CommandList &p, Phase phase, const Epoch &now, const Clock &clock, bool uniform) {
    const BufferDesc &b = s.buffers[now.buffer];
    IntervalMap *map = b.bytes != 0 ? historyOf(b) : nullptr;
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
    // The range has one history from here on.
    Segment merged{.end = end, .written = true, .initial = false, .uniform = uniform, .write = now};
    map->erase(first, it);
    map->emplace(begin, std::move(merged));
    if (rules && rules->places[now.buffer]) // other ranks write other bytes of the space
      for (auto &[start, seg] : *map)
        seg.uniform = false;
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

  /// The bytes that an access touches at this point of the walk. A moving buffer has another range in each iteration;
  /// in the walk that stands for iterations 1 and on, its range is the union of theirs.
  std::pair<int64_t, int64_t> rangeOf(const CommandList &p, Phase phase, const Epoch &now) {
    const BufferDesc &b = s.buffers[now.buffer];
    if (shift.empty() && *spaceBytes(s, b))
      return {b.offset.number(), (b.offset + b.bytes).number()};
    const Shift moved = shift.empty() ? Shift() : shift[now.buffer];
    int64_t begin = 0, end = 0;
    if (__builtin_add_overflow(b.offset.number(), moved.by, &begin) ||
        __builtin_add_overflow(begin, b.bytes.number(), &end) || __builtin_add_overflow(end, moved.further, &end) ||
        end > *spaceBytes(s, b)) {
      findings.report(ViolationKind::Structure, p, phase, now, nullptr,
                      {"moves ", findings.describe(now.buffer), " out of its ", nameOf(b.space)});
      return {0, 0};
    }
    return {begin, end};
  }

  void walkPhase(const CommandList &p, Phase phase) {
    keepStates();
    lastParts.clear();
    for (IntervalMap &map : spaces) // prepare has finished when the step begins, so its writes count as initial
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
    // Calls in flight are ordered within each stream and share only states. Calls further apart share an arena of the
    // ring, which orders them.
    for (uint32_t call = 0; call < (phase == Phase::Step ? s.inFlight : 1); ++call) {
      earlierCalls = issued;
      if (call > 0)
        keepStates();
      walk(p, phase, 0, streamClocks, Clock(numClocks, 0));
    }
    if (phase == Phase::Step)
      checkOutputs();
  }
  /// Assigns clocks to the streams of bodies. Each stream that runs bodies has a set of its own, since bodies on two
  /// streams may run concurrently.
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

  /// Walks a command list on streams from `firstStream` on. `begin` is the clock at its begin; returns the clock when
  /// all its commands are finished.
  Clock walk(const CommandList &p, Phase phase, uint32_t firstStream, const Clock &begin) {
    std::vector<Clock> streamClocks(s.streams.size(), begin);
    return walk(p, phase, firstStream, streamClocks, begin);
  }
  Clock walk(const CommandList &p, Phase phase, uint32_t firstStream, std::vector<Clock> &streamClocks, Clock end) {
    // The clock of a command is kept until the last command that waits for it was visited.
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
      else if (p.commands[i].kind == CommandKind::Collective)
        part(p, phase, i, stream, clock);
      else
        access(p, phase, i, operandsOf(p, i), stream, clock);
      if (waiters[i])
        finished[i] = clock;
    }
    for (const Clock &clock : streamClocks)
      join(end, clock);
    return end;
  }

  /// One run of command i with these operands: all reads before all writes. The command counts as finished afterwards.
  Epoch access(const CommandList &p, Phase phase, size_t i, std::span<const Operand> operands, uint32_t stream,
               Clock &clock) {
    Epoch now{stream, issued[stream]++, static_cast<uint32_t>(i), 0, &p};
    for (const Operand &o : operands)
      if (o.access != Access::Write) {
        now.buffer = o.buffer;
        read(p, phase, now, clock);
      }
    const bool uniform = rules && makesUniform(p, phase, i);
    for (const Operand &o : operands)
      if (o.access != Access::Read) {
        now.buffer = o.buffer;
        write(p, phase, now, clock, uniform);
      }
    clock[stream] = issued[stream];
    return now;
  }

  //--- Collectives --------------------------------------------------------------------------------------------------
  /// The parts on a device run one at a time, so they must be ordered by waits.
  void part(const CommandList &p, Phase phase, size_t i, uint32_t stream, Clock &clock) {
    const DeviceRef device = s.streams[p.commands[i].stream].device;
    LastPart *last = findLast(lastParts, device);
    if (last && !before(last->epoch, clock))
      deadlock(p, phase, i, &last->epoch,
               {" runs collective '", s.collectives[p.commands[i].kernel].name, "' in no order with ",
                findings.place(*last->epoch.list, phase, last->epoch.command),
                last->epoch.position < earlierCalls[last->epoch.stream] ? " of an earlier call" : "",
                hasBodies(commandOf(last->epoch).kind)
                    ? ", which runs collectives"
                    : concat(", collective '", s.collectives[commandOf(last->epoch).kernel].name, "'"),
                ": some devices may begin with the one and some with the other, and wait for each other for ever. Put "
                "them on one stream "
                "of ",
                nameOf(device), ", or let the later one wait for the earlier one there"});
    for (const Operand &o : operandsOf(p, i))
      if (rules && rules->sizes[o.buffer] && !s.collectives[p.commands[i].kernel].axes.empty())
        findings.structure(p, phase, i, {"moves ", findings.describe(o.buffer), ", whose size depends on the rank"});
    const Epoch now = access(p, phase, i, operandsOf(p, i), stream, clock);
    if (last)
      last->epoch = now;
    else
      lastParts.push_back({device, now});
  }
  static const Command &commandOf(const Epoch &epoch) { return epoch.list->commands[epoch.command]; }
  void deadlock(const CommandList &p, Phase phase, size_t i, const Epoch *other, std::initializer_list<MessagePart> what) {
    if (findings.full())
      return;
    Violation v{.kind = ViolationKind::Deadlock,
                .phase = phase,
                .command = static_cast<int64_t>(i),
                .body = findings.bodyOf(p)};
    v.loc = p.commands[i].loc;
    if (other) {
      v.otherCommand = other->command;
      v.otherBody = findings.bodyOf(*other->list);
      v.otherLoc = commandOf(*other).loc;
    }
    v.message = findings.place(p, phase, static_cast<int64_t>(i)) + joinParts(what);
    findings.add(std::move(v));
  }
  /// Finds the bodies that contain collectives over axes. A body follows the list that runs it, so one pass backward is
  /// enough.
  void findCollectives() {
    overAxes.assign(s.bodies.size(), false);
    for (size_t b = s.bodies.size(); b-- > 0;)
      for (const Command &c : s.bodies[b].commands)
        overAxes[b] = overAxes[b] || (c.kind == CommandKind::Collective && !s.collectives[c.kernel].axes.empty()) ||
                      holdsCollectives(c);
  }
  bool holdsCollectives(const Command &c) const {
    for (uint32_t k = 0; k < numBodies(c.kind); ++k)
      if (overAxes[c.body + k])
        return true;
    return false;
  }

  //--- Ranks --------------------------------------------------------------------------------------------------------
  /// Whether the command writes the same bytes on all ranks.
  bool makesUniform(const CommandList &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    if (c.kind == CommandKind::Copy)
      return isUniform(p, phase, i, operandsOf(p, i)[0].buffer);
    if (c.kind != CommandKind::Collective)
      return c.kind == CommandKind::Fill;
    const CollectiveDesc &desc = s.collectives[c.kernel];
    return desc.kind != CollectiveKind::ReduceScatter && numRanks(s.mesh, desc.axes) == numRanks(s.mesh);
  }
  bool isUniform(const CommandList &p, Phase phase, size_t i, uint32_t buffer) {
    const BufferDesc &b = s.buffers[buffer];
    if (rules->places[buffer])
      return false;
    IntervalMap *map = historyOf(b);
    if (!map || b.bytes == 0)
      return b.space == Space::Constant || b.bytes == 0;
    const auto [begin, end] = rangeOf(p, phase, {0, 0, static_cast<uint32_t>(i), buffer});
    auto it = map->upper_bound(begin);
    for (it = it == map->begin() ? it : std::prev(it); it != map->end() && it->first < end; ++it)
      if (!it->second.uniform)
        return false;
    return true;
  }
  /// Bytes written since then are not uniform: some ranks may not have written them, or may have written them in
  /// another iteration.
  void forgetUniform(const std::vector<uint32_t> &since) {
    for (IntervalMap &map : spaces)
      for (auto &[start, seg] : map)
        if (!seg.initial && seg.write.position >= since[seg.write.stream])
          seg.uniform = false;
  }
  /// Reports a command with collectives in its bodies if the ranks may run its bodies a different number of times.
  /// `same`: the flag or trip count is equal on all ranks.
  void decided(const CommandList &p, Phase phase, size_t i, bool same) {
    if (rules && !same && holdsCollectives(p.commands[i]))
      deadlock(p, phase, i, nullptr,
               {p.commands[i].kind == CommandKind::Loop
                    ? " runs collectives as often as the rank says"
                    : " decides over collectives by a flag that may differ between ranks: some would wait for others "
                      "for ever. Make the flag "
                      "by a collective over the whole mesh, or copy it from what one has made"});
  }

  //--- Bodies -------------------------------------------------------------------------------------------------------
  void walkBodies(const CommandList &p, Phase phase, uint32_t stream, size_t i, Clock &clock) {
    const Command &c = p.commands[i];
    // first stream of the bodies; accesses of the command between its bodies count there too
    const uint32_t inner = within[stream];
    auto body = [&](uint32_t k, const Clock &begin) { return walk(s.bodies[c.body + k], phase, inner, begin); };
    const std::vector<uint32_t> since = rules ? issued : std::vector<uint32_t>();
    bool same = true; // the deciding flag is equal on all ranks
    auto readFlag = [&](Clock &at) {
      access(p, phase, i, operandsOf(p, i), inner, at);
      same = same && (!rules || isUniform(p, phase, i, operandsOf(p, i)[0].buffer));
    };
    const LastParts partsBefore = lastParts;
    LastParts partsOfFirst;
    auto end = [&] {
      const Epoch now = access(p, phase, i, {}, stream, clock);
      endParts(partsBefore, partsOfFirst, now);
      decided(p, phase, i, same);
      return now;
    };
    // Merges the states after the two alternatives.
    auto alternatives = [&](Spaces &other) {
      mergeAlternatives(spaces, other, end());
      if (rules && !same)
        forgetUniform(since);
    };
    switch (c.kind) {
    case CommandKind::Branch: {
      readFlag(clock);
      Spaces other = spaces;
      Clock both = body(0, clock);
      std::swap(spaces, other);
      partsOfFirst = std::exchange(lastParts, partsBefore);
      join(both, body(1, clock));
      clock = std::move(both);
      alternatives(other);
      break;
    }
    case CommandKind::While: {
      clock = body(0, clock);
      readFlag(clock);
      Spaces none = spaces; // the state if the body never runs
      for (int iteration = 0; iteration < 2; ++iteration) {
        if (rules && iteration == 1) // stands for iterations 1 and on
          forgetUniform(since);
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
        if (rules && iteration == 1)
          forgetUniform(since);
        if (iteration == 1)
          move(loop, 1);
        access(p, phase, i, index, inner, clock);
        clock = body(0, clock);
        if (iteration == 1)
          move(loop, -1);
      }
      same = !rules || !rules->loops[c.body];
      end();
      if (!same)
        forgetUniform(since);
    }
    }
  }

  /// Moves the buffers from their range of iteration 0 to the union of the ranges of iterations 1 and on (sign 1), or
  /// back (-1).
  void move(const LoopParts &loop, int64_t sign) {
    for (size_t m = 0; m < loop.moving.size(); ++m) {
      Shift &moved = shift[loop.moving[m].buffer];
      moved.by += sign * loop.stride(m);
      moved.further += sign * (loop.trips - 2) * loop.stride(m);
      auto &by = movedBy[loop.moving[m].buffer];
      sign > 0 ? by.push_back({loop.body, loop.stride(m)}) : by.pop_back();
    }
  }

  /// A buffer that the bodies of a command access. `reach`: bytes by which loops in these bodies move it.
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
        // Operands that a loop moves are named by the loop, not accessed.
        for (const Operand &o : operandsOf(body, c).first(body.commands[c].numOperands - loop.moving.size()))
          touches.push_back({o.buffer, o.access != Access::Read, reach[o.buffer]});
        if (body.commands[c].kind == CommandKind::Loop && loop.trips == 0)
          continue;
        for (size_t m = 0; m < loop.moving.size(); ++m)
          reach[loop.moving[m].buffer] += (loop.trips - 1) * loop.stride(m);
        collect(body, c, touches);
        for (size_t m = 0; m < loop.moving.size(); ++m)
          reach[loop.moving[m].buffer] -= (loop.trips - 1) * loop.stride(m);
      }
    }
  }

  /// Checks that a moving buffer overlaps no write of another iteration: every access that overlaps its path must move
  /// by the same stride and stay within the stride. Then walking two iterations is enough. Also checks that the writes
  /// of all iterations leave no gap.
  void checkMoving(const CommandList &p, Phase phase, size_t i, const LoopParts &loop) {
    if (loop.moving.empty())
      return;
    struct Touched {
      bool any = false, written = false;
      /// bytes by which inner loops move it: the least of the writes, the most of all accesses
      int64_t stride = 0, least = INT64_MAX, most = 0;
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
        t.stride = loop.stride(m);
    auto begin = [&](uint32_t buffer) { return s.buffers[buffer].offset.number() + shift[buffer].by; };
    auto end = [&](uint32_t buffer) {
      return begin(buffer) + s.buffers[buffer].bytes.number() + shift[buffer].further + touched[buffer].most;
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
        // Enclosing loops that move both buffers move them alike, so that part of the range does not count.
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

  /// The latest part of a collective on a device, or the command whose body contains it.
  struct LastPart {
    DeviceRef device;
    Epoch epoch;
  };
  using LastParts = std::vector<LastPart>;
  static LastPart *findLast(LastParts &parts, DeviceRef device) {
    for (LastPart &last : parts)
      if (last.device == device)
        return &last;
    return nullptr;
  }
  /// After a command with bodies, parts run in its bodies count as run by the command, which ends with `end`. `others`:
  /// last parts of the other alternative.
  void endParts(LastParts earlier, const LastParts &others, const Epoch &end) {
    for (const LastPart &other : others)
      if (LastPart *last = findLast(lastParts, other.device); !last)
        lastParts.push_back(other);
      else if (LastPart *known = findLast(earlier, other.device); !known || !known->epoch.isSame(other.epoch))
        last->epoch = end;
    for (LastPart &last : lastParts)
      if (LastPart *known = findLast(earlier, last.device); !known || !known->epoch.isSame(last.epoch))
        last.epoch = end;
  }

  const Schedule &s;
  ScheduleFindings findings;
  const RankRules *rules;
  std::vector<bool> overAxes; ///< by body: contains collectives over axes
  LastParts lastParts;        ///< at this point of the walk
  Spaces spaces;
  std::vector<uint32_t> within;       ///< by stream that runs bodies: the first stream of these bodies
  std::vector<uint32_t> issued;       ///< commands issued, by stream
  std::vector<uint32_t> earlierCalls; ///< likewise, before the current call
  /// Position of a buffer at this point of the walk: moved by `by` bytes from its offset, and extended by `further`
  /// bytes.
  struct Shift {
    int64_t by = 0, further = 0;
  };
  std::vector<Shift> shift; ///< by buffer; empty without bodies
  /// By buffer: the loops that move it at this point, with their strides.
  std::vector<std::vector<std::pair<uint32_t, int64_t>>> movedBy;
  std::vector<int64_t> reach; ///< by buffer, in forEachAccess: bytes by which inner loops move it
};

} // namespace

std::vector<Violation> verifySchedule(const Schedule &schedule, size_t limit) {
  if (limit == 0)
    limit = 1;
  // Verifies for the least and the typical sizes, and for the first and the last rank. The sizes of a call are verified
  // when it comes (Context).
  auto broken = [&](std::initializer_list<MessagePart> what) {
    ScheduleFindings findings(schedule, 1);
    findings.structure(what);
    return findings.take();
  };
  if (schedule.dims.empty() && schedule.mesh.empty()) {
    std::optional<Size> open;
    forEachSize(schedule, [&](Size size) {
      if (!size.isNumber())
        open = size;
    });
    if (open)
      return broken({"the size ", *open, " is no number, and the schedule has no dimensions"});
    return Verifier(schedule, limit, nullptr).run();
  }
  if (const std::string fault = meshFault(schedule); !fault.empty())
    return broken({fault});
  const RankRules rules = rankRulesOf(schedule);
  dim::Values least, typical;
  for (Size symbol : schedule.dims) {
    if (!dim::isSymbol(symbol) || !least.bind(symbol, dim::bounds(symbol).lo))
      return broken({"a dimension stands twice, or has no name"});
    typical.bind(symbol, dim::hint(symbol));
    const bool isInputs = std::any_of(schedule.inputs.begin(), schedule.inputs.end(), [&](const ValueDesc &input) {
      return std::find(input.type.shape.begin(), input.type.shape.end(), symbol) != input.type.shape.end();
    });
    if (!isInputs)
      return broken({"'", dim::symbolName(symbol), "' is the size of no input's dimension"});
  }
  for (const MeshAxis &axis : schedule.mesh) {
    if (axis.size.isNumber())
      continue;
    const dim::Bounds bounds = dim::bounds(axis.size);
    if (!least.bind(axis.size, bounds.lo))
      return broken({"'", dim::symbolName(axis.size), "' is the size of an axis and of an input's dimension"});
    typical.bind(axis.size, std::clamp<int64_t>(4, bounds.lo, bounds.hi));
  }
  for (const dim::Values *values : {&least, &typical}) {
    if (values->empty() && values == &typical)
      break; // no symbols: the first pass has covered it
    try {
      for (bool last : {false, true}) {
        if (last && !rules.any)
          break;
        dim::Values all = *values;
        if (rules.any) {
          int64_t ranks = 1;
          for (const MeshAxis &axis : schedule.mesh)
            ranks = std::min(ranks * dim::evaluate(axis.size, all), kMaxRanks);
          bindRank(all, schedule.mesh, last ? ranks - 1 : 0);
        }
        const Schedule numbers = instantiate(schedule, all);
        if (auto found = Verifier(numbers, limit, schedule.mesh.empty() ? nullptr : &rules).run(); !found.empty())
          return found;
      }
    } catch (const Error &error) {
      return broken({error.message()});
    }
  }
  return {};
}

} // namespace tressel::runtime
