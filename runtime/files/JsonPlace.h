// Where things stand in a JSON file, for errors.
#pragma once

#include "tressel/runtime/Error.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tressel::runtime {

/// The text as JSON. Throws InputError for what is none: "here.json:3:14: is no JSON: ...".
nlohmann::ordered_json parseJson(std::string_view text, std::string_view name);

/// The line, from 1, of `path` ("devices[1].efficiency.other") in a text that is JSON. Of what is not there, the line
/// of what would hold it.
size_t lineOf(std::string_view text, std::string_view path);

/// What is wrong at a path; readers throw it, and `atLine` says where that is.
struct JsonFault {
  std::string where, what;
};
/// Runs `read`, and throws its JsonFault as InputError: "here.json:7: devices[1].name: is missing".
template <typename Fn> auto withLines(std::string_view text, std::string_view name, Fn read) {
  try {
    return read();
  } catch (const JsonFault &fault) {
    throw InputError(std::string(name) + ":" + std::to_string(lineOf(text, fault.where)) + ": " +
                     (fault.where.empty() ? "" : fault.where + ": ") + fault.what);
  }
}

} // namespace tressel::runtime
