#include "test/random/RandomSchedule.h"

#include "runtime/ExecutableImpl.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

namespace tressel::runtime::test {
namespace {

constexpr int64_t kGranule = 64;

uint32_t mixWord(uint32_t a, uint32_t b) {
  uint32_t x = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u + (a << 6) + (a >> 2));
  x ^= x >> 15;
  return x * 0x85ebca6bu;
}

/// Scalars: a number, how many operands are read, written, read and written, then the words of each operand.
int32_t mixKernel(const KernelArgs *args, int64_t, int64_t) {
  const int64_t *s = args->scalars;
  const int64_t reads = s[1], writes = s[2], both = s[3];
  auto words = [&](int64_t i) { return static_cast<uint32_t *>(args->buffers[i]); };
  for (int64_t o = reads; o < reads + writes + both; ++o)
    for (int64_t i = 0; i < s[4 + o]; ++i) {
      uint32_t x = mixWord(static_cast<uint32_t>(s[0]), static_cast<uint32_t>(o * 1000 + i));
      for (int64_t r = 0; r < reads; ++r)
        x = mixWord(x, words(r)[i % s[4 + r]]);
      if (o >= reads + writes)
        x = mixWord(x, words(o)[i]);
      words(o)[i] = x;
    }
  return kKernelOk;
}
/// Counts up the first word of a state: the flag is set until that is a multiple of three, so a while loop ends.
int32_t untilKernel(const KernelArgs *args, int64_t, int64_t) {
  *static_cast<uint8_t *>(args->buffers[1]) = ++*static_cast<uint32_t *>(args->buffers[0]) % 3 != 0;
  return kKernelOk;
}
/// A flag out of the first word.
int32_t flagKernel(const KernelArgs *args, int64_t, int64_t) {
  *static_cast<uint8_t *>(args->buffers[1]) =
      static_cast<uint8_t>(*static_cast<const uint32_t *>(args->buffers[0]) >> 7 & 1);
  return kKernelOk;
}

class Generator {
public:
  Generator(uint64_t seed, const RandomScheduleOptions &options)
      : random(seed * 0x9e3779b97f4a7c15u + 1), options(options) {}

  Schedule make() {
    s.name = "random";
    s.locations.push_back({});
    const int gpus = options.gpus > 0 ? 1 + upTo(options.gpus - 1) : 0;
    const int lanes = upTo(2);
    for (int i = 0; i < std::max(1, lanes); ++i)
      s.streams.push_back({{}, lanes ? StreamKind::Lane : StreamKind::Compute, "cpu" + std::to_string(i)});
    for (int g = 0; g < gpus; ++g) {
      const DeviceRef ref{DeviceKind::Gpu, static_cast<uint16_t>(g)};
      const std::string name = "gpu" + std::to_string(g);
      for (int i = 0; i <= upTo(1); ++i)
        s.streams.push_back({ref, StreamKind::Compute, name + ".kernels" + std::to_string(i)});
      s.streams.push_back({ref, StreamKind::CopyIn, name + ".in"});
      s.streams.push_back({ref, StreamKind::CopyOut, name + ".out"});
    }
    arena({}, MemoryKind::Host);
    arena({}, MemoryKind::Pinned);
    for (int g = 0; g < gpus; ++g)
      arena({DeviceKind::Gpu, static_cast<uint16_t>(g)}, MemoryKind::Device);
    for (int i = 0; i < 2; ++i) {
      const TensorType type{i32, Shape{16 * (1 + upTo(3))}};
      s.inputs.push_back({"in" + std::to_string(i), type, upTo(1) ? MemoryKind::Pinned : MemoryKind::Host});
      sources.push_back(buffer(Space::Input, static_cast<uint32_t>(i), 0, type));
    }
    bindStates(gpus);
    for (int i = 0; i < 2; ++i) {
      const TensorType type{i32, Shape{16 * (1 + upTo(3))}};
      s.outputs.push_back({"out" + std::to_string(i), type, upTo(1) ? MemoryKind::Pinned : MemoryKind::Host});
    }
    commands(s.step, options.commands, 0);
    finishOutputs();
    reduceWaits(s.prepare, s.streams.size());
    reduceWaits(s.step, s.streams.size());
    for (Program &body : s.bodies)
      reduceWaits(body, s.streams.size());
    return std::move(s);
  }

private:
  int upTo(int most) { return static_cast<int>(random() % static_cast<uint64_t>(most + 1)); }
  bool oneIn(int n) { return random() % static_cast<uint64_t>(n) == 0; }
  template <typename T> const T &pick(const std::vector<T> &from) { return from[random() % from.size()]; }

  void arena(DeviceRef device, MemoryKind memory) {
    s.arenas.push_back({device, memory, kGranule * (8 + upTo(24))});
    written.emplace_back(static_cast<size_t>(s.arenas.back().bytes / kGranule), false);
  }
  uint32_t buffer(Space space, uint32_t index, int64_t offset, const TensorType &type) {
    s.buffers.push_back({space, index, offset, type.bytes(), type});
    return static_cast<uint32_t>(s.buffers.size() - 1);
  }

  /// A parameter that each accelerator has a copy of, and a state that the step changes.
  void bindStates(int gpus) {
    const TensorType type{i32, Shape{48}};
    s.states.push_back({"w", type, StateKind::Parameter, {}});
    const uint32_t w = buffer(Space::State, 0, 0, type);
    sources.push_back(w);
    for (int g = 0; g < gpus; ++g) {
      const DeviceRef ref{DeviceKind::Gpu, static_cast<uint16_t>(g)};
      s.states.push_back({"w." + std::to_string(g), type, StateKind::Derived, {ref, MemoryKind::Device}});
      const uint32_t d = buffer(Space::State, static_cast<uint32_t>(s.states.size() - 1), 0, type);
      add(s.prepare, {.kind = CommandKind::Copy, .stream = streamOf(ref, StreamKind::CopyIn)},
          {{w, Access::Read}, {d, Access::Write}});
      sources.push_back(d);
    }
    s.states.push_back({"memory", type, StateKind::Mutable, {}});
    memory = buffer(Space::State, static_cast<uint32_t>(s.states.size() - 1), 0, type);
  }

  uint16_t streamOf(DeviceRef device, StreamKind kind) {
    std::vector<uint16_t> fitting;
    for (uint16_t i = 0; i < s.streams.size(); ++i)
      if (s.streams[i].device == device && (device.kind == DeviceKind::Cpu || s.streams[i].kind == kind))
        fitting.push_back(i);
    return pick(fitting);
  }

  //--- Bytes --------------------------------------------------------------------------------------------------------
  /// A range of the device's arena, anywhere.
  uint32_t place(uint32_t index, int64_t granules = 0) {
    const int64_t all = s.arenas[index].bytes / kGranule;
    if (!granules)
      granules = 1 + upTo(3);
    const int64_t first = upTo(static_cast<int>(all - granules));
    return buffer(Space::Arena, index, first * kGranule, {i32, Shape{granules * 16}});
  }
  bool isWritten(uint32_t b) const {
    const BufferDesc &d = s.buffers[b];
    if (d.space != Space::Arena)
      return true;
    for (int64_t g = d.offset / kGranule; g < (d.offset + d.bytes + kGranule - 1) / kGranule; ++g)
      if (!written[d.index][static_cast<size_t>(g)])
        return false;
    return true;
  }
  void markWritten(uint32_t b) {
    const BufferDesc &d = s.buffers[b];
    if (d.space == Space::Arena && d.bytes % kGranule == 0)
      for (int64_t g = d.offset / kGranule; g < (d.offset + d.bytes) / kGranule; ++g)
        written[d.index][static_cast<size_t>(g)] = true;
  }
  /// Something of the device that may be read.
  std::optional<uint32_t> readable(DeviceRef device) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      uint32_t b = 0;
      if (oneIn(3)) {
        b = device.kind == DeviceKind::Cpu && oneIn(3) ? memory : pick(sources);
      } else {
        b = place(arenaOf(device));
      }
      if (homeOf(s, s.buffers[b]).device == device && isWritten(b))
        return b;
    }
    return std::nullopt;
  }
  uint32_t arenaOf(DeviceRef device) {
    std::vector<uint32_t> fitting;
    for (uint32_t i = 0; i < s.arenas.size(); ++i)
      if (s.arenas[i].device == device)
        fitting.push_back(i);
    return pick(fitting);
  }
  bool overlap(uint32_t a, uint32_t b) const {
    const BufferDesc &x = s.buffers[a], &y = s.buffers[b];
    return x.space == y.space && x.index == y.index && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  }

  //--- Commands -----------------------------------------------------------------------------------------------------
  /// What a command of a program touches, its bodies' commands too.
  struct Touched {
    std::vector<Operand> operands;
  };
  std::vector<std::vector<Touched>> touchedStack; ///< by depth, by command

  /// Appends a command that waits for all that it must.
  uint32_t add(Program &p, Command c, const std::vector<Operand> &operands, const std::vector<Operand> &inside = {},
               const std::vector<int64_t> &scalars = {}) {
    Touched all{operands};
    all.operands.insert(all.operands.end(), inside.begin(), inside.end());
    std::vector<Touched> &before = &p == &s.prepare ? prepared : touchedStack.back();
    c.firstOperand = static_cast<uint32_t>(p.operands.size());
    c.numOperands = static_cast<uint16_t>(operands.size());
    p.operands.insert(p.operands.end(), operands.begin(), operands.end());
    c.firstScalar = static_cast<uint32_t>(p.scalars.size());
    c.numScalars = static_cast<uint16_t>(scalars.size());
    p.scalars.insert(p.scalars.end(), scalars.begin(), scalars.end());
    c.firstWait = static_cast<uint32_t>(p.waits.size());
    for (uint32_t i = 0; i < before.size(); ++i) {
      const bool conflicts = std::ranges::any_of(before[i].operands, [&](const Operand &x) {
        return std::ranges::any_of(all.operands, [&](const Operand &y) {
          return (x.access != Access::Read || y.access != Access::Read) && overlap(x.buffer, y.buffer);
        });
      });
      if (conflicts && p.commands[i].stream != c.stream)
        p.waits.push_back({i, WaitReason::Data}), ++c.numWaits;
    }
    s.locations.push_back(
        {"op" + std::to_string(s.locations.size()), "random.cpp", static_cast<uint32_t>(s.locations.size())});
    c.loc = static_cast<uint32_t>(s.locations.size() - 1);
    p.commands.push_back(c);
    before.push_back(std::move(all));
    for (const Operand &o : operands)
      if (o.access != Access::Read)
        markWritten(o.buffer);
    return static_cast<uint32_t>(p.commands.size() - 1);
  }

  DeviceRef anyDevice() { return pick(s.streams).device; }

  void commands(Program &p, int count, int depth) {
    touchedStack.emplace_back();
    for (int i = 0; i < count; ++i) {
      const int kind = upTo(19);
      if (kind == 0)
        fill(p);
      else if (kind <= 7)
        copy(p);
      else if (options.bodies && kind == 8 &&
               depth < (s.streams.size() > 15 ? 1 : 2)) // more the verifier does not follow
        control(p, depth);
      else
        launch(p);
    }
    if (depth == 0)
      return; // kept: the outputs follow
    touchedStack.pop_back();
  }

  void fill(Program &p) {
    const DeviceRef device = anyDevice();
    const uint32_t to = place(arenaOf(device));
    add(p,
        {.kind = CommandKind::Fill,
         .stream = streamOf(device, StreamKind::Compute),
         .fillValue = random() & 0xFFFFFFFF},
        {{to, Access::Write}});
  }

  void copy(Program &p) {
    const DeviceRef from = anyDevice();
    DeviceRef to = anyDevice();
    if (from.kind == DeviceKind::Gpu && to != from && oneIn(2))
      to = {};
    const auto source = readable(from);
    if (!source)
      return;
    const uint32_t arena = arenaOf(to);
    const int64_t granules = s.buffers[*source].bytes / kGranule;
    const uint32_t target = place(arena, granules);
    if (overlap(*source, target))
      return;
    const DeviceRef near = from.kind == DeviceKind::Gpu ? from : to;
    add(p,
        {.kind = CommandKind::Copy,
         .stream = streamOf(near, from == to                     ? StreamKind::Compute
                                  : from.kind == DeviceKind::Gpu ? StreamKind::CopyOut
                                                                 : StreamKind::CopyIn)},
        {{*source, Access::Read}, {target, Access::Write}});
  }

  uint32_t kernel(const char *name, int32_t numInputs) {
    s.kernels.push_back({.symbol = name + std::to_string(s.kernels.size()),
                         .provider = "test-random",
                         .params = name,
                         .numInputs = numInputs,
                         .flops = static_cast<int64_t>(random() % 40'000'000'000u),
                         .bytes = static_cast<int64_t>(random() % 100'000'000u)});
    return static_cast<uint32_t>(s.kernels.size() - 1);
  }

  void launch(Program &p) {
    const DeviceRef device = anyDevice();
    std::vector<Operand> reads, writes, both;
    for (int i = upTo(3); i > 0; --i)
      if (const auto b = readable(device))
        reads.push_back({*b, Access::Read});
    auto isFree = [&](uint32_t b) {
      for (const auto *list : {&reads, &writes, &both})
        for (const Operand &o : *list)
          if (overlap(o.buffer, b))
            return false;
      return true;
    };
    for (int i = 1 + upTo(1); i > 0; --i)
      if (const uint32_t b = place(arenaOf(device)); isFree(b))
        writes.push_back({b, Access::Write});
    if (oneIn(3)) {
      const uint32_t b = device.kind == DeviceKind::Cpu && oneIn(3) ? memory : place(arenaOf(device));
      if (isFree(b) && isWritten(b))
        both.push_back({b, Access::ReadWrite});
    }
    if (writes.empty() && both.empty())
      return;
    std::vector<int64_t> scalars{static_cast<int64_t>(random() % 1'000'000), static_cast<int64_t>(reads.size()),
                                 static_cast<int64_t>(writes.size()), static_cast<int64_t>(both.size())};
    std::vector<Operand> operands;
    for (const auto *list : {&reads, &writes, &both})
      for (const Operand &o : *list) {
        operands.push_back(o);
        scalars.push_back(s.buffers[o.buffer].bytes / 4);
      }
    const uint32_t k = kernel("mix", static_cast<int32_t>(reads.size()));
    add(p, {.kind = CommandKind::Launch, .stream = streamOf(device, StreamKind::Compute), .kernel = k}, operands, {},
        scalars);
  }

  /// Something of a few bytes.
  uint32_t atGranule(DeviceRef device, const TensorType &type) {
    const uint32_t arena = arenaOf(device);
    const auto all = static_cast<int>(s.arenas[arena].bytes / kGranule);
    return buffer(Space::Arena, arena, upTo(all - 1) * kGranule, type);
  }
  /// It is written only in part now.
  void voidGranule(uint32_t b) {
    written[s.buffers[b].index][static_cast<size_t>(s.buffers[b].offset / kGranule)] = false;
  }

  /// Everything that a program touches, bodies included.
  std::vector<Operand> touchedBy(const Program &p) const {
    std::vector<Operand> all;
    for (const Command &c : p.commands) {
      for (uint32_t k = 0; k < c.numOperands; ++k)
        all.push_back(p.operands[c.firstOperand + k]);
      for (uint32_t k = 0; k < numBodies(c.kind); ++k) {
        const auto inner = touchedBy(s.bodies[c.body + k]);
        all.insert(all.end(), inner.begin(), inner.end());
      }
    }
    return all;
  }

  /// A body; what it is the first to write counts as not written outside, unless `always`.
  void body(uint32_t index, int depth, bool always) {
    const auto before = written;
    Program p;
    commands(p, 2 + upTo(4), depth + 1);
    s.bodies[index] = std::move(p);
    if (!always)
      written = before;
  }

  void control(Program &outer, int depth) {
    const DeviceRef device = anyDevice();
    const uint16_t stream = streamOf(device, StreamKind::Compute);
    if (oneIn(2)) {
      const uint32_t first = static_cast<uint32_t>(s.bodies.size());
      s.bodies.emplace_back();
      body(first, depth, true);
      const std::vector<Operand> inside = touchedBy(s.bodies[first]);
      std::vector<Operand> operands; // the number of the iteration, where that is in nobody's way
      const uint32_t index = atGranule(device, {i64, Shape{1}});
      if (oneIn(2) && std::ranges::none_of(inside, [&](const Operand &o) { return overlap(o.buffer, index); }))
        operands.push_back({index, Access::Write});
      add(outer, {.kind = CommandKind::Loop, .stream = stream, .body = first}, operands, inside, {1 + upTo(2)});
      if (!operands.empty())
        voidGranule(index);
      return;
    }
    if (oneIn(2))
      return whileLoop(outer, depth, device, stream);
    const auto from = readable(device);
    if (!from)
      return;
    const uint32_t flag = atGranule(device, {DType::boolean, Shape{1}});
    if (overlap(*from, flag))
      return;
    add(outer, {.kind = CommandKind::Launch, .stream = stream, .kernel = kernel("flag", 1)},
        {{*from, Access::Read}, {flag, Access::Write}});
    voidGranule(flag);
    const uint32_t first = static_cast<uint32_t>(s.bodies.size());
    s.bodies.resize(s.bodies.size() + 2);
    for (uint32_t k = 0; k < 2; ++k)
      body(first + k, depth, false);
    std::vector<Operand> inside = touchedBy(s.bodies[first]);
    const auto more = touchedBy(s.bodies[first + 1]);
    inside.insert(inside.end(), more.begin(), more.end());
    // What either may have written first was not there before, and is not now.
    add(outer, {.kind = CommandKind::Branch, .stream = stream, .body = first}, {{flag, Access::Read}}, inside);
  }

  /// Its counter is bytes that a body before it may have written, and that its own bodies leave alone.
  void whileLoop(Program &outer, int depth, DeviceRef device, uint16_t stream) {
    const uint32_t flag = atGranule(device, {DType::boolean, Shape{1}}), counter = atGranule(device, {i32, Shape{16}});
    if (overlap(flag, counter) || !isWritten(counter))
      return;
    const uint32_t first = static_cast<uint32_t>(s.bodies.size());
    s.bodies.resize(s.bodies.size() + 2);
    const auto before = written;
    Program test, work;
    for (int attempt = 0;; ++attempt) { // until the bodies leave flag and counter alone
      s.bodies.resize(first + 2);
      written = before;
      work = Program();
      commands(work, 2 + upTo(3), 5); // no bodies in it
      const auto touched = touchedBy(work);
      if (std::ranges::none_of(touched,
                               [&](const Operand &o) { return overlap(o.buffer, flag) || overlap(o.buffer, counter); }))
        break;
      if (attempt == 5) {
        work = Program();
        break;
      }
    }
    written = before;
    touchedStack.emplace_back();
    add(test, {.kind = CommandKind::Launch, .stream = stream, .kernel = kernel("until", 0)},
        {{counter, Access::ReadWrite}, {flag, Access::Write}});
    touchedStack.pop_back();
    voidGranule(flag);
    std::vector<Operand> inside = touchedBy(test);
    const auto more = touchedBy(work);
    inside.insert(inside.end(), more.begin(), more.end());
    s.bodies[first] = std::move(test);
    s.bodies[first + 1] = std::move(work);
    add(outer, {.kind = CommandKind::While, .stream = stream, .body = first}, {{flag, Access::Read}}, inside);
    voidGranule(flag);
  }

  void finishOutputs() {
    for (uint32_t i = 0; i < s.outputs.size(); ++i) {
      const uint32_t out = buffer(Space::Output, i, 0, s.outputs[i].type);
      const int64_t granules = s.buffers[out].bytes / kGranule;
      std::optional<uint32_t> source;
      for (int attempt = 0; attempt < 50 && !source; ++attempt) {
        const uint32_t b = place(static_cast<uint32_t>(upTo(static_cast<int>(s.arenas.size()) - 1)), granules);
        if (isWritten(b))
          source = b;
      }
      if (!source) {
        add(s.step, {.kind = CommandKind::Fill, .stream = streamOf({}, StreamKind::Compute), .fillValue = 7},
            {{out, Access::Write}});
        continue;
      }
      const DeviceRef from = homeOf(s, s.buffers[*source]).device;
      add(s.step, {.kind = CommandKind::Copy, .stream = streamOf(from, StreamKind::CopyOut)},
          {{*source, Access::Read}, {out, Access::Write}});
    }
  }

  Schedule s;
  std::mt19937_64 random;
  const RandomScheduleOptions options;
  std::vector<uint32_t> sources; ///< buffers that are always there
  uint32_t memory = 0;
  std::vector<std::vector<bool>> written; ///< granules of arenas
  std::vector<Touched> prepared;
};

/// Kernels of the provider "test-random".
LoadedKernel loadKernel(const KernelDesc &desc) {
  return {.fn = desc.params == "mix" ? mixKernel : desc.params == "until" ? untilKernel : flagKernel};
}

} // namespace

Schedule randomSchedule(uint64_t seed, const RandomScheduleOptions &options) {
  Schedule s = Generator(seed, options).make();
  if (const auto violations = verifySchedule(s); !violations.empty()) {
    std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed), violations[0].message.c_str());
    std::abort();
  }
  return s;
}

std::shared_ptr<const Executable> executableOf(Schedule schedule) {
  registerKernelProvider("test-random", loadKernel);
  return Executable::create(std::move(schedule), {}, nullptr);
}
std::shared_ptr<const Executable> unverifiedExecutableOf(Schedule schedule) {
  auto executable = std::make_shared<ExecutableImpl>();
  for (const KernelDesc &kernel : schedule.kernels)
    executable->kernels.push_back(loadKernel(kernel));
  executable->epilogues.resize(schedule.kernels.size(), nullptr);
  executable->setSchedule(std::move(schedule));
  return executable;
}

//--- Memory of callers
//--------------------------------------------------------------------------------------------------
CallerMemory::CallerMemory(const Schedule &schedule, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto make = [&](const TensorType &type) {
    std::vector<uint32_t> words(static_cast<size_t>(type.bytes() / 4));
    for (uint32_t &w : words)
      w = static_cast<uint32_t>(random());
    return words;
  };
  for (const ValueDesc &input : schedule.inputs)
    inputs.push_back(make(input.type));
  for (const StateDesc &state : schedule.states)
    if (state.kind != StateKind::Derived)
      states.push_back(make(state.type));
  for (const ValueDesc &output : schedule.outputs)
    outputs.push_back(make(output.type));
}
std::vector<const void *> CallerMemory::inputPointers() const {
  std::vector<const void *> list;
  for (const auto &each : inputs)
    list.push_back(each.data());
  return list;
}
std::vector<void *> CallerMemory::statePointers() {
  std::vector<void *> list;
  for (auto &each : states)
    list.push_back(each.data());
  return list;
}
std::vector<void *> CallerMemory::outputPointers() {
  std::vector<void *> list;
  for (auto &each : outputs)
    list.push_back(each.data());
  return list;
}

//--- One command after the other
//----------------------------------------------------------------------------------------
SerialRun::SerialRun(const Schedule &schedule) : s_(schedule), shift_(schedule.buffers.size(), 0) {
  for (const ArenaDesc &arena : s_.arenas)
    arenas_.emplace_back(static_cast<size_t>(arena.bytes / 4), 0xFFFFFFFF);
  for (const StateDesc &state : s_.states)
    derived_.emplace_back(state.kind == StateKind::Derived ? static_cast<size_t>(state.type.bytes() / 4) : 0);
}
void SerialRun::bind(CallerMemory &memory) { run(s_.prepare, memory); }
void SerialRun::step(CallerMemory &memory) { run(s_.step, memory); }

void *SerialRun::address(const BufferDesc &b, CallerMemory &memory, uint32_t index) {
  std::vector<uint32_t> *words = nullptr;
  switch (b.space) {
  case Space::Arena:
    words = &arenas_[b.index];
    break;
  case Space::Input:
    words = &memory.inputs[b.index];
    break;
  case Space::Output:
    words = &memory.outputs[b.index];
    break;
  default: {
    size_t bound = 0;
    for (uint32_t i = 0; i < b.index; ++i)
      bound += s_.states[i].kind != StateKind::Derived;
    words = s_.states[b.index].kind == StateKind::Derived ? &derived_[b.index] : &memory.states[bound];
  }
  }
  return reinterpret_cast<std::byte *>(words->data()) + b.offset + shift_[index];
}

void SerialRun::run(const Program &p, CallerMemory &memory) {
  for (const Command &c : p.commands) {
    std::vector<void *> operands;
    for (uint32_t k = 0; k < c.numOperands; ++k) {
      const uint32_t b = p.operands[c.firstOperand + k].buffer;
      operands.push_back(address(s_.buffers[b], memory, b));
    }
    const int64_t *scalars = p.scalars.data() + c.firstScalar;
    const int64_t bytes = c.numOperands ? s_.buffers[p.operands[c.firstOperand].buffer].bytes : 0;
    switch (c.kind) {
    case CommandKind::Launch: {
      KernelArgs args = {};
      args.buffers = operands.data();
      args.scalars = scalars;
      loadKernel(s_.kernels[c.kernel]).fn(&args, 0, 1);
      break;
    }
    case CommandKind::Copy:
      std::memcpy(operands[1], operands[0], static_cast<size_t>(bytes));
      break;
    case CommandKind::Fill:
      for (int64_t i = 0; i < bytes / 4; ++i)
        static_cast<uint32_t *>(operands[0])[i] = static_cast<uint32_t>(c.fillValue);
      break;
    case CommandKind::Branch:
      run(s_.bodies[c.body + (*static_cast<const uint8_t *>(operands[0]) ? 0 : 1)], memory);
      break;
    case CommandKind::While:
      for (run(s_.bodies[c.body], memory); *static_cast<const uint8_t *>(operands[0]); run(s_.bodies[c.body], memory))
        run(s_.bodies[c.body + 1], memory);
      break;
    case CommandKind::Loop: {
      const bool wantsIndex = c.numOperands == c.numScalars;
      const uint32_t numMoving = c.numScalars - 1u, firstMoving = c.firstOperand + c.numOperands - numMoving;
      for (int64_t i = 0; i < scalars[0]; ++i) {
        if (wantsIndex)
          *static_cast<int64_t *>(operands[0]) = i;
        run(s_.bodies[c.body], memory);
        for (uint32_t m = 0; m < numMoving; ++m)
          shift_[p.operands[firstMoving + m].buffer] += scalars[1 + m];
      }
      for (uint32_t m = 0; m < numMoving; ++m)
        shift_[p.operands[firstMoving + m].buffer] -= scalars[0] * scalars[1 + m];
      break;
    }
    default:
      std::abort();
    }
  }
}

} // namespace tressel::runtime::test
