// What kernels were seen to take, where that contradicts their costs: kept beside the calibration, for the next compilation.
#pragma once

#include "tressel/runtime/Decision.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/MachineModel.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tressel::runtime {

/// Factors of costs by their kind and by the seconds that their model gives, which stand for a shape. Thread-safe.
///
/// A compiled program never changes its kernels, so that equal calls give equal bits; a compilation that comes later asks for the factors, unless it
/// is to be deterministic. A file of at most kMost factors; the oldest go. A damaged file counts as none.
class Corrections {
public:
  static constexpr size_t kMost = 4096;

  /// `path`: the file; empty: nothing is kept.
  explicit Corrections(std::string path);
  /// This machine's: the calibration's file with ".corrections" behind it.
  static Corrections &ofHost();

  /// A model's cost with its factor, if there is one.
  KernelCost apply(KernelCost cost);
  /// Whether a cost was made by apply() with a factor.
  bool isCorrected(const KernelCost &cost) const;
  /// From now on costs that equal this one count `factor` times; `cost` may be one that apply() made. False where that changes little.
  bool note(const KernelCost &cost, double factor);
  /// Writes the file if something was noted since. What cannot be written is not kept.
  void save();
  size_t size() const;

private:
  using Key = std::pair<std::string, double>; ///< kind, and seconds of the model
  struct Entry {
    double factor = 1;
    uint64_t age = 0; ///< of entries, the larger the younger
  };

  const std::string path_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::map<Key, double> modelSeconds_; ///< of costs with a factor
  uint64_t youngest_ = 0;
  bool isChanged_ = false;
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
