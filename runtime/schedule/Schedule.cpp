#include "tressel/runtime/Schedule.h"

#include "runtime/types/Concat.h"

namespace tressel::runtime {

Home homeOf(const Schedule &s, const BufferDesc &b) {
  Home home;
  switch (b.space) {
  case Space::Arena:
    home = {s.arenas[b.index].device, s.arenas[b.index].memory};
    break;
  case Space::Input:
    home = s.inputs[b.index].home;
    break;
  case Space::Output:
    home = s.outputs[b.index].home;
    break;
  case Space::State:
    home = s.states[b.index].home;
    break;
  case Space::Constant:
    break;
  }
  if (home.device.kind == DeviceKind::Cpu && home.memory == MemoryKind::Device)
    home.memory = MemoryKind::Host;
  return home;
}

const std::string *boundElsewhere(const Schedule &s, DeviceRef &device) {
  for (const auto *values : {&s.inputs, &s.outputs})
    for (const ValueDesc &value : *values)
      if (!isHost(value.home))
        return device = value.home.device, &value.name;
  for (const StateDesc &state : s.states)
    if (state.kind != StateKind::Derived && !isHost(state.home))
      return device = state.home.device, &state.name;
  return nullptr;
}

std::string nameOf(DeviceRef device) {
  return isHost(device) && device.index == 0 ? "cpu" : concat(isHost(device) ? "cpu" : "gpu", device.index);
}

} // namespace tressel::runtime
