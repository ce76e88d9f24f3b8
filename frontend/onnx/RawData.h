// The bytes of large weights, left where the file was read to: the parser would copy each of them into a string of its
// own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tressel::onnx {

/// A model's bytes without the `raw_data` of its graph's large initializers.
struct WithoutWeights {
  std::string model;                     ///< parses to the same message otherwise
  std::vector<std::string_view> rawData; ///< per initializer of the graph, in order; empty: it is still in `model`
};

/// Knows the three messages on the way (model, graph, tensor), and copies everything else as it is. What it cannot
/// follow stays whole, for the parser to refuse: then `rawData` is empty. The views are into `bytes`.
WithoutWeights withoutWeights(std::string_view bytes);

} // namespace tressel::onnx
