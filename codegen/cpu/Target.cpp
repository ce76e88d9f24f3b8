#include "codegen/cpu/Target.h"

#include "codegen/loops/LlvmTarget.h"
#include "tressel/runtime/Error.h"

#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

namespace tressel::codegen {
namespace {

constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

const char *coreOf(runtime::CpuLevel level) {
  switch (level) {
  case runtime::CpuLevel::Baseline:
    return "x86-64";
  case runtime::CpuLevel::V3:
    return "x86-64-v3";
  case runtime::CpuLevel::V4:
    return "x86-64-v4";
  }
  return "x86-64";
}

} // namespace

Target::Target(const std::string &cpu, bool quick) : quick_(quick) {
  if (cpu == "native")
    level_ = runtime::hostCpuLevel();
  else if (!runtime::parseCpuLevel(cpu, level_))
    throw Error({.message = "unknown CPU level '" + cpu + "'", .hint = "use baseline, v3, v4 or native"});
  // The image's level is all that a loader checks, so "native" must not use more than the level has.
  core_ = coreOf(level_);
  key_ = core_ + (quick ? " quick" : "");
  if (level_ >= runtime::CpuLevel::V3)
    features_ = {.level = level_, .vectorBytes = 32, .numVectorRegisters = 16, .sse41 = true, .fma = true, .f16c = true};
  if (level_ == runtime::CpuLevel::V4)
    features_ = {.level = level_, .vectorBytes = 64, .numVectorRegisters = 32, .sse41 = true, .fma = true, .f16c = true, .avx512 = true};
  static const bool registered = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)registered;
  machine_ = makeTargetMachine({.triple = kTriple,
                                .core = core_,
                                .codeModel = llvm::CodeModel::Small,
                                .level = quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default});
}

Target::~Target() = default;

void Target::prepare(llvm::Module &module) const {
  setTarget(module, *machine_);
  module.setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &f : module) {
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", core_);
    f.addFnAttr("prefer-vector-width", std::to_string(features_.vectorBytes * 8));
    f.addFnAttr("no-builtins");
    f.addFnAttr("frame-pointer", "none");
  }
  verifyModule(module, "code");
}

void Target::optimize(llvm::Module &module) const {
  prepare(module);
  Analyses analyses(*machine_);
  // Loops are already in their final form, so what is left is to clean up: accumulators into registers, common
  // subexpressions, addresses out of loops.
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::EarlyCSEPass());
  if (!quick_) {
    passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setMaxIterations(1)));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  }
  for (llvm::Function &f : module)
    if (!f.isDeclaration())
      passes.run(f, analyses.functions);
}

void Target::optimizeLinked(llvm::Module &module) const {
  prepare(module);
  Analyses analyses(*machine_);
  llvm::ModulePassManager passes = quick_ ? analyses.builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0)
                                          : analyses.builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  passes.run(module, analyses.modules);
}

std::vector<char> Target::object(llvm::Module &module) const {
  const llvm::SmallVector<char, 0> bytes = emitModule(*machine_, module, llvm::CodeGenFileType::ObjectFile);
  return {bytes.begin(), bytes.end()};
}

std::string Target::assembly(llvm::Module &module) const {
  const llvm::SmallVector<char, 0> bytes = emitModule(*machine_, module, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.begin(), bytes.end()};
}

} // namespace tressel::codegen
