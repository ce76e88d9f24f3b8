// The files of tressel/io.h that hold plain tensors.
#include "frontend/io/AtLine.h"
#include "frontend/io/Npz.h"
#include "frontend/tensor/Make.h"
#include "runtime/files/Safetensors.h"

#include <tressel/io.h>

namespace tressel {

using io::atLine;

Tensor load_npy(const std::string &path, std::source_location where) {
  return atLine(where, "load_npy", [&] {
    runtime::NpyArray array = runtime::readNpy(path);
    return detail::makeTensor(array.type, std::move(array.data), detail::toLoc(where));
  });
}

void save_npy(const std::string &path, const Tensor &tensor, std::source_location where) {
  atLine(where, "save_npy", [&] { runtime::writeNpy(path, tensor.type(), tensor.data(where)); });
}

std::map<std::string, Tensor> load_npz(const std::string &path, int64_t max_bytes, std::source_location where) {
  return atLine(where, "load_npz", [&] {
    std::map<std::string, Tensor> tensors;
    for (auto &[name, array] : io::readNpz(path, max_bytes))
      tensors.emplace(name, detail::makeTensor(array.type, array.data, detail::toLoc(where)));
    return tensors;
  });
}

void save_npz(const std::string &path, const std::map<std::string, Tensor> &tensors, std::source_location where) {
  atLine(where, "save_npz", [&] {
    std::vector<io::NpzItem> items;
    for (const auto &[name, tensor] : tensors)
      items.push_back({name, tensor.type(), tensor.data(where)});
    io::writeNpz(path, items);
  });
}

std::map<std::string, Tensor> load_safetensors(const std::string &path, std::map<std::string, std::string> *metadata,
                                               std::source_location where) {
  return atLine(where, "load_safetensors", [&] {
    const io::SafetensorsFile file(path);
    std::string unsupported;
    for (const io::SafetensorsEntry &e : file.entries())
      if (!e.unsupported.empty())
        unsupported += (unsupported.empty() ? "" : ", ") + e.name + " (" + e.unsupported + ")";
    if (!unsupported.empty())
      throw InputError(path + ": not supported: " + unsupported);
    std::map<std::string, Tensor> tensors;
    for (const io::SafetensorsEntry &e : file.entries())
      tensors.emplace(e.name, detail::makeTensor(e.type, file.read(e), detail::toLoc(where)));
    if (metadata)
      *metadata = file.metadata();
    return tensors;
  });
}

std::map<std::string, std::string> safetensors_metadata(const std::string &path, std::source_location where) {
  return atLine(where, "safetensors_metadata", [&] { return io::SafetensorsFile(path).metadata(); });
}

void save_safetensors(const std::string &path, const std::map<std::string, Tensor> &tensors,
                      const std::map<std::string, std::string> &metadata, std::source_location where) {
  atLine(where, "save_safetensors", [&] {
    std::vector<io::SafetensorsItem> items;
    for (const auto &[name, tensor] : tensors)
      items.push_back({name, tensor.type(), tensor.data(where)});
    io::writeSafetensors(path, std::move(items), metadata);
  });
}

} // namespace tressel
