#include "tressel/runtime/GpuCode.h"

#include "tressel/runtime/Error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tressel::runtime {

using json = nlohmann::ordered_json;

bool needsGpu(const Schedule &schedule) {
  return std::ranges::any_of(schedule.kernels, [](const KernelDesc &k) { return isForGpu(k.target); });
}

bool runsGpuCode(const Machine &machine) {
  return std::ranges::any_of(machine.devices(), [](const auto &device) { return device->caps().runsGpuCode; });
}

std::vector<PackageState> gpuSections(const std::vector<GpuCode> &codes, std::vector<std::vector<std::byte>> &storage) {
  std::vector<PackageState> sections;
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

std::vector<GpuCode> gpuCodeOf(const Package &package) {
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

} // namespace tressel::runtime
