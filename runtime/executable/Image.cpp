#include "tressel/runtime/Image.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace tressel::runtime {
namespace {

[[noreturn, gnu::noinline]] void reject(std::initializer_list<MessagePart> why) {
  throwError<InputError>("code image: ", joinParts(why));
}

template <typename T> T readAt(std::span<const std::byte> elf, uint64_t offset, const char *what) {
  if (offset > elf.size() || elf.size() - offset < sizeof(T))
    reject({"truncated in ", what});
  T value;
  std::memcpy(&value, elf.data() + offset, sizeof(T));
  return value;
}

/// Rejects an image that imports symbols.
void checkImports(std::span<const std::byte> elf, const Elf64_Ehdr &header) {
  bool found = false;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = readAt<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr), "the section headers");
    if (section.sh_type != SHT_DYNSYM)
      continue;
    found = true;
    const auto strings =
        readAt<Elf64_Shdr>(elf, header.e_shoff + section.sh_link * sizeof(Elf64_Shdr), "the section headers");
    if (strings.sh_offset > elf.size() || strings.sh_size > elf.size() - strings.sh_offset)
      reject({"truncated in the symbol names"});
    for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = readAt<Elf64_Sym>(elf, section.sh_offset + at, "the symbols");
      if (symbol.st_name >= strings.sh_size)
        reject({"damaged symbols"});
      if (symbol.st_shndx == SHN_UNDEF) {
        const char *name = reinterpret_cast<const char *>(elf.data() + strings.sh_offset + symbol.st_name);
        reject({"imports '", std::string_view(name, strnlen(name, strings.sh_size - symbol.st_name)), "'"});
      }
    }
  }
  if (!found)
    reject({"has no table of symbols"});
}

/// The loader trusts headers, so everything that it follows is checked here: all offsets lie within the file, and
/// nothing is imported or run at load time. A damaged code section cannot be recognized here; packages have checksums
/// for that.
void checkElf(std::span<const std::byte> elf) {
  const auto header = readAt<Elf64_Ehdr>(elf, 0, "the header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    reject({"not an ELF file"});
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64)
    reject({"for another kind of CPU"});
  if (header.e_type != ET_DYN)
    reject({"not a linked shared object"});
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > 64)
    reject({"unknown layout of the program headers"});
  bool hasDynamic = false;
  std::vector<Elf64_Phdr> loads;
  Elf64_Phdr dynamicHeader = {};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = readAt<Elf64_Phdr>(elf, header.e_phoff + i * sizeof(Elf64_Phdr), "the program headers");
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC)
      continue;
    if (segment.p_offset > elf.size() || segment.p_filesz > elf.size() - segment.p_offset)
      reject({"truncated in a segment"});
    if (segment.p_filesz > segment.p_memsz || segment.p_memsz > (uint64_t(1) << 32) ||
        segment.p_vaddr > (uint64_t(1) << 40))
      reject({"segment sizes are out of range"});
    if (segment.p_type == PT_LOAD) {
      loads.push_back(segment);
    } else {
      hasDynamic = true;
      dynamicHeader = segment;
    }
  }
  if (!hasDynamic || loads.empty())
    reject({"has no dynamic section or no segments"});
  // Addresses in the dynamic section must lie in the file-backed part of a segment.
  auto inSegment = [&](uint64_t address, uint64_t bytes) {
    for (const Elf64_Phdr &s : loads)
      if (address >= s.p_vaddr && address - s.p_vaddr <= s.p_filesz && s.p_filesz - (address - s.p_vaddr) >= bytes)
        return true;
    return false;
  };
  auto toOffset = [&](uint64_t address) {
    for (const Elf64_Phdr &s : loads)
      if (address >= s.p_vaddr && address - s.p_vaddr <= s.p_filesz)
        return s.p_offset + (address - s.p_vaddr);
    return static_cast<uint64_t>(elf.size());
  };
  uint64_t symtab = 0, strtab = 0, strsz = 0, rela = 0, relasz = 0;
  bool terminated = false;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamicHeader.p_filesz && !terminated; at += sizeof(Elf64_Dyn)) {
    const auto entry = readAt<Elf64_Dyn>(elf, dynamicHeader.p_offset + at, "the dynamic section");
    switch (entry.d_tag) {
    case DT_NULL:
      terminated = true;
      break;
    case DT_NEEDED:
      reject({"needs another library"});
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_PREINIT_ARRAY:
    case DT_FINI:
    case DT_FINI_ARRAY:
      reject({"runs code when it is loaded"});
    case DT_SYMTAB:
      symtab = entry.d_un.d_ptr;
      break;
    case DT_STRTAB:
      strtab = entry.d_un.d_ptr;
      break;
    case DT_STRSZ:
      strsz = entry.d_un.d_val;
      break;
    case DT_RELA:
      rela = entry.d_un.d_ptr;
      break;
    case DT_RELASZ:
      relasz = entry.d_un.d_val;
      break;
    default:
      break;
    }
  }
  if (!terminated || !inSegment(strtab, strsz) || !inSegment(symtab, sizeof(Elf64_Sym)))
    reject({"damaged dynamic section"});
  checkImports(elf, header);
  if (rela && !inSegment(rela, relasz))
    reject({"damaged relocations"});
  for (uint64_t i = 0; rela && i + sizeof(Elf64_Rela) <= relasz; i += sizeof(Elf64_Rela)) {
    const auto relocation = readAt<Elf64_Rela>(elf, toOffset(rela) + i, "the relocations");
    bool inMemory = false;
    for (const Elf64_Phdr &s : loads)
      inMemory |= relocation.r_offset >= s.p_vaddr && relocation.r_offset - s.p_vaddr + 8 <= s.p_memsz;
    if (!inMemory || ELF64_R_TYPE(relocation.r_info) == R_X86_64_IRELATIVE)
      reject({"damaged relocations"});
  }
}

/// glibc takes equal paths for one library, and file descriptors are reused. So each path is unique: a counter is
/// encoded as a sequence of "/" and "/./".
std::string uniquePath(int fd) {
  static std::atomic<uint32_t> counter{0};
  std::string path = "/proc/self/fd/";
  for (uint32_t n = ++counter; n; n >>= 1)
    path += n & 1 ? "./" : "/";
  return concat(path, fd);
}

} // namespace

std::shared_ptr<const Image> Image::load(std::span<const std::byte> elf) {
  checkElf(elf);
  const int fd = memfd_create("tressel-kernels", MFD_CLOEXEC);
  if (fd < 0)
    throwError<RuntimeError>("code image: cannot make a memory file: ", std::strerror(errno));
  for (size_t done = 0; done < elf.size();) {
    const ssize_t n = write(fd, elf.data() + done, elf.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      const std::string why = std::strerror(errno);
      close(fd);
      throwError<OutOfMemory>("code image: cannot hold ", elf.size(), " bytes: ", why);
    }
    done += static_cast<size_t>(n);
  }
  std::shared_ptr<Image> image(new Image());
  image->handle_ = dlopen(uniquePath(fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (!image->handle_) {
    const char *why = dlerror();
    reject({why ? why : "cannot be loaded"});
  }
  return image;
}

Image::~Image() {
  if (handle_)
    dlclose(handle_);
}

void *Image::find(const std::string &symbol) const { return dlsym(handle_, symbol.c_str()); }

} // namespace tressel::runtime
