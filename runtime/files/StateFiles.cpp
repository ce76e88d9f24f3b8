// Files of a package's states: what libtressel_states.so is opened for.
#include "runtime/files/Safetensors.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/States.h"

#include <map>
#include <nlohmann/json.hpp>

namespace tressel::runtime {
namespace {

using Metadata = std::map<std::string, std::string>;

Metadata parse(std::string_view text) {
  Metadata metadata;
  if (text.empty())
    return metadata;
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object())
    throw InputError("the package is damaged (the metadata of its states)");
  for (const auto &[key, value] : object.items())
    if (value.is_string())
      metadata.emplace(key, value.get<std::string>());
  return metadata;
}

void save(const std::string &path, std::span<const NamedView> values, std::string_view metadata) {
  std::vector<io::SafetensorsItem> items;
  for (const NamedView &value : values)
    items.push_back({value.name, value.type, value.data});
  io::writeSafetensors(path, std::move(items), parse(metadata), Durable::Yes);
}

std::vector<StorageRef> load(const std::string &path, std::span<const NamedView> values, std::string_view metadata) {
  const io::SafetensorsFile file(path);
  std::string problems;
  auto problem = [&](const std::string &what) { problems += "\n  " + what; };
  for (const auto &[key, mine] : parse(metadata))
    if (const auto found = file.metadata().find(key); found != file.metadata().end() && found->second != mine)
      problem("'" + key + "' is '" + found->second + "' in the file, and '" + mine + "' here");
  std::map<std::string_view, const io::SafetensorsEntry *> byName;
  for (const io::SafetensorsEntry &entry : file.entries())
    byName.emplace(entry.name, &entry);
  std::vector<const io::SafetensorsEntry *> entries;
  for (const NamedView &value : values) {
    const auto found = byName.find(value.name);
    if (found == byName.end())
      problem("'" + value.name + "' is missing");
    else if (const io::SafetensorsEntry &entry = *found->second; !entry.unsupported.empty())
      problem("'" + value.name + "': " + entry.unsupported);
    else if (entry.type != value.type)
      problem("'" + value.name + "' is " + entry.type.str() + " in the file, and " + value.type.str() + " here");
    else
      entries.push_back(&entry);
  }
  if (!problems.empty())
    throw InputError(path + ": holds the states of something else:" + problems);
  std::vector<StorageRef> read; // all of them before anything changes
  for (const io::SafetensorsEntry *entry : entries)
    read.push_back(file.read(*entry));
  return read;
}

} // namespace
} // namespace tressel::runtime

extern "C" {
extern const tressel::runtime::StateFiles tressel_state_files;
const tressel::runtime::StateFiles tressel_state_files = {&tressel::runtime::save, &tressel::runtime::load};
}
