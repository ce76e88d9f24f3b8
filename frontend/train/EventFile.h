// Figures in the files that TensorBoard reads: records of TFRecord, each an Event with a Summary of scalars
// (tensorboard/compat/proto/event.proto and summary.proto).
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

class EventFile {
public:
  /// A new file in the folder, which is made if there is none. Throws RuntimeError where it cannot be written.
  explicit EventFile(const std::string &folder);
  /// The figures of a step, at a time in seconds since 1970. They are in the file when it returns. Throws RuntimeError.
  void write(int64_t step, double time, const std::vector<std::pair<std::string, double>> &figures);
  const std::string &path() const { return path_; }

private:
  void record(const std::string &event);
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file_{nullptr, std::fclose};
};

} // namespace tressel
