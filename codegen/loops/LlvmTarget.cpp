#include "codegen/loops/LlvmTarget.h"

#include "tressel/runtime/Error.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

namespace tressel::codegen {

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const LlvmTargetOptions &o) {
  const llvm::Triple triple(o.triple);
  std::string error;
  const llvm::Target *backEnd = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backEnd)
    throw InternalError("LLVM has no back end for " + triple.str() + ": " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine(
      backEnd->createTargetMachine(triple, o.core, o.features, options, llvm::Reloc::PIC_, o.codeModel, o.level));
  if (!machine)
    throw InternalError("LLVM cannot make a target machine for " + o.core);
  // Each PassBuilder takes a reference to it. It is made here, before threads are, so that a checker of races sees who made it.
  llvm::vfs::getRealFileSystem();
  return machine;
}

void setTarget(llvm::Module &module, const llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

void verifyModule(const llvm::Module &module, const char *what) {
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(module, &out))
    throw InternalError(std::string("generated ") + what + " is malformed: " + problem);
}

Analyses::Analyses(llvm::TargetMachine &machine, const llvm::PipelineTuningOptions &tuning)
    : library(machine.getTargetTriple()), builder(&machine, tuning) {
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
}

llvm::SmallVector<char, 0> emitModule(llvm::TargetMachine &machine, llvm::Module &module, llvm::CodeGenFileType kind) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine.addPassesToEmitFile(passes, out, nullptr, kind))
    throw InternalError("LLVM cannot emit code for " + machine.getTargetTriple().str());
  passes.run(module);
  return bytes;
}

} // namespace tressel::codegen
