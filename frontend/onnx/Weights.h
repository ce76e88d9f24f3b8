// Which constants of a model can be learned, and which nodes some of its values need. No MLIR here.
#pragma once

#include "frontend/onnx/ModelFile.h"

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace tressel::onnx {

struct ImportOptions;

/// An initializer, or a node Constant of the graph, that can be learned.
struct Weight {
  std::string name;         ///< of the value
  TensorType type;
  bool isStatistic = false; ///< gradients are no use: a running mean or variance
  bool isInitializer = true; ///< else it is a node's
  int index = 0;             ///< of the initializer, or the node, in the graph
};

/// The names of `wanted`, or of the model's outputs where none are wanted. Throws InputError for a name that no node of the graph gives,
/// and for one that comes twice.
std::vector<std::string> outputNames(const ModelFile &model, const std::vector<std::string> &wanted);

/// The inputs of the model that these outputs need, by number, in order.
std::vector<size_t> inputsFor(const ModelFile &model, const std::vector<std::string> &outputs);

/// The nodes of the graph, by number, that an import leaves out: those that the wanted outputs do not need, and the constants that became
/// weights.
std::unordered_set<int> unusedNodes(const ModelFile &model, const ImportOptions &options);

/// What these outputs need of the model's floats with at least one dimension, in the order of the file: initializers,
/// then nodes Constant. One element makes a weight only as an initializer of shape [1] (a bias): other single numbers
/// are part of a formula. What nothing uses but ops of quantization, to scale by, is no weight, and what nothing uses
/// but normalizations, as statistics, is one.
std::vector<Weight> weightsOf(const ModelFile &model, const std::vector<std::string> &outputs);

/// The value that the file gives it.
op::HostTensor valueOf(const ModelFile &model, const Weight &weight);

/// The weights that nodes refused, as these must know their values at import (the scales of a Resize): the nodes'
/// inputs that follow from constants and sizes alone are looked at. By index.
std::vector<size_t> neededAsConstants(const ModelFile &model, std::span<const Weight> weights, std::span<const Unsupported> refused);

} // namespace tressel::onnx
