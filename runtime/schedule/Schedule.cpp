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
    home.memory = s.inputs[b.index].memory;
    break;
  case Space::Output:
    home.memory = s.outputs[b.index].memory;
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

std::string nameOf(DeviceRef device) {
  const bool isHost = device.kind == DeviceKind::Cpu;
  return isHost && device.index == 0 ? "cpu" : concat(isHost ? "cpu" : "gpu", device.index);
}

} // namespace tressel::runtime
