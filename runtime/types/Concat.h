// Messages out of text and numbers: concat("kernel ", i, " '", name, "'"). Chains of std::string and + expand to
// hundreds of bytes of code for each message, which a small library has no room for.
#pragma once

#include "tressel/runtime/Size.h"

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tressel::runtime {

/// A part of a message, alive as long as what it was made from.
class MessagePart {
public:
  MessagePart(const char *text) : data(text), size(std::char_traits<char>::length(text)) {}
  MessagePart(const std::string &text) : data(text.data()), size(text.size()) {}
  MessagePart(std::string_view text) : data(text.data() ? text.data() : ""), size(text.size()) {}
  template <std::integral T>
  requires(sizeof(T) > 1) // a char is no number
      MessagePart(T number)
      : size(static_cast<uint64_t>(number)), isUnsigned(std::unsigned_integral<T>) {}

  MessagePart(Size number) : size(static_cast<uint64_t>(number.bits())), isSize(true) {}

private:
  friend std::string joinParts(std::initializer_list<MessagePart> parts);
  const char *data = nullptr; ///< null: a number
  uint64_t size;              ///< of the text, or the bits of the number or Size
  bool isUnsigned = false, isSize = false;
};

std::string joinParts(std::initializer_list<MessagePart> parts);

template <typename... Parts> [[gnu::always_inline]] inline std::string concat(const Parts &...parts) {
  return joinParts({MessagePart(parts)...});
}

template <typename E> [[noreturn, gnu::noinline, gnu::cold]] void throwParts(std::initializer_list<MessagePart> parts) {
  throw E(joinParts(parts));
}
/// throwError<InputError>("kernel ", i, " is bad")
template <typename E, typename... Parts>
[[noreturn, gnu::always_inline]] inline void throwError(const Parts &...parts) {
  throwParts<E>({MessagePart(parts)...});
}

} // namespace tressel::runtime
