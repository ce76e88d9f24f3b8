// What an op may be given, as data: how many inputs, of which element types, of how many dimensions. A node is held to it before
// its importer runs, so that importers may rely on it.
#pragma once

#include "tressel/runtime/Types.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::onnx {

/// One way for an input's number of dimensions to be right: from `lo` to `hi`, or so many more than another input has.
struct RankRule {
  int lo = 0, hi = kMaxRank;
  int like = -1; ///< number of the other input; then lo and hi are added to what it has, the sum being at least 0
  bool one = false; ///< besides: a single element
};

struct InputSchema {
  std::string_view name;
  bool variadic = false; ///< any number of inputs from here on
  uint32_t types = 0;    ///< a bit for each DType
  int sameAs = -1;       ///< number of the first input that must have the same element type
  std::vector<RankRule> ranks; ///< one of them holds
};

/// The inputs of an op from version `since` of the operator set on.
struct OpSchema {
  int64_t since = 0;
  std::vector<InputSchema> inputs;
};

/// Of an op of the default domain; null if there is none in this version.
const OpSchema *findSchema(std::string_view type, int64_t opset);

/// An input of a node. Integers that hold symbolic sizes have no element type of their own yet.
struct GivenInput {
  TensorType type;
  bool anyInteger = false;
};
/// The first thing that is wrong with a node's inputs, of which absent ones are empty, or nothing. That an input is absent is left to
/// who asks for it: writers leave out some that the records ask for.
std::string problemWithInputs(const OpSchema &schema, std::span<const std::optional<GivenInput>> inputs);

} // namespace tressel::onnx
