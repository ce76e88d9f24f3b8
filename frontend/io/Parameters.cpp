// Parameters by name, from and to files.
#include "frontend/io/Parameters.h"
#include "frontend/tensor/Make.h"

#include "frontend/io/AtLine.h"
#include "frontend/tensor/Convert.h"
#include "runtime/files/Safetensors.h"

#include <tressel/io.h>

#include <algorithm>
#include <cstring>
#include <regex>
#include <set>
#include <string_view>

namespace tressel {
namespace {

using Named = std::vector<std::pair<std::string, Variable>>;

} // namespace

bool io::matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, afterStar = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      afterStar = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) { // backtrack: the last * matches one character more
      p = star + 1;
      n = ++afterStar;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

namespace {
using io::matches;

std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &n : names)
    text += (text.empty() ? "" : ", ") + n;
  return text;
}

/// The new name of a file's tensor; notes the key that was used.
std::string renamed(const std::string &name, const std::map<std::string, std::string> &table,
                    std::set<std::string> &used) {
  const std::pair<const std::string, std::string> *best = nullptr;
  for (const auto &entry : table) {
    const std::string &key = entry.first;
    if (key == name) {
      best = &entry;
      break;
    }
    if (key.ends_with('.') && name.starts_with(key) && (!best || key.size() > best->first.size()))
      best = &entry;
  }
  if (!best)
    return name;
  used.insert(best->first);
  return best->second + name.substr(best->first.size());
}

/// Compiled regular expressions of LoadOptions::rename_regex.
class Rewriter {
public:
  explicit Rewriter(const std::vector<std::pair<std::string, std::string>> &rules) {
    for (const auto &[pattern, replacement] : rules) {
      try {
        rules_.push_back({pattern, std::regex(pattern), replacement});
      } catch (const std::regex_error &e) {
        throw InputError("LoadOptions::rename_regex: '" + pattern + "' is no regular expression: " + e.what());
      }
    }
  }
  std::string apply(std::string name, std::set<std::string> &used) const {
    for (const Rule &rule : rules_)
      if (std::regex_search(name, rule.regex)) {
        used.insert(rule.pattern);
        name = std::regex_replace(name, rule.regex, rule.replacement);
      }
    return name;
  }

private:
  struct Rule {
    std::string pattern;
    std::regex regex;
    std::string replacement;
  };
  std::vector<Rule> rules_;
};

runtime::StorageRef converted(const runtime::StorageRef &from, DType fromType, const TensorType &to) {
  runtime::StorageRef out = runtime::Storage::allocate(to.bytes());
  detail::convertElements(out->data(), to.dtype, from->data(), fromType, to.shape.numElements());
  return out;
}

runtime::StorageRef transposed(const runtime::StorageRef &from, const TensorType &to) {
  runtime::StorageRef out = runtime::Storage::allocate(to.bytes());
  const int64_t rows = to.shape.extent(0), columns = to.shape.extent(1), width = sizeOf(to.dtype);
  const auto *source = static_cast<const std::byte *>(from->data());
  auto *target = static_cast<std::byte *>(out->data());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(target + (r * columns + c) * width, source + (c * rows + r) * width, static_cast<size_t>(width));
  return out;
}

/// Why the file's tensor cannot be the parameter's value; empty if it can.
std::string mismatch(const io::SafetensorsEntry &entry, const Variable &variable, bool transpose) {
  if (!variable.defined())
    return "has no value yet: initialize the network with the inputs' types first";
  const std::string network = ", network " + variable.type().str();
  if (!entry.unsupported.empty())
    return "file: " + entry.unsupported + network;
  TensorType type = entry.type;
  if (transpose) {
    if (type.rank() != 2)
      return "file " + type.str() + " is no matrix to transpose" + network;
    std::swap(type.shape[0], type.shape[1]);
  }
  const bool convertible = type.dtype == variable.dtype() || (isFloat(type.dtype) && isFloat(variable.dtype()));
  if (convertible && type.shape == variable.shape())
    return "";
  std::string why = "file " + entry.type.str() + (transpose ? " transposed" : "") + network;
  if (type.rank() == 2 && convertible && Shape{type.shape[1], type.shape[0]} == variable.shape())
    why += transpose ? "; it fits without transposing" : "; it fits transposed, see LoadOptions::transpose";
  return why;
}

void checkNames(const Named &named, const std::source_location &where, const char *op) {
  std::set<std::string_view> names;
  for (const auto &[name, variable] : named)
    if (!names.insert(name).second)
      detail::fail<Error>("two parameters are called '" + name + "'", detail::toLoc(where), op);
}

} // namespace

std::string LoadReport::str() const {
  std::string text = std::to_string(loaded.size()) + " loaded\n";
  auto line = [&](const char *what, const std::vector<std::string> &names) {
    if (!names.empty())
      text += std::to_string(names.size()) + " " + what + ": " + join(names) + "\n";
  };
  line("converted", converted);
  line("missing in the file", missing);
  line("unexpected in the file", unexpected);
  line("mismatched", mismatched);
  line("skipped", skipped);
  line("names in the options that fit nothing", unused);
  return text;
}

LoadReport load_parameters(const Named &named, const std::string &path, const LoadOptions &options,
                           std::source_location where) {
  return io::loadParameters(named, path, options, "load_parameters", where);
}
void save_parameters(const Named &named, const std::string &path, std::source_location where) {
  io::saveParameters(named, path, "save_parameters", where);
}

LoadReport io::loadParameters(const Named &named, const std::string &path, const LoadOptions &options, const char *op,
                              std::source_location where) {
  checkNames(named, where, op);
  return io::atLine(where, op, [&] {
    const io::SafetensorsFile file(path);
    LoadReport report;
    const Rewriter rewriter(options.rename_regex);
    std::set<std::string> used, usedRules, skipped;
    auto skips = [&](std::string_view name) {
      return std::ranges::any_of(options.skip, [&](const std::string &p) { return matches(p, name); });
    };
    std::map<std::string, const io::SafetensorsEntry *> entries;
    for (const io::SafetensorsEntry &e : file.entries()) {
      const std::string name = rewriter.apply(renamed(e.name, options.rename, used), usedRules);
      if (skips(name) || skips(e.name))
        skipped.insert(name);
      else if (const auto [at, isNew] = entries.emplace(name, &e); !isNew)
        throw InputError(path + ": both '" + at->second->name + "' and '" + e.name + "' become '" + name + "'");
    }

    std::vector<std::pair<Variable, Tensor>> values;
    std::set<std::string> patternsUsed;
    for (const auto &[name, variable] : named) {
      if (skips(name)) {
        skipped.insert(name);
        entries.erase(name);
        continue;
      }
      bool transpose = false;
      for (const std::string &pattern : options.transpose)
        if (matches(pattern, name)) {
          transpose = true;
          patternsUsed.insert(pattern);
        }
      const auto at = entries.find(name);
      if (at == entries.end()) {
        if (!skipped.contains(name)) // by its name in the file
          report.missing.push_back(name);
        continue;
      }
      const io::SafetensorsEntry &entry = *at->second;
      entries.erase(at);
      if (const std::string why = mismatch(entry, variable, transpose); !why.empty()) {
        report.mismatched.push_back(name + " (" + why + ")");
        continue;
      }
      runtime::StorageRef data = file.read(entry);
      if (entry.type.dtype != variable.dtype()) {
        data = converted(data, entry.type.dtype, {variable.dtype(), entry.type.shape});
        report.converted.push_back(name);
      }
      if (transpose)
        data = transposed(data, variable.type());
      values.emplace_back(variable, detail::makeTensor(variable.type(), std::move(data), detail::toLoc(where)));
      report.loaded.push_back(name);
    }
    for (const auto &[name, entry] : entries)
      report.unexpected.push_back(name);
    report.skipped.assign(skipped.begin(), skipped.end());
    for (const auto &[key, name] : options.rename)
      if (!used.contains(key))
        report.unused.push_back(key);
    for (const auto &[pattern, replacement] : options.rename_regex)
      if (!usedRules.contains(pattern))
        report.unused.push_back(pattern);
    for (const std::string &pattern : options.transpose)
      if (!patternsUsed.contains(pattern))
        report.unused.push_back(pattern);

    std::string problems;
    auto list = [&](const char *what, const std::vector<std::string> &names) {
      if (!names.empty())
        problems += (problems.empty() ? "" : "; ") + std::to_string(names.size()) + " " + what + ": " + join(names);
    };
    list("missing in the file", report.missing);
    list("unexpected in the file", report.unexpected);
    list("mismatched", report.mismatched);
    list("names in the options that fit nothing", report.unused);
    if (options.strict && !problems.empty())
      throw InputError({path + ": does not fit the network, nothing was loaded: " + problems,
                        {},
                        {},
                        "LoadOptions has rename, skip, transpose and strict"});
    for (const auto &[variable, value] : values)
      variable.assign(value, where);
    return report;
  });
}

void io::saveParameters(const Named &named, const std::string &path, const char *op, std::source_location where) {
  checkNames(named, where, op);
  io::atLine(where, op, [&] {
    std::vector<Tensor> alive;
    std::vector<io::SafetensorsItem> items;
    for (const auto &[name, variable] : named) {
      if (!variable.defined())
        detail::fail<Error>("'" + name + "' has no value yet", detail::toLoc(where), op,
                            "initialize the network with the inputs' types first");
      alive.push_back(variable.value(where));
      items.push_back({name, alive.back().type(), alive.back().data(where)});
    }
    io::writeSafetensors(path, std::move(items), {});
  });
}

} // namespace tressel
