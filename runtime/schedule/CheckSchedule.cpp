// The first part of the verifier: indices, sizes and kinds, before command lists are walked.
#include "ScheduleFindings.h"
#include "ScheduleSizes.h"
#include "tressel/runtime/Ranks.h"

namespace tressel::runtime {
namespace {

class StructureCheck {
public:
  StructureCheck(const Schedule &schedule, ScheduleFindings &findings) : s(schedule), findings(findings) {}

  StructureResult run() {
    checkTables();
    if (!findings.empty())
      return {}; // the checks below need valid tables
    firstLaunch.assign(s.kernels.size(), {});
    bodyOwned.assign(s.bodies.size(), false);
    StructureResult result{.tables = true};
    result.prepare = checkList(s.prepare, Phase::Prepare);
    result.step = checkList(s.step, Phase::Step);
    for (size_t i = 0; i < s.bodies.size() && result.prepare && result.step; ++i)
      if (!bodyOwned[i])
        findings.structure({"body ", i, " belongs to no command"});
    return result;
  }

private:
  //--- Tables -------------------------------------------------------------------------------------------------------
  [[gnu::noinline]] void fault(const char *table, size_t i, MessagePart what) {
    findings.structure({table, " ", i, what});
  }

  void checkTables() {
    if (s.streams.size() > kMaxStreams)
      findings.structure({"more than ", kMaxStreams, " streams"});
    for (size_t i = 0; i < s.streams.size(); ++i)
      if (s.streams[i].kind > StreamKind::Communication || s.streams[i].device.kind > DeviceKind::Gpu)
        fault("stream", i, " is of an unknown kind");
    auto checkHome = [&](const char *table, size_t i, const Home &home) {
      const bool isHost = home.device.kind == DeviceKind::Cpu;
      if (home.memory > MemoryKind::Host || home.device.kind > DeviceKind::Gpu ||
          (!isHost && home.memory != MemoryKind::Device))
        fault(table, i, " lies in memory of an unknown kind");
    };
    int64_t total = 0;
    for (size_t i = 0; i < s.arenas.size(); ++i) {
      checkHome("arena", i, {s.arenas[i].device, s.arenas[i].memory});
      if (s.arenas[i].bytes.number() < 0 || s.arenas[i].bytes.number() > kMaxBytes ||
          (total += s.arenas[i].bytes.number()) > kMaxBytes) {
        findings.structure({"arena ", i, " has an impossible size of ", s.arenas[i].bytes, " bytes"});
        return;
      }
    }
    auto checkType = [&](const char *table, size_t i, const TensorType &type) {
      if (!typeBytes(type))
        fault(table, i, " has an impossible type");
    };
    auto checkValue = [&](const char *table, size_t i, const ValueDesc &value) {
      checkType(table, i, value.type);
      checkHome(table, i, value.home);
    };
    for (size_t i = 0; i < s.inputs.size(); ++i)
      checkValue("input", i, s.inputs[i]);
    for (size_t i = 0; i < s.outputs.size(); ++i)
      checkValue("output", i, s.outputs[i]);
    for (size_t i = 0; i < s.states.size(); ++i) {
      checkType("state", i, s.states[i].type);
      if (s.states[i].kind > StateKind::Derived)
        fault("state", i, " is of an unknown kind");
      checkHome("state", i, s.states[i].home);
    }
    for (size_t i = 0; i < s.constants.size(); ++i) {
      const ConstantDesc &c = s.constants[i];
      if (c.offset < 0 || c.offset > kMaxBytes || c.bytes < 0 || c.bytes > kMaxBytes || c.offset % 64)
        fault("constant", i, " has an impossible place");
    }
    std::map<std::string_view, size_t> symbols;
    for (size_t i = 0; i < s.kernels.size(); ++i) {
      const KernelDesc &k = s.kernels[i];
      if (k.symbol.empty() || k.provider.empty())
        fault("kernel", i, " has no symbol or no provider");
      else if (!symbols.emplace(k.symbol, i).second)
        findings.structure({"kernel ", i, " has the symbol '", k.symbol, "' of kernel ", symbols[k.symbol]});
      if (k.range.number() < 0 || k.range.number() > kMaxBytes || k.grain.number() < 1 || k.scratchBytes.number() < 0 ||
          k.scratchBytes.number() > kMaxBytes || k.floats > FloatMode::Flush || k.epilogueFloats > FloatMode::Flush ||
          k.target > KernelTarget::GpuLibrary)
        findings.structure({"kernel ", i, " '", k.symbol, "' has an impossible range, grain, scratch size, target or mode for subnormal numbers"});
    }
    for (size_t i = 0; i < s.buffers.size() && !findings.full(); ++i)
      checkBuffer(i);
    if (s.inFlight < 1 || s.inFlight > kMaxInFlight)
      findings.structure({s.inFlight, " calls in flight: from 1 to ", kMaxInFlight, " can be"});
    int64_t ranks = 1;
    for (const MeshAxis &axis : s.mesh)
      if (!axis.size.isNumber() || axis.size.number() < 1 || axis.size.number() > kMaxRanks ||
          (ranks *= axis.size.number()) > kMaxRanks) {
        findings.structure({"axis '", axis.name, "' of the mesh has an impossible size, or there are more than ",
                            kMaxRanks, " ranks"});
        return;
      }
    for (size_t i = 0; i < s.collectives.size(); ++i) {
      const CollectiveDesc &c = s.collectives[i];
      for (size_t k = 0; k < c.axes.size(); ++k)
        if (c.axes[k] >= s.mesh.size() || (k > 0 && c.axes[k] <= c.axes[k - 1]) || c.members.size() != 1) {
          findings.structure(
              {"collective ", i,
               " names axes that the mesh does not have, twice or out of order, or has several streams"});
          return;
        }
      bool good = c.kind <= CollectiveKind::Broadcast && c.reduction <= Reduction::Max && c.root < numMembers(c) &&
                  c.members.size() <= s.streams.size();
      for (size_t m = 0; good && m < c.members.size(); ++m) {
        good = c.members[m] < s.streams.size();
        for (size_t k = 0; good && k < m; ++k)
          good = s.streams[c.members[k]].device != s.streams[c.members[m]].device;
      }
      if (!good)
        findings.structure(
            {"collective ", i, " is of an unknown kind, or its members are not streams of several devices"});
    }
  }

  /// The number of members, in this process or over ranks.
  int64_t numMembers(const CollectiveDesc &c) const {
    return c.axes.empty() ? static_cast<int64_t>(c.members.size()) : numRanks(s.mesh, c.axes);
  }

  void checkBuffer(size_t i) {
    const BufferDesc &b = s.buffers[i];
    const auto bad = [&](MessagePart what) { fault("buffer", i, what); };
    if (b.space > Space::Constant)
      return bad(" is of an unknown space");
    const auto limitBytes = spaceBytes(s, b);
    const auto bytes = typeBytes(b.type);
    if (!limitBytes)
      findings.structure({"buffer ", i, " names ", nameOf(b.space), " ", b.index, ", which does not exist"});
    else if (*limitBytes == 0 && b.offset == 0 && b.bytes.number() >= 0 && bytes)
      return; // part of an empty buffer that a loop of no iterations moves: an access to it is reported later
    else if (b.offset.number() < 0 || b.bytes.number() < 0 || b.offset.number() > *limitBytes ||
             b.bytes.number() > *limitBytes - b.offset.number())
      findings.structure({"buffer ", i, ": bytes ", b.offset, " to ",
                          static_cast<uint64_t>(b.offset.number()) + static_cast<uint64_t>(b.bytes.number()), " leave ",
                          nameOf(b.space), " ", b.index, " of ", *limitBytes, " bytes"});
    else if (b.space == Space::Arena && b.offset.number() % 64)
      findings.structure({"buffer ", i, ": offset ", b.offset, " in an arena is not a multiple of 64"});
    else if (!bytes)
      bad(" has an impossible type");
    else if (*bytes > b.bytes.number())
      findings.structure({"buffer ", i, " has ", b.bytes, " bytes, its type ", b.type.str(), " needs ", *bytes});
  }

  //--- Command lists
  //-----------------------------------------------------------------------------------------------------
  /// Checks structure and access kinds; false if the list must not be walked.
  bool checkList(const CommandList &p, Phase phase, uint32_t depth = 0, bool chosen = false) {
    const size_t before = findings.size();
    if (p.commands.size() > UINT32_MAX) {
      findings.structure({"too many commands"});
      return false;
    }
    bool indices = true;
    for (size_t i = 0; i < p.commands.size() && !findings.full(); ++i) {
      if (!checkIndices(p, phase, i)) {
        indices = false;
        continue;
      }
      checkHomes(p, phase, i);
      if (p.commands[i].kind == CommandKind::Collective && chosen && s.collectives[p.commands[i].kernel].axes.empty())
        findings.structure(p, phase, i, {"a collective where a flag decides"});
      if (checkShape(p, phase, i); hasBodies(p.commands[i].kind) && findings.size() == before)
        for (uint32_t k = 0; k < numBodies(p.commands[i].kind); ++k)
          checkBody(p, phase, i, p.commands[i].body + k, depth + 1, chosen || p.commands[i].kind != CommandKind::Loop);
      for (const Operand &o : operandsOf(p, i))
        checkAccess(p, phase, i, o);
    }
    return indices && findings.size() == before;
  }

  bool checkIndices(const CommandList &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    auto bad = [&](std::initializer_list<MessagePart> what) {
      findings.structure(p, phase, i, what);
      return false;
    };
    if (c.kind > CommandKind::Loop)
      return bad({"unknown kind of command"});
    if (c.stream >= s.streams.size())
      return bad({"stream ", c.stream, " does not exist"});
    if (c.loc != 0 && c.loc >= s.locations.size())
      return bad({"location ", c.loc, " does not exist"});
    if (uint64_t(c.firstOperand) + c.numOperands > p.operands.size())
      return bad({"its operands leave the table"});
    if (uint64_t(c.firstScalar) + c.numScalars > p.scalars.size())
      return bad({"its scalars leave the table"});
    if (uint64_t(c.firstWait) + c.numWaits > p.waits.size())
      return bad({"its waits leave the table"});
    const bool hasKernel = c.kind == CommandKind::Launch || c.kind == CommandKind::HostCall;
    if (hasKernel && c.kernel >= s.kernels.size())
      return bad({"kernel ", c.kernel, " does not exist"});
    if (c.kind == CommandKind::Collective && c.kernel >= s.collectives.size())
      return bad({"collective ", c.kernel, " does not exist"});
    if (uint64_t(c.body) + numBodies(c.kind) > s.bodies.size() && hasBodies(c.kind))
      return bad({"its bodies do not exist"});
    for (const Operand &o : operandsOf(p, i))
      if (o.buffer >= s.buffers.size() || o.access > Access::ReadWrite)
        return bad({"buffer ", o.buffer, " does not exist, or is accessed in an unknown way"});
    for (const Wait &w : waitsOf(p, i))
      if (w.command >= i || w.reason > WaitReason::Rank)
        return bad({"waits for command ", w.command, ", which is not before it"});
    return true;
  }

  /// A kernel may only access memory of its device, and a copy must run on a stream of one of its ends.
  void checkHomes(const CommandList &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    const DeviceRef device = s.streams[c.stream].device;
    auto operands = operandsOf(p, i);
    if (c.kind == CommandKind::Loop) // the operands that move are named by the loop, not accessed
      operands = operands.first(std::min<size_t>(operands.size(), operands.size() == c.numScalars));
    auto isNear = [&](const Operand &o) { return homeOf(s, s.buffers[o.buffer]).device == device; };
    if (c.kind == CommandKind::Copy && std::any_of(operands.begin(), operands.end(), isNear))
      return;
    for (const Operand &o : operands)
      if (!isNear(o))
        return findings.report(ViolationKind::Access, p, phase, {0, 0, static_cast<uint32_t>(i), o.buffer}, nullptr,
                               {"touches ", findings.describe(o.buffer), ", which lies in the memory of ",
                                nameOf(homeOf(s, s.buffers[o.buffer]).device), ", from a stream of ", nameOf(device)});
  }

  /// A body must follow the list that runs it, so that there is no cycle, and only one command may run it.
  void checkBody(const CommandList &p, Phase phase, size_t i, uint32_t body, uint32_t depth, bool chosen) {
    if (depth > kMaxDepth)
      return findings.structure(p, phase, i, {"bodies are nested deeper than ", kMaxDepth});
    if (static_cast<int64_t>(body) <= findings.bodyOf(p) || bodyOwned[body])
      return findings.structure(p, phase, i, {"body ", body, " belongs to another command"});
    bodyOwned[body] = true;
    checkList(s.bodies[body], phase, depth, chosen);
  }

  /// Checks that operands match the kind of command, and other launches of the same kernel.
  void checkShape(const CommandList &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    const auto operands = operandsOf(p, i);
    auto bytesOf = [&](const Operand &o) { return s.buffers[o.buffer].bytes; };
    switch (c.kind) {
    case CommandKind::Copy:
      if (operands.size() != 2 || operands[0].access != Access::Read || operands[1].access != Access::Write ||
          bytesOf(operands[0]) != bytesOf(operands[1]))
        findings.structure(p, phase, i, {"a copy reads one buffer and writes another of as many bytes"});
      break;
    case CommandKind::Fill:
      if (operands.size() != 1 || operands[0].access != Access::Write ||
          bytesOf(operands[0]).number() % sizeOf(s.buffers[operands[0].buffer].type.dtype))
        findings.structure(p, phase, i, {"a fill writes whole elements of one buffer"});
      break;
    case CommandKind::Launch: {
      const int32_t numInputs = s.kernels[c.kernel].numInputs;
      if (numInputs < 0 || static_cast<size_t>(numInputs) > operands.size())
        findings.structure(p, phase, i,
                           {"has ", operands.size(), " operands, kernel '", s.kernels[c.kernel].symbol, "' has ",
                            numInputs, " inputs alone"});
      if (isForGpu(s.kernels[c.kernel].target) && s.streams[c.stream].device.kind == DeviceKind::Cpu)
        findings.structure(p, phase, i, {"launches '", s.kernels[c.kernel].symbol, "', which is for a GPU, on a processor"});
      auto &[list, first] = firstLaunch[c.kernel];
      if (!list) {
        firstLaunch[c.kernel] = {&p, i};
        break;
      }
      const auto expected = operandsOf(*list, first);
      bool equal = expected.size() == operands.size();
      for (size_t k = 0; equal && k < operands.size(); ++k)
        equal = expected[k].access == operands[k].access && bytesOf(expected[k]) == bytesOf(operands[k]);
      if (!equal)
        findings.structure(p, phase, i,
                           {"launches '", s.kernels[c.kernel].symbol, "' with other operands than ",
                            findings.place(*list, phase, static_cast<int64_t>(first))});
      break;
    }
    case CommandKind::HostCall:
      if (s.streams[c.stream].device.kind == DeviceKind::Cpu && s.kernels[c.kernel].target == KernelTarget::HostFunction)
        break;
      findings.structure(p, phase, i, {"the host is called on its own streams, by kernels that are functions of the host"});
      break;
    case CommandKind::Collective:
      checkPart(p, phase, i);
      break;
    case CommandKind::Branch:
    case CommandKind::While:
      if (operands.size() != 1 || operands[0].access != Access::Read || bytesOf(operands[0]) != 1)
        findings.structure(p, phase, i, {"reads one flag, a byte, to choose"});
      break;
    case CommandKind::Loop:
      checkLoop(p, phase, i);
      break;
    }
  }

  /// The parts of a collective must be consecutive: then all members issue their collectives in the same order, and
  /// since waits point backward, no part can wait for a later one. So there is no deadlock.
  void checkPart(const CommandList &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    const CollectiveDesc &desc = s.collectives[c.kernel];
    const auto &members = desc.members;
    const size_t n = members.size(),
                 m = static_cast<size_t>(std::find(members.begin(), members.end(), c.stream) - members.begin());
    auto isPart = [&](size_t at, size_t member) {
      return at < p.commands.size() && p.commands[at].kind == CommandKind::Collective &&
             p.commands[at].kernel == c.kernel && p.commands[at].stream == members[member];
    };
    const auto waits = waitsOf(p, i);
    if (m == n || (m > 0 && !isPart(i - 1, m - 1)) || (m + 1 < n && !isPart(i + 1, m + 1)) ||
        std::any_of(waits.begin(), waits.end(), [&](const Wait &w) { return w.command + m >= i; }))
      return findings.structure(
          p, phase, i,
          {"is no part of collective '", desc.name, "': each member has one, in their order, with nothing between"});
    const auto operands = operandsOf(p, i);
    const bool hasSource = desc.kind != CollectiveKind::Broadcast || m == desc.root || !desc.axes.empty();
    bool good = operands.size() == 1u + hasSource && operands.back().access == Access::Write;
    if (good) {
      const BufferDesc &from = s.buffers[operands[0].buffer], &to = s.buffers[operands.back().buffer];
      const int64_t count = numMembers(desc);
      good = from.type.dtype == to.type.dtype && to.bytes.number() % sizeOf(to.type.dtype) == 0 &&
             from.bytes.number() % sizeOf(to.type.dtype) == 0 && (!hasSource || operands[0].access == Access::Read) &&
             from.bytes * (desc.kind == CollectiveKind::AllGather ? count : 1) ==
                 to.bytes * (desc.kind == CollectiveKind::ReduceScatter ? count : 1);
      if (good && m > 0 && findings.empty()) {
        const BufferDesc &other = s.buffers[operandsOf(p, i - 1).back().buffer];
        good = other.bytes == to.bytes && other.type.dtype == to.type.dtype;
      }
    }
    if (!good)
      findings.structure(
          p, phase, i,
          {"its source (of a broadcast the root's) and destination are not what collective '", desc.name, "' wants"});
  }

  void checkLoop(const CommandList &p, Phase phase, size_t i) {
    const Command &c = p.commands[i];
    if (c.numScalars == 0)
      return findings.structure(p, phase, i, {"a loop has a trip count"});
    const LoopParts loop = loopParts(p, i);
    if (loop.trips < 0 || loop.trips > kMaxBytes)
      return findings.structure(p, phase, i, {"runs its body ", loop.trips, " times, which is impossible"});
    const auto operands = operandsOf(p, i);
    const size_t numIndices = operands.size() - loop.moving.size();
    if (operands.size() < loop.strides.size() || numIndices > 1 ||
        (numIndices && (operands[0].access != Access::Write || s.buffers[operands[0].buffer].bytes != 8)))
      return findings.structure(
          p, phase, i, {"a loop writes its number into 8 bytes, and has one number of bytes per moving buffer"});
    // A buffer with stride 0 is an ordinary one. So is a part of an empty buffer, which no command accesses.
    for (size_t m = 0; m < loop.moving.size(); ++m) {
      const BufferDesc &b = s.buffers[loop.moving[m].buffer];
      int64_t furthest = 0;
      const bool twice = std::any_of(loop.moving.begin(), loop.moving.begin() + static_cast<ptrdiff_t>(m),
                                     [&](const Operand &o) { return o.buffer == loop.moving[m].buffer; });
      if (twice || loop.moving[m].access != Access::Read || loop.stride(m) < 0 || loop.stride(m) > kMaxBytes ||
          (loop.trips > 1 && loop.stride(m) != 0 && loop.stride(m) < b.bytes.number()) ||
          __builtin_mul_overflow(std::max<int64_t>(loop.trips - 1, 0), loop.stride(m), &furthest) ||
          furthest > kMaxBytes)
        findings.structure(p, phase, i,
                           {findings.describe(loop.moving[m].buffer), " moves by ", loop.stride(m),
                            " bytes: twice, less than it has, or further than there are"});
    }
  }

  void checkAccess(const CommandList &p, Phase phase, size_t i, const Operand &o) {
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
      findings.report(ViolationKind::Access, p, phase, {0, 0, static_cast<uint32_t>(i), o.buffer}, nullptr,
                      {writes ? "writes " : "reads ", findings.describe(o.buffer), ": ", why});
  }

  const Schedule &s;
  ScheduleFindings &findings;
  std::vector<std::pair<const CommandList *, size_t>> firstLaunch; ///< by kernel
  std::vector<bool> bodyOwned;
};

} // namespace

StructureResult checkStructure(const Schedule &schedule, ScheduleFindings &findings) {
  return StructureCheck(schedule, findings).run();
}

} // namespace tressel::runtime
