// The inputs that an op accepts, as data: number, element types, number of dimensions. A node is checked against it
// before its importer runs, so that importers may rely on it.
#pragma once

#include "tressel/runtime/Types.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::onnx {

/// An allowed number of dimensions of an input: from `lo` to `hi`, or relative to that of another input.
struct RankRule {
  int lo = 0, hi = kMaxRank;
  int like = -1; ///< number of the other input, to whose number of dimensions lo and hi are then added; the sum is at
                 ///< least 0
  bool one = false; ///< in addition: must have a single element
};

struct InputSchema {
  std::string_view name;
  bool variadic = false; ///< any number of inputs from here on
  uint32_t types = 0;    ///< a bit for each DType
  int sameAs = -1;       ///< number of the first input that must have the same element type
  std::vector<RankRule> ranks; ///< one of them must hold
};

/// The inputs of an op from version `since` of the operator set on.
struct OpSchema {
  int64_t since = 0;
  std::vector<InputSchema> inputs;
};

/// Of an op of the default domain; null if there is none in this version.
const OpSchema *findSchema(std::string_view type, int64_t opset);

/// An input of a node. A tensor of symbolic sizes matches any integer type.
struct GivenInput {
  TensorType type;
  bool anyInteger = false;
};
/// The first problem of a node's inputs, where empty ones are absent; or nothing. Absent inputs are no problem here:
/// exporters omit some that the records require, so importers check them.
std::string problemWithInputs(const OpSchema &schema, std::span<const std::optional<GivenInput>> inputs);

} // namespace tressel::onnx
