// Attribute values of ops, without MLIR: for eager ops, shape inference and the interpreter.
#pragma once

#include "runtime/types/Hash.h"
#include "tressel/runtime/Size.h"
#include "tressel/runtime/Types.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tressel::op {

using Ints = std::vector<int64_t>;
using Sizes = std::vector<Size>;
/// monostate: an optional attribute that is absent.
using Attr = std::variant<std::monostate, bool, int64_t, double, DType, std::string, Ints, Size, Sizes>;
enum class AttrKind : uint8_t { Bool, Int, Float, Type, String, Ints, Size, Sizes };

/// One attribute of an op, as its record declares it.
struct AttrSpec {
  const char *name;
  AttrKind kind;
  bool optional;      ///< may be absent (monostate)
  Attr defaultValue;  ///< monostate: mandatory unless `optional`
};

/// Hashes an absent value and the length of a list too.
inline uint64_t mixHash(uint64_t hash, const Attr &attr) {
  return std::visit(
      [hash](const auto &v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Ints>) {
          uint64_t all = tressel::mixHash(hash, v.size());
          for (int64_t i : v)
            all = tressel::mixHash(all, static_cast<uint64_t>(i));
          return all;
        } else if constexpr (std::is_same_v<T, Sizes>) {
          uint64_t all = tressel::mixHash(hash, v.size());
          for (Size size : v)
            all = tressel::mixHash(all, static_cast<uint64_t>(size.bits()));
          return all;
        } else if constexpr (std::is_same_v<T, Size>) {
          return tressel::mixHash(hash, static_cast<uint64_t>(v.bits()));
        } else if constexpr (std::is_same_v<T, std::monostate>) {
          return tressel::mixHash(hash, uint64_t(1));
        } else {
          return tressel::mixHash(hash, static_cast<uint64_t>(std::hash<T>()(v)));
        }
      },
      attr);
}

/// Values in the order of OpInfo::attrs, with defaults filled in (see `completeAttrs`).
using Attrs = std::vector<Attr>;

} // namespace tressel::op
