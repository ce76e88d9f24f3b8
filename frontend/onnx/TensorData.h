// Tensors as ONNX stores them. No MLIR here.
#pragma once

#include "frontend/onnx/Unsupported.h"
#include "ir/op/OpInfo.h"
#include "tressel/runtime/Types.h"

#include <string>
#include <string_view>

namespace onnx {
class TensorProto;
}

namespace tressel::onnx {

/// False for an element type that Tressel does not have.
bool fromOnnx(int elementType, DType &out);
/// "float8e4m3fn": the format's name of an element type, for messages.
std::string typeName(int elementType);

/// No tensor is larger: refused instead of overflowing sizes further on.
inline constexpr int64_t kMaxTensorBytes = int64_t(1) << 42;
/// Whether the type's size is within the bound, computed without overflow.
bool fitsMemory(const TensorType &type);

/// The declared type. Throws InputError naming `where` when rank or sizes are not acceptable, UnsupportedError for an
/// element type that Tressel does not have.
TensorType tensorType(const ::onnx::TensorProto &tensor, const std::string &where);

/// The values. Data in another file is looked for in `folder` and below it only. Throws InputError naming `where`.
/// `rawData`, if any, stands for the tensor's own where it was left out of the message (ModelFile::rawData), and
/// becomes the result's.
op::HostTensor tensorData(const ::onnx::TensorProto &tensor, const std::string &where, const std::string &folder,
                          const op::HostTensor &rawData = {});

/// A file holding one TensorProto (the test data of ONNX). `name` receives the tensor's name.
op::HostTensor loadTensorFile(const std::string &path, std::string *name = nullptr);

} // namespace tressel::onnx
