// adversarial-schedules [--seed N] [--count N] | ROW: small schedules with mistakes, each judged by all interleavings of its commands
// (InterleavingJudge.h) and by the verifier. One that is unsafe and accepted, or safe and refused, is printed with its seed, and fails. As
// ROW it is an arm of the benchmark's rows (test/bench/Bench.h).
#include "test/bench/Bench.h"
#include "test/support/InterleavingJudge.h"
#include "test/support/RandomSchedule.h"
#include "test/support/ScheduleMutations.h"
#include "tressel/runtime/VerifySchedule.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

using namespace tressel;
using namespace tressel::runtime;

namespace {

struct Tally {
  int64_t judged = 0, unsafe = 0, unsafeAccepted = 0, safeRefused = 0, left = 0; ///< left: too many interleavings
};

void judge(const Schedule &s, uint64_t seed, const std::string &what, Tally &tally) {
  const std::optional<std::string> found = test::judgeInterleavings(s);
  if (!found) {
    ++tally.left;
    return;
  }
  ++tally.judged;
  tally.unsafe += !found->empty();
  const std::vector<Violation> violations = verifySchedule(s, 1);
  if (found->empty() == violations.empty())
    return;
  ++(found->empty() ? tally.safeRefused : tally.unsafeAccepted);
  std::fprintf(stderr, "seed %llu, %s: the judge: %s; the verifier: %s\n", static_cast<unsigned long long>(seed), what.c_str(),
               found->empty() ? "safe" : found->c_str(), violations.empty() ? "safe" : violations.front().message.c_str());
}

/// Some of the waits are gone, some commands wait for others.
Schedule withOtherWaits(const Schedule &schedule, uint64_t seed) {
  Schedule s = schedule;
  std::mt19937_64 random(seed);
  std::vector<Wait> waits;
  for (size_t i = 0; i < s.step.commands.size(); ++i) {
    Command &c = s.step.commands[i];
    std::vector<Wait> own;
    for (uint32_t w = 0; w < c.numWaits; ++w)
      if (random() % 4)
        own.push_back(s.step.waits[c.firstWait + w]);
    if (i > 0 && random() % 3 == 0) {
      const auto other = static_cast<uint32_t>(random() % i);
      const bool isThere = std::any_of(own.begin(), own.end(), [&](const Wait &wait) { return wait.command == other; });
      if (!isThere && s.step.commands[other].stream != c.stream)
        own.push_back({.command = other});
    }
    std::sort(own.begin(), own.end(), [](const Wait &a, const Wait &b) { return a.command > b.command; });
    c.firstWait = static_cast<uint32_t>(waits.size());
    c.numWaits = static_cast<decltype(c.numWaits)>(own.size());
    waits.insert(waits.end(), own.begin(), own.end());
  }
  s.step.waits = std::move(waits);
  return s;
}

Tally run(uint64_t seed, int64_t count) {
  Tally tally;
  for (; tally.judged < count; ++seed) {
    const Schedule s = test::randomSchedule(seed, {.accelerators = 1 + static_cast<int>(seed % 2),
                                                   .commands = 5 + static_cast<int>(seed % 5),
                                                   .lanes = static_cast<int>(seed % 3 == 0),
                                                   .words = 20,
                                                   .bodies = false,
                                                   .collectives = false,
                                                   .prepare = false,
                                                   .homes = seed % 4 == 0});
    judge(s, seed, "as made", tally);
    test::forEachMutation(s, [&](test::Mutation kind, const std::string &where, const Schedule &mutant) {
      if (kind == test::Mutation::RemovedWait || kind == test::Mutation::MovedSlot)
        judge(mutant, seed, std::string(test::nameOf(kind)) + " at " + where, tally);
    });
    for (uint64_t k = 0; k < 4; ++k)
      judge(withOtherWaits(s, seed * 8 + k), seed, "other waits " + std::to_string(k), tally);
  }
  return tally;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t seed = 1;
  int64_t count = 10000;
  std::string row;
  for (int i = 1; i < argc; ++i)
    if (const bool hasValue = i + 1 < argc; hasValue && !std::strcmp(argv[i], "--seed"))
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (hasValue && !std::strcmp(argv[i], "--count"))
      count = std::atoll(argv[++i]);
    else if (argv[i][0] != '-' && argc == 2)
      row = argv[i];
    else
      return std::fprintf(stderr, "usage: adversarial-schedules [--seed N] [--count N] | ROW\n"), 2;
  if (!row.empty())
    return bench::serve({{"tressel", [=] {
                            const Tally tally = run(seed, count);
                            return static_cast<double>(row == "mutation.adversarial"      ? tally.judged
                                                       : row == "verify.unsafe-accepted" ? tally.unsafeAccepted
                                                                                         : tally.safeRefused);
                          }}});
  const Tally tally = run(seed, count);
  std::printf("%lld schedules judged by their interleavings, %lld of them unsafe; %lld unsafe accepted, %lld safe refused; %lld had too many\n",
              static_cast<long long>(tally.judged), static_cast<long long>(tally.unsafe), static_cast<long long>(tally.unsafeAccepted),
              static_cast<long long>(tally.safeRefused), static_cast<long long>(tally.left));
  return tally.unsafeAccepted || tally.safeRefused || tally.unsafe * 10 < tally.judged ? 1 : 0;
}
