// How the dimensions of an op's operands and results correspond when tensors are cut: the interface through which the
// pass `shard` sees ops. Most rules follow from the loop form; for ops without one the record names a rule.
//
//   matmul  a [m, k] x b [k, n] -> [m, n]      factors m, n; k is reduced by Sum
//   reshape x [b, 6] -> [b, 2, 3]              factors b, 2, 3; x's second dimension is cut by 2, then by 3
//   softmax x [b, c] along c                   factors b; c, which is never cut
#pragma once

#include "ir/op/OpInfo.h"

#include <vector>

namespace tressel::op {

/// Dimensions that share a factor are cut alike: with part i of one of them, rank i needs or makes part i of the
/// others. If all factors are whole, the op only runs on whole tensors.
struct ShardingRule {
  struct Factor {
    Size size;
    /// Not None: the op reduces over it. From its parts of the operands each rank computes one term of the whole
    /// result, and all terms must be combined this way.
    Combine combine = Combine::None;
    bool isWhole = false; ///< never cut
    /// The op reduces over it, and its record tells how the whole follows from equal parts (OpInfo::fromParts).
    bool fromParts = false;
  };
  /// Factors of each dimension, the outermost first. None: all of the dimension is needed.
  using Dims = std::vector<std::vector<int>>;

  std::vector<Factor> factors;
  std::vector<Dims> operands, results;
  /// The attribute with the first result's shape, which on a rank must be that of its part; -1: none.
  int shapeAttr = -1;
  /// The attribute with the row-major index, in the whole result, of the part's first element; then only dimension 0
  /// can be cut. -1: none.
  int firstAttr = -1;
  /// An operand that is itself a term of the result: when terms are added up, one rank uses it and the others zeros.
  /// -1: none.
  int onceOperand = -1;
  /// By result: the factors over whose sum it is a term. Empty: each result over all factors that the op reduces over.
  std::vector<std::vector<int>> terms;
  /// Dimensions may only be cut into parts of equal size.
  bool isEven = false;
  /// Least elements of a part: 2 where a dimension of size 1 has another meaning.
  int leastPart = 1;
};

/// The rule for operands and results of these types, which `infer` accepted. An op without a rule is whole.
ShardingRule shardingOf(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results,
                        const Attrs &attrs);

} // namespace tressel::op
