// The implementation of load_parameters and save_parameters, for functions that offer it under another name, which
// errors then use.
#pragma once

#include "tressel/io.h"

#include <string_view>

namespace tressel::io {

/// In the pattern, * stands for any characters, ? for one.
bool matches(std::string_view pattern, std::string_view name);

using NamedVariables = std::vector<std::pair<std::string, Variable>>;

LoadReport loadParameters(const NamedVariables &named, const std::string &path, const LoadOptions &options, const char *op,
                          std::source_location where);
void saveParameters(const NamedVariables &named, const std::string &path, const char *op, std::source_location where);

} // namespace tressel::io
