#include "JsonPlace.h"

#include "runtime/types/Concat.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tressel::runtime {

nlohmann::ordered_json parseJson(std::string_view text, std::string_view name) {
  try {
    return nlohmann::ordered_json::parse(text.begin(), text.end());
  } catch (const nlohmann::ordered_json::parse_error &e) {
    const std::string_view before = text.substr(0, std::min(text.size(), e.byte ? e.byte - 1 : 0));
    const size_t line = static_cast<size_t>(std::ranges::count(before, '\n')) + 1;
    const size_t column = before.size() - (before.rfind('\n') + 1) + 1; // npos + 1 is 0
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what": only what is for the user.
    std::string what = e.what();
    if (const size_t at = what.find(": "); at != std::string::npos)
      what = what.substr(at + 2);
    throw InputError(concat(name, ":", line, ":", column, ": is no JSON: ", what));
  }
}

namespace {

/// Walks a text that is known to be JSON.
class Walk {
public:
  explicit Walk(std::string_view text) : text_(text) {}

  /// The offset of what `path` names, or of the innermost that holds it.
  size_t find(std::string_view path) {
    for (;;) {
      skipSpaces();
      const size_t here = at_;
      if (path.empty() || !enter(path))
        return here;
    }
  }

private:
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skipSpaces() {
    while (now() == ' ' || now() == '\n' || now() == '\t' || now() == '\r')
      ++at_;
  }
  std::string_view string() {
    const size_t begin = ++at_;
    while (at_ < text_.size() && now() != '"')
      at_ += now() == '\\' ? 2 : 1;
    return text_.substr(begin, at_++ - begin);
  }
  void skipValue() {
    skipSpaces();
    if (now() == '"') {
      string();
      return;
    }
    for (int depth = 0; at_ < text_.size();) {
      const char c = now();
      if (c == '"') {
        string();
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']'))
        return;
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      ++at_;
    }
  }
  /// Goes to the first part of the path, and takes that off it.
  bool enter(std::string_view &path) {
    const char open = now();
    if (open != '{' && open != '[')
      return false;
    ++at_;
    for (size_t index = 0;; ++index) {
      skipSpaces();
      if (now() == '}' || now() == ']' || now() == '\0')
        return false;
      std::string part = open == '[' ? concat("[", index, "]") : std::string();
      if (open == '{') {
        part = string();
        skipSpaces();
        ++at_; // the colon
      }
      if (path.starts_with(part) &&
          (path.size() == part.size() || path[part.size()] == '.' || path[part.size()] == '[')) {
        path.remove_prefix(part.size());
        if (path.starts_with("."))
          path.remove_prefix(1);
        return true;
      }
      skipValue();
      skipSpaces();
      if (now() == ',')
        ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

} // namespace

size_t lineOf(std::string_view text, std::string_view path) {
  const size_t at = Walk(text).find(path);
  return static_cast<size_t>(std::ranges::count(text.substr(0, std::min(at, text.size())), '\n')) + 1;
}

} // namespace tressel::runtime
