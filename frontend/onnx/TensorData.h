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

/// Larger tensors are refused, so that sizes cannot overflow later.
inline constexpr int64_t kMaxTensorBytes = int64_t(1) << 42;
/// Whether the type's size is within the bound, computed without overflow.
bool fitsMemory(const TensorType &type);

/// The declared type. Throws InputError naming `where` when rank or sizes are not acceptable, UnsupportedError for an
/// element type that Tressel does not have.
TensorType tensorType(const ::onnx::TensorProto &tensor, const std::string &where);

/// The values. External data is only read from `folder` and below. Throws InputError naming `where`. `rawData` replaces
/// the tensor's own data if that was left out of the message (ModelFile::rawData), and the result shares it.
op::HostTensor tensorData(const ::onnx::TensorProto &tensor, const std::string &where, const std::string &folder,
                          const op::HostTensor &rawData = {});

/// A file holding one TensorProto (the test data of ONNX). `name` receives the tensor's name.
op::HostTensor loadTensorFile(const std::string &path, std::string *name = nullptr);

} // namespace tressel::onnx
