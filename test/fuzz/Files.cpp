#include "test/fuzz/Target.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <unistd.h>

namespace tressel::fuzz {

std::string fileOf(const uint8_t *data, size_t size, const char *suffix) {
  struct Folder {
    std::string path;
    Folder() {
      std::error_code none;
      std::string pattern = std::filesystem::exists("/dev/shm", none) ? "/dev/shm/tressel-fuzz-XXXXXX" : "/tmp/tressel-fuzz-XXXXXX";
      if (!mkdtemp(pattern.data())) {
        std::perror("fuzz: no folder for inputs");
        std::exit(3);
      }
      path = pattern;
    }
    ~Folder() {
      std::error_code none;
      std::filesystem::remove_all(path, none);
    }
  };
  static Folder folder;
  std::string path = folder.path + "/input" + suffix;
  FILE *file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) {
    std::perror("fuzz: cannot write an input");
    std::exit(3);
  }
  return path;
}

} // namespace tressel::fuzz
