// Makes up calls of ops from what their records say: operand types that fit the family, attributes that fit the operands,
// values within the domains. Whether a call is legal is decided by `infer` alone: proposals it refuses are dropped. So a new
// op joins the random tests by its record, as long as its attributes bear names or kinds known here.
#pragma once

#include "ir/op/OpInfo.h"

#include <optional>
#include <random>
#include <span>
#include <vector>

namespace tressel::test {

/// Seeded, and the same on every machine (the standard's distributions are not).
class Random {
public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// In [0, n).
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  /// In [low, high], both ends included.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  /// In [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool chance(double p) { return unit() < p; }
  template <class C> decltype(auto) pick(const C &c) { return c[static_cast<size_t>(below(static_cast<int64_t>(std::size(c))))]; }
  uint64_t bits() { return engine_(); }

private:
  std::mt19937_64 engine_;
};

struct OpCall {
  const op::OpInfo *op = nullptr;
  std::vector<TensorType> operands;
  op::Attrs attrs; ///< complete
  std::vector<TensorType> results;
};
/// The element type that a call is counted under: of the first operand, of the result if there is none.
inline DType cellType(const OpCall &call) { return (call.operands.empty() ? call.results : call.operands).front().dtype; }

struct ShapeLimits {
  int maxRank = 4;
  int64_t maxSize = 5;
  double zeroSize = 0; ///< probability that a shape has a dimension of size 0
};
Shape randomShape(Random &random, int minRank, const ShapeLimits &limits);

/// Attributes for operands of these types, or nothing if `infer` refused all proposals.
std::optional<OpCall> proposeAttrs(const op::OpInfo &op, std::vector<TensorType> operands, Random &random, int tries = 40);

/// A whole call whose operands are mostly of `dtype`. Where `first` is given, it is the type of the first operand.
std::optional<OpCall> proposeCall(const op::OpInfo &op, DType dtype, Random &random, const ShapeLimits &limits = {},
                                  const TensorType *first = nullptr);

enum class Values : uint8_t {
  Domain,  ///< within OpInfo::domains
  Special, ///< the same, and some NaN among the floats
  Wide,    ///< integers of the whole range of their type
};
/// Values for operand number `index` of the call. Operands that index a dimension are in its range.
op::HostTensor randomOperand(const OpCall &call, size_t index, Random &random, Values values = Values::Domain);
/// Floats in the interval, integers in it (at least one), bools.
op::HostTensor randomTensor(const TensorType &type, Random &random, op::Domain domain);
/// The interval of operand `index`, as its record says; the last one counts for further operands.
op::Domain domainOf(const op::OpInfo &op, size_t index);

} // namespace tressel::test
