#include "frontend/train/EventFile.h"
#include "tressel/runtime/Error.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <unistd.h>

namespace tressel {
namespace {

using google::protobuf::io::CodedOutputStream;

std::string message(const std::function<void(CodedOutputStream &)> &write) {
  std::string text;
  google::protobuf::io::StringOutputStream to(&text);
  {
    CodedOutputStream stream(&to);
    write(stream);
  }
  return text;
}
/// Protobuf's wire types, the low bits of a field's key.
enum Wire : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
void key(CodedOutputStream &out, uint32_t field, Wire wire) { out.WriteTag(field << 3 | wire); }
void bytes(CodedOutputStream &out, uint32_t field, const std::string &text) {
  key(out, field, Bytes);
  out.WriteVarint32(static_cast<uint32_t>(text.size()));
  out.WriteString(text);
}

/// CRC-32C (Castagnoli), bits reflected.
uint32_t crc32c(const std::string &text) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit)
        crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
      made[i] = crc;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (const char c : text)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 255];
  return ~crc;
}
/// TFRecord masks a checksum, so that the checksum of data with its own checksum is no constant.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8u; }

} // namespace

EventFile::EventFile(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  path_ = (std::filesystem::path(folder) / ("events.out.tfevents." + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count()) + "." + host +
                                            "." + std::to_string(::getpid())))
              .string();
  for (int number = 0; !file_ && number < 1000; ++number) { // one process may open several in a second
    const std::string path = number ? path_ + "." + std::to_string(number) : path_;
    file_.reset(std::fopen(path.c_str(), "wxe"));
    if (file_)
      path_ = path;
    else if (errno != EEXIST)
      break;
  }
  if (!file_)
    throw RuntimeError(path_ + ": cannot be written: " + (error ? error.message() : std::strerror(errno)));
  const double seconds = std::chrono::duration<double>(now).count();
  record(message([&](CodedOutputStream &out) {
    key(out, 1, Fixed64);
    out.WriteLittleEndian64(std::bit_cast<uint64_t>(seconds));
    bytes(out, 3, "brain.Event:2");
  }));
}

void EventFile::write(int64_t step, double time, const std::vector<std::pair<std::string, double>> &figures) {
  const std::string summary = message([&](CodedOutputStream &out) {
    for (const auto &[name, number] : figures)
      bytes(out, 1, message([&, &name = name, number = number](CodedOutputStream &value) {
              bytes(value, 1, name);
              key(value, 2, Fixed32);
              value.WriteLittleEndian32(std::bit_cast<uint32_t>(static_cast<float>(number)));
            }));
  });
  record(message([&](CodedOutputStream &out) {
    key(out, 1, Fixed64);
    out.WriteLittleEndian64(std::bit_cast<uint64_t>(time));
    key(out, 2, Varint);
    out.WriteVarint64(static_cast<uint64_t>(step));
    bytes(out, 5, summary);
  }));
}

void EventFile::record(const std::string &event) {
  const std::string length = message([&](CodedOutputStream &out) { out.WriteLittleEndian64(event.size()); });
  const std::string whole = message([&](CodedOutputStream &out) {
    out.WriteString(length);
    out.WriteLittleEndian32(masked(crc32c(length)));
    out.WriteString(event);
    out.WriteLittleEndian32(masked(crc32c(event)));
  });
  if (std::fwrite(whole.data(), 1, whole.size(), file_.get()) != whole.size() || std::fflush(file_.get()) != 0)
    throw RuntimeError(path_ + ": cannot be written: " + std::strerror(errno));
}

} // namespace tressel
