// LLVM's NVPTX back end: from the LLVM IR of kernels to PTX, in process.
#pragma once

#include "codegen/loops/ScalarEmitter.h"
#include "codegen/cuda/target/Arch.h"

#include "llvm/IR/Module.h"

#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
}

namespace tressel::codegen::cuda {

/// LLVM's address spaces of NVPTX.
enum AddressSpace : unsigned { kGlobal = 1, kShared = 3, kSharedCluster = 7 };

class Target {
public:
  explicit Target(const Arch &arch);
  ~Target();
  Target(const Target &) = delete;

  const Arch &arch() const { return arch_; }
  /// For ScalarEmitter and Math: fused multiply-adds, rounding and conversions of f16 are instructions.
  static const CpuFeatures &features();

  /// Sets triple and layout, verifies, inlines everything into the kernels and optimizes. Throws InternalError for
  /// malformed code, and where a function is left that nobody defines.
  void optimize(llvm::Module &module) const;
  /// Of an optimized module, which is changed.
  std::string ptx(llvm::Module &module) const;

private:
  const Arch &arch_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

} // namespace tressel::codegen::cuda
