#include "codegen/cpu/Target.h"

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
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

namespace tressel::codegen {
namespace {

constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

const llvm::Target &backEnd() {
  static const llvm::Target *target = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    std::string error;
    const llvm::Target *t = llvm::TargetRegistry::lookupTarget(llvm::Triple(kTriple), error);
    if (!t)
      throw InternalError("LLVM has no x86-64 back end: " + error);
    return t;
  }();
  return *target;
}

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
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  machine_.reset(backEnd().createTargetMachine(llvm::Triple(kTriple), core_, "", options, llvm::Reloc::PIC_,
                                               llvm::CodeModel::Small,
                                               quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default));
  if (!machine_)
    throw InternalError("LLVM cannot make a target machine for " + core_);
  // Every PassBuilder takes a reference to it. Made before threads are, whoever checks them sees who made it.
  llvm::vfs::getRealFileSystem();
}

Target::~Target() = default;

void Target::prepare(llvm::Module &module) const {
  module.setTargetTriple(llvm::Triple(kTriple));
  module.setDataLayout(machine_->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &f : module) {
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", core_);
    f.addFnAttr("prefer-vector-width", std::to_string(features_.vectorBytes * 8));
    f.addFnAttr("no-builtins");
    f.addFnAttr("frame-pointer", "none");
  }
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(module, &out))
    throw InternalError("generated code is malformed: " + problem);
}

namespace {
/// The analyses of one run of passes over a module. An import-free image cannot call any library function.
struct Analyses {
  explicit Analyses(llvm::TargetMachine &machine) : builder(&machine) {
    library.disableAllFunctions();
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }
  llvm::TargetLibraryInfoImpl library{llvm::Triple(kTriple)};
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
};
} // namespace

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

static void emit(llvm::TargetMachine &machine, llvm::Module &module, llvm::raw_pwrite_stream &out,
                 llvm::CodeGenFileType kind) {
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library((llvm::Triple(kTriple)));
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine.addPassesToEmitFile(passes, out, nullptr, kind))
    throw InternalError("LLVM cannot emit object code");
  passes.run(module);
}

std::vector<char> Target::object(llvm::Module &module) const {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  emit(*machine_, module, out, llvm::CodeGenFileType::ObjectFile);
  return {bytes.begin(), bytes.end()};
}

std::string Target::assembly(llvm::Module &module) const {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  emit(*machine_, module, out, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.begin(), bytes.end()};
}

} // namespace tressel::codegen
