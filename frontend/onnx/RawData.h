// Reads the bytes of large weights from the file directly to their final memory, as the parser would copy each into a
// string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tressel::onnx {

/// Bytes of a file.
struct FileRange {
  uint64_t offset = 0, bytes = 0;
};
/// A model's bytes without the `raw_data` of its graph's large initializers.
struct WithoutWeights {
  std::string model;              ///< parses to the same message otherwise
  std::vector<FileRange> rawData; ///< per initializer of the graph, in order; no bytes: it is still in `model`
};

/// Fills `to` with the bytes from `offset` on, which lie within the model.
using ReadModel = std::function<void(uint64_t offset, std::span<char> to)>;

/// Parses the three messages that lead to weights (model, graph, tensor), and copies everything else. A file that it
/// cannot parse stays whole, for the parser to refuse: then `rawData` is empty. Does not read the bytes of large
/// weights.
WithoutWeights withoutWeights(uint64_t size, const ReadModel &read);

} // namespace tressel::onnx
