#include "passes/graph/TurningPoint.h"

#include "passes/Util.h"
#include "passes/schedule/IssueOrder.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tressel::passes {

/// The last place where a value is read, directly or through its views.
static size_t lastUse(Value value, const llvm::DenseMap<Operation *, size_t> &placeOf) {
  size_t last = 0;
  for (Operation *user : value.getUsers())
    if (auto at = placeOf.find(user); at != placeOf.end())
      last = std::max({last, at->second, isView(user) ? lastUse(user->getResult(0), placeOf) : 0});
  return last;
}

std::optional<size_t> turningPointOf(Block &block, const llvm::DenseSet<Value> &parameterOnly, int64_t minBytes) {
  llvm::DenseMap<Operation *, size_t> placeOf;
  for (Operation &op : block.without_terminator())
    placeOf[&op] = placeOf.size();
  constexpr size_t kLeastSpan = 8, kShare = 20;
  const size_t longSpan = std::max(kLeastSpan, placeOf.size() / kShare);
  std::vector<int64_t> change(placeOf.size() + 1, 0);
  size_t place = 0;
  for (Operation &op : block.without_terminator()) {
    if (!isView(&op) && !matchPattern(&op, m_Constant()))
      for (Value result : op.getResults())
        if (const size_t last = lastUse(result, placeOf); !parameterOnly.contains(result) && last >= place + longSpan) {
          change[place + 1] += bytesOf(result.getType());
          change[last + 1] -= bytesOf(result.getType());
        }
    ++place;
  }
  int64_t now = 0, most = 0;
  size_t turn = 0;
  for (size_t i = 0; i < change.size(); ++i)
    if (now += change[i]; now > most) {
      most = now;
      turn = i;
    }
  return turn > 0 && most >= minBytes ? std::optional(turn) : std::nullopt;
}

} // namespace tressel::passes
