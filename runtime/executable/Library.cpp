#include "runtime/executable/Library.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <dlfcn.h>

namespace tressel::runtime {

std::string libraryFile(const std::string &name) {
  Dl_info self;
  if (!dladdr(reinterpret_cast<const void *>(&libraryFile), &self) || !self.dli_fname)
    return concat("lib", name, ".so");
  std::string path = self.dli_fname; // libtressel_runtime.so, with a version suffix where it is installed
  const size_t folder = path.rfind('/') + 1, version = path.find(".so", folder);
  return concat(path.substr(0, folder), "lib", name, version == path.npos ? ".so" : path.substr(version));
}

void *openLibrary(const std::string &name, std::string *why) {
  void *library = dlopen(libraryFile(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library && why)
    *why = dlerror();
  return library;
}

const void *libraryEntry(const std::string &name, const char *symbol, const std::string &neededBy) {
  std::string why;
  void *library = openLibrary(name, &why);
  const void *entry = library ? dlsym(library, symbol) : nullptr;
  if (!entry)
    throwError<InputError>(neededBy, " needs ", libraryFile(name), library ? ", which is of another version" : ", which cannot be opened: ", why);
  return entry;
}

} // namespace tressel::runtime
