// Parts of the runtime that are separate libraries beside libtressel_runtime.so, opened at first use.
#pragma once

#include <string>

namespace tressel::runtime {

/// The path of such a library: "tressel_cuda" is libtressel_cuda.so in the folder of this library, with this library's
/// version suffix if that has one.
std::string libraryFile(const std::string &name);
/// Opens it for the life of the process. Null if that fails; `why` then receives the loader's message.
void *openLibrary(const std::string &name, std::string *why = nullptr);
/// A symbol of the library. Throws InputError, which names what needs the library, its file, and the fault. `neededBy`:
/// "the machine 'cuda'".
const void *libraryEntry(const std::string &name, const char *symbol, const std::string &neededBy);

} // namespace tressel::runtime
