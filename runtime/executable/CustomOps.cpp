#include "tressel/runtime/CustomOp.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <memory>
#include <mutex>
#include <string_view>

namespace tressel::runtime {
namespace {

/// Whether the name is like "acme.cube": two or more parts of letters, digits and '_', with dots between.
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

struct Ops {
  std::mutex mutex;
  std::vector<std::unique_ptr<const CustomOp>> list;
};
/// Created at first use: libraries register ops before main.
Ops &ops() {
  static Ops &instance = *new Ops();
  return instance;
}

} // namespace

const CustomOp &registerCustomOp(CustomOp op) {
  auto fail = [&](const std::string &message) { throw Error({.message = message, .op = op.name}); };
  if (!isQualifiedName(op.name))
    fail(concat("the name '", op.name, "' of a custom op must be like acme.cube: letters, digits and '_', with a dot"));
  if (!op.infer)
    fail("has no shape inference");
  if (op.symbol.empty())
    fail("names no symbol of a kernel");
  if (op.minInputs < 0 || op.maxInputs < op.minInputs || op.numResults < (op.hasEffects ? 0 : 1) || op.grain < 1)
    fail("is registered with impossible numbers of operands, results or units");
  std::lock_guard lock(ops().mutex);
  for (const auto &other : ops().list)
    if (other->name == op.name)
      fail("is registered already");
  if (op.kernel)
    registerCustomKernel(op.symbol, op.kernel);
  return *ops().list.emplace_back(std::make_unique<const CustomOp>(std::move(op)));
}

std::vector<const CustomOp *> customOps() {
  std::lock_guard lock(ops().mutex);
  std::vector<const CustomOp *> list;
  for (const auto &op : ops().list)
    list.push_back(op.get());
  return list;
}

} // namespace tressel::runtime
