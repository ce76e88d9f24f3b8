// random-schedules [--seed N] [--count N] [--orders N]: random schedules over several devices, in orders that seeds
// choose, give the numbers of serial execution bit for bit. Prints the seed of what does not, and what was covered; a
// zero there fails.
#include "test/random/RandomSchedule.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Simulated.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

using namespace tressel;
using namespace tressel::runtime;

namespace {

std::map<std::string, int64_t> covered;

void count(const Schedule &s, const Program &p, bool inBody) {
  static constexpr const char *kKinds[] = {"launch",     "copy",   "fill",  "host call",
                                           "collective", "branch", "while", "loop"};
  for (const Command &c : p.commands) {
    if (c.kind != CommandKind::Copy) {
      ++covered[std::string(kKinds[size_t(c.kind)]) + (inBody ? " in a body" : "")];
    } else {
      auto home = [&](uint32_t k) { return homeOf(s, s.buffers[p.operands[c.firstOperand + k].buffer]); };
      auto name = [](const Home &h) -> std::string {
        return h.memory == MemoryKind::Device ? "device" : h.memory == MemoryKind::Pinned ? "pinned" : "pageable";
      };
      ++covered["copy " + name(home(0)) + " to " +
                (home(0).device != home(1).device && home(1).memory == MemoryKind::Device &&
                         home(0).memory == MemoryKind::Device
                     ? "another device"
                     : name(home(1)))];
    }
    covered["waits"] += c.numWaits;
  }
}

bool check(uint64_t seed, uint64_t orders) {
  const Schedule s = test::randomSchedule(
      seed, {.gpus = static_cast<int>(seed % 4) + 1, .commands = 20 + static_cast<int>(seed % 50)});
  count(s, s.step, false);
  for (const Program &body : s.bodies)
    count(s, body, true);
  test::CallerMemory expected(s, seed);
  test::SerialRun serial(s);
  serial.bind(expected);
  for (int call = 0; call < 2; ++call)
    serial.step(expected);
  for (uint64_t order = 0; order < orders; ++order) {
    SimulatedOptions options{.interleaving = seed * orders + order, .checkCopies = true};
    if (order % 4 == 3)
      options = {.interleaving = seed * orders + order, .checkRaces = true, .poison = true, .isolate = true};
    test::CallerMemory memory(s, seed);
    try {
      Executor e(test::executableOf(s), SimulatedMachine::create(machinePreset("4gpu-pcie3"), options));
      e.bindStates(memory.statePointers());
      for (int call = 0; call < 2; ++call)
        e.run(memory.inputPointers(), memory.outputPointers());
    } catch (const Error &e) {
      std::printf("FAILED seed %llu order %llu: %s\n", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(order), e.what());
      return false;
    }
    if (!(memory == expected)) {
      std::printf("FAILED seed %llu order %llu: other numbers than serial execution\n",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(order));
      return false;
    }
  }
  return true;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t seed = 1, count = 300, orders = 4;
  for (int i = 1; i + 1 < argc; i += 2) {
    uint64_t *value = !std::strcmp(argv[i], "--seed")     ? &seed
                      : !std::strcmp(argv[i], "--count")  ? &count
                      : !std::strcmp(argv[i], "--orders") ? &orders
                                                          : nullptr;
    if (!value) {
      std::fprintf(stderr, "usage: random-schedules [--seed N] [--count N] [--orders N]\n");
      return 2;
    }
    *value = std::strtoull(argv[i + 1], nullptr, 10);
  }
  uint64_t failed = 0;
  for (uint64_t i = 0; i < count; ++i)
    failed += !check(seed + i, orders);
  bool zero = false;
  for (const char *kind :
       {"launch", "fill", "branch", "while", "loop", "launch in a body", "loop in a body", "branch in a body",
        "copy pageable to device", "copy pinned to device", "copy device to pageable", "copy device to pinned",
        "copy device to another device", "copy device to device", "waits"})
    if (count >= 200 && !covered[kind]) {
      std::printf("not covered: %s\n", kind);
      zero = true;
    }
  std::printf("%llu schedules from seed %llu, %llu orders of each, %llu failed\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(orders), static_cast<unsigned long long>(failed));
  for (const auto &[what, times] : covered)
    std::printf("  %-32s %lld\n", what.c_str(), static_cast<long long>(times));
  return failed || zero ? 1 : 0;
}
