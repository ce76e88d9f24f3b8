#include "CudnnGraph.h"

namespace tressel::runtime::cuda {

//--- Tensors ----------------------------------------------------------------------------------------------------------
CudnnDescriptor &CudnnGraph::describe(int64_t id, dnn::DataType type, int64_t alignment, Dims dims, Dims strides) {
  std::vector<int64_t> packed;
  if (strides.empty()) {
    packed.resize(dims.size());
    int64_t stride = 1;
    for (size_t d = dims.size(); d-- > 0;)
      packed[d] = stride, stride *= dims[d];
    strides = packed;
  }
  CudnnDescriptor &made = part(dnn::kTensor, "describing a tensor");
  made.set(dnn::kTensorType, dnn::kTypeDataType, type).set(dnn::kTensorDimensions, dims);
  made.set(dnn::kTensorStrides, strides).set(dnn::kTensorId, id).set(dnn::kTensorAlignment, alignment);
  return made;
}
const CudnnDescriptor &CudnnGraph::tensor(int64_t id, dnn::DataType type, int64_t alignment, Dims dims, Dims strides) {
  return describe(id, type, alignment, dims, strides).finalize();
}
const CudnnDescriptor &CudnnGraph::number(int64_t id, size_t rank) {
  const std::vector<int64_t> ones(rank, 1);
  const bool isByValue = true;
  return describe(id, dnn::kF32, kMostAlignment, ones, ones)
      .set(dnn::kTensorIsByValue, dnn::kTypeBoolean, 1, &isByValue)
      .finalize();
}
const CudnnDescriptor &CudnnGraph::between(dnn::DataType type, Dims dims, Dims strides) {
  const bool isVirtual = true;
  return describe(nextVirtual_++, type, kMostAlignment, dims, strides)
      .set(dnn::kTensorIsVirtual, dnn::kTypeBoolean, 1, &isVirtual)
      .finalize();
}

//--- Operations -------------------------------------------------------------------------------------------------------
void CudnnGraph::pointwise(const Pointwise &what, const CudnnDescriptor &x, const CudnnDescriptor &y) {
  CudnnDescriptor &kind = part(dnn::kPointwise, "describing a pointwise computation");
  kind.set(dnn::kPointwiseMode, dnn::kTypePointwiseMode, what.mode)
      .set(dnn::kPointwisePrecision, dnn::kTypeDataType, what.computed);
  if (what.axis)
    kind.set(dnn::kPointwiseAxis, *what.axis);
  kind.finalize();
  CudnnDescriptor &operation = part(dnn::kPointwiseOperation, "describing a pointwise operation");
  operation.set(dnn::kPointwiseDescriptor, kind).set(dnn::kPointwiseX, x).set(dnn::kPointwiseY, y);
  if (what.other)
    operation.set(dnn::kPointwiseB, *what.other);
  if (what.third)
    operation.set(dnn::kPointwiseT, *what.third);
  if (what.factor)
    operation.set(dnn::kPointwiseAlpha1, *what.factor).set(dnn::kPointwiseAlpha2, 1.0f);
  add(operation);
}
void CudnnGraph::multiply(const CudnnDescriptor &a, const CudnnDescriptor &b, const CudnnDescriptor &c) {
  const CudnnDescriptor &kind =
      part(dnn::kProduct, "describing a product").set(dnn::kProductType, dnn::kTypeDataType, dnn::kF32).finalize();
  CudnnDescriptor &operation = part(dnn::kProductOperation, "describing the operation of a product");
  add(operation.set(dnn::kProductDescriptor, kind)
          .set(dnn::kProductA, a)
          .set(dnn::kProductB, b)
          .set(dnn::kProductC, c));
}
void CudnnGraph::reduce(dnn::Reduction mode, const CudnnDescriptor &x, const CudnnDescriptor &y) {
  const CudnnDescriptor &kind = part(dnn::kReduction, "describing a reduction")
                                    .set(dnn::kReductionMode, dnn::kTypeReduction, mode)
                                    .set(dnn::kReductionType, dnn::kTypeDataType, dnn::kF32)
                                    .finalize();
  CudnnDescriptor &operation = part(dnn::kReductionOperation, "describing the operation of a reduction");
  add(operation.set(dnn::kReductionDescriptor, kind).set(dnn::kReductionX, x).set(dnn::kReductionY, y));
}

void CudnnGraph::finish(dnn::Handle handle) {
  graph_.emplace(*library_, dnn::kOperationGraph, "describing the graph");
  graph_->set(dnn::kGraphHandle, dnn::kTypeHandle, 1, &handle)
      .set(dnn::kGraphOperations, dnn::kTypeDescriptor, static_cast<int64_t>(operations_.size()), operations_.data())
      .finalize();
}

} // namespace tressel::runtime::cuda
