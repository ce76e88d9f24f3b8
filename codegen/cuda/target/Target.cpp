#include "codegen/cuda/target/Target.h"

#include "codegen/loops/LlvmTarget.h"
#include "tressel/runtime/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/TargetSelect.h"

#include <vector>

namespace tressel::codegen::cuda {
namespace {

/// Arithmetic and comparisons of 16-bit floats become those of f32, which hold both operands and round to the same
/// result. The optimizer makes the narrow ones of what was written with f32; in a kernel whose f32 flushes subnormal
/// numbers the back end then gives them .ftz as well: f16 would lose numbers below 6e-5, and the assembler refuses
/// setp.ftz.bf16.
void widenHalves(llvm::Module &module) {
  auto isHalf = [](const llvm::Value *v) {
    return v->getType()->getScalarType()->isHalfTy() || v->getType()->getScalarType()->isBFloatTy();
  };
  std::vector<llvm::Instruction *> narrow;
  for (llvm::Function &f : module)
    for (llvm::Instruction &i : llvm::instructions(f)) {
      const bool isArithmetic = llvm::is_contained(
          {llvm::Instruction::FAdd, llvm::Instruction::FSub, llvm::Instruction::FMul, llvm::Instruction::FDiv},
          i.getOpcode());
      if ((isArithmetic || llvm::isa<llvm::FCmpInst>(i)) && isHalf(i.getOperand(0)))
        narrow.push_back(&i);
    }
  for (llvm::Instruction *i : narrow) {
    llvm::IRBuilder<> b(i);
    llvm::Type *wide = b.getFloatTy();
    if (const auto *vector = llvm::dyn_cast<llvm::VectorType>(i->getOperand(0)->getType()))
      wide = llvm::VectorType::get(wide, vector->getElementCount());
    llvm::Value *left = b.CreateFPExt(i->getOperand(0), wide), *right = b.CreateFPExt(i->getOperand(1), wide);
    llvm::Value *result = nullptr;
    if (const auto *compare = llvm::dyn_cast<llvm::FCmpInst>(i))
      result = b.CreateFCmp(compare->getPredicate(), left, right);
    else
      result = b.CreateFPTrunc(b.CreateBinOp(static_cast<llvm::Instruction::BinaryOps>(i->getOpcode()), left, right),
                               i->getType());
    i->replaceAllUsesWith(result);
    i->eraseFromParent();
  }
}

} // namespace

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
  widenHalves(module);
  for (const llvm::Function &f : module)
    if (f.isDeclaration() && !f.isIntrinsic() && !f.use_empty())
      throw InternalError("generated GPU code calls '" + f.getName().str() + "', which nobody defines");
}

std::string Target::ptx(llvm::Module &module) const {
  const llvm::SmallVector<char, 0> bytes = emitModule(*machine_, module, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.begin(), bytes.end()};
}

} // namespace tressel::codegen::cuda
