#include "codegen/cuda/target/Target.h"

#include "tressel/runtime/Error.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

namespace tressel::codegen::cuda {
namespace {

constexpr const char *kTriple = "nvptx64-nvidia-cuda";

const llvm::Target &backEnd() {
  static const llvm::Target *target = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    std::string error;
    const llvm::Target *t = llvm::TargetRegistry::lookupTarget(llvm::Triple(kTriple), error);
    if (!t)
      throw InternalError("LLVM has no NVPTX back end: " + error);
    return t;
  }();
  return *target;
}

} // namespace

Target::Target(const Arch &arch) : arch_(arch) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  machine_.reset(backEnd().createTargetMachine(llvm::Triple(kTriple), arch.name, arch.feature, options,
                                               llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine_)
    throw InternalError("LLVM cannot make a target machine for " + std::string(arch.name));
  llvm::vfs::getRealFileSystem(); // every PassBuilder takes a reference to it: made before threads are
}
Target::~Target() = default;

const CpuFeatures &Target::features() {
  static const CpuFeatures features{
      .vectorBytes = 16, .numVectorRegisters = 128, .sse41 = true, .fma = true, .f16c = true, .bf16 = true, .canonicalizes = true};
  return features;
}

void Target::optimize(llvm::Module &module) const {
  module.setTargetTriple(llvm::Triple(kTriple));
  module.setDataLayout(machine_->createDataLayout());
  for (llvm::Function &f : module)
    if (!f.isDeclaration()) {
      f.addFnAttr("target-cpu", arch_.name);
      f.addFnAttr("target-features", arch_.feature);
      f.addFnAttr("no-builtins");
      if (f.getCallingConv() != llvm::CallingConv::PTX_Kernel) {
        f.setLinkage(llvm::GlobalValue::InternalLinkage);
        f.removeFnAttr(llvm::Attribute::NoInline);
        f.addFnAttr(llvm::Attribute::AlwaysInline); // a call costs registers and memory on a GPU
        f.addFnAttr("denormal-fp-math-f32", "dynamic,dynamic"); // the kernel decides
      }
    }
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(module, &out))
    throw InternalError("generated GPU code is malformed: " + problem);

  llvm::TargetLibraryInfoImpl library{llvm::Triple(kTriple)};
  library.disableAllFunctions();
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  llvm::PassBuilder builder(machine_.get(), tuning);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  for (const llvm::Function &f : module)
    if (f.isDeclaration() && !f.isIntrinsic() && !f.use_empty())
      throw InternalError("generated GPU code calls '" + f.getName().str() + "', which nobody defines");
}

std::string Target::ptx(llvm::Module &module) const {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library((llvm::Triple(kTriple)));
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine_->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile))
    throw InternalError("LLVM cannot emit PTX");
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

} // namespace tressel::codegen::cuda
