#include "CublasChoices.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/CacheFolder.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace tressel::runtime::cuda {
namespace {

constexpr std::uintmax_t kMostBytes = 8 << 20; ///< of the file: some 40000 choices

std::string spell(const lt::Algorithm &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

std::optional<lt::Algorithm> parse(const std::string &text) {
  lt::Algorithm algorithm{};
  if (text.size() != 16 * std::size(algorithm.data) || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = std::stoull(text.substr(16 * i, 16), nullptr, 16);
  return algorithm;
}

} // namespace

CublasChoices &CublasChoices::get() {
  static CublasChoices &choices = *new CublasChoices;
  return choices;
}

CublasChoices::CublasChoices() {
  const std::string folder = cacheFolder();
  const char *limit = std::getenv("TRESSEL_CACHE_LIMIT");
  if (folder.empty() || (limit && std::strcmp(limit, "0") == 0))
    return;
  path_ = folder + "/cublaslt.txt";
  std::error_code ec;
  const std::uintmax_t bytes = std::filesystem::file_size(path_, ec);
  if (ec || bytes > kMostBytes)
    return;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) { // a line that another process is writing is not understood
    std::istringstream words(line);
    std::string problem, digits, more;
    if (!(words >> problem >> digits) || words >> more)
      continue;
    if (const auto algorithm = parse(digits))
      known_[problem] = *algorithm; // the last one counts
  }
}

std::optional<lt::Algorithm> CublasChoices::find(const std::string &problem) const {
  std::lock_guard lock(mutex_);
  const auto at = known_.find(problem);
  return at == known_.end() ? std::nullopt : std::optional(at->second);
}

void CublasChoices::keep(const std::string &problem, const lt::Algorithm &algorithm) {
  std::lock_guard lock(mutex_);
  known_[problem] = algorithm;
  if (path_.empty())
    return;
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ec);
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0)
    return;
  const std::string line = concat(problem, " ", spell(algorithm), "\n");
  if (std::filesystem::file_size(path_, ec) > kMostBytes && !ec)
    static_cast<void>(::ftruncate(file, 0));                   // it would not be read
  static_cast<void>(!::write(file, line.data(), line.size())); // one call: lines of several processes do not mix
  ::close(file);
}

} // namespace tressel::runtime::cuda
