// Machines by their names.
#include "runtime/types/Concat.h"
#include "../cuda/CudaMachine.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Simulated.h"

namespace tressel::runtime {

std::shared_ptr<Machine> openMachine(std::string_view name, const MachineRequest &request) {
  auto refuse = [&](const auto &...why) {
    throw Error(Error::Details{.message = concat("machine '", name, "' ", why...),
                               .hint = "\"cpu\", \"cuda\" with an NVIDIA GPU, and \"sim:2gpu-pcie3\" or others that are simulated; {.gpu = \"sm_90\"} emulates kernels of such GPUs"});
  };
  if ((name == "cpu" || name == "cuda") && !request.computes)
    refuse("is not simulated: it cannot keep the time without computing");
  if (name == "cpu" && !request.architecture.empty())
    refuse("has no GPU for kernels of '", request.architecture, "'");
  if (!request.architecture.empty())
    machineOfArchitecture(request.architecture); // names those there are
  if (name == "cpu")
    return nullptr;
  if (name == "cuda")
    return openCudaMachine(request);
  MachineModel model = machineNamed(name);
  for (DeviceModel &device : model.devices)
    if (device.device.kind == DeviceKind::Gpu)
      device.architecture = request.architecture;
  return SimulatedMachine::create(std::move(model), {.computes = request.computes});
}

} // namespace tressel::runtime
