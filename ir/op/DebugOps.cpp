// debug_print and assert_true as custom ops: the compiler's side. Their kernels are in
// runtime/kernels/DebugKernels.cpp, so that packages with these ops only need the runtime's libraries.
#include "ir/op/CustomOp.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::op {

void registerDebugOps() {
  using runtime::CustomOp;
  CustomOp print;
  print.name = "debug.print";
  print.summary = "prints a tensor on standard error when the program runs";
  print.symbol = "tressel_debug_print";
  print.attrs = {{"label", std::string()}};
  print.infer = [](auto, const auto &) { return std::vector<TensorType>(); };

  CustomOp check;
  check.name = "debug.assert";
  check.summary = "fails, when the program runs, if its operand is false";
  check.symbol = "tressel_debug_assert";
  check.attrs = {{"message", std::string("the assertion does not hold")}};
  check.infer = [](CustomOp::Types in, const auto &) {
    if (in[0].dtype != DType::boolean || dim::numElements(in[0].shape) != 1)
      throw ShapeError("needs one bool");
    return std::vector<TensorType>();
  };

  for (CustomOp *op : {&print, &check}) {
    op->numResults = 0;
    op->hasEffects = true;
    // A process may contain this code twice: in a program, and in a library that it loads.
    if (std::ranges::none_of(runtime::customOps(), [&](const CustomOp *known) { return known->name == op->name; }))
      runtime::registerCustomOp(std::move(*op));
  }
}

} // namespace tressel::op
