// Imperative ops that are no single kernel: products, convolutions, attention, sorts. Each is a compiled function of
// one op, made by the usual pipeline.
//
// The first call of a class compiles a function for its exact sizes: most programs repeat one size, and such code is
// fastest. When another size comes, a function for all sizes serves it and later ones. Sizes that recur get a function
// of their own again, compiled in the background while the general one serves.
#pragma once

#include "frontend/trace/CompiledFunction.h"
#include "frontend/eager/Class.h"
#include "frontend/eager/Kernel.h"
#include "tressel/runtime/Dim.h"

#include <memory>
#include <span>

namespace tressel::eager {

/// A compiled function of one op, made when it is first needed.
class EagerFunction : public Compiled {
public:
  /// Types may have symbolic sizes. `where`: the first call, for errors of the compiler.
  EagerFunction(codegen::OpCall call, SourceLoc where) : call_(std::move(call)), where_(where) {}
  /// Valid once ready().
  detail::CompiledFunction &function() const { return *function_; }
  bool isSymbolic() const { return !call_.symbols.empty(); }

protected:
  void compile() override;

private:
  const codegen::OpCall call_;
  const SourceLoc where_;
  std::shared_ptr<detail::CompiledFunction> function_;
};

/// All functions of one class.
class EagerFunctionClass;

/// A caller's cache for calls of equal types. Used by one thread.
class EagerFunctionCall {
public:
  EagerFunctionCall(std::shared_ptr<EagerFunctionClass> functions, codegen::OpCall exact, dim::Values sizes);
  /// The function to use for this call; it may not be compiled yet.
  const std::shared_ptr<EagerFunction> &choose(SourceLoc where);

  /// Runs `function` once it is compiled. If it is for all sizes and fails to compile, runs one for these sizes.
  class Task {
  public:
    int32_t operator()(const runtime::TaskView &task) const;

  private:
    friend class EagerFunctionCall;
    std::shared_ptr<EagerFunction> function_;
    std::shared_ptr<EagerFunctionClass> functions_;
    codegen::OpCall exact_;
    dim::Values sizes_;
  };
  Task task(std::shared_ptr<EagerFunction> function) const;

private:
  /// Calls after which a function for all sizes is replaced.
  static constexpr uint32_t kOften = 16;
  const std::shared_ptr<EagerFunctionClass> functions_;
  const codegen::OpCall exact_;
  const dim::Values sizes_;                         ///< of the class's symbols
  std::shared_ptr<EagerFunction> current_, wanted_; ///< wanted_: compiled in the background, to replace current_
  uint32_t calls_ = 0;
};

/// `exact` is the call with its own sizes. Without `classes`, calls of other sizes share nothing with it.
std::unique_ptr<EagerFunctionCall> findEagerFunctions(const codegen::OpCall &exact, std::span<const Classified> classes);
void clearEagerFunctions();

} // namespace tressel::eager
