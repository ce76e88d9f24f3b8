// Which compiler this is, for what is kept beyond the process.
#pragma once

#include <string>

namespace tressel::codegen {

/// Compilers of equal ids make equal code of equal kernels: a hash of the sources that decide it, and LLVM's version and
/// build. Not of where, when or into which program they were built, so that all programs share what one compiled.
const std::string &compilerId();

} // namespace tressel::codegen
