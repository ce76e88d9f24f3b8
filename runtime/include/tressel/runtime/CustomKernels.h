// Kernels that come from outside of Tressel: found by symbol when a schedule that names them is loaded.
//
// A symbol is looked up among those registered here, then in the program and the libraries it has loaded (dlsym), then
// in the libraries that TRESSEL_LIBRARIES names (paths with ':' between them, loaded at the first need). A package
// never loads a library by itself, but for libtressel_kernels.so, which has the symbols that begin with tressel_.
#pragma once

#include "tressel/runtime/Types.h"
#include "tressel/runtime/custom_kernel.h"

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace tressel::runtime {

/// Makes the kernel known under `symbol`, in place of an earlier one of that name.
void registerCustomKernel(std::string symbol, tressel_kernel kernel);
/// Null if there is none.
tressel_kernel findCustomKernel(const std::string &symbol);
/// Loads a shared library, for good: its kernels are found by their symbols, and what it registers when it is loaded is
/// registered. Throws InputError.
void loadCustomLibrary(const std::string &path);

/// The provider of such kernels in KernelDesc::provider.
inline constexpr char kCustomProvider[] = "custom";

/// An attribute's value as the kernel gets it.
struct CustomAttr {
  std::string name;
  std::variant<int64_t, double, std::string, std::vector<int64_t>> value;
};

/// What a launch of a custom kernel says of it: KernelDesc::params holds this as JSON.
struct CustomCall {
  std::string op;                   ///< "acme.cube"
  std::string symbol;               ///< "acme_cube"
  std::string library;              ///< where the symbol is from, for messages; may be empty
  std::vector<TensorType> operands; ///< inputs, then results
  int32_t numInputs = 0;
  /// Which buffer of the launch each operand is: a launch names an operand that is used twice once. Empty: in order.
  std::vector<int32_t> buffers;
  std::vector<CustomAttr> attrs;
  int64_t scratchBytes = 0;
  /// Units of work. A launch has one even where this is 0: the kernel is then called with none, as its results may have
  /// elements.
  int64_t range = 1;
  /// The sizes are symbolic, and the op's functions (CustomOp::range, scratch) are asked when they are known: one unit
  /// does all the work. The op must be registered in the process that runs it.
  bool countsLater = false;

  std::string toJson() const;
  /// Throws InputError when the text is not what toJson writes.
  static CustomCall fromJson(const std::string &text);
};

/// Runs a kernel on tensors in memory, units [begin, end). `scratch` has call.scratchBytes bytes. The error is one
/// line, empty when the kernel returned 0.
std::string callCustomKernel(tressel_kernel kernel, const CustomCall &call, std::span<void *const> buffers,
                             void *scratch, int64_t begin, int64_t end);

} // namespace tressel::runtime
