// The entry of the library: the provider "builtin" of the runtime.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <exception>
#include <initializer_list>

#include "tressel/runtime/Kernel.h"

#include <optional>

namespace tressel::kernels {

/// Registers the provider with the runtime, for programs that link this library. For packages the runtime loads the
/// library itself. May be called again.
void registerKernels();

/// Checks of a kernel description against the library's own parameters. Each throws InputError.
/// numbers of inputs; negative: absent
void checkOperands(const runtime::KernelDesc &desc, std::initializer_list<int32_t> operands);
/// only if both are numbers
void checkScratch(const runtime::KernelDesc &desc, Size needed);

/// Kernels must not throw: turns an exception of `fn`, for a size that is no valid number, into a status.
template <typename Fn> int32_t statusOf(Fn &&fn) {
  try {
    fn();
    return runtime::kKernelOk;
  } catch (const std::exception &) {
    return runtime::kKernelLibraryFailed;
  }
}

/// The numbers of a description without symbols, computed once instead of at each call.
template <typename Params> auto fixedNumbers(const Params &params) {
  return params.symbols.empty() ? std::optional(params.at(nullptr)) : std::nullopt;
}

} // namespace tressel::kernels

/// The symbol that the runtime looks up in the library.
extern "C" const tressel::runtime::KernelFactory tressel_kernel_factory;
