// Which algorithm of cuBLASLt a product takes where that was measured: for this process, and in the folder of caches
// for those to come. Thread-safe.
#pragma once

#include "CublasLt.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CublasChoices {
public:
  /// Those of this process; the file is read at the first call.
  static CublasChoices &get();
  /// `problem` names the product, the card and the library's version, without spaces.
  std::optional<lt::Algorithm> find(const std::string &problem) const;
  /// A file that cannot be written is none: the process keeps the choice.
  void keep(const std::string &problem, const lt::Algorithm &algorithm);

private:
  CublasChoices();
  mutable std::mutex mutex_;
  std::string path_; ///< empty: no file
  std::map<std::string, lt::Algorithm> known_;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
