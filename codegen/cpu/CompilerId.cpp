#include "codegen/cpu/CompilerId.h"

#include "codegen/cpu/SourceHash.inc"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

namespace tressel::codegen {
namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

/// The build id that the linker left in the loaded file's notes; else what tells it from its next version.
std::string idOf(const dl_phdr_info &file) {
  for (int i = 0; i < file.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = file.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char *at = reinterpret_cast<const char *>(file.dlpi_addr + segment.p_vaddr), *end = at + segment.p_memsz;
    auto padded = [](size_t n) { return (n + 3) & ~size_t(3); };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char *name = at + sizeof note, *content = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        return llvm::toHex(llvm::StringRef(content, note.n_descsz));
      at = content + padded(note.n_descsz);
    }
  }
  struct stat info;
  const char *path = file.dlpi_name && *file.dlpi_name ? file.dlpi_name : "/proc/self/exe";
  if (::stat(path, &info) != 0)
    return path;
  return std::string(path) + " " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtime);
}

/// Of the file in which LLVM's back end was loaded.
std::string idOfLlvm() {
  LLVMInitializeX86TargetInfo();
  Search search{reinterpret_cast<uintptr_t>(&*llvm::TargetRegistry::targets().begin()), {}};
  dl_iterate_phdr(
      [](dl_phdr_info *file, size_t, void *data) {
        auto &search = *static_cast<Search *>(data);
        const bool holds = std::any_of(file->dlpi_phdr, file->dlpi_phdr + file->dlpi_phnum, [&](const ElfW(Phdr) &p) {
          return p.p_type == PT_LOAD && search.address - file->dlpi_addr - p.p_vaddr < p.p_memsz;
        });
        if (holds)
          search.id = idOf(*file);
        return holds ? 1 : 0;
      },
      &search);
  return search.id;
}

} // namespace

const std::string &compilerId() {
  static const std::string &id = *new std::string(std::string(kSourceHash) + " LLVM " LLVM_VERSION_STRING " " + idOfLlvm());
  return id;
}

} // namespace tressel::codegen
