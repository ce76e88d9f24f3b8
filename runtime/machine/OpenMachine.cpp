// Machines by their names, with figures for plans.
#include "runtime/devices/CudaLibrary.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Simulated.h"

namespace tressel::runtime {
namespace {

/// Architectures that code is generated for, with the latest first.
std::string architectureFor(const GpuCard &card) {
  for (const char *known : {"sm_120", "sm_100", "sm_90", "sm_80"})
    if (std::stoi(known + 3) <= std::stoi(card.architecture.substr(3)))
      return known;
  throwError<Error>("the GPU ", card.name, " (", card.architecture, ") is older than sm_80, the oldest that code is generated for");
}

/// The host and typical cards of the architectures, with the memory that is there.
MachineModel modelOf(const std::vector<GpuCard> &cards, const std::string &architecture) {
  MachineModel model;
  for (uint16_t i = 0; i < cards.size(); ++i) {
    const std::string mine = architecture.empty() ? architectureFor(cards[i]) : architecture;
    const MachineModel typical = machineOfArchitecture(mine);
    if (model.devices.empty()) {
      model = typical;
      model.devices.clear();
      model.devices.push_back(hostMachine().devices.front());
      model.links.clear();
      model.routes.clear();
    }
    const auto firstLink = static_cast<uint32_t>(model.links.size());
    model.links.insert(model.links.end(), typical.links.begin(), typical.links.end());
    const DeviceRef gpu{DeviceKind::Gpu, i};
    for (RouteModel route : typical.routes) {
      (route.from.kind == DeviceKind::Gpu ? route.from : route.to) = gpu;
      for (uint32_t &link : route.links)
        link += firstLink;
      model.routes.push_back(std::move(route));
    }
    DeviceModel device = typical.devices.back();
    device.name = nameOf(gpu);
    device.device = gpu;
    device.memoryBytes = cards[i].memoryBytes;
    device.architecture = mine;
    model.devices.push_back(std::move(device));
  }
  model.name = "cuda";
  return model;
}

} // namespace

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
  if (name == "cuda") {
    const CudaLibrary &library = cudaLibrary();
    return library.open(request, modelOf(library.cards(nullptr), request.architecture));
  }
  MachineModel model = machineNamed(name);
  for (DeviceModel &device : model.devices)
    if (device.device.kind == DeviceKind::Gpu)
      device.architecture = request.architecture;
  return SimulatedMachine::create(std::move(model), {.computes = request.computes});
}

} // namespace tressel::runtime
