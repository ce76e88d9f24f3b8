// Makes the program with numbers for one rank of a mesh, and the program of all ranks for one process.
#include "ScheduleFindings.h"
#include "ScheduleSizes.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Ranks.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tressel::runtime {

Schedule scheduleOfRank(const Schedule &schedule, int64_t rank, const dim::Values &values) {
  dim::Values known = values;
  for (const MeshAxis &axis : schedule.mesh)
    if (const int64_t size = dim::evaluate(axis.size, known); size < 1)
      throwError<Error>("axis '", axis.name, "' of '", schedule.name, "' has an impossible size of ", size);
    else if (dim::isSymbol(axis.size) && (size < dim::bounds(axis.size).lo || size > dim::bounds(axis.size).hi))
      throwError<Error>("axis '", axis.name, "' of '", schedule.name, "' is ", size, ", but lies between ",
                        dim::bounds(axis.size).lo, " and ", dim::bounds(axis.size).hi);
  bindRank(known, schedule.mesh, rank);
  Schedule out = schedule;
  forEachSize(out, [&](Size &size) {
    if (!size.isNumber())
      size = dim::substitute(size, known);
  });
  return out;
}

namespace {

/// Builds the tables of all ranks: entry i of rank r is entry i of the form, offset by r times the form's number of
/// entries.
class Expander {
public:
  Expander(const Schedule &schedule, const dim::Values &values) : form(schedule) {
    const Schedule first = scheduleOfRank(form, 0, values);
    mesh = first.mesh;
    const int64_t n = numRanks(mesh);
    if (n > static_cast<int64_t>(kMaxStreams / std::max<size_t>(form.streams.size(), 1)))
      throwError<InputError>("'", form.name, "' has ", n, " ranks of ", form.streams.size(),
                             " streams, and one process has at most ", kMaxStreams, " streams");
    for (int64_t r = 0; r < n; ++r)
      ranks.push_back(scheduleOfRank(form, r, values));
    for (const StreamDesc &stream : form.streams)
      if (stream.device.kind == DeviceKind::Gpu)
        accelerators = std::max<uint32_t>(accelerators, stream.device.index + 1u);
    for (const ArenaDesc &arena : form.arenas)
      if (arena.device.kind == DeviceKind::Gpu)
        accelerators = std::max<uint32_t>(accelerators, arena.device.index + 1u);
    for (const StateDesc &state : form.states)
      if (state.home.device.kind == DeviceKind::Gpu)
        accelerators = std::max<uint32_t>(accelerators, state.home.device.index + 1u);
    if (accelerators * ranks.size() > UINT16_MAX)
      throwError<InputError>("'", form.name, "' for ", n, " ranks needs more accelerators than there are numbers for");
  }

  Schedule run() {
    out.name = form.name;
    out.constants = form.constants;
    out.kernels = ranks[0].kernels;
    out.locations = form.locations;
    out.dims = form.dims;
    out.inFlight = form.inFlight;
    for (size_t r = 0; r < ranks.size(); ++r)
      addTables(r);
    addCollectives();
    out.prepare = expand([](const Schedule &s) -> const CommandList & { return s.prepare; });
    out.step = expand([](const Schedule &s) -> const CommandList & { return s.step; });
    reduceWaits(out.prepare, out.streams.size());
    reduceWaits(out.step, out.streams.size());
    for (CommandList &body : out.bodies)
      reduceWaits(body, out.streams.size());
    return std::move(out);
  }

private:
  using ProgramOf = std::function<const CommandList &(const Schedule &)>;

  //--- Tables -------------------------------------------------------------------------------------------------------
  DeviceRef deviceOf(DeviceRef local, size_t rank) const {
    return local.kind == DeviceKind::Cpu
               ? local
               : DeviceRef{local.kind, static_cast<uint16_t>(rank * accelerators + local.index)};
  }
  static std::string nameOf(const std::string &name, size_t rank) { return concat("rank", rank, ".", name); }

  void addTables(size_t r) {
    const Schedule &s = ranks[r];
    for (const StreamDesc &stream : s.streams)
      out.streams.push_back({deviceOf(stream.device, r), stream.kind, nameOf(stream.name, r)});
    for (const ArenaDesc &arena : s.arenas)
      out.arenas.push_back({deviceOf(arena.device, r), arena.memory, arena.bytes});
    for (BufferDesc b : s.buffers) {
      const size_t per = b.space == Space::Arena    ? s.arenas.size()
                         : b.space == Space::Input  ? s.inputs.size()
                         : b.space == Space::Output ? s.outputs.size()
                         : b.space == Space::State  ? s.states.size()
                                                    : 0;
      b.index += static_cast<uint32_t>(r * per);
      out.buffers.push_back(b);
    }
    auto addValues = [&](const std::vector<ValueDesc> &from, std::vector<ValueDesc> &to) {
      for (ValueDesc value : from) {
        value.name = nameOf(value.name, r);
        to.push_back(std::move(value));
      }
    };
    addValues(s.inputs, out.inputs);
    addValues(s.outputs, out.outputs);
    for (StateDesc state : s.states) {
      state.name = nameOf(state.name, r);
      state.home.device = deviceOf(state.home.device, r);
      out.states.push_back(std::move(state));
    }
    for (size_t k = 0; k < s.kernels.size(); ++k) {
      const KernelDesc &mine = s.kernels[k], &first = out.kernels[k];
      if (mine.range != first.range || mine.grain != first.grain || mine.scratchBytes != first.scratchBytes ||
          mine.flops != first.flops || mine.bytes != first.bytes)
        throwError<InputError>("kernel '", mine.symbol, "' of '", form.name, "' has other sizes on rank ", r,
                               " than on rank 0: one process cannot run it for both");
    }
    out.peakBytes += s.peakBytes;
    out.peakLowerBoundBytes += s.peakLowerBoundBytes;
  }

  /// By collective and rank: the collective of the new program, and the rank's member number in it.
  struct Membership {
    uint32_t collective = 0, member = 0;
  };
  void addCollectives() {
    for (const CollectiveDesc &c : form.collectives) {
      auto &of = memberships.emplace_back(ranks.size());
      if (c.axes.empty()) { // a collective among streams of one rank: each rank has its own
        for (size_t r = 0; r < ranks.size(); ++r) {
          CollectiveDesc mine = c;
          for (uint32_t &member : mine.members)
            member += static_cast<uint32_t>(r * form.streams.size());
          mine.name = nameOf(c.name, r);
          of[r].collective = static_cast<uint32_t>(out.collectives.size());
          out.collectives.push_back(std::move(mine));
        }
        continue;
      }
      // A group: ranks with equal coordinates on the other axes, in rank order.
      std::map<int64_t, uint32_t> groups;
      for (size_t r = 0; r < ranks.size(); ++r) {
        int64_t rest = static_cast<int64_t>(r), key = 0, scale = 1;
        for (size_t axis = mesh.size(); axis-- > 0; rest /= mesh[axis].size.number())
          if (std::ranges::find(c.axes, axis) == c.axes.end()) {
            key += scale * (rest % mesh[axis].size.number());
            scale *= mesh[axis].size.number();
          }
        const auto [at, isNew] = groups.try_emplace(key, static_cast<uint32_t>(out.collectives.size()));
        if (isNew) {
          out.collectives.push_back({c.name, {}, c.kind, c.reduction, c.root, {}});
          if (numRanks(mesh, c.axes) != numRanks(mesh))
            out.collectives.back().name = concat(c.name, ".", groups.size() - 1);
        }
        auto &members = out.collectives[at->second].members;
        of[r] = {at->second, static_cast<uint32_t>(members.size())};
        members.push_back(static_cast<uint32_t>(r * form.streams.size() + c.members[0]));
        for (size_t k = 0; k + 1 < members.size(); ++k)
          if (out.streams[members[k]].device == out.streams[members.back()].device)
            throwError<InputError>("collective '", c.name, "' of '", form.name, "' runs on ",
                                   runtime::nameOf(out.streams[members[k]].device),
                                   ", which several ranks of one process share: only accelerators are a rank's own");
      }
    }
  }

  //--- Command lists
  //-----------------------------------------------------------------------------------------------------
  /// A command list of all ranks under construction.
  struct Draft {
    CommandList list;
    std::vector<std::vector<uint32_t>> at; ///< by command of the form and rank: the command of the list
    std::vector<int64_t> last;             ///< by stream: its latest command, or -1
    std::vector<int64_t> barrier;          ///< by stream: the command that its next one must wait for, or -1
  };

  CommandList expand(const ProgramOf &listOf) {
    const CommandList &p = listOf(form);
    Draft d;
    d.last.assign(out.streams.size(), -1);
    d.barrier.assign(out.streams.size(), -1);
    d.at.assign(p.commands.size(), std::vector<uint32_t>(ranks.size()));
    for (size_t i = 0; i < p.commands.size(); ++i) {
      const Command &c = p.commands[i];
      if (c.kind == CommandKind::Collective && !form.collectives[c.kernel].axes.empty())
        collective(d, listOf, i);
      else if (c.kind == CommandKind::Collective)
        local(d, listOf, i);
      else if (holdsCollectives(c))
        together(d, listOf, i);
      else
        for (size_t r = 0; r < ranks.size(); ++r)
          d.at[i][r] = clone(d, listOf(ranks[r]), i, r);
    }
    return std::move(d.list);
  }
  /// The body of one rank, which contains no collectives over axes.
  CommandList bodyOf(uint32_t body, size_t rank) {
    const CommandList &p = ranks[rank].bodies[body];
    Draft d;
    d.last.assign(out.streams.size(), -1);
    d.barrier.assign(out.streams.size(), -1);
    d.at.assign(p.commands.size(), std::vector<uint32_t>(ranks.size()));
    for (size_t i = 0; i < p.commands.size(); ++i)
      d.at[i][rank] = clone(d, p, i, rank);
    return std::move(d.list);
  }

  bool holdsCollectives(const Command &c) const {
    for (uint32_t k = 0; k < numBodies(c.kind); ++k)
      for (const Command &inner : form.bodies[c.body + k].commands)
        if ((inner.kind == CommandKind::Collective && !form.collectives[inner.kernel].axes.empty()) ||
            holdsCollectives(inner))
          return true;
    return false;
  }

  uint32_t append(Draft &d, Command c, std::span<const Operand> operands, std::span<const Size> scalars,
                  std::vector<Wait> waits) {
    if (int64_t &barrier = d.barrier[c.stream]; barrier >= 0) {
      waits.push_back({static_cast<uint32_t>(barrier), WaitReason::Rank});
      barrier = -1;
    }
    CommandList &p = d.list;
    c.firstOperand = static_cast<uint32_t>(p.operands.size());
    c.numOperands = static_cast<uint16_t>(operands.size());
    p.operands.insert(p.operands.end(), operands.begin(), operands.end());
    c.firstScalar = static_cast<uint32_t>(p.scalars.size());
    c.numScalars = static_cast<uint16_t>(scalars.size());
    p.scalars.insert(p.scalars.end(), scalars.begin(), scalars.end());
    c.firstWait = static_cast<uint32_t>(p.waits.size());
    c.numWaits = static_cast<uint16_t>(waits.size());
    p.waits.insert(p.waits.end(), waits.begin(), waits.end());
    d.last[c.stream] = static_cast<int64_t>(p.commands.size());
    p.commands.push_back(c);
    return static_cast<uint32_t>(p.commands.size() - 1);
  }
  std::vector<Operand> operandsFor(const CommandList &p, size_t i, size_t rank) const {
    std::vector<Operand> operands(operandsOf(p, i).begin(), operandsOf(p, i).end());
    for (Operand &o : operands)
      o.buffer += static_cast<uint32_t>(rank * form.buffers.size());
    return operands;
  }
  std::vector<Wait> waitsFor(const Draft &d, const CommandList &p, size_t i, size_t rank) const {
    std::vector<Wait> waits;
    for (const Wait &w : waitsOf(p, i))
      waits.push_back({d.at[w.command][rank], w.reason});
    return waits;
  }
  uint16_t streamFor(uint16_t local, size_t rank) const {
    return static_cast<uint16_t>(rank * form.streams.size() + local);
  }

  uint32_t clone(Draft &d, const CommandList &p, size_t i, size_t rank) {
    Command c = p.commands[i];
    c.stream = streamFor(c.stream, rank);
    if (c.kind == CommandKind::Collective)
      c.kernel = memberships[c.kernel][rank].collective;
    if (hasBodies(c.kind)) {
      const uint32_t from = c.body, count = numBodies(c.kind);
      c.body = static_cast<uint32_t>(out.bodies.size());
      out.bodies.resize(c.body + count);
      for (uint32_t k = 0; k < count; ++k) {
        CommandList body = bodyOf(from + k, rank); // `out.bodies` may be reallocated meanwhile
        out.bodies[c.body + k] = std::move(body);
      }
    }
    const std::span scalars(p.scalars.data() + p.commands[i].firstScalar, p.commands[i].numScalars);
    return append(d, c, operandsFor(p, i, rank), scalars, waitsFor(d, p, i, rank));
  }

  /// A collective over axes: the parts of each group become consecutive.
  void collective(Draft &d, const ProgramOf &listOf, size_t i) {
    const auto &of = memberships[listOf(form).commands[i].kernel];
    std::map<std::pair<uint32_t, uint32_t>, size_t> order; // by group and member: the rank
    for (size_t r = 0; r < ranks.size(); ++r)
      order[{of[r].collective, of[r].member}] = r;
    for (const auto &[part, r] : order) {
      const CommandList &p = listOf(ranks[r]);
      Command c = p.commands[i];
      c.stream = streamFor(c.stream, r);
      c.kernel = part.first;
      std::vector<Operand> operands = operandsFor(p, i, r);
      if (const CollectiveDesc &desc = out.collectives[part.first];
          desc.kind == CollectiveKind::Broadcast && part.second != desc.root)
        operands.erase(operands.begin());
      d.at[i][r] = append(d, c, operands, {}, waitsFor(d, p, i, r));
    }
  }
  /// A collective among streams of one rank, whose parts are consecutive already: copied rank by rank.
  void local(Draft &d, const ProgramOf &listOf, size_t i) {
    const auto &commands = listOf(form).commands;
    const CollectiveDesc &desc = form.collectives[commands[i].kernel];
    if (commands[i].stream != desc.members[0])
      return; // copied with the first part
    for (size_t r = 0; r < ranks.size(); ++r)
      for (size_t m = 0; m < desc.members.size(); ++m)
        d.at[i + m][r] = clone(d, listOf(ranks[r]), i + m, r);
  }

  /// A loop that contains collectives over axes becomes one loop of all ranks, on a stream of rank 0.
  void together(Draft &d, const ProgramOf &listOf, size_t i) {
    const CommandList &first = listOf(ranks[0]);
    Command c = first.commands[i];
    auto refuse = [&](const char *what) {
      const Location &l = form.locations[c.loc];
      throwError<InputError>("'", form.name, "' has a collective over axes in a ", what,
                             l.file.empty() ? "" : concat(" at ", l.file, ":", l.line),
                             ", which cannot be run for all ranks by one process");
    };
    if (c.kind != CommandKind::Loop)
      refuse(c.kind == CommandKind::Branch ? "branch" : "while");
    if (c.numOperands == c.numScalars)
      refuse("loop that writes its number");
    const uint32_t from = c.body;
    c.body = static_cast<uint32_t>(out.bodies.size());
    out.bodies.resize(c.body + 1u);
    CommandList body = expand([from](const Schedule &s) -> const CommandList & { return s.bodies[from]; });
    out.bodies[c.body] = std::move(body);
    std::vector<Operand> operands;
    std::vector<Size> scalars{first.scalars[c.firstScalar]};
    std::vector<Wait> waits;
    for (size_t r = 0; r < ranks.size(); ++r) {
      const CommandList &p = listOf(ranks[r]);
      const auto mine = operandsFor(p, i, r);
      operands.insert(operands.end(), mine.begin(), mine.end());
      const auto strides = p.scalars.begin() + p.commands[i].firstScalar + 1;
      scalars.insert(scalars.end(), strides, strides + p.commands[i].numScalars - 1);
      for (const Wait &w : waitsFor(d, p, i, r))
        waits.push_back(w);
      if (const uint16_t stream = streamFor(c.stream, r); r > 0) {
        if (d.last[stream] >= 0)
          waits.push_back({static_cast<uint32_t>(d.last[stream]), WaitReason::Rank});
        if (d.barrier[stream] >= 0)
          waits.push_back({static_cast<uint32_t>(d.barrier[stream]), WaitReason::Rank});
      }
    }
    c.stream = streamFor(c.stream, 0);
    const uint32_t loop = append(d, c, operands, scalars, std::move(waits));
    for (size_t r = 0; r < ranks.size(); ++r) {
      d.at[i][r] = loop;
      if (r > 0)
        d.barrier[streamFor(listOf(ranks[r]).commands[i].stream, r)] = loop;
    }
  }

  const Schedule &form;
  std::vector<MeshAxis> mesh;
  std::vector<Schedule> ranks; ///< with numbers
  uint32_t accelerators = 0;   ///< accelerators of each rank
  std::vector<std::vector<Membership>> memberships;
  Schedule out;
};

} // namespace

Schedule expandRanks(const Schedule &schedule, const dim::Values &values) {
  return schedule.mesh.empty() ? schedule : Expander(schedule, values).run();
}

} // namespace tressel::runtime
