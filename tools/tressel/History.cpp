#include "tools/tressel/History.h"

#include "tools/tressel/Tool.h"
#include "tressel/runtime/File.h"

#include <filesystem>

namespace tressel::tool {

static runtime::KernelHistory read(const std::string &file) {
  const std::vector<std::byte> bytes = runtime::readFile(file);
  return runtime::KernelHistory::parse({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, file);
}

std::shared_ptr<const runtime::KernelHistory> historyFrom(const std::string &file, const std::string &machine) {
  if (file.empty())
    return nullptr;
  auto history = std::make_shared<const runtime::KernelHistory>(read(file));
  if (history->machine() != machine)
    note(file + ": is of '" + history->machine() + "', and is taken for '" + machine + "' all the same");
  return history;
}

/// The history in the file, or a new one.
static runtime::KernelHistory readOrNew(const std::string &file, const std::string &machine) {
  if (!std::filesystem::exists(file))
    return runtime::KernelHistory(machine);
  runtime::KernelHistory history = read(file);
  if (history.machine() != machine)
    throw InputError(file + ": holds times of '" + history.machine() + "', and these are of '" + machine +
                     "': give --history another file");
  return history;
}

void checkHistory(const std::string &file, const std::string &machine) {
  readOrNew(file, machine);
  checkWritable(file);
}

void addToHistory(const std::string &file, const runtime::KernelHistory &measured) {
  runtime::KernelHistory all = readOrNew(file, measured.machine());
  all.add(measured);
  writeFile(file, all.toJson());
}

} // namespace tressel::tool
