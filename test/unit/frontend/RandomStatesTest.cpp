// Random functions over a few Variables, which assign them in branches, loops and functions that they call, against
// plain C++ on integers: on the host and on a simulated machine, with tensors that hold old values and calls that fail.
#include <tressel/tressel.h>

#include <algorithm>
#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <vector>

namespace tressel {
namespace {

using Ints = std::vector<int32_t>;

/// Instructions over four registers, all of which hold the argument at first. The result is the first register.
/// Elements lie in [0, kModulus).
struct Instruction {
  enum class Kind : uint8_t { Add, Multiply, Larger, Read, Assign, Take, Branch, Repeat, RepeatSome, Call };
  Kind kind = Kind::Add;
  size_t to = 0, a = 0, b = 0; ///< registers; of Read, Assign and Call `b` is the Variable or the function
  std::vector<std::vector<Instruction>> bodies;
};
using Code = std::vector<Instruction>;
constexpr size_t kRegisters = 4;
constexpr int32_t kModulus = 97;
constexpr int64_t kTrips = 3;

struct Draw {
  std::mt19937_64 rng;
  size_t variables;

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng); }
  bool oneOf(size_t n) { return below(n) == 0; }
  /// Functions before `callable` may be called.
  Code code(size_t length, size_t callable, int depth) {
    using Kind = Instruction::Kind;
    Code code;
    while (code.size() < length) {
      Instruction i{.to = below(kRegisters), .a = below(kRegisters), .b = below(kRegisters)};
      const size_t kind = below(depth < 2 ? 16 : 12);
      i.kind = kind < 3 ? Kind::Add : kind < 4 ? Kind::Multiply : kind < 5 ? Kind::Larger : kind < 7 ? Kind::Read : kind < 11 ? Kind::Assign
               : kind < 12 ? Kind::Take : kind < 14 ? Kind::Branch : kind < 15 ? (oneOf(2) ? Kind::Repeat : Kind::RepeatSome) : Kind::Call;
      if (i.kind == Kind::Call && callable == 0)
        continue;
      if (i.kind == Kind::Read || i.kind == Kind::Assign)
        i.b = below(variables);
      if (i.kind == Kind::Call)
        i.b = below(callable);
      const size_t bodies = i.kind == Kind::Branch ? 2 : i.kind == Kind::Repeat || i.kind == Kind::RepeatSome ? 1 : 0;
      for (size_t k = 0; k < bodies; ++k)
        i.bodies.push_back(this->code(1 + below(4), callable, depth + 1));
      code.push_back(std::move(i));
    }
    return code;
  }
};

/// What is expected.
struct Plain {
  struct OutOfRange {};
  const std::vector<Code> &functions;
  std::vector<Ints> variables;
  bool checks = true; ///< indices

  Ints run(const Code &code, const Ints &x, const Ints &index) {
    using Kind = Instruction::Kind;
    std::vector<Ints> r(kRegisters, x);
    auto zip = [&](const Instruction &i, auto op) {
      Ints result;
      for (size_t k = 0; k < x.size(); ++k)
        result.push_back(op(r[i.a][k], r[i.b][k]));
      r[i.to] = result;
    };
    auto total = [](const Ints &v) {
      int64_t sum = 0;
      for (const int32_t each : v)
        sum += each;
      return sum;
    };
    for (const Instruction &i : code) {
      switch (i.kind) {
      case Kind::Add:
        zip(i, [](int32_t a, int32_t b) { return (a + b) % kModulus; });
        break;
      case Kind::Multiply:
        zip(i, [](int32_t a, int32_t b) { return a * b % kModulus; });
        break;
      case Kind::Larger:
        zip(i, [](int32_t a, int32_t b) { return std::max(a, b); });
        break;
      case Kind::Read:
        r[i.to] = variables[i.b];
        break;
      case Kind::Assign:
        variables[i.b] = r[i.a];
        break;
      case Kind::Take: {
        Ints taken;
        for (const int32_t at : index) {
          if (checks && at >= static_cast<int32_t>(x.size()))
            throw OutOfRange();
          taken.push_back(r[i.a][static_cast<size_t>(at) % x.size()]);
        }
        r[i.to] = taken;
        break;
      }
      case Kind::Branch:
        r[i.to] = run(i.bodies[total(r[i.b]) % 2 ? 0 : 1], r[i.a], index);
        break;
      case Kind::Repeat:
      case Kind::RepeatSome: {
        Ints carried = r[i.a];
        for (int64_t k = 0, n = i.kind == Kind::Repeat ? kTrips : total(r[i.b]) % 4; k < n; ++k)
          carried = run(i.bodies[0], carried, index);
        r[i.to] = carried;
        break;
      }
      case Kind::Call:
        r[i.to] = run(functions[i.b], r[i.a], index);
        break;
      }
    }
    return r[0];
  }
};

/// The same with tensors.
struct Traced {
  const std::vector<Code> &functions;
  std::vector<Variable> variables;
  std::vector<std::function<Tensor(Tensor, Tensor)>> compiled;

  Tensor run(const Code &code, const Tensor &x, const Tensor &index) const {
    using Kind = Instruction::Kind;
    std::vector<Tensor> r(kRegisters, x);
    auto total = [](const Tensor &v) { return sum(cast(v, i64)); };
    for (const Instruction &i : code) {
      const Tensor a = r[i.a], b = r[i.kind == Kind::Read || i.kind == Kind::Assign || i.kind == Kind::Call ? 0 : i.b];
      auto body = [&](size_t k) { return [&i, k, &index, this](Tensor x) { return run(i.bodies[k], x, index); }; };
      switch (i.kind) {
      case Kind::Add:
        r[i.to] = remainder(a + b, kModulus);
        break;
      case Kind::Multiply:
        r[i.to] = remainder(a * b, kModulus);
        break;
      case Kind::Larger:
        r[i.to] = maximum(a, b);
        break;
      case Kind::Read:
        r[i.to] = variables[i.b].value();
        break;
      case Kind::Assign:
        variables[i.b].assign(a);
        break;
      case Kind::Take:
        r[i.to] = take(a, index, 0);
        break;
      case Kind::Branch:
        r[i.to] = cond(remainder(total(b), 2) == 1, body(0), body(1), a);
        break;
      case Kind::Repeat:
        r[i.to] = for_loop(kTrips, [&](Tensor, Tensor x) { return body(0)(x); }, a);
        break;
      case Kind::RepeatSome:
        r[i.to] = for_loop(remainder(total(b), 4), [&](Tensor, Tensor x) { return body(0)(x); }, a);
        break;
      case Kind::Call:
        r[i.to] = compiled[i.b](a, index);
        break;
      }
    }
    return r[0];
  }
};

struct Case {
  const char *machine;
  int64_t elements; ///< many: calls are queued
  int programs;
  bool homes = false; ///< Variables and arguments live on accelerators, and move now and then
};

class RandomStates : public testing::TestWithParam<Case> {
protected:
  void TearDown() override { use_machine("cpu"); }
};

Tensor tensorOf(const Ints &values) {
  return from_span(values, {static_cast<int64_t>(values.size())});
}

TEST_P(RandomStates, EqualPlainIntegers) {
  const auto [machine, elements, programs, homes] = GetParam();
  const auto n = static_cast<size_t>(elements);
  use_machine(machine);
  int failures = 0, keptAll = 0, copies = 0;
  for (int seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw{std::mt19937_64(static_cast<uint64_t>(seed)), 2 + static_cast<size_t>(seed) % 3};
    std::vector<Code> codes;
    for (size_t f = 0; f < 3; ++f)
      codes.push_back(draw.code(3 + draw.below(8), f, 0));
    auto numbers = [&] {
      Ints values(n);
      for (int32_t &value : values)
        value = static_cast<int32_t>(draw.below(kModulus));
      return values;
    };
    Plain plain{.functions = codes, .variables = {}};
    Traced traced{codes, {}, {}};
    for (size_t v = 0; v < draw.variables; ++v) {
      plain.variables.push_back(numbers());
      traced.variables.emplace_back(tensorOf(plain.variables.back()), "v" + std::to_string(v));
    }
    const std::array places{cpu(), gpu(0), gpu(1)};
    if (homes)
      for (const Variable &variable : traced.variables)
        variable.on(places[draw.below(3)]);
    const Device home = homes ? places[draw.below(3)] : cpu();
    // All functions in one place, as bodies are computed as a whole.
    const bool isPlaced = homes && draw.oneOf(2);
    const Device on = isPlaced ? places[draw.below(3)] : cpu();
    std::vector<std::function<uint64_t()>> copied;
    for (size_t f = 0; f < codes.size(); ++f) {
      auto function = jit([&traced, &codes, f, isPlaced, on](Tensor x, Tensor index) {
        return isPlaced ? with_device(on, [&] { return traced.run(codes[f], x, index); })
                        : traced.run(codes[f], x, index);
      });
      traced.compiled.emplace_back([function](Tensor x, Tensor index) { return function(x, index); });
      copied.emplace_back([function] { return function.stats().state_copies; });
    }
    std::vector<std::pair<Tensor, Ints>> held;
    for (int step = 0; step < 12; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const size_t f = draw.below(codes.size()), v = draw.below(draw.variables);
      if (draw.oneOf(4))
        held.emplace_back(traced.variables[v].value(), plain.variables[v]);
      if (draw.oneOf(4) && !held.empty())
        held.erase(held.begin());
      if (draw.oneOf(6)) {
        plain.variables[v] = numbers();
        traced.variables[v].assign(tensorOf(plain.variables[v]));
      }
      if (homes && draw.oneOf(8))
        traced.variables[v].on(places[draw.below(3)]);
      const Ints x = numbers();
      Ints index(n);
      for (size_t k = 0; k < n; ++k)
        index[k] = static_cast<int32_t>(draw.below(n));
      if (draw.oneOf(5))
        index[draw.below(n)] = static_cast<int32_t>(n);
      const auto before = plain.variables;
      std::optional<Ints> expected;
      try {
        expected = plain.run(codes[f], x, index);
      } catch (const Plain::OutOfRange &) {
        plain.variables = before;
      }
      std::optional<Ints> got;
      try {
        got = traced.compiled[f](tensorOf(x).to(home), tensorOf(index)).to_vector<int32_t>();
      } catch (const Error &e) {
        EXPECT_NE(std::string(e.what()).find("out of range"), std::string::npos) << e.what();
      }
      const bool fails = !expected;
      std::vector<Ints> next = plain.variables;
      if (got && fails) { // the result does not need what failed; where nothing else does, it is not computed
        plain.checks = false;
        expected = plain.run(codes[f], x, index);
        plain.checks = true;
        next.swap(plain.variables);
      }
      ASSERT_EQ(got, expected);
      // A call that fails leaves the values of before, or none, and says so.
      bool all = true;
      for (size_t k = 0; k < draw.variables; ++k) {
        try {
          const Ints now = traced.variables[k].value().to_vector<int32_t>();
          if (fails && now == next[k])
            plain.variables[k] = next[k];
          ASSERT_EQ(now, plain.variables[k]) << "Variable " << k;
        } catch (const Error &) {
          ASSERT_TRUE(fails) << "Variable " << k << " has no value";
          traced.variables[k].assign(tensorOf(plain.variables[k]));
          all = false;
        }
      }
      failures += fails && !got;
      keptAll += fails && !got && all;
      for (const auto &[tensor, values] : held)
        ASSERT_EQ(tensor.to_vector<int32_t>(), values) << "a tensor that holds an old value";
    }
    for (const auto &count : copied)
      copies += static_cast<int>(count());
  }
  // What is tested happens.
  EXPECT_GT(failures, programs / 10);
  EXPECT_GT(copies, programs / 10);
  if (machine == std::string("cpu")) {
    EXPECT_GT(keptAll, failures / 2);
  }
  RecordProperty("failures", failures);
  RecordProperty("kept", keptAll);
  RecordProperty("copies", copies);
}

INSTANTIATE_TEST_SUITE_P(Machines, RandomStates,
                         testing::Values(Case{"cpu", 4, 60}, Case{"cpu", 40'000, 6}, Case{"sim:2gpu-pcie3", 4, 40},
                                         Case{"sim:2gpu-pcie3", 5, 25, true}),
                         [](const auto &info) {
                           return std::string(info.param.machine).substr(0, 3) + std::to_string(info.param.elements);
                         });

} // namespace
} // namespace tressel
