// Rows about schedules alone: nothing is compiled or run.
#include "Bench.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>

using namespace tressel;
using namespace tressel::bench;
using namespace tressel::runtime;

namespace {

/// Kernels on `streams` streams, each of which reads two slots that were written lately and writes one, over and over
/// again; slots are reused after some hundred commands, so that there are waits for data and for readers. Waits are
/// reduced, as the compiler's are.
Schedule largeSchedule(uint32_t commands, uint16_t streams) {
  constexpr uint32_t slots = 512, arenas = 8;
  constexpr int64_t bytes = 4096;
  Schedule s;
  s.name = "large";
  s.locations.emplace_back();
  for (uint16_t i = 0; i < streams; ++i)
    s.streams.push_back({{}, StreamKind::Lane, "lane" + std::to_string(i)});
  const TensorType type{f32, Shape{bytes / 4}};
  for (uint32_t a = 0; a < arenas; ++a) {
    s.arenas.push_back({.bytes = slots * bytes});
    for (uint32_t i = 0; i < slots; ++i)
      s.buffers.push_back({Space::Arena, a, i * bytes, bytes, type});
  }
  s.kernels.push_back({.symbol = "k", .provider = "generated", .numInputs = 2});
  std::mt19937 random(1);
  struct Slot {
    uint32_t writer = 0;
    bool written = false;
    std::vector<uint32_t> readers;
  };
  std::vector<Slot> state(s.buffers.size());
  std::vector<uint32_t> latest;
  auto add = [&](Command c, std::initializer_list<Operand> operands) {
    const auto index = static_cast<uint32_t>(s.step.commands.size());
    std::vector<uint32_t> after;
    for (const Operand &o : operands) {
      Slot &slot = state[o.buffer];
      if (slot.written)
        after.push_back(slot.writer);
      if (o.access == Access::Write) {
        after.insert(after.end(), slot.readers.begin(), slot.readers.end());
        slot = {index, true, {}};
        latest.push_back(o.buffer);
      } else {
        slot.readers.push_back(index);
      }
    }
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    c.firstOperand = static_cast<uint32_t>(s.step.operands.size());
    c.numOperands = static_cast<uint16_t>(operands.size());
    s.step.operands.insert(s.step.operands.end(), operands);
    c.firstWait = static_cast<uint32_t>(s.step.waits.size());
    for (uint32_t w : after)
      if (s.step.commands[w].stream != c.stream)
        s.step.waits.push_back({w, WaitReason::Data});
    c.numWaits = static_cast<uint16_t>(s.step.waits.size() - c.firstWait);
    s.step.commands.push_back(c);
  };
  for (uint32_t i = 0; i < commands; ++i) {
    const auto stream = static_cast<uint16_t>(random() % streams);
    const auto to = static_cast<uint32_t>(random() % s.buffers.size());
    if (i < 64) {
      add({.kind = CommandKind::Fill, .stream = stream}, {{to, Access::Write}});
      continue;
    }
    auto lately = [&] { return latest[latest.size() - 1 - random() % std::min<size_t>(latest.size(), 300)]; };
    uint32_t a = lately(), b = lately();
    while (a == to)
      a = lately();
    while (b == to)
      b = lately();
    add({.kind = CommandKind::Launch, .stream = stream}, {{a, Access::Read}, {b, Access::Read}, {to, Access::Write}});
  }
  reduceWaits(s.step, s.streams.size());
  return s;
}

Arms armsOf(const std::string &row) {
  if (row == "verify.100k") {
    auto schedule = std::make_shared<const Schedule>(largeSchedule(100'000, 64));
    if (const auto found = verifySchedule(*schedule); !found.empty()) {
      std::cerr << found[0].message << "\n";
      std::exit(1);
    }
    return {{"tressel", [=] { return secondsOf([&] { verifySchedule(*schedule); }); }}};
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  const Arms arms = armsOf(argc > 1 ? argv[1] : "");
  if (arms.empty()) {
    std::cerr << "usage: verify-bench ROW (verify.100k)\n";
    return 2;
  }
  return serve(arms);
}
