// From relocatable objects to the one image that is mapped for calls in this process and stored in packages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tressel::codegen {

/// A further name of a symbol that an object defines.
struct SymbolAlias {
  std::string name, symbol;
};

/// Links ELF objects into a shared object that imports nothing and exports the kernels, in process. Throws InternalError
/// with the linker's words if an object refers to anything outside. Calls are serialized: the linker has global state.
std::vector<std::byte> linkImage(std::span<const std::span<const char>> objects,
                                 std::span<const SymbolAlias> aliases = {});

/// An object that defines `symbol`, the bytes (read-only, aligned to 64), and `symbol`_bytes, their number as a size_t.
std::vector<char> dataObject(const std::string &symbol, std::span<const std::byte> bytes);
/// A static library of one object.
std::vector<std::byte> archiveOf(const std::string &member, std::span<const char> object);

} // namespace tressel::codegen
