// Properties of characters that tokenizers need, by utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tressel::text {

/// The character that a text begins with, and its bytes: at least one. -1 for a byte that is no UTF-8, which is one long.
struct Character {
  int32_t code;
  size_t bytes;
};
Character firstOf(std::string_view text);
void append(std::string &text, int32_t code);

bool isLetter(int32_t code);
bool isNumber(int32_t code);
bool isSpace(int32_t code); ///< by the property White_Space
bool isPunctuation(int32_t code); ///< all of ASCII that is neither letter, number, blank nor control, and Unicode's
bool isControl(int32_t code); ///< also formats, private and half characters; not tab and line ends
bool isMark(int32_t code); ///< that is combined with the letter before and takes no room
bool isChinese(int32_t code); ///< of the blocks of CJK ideographs
int32_t lower(int32_t code);
/// With accents as characters of their own (NFD).
std::string decomposed(std::string_view text);

} // namespace tressel::text
