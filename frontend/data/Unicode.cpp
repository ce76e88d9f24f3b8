#include "frontend/data/Unicode.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <utf8proc.h>

namespace tressel::text {

Character firstOf(std::string_view text) {
  utf8proc_int32_t code = -1;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &code);
  return bytes < 1 ? Character{-1, 1} : Character{code, static_cast<size_t>(bytes)};
}

void append(std::string &text, int32_t code) {
  utf8proc_uint8_t bytes[4];
  text.append(reinterpret_cast<const char *>(bytes), static_cast<size_t>(utf8proc_encode_char(code, bytes)));
}

bool isLetter(int32_t code) {
  switch (utf8proc_category(code)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
    return true;
  default:
    return false;
  }
}

bool isNumber(int32_t code) {
  const auto category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool isSpace(int32_t code) {
  const auto category = utf8proc_category(code);
  return (code >= '\t' && code <= '\r') || code == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool isPunctuation(int32_t code) {
  if (code < 128)
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) || (code >= 123 && code <= 126);
  switch (utf8proc_category(code)) {
  case UTF8PROC_CATEGORY_PC:
  case UTF8PROC_CATEGORY_PD:
  case UTF8PROC_CATEGORY_PS:
  case UTF8PROC_CATEGORY_PE:
  case UTF8PROC_CATEGORY_PI:
  case UTF8PROC_CATEGORY_PF:
  case UTF8PROC_CATEGORY_PO:
    return true;
  default:
    return false;
  }
}

bool isControl(int32_t code) {
  if (code == '\t' || code == '\n' || code == '\r')
    return false;
  switch (utf8proc_category(code)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CS:
    return true;
  default:
    return false;
  }
}

bool isMark(int32_t code) { return utf8proc_category(code) == UTF8PROC_CATEGORY_MN; }

bool isChinese(int32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) || (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

int32_t lower(int32_t code) { return utf8proc_tolower(code); }

std::string decomposed(std::string_view text) {
  utf8proc_uint8_t *made = nullptr;
  const auto bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &made,
                                  static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> held(made, std::free);
  if (bytes == UTF8PROC_ERROR_NOMEM)
    throw std::bad_alloc();
  return bytes < 0 ? std::string(text) : std::string(reinterpret_cast<const char *>(made), static_cast<size_t>(bytes));
}

} // namespace tressel::text
