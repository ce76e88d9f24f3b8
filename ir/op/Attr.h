// Attribute values of ops, without MLIR: what the eager path, shape inference and the interpreter work with.
#pragma once

#include "tressel/runtime/Types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tressel::op {

using Ints = std::vector<int64_t>;
/// monostate: an optional attribute that is absent.
using Attr = std::variant<std::monostate, bool, int64_t, double, DType, std::string, Ints>;
enum class AttrKind : uint8_t { Bool, Int, Float, Type, String, Ints };

/// One attribute of an op, as its record declares it.
struct AttrSpec {
  const char *name;
  AttrKind kind;
  bool optional;      ///< may be absent (monostate)
  Attr defaultValue;  ///< monostate: mandatory unless `optional`
};

/// Values in the order of OpInfo::attrs. Defaults are filled in by whoever builds it (see `completeAttrs`).
using Attrs = std::vector<Attr>;

} // namespace tressel::op
