#include "tools/tressel/Gpu.h"

#include "tools/tressel/Tool.h"

#include <algorithm>
#include <cstring>

namespace tressel::tool {

TargetMachine targetMachine(const std::string &device, const std::vector<std::string> &gpus) {
  TargetMachine target;
  for (size_t i = 0; i < gpus.size(); ++i) {
    try {
      runtime::machineOfArchitecture(gpus[i]);
    } catch (const InputError &unknown) { // its message lists the known ones
      throw UsageError("--gpu: " + unknown.message());
    }
    if (std::find(gpus.begin(), gpus.begin() + static_cast<ptrdiff_t>(i), gpus[i]) != gpus.begin() + static_cast<ptrdiff_t>(i))
      throw UsageError("--gpu " + gpus[i] + " is given twice");
  }
  if (device == "cuda") {
    if (gpus.empty())
      throw UsageError("--device cuda: name the architecture of the GPU with --gpu, as in --gpu sm_90; it need not be "
                       "in this machine");
    target.model = runtime::machineOfArchitecture(gpus.front());
  } else if (device == "cpu") {
    target.model = runtime::hostMachine();
  } else if (device.starts_with("sim:") || device.starts_with("cpu:")) {
    try {
      target.model = runtime::machineNamed(device);
    } catch (const InputError &wrong) {
      refuseDevice(device, wrong);
    }
  } else if (device.starts_with("cuda:")) {
    throw UsageError("--device " + device +
                     ": GPUs that need not be there are named --device cuda; for several, name a machine "
                     "that has them, as sim:dgx-h100");
  } else {
    throw UsageError("--device: '" + device + "' is no device; `tressel devices` lists what is available");
  }
  if (const std::string card = runtime::architectureOfMachine(target.model.name); !card.empty() && !gpus.empty())
    if (const auto gpu = runtime::GpuArchitecture::of(gpus.front());
        !gpu.runsOn(runtime::GpuArchitecture::of(card).number))
      throw UsageError("--gpu " + gpus.front() + ": the GPU of " + target.model.name + " is " + card +
                       ", which cannot run code for " +
                       (gpu.isSpecific ? "another architecture alone" : "a later one"));
  target.hasAccelerators = std::ranges::any_of(
      target.model.devices, [](const runtime::DeviceModel &d) { return d.device.kind == runtime::DeviceKind::Gpu; });
  if (!gpus.empty() && !target.hasAccelerators)
    throw UsageError("--gpu " + gpus.front() +
                     ": the machine has no GPU; use --device cuda, or a simulated machine with one (sim:h100)");
  return target;
}

void setMachine(CompileRequest &request, const TargetMachine &machine, const std::vector<std::string> &gpus) {
  request.machine = machine.hasAccelerators ? &machine.model : nullptr;
  request.gpus = gpus;
}

std::string gpuTable(const std::vector<runtime::GpuCode> &codes, bool perKernel) {
  std::string text;
  char line[256];
  for (const runtime::GpuCode &code : codes) {
    int most = 0;
    int64_t spilling = 0, shared = 0;
    for (const runtime::GpuCode::Kernel &k : code.kernels) {
      most = std::max(most, k.registers);
      spilling += k.spillStores + k.spillLoads > 0;
      shared = std::max(shared, k.sharedBytes);
    }
    text += code.arch + ": PTX " + humanBytes(static_cast<int64_t>(code.ptx.size()));
    if (code.cubin.empty()) {
      text += ", no machine code: it was not assembled\n";
      continue;
    }
    std::snprintf(line, sizeof line,
                  ", cubin %s by %s; %zu kernels, at most %d registers and %s of shared memory, %lld with register spills\n",
                  humanBytes(static_cast<int64_t>(code.cubin.size())).c_str(), code.assembler.c_str(),
                  code.kernels.size(), most, humanBytes(shared).c_str(), static_cast<long long>(spilling));
    text += line;
    if (!perKernel)
      continue;
    text += "  registers  spill bytes  stack  shared  kernel\n";
    for (const runtime::GpuCode::Kernel &k : code.kernels) {
      std::snprintf(line, sizeof line, "  %9d  %11lld  %5lld  %6lld  ", k.registers,
                    static_cast<long long>(k.spillStores + k.spillLoads), static_cast<long long>(k.stackBytes),
                    static_cast<long long>(k.sharedBytes));
      text += line + k.symbol + "\n";
    }
  }
  return text;
}

} // namespace tressel::tool
