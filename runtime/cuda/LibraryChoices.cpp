#include "LibraryChoices.h"

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

constexpr std::uintmax_t kMostBytes = 8 << 20; ///< of the file: tens of thousands of choices

} // namespace

LibraryChoices &LibraryChoices::of(const char *library) {
  static std::mutex &mutex = *new std::mutex;
  static auto &all = *new std::map<std::string, LibraryChoices *>;
  std::lock_guard lock(mutex);
  LibraryChoices *&choices = all[library];
  if (!choices)
    choices = new LibraryChoices(library);
  return *choices;
}

LibraryChoices::LibraryChoices(const char *library) {
  const std::string folder = cacheFolder();
  const char *limit = std::getenv("TRESSEL_CACHE_LIMIT");
  if (folder.empty() || (limit && std::strcmp(limit, "0") == 0))
    return;
  path_ = concat(folder, "/", library, ".txt");
  std::error_code ec;
  const std::uintmax_t bytes = std::filesystem::file_size(path_, ec);
  if (ec || bytes > kMostBytes)
    return;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) { // a line that another process is writing is not understood
    std::istringstream words(line);
    std::string problem, choice, more;
    if (words >> problem >> choice && !(words >> more))
      known_[problem] = choice; // the last one counts
  }
}

std::optional<std::string> LibraryChoices::find(const std::string &problem) const {
  std::lock_guard lock(mutex_);
  const auto at = known_.find(problem);
  return at == known_.end() ? std::nullopt : std::optional(at->second);
}

void LibraryChoices::keep(const std::string &problem, const std::string &choice) {
  std::lock_guard lock(mutex_);
  known_[problem] = choice;
  if (path_.empty())
    return;
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ec);
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0)
    return;
  const std::string line = concat(problem, " ", choice, "\n");
  if (std::filesystem::file_size(path_, ec) > kMostBytes && !ec)
    static_cast<void>(::ftruncate(file, 0));                   // it would not be read
  static_cast<void>(!::write(file, line.data(), line.size())); // one call: lines of several processes do not mix
  ::close(file);
}

} // namespace tressel::runtime::cuda
