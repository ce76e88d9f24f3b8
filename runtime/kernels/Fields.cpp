#include "Fields.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <charconv>
#include <cstring>

namespace tressel::kernels {

[[noreturn]] static void damaged(std::string_view what) {
  throw InputError(std::string("the description of a kernel is damaged: ").append(what));
}
[[noreturn]] static void damaged(std::string_view what, std::string_view name) {
  damaged(std::string(what).append(" '").append(name).append("'"));
}

namespace {

/// Parses `{"name": value, ...}` from left to right.
class Reader {
public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool take(char c) {
    skipSpace();
    if (rest_.empty() || rest_.front() != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view quoted() {
    if (!take('"'))
      damaged("it is no flat list of fields");
    const size_t end = rest_.find_first_of("\"\\");
    if (end == rest_.npos || rest_[end] != '"')
      damaged("it ends in the middle");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::string_view value() {
    skipSpace();
    if (!rest_.empty() && rest_.front() == '"')
      return quoted();
    size_t end = 0;
    while (end < rest_.size() && std::memchr("+-0123456789", rest_[end], 12))
      ++end;
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return text;
  }
  bool atEnd() {
    skipSpace();
    return rest_.empty();
  }

private:
  void skipSpace() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

bool parseNumber(std::string_view text, int64_t &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Size parseSize(std::string_view text, std::string_view name) {
  int64_t value = 0;
  if (parseNumber(text, value) && value >= Size::kLeast)
    return value;
  const std::optional<Size> size = dim::parse(text);
  if (!size || *size == kDynamic)
    damaged("no size in", name);
  return *size;
}

} // namespace

Fields Fields::parse(std::string_view text) {
  Reader reader(text);
  Fields fields;
  if (!reader.take('{'))
    damaged("it is no flat list of fields");
  if (!reader.take('}')) {
    do {
      const std::string_view name = reader.quoted();
      if (!reader.take(':'))
        damaged("no value for", name);
      fields.fields_.emplace_back(name, reader.value());
    } while (reader.take(','));
    if (!reader.take('}'))
      damaged("it ends in the middle");
  }
  if (!reader.atEnd())
    damaged("something follows it");
  return fields;
}

const std::string *Fields::findIf(std::string_view name) const {
  for (const auto &[key, value] : fields_)
    if (key == name)
      return &value;
  return nullptr;
}

const std::string &Fields::find(std::string_view name) const {
  if (const std::string *value = findIf(name))
    return *value;
  damaged("it lacks", name);
}

const std::string &Fields::text(std::string_view name) const { return find(name); }

int64_t Fields::number(std::string_view name) const {
  int64_t value = 0;
  if (!parseNumber(find(name), value))
    damaged("no number in", name);
  return value;
}

int64_t Fields::number(std::string_view name, int64_t lo, int64_t hi) const {
  const int64_t value = number(name);
  if (value < lo || value > hi)
    damaged("an impossible number in", name);
  return value;
}

Size Fields::size(std::string_view name) const { return parseSize(find(name), name); }

std::vector<Size> Fields::sizes(std::string_view name) const {
  std::vector<Size> sizes;
  std::string_view rest = find(name);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    sizes.push_back(parseSize(rest.substr(0, end), name));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return sizes;
}

std::vector<Size> Fields::symbols(std::string_view name) const {
  std::vector<Size> symbols = sizes(name);
  for (Size symbol : symbols)
    if (!dim::isSymbol(symbol))
      damaged("something that is no dimension in", name);
  return symbols;
}

Element Fields::element(std::string_view name) const {
  const std::string *value = findIf(name);
  if (!value)
    return Element::F32;
  if (*value != "f16" && *value != "bf16")
    damaged("no type of 16 bits in", name);
  return *value == "f16" ? Element::F16 : Element::BF16;
}

FieldsText &FieldsText::text(std::string_view name, std::string_view value) {
  text_.append(text_.empty() ? "\"" : ",\"").append(name).append("\":\"").append(value).append("\"");
  return *this;
}

FieldsText &FieldsText::size(std::string_view name, Size value) {
  return value.isNumber() ? number(name, value.number()) : text(name, dim::spell(value));
}

FieldsText &FieldsText::number(std::string_view name, int64_t value) {
  text_.append(text_.empty() ? "\"" : ",\"").append(name).append("\":").append(std::to_string(value));
  return *this;
}

FieldsText &FieldsText::sizes(std::string_view name, std::span<const int64_t> values) {
  std::string list;
  for (int64_t value : values)
    list.append(list.empty() ? "" : ";").append(std::to_string(value));
  return text(name, list);
}

FieldsText &FieldsText::sizes(std::string_view name, std::span<const Size> values) {
  std::string list;
  for (Size value : values)
    list.append(list.empty() ? "" : ";").append(dim::spell(value));
  return text(name, list);
}

FieldsText &FieldsText::element(std::string_view name, Element value) {
  return value == Element::F32 ? *this : text(name, value == Element::F16 ? "f16" : "bf16");
}

} // namespace tressel::kernels
