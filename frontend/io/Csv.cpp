#include "frontend/io/Csv.h"

#include "tressel/runtime/Error.h"

namespace tressel::io {
namespace {

bool isBlank(char c) { return c == ' ' || c == '\t'; }

class Parser {
public:
  Parser(std::string_view text, const std::string &name, char separator) : text(text), name(name), separator(separator) {
    if (text.starts_with("\xEF\xBB\xBF")) // a byte order mark, as spreadsheets write it
      at = 3;
  }

  /// The fields of the next line. False at the end.
  bool next(std::vector<std::string> &fields, int64_t &begin) {
    for (;;) {
      if (at >= text.size())
        return false;
      begin = line;
      fields.clear();
      do
        fields.push_back(field());
      while (take(separator));
      if (!endLine() && at < text.size())
        refuse("there is something behind the quotes of a field");
      if (fields.size() > 1 || !fields[0].empty())
        return true;
    }
  }

private:
  [[noreturn]] void refuse(const std::string &why) const { throw InputError(name + ":" + std::to_string(line) + ": " + why); }
  bool take(char c) {
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool endLine() {
    if (at < text.size() && text[at] == '\r')
      at += at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
    else if (!take('\n'))
      return false;
    ++line;
    return true;
  }
  void skipBlanks() {
    while (at < text.size() && isBlank(text[at]) && text[at] != separator)
      ++at;
  }
  std::string field() {
    skipBlanks();
    if (take('"'))
      return quoted();
    const size_t begin = at;
    while (at < text.size() && text[at] != separator && text[at] != '\n' && text[at] != '\r')
      ++at;
    size_t end = at;
    while (end > begin && isBlank(text[end - 1]))
      --end;
    return std::string(text.substr(begin, end - begin));
  }
  std::string quoted() {
    const int64_t opened = line;
    std::string value;
    for (;; ++at) {
      if (at >= text.size()) {
        line = opened;
        refuse("a quote that is not closed");
      }
      if (text[at] == '"' && (++at >= text.size() || text[at] != '"'))
        break;
      line += text[at] == '\n';
      value += text[at];
    }
    skipBlanks();
    return value;
  }

  std::string_view text;
  const std::string &name;
  const char separator;
  size_t at = 0;
  int64_t line = 1;
};

} // namespace

void parseCsv(std::string_view text, const std::string &name, char separator,
              const std::function<void(std::vector<std::string> &fields, int64_t line)> &row) {
  Parser parser(text, name, separator);
  std::vector<std::string> fields;
  for (int64_t line = 0; parser.next(fields, line);)
    row(fields, line);
}

} // namespace tressel::io
