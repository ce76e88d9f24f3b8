// Words of PTX text.
#pragma once

#include "test/standin/ptx/Ptx.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tressel::standin::ptx {

[[noreturn]] void failParse(unsigned line, const std::string &message);

struct Token {
  enum class Kind : uint8_t {
    End,
    Word, ///< an identifier, a register, a mnemonic with its modifiers, a directive: "%tid.x", "mul.wide.u32", ".reg"
    Integer, ///< bits, a 64-bit number
    Float,   ///< bits, of a float (0f...) or a double (0d..., 1.5)
    String,
    Mark ///< one character of punctuation
  };
  Kind kind = Kind::End;
  bool isDouble = false; ///< a Float of 64 bits
  char mark = 0;
  unsigned line = 1;
  uint64_t bits = 0;
  std::string_view text;
};

class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }
  const Token &peek() const { return token_; }
  Token next();
  bool isMark(char mark) const { return token_.kind == Token::Kind::Mark && token_.mark == mark; }
  bool isWord(std::string_view word) const { return token_.kind == Token::Kind::Word && token_.text == word; }
  /// Takes the mark if it is the next token.
  bool accept(char mark);
  bool acceptWord(std::string_view word);
  void expect(char mark);
  std::string_view word();
  uint64_t integer();
  /// Where the next token begins in the text.
  size_t position() const { return begin_; }
  size_t endOfLast() const { return endOfLast_; }

private:
  void advance();
  void skipSpace();
  void number();

  std::string_view text_;
  size_t at_ = 0, begin_ = 0, endOfLast_ = 0;
  unsigned line_ = 1;
  Token token_;
};

} // namespace tressel::standin::ptx
