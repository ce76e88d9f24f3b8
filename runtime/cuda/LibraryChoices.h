// Which algorithm of a library a call takes where that was measured: for this process, and in the folder of caches for
// those to come. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class LibraryChoices {
public:
  /// Those of this process for a library ("cublaslt"); the file NAME.txt is read at the first call.
  static LibraryChoices &of(const char *library);
  /// Both without spaces. `problem` names the call, the card and the library's version.
  std::optional<std::string> find(const std::string &problem) const;
  /// A file that cannot be written is none: the process keeps the choice.
  void keep(const std::string &problem, const std::string &choice);

private:
  explicit LibraryChoices(const char *library);
  mutable std::mutex mutex_;
  std::string path_; ///< empty: no file
  std::map<std::string, std::string> known_;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
