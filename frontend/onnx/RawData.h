// The bytes of large weights, read from the file to where they will stay: the parser would copy each of them into a
// string of its own.
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

/// Knows the three messages on the way (model, graph, tensor), and copies everything else as it is. What it cannot
/// follow stays whole, for the parser to refuse: then `rawData` is empty. Reads the large weights' bytes not at all.
WithoutWeights withoutWeights(uint64_t size, const ReadModel &read);

} // namespace tressel::onnx
