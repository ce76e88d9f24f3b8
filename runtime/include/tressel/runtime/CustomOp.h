// Ops of a user's: what the compiler and the eager path need to know of them, and the list of all. A library that
// registers its ops here when it is loaded needs nothing of Tressel but the runtime, and `tressel run --load-library`
// finds them. In programs that use the frontend, `register_op` (tressel/custom_op.h) is the comfortable way.
//
//   static const bool registered = (tressel::runtime::registerCustomOp({
//       .name = "acme.cube", .symbol = "acme_cube", .kernel = acme_cube,
//       .infer = [](auto in, const auto &) { return std::vector{in[0]}; }}), true);
#pragma once

#include "tressel/runtime/CustomKernels.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tressel::runtime {

struct CustomOp {
  using Types = std::span<const TensorType>;
  using Attrs = std::vector<CustomAttr>; ///< those of the registration, with the values of the call

  /// With a dot, so that no name of Tressel's is taken: "acme.cube".
  std::string name;
  std::string summary = "a custom op";
  /// The kernel's exported name, which packages record, and the file that has it, for messages.
  std::string symbol, library = {};
  tressel_kernel kernel = nullptr; ///< null: looked up by symbol when it is needed
  int minInputs = 1, maxInputs = 1;
  int numResults = 1; ///< 0 only with effects
  Attrs attrs = {};   ///< with their defaults
  /// It does more than compute its results: calls are never removed, merged or put in another order.
  bool hasEffects = false;

  /// Result types. Throws Error when operands do not fit: its message is shown with op, operands and line.
  std::function<std::vector<TensorType>(Types, const Attrs &)> infer;
  /// Units of work that may run in parallel, and the fewest worth a task. Null: one unit.
  std::function<Size(Types operands, Types results, const Attrs &)> range = {};
  int64_t grain = 1;
  /// Bytes of scratch memory per thread. Null: none.
  std::function<Size(Types operands, Types results, const Attrs &)> scratch = {};
  /// Floating-point operations of a call, by which plans and predictions price it, with the bytes of its operands and
  /// results. Null: by those alone.
  std::function<Size(Types operands, Types results, const Attrs &)> flops = {};
};

/// Makes the op known to this process, for good. Throws Error when the name is taken or malformed, or the description
/// incomplete. The reference stays valid.
const CustomOp &registerCustomOp(CustomOp op);
/// In the order of registration. Tressel's own (debug.print, debug.assert) are among them where the compiler is.
std::vector<const CustomOp *> customOps();

} // namespace tressel::runtime
