#include "test/standin/ptx/Lexer.h"

#include <bit>
#include <cctype>
#include <cstdlib>

namespace tressel::standin::ptx {
namespace {

bool beginsWord(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continuesWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.'; }

std::string describe(const Token &token) {
  if (token.kind == Token::Kind::End)
    return "the end of the text";
  return "'" + std::string(token.text) + "'";
}

} // namespace

void failParse(unsigned line, const std::string &message) {
  throw ParseError("line " + std::to_string(line) + ": " + message);
}

Token Lexer::next() {
  const Token token = token_;
  advance();
  return token;
}

bool Lexer::accept(char mark) {
  if (!isMark(mark))
    return false;
  advance();
  return true;
}

bool Lexer::acceptWord(std::string_view word) {
  if (!isWord(word))
    return false;
  advance();
  return true;
}

void Lexer::expect(char mark) {
  if (!accept(mark))
    failParse(token_.line, std::string("'") + mark + "' is expected before " + describe(token_));
}

std::string_view Lexer::word() {
  if (token_.kind != Token::Kind::Word)
    failParse(token_.line, "a name is expected before " + describe(token_));
  return next().text;
}

uint64_t Lexer::integer() {
  const bool isNegative = accept('-');
  if (token_.kind != Token::Kind::Integer)
    failParse(token_.line, "a number is expected before " + describe(token_));
  const uint64_t bits = next().bits;
  return isNegative ? 0 - bits : bits;
}

void Lexer::skipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n')
      ++line_, ++at_;
    else if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f')
      ++at_;
    else if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n')
        ++at_;
    } else if (text_.substr(at_, 2) == "/*") {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos)
        failParse(line_, "a comment does not end");
      for (; at_ < end + 2; ++at_)
        line_ += text_[at_] == '\n';
    } else
      return;
  }
}

void Lexer::number() {
  token_.kind = Token::Kind::Integer;
  auto take = [this](int base, size_t most) {
    const size_t from = at_;
    uint64_t value = 0;
    for (; at_ < text_.size() && at_ - from < most; ++at_) {
      const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_])));
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
      if (digit >= base)
        break;
      value = value * static_cast<unsigned>(base) + static_cast<unsigned>(digit);
    }
    if (at_ == from)
      failParse(line_, "a number has no digits");
    return value;
  };
  const char second = at_ + 1 < text_.size() && text_[at_] == '0' ? text_[at_ + 1] : ' ';
  if (second == 'x' || second == 'X') {
    at_ += 2;
    token_.bits = take(16, 64);
  } else if (second == 'f' || second == 'F' || second == 'd' || second == 'D') {
    token_.kind = Token::Kind::Float;
    token_.isDouble = second == 'd' || second == 'D';
    at_ += 2;
    const size_t from = at_, digits = token_.isDouble ? 16 : 8;
    token_.bits = take(16, digits);
    if (at_ - from != digits)
      failParse(line_, "a floating-point number has " + std::to_string(digits) + " digits");
  } else if (second == 'b' || second == 'B') {
    at_ += 2;
    token_.bits = take(2, 64);
  } else {
    size_t end = at_;
    bool isFloat = false;
    while (end < text_.size()) {
      const char c = text_[end];
      if (c == '.' || c == 'e' || c == 'E')
        isFloat = true;
      else if (!(c >= '0' && c <= '9') && !((c == '-' || c == '+') && (text_[end - 1] == 'e' || text_[end - 1] == 'E')))
        break;
      ++end;
    }
    if (isFloat) {
      token_.kind = Token::Kind::Float;
      token_.isDouble = true;
      token_.bits = std::bit_cast<uint64_t>(std::strtod(std::string(text_.substr(at_, end - at_)).c_str(), nullptr));
      at_ = end;
    } else
      token_.bits = take(second >= '0' && second <= '7' ? 8 : 10, 64);
  }
  if (at_ < text_.size() && text_[at_] == 'U')
    ++at_;
}

void Lexer::advance() {
  endOfLast_ = at_;
  skipSpace();
  begin_ = at_;
  token_ = Token{};
  token_.line = line_;
  if (at_ == text_.size())
    return;
  const char c = text_[at_];
  if (beginsWord(c)) {
    token_.kind = Token::Kind::Word;
    ++at_;
    // A word has no single ':', which ends a label, but a modifier may be "L1::no_allocate".
    while (at_ < text_.size())
      if (continuesWord(text_[at_]))
        ++at_;
      else if (text_.substr(at_, 2) == "::")
        at_ += 2;
      else
        break;
  } else if (std::isdigit(static_cast<unsigned char>(c)))
    number();
  else if (c == '"') {
    token_.kind = Token::Kind::String;
    const size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos)
      failParse(line_, "a string does not end");
    at_ = end + 1;
  } else {
    token_.kind = Token::Kind::Mark;
    token_.mark = c;
    ++at_;
  }
  token_.text = text_.substr(begin_, at_ - begin_);
}

} // namespace tressel::standin::ptx
