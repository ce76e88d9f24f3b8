// The machine "cuda" is a library of its own, libtressel_cuda.so, opened when it is first asked for.
#pragma once

#include "tressel/runtime/Device.h"
#include "tressel/runtime/GpuCode.h"

#include <memory>
#include <string>
#include <vector>

namespace tressel::runtime {

/// What that library has, as its symbol tressel_cuda_library.
struct CudaLibrary {
  /// `model` says how fast the machine is; one without devices leaves that unknown. Throws Error where there is no card or driver.
  std::shared_ptr<Machine> (*open)(const MachineRequest &request, MachineModel model) = nullptr;
  std::vector<GpuCard> (*cards)(std::string *why) = nullptr;
  std::vector<GpuLibrary> (*libraries)() = nullptr;
  std::shared_ptr<Communicator> (*communicator)(std::shared_ptr<Communicator> control, Device &card) = nullptr;
};
/// Throws InputError where the library is missing.
const CudaLibrary &cudaLibrary();

} // namespace tressel::runtime
