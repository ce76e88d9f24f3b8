// random-schedules [--seed N] [--count N] [--orders N]: random schedules over several devices, in orders that seeds
// choose, give the numbers of serial execution bit for bit. Prints the seed of what does not, and what was covered; a
// zero there fails.
#include "test/support/RunOnMachine.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Simulate.h"
#include "tressel/runtime/Simulated.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace tressel;
using namespace tressel::runtime;

namespace {

std::map<std::string, int64_t> covered;

void count(const Schedule &s, const CommandList &p, bool inBody) {
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

/// By how much the log's time is off the plan's, of the plan's: of schedules without bodies, with loops alone, and with
/// branches and whiles, of which no plan can know.
std::vector<double> differences[3];

void compareTimes(const Schedule &s, const SimulatedMachine &machine) {
  const auto plan = static_cast<double>(simulate(s, machine.model()).end),
             log = static_cast<double>(machine.times().total);
  size_t kind = 0;
  auto look = [&](const CommandList &p) {
    for (const Command &c : p.commands)
      if (hasBodies(c.kind))
        kind = std::max<size_t>(kind, c.kind == CommandKind::Loop ? 1 : 2);
  };
  look(s.step);
  for (const CommandList &body : s.bodies)
    look(body);
  differences[kind].push_back((log - plan) / std::max(plan, 1.0));
}
double absolute(const std::vector<double> &values, double share) {
  std::vector<double> sorted;
  for (double v : values)
    sorted.push_back(std::abs(v));
  std::ranges::sort(sorted);
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

bool check(uint64_t seed, uint64_t orders) {
  const bool homes = seed % 3 == 0;
  const Schedule s =
      test::randomSchedule(seed, {.accelerators = static_cast<int>(seed % 4) + 1,
                                  .commands = 20 + static_cast<int>(seed % 50),
                                  .homes = homes,
                                  .inFlight = seed % 7 == 0 ? 2 + static_cast<uint32_t>(seed / 7 % 3) : 1});
  count(s, s.step, false);
  for (const CommandList &body : s.bodies)
    count(s, body, true);
  const test::Results expected = test::runTwiceSerially(s, seed);
  const size_t inTurn = 2 * s.inFlight + 1;
  const test::Results expectedInTurn = s.inFlight > 1 ? test::runAllSerially(s, seed, inTurn) : test::Results();
  for (uint64_t order = 0; order < orders; ++order) {
    SimulatedOptions options{.interleaving = seed * orders + order, .checkCopies = true};
    if (order % 4 == 3)
      options = {.interleaving = seed * orders + order, .checkRaces = true, .poison = true, .isolate = true};
    auto failed = [&](const char *why) {
      std::printf("FAILED seed %llu order %llu: %s\n", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(order), why);
      return false;
    };
    try {
      const auto machine = SimulatedMachine::create(machinePreset("4gpu-pcie3"), options);
      if (test::runTwice(s, machine, seed) != expected)
        return failed("other numbers than serial execution");
      if (s.inFlight > 1) {
        if (test::runInFlight(s, machine, seed, inTurn) != expectedInTurn)
          return failed("other numbers than serial execution, in flight");
        covered["calls in flight"] += static_cast<int64_t>(inTurn);
        continue;
      }
      if (order > 0)
        continue;
      if (!homes) {
        compareTimes(s, *machine);
        continue;
      }
      // The machine's log is then that of the copies which brought results to the host.
      const auto timing = SimulatedMachine::create(machinePreset("4gpu-pcie3"), {.computes = false});
      Executor executor(s, timing);
      executor.run({}, {});
      compareTimes(s, *timing);
    } catch (const Error &e) {
      return failed(e.what());
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
        "copy device to another device", "copy device to device", "calls in flight", "waits"})
    if (count >= 200 && !covered[kind]) {
      std::printf("not covered: %s\n", kind);
      zero = true;
    }
  std::printf("%llu schedules from seed %llu, %llu orders of each, %llu failed\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(orders), static_cast<unsigned long long>(failed));
  for (size_t kind = 0; kind < 3; ++kind)
    std::printf("  plan's time against the log's, %zu %s: median %.2g, 95%% below %.2g, most %.2g\n",
                differences[kind].size(),
                kind == 0   ? "without bodies"
                : kind == 1 ? "with loops"
                            : "with branches and whiles",
                absolute(differences[kind], 0.5), absolute(differences[kind], 0.95), absolute(differences[kind], 1));
  const bool apart = absolute(differences[0], 1) > 1e-3;
  for (const auto &[what, times] : covered)
    std::printf("  %-32s %lld\n", what.c_str(), static_cast<long long>(times));
  return failed || zero || apart ? 1 : 0;
}
