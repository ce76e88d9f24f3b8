// The state of a training in one file, from which the training resumes as if it had not been interrupted.
//
//   const TrainingState state{{"net", net}, {"opt", opt}, {"loader", loader}};
//   if (std::filesystem::exists(path))
//     load_state(path, state);
//   for (int64_t e = loader.position().epoch; e < epochs; ++e)
//     for (Batch b : loader.epoch(e)) {
//       step(b);
//       if (opt.steps() % 1000 == 0)
//         saving = save_state_async(path, state);
//     }
//
// The file is a safetensors file, which other frameworks read and write too: "net.conv1.weight",
// "opt.momentum.conv1.weight", "opt.step", "loader". It is written to a temporary file, synced and then renamed, so
// that the name stands for a complete file at any moment, the previous or the new one. The process's random state is in
// the file too.
#pragma once

#include <tressel/loader.h>
#include <tressel/metrics.h>
#include <tressel/module.h>
#include <tressel/optim.h>

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

/// A part of a training's state. Holds a handle.
class StatePart {
public:
  StatePart(Variable variable);
  /// Parameters, buffers and random states.
  StatePart(nn::ModuleHandle module);
  /// Moments, the number of steps, an assigned rate. Loading throws for an optimizer of another kind, with other
  /// options or groups. Schedules are code: the training that loads goes on by its own.
  StatePart(optim::Optimizer optimizer);
  StatePart(optim::MovingAverage average);
  StatePart(optim::LossScale scale);
  StatePart(optim::Plateau plateau);
  /// Its accumulated values.
  StatePart(metrics::Mean metric);
  StatePart(metrics::Perplexity metric);
  StatePart(metrics::Accuracy metric);
  StatePart(metrics::Confusion metric);
  /// The position.
  template <typename S> StatePart(data::Loader<S> loader) {
    save_ = [loader] { return loader.state(); };
    load_ = [loader](const Tensor &state, const std::source_location &where) mutable { loader.load_state(state, where); };
  }

private:
  friend class StateFile;
  std::function<NamedVariables()> variables_; ///< by the name behind the part's; "" for the part itself
  std::string description_;                   ///< must be the same when it is loaded
  std::function<Tensor()> save_;              ///< of what is no Variable
  std::function<void(const Tensor &, const std::source_location &)> load_;
};
using TrainingState = std::vector<std::pair<std::string, StatePart>>;

/// The names of these states in a package: step.export_into(package, ...) with PackageBuilder
/// package(named_states(state)). Files that the package's runtime saves and files of save_state(state) can be loaded by
/// either, except for the process's random state. Throws Error for parts that are no Variables, as loaders: the package
/// does not contain the data.
StateNames named_states(const TrainingState &state, std::source_location where = std::source_location::current());

/// Waits for the values and writes them. Throws Error for parts that have no value yet or whose names are equal,
/// RuntimeError if writing fails: then the previous file stays.
void save_state(const std::string &path, const TrainingState &state, std::source_location where = std::source_location::current());

/// A file that is being written. When it goes, it waits for the end; a failure that no call waited for is then a line
/// on standard error.
class PendingSave {
public:
  PendingSave() = default;
  /// Waits until the file is on the disk. Throws what save_state() does, once.
  void wait();
  bool done() const;

private:
  friend PendingSave save_state_async(const std::string &, const TrainingState &, std::source_location);
  struct Impl;
  std::shared_ptr<Impl> impl_;
};
/// The same with copies of the current values, written in the background. Files are written one at a time, in the order
/// of the calls.
PendingSave save_state_async(const std::string &path, const TrainingState &state, std::source_location where = std::source_location::current());

/// Gives all parts what the file holds, or throws and changes nothing: one InputError lists what is missing, unexpected, of another
/// type, or of another optimizer.
void load_state(const std::string &path, const TrainingState &state, std::source_location where = std::source_location::current());

} // namespace tressel
