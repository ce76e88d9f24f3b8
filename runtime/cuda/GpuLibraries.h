// Which of NVIDIA's libraries are there, for listings. What calls one of them opens it by itself (CublasLt.h).
#pragma once

#include "tressel/runtime/GpuCode.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// "13.1.0" for 130100.
std::string versionText(size_t version);
/// A function of a library that is being opened.
using FindSymbol = std::function<void *(const char *name)>;
/// Opens a file that the loader finds, and has `resolve` ask for all functions. Returns what is wrong; empty if nothing
/// is. It stays open.
std::string openLibrary(const char *file, const std::function<void(const FindSymbol &)> &resolve);
/// cuBLASLt, cuDNN, NCCL, nvJitLink. Opens those that the loader finds.
std::vector<GpuLibrary> listLibraries();

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
