// Sizes in the descriptions of kernels (KernelDesc::params): numbers, or texts of symbols whose values a launch's
// scalars are.
#pragma once

#include "runtime/files/Json.h"
#include "tressel/runtime/Dim.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// Throws InputError.
Size sizeFrom(const json::Value &value);

class LaunchSizes {
public:
  LaunchSizes() = default;
  /// Of the description's "symbols". Throws InputError.
  explicit LaunchSizes(const json::Value &params);
  dim::Values valuesOf(std::span<const int64_t> scalars) const;
  /// Throws Error for a symbol that a launch does not carry.
  static int64_t numberOf(Size size, const dim::Values &values) {
    return size.isNumber() ? size.number() : dim::evaluate(size, values);
  }

private:
  std::vector<Size> symbols_;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
