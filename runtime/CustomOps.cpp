#include "tressel/runtime/CustomOp.h"

#include "tressel/runtime/Error.h"

#include <deque>
#include <mutex>
#include <string_view>

namespace tressel::runtime {
namespace {

/// "acme.cube": parts of letters, digits and '_' with dots between, two at least.
bool isQualifiedName(std::string_view name) {
  bool dotted = false, start = true;
  for (char c : name) {
    if (c == '.') {
      if (start)
        return false;
      dotted = start = true;
      continue;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (start || c < '0' || c > '9'))
      return false;
    start = false;
  }
  return dotted && !start;
}

/// What debug_print and assert_true are made of; their kernels are in DebugKernels.cpp.
std::vector<CustomOp> debugOps() {
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
    if (in[0].dtype != DType::boolean || in[0].shape.numElements() != 1)
      throw ShapeError("needs one bool");
    return std::vector<TensorType>();
  };

  std::vector<CustomOp> ops{std::move(print), std::move(check)};
  for (CustomOp &op : ops) {
    op.numResults = 0;
    op.hasEffects = true;
  }
  return ops;
}

struct Ops {
  std::mutex mutex;
  std::deque<CustomOp> list;

  Ops() {
    for (CustomOp &op : debugOps())
      list.push_back(std::move(op));
  }
};
/// Made at first use: libraries register before main.
Ops &ops() {
  static Ops &instance = *new Ops();
  return instance;
}

} // namespace

const CustomOp &registerCustomOp(CustomOp op) {
  auto fail = [&](const std::string &message) { throw Error({.message = message, .op = op.name}); };
  if (!isQualifiedName(op.name))
    fail("the name '" + op.name + "' of a custom op must be like acme.cube: letters, digits and '_', with a dot");
  if (!op.infer)
    fail("has no shape inference");
  if (op.symbol.empty())
    fail("names no symbol of a kernel");
  if (op.minInputs < 0 || op.maxInputs < op.minInputs || op.numResults < (op.hasEffects ? 0 : 1) || op.grain < 1)
    fail("is registered with impossible numbers of operands, results or units");
  std::lock_guard lock(ops().mutex);
  for (const CustomOp &other : ops().list)
    if (other.name == op.name)
      fail("is registered already");
  if (op.kernel)
    registerCustomKernel(op.symbol, op.kernel);
  return ops().list.emplace_back(std::move(op));
}

std::vector<const CustomOp *> customOps() {
  std::lock_guard lock(ops().mutex);
  std::vector<const CustomOp *> list;
  for (const CustomOp &op : ops().list)
    list.push_back(&op);
  return list;
}

} // namespace tressel::runtime
