// New tensors.
#pragma once

#include <tressel/tensor.h>

namespace tressel::detail {

/// Throws ShapeError, with op and line, where they cannot be addressed.
int64_t bytesOf(const TensorType &type, SourceLoc where, const char *op);
/// A tensor with memory of its own, not written yet. Throws ShapeError and OutOfMemory, which name `op` and the line.
Tensor allocateTensor(const TensorType &type, SourceLoc where, const char *op = "");
/// The same where the bytes of the type are known.
Tensor allocateTensor(const TensorType &type, int64_t bytes, SourceLoc where, const char *op);
/// A tensor for the result of a task, which has memory from Engine::submit on.
Tensor resultTensor(const TensorType &type, int64_t bytes, SourceLoc where);
/// A tensor that shares the storage.
Tensor makeTensor(const TensorType &type, runtime::StorageRef storage, SourceLoc where);

/// A constant of one value, made by the host at once.
Tensor filled(const Shape &shape, double value, DType dtype, const std::source_location &where, const char *op);

} // namespace tressel::detail
