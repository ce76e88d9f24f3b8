// Writes the code for GPUs into packages; GpuPackage.cpp reads it.
#include "tressel/runtime/GpuCode.h"

#include <nlohmann/json.hpp>

namespace tressel::runtime {

using json = nlohmann::ordered_json;

std::vector<PackageState> gpuSections(const std::vector<GpuCode> &codes, std::vector<std::vector<std::byte>> &storage) {
  std::vector<PackageState> sections;
  if (codes.empty())
    return sections;
  storage.reserve(storage.size() + 1 + 2 * codes.size()); // pointers into `storage` must stay valid
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

} // namespace tressel::runtime
