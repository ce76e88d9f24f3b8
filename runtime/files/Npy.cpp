#include "tressel/runtime/Npy.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Half.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace tressel::runtime {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 1 << 16;

struct Header {
  std::optional<std::string_view> descr;
  std::optional<bool> fortranOrder;
  std::optional<Shape> shape;
};

/// Reads the header, a Python dictionary of three known keys.
class HeaderParser {
public:
  HeaderParser(std::string_view text, const std::string &name) : text(text), name(name) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !header.descr)
        header.descr = string();
      else if (key == "fortran_order" && !header.fortranOrder)
        header.fortranOrder = boolean();
      else if (key == "shape" && !header.shape)
        header.shape = shape();
      else
        fail(concat("unexpected key '", key.substr(0, 40), "' in the header"));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skipSpace();
    if (!text.empty() || !header.descr || !header.fortranOrder || !header.shape)
      fail("the header is damaged");
    return header;
  }

private:
  [[noreturn]] void fail(const std::string &why) const { throwError<InputError>(name, ": ", why); }
  void skipSpace() {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n' || text[0] == '\t' || text[0] == '\0'))
      text.remove_prefix(1);
  }
  bool accept(char c) {
    skipSpace();
    if (text.empty() || text[0] != c)
      return false;
    text.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(concat("the header is damaged ('", std::string_view(&c, 1), "' expected)"));
  }
  std::string_view string() {
    skipSpace();
    if (!text.empty() && text[0] == '[')
      fail("records are not supported, only arrays of numbers");
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      fail("the header is damaged (a string expected)");
    const size_t end = text.find(text[0], 1);
    if (end == std::string_view::npos)
      fail("the header is damaged (an open string)");
    const std::string_view result = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    skipSpace();
    for (std::string_view word : {std::string_view("True"), std::string_view("False")})
      if (text.starts_with(word)) {
        text.remove_prefix(word.size());
        return word == "True";
      }
    fail("the header is damaged (True or False expected)");
  }
  Shape shape() {
    Shape result;
    expect('(');
    while (!accept(')')) {
      skipSpace();
      int64_t size = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || size < 0)
        fail("the header is damaged (a size expected)");
      text.remove_prefix(static_cast<size_t>(end - text.data()));
      if (text.starts_with('L')) // written by Python 2
        text.remove_prefix(1);
      if (result.rank() == kMaxRank)
        fail(concat("more than ", kMaxRank, " dimensions"));
      result.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::string_view text;
  const std::string &name;
};

constexpr std::pair<std::string_view, DType> kTypes[] = {{"f4", f32}, {"f8", f64}, {"f2", f16},
                                                         {"i1", i8},  {"i2", i16}, {"i4", i32},
                                                         {"i8", i64}, {"u1", u8},  {"b1", bool_}};

/// Bytes of the elements, nothing if beyond `limit`.
std::optional<int64_t> boundedBytes(const TensorType &type, int64_t limit) {
  int64_t n = sizeOf(type.dtype);
  for (Size d : type.shape)
    if (d == 0)
      return 0;
  for (Size d : type.shape) {
    if (n > limit / d.number())
      return std::nullopt;
    n *= d.number();
  }
  return n <= limit ? std::optional(n) : std::nullopt;
}

/// Copies elements from column-major order to row-major order.
void fromFortran(const std::byte *from, std::byte *to, const TensorType &type) {
  const size_t size = static_cast<size_t>(sizeOf(type.dtype));
  const int64_t n = type.shape.numElements();
  int64_t index[kMaxRank] = {}, strides[kMaxRank] = {};
  int64_t stride = 1;
  for (int d = 0; d < type.rank(); ++d) {
    strides[d] = stride;
    stride *= type.shape[d].number();
  }
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(at) * size, size);
    for (int d = type.rank() - 1; d >= 0; --d) {
      at += strides[d];
      if (++index[d] < type.shape[d].number())
        break;
      at -= (strides[d] * type.shape[d]).number();
      index[d] = 0;
    }
  }
}

} // namespace

NpyArray parseNpy(std::span<const std::byte> bytes, const std::string &name) {
  auto fail = [&](const std::string &why) -> void { throwError<InputError>(name, ": ", why); };
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic))
    fail("not a .npy file");
  if (text.size() < 10)
    fail("truncated in the header");
  const int version = static_cast<uint8_t>(text[6]);
  if (version < 1 || version > 3)
    fail(concat("unknown version ", version, " of the .npy format"));
  const size_t lengthBytes = version == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes && 8 + i < text.size(); ++i)
    length |= static_cast<size_t>(static_cast<uint8_t>(text[8 + i])) << (8 * i);
  const size_t start = 8 + lengthBytes;
  if (length > kMaxHeader)
    fail(concat("the header is damaged (its length is ", length, ")"));
  if (text.size() < start + length)
    fail("truncated in the header");
  const Header header = HeaderParser(text.substr(start, length), name).parse();

  std::string_view descr = *header.descr;
  bool bigEndian = false;
  if (!descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos) {
    bigEndian = descr[0] == '>';
    descr.remove_prefix(1);
  }
  const auto *known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto &t) { return t.first == descr; });
  if (known == std::end(kTypes))
    fail(concat("elements of type '", header.descr->substr(0, 40),
                "' are not supported (supported: f2 f4 f8 i1 i2 i4 i8 u1 b1)"));
  const TensorType type{known->second, *header.shape};

  const std::span<const std::byte> payload = bytes.subspan(start + length);
  const auto needed = boundedBytes(type, static_cast<int64_t>(payload.size()));
  if (!needed)
    fail(concat("truncated: ", type.str(), " needs more than the ", payload.size(), " bytes that follow"));
  if (*needed != static_cast<int64_t>(payload.size()))
    fail(concat("has ", payload.size(), " bytes of elements, ", type.str(), " needs ", *needed));

  NpyArray array{type, Storage::allocate(*needed)};
  auto *data = static_cast<std::byte *>(array.data->data());
  if (*header.fortranOrder && type.rank() > 1 && *needed)
    fromFortran(payload.data(), data, type);
  else if (*needed)
    std::memcpy(data, payload.data(), payload.size());
  const size_t size = static_cast<size_t>(sizeOf(type.dtype));
  if (bigEndian && size > 1)
    for (size_t at = 0; at < payload.size(); at += size)
      std::reverse(data + at, data + at + size);
  if (type.dtype == bool_)
    for (size_t i = 0; i < payload.size(); ++i)
      data[i] = std::byte(data[i] != std::byte(0));
  return array;
}

NpyArray readNpy(const std::string &path) { return parseNpy(readFile(path), path); }

std::string formatNpy(const TensorType &type, const void *data) {
  const DType stored = type.dtype == bf16 ? f32 : type.dtype;
  std::string_view code;
  for (auto [text, dtype] : kTypes)
    if (dtype == stored)
      code = text;
  std::string header =
      concat("{'descr': '", sizeOf(stored) == 1 ? "|" : "<", code, "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < type.rank(); ++i)
    header += concat(i ? " " : "", type.shape[i], i + 1 < type.rank() || type.rank() == 1 ? "," : "");
  header += "), }";
  // The elements begin at a multiple of 64.
  const size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.resize(total - 11, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  bytes += header;
  const int64_t n = type.shape.numElements();
  if (type.dtype != bf16) {
    bytes.append(static_cast<const char *>(data), static_cast<size_t>(n * sizeOf(stored)));
    return bytes;
  }
  for (int64_t i = 0; i < n; ++i) {
    const float value = bfloatToFloat(static_cast<const uint16_t *>(data)[i]);
    char raw[4];
    std::memcpy(raw, &value, 4);
    bytes.append(raw, 4);
  }
  return bytes;
}

void writeNpy(const std::string &path, const TensorType &type, const void *data) {
  const std::string bytes = formatNpy(type, data);
  writeFile(path, std::as_bytes(std::span(bytes)));
}

} // namespace tressel::runtime
