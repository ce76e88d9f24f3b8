// The machine that programs run on: a host, later with accelerators.
#pragma once

#include <string_view>

namespace tressel {

struct Device {
  int index = -1; ///< -1: the host
  bool operator==(const Device &) const = default;
};
/// The host.
inline Device cpu() { return {}; }

/// Chooses the machine for this process, before anything is compiled. So far there is "cpu"; anything else throws
/// Error.
void use_machine(std::string_view name);

} // namespace tressel
