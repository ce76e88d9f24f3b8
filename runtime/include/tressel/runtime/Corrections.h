// What kernels were seen to take, where that contradicts their costs: kept beside the calibration, for the next compilation.
#pragma once

#include "tressel/runtime/Decision.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/MachineModel.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tressel::runtime {

/// Factors of costs by their kind and by the seconds that their model gives, which stand for a shape. Thread-safe.
///
/// A compiled program never changes its kernels, so that equal calls give equal bits; a compilation that comes later asks for the factors, unless it
/// is to be deterministic. A file of at most kMost factors; the oldest go. A damaged file counts as none. Processes share the file: they write it under a
/// lock on another one beside it (".lock").
class Corrections {
public:
  static constexpr size_t kMost = 4096;

  /// `path`: the file; empty: nothing is kept.
  explicit Corrections(std::string path);
  /// This machine's: the calibration's file with ".corrections" behind it.
  static Corrections &ofHost();
  /// The file that goes with a file of calibration.
  static std::string fileBeside(const std::string &calibration) { return calibration.empty() ? calibration : calibration + ".corrections"; }

  /// A model's cost with its factor, if there is one.
  KernelCost apply(KernelCost cost);
  /// Whether a cost was made by apply() with a factor.
  bool isCorrected(const KernelCost &cost) const;
  /// From now on costs that equal this one count `factor` times, or as near to that as the limits of factors allow; `cost` may be one that apply()
  /// made. Gives how many times `cost` counts; nothing where that changes little.
  std::optional<double> note(const KernelCost &cost, double factor);
  /// Adds what was noted since to the file, as it is then: of other processes' entries those stay that this one did not change, and those that are gone
  /// from the file are gone here. What cannot be written, or not while another process has had the lock for a moment, is not kept.
  void save();
  /// Forgets all, and removes the file.
  void forget();
  size_t size() const;

private:
  using Key = std::pair<std::string, double>; ///< kind, and seconds of the model
  struct Entry {
    double factor = 1;
    uint64_t age = 0; ///< of entries, the larger the younger
  };
  class FileLock;

  /// What the file holds; a damaged or missing one: nothing.
  std::map<Key, Entry> read() const;
  static void dropOldest(std::map<Key, Entry> &entries);

  const std::string path_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::map<Key, double> modelSeconds_; ///< of costs with a factor
  std::set<Key> changed_;              ///< since the last save()
  uint64_t youngest_ = 0;
};

/// The first calls of a program on the processor: notes what its kernels take, then ends.
///
///   FirstCalls calls(executable->schedule());
///   if (calls.isOpen())                   // one load
///     context.setProfile(&profile);
///   context.run(...);
///   if (calls.isOpen())
///     calls.add(profile, hostMachine().devices.front(), Corrections::ofHost());
class FirstCalls {
public:
  static constexpr int kSkipped = 2, kCalls = 6; ///< the first ones touch memory and fill caches

  explicit FirstCalls(const Schedule &schedule);
  bool isOpen() const { return open_.load(std::memory_order_relaxed); }
  /// Takes what a call of the program took. After the last one: notes costs that are off by more than noise, and saves them.
  void add(const Profile &profile, const DeviceModel &cpu, Corrections &corrections);
  /// Kernels whose first calls contradicted their costs, for explain.
  Decisions findings() const;

private:
  void judge(const DeviceModel &cpu, Corrections &corrections);

  const Schedule &schedule_;
  std::atomic<bool> open_{false};
  mutable std::mutex mutex_;
  Decisions findings_;
  int calls_ = 0;
  struct Span {
    double least = 0, most = 0; ///< seconds
  };
  std::vector<Span> spans_; ///< one per command of the step
};

} // namespace tressel::runtime
