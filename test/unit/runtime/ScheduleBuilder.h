// Writes flat schedules by hand, for tests.
#pragma once

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Schedule.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace tressel::runtime {

class ScheduleBuilder {
public:
  Schedule s;

  explicit ScheduleBuilder(int streams = 1) {
    s.name = "test";
    s.locations.push_back({});
    for (int i = 0; i < streams; ++i)
      s.streams.push_back({{}, StreamKind::Lane, "lane" + std::to_string(i)});
  }
  static TensorType floats(Size n) { return {f32, Shape{n}}; }

  uint32_t arena(Size bytes) { return s.arenas.push_back({.bytes = bytes}), uint32_t(s.arenas.size() - 1); }
  uint32_t buffer(Space space, uint32_t index, Size offset, TensorType type) {
    s.buffers.push_back({space, index, offset, dim::bytes(type), type});
    return uint32_t(s.buffers.size() - 1);
  }
  uint32_t input(std::string name, TensorType type) {
    s.inputs.push_back({std::move(name), type});
    return buffer(Space::Input, uint32_t(s.inputs.size() - 1), 0, type);
  }
  uint32_t output(std::string name, TensorType type) {
    s.outputs.push_back({std::move(name), type});
    return buffer(Space::Output, uint32_t(s.outputs.size() - 1), 0, type);
  }
  uint32_t state(std::string name, TensorType type, StateKind kind) {
    s.states.push_back({std::move(name), type, kind});
    return buffer(Space::State, uint32_t(s.states.size() - 1), 0, type);
  }
  uint32_t constant(int64_t offset, TensorType type) {
    s.constants.push_back({offset, type.bytes()});
    return buffer(Space::Constant, uint32_t(s.constants.size() - 1), 0, type);
  }
  uint32_t kernel(std::string symbol, Size range = 1, Size grain = 1) {
    s.kernels.push_back({.symbol = std::move(symbol), .provider = "generated", .range = range, .grain = grain});
    return uint32_t(s.kernels.size() - 1);
  }
  uint32_t location(std::string op, std::string file, uint32_t line) {
    s.locations.push_back({std::move(op), std::move(file), line});
    return uint32_t(s.locations.size() - 1);
  }

  uint32_t launch(uint32_t kernel, std::initializer_list<uint32_t> reads, std::initializer_list<uint32_t> writes,
                  std::initializer_list<uint32_t> waits = {}, uint16_t stream = 0, bool prepare = false) {
    std::vector<Operand> operands;
    for (uint32_t b : reads)
      operands.push_back({b, Access::Read});
    for (uint32_t b : writes)
      operands.push_back({b, Access::Write});
    return command({.kind = CommandKind::Launch, .stream = stream, .kernel = kernel}, operands, waits, prepare);
  }
  uint32_t copy(uint32_t from, uint32_t to, std::initializer_list<uint32_t> waits = {}, uint16_t stream = 0,
                bool prepare = false) {
    return command({.kind = CommandKind::Copy, .stream = stream}, {{from, Access::Read}, {to, Access::Write}}, waits,
                   prepare);
  }
  uint32_t fill(uint32_t to, uint64_t value = 0, std::initializer_list<uint32_t> waits = {}, uint16_t stream = 0) {
    return command({.kind = CommandKind::Fill, .stream = stream, .fillValue = value}, {{to, Access::Write}}, waits);
  }
  uint32_t branch(uint32_t flag, uint32_t firstBody, std::initializer_list<uint32_t> waits = {}, uint16_t stream = 0) {
    return command({.kind = CommandKind::Branch, .stream = stream, .body = firstBody}, {{flag, Access::Read}}, waits);
  }
  uint32_t whileLoop(uint32_t flag, uint32_t firstBody, std::initializer_list<uint32_t> waits = {}, uint16_t stream = 0) {
    return command({.kind = CommandKind::While, .stream = stream, .body = firstBody}, {{flag, Access::Read}}, waits);
  }
  struct Move {
    uint32_t buffer;
    Size bytes;
  };
  uint32_t loop(Size trips, uint32_t body, std::initializer_list<Move> moves = {},
                std::initializer_list<uint32_t> waits = {}, uint16_t stream = 0, int64_t index = -1) {
    CommandList &p = current();
    Command c{.kind = CommandKind::Loop, .stream = stream, .body = body};
    c.firstScalar = uint32_t(p.scalars.size());
    c.numScalars = uint16_t(1 + moves.size());
    p.scalars.push_back(trips);
    std::vector<Operand> operands;
    if (index >= 0)
      operands.push_back({uint32_t(index), Access::Write});
    for (const Move &move : moves) {
      p.scalars.push_back(move.bytes);
      operands.push_back({move.buffer, Access::Read});
    }
    return command(c, operands, waits);
  }
  /// Makes bodies. Commands go into the step, or into a body after `into`.
  uint32_t bodies(uint32_t count = 1) {
    s.bodies.resize(s.bodies.size() + count);
    return uint32_t(s.bodies.size() - count);
  }
  void into(uint32_t body) { currentBody = body; }
  void intoStep() { currentBody = -1; }
  CommandList &current(bool prepare = false) {
    return prepare ? s.prepare : currentBody < 0 ? s.step : s.bodies[size_t(currentBody)];
  }
  uint32_t command(Command c, const std::vector<Operand> &operands, const std::vector<uint32_t> &waits,
                   bool prepare = false) {
    CommandList &p = current(prepare);
    c.firstOperand = uint32_t(p.operands.size());
    c.numOperands = uint16_t(operands.size());
    c.firstWait = uint32_t(p.waits.size());
    c.numWaits = uint16_t(waits.size());
    p.operands.insert(p.operands.end(), operands.begin(), operands.end());
    for (uint32_t w : waits)
      p.waits.push_back({w, WaitReason::Data});
    p.commands.push_back(c);
    return uint32_t(p.commands.size() - 1);
  }

private:
  int64_t currentBody = -1;
};

} // namespace tressel::runtime
