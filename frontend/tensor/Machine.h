// The machine of this process, as the library sees it.
#pragma once

#include "tressel/runtime/Device.h"

#include <tressel/machine.h>

#include <memory>
#include <optional>

namespace tressel::detail {

/// Null: this computer's processor.
std::shared_ptr<runtime::Machine> currentMachine();
/// Where ops of this thread are to be computed; nothing where nobody said.
std::optional<runtime::DeviceRef> currentDevice();
runtime::DeviceRef refOf(Device device);

} // namespace tressel::detail
