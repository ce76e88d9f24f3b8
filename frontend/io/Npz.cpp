#include "frontend/io/Npz.h"

#include "tressel/runtime/Error.h"

#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <vector>
#include <zip.h>

namespace tressel::io {
namespace {

using runtime::NpyArray;

/// Deflate makes at most 1032 bytes of one.
constexpr uint64_t kMaxRatio = 1032;
constexpr std::string_view kSuffix = ".npy";

struct Discard {
  void operator()(zip_t *z) const { zip_discard(z); }
  void operator()(zip_file_t *f) const { zip_fclose(f); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Member = std::unique_ptr<zip_file_t, Discard>;

std::string errorText(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Archive openForReading(const std::string &path, uint64_t &fileBytes) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    throw InputError(path + ": cannot be read: " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    throw InputError(path + ": cannot be read: not a regular file");
  fileBytes = static_cast<uint64_t>(info.st_size);
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!archive)
    throw InputError(path + ": not an .npz file, or damaged: " + errorText(code));
  return archive;
}

} // namespace

std::map<std::string, NpyArray> readNpz(const std::string &path, int64_t maxBytes) {
  uint64_t fileBytes = 0;
  Archive archive = openForReading(path, fileBytes);
  std::map<std::string, NpyArray> arrays;
  uint64_t packed = 0, unpacked = 0;
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < members; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0 || (stat.valid & needed) != needed)
      throw InputError(path + ": damaged: " + zip_strerror(archive.get()));
    std::string name = stat.name;
    auto fail = [&](const std::string &why) { throw InputError(path + ": '" + name.substr(0, 200) + "': " + why); };
    if (!name.ends_with(kSuffix))
      fail("not an array: the members of an .npz file end in .npy");
    if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) && stat.encryption_method != ZIP_EM_NONE)
      fail("encrypted");
    // The directory is checked as a whole before anything is unpacked, as zip bombs use members that share packed
    // bytes, and sizes that no packer produces.
    packed += stat.comp_size;
    if (stat.comp_size > fileBytes || packed > fileBytes)
      fail("the members are larger than the file");
    if (stat.size / kMaxRatio > stat.comp_size)
      fail("its " + std::to_string(stat.comp_size) + " bytes cannot unpack to " + std::to_string(stat.size));
    unpacked += stat.size;
    if (unpacked > static_cast<uint64_t>(maxBytes) || stat.size > static_cast<uint64_t>(maxBytes))
      fail("the file would unpack to more than " + std::to_string(maxBytes) + " bytes");

    Member member(zip_fopen_index(archive.get(), static_cast<zip_uint64_t>(i), 0));
    if (!member)
      fail(zip_strerror(archive.get()));
    std::vector<std::byte> bytes(stat.size);
    uint64_t done = 0;
    while (done < stat.size) {
      const zip_int64_t n = zip_fread(member.get(), bytes.data() + done, stat.size - done);
      if (n < 0)
        fail(zip_file_strerror(member.get()));
      if (n == 0)
        fail("ends after " + std::to_string(done) + " of " + std::to_string(stat.size) + " bytes");
      done += static_cast<uint64_t>(n);
    }
    std::byte more; // reading to the end makes libzip compare the checksum
    const zip_int64_t rest = zip_fread(member.get(), &more, 1);
    if (rest != 0)
      fail(rest < 0 ? zip_file_strerror(member.get()) : "longer than its directory says");
    name.resize(name.size() - kSuffix.size());
    if (arrays.contains(name))
      fail("is there twice");
    arrays.emplace(name, runtime::parseNpy(bytes, path + ": '" + name.substr(0, 200) + "'"));
  }
  return arrays;
}

void writeNpz(const std::string &path, const std::vector<NpzItem> &items) {
  for (const auto &[name, type, data] : items)
    if (name.empty() || name[0] == '/' || name.find('\0') != std::string::npos || name.size() > 60000)
      throw InputError(path + ": an array of an .npz file cannot be called '" + name.substr(0, 200) + "'");
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  auto fail = [&](const std::string &why) { throw RuntimeError(path + ": cannot be written: " + why); };
  if (!archive)
    fail(errorText(code));
  std::vector<std::string> files; // libzip reads them when it closes the archive
  files.reserve(items.size());
  for (const auto &[name, type, data] : items) {
    const std::string &file = files.emplace_back(runtime::formatNpy(type, data));
    zip_source_t *source = zip_source_buffer(archive.get(), file.data(), file.size(), 0);
    if (!source)
      fail(zip_strerror(archive.get()));
    const zip_int64_t index =
        zip_file_add(archive.get(), (name + std::string(kSuffix)).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      fail(zip_strerror(archive.get()));
    }
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
    // Equal arrays make equal files: the first date that zip knows.
    zip_file_set_dostime(archive.get(), static_cast<zip_uint64_t>(index), 0, (1 << 5) | 1, 0);
  }
  if (zip_close(archive.get()) != 0)
    fail(zip_strerror(archive.get()));
  archive.release();
}

} // namespace tressel::io
