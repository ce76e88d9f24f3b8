#include "test/support/RandomSchedule.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

namespace tressel::test {

using namespace runtime;

namespace {

constexpr int64_t kWord = 4;
constexpr uint32_t kParts = 1000; ///< an arena that is not there, and more of them

/// Bytes of a space that a command touches; of a loop, those of all its iterations.
struct Touched {
  Space space;
  uint32_t index;
  int64_t begin, end;
  bool writes;
  bool overlaps(const Touched &o) const {
    return space == o.space && index == o.index && begin < o.end && o.begin < end;
  }
};
using Key = std::pair<Space, uint32_t>;

class Generator {
public:
  Generator(uint64_t seed, const RandomScheduleOptions &options) : options(options), random(seed) {}

  Schedule run() {
    s.name = "random";
    s.locations.push_back({});
    for (uint32_t line = 1; line <= 20; ++line)
      s.locations.push_back({"op" + std::to_string(line), "random.cpp", line});
    s.inFlight = options.inFlight;
    makeStreams();
    makeMemory();
    if (options.prepare)
      makePrepare();
    makeStep();
    finish(s.prepare), finish(s.step);
    for (CommandList &body : s.bodies)
      finish(body);
    for (const ArenaDesc &arena : s.arenas)
      s.peakBytes += arena.bytes;
    return std::move(s);
  }

private:
  int pick(int n) { return n <= 1 ? 0 : static_cast<int>(random() % static_cast<uint64_t>(n)); }
  bool oneIn(int n) { return pick(n) == 0; }
  template <typename T> const T &any(const std::vector<T> &of) { return of[static_cast<size_t>(pick(int(of.size())))]; }

  //--- Streams and memory -------------------------------------------------------------------------------------------
  static constexpr DeviceRef kCpu{};
  static DeviceRef gpu(int i) { return {DeviceKind::Gpu, static_cast<uint16_t>(i)}; }

  uint16_t stream(DeviceRef device, StreamKind kind, std::string name) {
    s.streams.push_back({device, kind, std::move(name)});
    return static_cast<uint16_t>(s.streams.size() - 1);
  }
  void makeStreams() {
    computeOf[nameOf(kCpu)] = {stream(kCpu, StreamKind::Compute, "cpu")};
    for (int i = 0; i < options.lanes; ++i)
      computeOf[nameOf(kCpu)].push_back(stream(kCpu, StreamKind::Lane, "cpu.lane" + std::to_string(i)));
    for (int i = 0; i < options.accelerators; ++i) {
      const std::string name = nameOf(gpu(i));
      devices.push_back(gpu(i));
      computeOf[name] = {stream(gpu(i), StreamKind::Compute, name)};
      copyIn.push_back(stream(gpu(i), StreamKind::CopyIn, name + ".in"));
      copyOut.push_back(stream(gpu(i), StreamKind::CopyOut, name + ".out"));
    }
    devices.push_back(kCpu);
    for (size_t axis = 0; axis < options.mesh.size(); ++axis)
      s.mesh.push_back({std::string(1, static_cast<char>('a' + axis)), options.mesh[axis]});
    if (!options.collectives || (options.accelerators < 2 && options.mesh.empty()))
      return;
    auto &all = groups.emplace_back();
    for (int i = 0; i < options.accelerators; ++i)
      all.push_back(stream(gpu(i), StreamKind::CopyOut, nameOf(gpu(i)) + ".comm"));
    if (options.groups < 2)
      return;
    std::vector<uint32_t> side;
    for (int i = 0; i < options.accelerators; ++i)
      side.push_back(stream(gpu(i), StreamKind::CopyOut, nameOf(gpu(i)) + ".side"));
    groups.push_back(side);
    if (options.groups > 2 && options.accelerators > 2)
      groups.push_back({side[1], groups[0][2]});
  }
  void arena(DeviceRef device, MemoryKind memory, int64_t bytes) {
    s.arenas.push_back({device, memory, bytes});
    const uint32_t index = static_cast<uint32_t>(s.arenas.size() - 1);
    places[nameOf(device)].push_back({Space::Arena, index});
  }
  TensorType words(int64_t n) const { return {i32, Shape{n}}; }
  int64_t someWords() { return 1 + pick(static_cast<int>(options.words)); }

  void makeMemory() {
    arena(kCpu, MemoryKind::Host, 64 * (12 + pick(8)));
    arena(kCpu, MemoryKind::Pinned, 64 * (8 + pick(8)));
    for (int i = 0; i < options.accelerators; ++i)
      arena(gpu(i), MemoryKind::Device, 64 * (12 + pick(16)));
    auto memory = [&] { return oneIn(2) ? MemoryKind::Pinned : MemoryKind::Host; };
    auto host = [&](Space space, size_t index) { places["cpu"].push_back({space, static_cast<uint32_t>(index)}); };
    auto home = [&]() -> Home {
      if (options.homes && options.accelerators > 0 && oneIn(2))
        return homeOn(gpu(pick(options.accelerators)));
      return {kCpu, memory()};
    };
    auto value = [&](std::vector<ValueDesc> &list, Space space, std::string name) {
      const TensorType type = words(2 * someWords());
      list.push_back({std::move(name), type, home()});
      places[nameOf(list.back().home.device)].push_back({space, static_cast<uint32_t>(list.size() - 1)});
    };
    for (int i = 0; i < 2; ++i)
      value(s.inputs, Space::Input, "in" + std::to_string(i));
    for (int i = 0; i < 2; ++i)
      value(s.outputs, Space::Output, "out" + std::to_string(i));
    auto state = [&](std::string name, StateKind kind, DeviceRef device) {
      const MemoryKind memory = device.kind == DeviceKind::Cpu ? MemoryKind::Host : MemoryKind::Device;
      s.states.push_back({std::move(name), words(2 * someWords()), kind, {device, memory}});
      places[nameOf(device)].push_back({Space::State, static_cast<uint32_t>(s.states.size() - 1)});
    };
    state("m", StateKind::Mutable, kCpu);
    for (int i = 0; i < options.accelerators && options.homes && options.inFlight == 1; ++i)
      state("m" + std::to_string(i), StateKind::Mutable, gpu(i));
    if (options.prepare) {
      state("w", StateKind::Parameter, options.homes && options.accelerators > 0 ? gpu(0) : kCpu);
      state("d", StateKind::Derived, kCpu);
      for (int i = 0; i < options.accelerators; ++i)
        state("d" + std::to_string(i), StateKind::Derived, gpu(i));
    }
    for (int i = 0; i < 2; ++i) {
      s.constants.push_back({i * 1024, kWord * (4 + pick(20))});
      host(Space::Constant, s.constants.size() - 1);
    }
    for (const auto &[device, list] : places)
      for (const Key &key : list)
        deviceOf[key] = device;
  }

  int64_t bytesOf(Key key) const {
    switch (key.first) {
    case Space::Arena:
      return s.arenas[key.second].bytes.number();
    case Space::Input:
      return s.inputs[key.second].type.bytes();
    case Space::Output:
      return s.outputs[key.second].type.bytes();
    case Space::State:
      return s.states[key.second].type.bytes();
    case Space::Constant:
      return s.constants[key.second].bytes;
    }
    return 0;
  }
  bool isReadable(Key key) const {
    if (!inPrepare)
      return true;
    return key.first == Space::Arena || key.first == Space::Constant ||
           (key.first == Space::State && s.states[key.second].kind != StateKind::Mutable);
  }
  bool isWritable(Key key) const {
    if (key.first == Space::State)
      return s.states[key.second].kind == (inPrepare ? StateKind::Derived : StateKind::Mutable);
    return key.first == Space::Arena || (key.first == Space::Output && !inPrepare);
  }

  //--- Ranges -------------------------------------------------------------------------------------------------------
  uint32_t buffer(Key key, int64_t offset, int64_t bytes, DType type = i32) {
    auto [it, isNew] = buffers.try_emplace({key, offset, bytes, type}, static_cast<uint32_t>(s.buffers.size()));
    if (isNew)
      s.buffers.push_back(
          {key.first, key.second, offset, bytes, type == i32 ? words(bytes / kWord) : TensorType{type, Shape{}}});
    return it->second;
  }
  Touched touched(uint32_t b, bool writes, int64_t further = 0) const {
    const BufferDesc &d = s.buffers[b];
    return {d.space, d.index, d.offset.number(), (d.offset + d.bytes + further).number(), writes};
  }
  std::vector<char> &writtenIn(Key key) {
    auto [it, isNew] = written.try_emplace(key);
    if (isNew) {
      const bool initial = key.first == Space::Input || key.first == Space::Constant ||
                           (key.first == Space::State && s.states[key.second].kind != StateKind::Derived);
      it->second.assign(static_cast<size_t>(bytesOf(key)), initial);
    }
    return it->second;
  }
  bool isWritten(const Touched &t) {
    const auto &bytes = writtenIn({t.space, t.index});
    return std::all_of(bytes.begin() + t.begin, bytes.begin() + t.end, [](char b) { return b != 0; });
  }
  void markWritten(const Touched &t) {
    auto &bytes = writtenIn({t.space, t.index});
    std::fill(bytes.begin() + t.begin, bytes.begin() + t.end, 1);
  }
  /// Bytes that bodies at this place must leave alone: what loops around them move over, and what chooses.
  bool isReserved(const Touched &t) const {
    return std::ranges::any_of(reserved, [&](const Touched &r) { return r.overlaps(t) && (r.writes || t.writes); });
  }
  /// Where several calls are in flight, what they share is ordered by one stream alone.
  bool mayTouch(Key key, uint16_t onStream) const {
    return options.inFlight == 1 || key.first != Space::State || s.states[key.second].kind != StateKind::Mutable ||
           (onStream == 0 && depth == 0);
  }

  /// A range of `bytes`, or of any length if that is 0, that `accepts` likes; -1 if none was found.
  template <typename Fn>
  int64_t range(const std::string &device, int64_t bytes, bool writes, uint16_t onStream, Fn accepts) {
    for (int tries = 0; tries < 30; ++tries) {
      const Key key = any(places[device]);
      if (!(writes ? isWritable(key) : isReadable(key)) || !mayTouch(key, onStream))
        continue;
      const int64_t length = bytes ? bytes : kWord * someWords(), all = bytesOf(key);
      if (length > all)
        continue;
      const int64_t step = key.first == Space::Arena ? 64 : kWord;
      const int64_t offset = step * pick(static_cast<int>((all - length) / step + 1));
      const Touched t{key.first, key.second, offset, offset + length, writes};
      if (isReserved(t) || (!writes && !isWritten(t)) || !accepts(t))
        continue;
      return buffer(key, offset, length);
    }
    return -1;
  }
  int64_t readable(const std::string &device, uint16_t onStream, int64_t bytes = 0) {
    return range(device, bytes, false, onStream, [](const Touched &) { return true; });
  }
  /// Written ranges coincide with one that is read, or overlap no operand.
  int64_t writable(const std::string &device, uint16_t onStream, const std::vector<Operand> &operands,
                   int64_t bytes = 0) {
    return range(device, bytes, true, onStream, [&](const Touched &t) {
      int same = 0;
      for (const Operand &o : operands) {
        const Touched other = touched(o.buffer, o.access != Access::Read);
        if (!other.overlaps(t))
          continue;
        if (other.writes || other.begin != t.begin || other.end != t.end)
          return false;
        ++same;
      }
      return same <= 1 || !operands.empty();
    });
  }

  //--- Commands -----------------------------------------------------------------------------------------------------
  /// Programs as they are made: bodies are kept by number, for the table grows.
  struct Draft {
    CommandList program;
    std::vector<std::vector<Touched>> touches; ///< by command
  };

  void add(Draft &d, Command c, const std::vector<Operand> &operands, std::vector<Touched> more = {}) {
    c.firstOperand = static_cast<uint32_t>(d.program.operands.size());
    c.numOperands = static_cast<uint16_t>(operands.size());
    c.loc = static_cast<uint32_t>(pick(static_cast<int>(s.locations.size())));
    d.program.operands.insert(d.program.operands.end(), operands.begin(), operands.end());
    if (c.kind != CommandKind::Loop)
      for (const Operand &o : operands) {
        more.push_back(touched(o.buffer, o.access != Access::Read));
        if (o.access != Access::Read)
          markWritten(more.back());
      }
    if (c.kind == CommandKind::Collective) // a device has one part at a time
      more.push_back({Space::Arena, kParts + s.streams[c.stream].device.index, 0, 1, true});
    d.program.commands.push_back(c);
    d.touches.push_back(std::move(more));
    ++made;
  }

  /// Every kernel is launched once, or again with other operands of the same sizes where that fits.
  uint32_t kernel(const std::string &params, int numInputs, int64_t bytes) {
    s.kernels.push_back({.symbol = "k" + std::to_string(s.kernels.size()),
                         .provider = "mix",
                         .target = KernelTarget::HostLibrary,
                         .params = params,
                         .numInputs = numInputs,
                         .flops = 1000 * (1 + pick(1000)),
                         .bytes = bytes});
    return static_cast<uint32_t>(s.kernels.size() - 1);
  }
  /// "mix READS WRITES SEED" and the bytes of each.
  std::string mixParams(const std::vector<Operand> &operands) {
    const auto reads = std::ranges::count(operands, Access::Read, &Operand::access);
    std::string text = "mix " + std::to_string(reads) + " " + std::to_string(operands.size() - size_t(reads)) + " " +
                       std::to_string(random() % 100000);
    for (const Operand &o : operands)
      text += " " + dim::str(s.buffers[o.buffer].bytes);
    return text;
  }
  /// Up to three ranges that are read, one or two that are written.
  std::vector<Operand> mixOperands(const std::string &device, uint16_t onStream) {
    std::vector<Operand> operands;
    for (int i = pick(4); i > 0; --i)
      if (const int64_t b = readable(device, onStream); b >= 0)
        operands.push_back({static_cast<uint32_t>(b), Access::Read});
    // In place now and then.
    if (!operands.empty() && oneIn(4)) {
      const BufferDesc &b = s.buffers[operands[0].buffer];
      const Touched t = touched(operands[0].buffer, true);
      const bool alone = std::none_of(operands.begin() + 1, operands.end(), [&](const Operand &o) {
        return o.buffer != operands[0].buffer && touched(o.buffer, false).overlaps(t);
      });
      if (alone && isWritable({b.space, b.index}) && !isReserved(t))
        operands.push_back({operands[0].buffer, Access::Write});
    }
    for (int i = 1 + pick(2); i > 0; --i)
      if (const int64_t b = writable(device, onStream, operands); b >= 0)
        operands.push_back({static_cast<uint32_t>(b), Access::Write});
    const bool writes = std::ranges::any_of(operands, [](const Operand &o) { return o.access == Access::Write; });
    return writes ? operands : std::vector<Operand>();
  }

  void launch(Draft &d) {
    const std::string device = nameOf(any(devices));
    const uint16_t on = any(computeOf[device]);
    const std::vector<Operand> operands = mixOperands(device, on);
    if (operands.empty())
      return;
    int64_t bytes = 0, reads = std::ranges::count(operands, Access::Read, &Operand::access);
    for (const Operand &o : operands)
      bytes += s.buffers[o.buffer].bytes.number();
    add(d, {.kind = CommandKind::Launch, .stream = on, .kernel = kernel(mixParams(operands), int(reads), bytes)},
        operands);
  }
  void hostCall(Draft &d) {
    const uint16_t on = any(computeOf["cpu"]);
    const std::vector<Operand> operands = mixOperands("cpu", on);
    if (operands.empty())
      return;
    const uint32_t function = kernel(mixParams(operands), 0, 0);
    s.kernels[function].provider = "host";
    s.kernels[function].target = KernelTarget::HostFunction;
    add(d, {.kind = CommandKind::HostCall, .stream = on, .kernel = function}, operands);
  }
  void fill(Draft &d) {
    const std::string device = nameOf(any(devices));
    const uint16_t on = any(computeOf[device]);
    if (const int64_t b = writable(device, on, {}); b >= 0)
      add(d, {.kind = CommandKind::Fill, .stream = on, .fillValue = random() & 0xffffffff},
          {{uint32_t(b), Access::Write}});
  }
  /// A copy within a device or between two, in up to three chunks.
  void copy(Draft &d) {
    DeviceRef from = any(devices), to = any(devices);
    if (from != to && from.kind == to.kind && !options.deviceToDevice)
      to = kCpu;
    const uint16_t on = from == to                     ? any(computeOf[nameOf(from)])
                        : from.kind == DeviceKind::Gpu ? copyOut[from.index]
                                                       : copyIn[to.index];
    const int64_t source = readable(nameOf(from), on);
    if (source < 0)
      return;
    const int64_t bytes = s.buffers[size_t(source)].bytes.number();
    const int64_t target = writable(nameOf(to), on, {{uint32_t(source), Access::Write}}, bytes);
    if (target < 0)
      return;
    inChunks(d, on, uint32_t(source), uint32_t(target));
  }
  void inChunks(Draft &d, uint16_t on, uint32_t source, uint32_t target) {
    const BufferDesc from = s.buffers[source], to = s.buffers[target];
    // Offsets in arenas are multiples of 64.
    int64_t chunk = from.bytes.number();
    if (const int chunks = 1 + pick(3); from.bytes > 64 && chunks > 1)
      chunk = ((from.bytes / chunks + 63) / 64 * 64).number();
    for (int64_t at = 0; at < from.bytes; at += chunk) {
      const int64_t bytes = std::min(chunk, (from.bytes - at).number());
      add(d, {.kind = CommandKind::Copy, .stream = on},
          {{buffer({from.space, from.index}, (from.offset + at).number(), bytes), Access::Read},
           {buffer({to.space, to.index}, (to.offset + at).number(), bytes), Access::Write}});
    }
  }

  void collective(Draft &d) {
    const std::vector<uint32_t> members = groups.size() > 1 ? any(groups) : groups[0];
    auto n = static_cast<int64_t>(members.size());
    CollectiveDesc c{.name = "c" + std::to_string(s.collectives.size())};
    if (!s.mesh.empty()) {
      for (uint32_t axis = 0; axis < s.mesh.size(); ++axis)
        if (s.mesh.size() == 1 || oneIn(2))
          c.axes.push_back(axis);
      if (c.axes.empty())
        c.axes.push_back(static_cast<uint32_t>(pick(static_cast<int>(s.mesh.size()))));
      for (uint32_t axis : c.axes)
        n *= s.mesh[axis].size.number();
    }
    c.kind = static_cast<CollectiveKind>(pick(4));
    c.reduction = static_cast<Reduction>(pick(4));
    c.members = members;
    c.root = static_cast<uint32_t>(pick(static_cast<int>(n)));
    const int64_t part = kWord * (1 + pick(6));
    const int64_t sourceBytes = c.kind == CollectiveKind::ReduceScatter ? n * part : part,
                  targetBytes = c.kind == CollectiveKind::AllGather ? n * part : part;
    std::vector<std::vector<Operand>> parts;
    for (uint32_t m = 0; m < members.size(); ++m) {
      const std::string device = nameOf(s.streams[members[m]].device);
      const auto on = static_cast<uint16_t>(members[m]);
      std::vector<Operand> operands;
      if (c.kind != CollectiveKind::Broadcast || m == c.root || !c.axes.empty()) {
        const int64_t source = readable(device, on, sourceBytes);
        if (source < 0)
          return;
        operands.push_back({uint32_t(source), Access::Read});
      }
      int64_t target = -1;
      if (!operands.empty() && sourceBytes == targetBytes && oneIn(3)) { // in place
        const BufferDesc &b = s.buffers[operands[0].buffer];
        if (isWritable({b.space, b.index}) && !isReserved(touched(operands[0].buffer, true)))
          target = operands[0].buffer;
      }
      if (target < 0)
        target = writable(device, on, operands, targetBytes);
      if (target < 0)
        return;
      operands.push_back({uint32_t(target), Access::Write});
      parts.push_back(operands);
    }
    s.collectives.push_back(c);
    for (size_t m = 0; m < parts.size(); ++m)
      add(d,
          {.kind = CommandKind::Collective,
           .stream = static_cast<uint16_t>(members[m]),
           .kernel = static_cast<uint32_t>(s.collectives.size() - 1)},
          parts[m]);
  }

  //--- Bodies -------------------------------------------------------------------------------------------------------
  /// Makes a body of about `commands`, and returns what it touches.
  std::vector<Touched> body(uint32_t number, int commands, Draft inner = {}) {
    ++depth;
    for (int i = 0; i < commands; ++i)
      command(inner);
    --depth;
    std::vector<Touched> all;
    for (const auto &list : inner.touches)
      all.insert(all.end(), list.begin(), list.end());
    drafts[number] = std::move(inner);
    return all;
  }
  uint32_t bodies(size_t count) {
    s.bodies.resize(s.bodies.size() + count);
    return static_cast<uint32_t>(s.bodies.size() - count);
  }

  void loop(Draft &d) {
    const std::string device = nameOf(any(devices));
    const uint16_t on = any(computeOf[device]);
    const int64_t trips = 1 + pick(4);
    std::vector<Operand> operands;
    std::vector<Touched> touches;
    const size_t keep = reserved.size();
    ++depth; // what follows is touched inside
    if (oneIn(2))
      if (const int64_t b = writable(device, on, {}, 8); b >= 0 && s.buffers[size_t(b)].space == Space::Arena) {
        const BufferDesc index = s.buffers[size_t(b)];
        operands.push_back({buffer({index.space, index.index}, index.offset.number(), 8, i64), Access::Write});
        s.buffers[operands[0].buffer].type = {i64, Shape{}};
        touches.push_back(touched(operands[0].buffer, true));
        reserved.push_back(touches.back());
      }
    // A range that is read, and one that is written, a piece in each iteration.
    std::vector<std::pair<uint32_t, bool>> moving;
    const int64_t piece = kWord * (1 + pick(6));
    if (oneIn(2)) {
      for (bool writes : {false, true}) {
        const int64_t whole = writes ? writable(device, on, {}, trips * piece) : readable(device, on, trips * piece);
        if (whole < 0)
          continue;
        const BufferDesc way = s.buffers[size_t(whole)];
        const uint32_t first = buffer({way.space, way.index}, way.offset.number(), piece);
        moving.emplace_back(first, writes);
        reserved.push_back(touched(uint32_t(whole), true));
      }
    }
    Draft inner;
    const Touched *index = touches.empty() ? nullptr : &touches[0];
    if (index)
      markWritten(*index);
    // What an iteration does with them: a launch that reads the number and the one, and writes the other.
    if (!moving.empty() || index) {
      std::vector<Operand> uses;
      if (index)
        uses.push_back({operands[0].buffer, Access::Read});
      for (auto [b, writes] : moving)
        if (!writes)
          uses.push_back({b, Access::Read});
      const int64_t reads = static_cast<int64_t>(uses.size());
      for (auto [b, writes] : moving)
        if (writes)
          uses.push_back({b, Access::Write});
      if (uses.size() == size_t(reads))
        if (const int64_t b = writable(device, on, uses); b >= 0)
          uses.push_back({uint32_t(b), Access::Write});
      if (uses.size() > size_t(reads)) {
        int64_t bytes = 0;
        for (const Operand &o : uses)
          bytes += s.buffers[o.buffer].bytes.number();
        add(inner,
            {.kind = CommandKind::Launch,
             .stream = any(computeOf[device]),
             .kernel = kernel(mixParams(uses), int(reads), bytes)},
            uses);
      }
    }
    --depth;
    const uint32_t number = bodies(1);
    numbered += !operands.empty();
    std::vector<Touched> inside = body(number, 1 + pick(4), std::move(inner));
    numbered -= !operands.empty();
    reserved.resize(keep);
    Command c{.kind = CommandKind::Loop, .stream = on, .body = number};
    c.firstScalar = static_cast<uint32_t>(d.program.scalars.size());
    d.program.scalars.push_back(trips);
    for (auto [b, writes] : moving) {
      operands.push_back({b, Access::Read});
      d.program.scalars.push_back(piece);
      inside.push_back(touched(b, writes, (trips - 1) * piece));
      if (writes && isWrittenBy(number, b))
        markWritten(inside.back());
    }
    c.numScalars = static_cast<uint16_t>(1 + moving.size());
    touches.insert(touches.end(), inside.begin(), inside.end());
    add(d, c, operands, std::move(touches));
  }
  bool isWrittenBy(uint32_t body, uint32_t buffer) const {
    return std::ranges::any_of(drafts.at(body).program.operands,
                               [&](const Operand &o) { return o.buffer == buffer && o.access == Access::Write; });
  }

  /// A byte of an arena.
  int64_t byteOf(const std::string &device, uint16_t on) {
    for (int tries = 0; tries < 10; ++tries)
      if (const int64_t b = writable(device, on, {}, kWord); b >= 0 && s.buffers[size_t(b)].space == Space::Arena)
        return buffer({Space::Arena, s.buffers[size_t(b)].index}, s.buffers[size_t(b)].offset.number(), 1,
                      DType::boolean);
    return -1;
  }

  void branch(Draft &d) {
    const std::string device = nameOf(any(devices));
    const uint16_t on = any(computeOf[device]);
    const int64_t flag = byteOf(device, on), source = readable(device, on);
    if (flag < 0 || source < 0 || touched(uint32_t(flag), true).overlaps(touched(uint32_t(source), false)))
      return;
    const std::vector<Operand> makes{{uint32_t(source), Access::Read}, {uint32_t(flag), Access::Write}};
    add(d,
        {.kind = CommandKind::Launch,
         .stream = on,
         .kernel = kernel("flag " + dim::str(s.buffers[size_t(source)].bytes), 1, 64)},
        makes);
    const uint32_t number = bodies(2);
    for (const auto &[key, where] : deviceOf)
      writtenIn(key);
    const auto before = written;
    ++inChoice;
    std::vector<Touched> touches = body(number, pick(3));
    auto first = std::exchange(written, before);
    const std::vector<Touched> others = body(number + 1, 1 + pick(3));
    --inChoice;
    touches.insert(touches.end(), others.begin(), others.end());
    for (auto &[key, bytes] : first) { // what both have written
      auto &all = writtenIn(key);
      for (size_t i = 0; i < bytes.size(); ++i)
        all[i] = static_cast<char>(all[i] && bytes[i]);
    }
    add(d, {.kind = CommandKind::Branch, .stream = on, .body = number}, {{uint32_t(flag), Access::Read}},
        std::move(touches));
  }

  /// Counts down to nothing.
  void whileLoop(Draft &d) {
    const std::string device = nameOf(any(devices));
    const uint16_t on = any(computeOf[device]);
    const int64_t counter = writable(device, on, {}, kWord);
    if (counter < 0 || s.buffers[size_t(counter)].space != Space::Arena)
      return;
    const size_t keep = reserved.size();
    reserved.push_back(touched(uint32_t(counter), true));
    const int64_t flag = byteOf(device, on);
    if (flag < 0)
      return reserved.resize(keep);
    reserved.push_back(touched(uint32_t(flag), true));
    add(d, {.kind = CommandKind::Fill, .stream = on, .fillValue = uint64_t(1 + pick(3))},
        {{uint32_t(counter), Access::Write}});
    const uint32_t number = bodies(2);
    Draft condition;
    add(condition, {.kind = CommandKind::Launch, .stream = on, .kernel = kernel("countdown", 1, 16)},
        {{uint32_t(counter), Access::Read}, {uint32_t(counter), Access::Write}, {uint32_t(flag), Access::Write}});
    ++inChoice;
    std::vector<Touched> touches = body(number, pick(2), std::move(condition));
    const auto before = written;
    const std::vector<Touched> others = body(number + 1, 1 + pick(3));
    --inChoice;
    written = before;
    reserved.resize(keep);
    touches.insert(touches.end(), others.begin(), others.end());
    add(d, {.kind = CommandKind::While, .stream = on, .body = number}, {{uint32_t(flag), Access::Read}},
        std::move(touches));
  }

  //--- Programs -----------------------------------------------------------------------------------------------------
  void command(Draft &d) {
    const int dice = pick(20);
    if (dice < 7)
      return copy(d);
    if (dice < 13)
      return launch(d);
    if (dice < 15)
      return fill(d);
    if (dice < 16 && options.hostCalls && !inPrepare)
      return hostCall(d);
    const bool mayMeet = !groups.empty() && !inPrepare && !inChoice && (s.mesh.empty() || !numbered) &&
                         (options.inFlight == 1 || depth == 0);
    if (mayMeet && (dice < 17 || (!s.mesh.empty() && oneIn(2))))
      return collective(d);
    if (options.bodies && !inPrepare && depth < 2 && choices < 4) {
      switch (pick(3)) {
      case 0:
        return loop(d);
      case 1:
        ++choices;
        return branch(d);
      default:
        ++choices;
        return whileLoop(d);
      }
    }
    launch(d);
  }

  void makePrepare() {
    inPrepare = true;
    Draft d;
    for (int i = 0; i < 6; ++i)
      command(d);
    for (uint32_t i = 0; i < s.states.size(); ++i) { // all of each
      const StateDesc &state = s.states[i];
      if (state.kind != StateKind::Derived)
        continue;
      const std::string device = nameOf(state.home.device);
      const uint32_t whole = buffer({Space::State, i}, 0, state.type.bytes());
      const int64_t source = readable("cpu", 0, state.type.bytes());
      if (source >= 0 && !touched(uint32_t(source), true).overlaps(touched(whole, true)))
        add(d,
            {.kind = CommandKind::Copy,
             .stream =
                 state.home.device.kind == DeviceKind::Gpu ? copyIn[state.home.device.index] : any(computeOf["cpu"])},
            {{uint32_t(source), Access::Read}, {whole, Access::Write}});
      else
        add(d, {.kind = CommandKind::Fill, .stream = any(computeOf[device]), .fillValue = 7}, {{whole, Access::Write}});
    }
    std::erase_if(written, [](const auto &entry) { return entry.first.first == Space::Arena; });
    s.prepare = std::move(d.program);
    touchesOf[&s.prepare] = std::move(d.touches);
    inPrepare = false;
  }

  void makeStep() {
    Draft d;
    made = 0;
    // Something on every device to begin with.
    for (int i = 0; i < options.accelerators; ++i)
      for (int tries = 0; tries < 3; ++tries)
        if (const int64_t source = readable("cpu", copyIn[size_t(i)]); source >= 0)
          if (const int64_t target =
                  writable(nameOf(gpu(i)), copyIn[size_t(i)], {}, s.buffers[size_t(source)].bytes.number());
              target >= 0)
            inChunks(d, copyIn[size_t(i)], uint32_t(source), uint32_t(target));
    for (int tries = 0; made < options.commands && tries < 20 * options.commands; ++tries)
      command(d);
    completeOutputs(d);
    s.step = std::move(d.program);
    touchesOf[&s.step] = std::move(d.touches);
  }

  void completeOutputs(Draft &d) {
    for (uint32_t i = 0; i < s.outputs.size(); ++i) {
      const Key key{Space::Output, i};
      for (int64_t at = 0, all = bytesOf(key); at < all;) {
        if (writtenIn(key)[size_t(at)]) {
          at += kWord;
          continue;
        }
        int64_t end = at;
        while (end < all && end - at < kWord * 16 && !writtenIn(key)[size_t(end)])
          end += kWord;
        const uint32_t target = buffer(key, at, end - at);
        const DeviceRef home = s.outputs[i].home.device,
                        device = isHost(home) || options.deviceToDevice ? any(devices) : home;
        const uint16_t on = device == home   ? any(computeOf[nameOf(home)])
                            : isHost(device) ? copyIn[home.index]
                                             : copyOut[device.index];
        const int64_t source = readable(nameOf(device), on, end - at);
        if (source >= 0 && !touched(uint32_t(source), true).overlaps(touched(target, true)))
          add(d, {.kind = CommandKind::Copy, .stream = on},
              {{uint32_t(source), Access::Read}, {target, Access::Write}});
        else
          add(d, {.kind = CommandKind::Fill, .stream = any(computeOf[nameOf(home)]), .fillValue = 3},
              {{target, Access::Write}});
        at = end;
      }
    }
  }

  /// Waits for every earlier command of another stream that conflicts; then those that follow from others go.
  void finish(CommandList &p) {
    if (&p >= s.bodies.data() && &p < s.bodies.data() + s.bodies.size()) {
      Draft &draft = drafts[static_cast<uint32_t>(&p - s.bodies.data())];
      p = std::move(draft.program);
      touchesOf[&p] = std::move(draft.touches);
    }
    const auto &touches = touchesOf[&p];
    for (uint32_t i = 0; i < p.commands.size(); ++i) {
      Command &c = p.commands[i];
      c.firstWait = static_cast<uint32_t>(p.waits.size());
      for (uint32_t j = 0; j < i; ++j) {
        if (p.commands[j].stream == c.stream)
          continue;
        bool conflicts = false, data = false;
        for (const Touched &mine : touches[i])
          for (const Touched &theirs : touches[j])
            if (mine.overlaps(theirs) && (mine.writes || theirs.writes)) {
              conflicts = true;
              data |= theirs.writes;
            }
        if (conflicts)
          p.waits.push_back({j, data ? WaitReason::Data : WaitReason::War});
      }
      c.numWaits = static_cast<uint16_t>(p.waits.size() - c.firstWait);
    }
    reduceWaits(p, s.streams.size());
  }

  const RandomScheduleOptions options;
  std::mt19937_64 random;
  Schedule s;
  std::vector<DeviceRef> devices;
  std::map<std::string, std::vector<uint16_t>> computeOf;
  std::vector<uint16_t> copyIn, copyOut; ///< by accelerator
  std::vector<std::vector<uint32_t>> groups; ///< of collectives
  std::map<std::string, std::vector<Key>> places;
  std::map<Key, std::string> deviceOf;
  std::map<std::tuple<Key, int64_t, int64_t, DType>, uint32_t> buffers;
  std::map<Key, std::vector<char>> written;
  std::vector<Touched> reserved;
  std::map<uint32_t, Draft> drafts; ///< of bodies
  std::map<const CommandList *, std::vector<std::vector<Touched>>> touchesOf;
  bool inPrepare = false;
  int depth = 0, inChoice = 0, choices = 0, made = 0;
  int numbered = 0; ///< loops around that write their number
};

} // namespace

Schedule randomSchedule(uint64_t seed, const RandomScheduleOptions &options) { return Generator(seed, options).run(); }

} // namespace tressel::test
