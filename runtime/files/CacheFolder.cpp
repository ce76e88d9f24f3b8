#include "tressel/runtime/CacheFolder.h"

#include "runtime/types/Concat.h"

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace tressel::runtime {

std::string cacheFolder(std::string *why) {
  auto none = [&](std::string reason) {
    if (why)
      *why = std::move(reason);
    return std::string();
  };
  if (const char *given = std::getenv("TRESSEL_CACHE_DIR")) {
    std::error_code ec;
    return *given ? std::filesystem::absolute(given, ec).string() : none("TRESSEL_CACHE_DIR is empty");
  }
  const char *base = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder;
  if (base && *base == '/')
    folder = concat(base, "/tressel");
  else if (home && *home == '/')
    folder = concat(home, "/.cache/tressel");
  else
    return none("neither TRESSEL_CACHE_DIR nor HOME is set");
  struct stat info;
  if (::stat(folder.c_str(), &info) == 0 && (info.st_uid != ::geteuid() || (info.st_mode & 022)))
    return none(folder + " belongs to another user or can be written by others");
  return folder;
}

} // namespace tressel::runtime
