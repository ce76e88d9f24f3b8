// How long kernels took, measured: how often, the mean, and how much it varied, for each kernel, shape and device.
// `tressel run --history` records it, and plans that are given it go by it instead of the machine's figures. A JSON
// file (docs/machines.md).
//
//   auto history = std::make_shared<KernelHistory>("sim:2gpu-pcie3");
//   history->add({kernel.key, "f32[64, 64] -> f32[64, 64]", "gpu0"}, 12.5e-6);
//   machine.history = history;                          // simulate, explain and the compiler ask it first
#pragma once

#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Timeline.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tressel::runtime {

/// Of measurements, as they come (Welford, 1962).
struct MeasuredTime {
  int64_t count = 0;
  double mean = 0;       ///< seconds
  double deviations = 0; ///< sum of the squares of what each is off the mean
  void add(double seconds);
  void add(const MeasuredTime &other);
  double variance() const { return count > 1 ? deviations / static_cast<double>(count - 1) : 0; }
};

class KernelHistory {
public:
  /// `machine`: the name of what was measured.
  explicit KernelHistory(std::string machine) : machine_(std::move(machine)) {}

  struct Key {
    std::string kernel; ///< KernelDesc::key
    std::string shape;  ///< of its operands (shapeOf)
    std::string device; ///< "gpu0"
    auto operator<=>(const Key &) const = default;
  };
  /// Throws InputError for an empty key, and for a time that is no positive number.
  void add(const Key &key, double seconds, std::string_view name = {});
  /// Adds what the other one holds.
  void add(const KernelHistory &other);
  /// Every launch of one call: of a timeline that was measured or simulated. Kernels without a key are not recorded;
  /// how many launches were.
  int64_t add(const Schedule &schedule, const Timeline &timeline);

  /// The mean, where the kernel was measured at least kEnough times; null where it was not.
  const MeasuredTime *find(const Key &key) const;
  static constexpr int64_t kEnough = 3;

  const std::string &machine() const { return machine_; }
  size_t size() const { return entries_.size(); }

  /// Throws InputError with line and place; `name` is what the text is called.
  static KernelHistory parse(std::string_view json, std::string_view name = "history");
  std::string toJson() const;

private:
  struct Entry {
    MeasuredTime time;
    std::string name; ///< for readers
  };
  std::string machine_;
  std::map<Key, Entry> entries_;
};

/// "f32[64, 784] f32[784, 10] -> f32[64, 10]": of a launch's operands, the first `inputs` of which it reads.
std::string shapeOf(const std::vector<TensorType> &operands, size_t inputs);
/// What a kernel took on this device, or on another of the machine with the same figures; nothing where it was not
/// measured, or the machine has no history. The time is all of it, DeviceModel::commandSeconds too.
std::optional<double> measuredSeconds(const MachineModel &machine, const DeviceModel &device, std::string_view kernel,
                                      const std::string &shape);

} // namespace tressel::runtime
