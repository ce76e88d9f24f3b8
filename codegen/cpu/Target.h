// LLVM's x86-64 back end: instruction-set levels, the few passes generated code needs, object code and assembly.
#pragma once

#include "codegen/loops/ScalarEmitter.h"
#include "tressel/runtime/Cpu.h"

#include "llvm/IR/Module.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
}

namespace tressel::codegen {

class Target {
public:
  /// "baseline", "v3", "v4", or "native": the host's level, scheduled for the host's own core. `quick`: the same kernels in
  /// code that LLVM makes quickly rather than well. Throws Error.
  explicit Target(const std::string &cpu, bool quick = false);
  ~Target();
  Target(const Target &) = delete;

  runtime::CpuLevel level() const { return level_; }
  const CpuFeatures &features() const { return features_; }
  /// Names the machine code's kind; equal keys and equal plans give equal code.
  const std::string &key() const { return key_; }
  bool quick() const { return quick_; }

  /// Sets triple, layout and the functions' target attributes, verifies and optimizes. Throws InternalError.
  void optimize(llvm::Module &module) const;
  /// The same for code that was compiled from C++: everything is inlined, and loops are specialized and vectorized
  /// (unless `quick`).
  void optimizeLinked(llvm::Module &module) const;
  /// Of an optimized module.
  std::vector<char> object(llvm::Module &module) const;
  std::string assembly(llvm::Module &module) const;

private:
  /// Triple, layout, attributes; throws InternalError when the code is malformed.
  void prepare(llvm::Module &module) const;

  std::string core_, key_;
  bool quick_;
  runtime::CpuLevel level_;
  CpuFeatures features_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

} // namespace tressel::codegen
