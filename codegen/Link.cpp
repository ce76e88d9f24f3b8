#include "codegen/Link.h"

#include "tressel/runtime/Error.h"

#include "codegen/cpu/Target.h"

#include "lld/Common/Driver.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace tressel::codegen {

namespace {

/// A file that lives in memory only and has a path while it is open: the linker speaks paths.
class MemoryFile {
public:
  explicit MemoryFile(const char *name) : fd(memfd_create(name, MFD_CLOEXEC)) {
    if (fd < 0)
      throw RuntimeError("cannot make a file in memory to link kernels");
  }
  ~MemoryFile() { close(fd); }
  MemoryFile(const MemoryFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd); }
  void write(std::span<const char> bytes) {
    while (!bytes.empty()) {
      ssize_t n = ::write(fd, bytes.data(), bytes.size());
      if (n <= 0)
        throw RuntimeError("no memory left to link kernels");
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
private:
  int fd;
};

/// The linker makes its output aside and renames it, so it needs a folder: in memory where there is one.
class OutputFolder {
public:
  OutputFolder() {
    const char *user = getenv("TMPDIR");
    for (std::string base : {std::string("/dev/shm"), std::string(user ? user : ""), std::string("/tmp")}) {
      name = base + "/tressel-link-XXXXXX";
      if (!base.empty() && mkdtemp(name.data()))
        return;
    }
    throw RuntimeError("no folder to link kernels in: neither /dev/shm, $TMPDIR nor /tmp can be written");
  }
  ~OutputFolder() {
    unlink(image().c_str());
    rmdir(name.c_str());
  }
  OutputFolder(const OutputFolder &) = delete;
  std::string image() const { return name + "/image.so"; }

private:
  std::string name;
};

std::vector<std::byte> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(in ? static_cast<size_t>(in.tellg()) : 0);
  in.seekg(0);
  if (!in.read(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    throw RuntimeError("the linked kernels cannot be read back from " + path);
  return bytes;
}

} // namespace

std::vector<std::byte> linkImage(std::span<const std::span<const char>> objects, std::span<const SymbolAlias> aliases) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);

  std::vector<std::unique_ptr<MemoryFile>> inputs;
  OutputFolder output;
  std::string outputPath = output.image();
  // -Bsymbolic and -z defs: no symbol comes from elsewhere.
  std::vector<std::string> args{"ld.lld",   "-shared",          "-Bsymbolic",     "-z",
                                "defs",     "-z",               "noexecstack",    "--hash-style=gnu",
                                "--build-id=none", "--threads=1", "-o", outputPath};
  for (const SymbolAlias &alias : aliases)
    args.push_back("--defsym=" + alias.name + "=" + alias.symbol);
  for (std::span<const char> object : objects) {
    inputs.push_back(std::make_unique<MemoryFile>("tressel-object"));
    inputs.back()->write(object);
    args.push_back(inputs.back()->path());
  }
  std::vector<const char *> argv;
  for (const std::string &arg : args)
    argv.push_back(arg.c_str());
  std::string messages;
  llvm::raw_string_ostream out(messages);
  lld::Result result = lld::lldMain(argv, out, out, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    throw InternalError("linking the kernels failed: " + messages);
  return readFile(outputPath);
}

std::vector<char> dataObject(const std::string &symbol, std::span<const std::byte> bytes) {
  llvm::LLVMContext context;
  llvm::Module module("data", context);
  auto define = [&](const std::string &name, llvm::Constant *value, uint64_t alignment) {
    auto *global = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::ExternalLinkage, value, name);
    global->setAlignment(llvm::Align(alignment));
  };
  llvm::Type *byte = llvm::Type::getInt8Ty(context);
  const llvm::StringRef raw(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  define(symbol, llvm::ConstantDataArray::getRaw(raw, bytes.size(), byte), 64);
  define(symbol + "_bytes", llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), bytes.size()), 8);
  const Target target("baseline");
  target.optimize(module);
  return target.object(module);
}

std::vector<std::byte> archiveOf(const std::string &member, std::span<const char> object) {
  std::vector<llvm::NewArchiveMember> members;
  members.emplace_back(llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), member));
  auto made = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
                                         /*Deterministic=*/true, /*Thin=*/false);
  if (!made)
    throw InternalError("making an archive failed: " + llvm::toString(made.takeError()));
  const auto *data = reinterpret_cast<const std::byte *>((*made)->getBufferStart());
  return {data, data + (*made)->getBufferSize()};
}

} // namespace tressel::codegen
