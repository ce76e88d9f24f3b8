// Which constants of a model can be trained, and which nodes given outputs need. No MLIR here.
#pragma once

#include "frontend/onnx/ModelFile.h"

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace tressel::onnx {

struct ImportOptions;

/// An initializer, or a node Constant of the graph, that can be trained.
struct Weight {
  std::string name;         ///< of the value
  TensorType type;
  bool isStatistic = false;  ///< never trained: a running mean or variance
  bool isInitializer = true; ///< else it is a node's
  int index = 0;             ///< of the initializer, or the node, in the graph
};

/// The names of `wanted`, or of the model's outputs where none are wanted. Throws InputError for a name that no node of the graph gives,
/// and for one that comes twice.
std::vector<std::string> outputNames(const ModelFile &model, const std::vector<std::string> &wanted);

/// The inputs of the model that these outputs need, by number, in order.
std::vector<size_t> inputsFor(const ModelFile &model, const std::vector<std::string> &outputs);

/// The nodes of the graph, by number, that an import skips: those that the wanted outputs do not need, and Constants
/// that became weights.
std::unordered_set<int> unusedNodes(const ModelFile &model, const ImportOptions &options);

/// The floats of the model that these outputs need and that have at least one dimension, in file order: initializers,
/// then Constant nodes. A single element is a weight only as an initializer of shape [1] (a bias); other single numbers
/// are part of a formula. A value that only quantization ops use as a scale is no weight; one that only normalizations
/// use as statistics is.
std::vector<Weight> weightsOf(const ModelFile &model, const std::vector<std::string> &outputs);

/// The value that the file gives it.
op::HostTensor valueOf(const ModelFile &model, const Weight &weight);

/// The weights, by index, that nodes refused because they must know their values at import (the scales of a Resize).
/// Follows the nodes' inputs back through constants and sizes.
std::vector<size_t> neededAsConstants(const ModelFile &model, std::span<const Weight> weights, std::span<const Unsupported> refused);

} // namespace tressel::onnx
