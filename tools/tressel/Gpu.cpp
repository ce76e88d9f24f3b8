#include "tools/tressel/Gpu.h"

#include "tools/tressel/Tool.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tressel::tool {

using json = nlohmann::ordered_json;

TargetMachine targetMachine(const std::string &device, const std::vector<std::string> &gpus) {
  TargetMachine target;
  for (const std::string &gpu : gpus)
    runtime::machineOfArchitecture(gpu); // names those there are
  if (device == "cuda") {
    if (gpus.empty())
      throw UsageError("--device cuda: name the architecture of the GPU with --gpu, as in --gpu sm_90; it need not be "
                       "in this machine");
    target.model = runtime::machineOfArchitecture(gpus.front());
  } else if (device == "cpu") {
    target.model = runtime::hostMachine();
  } else if (device.starts_with("sim:")) {
    target.model = runtime::machineNamed(device);
  } else if (device.starts_with("cuda:")) {
    throw UsageError("--device " + device +
                     ": GPUs that need not be there are named --device cuda; for several, name a machine "
                     "that has them, as sim:dgx-h100");
  } else {
    throw UsageError("--device: '" + device + "' is no device; `tressel devices` lists what is available");
  }
  if (!gpus.empty())
    for (const runtime::DeviceModel &each : target.model.devices)
      if (each.device.kind == runtime::DeviceKind::Gpu)
        target.devices.push_back(each.device);
  target.hasAccelerators = std::ranges::any_of(
      target.model.devices, [](const runtime::DeviceModel &d) { return d.device.kind == runtime::DeviceKind::Gpu; });
  if (!gpus.empty() && !target.hasAccelerators)
    throw UsageError("--gpu " + gpus.front() +
                     ": the machine has no GPU; use --device cuda, or a simulated machine with one (sim:h100)");
  return target;
}

void setMachine(CompileRequest &request, const TargetMachine &machine, const std::vector<std::string> &gpus) {
  request.machine = machine.hasAccelerators ? &machine.model : nullptr;
  request.devices = machine.devices;
  request.gpus = gpus;
}

bool needsGpu(const runtime::Schedule &schedule) {
  return std::ranges::any_of(schedule.kernels, [](const runtime::KernelDesc &k) { return k.provider == "cuda"; });
}

std::vector<runtime::PackageState> gpuSections(const std::vector<GpuCode> &codes,
                                               std::vector<std::vector<std::byte>> &storage) {
  std::vector<runtime::PackageState> sections;
  if (codes.empty())
    return sections;
  storage.reserve(storage.size() + 1 + 2 * codes.size()); // what is pointed to stays where it is
  auto add = [&](const std::string &name, const void *bytes, size_t size) {
    if (size == 0)
      return;
    const auto *begin = static_cast<const std::byte *>(bytes);
    storage.emplace_back(begin, begin + size);
    sections.push_back({name, {DType::u8, {static_cast<int64_t>(size)}}, storage.back()});
  };
  json list = json::array();
  for (const GpuCode &code : codes) {
    json kernels = json::array();
    for (const GpuCode::Kernel &k : code.kernels)
      kernels.push_back({{"symbol", k.symbol},
                         {"registers", k.registers},
                         {"spill_stores", k.spillStores},
                         {"spill_loads", k.spillLoads},
                         {"stack", k.stackBytes},
                         {"shared", k.sharedBytes}});
    list.push_back({{"arch", code.arch}, {"assembler", code.assembler}, {"kernels", kernels}});
    add(".gpu/" + code.arch + "/ptx", code.ptx.data(), code.ptx.size());
    add(".gpu/" + code.arch + "/cubin", code.cubin.data(), code.cubin.size());
  }
  const std::string text = list.dump();
  add(".gpu", text.data(), text.size());
  return sections;
}

std::vector<GpuCode> gpuCodeOf(const runtime::Package &package) {
  std::vector<GpuCode> codes;
  const std::span<const std::byte> index = package.stateValue(".gpu");
  if (index.empty())
    return codes;
  try {
    const json list = json::parse(std::string(reinterpret_cast<const char *>(index.data()), index.size()));
    for (const json &each : list) {
      GpuCode code{.arch = each.at("arch"), .ptx = {}, .assembler = each.at("assembler"), .cubin = {}, .kernels = {}};
      const auto ptx = package.stateValue(".gpu/" + code.arch + "/ptx"),
                 cubin = package.stateValue(".gpu/" + code.arch + "/cubin");
      code.ptx.assign(reinterpret_cast<const char *>(ptx.data()), ptx.size());
      code.cubin.assign(cubin.begin(), cubin.end());
      for (const json &k : each.at("kernels"))
        code.kernels.push_back({k.at("symbol"), k.at("registers"), k.at("spill_stores"), k.at("spill_loads"),
                                k.at("stack"), k.at("shared")});
      codes.push_back(std::move(code));
    }
  } catch (const json::exception &problem) {
    throw InputError(std::string("the list of GPU code in the package is damaged: ") + problem.what());
  }
  return codes;
}

std::string gpuTable(const std::vector<GpuCode> &codes, bool perKernel) {
  std::string text;
  char line[256];
  for (const GpuCode &code : codes) {
    int most = 0;
    int64_t spilling = 0, shared = 0;
    for (const GpuCode::Kernel &k : code.kernels) {
      most = std::max(most, k.registers);
      spilling += k.spillStores + k.spillLoads > 0;
      shared = std::max(shared, k.sharedBytes);
    }
    text += code.arch + ": PTX " + humanBytes(static_cast<int64_t>(code.ptx.size()));
    if (code.cubin.empty()) {
      text += ", not assembled: no nvJitLink and no ptxas here\n";
      continue;
    }
    std::snprintf(line, sizeof line,
                  ", cubin %s by %s; %zu kernels, at most %d registers and %s of shared memory, %lld with spills\n",
                  humanBytes(static_cast<int64_t>(code.cubin.size())).c_str(), code.assembler.c_str(),
                  code.kernels.size(), most, humanBytes(shared).c_str(), static_cast<long long>(spilling));
    text += line;
    if (!perKernel)
      continue;
    text += "  registers  spill bytes  stack  shared  kernel\n";
    for (const GpuCode::Kernel &k : code.kernels) {
      std::snprintf(line, sizeof line, "  %9d  %11lld  %5lld  %6lld  ", k.registers,
                    static_cast<long long>(k.spillStores + k.spillLoads), static_cast<long long>(k.stackBytes),
                    static_cast<long long>(k.sharedBytes));
      text += line + k.symbol + "\n";
    }
  }
  return text;
}

} // namespace tressel::tool
