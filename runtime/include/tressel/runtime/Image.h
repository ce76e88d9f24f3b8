// Machine code in memory: an ELF shared object that imports nothing, mapped so that its kernels can be called.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tressel::runtime {

class Image {
public:
  /// Maps a linked shared object for this kind of CPU. It must need no other library, import no symbol and run nothing
  /// when loaded; whether the CPU has the instructions it uses is the caller's to check (Cpu.h). Throws InputError.
  static std::shared_ptr<const Image> load(std::span<const std::byte> elf);
  ~Image();
  Image(const Image &) = delete;
  Image &operator=(const Image &) = delete;

  /// The address of an exported symbol, null if there is none.
  void *find(const std::string &symbol) const;

private:
  Image() = default;
  void *handle_ = nullptr;
};

} // namespace tressel::runtime
