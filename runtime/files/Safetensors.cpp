#include "runtime/files/Safetensors.h"

#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace tressel::io {
namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "elements are stored as they lie in memory");

constexpr uint64_t kMaxElements = uint64_t(1) << 62;

struct NamedDType {
  std::string_view name;
  DType dtype;
};
constexpr NamedDType kDTypes[] = {{"F32", f32}, {"F64", f64}, {"F16", f16}, {"BF16", bf16}, {"I8", i8},
                                  {"I16", i16}, {"I32", i32}, {"I64", i64}, {"U8", u8},     {"BOOL", bool_}};
static_assert(std::size(kDTypes) == kNumDTypes);

std::optional<DType> dtypeOf(std::string_view name) {
  for (const NamedDType &d : kDTypes)
    if (d.name == name)
      return d.dtype;
  return std::nullopt;
}
std::string_view nameOfDType(DType dtype) {
  for (const NamedDType &d : kDTypes)
    if (d.dtype == dtype)
      return d.name;
  throw InternalError("element type without a safetensors name");
}

std::string quote(std::string_view name) {
  return name.size() > 200 ? "'" + std::string(name.substr(0, 200)) + "...'" : "'" + std::string(name) + "'";
}

/// Reads the header while it is parsed. A document would lose what is there
/// twice, and would be built before its depth and its forms are known.
class HeaderReader : public nlohmann::json_sax<json> {
public:
  HeaderReader(const std::string &path) : path(path) {}

  struct Raw {
    SafetensorsEntry entry;
    std::vector<uint64_t> shape, offsets;
    bool hasDType = false, hasShape = false, hasOffsets = false;
  };
  std::vector<Raw> tensors;
  std::map<std::string, std::string> metadata;

  bool start_object(std::size_t) override {
    if (depth == 2 || depth == 3)
      unexpected("an object");
    ++depth;
    if (depth == 2 && !inMetadata) {
      tensors.emplace_back();
      tensors.back().entry.name = member;
    }
    return true;
  }
  bool end_object() override {
    --depth;
    if (depth == 1 && !inMetadata) {
      const Raw &t = tensors.back();
      if (!t.hasDType || !t.hasShape || !t.hasOffsets)
        fail("has no " + std::string(!t.hasDType ? "dtype" : !t.hasShape ? "shape" : "data_offsets"));
    }
    inMetadata = false;
    return true;
  }
  bool key(string_t &k) override {
    if (depth == 1) {
      member = k;
      inMetadata = k == "__metadata__";
      if (!names.insert(k).second)
        fail("is there twice");
    } else {
      field = k;
      if (inMetadata && metadata.contains(k))
        fail("the key " + quote(k) + " is there twice");
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth != 2 || inMetadata)
      unexpected("a list");
    Raw &t = tensors.back();
    bool &seen = field == "shape" ? t.hasShape : t.hasOffsets;
    if (field != "shape" && field != "data_offsets")
      fail("unknown field " + quote(field));
    if (seen)
      fail(field + " is there twice");
    seen = true;
    ++depth;
    return true;
  }
  bool end_array() override {
    --depth;
    return true;
  }
  bool string(string_t &value) override {
    if (depth != 2)
      unexpected("a string");
    if (inMetadata) {
      metadata.emplace(field, value);
      return true;
    }
    Raw &t = tensors.back();
    if (field != "dtype")
      fail("the field " + quote(field) + " holds a string");
    if (t.hasDType)
      fail("dtype is there twice");
    t.hasDType = true;
    t.entry.dtypeName = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth != 3)
      unexpected("a number");
    Raw &t = tensors.back();
    if (field == "data_offsets" && t.offsets.size() == 2)
      fail("data_offsets are not two numbers");
    (field == "shape" ? t.shape : t.offsets).push_back(value);
    return true;
  }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t &) override { unexpected("a number that is no integer"); }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a bool"); }
  bool binary(binary_t &) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string &, const nlohmann::detail::exception &) override {
    throw InputError(path + ": the header is not valid JSON at byte " + std::to_string(position) + " of it");
  }

private:
  [[noreturn]] void fail(const std::string &why) const { throw InputError(path + ": " + quote(member) + ": " + why); }
  [[noreturn]] void unexpected(const std::string &what) const {
    if (depth == 0)
      throw InputError(path + ": the header is " + what + ", not an object");
    fail("unexpectedly " + what + (depth > 1 ? " in " + quote(field) : ""));
  }

  const std::string &path;
  int depth = 0; // 1: the members are tensors; 2: the members are a tensor's
                 // fields or the metadata; 3: a list of numbers
  bool inMetadata = false;
  std::string member, field;
  std::set<std::string> names;
};

/// The number of elements. Not even the sizes beside a 0 may overflow: others
/// multiply them too.
uint64_t countElements(const std::vector<uint64_t> &shape, const auto &fail) {
  uint64_t n = 1;
  for (uint64_t d : shape) {
    if (d > kMaxElements / n)
      fail("the shape is too large");
    n *= std::max(d, uint64_t(1));
  }
  return std::ranges::find(shape, uint64_t(0)) != shape.end() ? 0 : n;
}

void checkEntry(HeaderReader::Raw &raw, uint64_t dataBytes, const std::string &path) {
  SafetensorsEntry &e = raw.entry;
  auto fail = [&](const std::string &why) { throw InputError(path + ": " + quote(e.name) + ": " + why); };
  if (raw.offsets.size() != 2)
    fail("data_offsets are not two numbers");
  e.begin = raw.offsets[0];
  e.end = raw.offsets[1];
  const std::string place = "bytes " + std::to_string(e.begin) + " to " + std::to_string(e.end);
  if (e.begin > e.end)
    fail("ends before it begins (" + place + ")");
  if (e.end > dataBytes)
    fail("its elements are " + place + ", but the file has only " + std::to_string(dataBytes) + " bytes of elements");
  const uint64_t count = countElements(raw.shape, fail);
  const std::optional<DType> dtype = dtypeOf(e.dtypeName);
  if (!dtype) {
    e.unsupported = "element type " + quote(e.dtypeName);
  } else {
    const auto width = static_cast<uint64_t>(sizeOf(*dtype));
    if (count > kMaxElements / width || count * width != e.end - e.begin)
      fail(std::to_string(count) + " elements of type " + e.dtypeName + " do not fit " + place);
    e.type.dtype = *dtype;
  }
  if (raw.shape.size() > kMaxRank) {
    e.unsupported += (e.unsupported.empty() ? "" : ", ") + std::to_string(raw.shape.size()) + " dimensions (at most " +
                     std::to_string(kMaxRank) + ")";
    return;
  }
  for (uint64_t d : raw.shape)
    e.type.shape.push_back(static_cast<int64_t>(d));
}

} // namespace

SafetensorsHeader parseSafetensorsHeader(std::string_view text, uint64_t dataBytes, const std::string &path) {
  HeaderReader reader(path);
  if (!text.starts_with('{'))
    throw InputError(path + ": not a safetensors file: its header does not begin with '{'");
  json::sax_parse(text, &reader);

  SafetensorsHeader header;
  header.metadata = std::move(reader.metadata);
  for (HeaderReader::Raw &raw : reader.tensors) {
    checkEntry(raw, dataBytes, path);
    header.entries.push_back(std::move(raw.entry));
  }
  std::ranges::sort(header.entries, [](const SafetensorsEntry &a, const SafetensorsEntry &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  // No byte belongs to two tensors or to none: a file cannot hide anything, nor
  // grow when it is read.
  uint64_t covered = 0;
  const SafetensorsEntry *before = nullptr;
  for (const SafetensorsEntry &e : header.entries) {
    if (e.begin < covered)
      throw InputError(path + ": " + quote(e.name) + ": overlaps " + quote(before->name));
    if (e.begin > covered)
      throw InputError(path + ": " + quote(e.name) + ": a gap of " + std::to_string(e.begin - covered) +
                       " bytes before its elements");
    covered = e.end;
    before = &e;
  }
  if (covered != dataBytes)
    throw InputError(path + ": " + std::to_string(dataBytes - covered) + " bytes at the end belong to no tensor");
  return header;
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  auto fail = [&](const std::string &why) {
    if (fd_ >= 0)
      ::close(fd_);
    throw InputError(path_ + ": " + why);
  };
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a named pipe must not block
  struct stat info;
  if (fd_ < 0 || ::fstat(fd_, &info) != 0)
    fail(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    fail("cannot be read: not a regular file");
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t length = 0;
  if (size < sizeof length)
    fail("not a safetensors file: only " + std::to_string(size) + " bytes");
  try {
    readAt(0, &length, sizeof length);
    if (length > kMaxSafetensorsHeader)
      throw InputError(path_ + ": not a safetensors file, or damaged: a header of " + std::to_string(length) +
                       " bytes (at most " + std::to_string(kMaxSafetensorsHeader) + ")");
    if (length > size - sizeof length)
      throw InputError(path_ + ": the header has " + std::to_string(length) + " bytes, but the file ends after " +
                       std::to_string(size - sizeof length) + " of them");
    std::string text(length, '\0');
    dataStart_ = sizeof length + length;
    readAt(sizeof length, text.data(), length);
    header_ = parseSafetensorsHeader(text, size - dataStart_, path_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { ::close(fd_); }

void SafetensorsFile::readAt(uint64_t offset, void *to, uint64_t bytes) const {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd_, static_cast<char *>(to) + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      throw InputError(path_ + ": cannot be read: " + std::strerror(errno));
    if (n == 0)
      throw InputError(path_ + ": the file became shorter while it was read");
    done += static_cast<uint64_t>(n);
  }
}

runtime::StorageRef SafetensorsFile::read(const SafetensorsEntry &entry) const {
  if (!entry.unsupported.empty())
    throw InputError(path_ + ": " + quote(entry.name) + ": not supported: " + entry.unsupported);
  runtime::StorageRef storage = runtime::Storage::allocate(entry.type.bytes());
  readAt(dataStart_ + entry.begin, storage->data(), entry.end - entry.begin);
  if (entry.type.dtype == bool_) {
    auto *bytes = static_cast<uint8_t *>(storage->data());
    std::transform(bytes, bytes + entry.type.bytes(), bytes, [](uint8_t b) { return uint8_t(b != 0); });
  }
  return storage;
}

void writeSafetensors(const std::string &path, std::vector<SafetensorsItem> items,
                      const std::map<std::string, std::string> &metadata, runtime::Durable durable) {
  // Wide elements first: then every tensor is aligned to its elements without a
  // gap.
  std::ranges::sort(items, [](const SafetensorsItem &a, const SafetensorsItem &b) {
    const int64_t wa = sizeOf(a.type.dtype), wb = sizeOf(b.type.dtype);
    return wa != wb ? wa > wb : a.name < b.name;
  });
  std::string header = "{";
  auto text = [&](const std::string &s) {
    try {
      return json(s).dump();
    } catch (const json::exception &) {
      throw InputError(path + ": names and metadata of a safetensors file are "
                              "UTF-8, but one is not");
    }
  };
  auto separate = [&] {
    if (header.size() > 1)
      header += ',';
  };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    const char *comma = "";
    for (const auto &[key, value] : metadata) {
      header += comma + text(key) + ':' + text(value);
      comma = ",";
    }
    header += '}';
  }
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const SafetensorsItem &item : items) {
    if (item.name == "__metadata__")
      throw InputError(path + ": no tensor of a safetensors file can be called '__metadata__'");
    if (!names.insert(item.name).second)
      throw InputError(path + ": two tensors are called " + quote(item.name));
    separate();
    header += text(item.name) + ":{\"dtype\":\"" + std::string(nameOfDType(item.type.dtype)) + "\",\"shape\":[";
    for (int i = 0; i < item.type.rank(); ++i)
      header += (i ? "," : "") + std::to_string(item.type.shape.extent(i));
    const uint64_t end = offset + static_cast<uint64_t>(item.type.bytes());
    header += "],\"data_offsets\":[" + std::to_string(offset) + ',' + std::to_string(end) + "]}";
    offset = end;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMaxSafetensorsHeader)
    throw InputError(path + ": too many tensors for one safetensors file: a header of " +
                     std::to_string(header.size()) + " bytes");

  const uint64_t length = header.size();
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(&length, 1)),
                                                 std::as_bytes(std::span(header))};
  for (const SafetensorsItem &item : items)
    pieces.emplace_back(static_cast<const std::byte *>(item.data), static_cast<size_t>(item.type.bytes()));
  runtime::writeFile(path, pieces, durable);
}

} // namespace tressel::io
