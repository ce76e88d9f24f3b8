// A small reader of JSON, for the parameters of kernels: whole texts, numbers that fit into 64 bits or a double.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(hidden) // of no use outside, and names take room
namespace tressel::runtime::json {

/// The accessors throw InputError when the value is of another kind.
class Value {
public:
  enum class Kind : uint8_t { Null, Bool, Int, Double, String, Array, Object };

  Kind kind() const { return kind_; }
  bool asBool() const;
  int64_t asInt() const;
  double asDouble() const; ///< of an Int too
  const std::string &asString() const;
  /// Elements of an array, or the values of an object in the order of the text.
  const std::vector<Value> &items() const;
  std::vector<int64_t> asInts() const;
  /// The value under a key of an object; `find` gives null where there is none, `at` throws.
  const Value *find(std::string_view key) const;
  const Value &at(std::string_view key) const;

private:
  friend class Parser;
  Kind kind_ = Kind::Null;
  int64_t int_ = 0; ///< Bool too
  double double_ = 0;
  std::string string_;
  std::vector<Value> items_;
  std::vector<std::string> keys_; ///< of items_, in an object
};

/// Throws InputError, which says at which byte the text is no JSON. Arrays and objects are nested 32 deep at most.
Value parse(std::string_view text);

} // namespace tressel::runtime::json
#pragma GCC visibility pop
