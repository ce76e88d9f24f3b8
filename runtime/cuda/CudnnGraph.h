// An operation graph of cuDNN while it is described: the descriptors of its tensors and operations. What lies between
// operations is virtual: it has no memory.
#pragma once

#include "Cudnn.h"

#include <list>
#include <optional>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CudnnGraph {
public:
  static constexpr unsigned kMostAlignment = 16; ///< bytes; more helps no engine
  static constexpr int64_t kFirstVirtual = 16;   ///< the ids of tensors with an address are smaller
  using Dims = std::span<const int64_t>;

  explicit CudnnGraph(const Cudnn &library) : library_(&library) {}
  CudnnGraph(CudnnGraph &&) = default;

  /// Without strides: elements are in the order of dimensions.
  const CudnnDescriptor &tensor(int64_t id, dnn::DataType type, int64_t alignment, Dims dims, Dims strides = {});
  /// A number of f32 that is passed by value: its address is the host's.
  const CudnnDescriptor &number(int64_t id, size_t rank);
  const CudnnDescriptor &between(dnn::DataType type, Dims dims, Dims strides = {});

  /// A descriptor of the graph; operations are put behind those before when they are finalized.
  CudnnDescriptor &part(dnn::Kind kind, const char *what) { return parts_.emplace_back(*library_, kind, what); }
  void add(CudnnDescriptor &operation) { operations_.push_back(operation.finalize().get()); }

  struct Pointwise {
    dnn::PointwiseMode mode;
    dnn::DataType computed = dnn::kF32;
    const CudnnDescriptor *other = nullptr, *third = nullptr; ///< of the operation's inputs
    std::optional<float> factor = {};                         ///< of the first input
    std::optional<int64_t> axis = {};
  };
  /// y = mode(x, ...).
  void pointwise(const Pointwise &what, const CudnnDescriptor &x, const CudnnDescriptor &y);
  void multiply(const CudnnDescriptor &a, const CudnnDescriptor &b, const CudnnDescriptor &c);
  void reduce(dnn::Reduction mode, const CudnnDescriptor &x, const CudnnDescriptor &y);

  void finish(dnn::Handle handle);
  const CudnnDescriptor &descriptor() const { return *graph_; }

private:
  CudnnDescriptor &describe(int64_t id, dnn::DataType type, int64_t alignment, Dims dims, Dims strides);
  const Cudnn *library_;
  std::list<CudnnDescriptor> parts_; ///< they stay where they are
  std::vector<dnn::Descriptor> operations_;
  int64_t nextVirtual_ = kFirstVirtual;
  std::optional<CudnnDescriptor> graph_;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
