#include "Json.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <charconv>

namespace tressel::runtime::json {

static void need(bool isThat, const char *kind) {
  if (!isThat)
    throwError<InputError>("JSON: ", kind, " is expected");
}

bool Value::asBool() const {
  need(kind_ == Kind::Bool, "true or false");
  return int_ != 0;
}
int64_t Value::asInt() const {
  need(kind_ == Kind::Int, "an integer");
  return int_;
}
double Value::asDouble() const {
  need(kind_ == Kind::Int || kind_ == Kind::Double, "a number");
  return kind_ == Kind::Int ? static_cast<double>(int_) : double_;
}
const std::string &Value::asString() const {
  need(kind_ == Kind::String, "a string");
  return string_;
}
const std::vector<Value> &Value::items() const {
  need(kind_ == Kind::Array || kind_ == Kind::Object, "an array");
  return items_;
}
std::vector<int64_t> Value::asInts() const {
  std::vector<int64_t> ints;
  for (const Value &item : items())
    ints.push_back(item.asInt());
  return ints;
}
const Value *Value::find(std::string_view key) const {
  need(kind_ == Kind::Object, "an object");
  for (size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i] == key)
      return &items_[i];
  return nullptr;
}
const Value &Value::at(std::string_view key) const {
  const Value *found = find(key);
  if (!found)
    throwError<InputError>("JSON: there is no '", key, "'");
  return *found;
}

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value run() {
    Value value;
    parse(value, 0);
    skipSpaces();
    if (at_ != text_.size())
      fail();
    return value;
  }

private:
  static constexpr int kMaxDepth = 32;

  [[noreturn]] void fail() const { throwError<InputError>("no JSON from byte ", at_, " on"); }
  void skipSpaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool eat(std::string_view token) {
    skipSpaces();
    if (!text_.substr(at_).starts_with(token))
      return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!eat(token))
      fail();
  }

  void parse(Value &out, int depth) {
    if (depth > kMaxDepth)
      fail();
    if (eat("{")) {
      out.kind_ = Value::Kind::Object;
      list("}", [&] {
        skipSpaces();
        string(out.keys_.emplace_back());
        expect(":");
        parse(out.items_.emplace_back(), depth + 1);
      });
    } else if (eat("[")) {
      out.kind_ = Value::Kind::Array;
      list("]", [&] { parse(out.items_.emplace_back(), depth + 1); });
    } else if (at_ < text_.size() && text_[at_] == '"') {
      out.kind_ = Value::Kind::String;
      string(out.string_);
    } else if (eat("null")) {
    } else if (const bool isTrue = eat("true"); isTrue || eat("false")) {
      out.kind_ = Value::Kind::Bool;
      out.int_ = isTrue;
    } else {
      number(out);
    }
  }
  template <typename Fn> void list(std::string_view end, Fn element) {
    if (eat(end))
      return;
    do
      element();
    while (eat(","));
    expect(end);
  }
  void number(Value &out) {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    const auto whole = std::from_chars(begin, end, out.int_);
    const char *behind = whole.ptr;
    out.kind_ = Value::Kind::Int;
    if (whole.ec != std::errc() || (behind != end && (*behind == '.' || *behind == 'e' || *behind == 'E'))) {
      out.kind_ = Value::Kind::Double;
      const auto real = std::from_chars(begin, end, out.double_);
      // from_chars reads inf and nan too.
      if (real.ec != std::errc() || (begin[*begin == '-'] < '0' || begin[*begin == '-'] > '9'))
        fail();
      behind = real.ptr;
    }
    at_ += static_cast<size_t>(behind - begin);
  }
  void string(std::string &out) {
    expect("\"");
    for (;;) {
      if (at_ == text_.size() || static_cast<unsigned char>(text_[at_]) < ' ')
        fail();
      const char c = text_[at_++];
      if (c == '"')
        return;
      if (c != '\\') {
        out += c;
        continue;
      }
      static constexpr std::string_view kShort = "\"\\/bfnrt", kMeaning = "\"\\/\b\f\n\r\t";
      if (at_ == text_.size())
        fail();
      if (const size_t which = kShort.find(text_[at_]); which != std::string_view::npos)
        out += kMeaning[which], ++at_;
      else
        escaped(out);
    }
  }
  uint32_t hex() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(at_ + 1, 4);
    if (at_ == text_.size() || text_[at_] != 'u' || digits.size() != 4 ||
        std::from_chars(digits.data(), digits.data() + 4, code, 16).ptr != digits.data() + 4)
      fail();
    at_ += 5;
    return code;
  }
  /// u00e4, or a surrogate pair ud83d\ude00, as UTF-8.
  void escaped(std::string &out) {
    uint32_t code = hex();
    if (code >= 0xd800 && code < 0xe000) {
      expect("\\");
      const uint32_t low = hex();
      if (code >= 0xdc00 || low < 0xdc00 || low >= 0xe000)
        fail();
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; // bytes behind the first
    static constexpr uint8_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(kFirst[more] | (code >> (6 * more)));
    for (int i = more - 1; i >= 0; --i)
      out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
  }

  std::string_view text_;
  size_t at_ = 0;
};

Value parse(std::string_view text) { return Parser(text).run(); }

} // namespace tressel::runtime::json
