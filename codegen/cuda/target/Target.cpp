#include "codegen/cuda/target/Target.h"

#include "codegen/loops/LlvmTarget.h"
#include "tressel/runtime/Error.h"

#include "llvm/Support/TargetSelect.h"

namespace tressel::codegen::cuda {

Target::Target(const Arch &arch) : arch_(arch) {
  static const bool registered = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)registered;
  machine_ = makeTargetMachine({.triple = "nvptx64-nvidia-cuda",
                                .core = std::string(arch.name),
                                .features = std::string(arch.feature),
                                .level = llvm::CodeGenOptLevel::Aggressive});
}
Target::~Target() = default;

const CpuFeatures &Target::features() {
  static const CpuFeatures features{
      .vectorBytes = 16, .numVectorRegisters = 128, .sse41 = true, .fma = true, .f16c = true, .bf16 = true, .canonicalizes = true};
  return features;
}

void Target::optimize(llvm::Module &module) const {
  setTarget(module, *machine_);
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
  verifyModule(module, "GPU code");
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  Analyses analyses(*machine_, tuning);
  analyses.builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, analyses.modules);
  for (const llvm::Function &f : module)
    if (f.isDeclaration() && !f.isIntrinsic() && !f.use_empty())
      throw InternalError("generated GPU code calls '" + f.getName().str() + "', which nobody defines");
}

std::string Target::ptx(llvm::Module &module) const {
  const llvm::SmallVector<char, 0> bytes = emitModule(*machine_, module, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.begin(), bytes.end()};
}

} // namespace tressel::codegen::cuda
