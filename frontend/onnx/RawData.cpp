#include "frontend/onnx/RawData.h"

#include "onnx.pb.h"

#include <cstdint>
#include <optional>

namespace tressel::onnx {
namespace {

/// Smaller ones are not worth it.
constexpr size_t kLarge = 16 << 10;

/// One field of a message: protobuf's wire format.
struct Field {
  uint64_t number = 0;
  std::string_view whole;   ///< with its tag
  std::string_view content; ///< of a field with a length
  bool hasLength = false;
};

std::optional<uint64_t> varint(std::string_view &in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return value;
  }
  return {};
}

/// Calls fn for each field; false if the bytes are no message, or hold one of the old groups.
template <typename Fn> bool forEachField(std::string_view message, Fn fn) {
  while (!message.empty()) {
    const char *start = message.data();
    const std::optional<uint64_t> tag = varint(message);
    if (!tag)
      return false;
    Field field{.number = *tag >> 3};
    size_t length = 0;
    switch (*tag & 7) {
    case 0:
      if (!varint(message))
        return false;
      break;
    case 1:
      length = 8;
      break;
    case 2: {
      const std::optional<uint64_t> size = varint(message);
      if (!size || *size > message.size())
        return false;
      length = static_cast<size_t>(*size);
      field.content = message.substr(0, length);
      field.hasLength = true;
      break;
    }
    case 5:
      length = 4;
      break;
    default:
      return false;
    }
    if (length > message.size())
      return false;
    message.remove_prefix(length);
    field.whole = {start, static_cast<size_t>(message.data() - start)};
    if (!fn(field))
      return false;
  }
  return true;
}

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void appendMessage(std::string &out, uint64_t number, const std::string &content) {
  appendVarint(out, number << 3 | 2);
  appendVarint(out, content.size());
  out += content;
}

/// The tensor without its raw data, which is returned; nothing taken where there is none, or several.
bool stripTensor(std::string_view tensor, std::string &out, std::string_view &raw) {
  int count = 0;
  return forEachField(tensor, [&](const Field &field) {
    if (field.number == ::onnx::TensorProto::kRawDataFieldNumber && field.hasLength) {
      raw = field.content;
      return ++count == 1;
    }
    out += field.whole;
    return true;
  });
}

} // namespace

WithoutWeights withoutWeights(std::string_view bytes) {
  WithoutWeights result;
  const bool followed = forEachField(bytes, [&](const Field &field) {
    if (field.number != ::onnx::ModelProto::kGraphFieldNumber || !field.hasLength) {
      result.model += field.whole;
      return true;
    }
    std::string graph;
    const bool good = forEachField(field.content, [&](const Field &part) {
      if (part.number != ::onnx::GraphProto::kInitializerFieldNumber || !part.hasLength) {
        graph += part.whole;
        return true;
      }
      std::string tensor;
      std::string_view raw;
      if (part.whole.size() >= kLarge && stripTensor(part.content, tensor, raw) && raw.size() >= kLarge) {
        appendMessage(graph, part.number, tensor);
      } else {
        graph += part.whole;
        raw = {};
      }
      result.rawData.push_back(raw);
      return true;
    });
    appendMessage(result.model, field.number, graph);
    return good;
  });
  if (!followed)
    return {std::string(bytes), {}};
  return result;
}

} // namespace tressel::onnx
