// A function of the graph dialect as calls of the frontend's ops: they run at once, or join the program that is being traced, with
// gradients either way. So what an importer made becomes part of a user's function.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <tressel/control.h>
#include <tressel/scope.h>

#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace tressel::detail {

/// Holds no MLIR, so the function may be destroyed. Immutable, so that threads share one.
class Replay {
public:
  /// A function of one block of ops of the graph dialect, without structure (clusters, kernels).
  explicit Replay(mlir::func::FuncOp function);
  ~Replay();
  Replay(const Replay &) = delete;
  Replay &operator=(const Replay &) = delete;

  /// The function's results. `arguments` have its argument types; those that no op uses may be undefined. `where` is the line of all ops.
  /// An op that fails says the name that its location has (mlir::NameLoc), as a module of the user's.
  std::vector<Tensor> operator()(std::span<const Tensor> arguments, const std::source_location &where) const;

private:
  struct Step;
  struct Body;
  static Body bodyOf(mlir::Block &block);
  static std::vector<Tensor> run(const Body &body, std::span<const Tensor> arguments, const std::source_location &where);
  static std::vector<Tensor> runControl(const Step &step, std::span<const Tensor> operands, const std::source_location &where);

  std::unique_ptr<Body> body_;
};

} // namespace tressel::detail
