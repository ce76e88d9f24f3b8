// Which commands of a schedule accelerators execute without the host (tressel/runtime/DeviceGraphs.h).
#pragma once

#include "tressel/runtime/Schedule.h"

namespace tressel::runtime {

inline bool isByAccelerator(const Schedule &s, const Command &c) {
  return s.streams[c.stream].device.kind == DeviceKind::Gpu &&
         (c.kind == CommandKind::Copy || c.kind == CommandKind::Fill || c.kind == CommandKind::Launch);
}

} // namespace tressel::runtime
