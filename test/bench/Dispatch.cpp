#include "Dispatch.h"
#include "Packaged.h"
#include "Values.h"

#include <tressel/tressel.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <vector>

namespace tressel::bench {

namespace {

constexpr int kCalls = 10'000;

/// y = x + 1 on [1, 2], `calls` times; the last value is checked.
double secondsOfCalls(const Tensor &x, int calls, bool waiting) {
  Tensor y;
  const double seconds = secondsOf([&] {
    for (int i = 0; i < calls; ++i) {
      y = x + 1;
      if (waiting)
        y.wait();
    }
    y.wait();
  });
  if (y.to_vector<float>() != std::vector<float>{2, 3}) {
    std::cerr << "x + 1 is not 2, 3\n";
    std::exit(1);
  }
  return seconds;
}

Arms op() {
  const Tensor x = tensor({1.0f, 2.0f});
  return {
      {"tressel", Arm([=] { return 1e9 / kCalls * secondsOfCalls(x, kCalls, false); }, [=] { return flat(x + 1); })}};
}

/// Both in turns of a tenth, so that a drift of the machine's speed meets both.
Arms sync() {
  const Tensor x = tensor({1.0f, 2.0f});
  return {{"tressel", Arm(
                          [=] {
                            double with = 0, without = 0;
                            for (int i = 0; i < 10; ++i) {
                              with += secondsOfCalls(x, kCalls, true);
                              without += secondsOfCalls(x, kCalls, false);
                            }
                            return with / without;
                          },
                          [=] { return flat(x + 1); })}};
}

/// Ops that are handed to a lane: what waiting after each costs over the work itself, which a package does in the
/// caller's thread.
Arms syncLarge() {
  const TensorType type{f32, {1 << 18}};
  const Tensor x = numbers(type.shape, seedOf("a"));
  auto direct = std::make_shared<Packaged>(Packaged::function([](Tensor x) { return x + 1; }, {type}, type));
  return {{"tressel", Arm(
                          [=] {
                            const double handed = secondsPerCall([&] { (x + 1).wait(); }, 50e-3);
                            return handed / secondsPerCall([&] { direct->run(); }, 50e-3);
                          },
                          [=] { return flat(x + 1); })}};
}

/// In the order of numpy_peer.py: each size with each op.
Arms ops() {
  struct Case {
    std::function<Tensor()> call;
  };
  auto cases = std::make_shared<std::vector<Case>>();
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{16, 64}, {64, 1000}, {1000, 1024}}) {
    const Tensor x = numbers({rows, columns}, seedOf("x")), y = numbers({rows, columns}, seedOf("y")),
                 row = numbers({columns}, seedOf("row")), column = numbers({rows, 1}, seedOf("column")),
                 w = numbers({columns, 64}, seedOf("w"));
    for (std::function<Tensor()> call : std::initializer_list<std::function<Tensor()>>{
             [=] { return x + 1; }, [=] { return x + y; }, [=] { return x * row; }, [=] { return x - column; },
             [=] { return exp(x); }, [=] { return x > y; }, [=] { return sum(x); }, [=] { return sum(x, {0}); },
             [=] { return mean(x, {1}); }, [=] { return max(x, {1}); }, [=] { return argmax(x, 1); },
             [=] { return cast(x, f64); }, [=] { return transpose(x); }, [=] { return matmul(x, w); }})
      cases->push_back({std::move(call)});
  }
  return {{"tressel", Arm([=](size_t index) { return secondsPerCall([&] { cases->at(index).call().wait(); }, 5e-3); },
                          [=](size_t index) { return flat(cast(cases->at(index).call(), f32)); })}};
}

} // namespace

Arms dispatchArms(const std::string &row) {
  if (row == "dispatch.op")
    return op();
  if (row == "dispatch.sync")
    return sync();
  if (row == "dispatch.sync.large")
    return syncLarge();
  if (row == "eager.ops")
    return ops();
  return {};
}

} // namespace tressel::bench
