#include "Hybridize.h"
#include "Models.h"
#include "Values.h"

#include <tressel/runtime/ThreadPool.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

namespace tressel::bench {
namespace {

constexpr int64_t kBatches[] = {1, 64};

/// One network for one batch, both ways.
struct Case {
  nn::Sequential imperative, compiled;
  Tensor x;

  Case(const Model &model, int64_t batch) : imperative(model.make()), compiled(imperative) {
    imperative.initialize({{f32, model.input(batch)}}, /*seed=*/1);
    fillParameters(imperative);
    compiled = imperative.clone();
    compiled.hybridize();
    x = numbers(model.input(batch), seedOf("x"), 2);
  }
};

/// Seconds of one call; of short ones, of many that together take some time.
double secondsOfCall(const nn::Sequential &net, const Tensor &x) {
  auto call = [&] { net(x).wait(); };
  const double once = secondsOf(call);
  return once > 50e-3 ? once : repeatFor(call, 20e-3);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Cases are made when they are first asked for, and one is kept: they take much memory.
Arm arm(std::vector<std::pair<const Model *, int64_t>> cases, bool compiled) {
  struct Kept {
    size_t index = 0;
    std::optional<Case> held;
  };
  auto kept = std::make_shared<Kept>();
  auto at = [=](size_t index) -> const Case & {
    if (!kept->held || kept->index != index) {
      kept->held.reset();
      kept->held.emplace(*cases.at(index).first, cases.at(index).second);
      kept->index = index;
      (compiled ? kept->held->compiled : kept->held->imperative)(kept->held->x).wait();
    }
    return *kept->held;
  };
  auto net = [=](const Case &c) { return compiled ? c.compiled : c.imperative; };
  return Arm([=](size_t index) { return secondsOfCall(net(at(index)), at(index).x); },
             [=](size_t index) { return flat(net(at(index))(at(index).x)); });
}

Arms armsOf(const std::vector<std::pair<const Model *, int64_t>> &cases) {
  return {{"tressel", arm(cases, true)}, {"imperative", arm(cases, false)}};
}

} // namespace

Arms hybridizeArms(const std::string &row) {
  const std::string prefix = "hybridize.";
  if (!row.starts_with("hybridize"))
    return {};
  std::vector<std::pair<const Model *, int64_t>> cases;
  for (const Model &model : models())
    for (int64_t batch : kBatches)
      cases.emplace_back(&model, batch);
  const size_t dot = row.rfind(".b");
  if (row == "hybridize" || row == "hybridize.levels")
    return armsOf(cases);
  if (dot == row.npos)
    return {};
  return armsOf({{&modelNamed(row.substr(prefix.size(), dot - prefix.size())), std::stoll(row.substr(dot + 2))}});
}

bool printHybridized(const std::string &only) {
  bool allAgree = true;
  std::printf("%-12s %5s %7s %12s %12s %7s\n", "network", "batch", "threads", "imperative", "compiled", "ratio");
  for (const Model &model : models())
    for (int64_t batch : kBatches) {
      if ((model.name + ".b" + std::to_string(batch)).find(only) == std::string::npos)
        continue;
      const Case c(model, batch);
      const std::vector<float> expected = flat(c.imperative(c.x)), got = flat(c.compiled(c.x));
      float largest = 0, difference = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        difference = std::max(difference, std::isfinite(got[i]) ? std::abs(got[i] - expected[i]) : INFINITY);
      }
      if (!(difference <= 1e-3f * largest) || !std::isfinite(largest) || largest == 0) {
        std::printf("%-12s %5lld: results differ by %g of %g\n", model.name.c_str(), static_cast<long long>(batch),
                    difference, largest);
        allAgree = false;
        continue;
      }
      std::vector<double> imperative, compiled;
      double spent = 0;
      for (int round = 0; round < 15 && (round < 3 || spent < 6); ++round) {
        imperative.push_back(secondsOfCall(c.imperative, c.x));
        compiled.push_back(secondsOfCall(c.compiled, c.x));
        spent += imperative.back() + compiled.back();
      }
      const double before = median(imperative), after = median(compiled);
      std::printf("%-12s %5lld %7d %12.4g %12.4g %7.3f\n", model.name.c_str(), static_cast<long long>(batch),
                  runtime::ThreadPool::global().numThreads(), before, after, before / after);
      std::fflush(stdout);
    }
  return allAgree;
}

} // namespace tressel::bench
