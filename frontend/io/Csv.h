// Comma-separated values (RFC 4180), in text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::io {

/// Calls `row` with the fields of each line and the line's number, from 1 on; skips empty lines. A quoted field may
/// hold separators, line breaks, and doubled quotes; other fields are stripped of blanks. Throws InputError, with
/// `name` and the line, for a quote that is not closed, or is followed by other text.
void parseCsv(std::string_view text, const std::string &name, char separator,
              const std::function<void(std::vector<std::string> &fields, int64_t line)> &row);

} // namespace tressel::io
