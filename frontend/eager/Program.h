// Imperative ops that are no single kernel: products, convolutions, attention, sorts. Each is a program of one op, made
// by the pipeline like any other.
//
// The first call of a class has a program for its very sizes, since most programs use one size again and again, and
// code for it is best. When another size comes, a program for all sizes of the class serves it and the ones after; what
// is then called often gets a program of its own again, compiled in the background while the general one serves.
#pragma once

#include "frontend/trace/Program.h"
#include "frontend/eager/Class.h"
#include "frontend/eager/Kernel.h"
#include "tressel/runtime/Dim.h"

#include <memory>
#include <span>

namespace tressel::eager {

/// A program of one op, compiled when it is first needed.
class OpProgram : public Compiled {
public:
  /// Types may have symbolic sizes. `where`: the first call, for errors of the compiler.
  OpProgram(codegen::OpCall call, SourceLoc where) : call_(std::move(call)), where_(where) {}
  /// Once ready.
  detail::Program &program() const { return *program_; }
  bool isSymbolic() const { return !call_.symbols.empty(); }

protected:
  void compile() override;

private:
  const codegen::OpCall call_;
  const SourceLoc where_;
  std::shared_ptr<detail::Program> program_;
};

/// All programs of one class.
class ProgramClass;

/// What a caller remembers of calls of equal types. Of one thread.
class ProgramCall {
public:
  ProgramCall(std::shared_ptr<ProgramClass> programs, codegen::OpCall exact, dim::Values sizes);
  /// The one to use for this call; perhaps not compiled yet.
  const std::shared_ptr<OpProgram> &choose(SourceLoc where);

  /// Runs `program` once it is compiled; if it is for all sizes and cannot be compiled, one for these sizes.
  class Task {
  public:
    int32_t operator()(const runtime::TaskView &task) const;

  private:
    friend class ProgramCall;
    std::shared_ptr<OpProgram> program_;
    std::shared_ptr<ProgramClass> programs_;
    codegen::OpCall exact_;
    dim::Values sizes_;
  };
  Task task(std::shared_ptr<OpProgram> program) const;

private:
  /// Calls after which a program for all sizes is replaced.
  static constexpr uint32_t kOften = 16;
  const std::shared_ptr<ProgramClass> programs_;
  const codegen::OpCall exact_;
  const dim::Values sizes_;                     ///< of the class's symbols
  std::shared_ptr<OpProgram> current_, wanted_; ///< wanted_: compiled in the background, to be used next
  uint32_t calls_ = 0;
};

/// `exact` is the call with its own sizes. Without classes it shares nothing with calls of other sizes.
std::unique_ptr<ProgramCall> findPrograms(const codegen::OpCall &exact, std::span<const Classified> classes);
void clearPrograms();

} // namespace tressel::eager
