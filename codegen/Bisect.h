// Finds out what makes a compiled program differ from the interpreter: the first pass that changes results, or else the
// first kernel whose code does not compute what its body says, or else how they are put together. `tressel bisect`.
#pragma once

#include "codegen/Compile.h"
#include "ir/op/OpInfo.h"
#include "tressel/runtime/Device.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tressel::codegen {

struct BisectOptions {
  std::string cpu = "native";
  std::shared_ptr<runtime::Machine> machine; ///< what the program runs on; null: the processor
  std::string gpu;                          ///< the architecture whose kernels are emulated on its accelerators; empty: the processor's own
  bool allowLibrary = true;
  /// Values for @main's arguments, in order. Random ones make no sense for every program, so they are the caller's.
  std::vector<op::HostTensor> inputs;
  std::optional<double> rtol, atol; ///< of floats; neither: what a chain of a few dozen ops may differ by. One alone: the other is 0
  std::function<void(const std::string &)> progress;
  /// As CompileOptions::afterPass: how tests plant a fault.
  std::function<llvm::LogicalResult(mlir::ModuleOp, llvm::StringRef pass)> afterPass;
};

struct BisectReport {
  enum class Kind {
    Agrees,      ///< compiled and interpreted give the same
    CannotRun,   ///< it does not compile, or fails while it runs
    Pass,        ///< `culprit` is a pass
    Kernel,      ///< `culprit` is a kernel, made by `provider`
    Combination, ///< passes and kernels are right one by one: memory, order or the runtime
  };
  Kind kind = Kind::Agrees;
  std::string culprit, provider;
  std::string difference;             ///< of the whole program: the first result that differs, and how
  std::string ops;                    ///< that are left in the reproducer: "add, exp"
  std::string where;                  ///< the user's line of the first of them, may be empty
  std::string reproducer;             ///< MLIR text of a small program that still shows it; empty if it agrees
  std::vector<op::HostTensor> inputs; ///< of the reproducer
};

/// `module` holds one func.func @main in the graph dialect, of known sizes; it stays. Throws Error when the program
/// cannot be interpreted, or names a device that the machine does not have.
BisectReport bisect(mlir::ModuleOp module, const BisectOptions &options);

} // namespace tressel::codegen
