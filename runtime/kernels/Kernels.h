// The library's entry: the provider "builtin" of the runtime.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <exception>
#include <initializer_list>

#include "tressel/runtime/Kernel.h"

#include <optional>

namespace tressel::kernels {

/// Makes the provider known to the runtime, for programs that link the library; the runtime finds it itself for packages
/// that name it. Safe to call again.
void registerKernels();

/// What a maker checks of a description against its own. Each throws InputError.
void checkOperands(const runtime::KernelDesc &desc, std::initializer_list<int32_t> operands); ///< numbers of inputs; below 0: none
void checkScratch(const runtime::KernelDesc &desc, Size needed);                              ///< if both are numbers

/// Kernels never throw: where `fn` does, for a size that no number can be, it is a status.
template <typename Fn> int32_t statusOf(Fn &&fn) {
  try {
    fn();
    return runtime::kKernelOk;
  } catch (const std::exception &) {
    return runtime::kKernelLibraryFailed;
  }
}

/// The numbers of a description without symbols, which calls need not evaluate.
template <typename Params> auto fixedNumbers(const Params &params) {
  return params.symbols.empty() ? std::optional(params.at(nullptr)) : std::nullopt;
}

} // namespace tressel::kernels

/// What the runtime looks for in the library.
extern "C" const tressel::runtime::KernelFactory tressel_kernel_factory;
