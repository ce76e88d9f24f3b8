// Comma-separated values (RFC 4180), in text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::io {

/// Calls `row` with the fields of each line and its number, from 1 on; empty lines are passed over. A field in double quotes may hold separators, line
/// breaks, and quotes written twice; others are taken as they stand, without blanks around them. Throws InputError, with `name` and the line, for a quote that
/// is not closed, or with something behind it.
void parseCsv(std::string_view text, const std::string &name, char separator,
              const std::function<void(std::vector<std::string> &fields, int64_t line)> &row);

} // namespace tressel::io
