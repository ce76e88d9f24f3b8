// Operation graphs of the stand-in cuDNN, as its engines see them.
#pragma once

#include "CudnnDescriptors.h"
#include "Library.h"

#include <optional>

namespace tressel::standin::cudnn {

inline constexpr int kOrderKnob = 12; ///< of some engines: 1 adds up backwards

/// A plan with the addresses of a pack, while it runs.
struct Launch {
  int64_t engine = 0;
  bool isBackwards = false;
  std::map<int64_t, uint64_t> addresses;
  std::map<int64_t, float> values; ///< of tensors that are passed by value
  uint64_t workspace = 0;
  mutable std::map<int64_t, std::byte *> memory; ///< of the tensors

  std::byte *place(const Tensor &t, const std::vector<int64_t> &index) const {
    std::byte *&base = memory[t.id];
    if (!base)
      base = hostOf(addresses.at(t.id), static_cast<uint64_t>(t.span()) * t.elementBytes());
    return base + t.offsetOf(index);
  }
  float value(const Tensor &t, const std::vector<int64_t> &index) const { return load(place(t, index), t.number()); }
  /// The sum of two parts, each of which was in the workspace.
  float sumByWorkspace(int64_t number, const float (&parts)[2]) const {
    const uint64_t at = workspace + 8 * static_cast<uint64_t>(number);
    float sum = 0;
    for (uint64_t half = 0; half < 2; ++half)
      store(hostOf(at + 4 * half, 4), Number::Float, parts[half]);
    for (uint64_t half = 0; half < 2; ++half)
      sum += load(hostOf(at + 4 * half, 4), Number::Float);
    return sum;
  }
};

/// A virtual tensor keeps no more than its type.
inline float rounded(float value, Number type) {
  std::byte bytes[4];
  store(bytes, type, value);
  return load(bytes, type);
}

class Graph {
public:
  /// An engine, and what its knob is set to if it has one.
  struct Proposal {
    int64_t engine = 0;
    std::optional<int64_t> order;
  };
  /// By the kind of its first operation; null, refused: nothing here begins so.
  static std::unique_ptr<Graph> of(const Descriptor &graph);
  virtual ~Graph() = default;

  /// A status: whether the operations make a graph.
  virtual int check() const = 0;
  virtual std::vector<Proposal> proposals(bool isFallback) const = 0;
  virtual bool hasOrder(int64_t engine) const = 0;
  virtual std::vector<int64_t> notesOf(int64_t engine) const = 0;
  /// Null: the engine serves this graph.
  virtual const char *missing(int64_t engine) const = 0;
  virtual int64_t workspaceOf(int64_t engine) const = 0;
  /// What a launch touches: whether it writes.
  virtual std::vector<std::pair<Tensor, bool>> touched() const = 0;
  virtual void compute(const Launch &launch) const = 0;
};
std::unique_ptr<Graph> convolutionGraph(const Descriptor &graph);
std::unique_ptr<Graph> attentionGraph(const Descriptor &graph);

/// Of an operation graph, in order.
inline std::vector<const Descriptor *> operationsOf(const Descriptor &graph) {
  std::vector<const Descriptor *> all;
  for (int64_t each : graph.list(801))
    all.push_back(&Descriptor::at(each));
  return all;
}

} // namespace tressel::standin::cudnn
