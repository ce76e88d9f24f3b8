// Tensors that a command line gives by name or by position.
#pragma once

#include "tools/tressel/Compiler.h"
#include "tools/tressel/Tensors.h"
#include "tools/tressel/Tool.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tressel::tool {

using Named = std::map<std::string, HostTensor>;

/// A file of --input or --expect, with the name from the option or from the file.
struct Given {
  std::string name; ///< empty: by position
  HostTensor tensor;
  std::string file;
};

/// Parses [NAME=]FILE: FILE is the part after the last '=', unless the whole is a file. Throws UsageError and
/// InputError.
std::vector<Given> readGiven(const std::string &option, const char *what);

/// Gives each file without a name the name of the next port, in order.
template <typename Ports> Named assign(std::vector<Given> given, const Ports &ports, const char *what) {
  Named named;
  size_t next = 0;
  for (Given &g : given) {
    if (g.name.empty()) {
      while (next < ports.size() && named.contains(ports[next].name))
        ++next;
      if (next == ports.size())
        throw InputError(g.file + ": the program has only " + std::to_string(ports.size()) + " " + what + "s");
      g.name = ports[next].name;
    }
    if (std::ranges::find(ports, g.name, [](const auto &p) { return p.name; }) == ports.end()) {
      std::string known;
      for (const auto &p : ports)
        known += (known.empty() ? "" : ", ") + p.name;
      throw InputError(g.file + ": the program has no " + what + " '" + g.name + "'; it has: " + known);
    }
    if (!named.emplace(g.name, g.tensor).second)
      throw UsageError(std::string(what) + " '" + g.name + "' is given twice");
  }
  return named;
}

/// Infers sizes of named dimensions from the given inputs.
void inferDims(const ModelInfo &info, const Named &inputs, std::map<std::string, int64_t> &dims);

} // namespace tressel::tool
