// A kernel's description, as the compiler writes it to KernelDesc::params: a flat JSON object of numbers and strings.
// Symbolic sizes are strings ("4*n + 4"); a list of sizes is a string separated by ';'.
#pragma once

#include "Element.h"
#include "tressel/runtime/Size.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tressel::kernels {

class Fields {
public:
  /// Throws InputError when the text is not of this form.
  static Fields parse(std::string_view text);

  // Each throws InputError if there is no field of this name and kind.
  const std::string &text(std::string_view name) const;
  int64_t number(std::string_view name) const;
  /// Throws InputError for a number outside of [lo, hi], too.
  int64_t number(std::string_view name, int64_t lo, int64_t hi) const;
  Size size(std::string_view name) const;
  std::vector<Size> sizes(std::string_view name) const;
  /// A list of symbols, whose values the kernel's scalars give.
  std::vector<Size> symbols(std::string_view name) const;
  /// "f16" or "bf16"; f32 if there is no such field.
  Element element(std::string_view name) const;

private:
  const std::string *findIf(std::string_view name) const;
  const std::string &find(std::string_view name) const;
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Writes the format that Fields reads.
class FieldsText {
public:
  FieldsText &text(std::string_view name, std::string_view value); ///< must not contain quotes or backslashes
  FieldsText &number(std::string_view name, int64_t value);
  FieldsText &size(std::string_view name, Size value);
  FieldsText &sizes(std::string_view name, std::span<const Size> values);
  FieldsText &sizes(std::string_view name, std::span<const int64_t> values);
  FieldsText &element(std::string_view name, Element value);
  std::string str() const { return "{" + text_ + "}"; }

private:
  std::string text_;
};

} // namespace tressel::kernels
