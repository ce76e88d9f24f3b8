// What both back ends, x86-64 and NVPTX, do with LLVM: finding it, verifying modules, analyses for passes, emission.
#pragma once

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <optional>
#include <string>

namespace tressel::codegen {

/// What a target machine is made from.
struct LlvmTargetOptions {
  const char *triple = nullptr; ///< whose back end is registered (LLVMInitialize...)
  std::string core, features = {};
  std::optional<llvm::CodeModel::Model> codeModel = {};
  llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default;
};
/// Throws InternalError where LLVM lacks the back end or the core.
std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const LlvmTargetOptions &options);

/// Sets the triple and layout of the machine. The functions' attributes come next, then `verifyModule`.
void setTarget(llvm::Module &module, const llvm::TargetMachine &machine);
/// Throws InternalError, with LLVM's reason, when the code is malformed. `what`: "GPU code".
void verifyModule(const llvm::Module &module, const char *what);

/// The analyses of one run of passes over a module. Generated code calls no library's functions.
struct Analyses {
  explicit Analyses(llvm::TargetMachine &machine, const llvm::PipelineTuningOptions &tuning = {});
  llvm::TargetLibraryInfoImpl library;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
};

/// The bytes of an object file, or the text of assembly, of an optimized module, which is changed.
llvm::SmallVector<char, 0> emitModule(llvm::TargetMachine &machine, llvm::Module &module, llvm::CodeGenFileType kind);

} // namespace tressel::codegen
