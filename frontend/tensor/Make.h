// New tensors.
#pragma once

#include <tressel/tensor.h>

namespace tressel::detail {

/// The tensor's bytes. Throws ShapeError, with op and line, if they exceed what can be addressed.
int64_t bytesOf(const TensorType &type, SourceLoc where, const char *op);
/// A tensor with memory of its own, not written yet. Throws ShapeError and OutOfMemory, which name `op` and the line.
Tensor allocateTensor(const TensorType &type, SourceLoc where, const char *op = "");
/// The same where the bytes of the type are known.
Tensor allocateTensor(const TensorType &type, int64_t bytes, SourceLoc where, const char *op);
/// A tensor for the result of a task: Engine::submit allocates its memory.
Tensor resultTensor(const TensorType &type, int64_t bytes, SourceLoc where);
/// A tensor that shares the storage.
Tensor makeTensor(const TensorType &type, runtime::StorageRef storage, SourceLoc where);

/// A constant tensor that the host fills at once.
Tensor filled(const Shape &shape, double value, DType dtype, const std::source_location &where, const char *op);

} // namespace tressel::detail
