#include "tressel/runtime/MachineContext.h"

#include "runtime/executable/Library.h"
#include "runtime/types/Concat.h"

namespace tressel::runtime {

MachineContext::~MachineContext() = default;

std::unique_ptr<MachineContext> MachineContext::open(const Package &package, const std::string &machine, const std::string &function) {
  const auto *make = static_cast<const MakeMachineContext *>(
      libraryEntry("tressel_devices", "tressel_machine_context", concat("a program on the machine '", machine, "'")));
  return (*make)(package, machine, function);
}

} // namespace tressel::runtime
