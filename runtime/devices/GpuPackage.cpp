// The code for GPUs that a package holds; GpuCode.cpp writes it.
#include "runtime/files/Json.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/GpuCode.h"

#include <algorithm>

namespace tressel::runtime {

bool needsGpu(const Schedule &schedule) {
  return std::ranges::any_of(schedule.kernels, [](const KernelDesc &k) { return isForGpu(k.target); });
}

bool runsGpuCode(const Machine &machine) {
  return std::ranges::any_of(machine.devices(), [](const auto &device) { return device->caps().runsGpuCode; });
}

std::vector<GpuCode> gpuCodeOf(const Package &package) {
  std::vector<GpuCode> codes;
  const std::span<const std::byte> index = package.stateValue(".gpu");
  if (index.empty())
    return codes;
  try {
    const json::Value list = json::parse({reinterpret_cast<const char *>(index.data()), index.size()});
    for (const json::Value &each : list.items()) {
      GpuCode code;
      code.arch = each.at("arch").asString();
      code.assembler = each.at("assembler").asString();
      const auto ptx = package.stateValue(concat(".gpu/", code.arch, "/ptx")), cubin = package.stateValue(concat(".gpu/", code.arch, "/cubin"));
      code.ptx.assign(reinterpret_cast<const char *>(ptx.data()), ptx.size());
      code.cubin.assign(cubin.begin(), cubin.end());
      for (const json::Value &k : each.at("kernels").items())
        code.kernels.push_back({k.at("symbol").asString(), static_cast<int>(k.at("registers").asInt()), k.at("spill_stores").asInt(),
                                k.at("spill_loads").asInt(), k.at("stack").asInt(), k.at("shared").asInt()});
      codes.push_back(std::move(code));
    }
  } catch (const InputError &problem) {
    throwError<InputError>("the list of GPU code in the package is damaged: ", problem.message());
  }
  return codes;
}

} // namespace tressel::runtime
