// What the kernels of random schedules compute, and a plain executor of them.
#include "test/support/RandomSchedule.h"
#include "tressel/runtime/Ranks.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tressel::test {

using namespace runtime;

namespace {

uint64_t mixed(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  return x;
}

/// "mix READS WRITES SEED BYTES..." makes each written range of all that is read; "flag BYTES" a bool of one range;
/// "countdown" reads a counter, writes it less one, and whether anything was left.
struct Mix {
  enum Kind { Ranges, Flag, Countdown } kind = Ranges;
  size_t reads = 0, writes = 0;
  uint64_t seed = 0;
  std::vector<int64_t> bytes;

  explicit Mix(const std::string &params) {
    std::istringstream in(params);
    std::string name;
    in >> name;
    if (name == "flag") {
      kind = Flag;
      bytes.resize(1);
      in >> bytes[0];
    } else if (name == "countdown") {
      kind = Countdown;
    } else {
      in >> reads >> writes >> seed;
      bytes.resize(reads + writes);
      for (int64_t &b : bytes)
        in >> b;
    }
    if (in.fail() || (kind == Ranges && name != "mix"))
      throw std::invalid_argument("no kernel '" + params + "'");
  }

  static uint64_t digest(const void *data, int64_t bytes, uint64_t sum) {
    for (int64_t i = 0; i < bytes; i += 4) {
      uint32_t word;
      std::memcpy(&word, static_cast<const std::byte *>(data) + i, 4);
      sum = mixed(sum + word + 1);
    }
    return sum;
  }
  void run(void *const *buffers) const {
    if (kind == Flag) {
      *static_cast<uint8_t *>(buffers[1]) = digest(buffers[0], bytes[0], 5) & 1;
      return;
    }
    if (kind == Countdown) {
      int32_t count;
      std::memcpy(&count, buffers[0], 4);
      *static_cast<uint8_t *>(buffers[2]) = count > 0;
      --count;
      std::memcpy(buffers[1], &count, 4);
      return;
    }
    uint64_t sum = seed;
    for (size_t r = 0; r < reads; ++r)
      sum = digest(buffers[r], bytes[r], sum);
    for (size_t w = reads; w < reads + writes; ++w)
      for (int64_t i = 0; i < bytes[w]; i += 4) {
        const auto word = static_cast<uint32_t>(sum = mixed(sum + w + 1));
        std::memcpy(static_cast<std::byte *>(buffers[w]) + i, &word, 4);
      }
  }
};

int32_t runMix(const KernelArgs *args, int64_t begin, int64_t) {
  if (begin == 0)
    static_cast<const Mix *>(args->state)->run(args->buffers);
  return kKernelOk;
}
LoadedKernel makeMix(const KernelDesc &desc) {
  auto mix = std::make_shared<const Mix>(desc.params);
  return {runMix, mix.get(), mix};
}

/// One space after another, each with memory of its own.
class Serial {
public:
  Serial(const Schedule &s, States &states) : s(s), states(states), constants(constantsOf(s)) {
    states.bytes.resize(s.states.size());
    for (size_t i = 0; i < s.states.size(); ++i)
      if (s.states[i].kind == StateKind::Derived)
        states.bytes[i].assign(static_cast<size_t>(s.states[i].type.bytes()), std::byte(0xee));
    for (const ArenaDesc &arena : s.arenas)
      arenas.emplace_back(static_cast<size_t>(arena.bytes), std::byte(0xdd));
  }
  std::vector<std::vector<std::byte>> call(const std::vector<std::vector<std::byte>> &given) {
    begin(given);
    run(s.step);
    return outputs;
  }
  void begin(std::vector<std::vector<std::byte>> given) {
    inputs = std::move(given);
    outputs.clear();
    for (const ValueDesc &output : s.outputs)
      outputs.emplace_back(static_cast<size_t>(output.type.bytes()), std::byte(0xcc));
  }
  const std::vector<std::vector<std::byte>> &outputsNow() const { return outputs; }
  void run(const CommandList &p) {
    for (size_t i = 0; i < p.commands.size(); ++i)
      run(p, i);
  }

  /// The ranks do a program together.
  static void run(std::vector<Serial> &ranks, const std::function<const CommandList &(const Schedule &)> &programOf) {
    const CommandList &p = programOf(ranks[0].s);
    for (size_t i = 0; i < p.commands.size(); ++i) {
      const Command &c = p.commands[i];
      if (c.kind == CommandKind::Collective && !ranks[0].s.collectives[c.kernel].axes.empty()) {
        meet(ranks, programOf, i);
      } else if (c.kind == CommandKind::Branch && holdsCollectives(ranks[0].s, c)) {
        const uint8_t flag = ranks[0].flagOf(programOf(ranks[0].s), i);
        for (Serial &rank : ranks)
          if (rank.flagOf(programOf(rank.s), i) != flag)
            throw std::logic_error("ranks decide differently over collectives");
        run(ranks, [&](const Schedule &s) -> const CommandList & { return s.bodies[c.body + (flag ? 0 : 1)]; });
      } else if (c.kind == CommandKind::Loop && holdsCollectives(ranks[0].s, c)) {
        for (int64_t trip = 0; trip < p.scalars[c.firstScalar]; ++trip) {
          for (Serial &rank : ranks)
            rank.enter(programOf(rank.s), i, trip);
          run(ranks, [&](const Schedule &s) -> const CommandList & { return s.bodies[c.body]; });
          for (Serial &rank : ranks)
            rank.move(programOf(rank.s), i, 1);
        }
        for (Serial &rank : ranks)
          rank.move(programOf(rank.s), i, (-programOf(rank.s).scalars[c.firstScalar]).number());
      } else {
        for (Serial &rank : ranks) {
          size_t at = i;
          rank.run(programOf(rank.s), at);
        }
      }
    }
  }

private:
  static bool holdsCollectives(const Schedule &s, const Command &c) {
    for (uint32_t k = 0; k < numBodies(c.kind); ++k)
      for (const Command &inner : s.bodies[c.body + k].commands)
        if ((inner.kind == CommandKind::Collective && !s.collectives[inner.kernel].axes.empty()) ||
            holdsCollectives(s, inner))
          return true;
    return false;
  }
  uint8_t flagOf(const CommandList &p, size_t i) {
    return static_cast<uint8_t>(at(p.operands[p.commands[i].firstOperand].buffer)[0]) != 0;
  }
  static void meet(std::vector<Serial> &ranks, const std::function<const CommandList &(const Schedule &)> &programOf,
                   size_t i) {
    const Schedule &form = ranks[0].s;
    const CollectiveDesc &desc = form.collectives[programOf(form).commands[i].kernel];
    std::map<std::vector<int64_t>, std::vector<size_t>> groups; // ranks that agree on the other axes
    for (size_t r = 0; r < ranks.size(); ++r) {
      std::vector<int64_t> key;
      auto rest = static_cast<int64_t>(r);
      for (auto axis = static_cast<uint32_t>(form.mesh.size()); axis-- > 0;) {
        if (std::ranges::find(desc.axes, axis) == desc.axes.end())
          key.push_back((rest % form.mesh[axis].size).number());
        rest /= form.mesh[axis].size.number();
      }
      groups[key].push_back(r);
    }
    for (const auto &[key, members] : groups) {
      std::vector<const void *> sources;
      std::vector<void *> targets;
      int64_t words = 0;
      for (size_t r : members) {
        const CommandList &p = programOf(ranks[r].s);
        const Operand *own = p.operands.data() + p.commands[i].firstOperand;
        sources.push_back(ranks[r].at(own[0].buffer));
        targets.push_back(ranks[r].at(own[1].buffer));
        words = (ranks[r].s.buffers[own[0].buffer].bytes / 4).number();
      }
      combine(desc, sources, targets, words);
    }
  }
  void move(const CommandList &p, size_t i, int64_t times) {
    const Command &c = p.commands[i];
    const uint32_t numMoving = c.numScalars - 1u;
    for (uint32_t m = 0; m < numMoving; ++m)
      moved[p.operands[c.firstOperand + c.numOperands - numMoving + m].buffer] +=
          (times * p.scalars[c.firstScalar + 1 + m]).number();
  }
  void enter(const CommandList &p, size_t i, int64_t trip) {
    const Command &c = p.commands[i];
    if (c.numOperands == c.numScalars)
      std::memcpy(at(p.operands[c.firstOperand].buffer), &trip, 8);
  }
  std::byte *at(uint32_t buffer) {
    const BufferDesc &b = s.buffers[buffer];
    auto &space = b.space == Space::Arena    ? arenas[b.index]
                  : b.space == Space::Input  ? inputs[b.index]
                  : b.space == Space::Output ? outputs[b.index]
                  : b.space == Space::State  ? states.bytes[b.index]
                                             : constants;
    return space.data() + (b.space == Space::Constant ? s.constants[b.index].offset : 0) + b.offset.number() +
           moved[buffer];
  }
  void run(const CommandList &p, size_t &i) {
    const Command &c = p.commands[i];
    const Operand *operands = p.operands.data() + c.firstOperand;
    std::vector<void *> buffers;
    for (uint32_t k = 0; k < c.numOperands; ++k)
      buffers.push_back(at(operands[k].buffer));
    auto bytes = [&](uint32_t k) { return static_cast<size_t>(s.buffers[operands[k].buffer].bytes); };
    auto body = [&](uint32_t k) { run(s.bodies[c.body + k]); };
    auto flag = [&] { return *static_cast<const uint8_t *>(buffers[0]) != 0; };
    switch (c.kind) {
    case CommandKind::Launch:
      Mix(s.kernels[c.kernel].params).run(buffers.data());
      break;
    case CommandKind::HostCall:
      Mix(s.kernels[c.kernel].params).run(buffers.data());
      break;
    case CommandKind::Copy:
      std::memcpy(buffers[1], buffers[0], bytes(0));
      break;
    case CommandKind::Fill: {
      const auto element = static_cast<size_t>(sizeOf(s.buffers[operands[0].buffer].type.dtype));
      for (size_t k = 0; k < bytes(0); k += element)
        std::memcpy(static_cast<std::byte *>(buffers[0]) + k, &c.fillValue, element);
      break;
    }
    case CommandKind::Collective: {
      const CollectiveDesc &desc = s.collectives[c.kernel];
      std::vector<const void *> sources;
      std::vector<void *> targets;
      const size_t n = desc.members.size();
      size_t words = 0;
      for (size_t m = 0; m < n; ++m) {
        const Command &part = p.commands[i + m];
        const Operand *own = p.operands.data() + part.firstOperand;
        sources.push_back(part.numOperands > 1 ? at(own[0].buffer) : nullptr);
        targets.push_back(at(own[part.numOperands - 1u].buffer));
        words = std::max(words, static_cast<size_t>(s.buffers[own[0].buffer].bytes) / 4);
      }
      combine(desc, sources, targets, static_cast<int64_t>(words));
      i += n - 1;
      break;
    }
    case CommandKind::Branch:
      body(flag() ? 0 : 1);
      break;
    case CommandKind::While:
      for (body(0); flag(); body(0))
        body(1);
      break;
    case CommandKind::Loop: {
      const uint32_t numMoving = c.numScalars - 1u, numIndex = c.numOperands - numMoving;
      const int64_t trips = p.scalars[c.firstScalar].number();
      auto move = [&](int64_t times) {
        for (uint32_t m = 0; m < numMoving; ++m)
          moved[operands[numIndex + m].buffer] += (times * p.scalars[c.firstScalar + 1 + m]).number();
      };
      for (int64_t trip = 0; trip < trips; ++trip) {
        if (numIndex)
          std::memcpy(buffers[0], &trip, 8);
        body(0);
        move(1);
      }
      move(-trips);
      break;
    }
    }
  }

  const Schedule &s;
  States &states;
  std::vector<std::byte> constants;
  std::vector<std::vector<std::byte>> arenas, inputs, outputs;
  std::map<uint32_t, int64_t> moved; ///< by buffer
};

} // namespace

std::vector<std::byte> someBytes(int64_t bytes, uint64_t seed) {
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::byte>(mixed(seed * 1000003 + i + 1) >> 20);
  return out;
}
std::vector<std::byte> constantsOf(const Schedule &schedule) {
  int64_t end = 0;
  for (const ConstantDesc &c : schedule.constants)
    end = std::max(end, c.offset + c.bytes);
  return someBytes(end, 77);
}

void registerMixKernels() {
  registerKernelProvider("mix", makeMix);
  registerKernelProvider("host", makeMix);
}

void combine(const CollectiveDesc &desc, std::span<const void *const> sources, std::span<void *const> destinations,
             int64_t words) {
  const size_t n = destinations.size(), count = static_cast<size_t>(words);
  std::vector<std::vector<uint32_t>> from(n, std::vector<uint32_t>(count, 0)); // destinations may be sources
  for (size_t m = 0; m < n; ++m)
    if (sources[m])
      std::memcpy(from[m].data(), sources[m], count * 4);
  auto reduced = [&](size_t i) {
    uint32_t sum = from[0][i];
    for (size_t m = 1; m < n; ++m) {
      const uint32_t x = from[m][i];
      switch (desc.reduction) {
      case Reduction::Sum:
        sum += x;
        break;
      case Reduction::Product:
        sum *= x;
        break;
      case Reduction::Min:
        sum = static_cast<uint32_t>(std::min(static_cast<int32_t>(sum), static_cast<int32_t>(x)));
        break;
      case Reduction::Max:
        sum = static_cast<uint32_t>(std::max(static_cast<int32_t>(sum), static_cast<int32_t>(x)));
        break;
      }
    }
    return sum;
  };
  std::vector<uint32_t> result;
  for (size_t m = 0; m < n; ++m) {
    result.clear();
    switch (desc.kind) {
    case CollectiveKind::AllReduce:
      for (size_t i = 0; i < count; ++i)
        result.push_back(reduced(i));
      break;
    case CollectiveKind::ReduceScatter:
      for (size_t i = m * count / n; i < (m + 1) * count / n; ++i)
        result.push_back(reduced(i));
      break;
    case CollectiveKind::AllGather:
      for (const auto &each : from)
        result.insert(result.end(), each.begin(), each.end());
      break;
    case CollectiveKind::Broadcast:
      result = from[desc.root];
      break;
    }
    std::memcpy(destinations[m], result.data(), result.size() * 4);
  }
}

std::vector<std::vector<std::vector<std::byte>>>
runSerially(const Schedule &schedule, States &states,
            std::span<const std::vector<std::vector<std::byte>>> inputsOfCalls) {
  Serial serial(schedule, states);
  serial.run(schedule.prepare);
  std::vector<std::vector<std::vector<std::byte>>> outputs;
  for (const auto &inputs : inputsOfCalls)
    outputs.push_back(serial.call(inputs));
  return outputs;
}

std::vector<std::vector<std::vector<std::byte>>>
runRanksSerially(const Schedule &schedule, std::vector<States> &states,
                 std::span<const std::vector<std::vector<std::byte>>> inputsOfCalls) {
  const auto n = static_cast<size_t>(numRanks(schedule.mesh));
  std::vector<Schedule> forms;
  for (size_t r = 0; r < n; ++r)
    forms.push_back(scheduleOfRank(schedule, static_cast<int64_t>(r)));
  std::vector<Serial> ranks;
  ranks.reserve(n);
  for (size_t r = 0; r < n; ++r)
    ranks.emplace_back(forms[r], states[r]);
  Serial::run(ranks, [](const Schedule &s) -> const CommandList & { return s.prepare; });
  std::vector<std::vector<std::vector<std::byte>>> outputs;
  for (const auto &inputs : inputsOfCalls) {
    const size_t per = inputs.size() / n;
    for (size_t r = 0; r < n; ++r)
      ranks[r].begin(
          {inputs.begin() + static_cast<ptrdiff_t>(r * per), inputs.begin() + static_cast<ptrdiff_t>((r + 1) * per)});
    Serial::run(ranks, [](const Schedule &s) -> const CommandList & { return s.step; });
    auto &of = outputs.emplace_back();
    for (Serial &rank : ranks)
      for (const auto &output : rank.outputsNow())
        of.push_back(output);
  }
  return outputs;
}

} // namespace tressel::test
