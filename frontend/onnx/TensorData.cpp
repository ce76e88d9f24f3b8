#include "frontend/onnx/TensorData.h"

#include "onnx.pb.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/File.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

namespace tressel::onnx {

using ::onnx::TensorProto;
namespace fs = std::filesystem;

UnsupportedError::UnsupportedError(const std::string &file, std::vector<Unsupported> items)
    : InputError([&] {
        std::string text = file + ": not supported:";
        for (const Unsupported &u : items) {
          text +=
              "\n  " + u.op + (u.opset ? " (opset " + std::to_string(u.opset) + ") at node '" : " '") + u.node + "'";
          if (!u.why.empty())
            text += ": " + u.why;
        }
        return text;
      }()),
      list(std::move(items)) {}

bool fromOnnx(int elementType, DType &out) {
  switch (elementType) {
  case TensorProto::FLOAT:
    out = f32;
    return true;
  case TensorProto::DOUBLE:
    out = f64;
    return true;
  case TensorProto::FLOAT16:
    out = f16;
    return true;
  case TensorProto::BFLOAT16:
    out = bf16;
    return true;
  case TensorProto::INT8:
    out = i8;
    return true;
  case TensorProto::INT16:
    out = i16;
    return true;
  case TensorProto::INT32:
    out = i32;
    return true;
  case TensorProto::INT64:
    out = i64;
    return true;
  case TensorProto::UINT8:
    out = u8;
    return true;
  case TensorProto::BOOL:
    out = bool_;
    return true;
  default:
    return false;
  }
}

std::string typeName(int elementType) {
  // The format's numbers, those after bfloat16 included, which older schema files do not name.
  static constexpr const char *names[] = {"undefined",      "float",    "uint8",        "int8",           "uint16",
                                          "int16",          "int32",    "int64",        "string",         "bool",
                                          "float16",        "double",   "uint32",       "uint64",         "complex64",
                                          "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                          "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0"};
  if (elementType < 0 || elementType >= static_cast<int>(std::size(names)))
    return "number " + std::to_string(elementType);
  return names[elementType];
}

bool fitsMemory(const TensorType &type) {
  int64_t bytes = sizeOf(type.dtype);
  for (Size d : type.shape)
    if (d.isSymbolic())
      continue;
    else if (d < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(d.number(), 1), &bytes) ||
             bytes > kMaxTensorBytes)
      return false;
  return true;
}

TensorType tensorType(const TensorProto &tensor, const std::string &where) {
  auto fail = [&](const std::string &message) -> void {
    throw InputError(where + ": tensor '" + tensor.name() + "' " + message);
  };
  TensorType type;
  if (!fromOnnx(tensor.data_type(), type.dtype))
    throw UnsupportedError(where, {{"tensor", tensor.name(), 0, "element type " + typeName(tensor.data_type())}});
  if (tensor.dims_size() > kMaxRank)
    fail("has " + std::to_string(tensor.dims_size()) + " dimensions, more than " + std::to_string(kMaxRank));
  for (int64_t d : tensor.dims()) {
    if (d < 0)
      fail("has a dimension of size " + std::to_string(d));
    type.shape.push_back(d);
  }
  if (!fitsMemory(type))
    fail("of type " + type.str() + " is larger than any memory");
  return type;
}

/// The bytes that a tensor names in a file of its own.
struct External {
  std::string file;
  int64_t offset, length;
};
static External externalData(const TensorProto &tensor, const std::string &where, const std::string &folder) {
  std::string location;
  int64_t offset = 0, length = -1;
  auto fail = [&](const std::string &message) -> void {
    throw InputError(where + ": tensor '" + tensor.name() + "': external data '" + location + "' " + message);
  };
  auto number = [&](const std::string &text) {
    char *end = nullptr;
    errno = 0;
    long long n = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end || errno || n < 0)
      fail("has offset or length '" + text + "'");
    return static_cast<int64_t>(n);
  };
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      offset = number(entry.value());
    else if (entry.key() == "length")
      length = number(entry.value());
  }
  // A model may name only files beside it: anything else would let a model read what its user did not offer.
  fs::path relative(location);
  if (location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos)
    fail("is not a relative path");
  std::error_code ec;
  fs::path root = fs::canonical(folder, ec);
  if (ec)
    fail("cannot be read: no folder '" + folder + "'");
  fs::path file = fs::canonical(root / relative, ec);
  if (ec)
    fail("does not exist");
  auto [mismatch, rest] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  if (mismatch != root.end())
    fail("leads out of the model's folder");
  if (!fs::is_regular_file(file, ec))
    fail("is not a file");
  int64_t size = static_cast<int64_t>(fs::file_size(file, ec));
  if (ec || offset > size || (length >= 0 && length > size - offset))
    fail("is shorter than the model says");
  if (length < 0)
    length = size - offset;
  return {file.string(), offset, length};
}

op::HostTensor tensorData(const TensorProto &tensor, const std::string &where, const std::string &folder,
                          const op::HostTensor &rawData) {
  TensorType type = tensorType(tensor, where);
  auto wrongSize = [&](int64_t have, const char *unit) {
    throw InputError(where + ": tensor '" + tensor.name() + "' of type " + type.str() + " holds " +
                     std::to_string(have) + " " + unit);
  };
  const int64_t n = type.shape.numElements(), bytes = type.bytes();

  const bool isExternal = tensor.data_location() == TensorProto::EXTERNAL;
  if (isExternal || rawData.data || tensor.has_raw_data()) {
    const std::optional<External> external =
        isExternal ? std::optional(externalData(tensor, where, folder)) : std::nullopt;
    const int64_t have = external       ? external->length
                         : rawData.data ? rawData.type.bytes()
                                        : static_cast<int64_t>(tensor.raw_data().size());
    if (have != bytes)
      wrongSize(have, "bytes");
    const bool isBool = type.dtype == bool_;
    if (!isExternal && rawData.data && !isBool)
      return {type, rawData.data};
    op::HostTensor result = op::HostTensor::allocate(type);
    const std::span<std::byte> to(result.data.get(), static_cast<size_t>(bytes));
    if (external)
      runtime::InputFile(external->file).read(static_cast<uint64_t>(external->offset), to);
    else if (bytes)
      std::memcpy(to.data(), rawData.data ? static_cast<const void *>(rawData.data.get()) : tensor.raw_data().data(),
                  to.size());
    if (isBool) // one byte each, but only 0 and 1 are ours
      for (int64_t i = 0; i < n; ++i)
        result.as<uint8_t>()[i] = result.as<uint8_t>()[i] != 0;
    return result;
  }

  // The size is checked before anything is allocated: dims alone may claim a terabyte.
  auto copy = [&]<typename T>(const auto &field, T) {
    if (field.size() != n)
      wrongSize(field.size(), "values");
    op::HostTensor result = op::HostTensor::allocate(type);
    for (int64_t i = 0; i < n; ++i)
      result.as<T>()[i] = static_cast<T>(field.Get(static_cast<int>(i)));
    return result;
  };
  switch (type.dtype) {
  case DType::f32:
    return copy(tensor.float_data(), float());
  case DType::f64:
    return copy(tensor.double_data(), double());
  case DType::i64:
    return copy(tensor.int64_data(), int64_t());
  case DType::i32:
    return copy(tensor.int32_data(), int32_t());
  case DType::i16:
    return copy(tensor.int32_data(), int16_t());
  case DType::i8:
    return copy(tensor.int32_data(), int8_t());
  case DType::u8:
    return copy(tensor.int32_data(), uint8_t());
  case DType::f16:
  case DType::bf16:
    return copy(tensor.int32_data(), uint16_t()); // the bits, one value in the low half of each
  case DType::boolean:
    break;
  }
  op::HostTensor result = copy(tensor.int32_data(), uint8_t());
  for (int64_t i = 0; i < n; ++i)
    result.as<uint8_t>()[i] = tensor.int32_data(static_cast<int>(i)) != 0;
  return result;
}

op::HostTensor loadTensorFile(const std::string &path, std::string *name) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw InputError(path + ": cannot be read");
  TensorProto tensor;
  if (!tensor.ParseFromIstream(&in))
    throw InputError(path + ": not a tensor in ONNX's format, or damaged");
  if (name)
    *name = tensor.name();
  return tensorData(tensor, path, fs::path(path).parent_path().string());
}

} // namespace tressel::onnx
