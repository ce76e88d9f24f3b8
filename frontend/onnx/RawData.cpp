#include "frontend/onnx/RawData.h"

#include "onnx.pb.h"

#include <algorithm>
#include <optional>

namespace tressel::onnx {
namespace {

/// Smaller weights are not worth a read of their own.
constexpr uint64_t kLarge = 16 << 10;

/// A moving window over the model's bytes.
class Window {
public:
  Window(uint64_t size, const ReadModel &read) : size(size), read(read) {}

  uint8_t at(uint64_t offset) {
    if (offset < begin || offset >= begin + bytes.size()) {
      begin = offset;
      bytes.resize(static_cast<size_t>(std::min<uint64_t>(kBytes, size - offset)));
      read(begin, bytes);
    }
    return static_cast<uint8_t>(bytes[static_cast<size_t>(offset - begin)]);
  }
  void append(std::string &out, FileRange range) const {
    const size_t before = out.size(), count = static_cast<size_t>(range.bytes);
    out.resize(before + count);
    if (range.offset >= begin && range.offset + range.bytes <= begin + bytes.size())
      std::copy_n(bytes.data() + (range.offset - begin), count, out.data() + before);
    else
      read(range.offset, {out.data() + before, count});
  }

  const uint64_t size;

private:
  static constexpr uint64_t kBytes = 8 << 10; // between two weights stand some hundred bytes
  const ReadModel &read;
  uint64_t begin = 0;
  std::vector<char> bytes;
};

/// One field of a message: protobuf's wire format.
struct Field {
  uint64_t number = 0;
  FileRange whole;   ///< with its tag
  FileRange content; ///< of a field with a length
  bool hasLength = false;
};

std::optional<uint64_t> varint(Window &in, uint64_t &at, uint64_t end) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
    const uint8_t byte = in.at(at++);
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return value;
  }
  return {};
}

/// Calls fn for each field; false if the bytes are no message, or hold one of the old groups.
template <typename Fn> bool forEachField(Window &in, FileRange message, Fn fn) {
  const uint64_t end = message.offset + message.bytes;
  for (uint64_t at = message.offset; at < end;) {
    const uint64_t start = at;
    const std::optional<uint64_t> tag = varint(in, at, end);
    if (!tag)
      return false;
    Field field{.number = *tag >> 3};
    uint64_t length = 0;
    switch (*tag & 7) {
    case 0:
      if (!varint(in, at, end))
        return false;
      break;
    case 1:
      length = 8;
      break;
    case 2: {
      const std::optional<uint64_t> size = varint(in, at, end);
      if (!size || *size > end - at)
        return false;
      length = *size;
      field.content = {at, length};
      field.hasLength = true;
      break;
    }
    case 5:
      length = 4;
      break;
    default:
      return false;
    }
    if (length > end - at)
      return false;
    at += length;
    field.whole = {start, at - start};
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

/// The tensor's message without its raw data, whose range is returned. Nothing is removed if there is none, or several.
bool stripTensor(Window &in, FileRange tensor, std::string &out, FileRange &raw) {
  int count = 0;
  return forEachField(in, tensor, [&](const Field &field) {
    if (field.number == ::onnx::TensorProto::kRawDataFieldNumber && field.hasLength) {
      raw = field.content;
      return ++count == 1;
    }
    in.append(out, field.whole);
    return true;
  });
}

} // namespace

WithoutWeights withoutWeights(uint64_t size, const ReadModel &read) {
  Window in(size, read);
  WithoutWeights result;
  const bool followed = forEachField(in, {0, size}, [&](const Field &field) {
    if (field.number != ::onnx::ModelProto::kGraphFieldNumber || !field.hasLength) {
      in.append(result.model, field.whole);
      return true;
    }
    std::string graph;
    const bool good = forEachField(in, field.content, [&](const Field &part) {
      if (part.number != ::onnx::GraphProto::kInitializerFieldNumber || !part.hasLength) {
        in.append(graph, part.whole);
        return true;
      }
      std::string tensor;
      FileRange raw;
      if (part.whole.bytes >= kLarge && stripTensor(in, part.content, tensor, raw) && raw.bytes >= kLarge) {
        appendMessage(graph, part.number, tensor);
      } else {
        in.append(graph, part.whole);
        raw = {};
      }
      result.rawData.push_back(raw);
      return true;
    });
    appendMessage(result.model, field.number, graph);
    return good;
  });
  if (followed)
    return result;
  result = {};
  in.append(result.model, {0, size});
  return result;
}

} // namespace tressel::onnx
