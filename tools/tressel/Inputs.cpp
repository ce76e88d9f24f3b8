#include "tools/tressel/Inputs.h"

#include <filesystem>

namespace tressel::tool {

namespace fs = std::filesystem;

static bool isTensorFile(const std::string &path) {
  return path.ends_with(".npy") || path.ends_with(".npz") || path.ends_with(".pb");
}

std::vector<Given> readGiven(const std::string &option, const char *what) {
  std::string name, path = option;
  std::error_code ec;
  if (size_t at = option.rfind('='); at != std::string::npos && !fs::exists(option, ec)) {
    name = option.substr(0, at);
    path = option.substr(at + 1);
  }
  if (!isTensorFile(path))
    throw UsageError(std::string(what) + " takes [NAME=]FILE with a .npy, .npz or .pb file, not '" + option + "'");
  std::vector<Given> list;
  for (auto &[own, tensor] : readTensors(path))
    list.push_back({path.ends_with(".npz") ? own : name, std::move(tensor), path});
  if (path.ends_with(".npz") && !name.empty())
    throw UsageError(std::string(what) + ": a .npz names its tensors itself; leave '" + name + "=' out");
  return list;
}

void inferDims(const ModelInfo &info, const Named &inputs, std::map<std::string, int64_t> &dims) {
  for (const Port &port : info.inputs) {
    auto it = inputs.find(port.name);
    if (it == inputs.end() || it->second.type.rank() != static_cast<int>(port.sizes.size()))
      continue;
    for (size_t i = 0; i < port.sizes.size(); ++i)
      if (port.sizes[i] == kDynamic)
        dims.emplace(port.dimNames[i], it->second.type.shape[static_cast<int>(i)]);
  }
}

} // namespace tressel::tool
