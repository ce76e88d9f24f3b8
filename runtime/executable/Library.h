// Parts of the runtime that are libraries of their own, opened when something first needs them. They lie beside libtressel_runtime.so.
#pragma once

#include <string>

namespace tressel::runtime {

/// The file of such a library: "tressel_cuda" is libtressel_cuda.so in this library's folder, with the version of this one behind it where that has
/// one.
std::string libraryFile(const std::string &name);
/// Opens it, for as long as the process lives. Null where there is none; `why` then is what the system says of it.
void *openLibrary(const std::string &name, std::string *why = nullptr);
/// A symbol of it. Throws InputError, which says what needs the library, its file, and what is wrong with it. `neededBy`: "the machine 'cuda'".
const void *libraryEntry(const std::string &name, const char *symbol, const std::string &neededBy);

} // namespace tressel::runtime
