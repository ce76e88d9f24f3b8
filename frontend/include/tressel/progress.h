// Progress of a training: a line on the terminal, plain lines in a log, records in files, curves.
//
//   Progress progress(epochs * loader.num_batches(), {.log = "run.jsonl", .curve = "run.svg"});
//   for (...)
//     progress.step({{"loss", step(b)}});
//   progress.note({{"accuracy", accuracy.value()}});
//
// Tensors are not waited for: a value is shown and written when it is ready.
#pragma once

#include <tressel/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tressel {

struct ProgressOptions {
  std::string label = {};  ///< in front of the line
  std::string log = {};    ///< a file to which a JSON object is appended per step: {"step": 12, "seconds": 1.5, "loss":
                           ///< 0.25}
  std::string events = {}; ///< a folder for TensorBoard, which gets a file with the figures of each step
  std::string curve = {};  ///< FILE.svg with a curve per name, written at the end
  double seconds = 10;     ///< between two lines where there is no terminal
  int64_t begin = 0;       ///< steps taken before, if the training resumes
  bool quiet = false;      ///< shows nothing
  int descriptor = 2;      ///< file descriptor of the line: standard error
};

class Progress {
public:
  /// A number, or a tensor of one element.
  class Value {
  public:
    Value(double number) : value_(number) {}
    Value(Tensor tensor) : value_(std::move(tensor)) {}

  private:
    friend class Progress;
    std::variant<double, Tensor> value_;
  };
  using Values = std::vector<std::pair<std::string, Value>>;

  /// Of so many steps, or of an unknown number if 0. Throws RuntimeError where a file cannot be written.
  explicit Progress(int64_t steps, ProgressOptions options = {});
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Call it for each step.
  void step(const Values &values = {});
  /// Values beside the steps, such as an accuracy after an epoch: shown on a line of their own, and in log and curve.
  void note(const Values &values);
  /// Waits for values that are not ready, and writes the rest. The destructor calls it, and ignores errors.
  void finish();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace tressel
