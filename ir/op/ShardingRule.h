// How an op's dimensions correspond when its tensors are cut into parts: the interface through which the pass `shard`
// sees every op. Most rules follow from the loop nest; ops without one name a rule in their record.
//
//   matmul  a [m, k] x b [k, n] -> [m, n]      factors m, n; k is reduced by Sum
//   reshape x [b, 6] -> [b, 2, 3]              factors b, 2, 3; x's second dimension is cut by 2, then by 3
//   softmax x [b, c] along c                   factors b; c, which is never cut
#pragma once

#include "ir/op/OpInfo.h"

#include <vector>

namespace tressel::op {

/// Dimensions with the same factor are cut alike: where rank i computes with part i of one, it needs, or makes, part i
/// of the others. With all factors whole the op runs on whole tensors alone.
struct ShardingRule {
  struct Factor {
    Size size;
    /// Not None: the op reduces over it. From parts of the operands each rank makes a part of the result's terms, of
    /// the whole shape, and all of these are to be combined so.
    Combine combine = Combine::None;
    bool isWhole = false; ///< never cut
    /// The op reduces over it, and its record says how the whole follows from parts of equal sizes (OpInfo::fromParts).
    bool fromParts = false;
  };
  /// Per dimension its factors, the outermost first. None: all of the dimension is needed.
  using Dims = std::vector<std::vector<int>>;

  std::vector<Factor> factors;
  std::vector<Dims> operands, results;
  /// The attribute that holds the first result's shape, of the part on a rank; -1: none does.
  int shapeAttr = -1;
  /// The attribute that holds the row-major index, in the whole result, of the first element of the part; then
  /// dimension 0 alone is cut. -1: none does.
  int firstAttr = -1;
  /// The operand that is part of the result itself, so that only one rank counts it when parts are added up: the others
  /// have zeros. -1: there is none.
  int onceOperand = -1;
  /// By result, the factors of whose sum it has terms; empty: each result of all that the op reduces over.
  std::vector<std::vector<int>> terms;
  /// Dimensions are cut into parts of one size, or not at all.
  bool isEven = false;
  /// No part of a dimension may have fewer elements: 2 where a dimension of 1 means something else.
  int leastPart = 1;
};

/// On operands and results of these types, which `infer` accepted. An op without a rule is whole.
ShardingRule shardingOf(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results,
                        const Attrs &attrs);

} // namespace tressel::op
