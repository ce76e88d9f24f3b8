// Files of comma-separated values as tensors.
#include "frontend/io/AtLine.h"
#include "frontend/io/Csv.h"
#include "frontend/tensor/Make.h"
#include "tressel/runtime/File.h"

#include <tressel/data.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

namespace tressel::data {
namespace {

/// A column as it is read: numbers, or words that are counted at the end.
struct Column {
  std::string name;
  bool isWords = false;
  std::vector<float> numbers;
  std::vector<std::string> words;
};

class Reader {
public:
  Reader(const std::string &path, const CsvOptions &options) : path(path), options(options) {}

  void row(std::vector<std::string> &fields, int64_t line) {
    if (columns.empty()) {
      begin(fields);
      if (options.header)
        return;
    }
    if (fields.size() != columns.size())
      refuse(line, std::to_string(fields.size()) + " fields in a line, but " + std::to_string(columns.size()) + " columns");
    for (size_t i = 0; i < fields.size(); ++i)
      if (Column &column = columns[i]; column.isWords)
        column.words.push_back(std::move(fields[i]));
      else
        column.numbers.push_back(number(fields[i], column.name, line));
    ++rows;
  }

  Table table(SourceLoc where) {
    if (rows == 0)
      throw InputError(path + ": no rows");
    Table out;
    std::vector<const Column *> numbers;
    for (const Column &column : columns)
      if (column.isWords)
        out.kinds.push_back(kindsOf(column, where));
      else
        numbers.push_back(&column), out.columns.push_back(column.name);
    const auto width = static_cast<int64_t>(numbers.size());
    out.numbers = tressel::detail::allocateTensor({f32, {rows, width}}, where);
    auto *to = static_cast<float *>(out.numbers.impl()->storage->data());
    for (int64_t r = 0; r < rows; ++r)
      for (const Column *column : numbers)
        *to++ = column->numbers[static_cast<size_t>(r)];
    return out;
  }

private:
  [[noreturn]] void refuse(int64_t line, const std::string &why, std::string hint = {}) const {
    throw InputError({path + ":" + std::to_string(line) + ": " + why, {}, {}, std::move(hint)});
  }

  void begin(const std::vector<std::string> &fields) {
    for (size_t i = 0; i < fields.size(); ++i) {
      const std::string name = options.header ? fields[i] : std::to_string(i);
      if (std::ranges::any_of(columns, [&](const Column &c) { return c.name == name; }))
        throw InputError(path + ": two columns '" + name + "'");
      columns.push_back({name, std::ranges::find(options.words, name) != options.words.end(), {}, {}});
    }
    for (const std::string &name : options.words)
      if (std::ranges::none_of(columns, [&](const Column &c) { return c.name == name; }))
        throw InputError({path + ": no column '" + name + "'", {}, {}, options.header ? "its first line names the columns" : "columns without a header are '0', '1', and so on"});
  }

  float number(const std::string &field, const std::string &column, int64_t line) const {
    if (field.empty() && options.missing)
      return *options.missing;
    float value = 0;
    const char *begin = field.data() + (field.starts_with('+') ? 1 : 0), *end = field.data() + field.size();
    const auto [stopped, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range)
      refuse(line, "'" + field + "' in column '" + column + "' is no f32");
    if (field.empty())
      refuse(line, "nothing in column '" + column + "'", "set CsvOptions::missing to the value of empty fields");
    if (error != std::errc() || stopped != end)
      refuse(line, "'" + field + "' in column '" + column + "' is no number", "columns of words are named in CsvOptions::words");
    return value;
  }

  static Table::Kinds kindsOf(const Column &column, SourceLoc where) {
    std::map<std::string, int64_t> place;
    for (const std::string &word : column.words)
      place[word] = 0;
    Table::Kinds kinds{column.name, {}, tressel::detail::allocateTensor({i64, {static_cast<int64_t>(column.words.size())}}, where)};
    for (auto &[word, number] : place) {
      number = static_cast<int64_t>(kinds.words.size());
      kinds.words.push_back(word);
    }
    auto *to = static_cast<int64_t *>(kinds.labels.impl()->storage->data());
    for (const std::string &word : column.words)
      *to++ = place[word];
    return kinds;
  }

  const std::string &path;
  const CsvOptions &options;
  std::vector<Column> columns;
  int64_t rows = 0;
};

} // namespace

Table read_csv(const std::string &path, CsvOptions options, std::source_location where) {
  return io::atLine(where, "data::read_csv", [&] {
    const runtime::InputFile file(path);
    std::string text(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    Reader reader(path, options);
    io::parseCsv(text, path, options.separator, [&](std::vector<std::string> &fields, int64_t line) { reader.row(fields, line); });
    return reader.table(tressel::detail::toLoc(where));
  });
}

} // namespace tressel::data
