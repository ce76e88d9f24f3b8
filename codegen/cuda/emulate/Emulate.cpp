#include "codegen/cuda/emulate/Emulate.h"

#include "codegen/cuda/emulate/Rewrite.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/FloatMode.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <algorithm>
#include <mutex>

namespace tressel::codegen::cuda {
namespace {

using emulate::Block;
using emulate::Buffer;
using emulate::Code;

constexpr int64_t kMostInCluster = 8; // on all cards that have clusters

void check(llvm::Error error) {
  if (error)
    throw InternalError("code for the emulation of a GPU cannot be linked: " + llvm::toString(std::move(error)));
}

std::unique_ptr<llvm::TargetMachine> hostMachine() {
  static const llvm::Target *target = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    std::string error;
    const llvm::Target *found = llvm::TargetRegistry::lookupTarget(llvm::Triple(llvm::sys::getProcessTriple()), error);
    if (!found)
      throw InternalError("LLVM has no back end for this machine: " + error);
    return found;
  }();
  std::string features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures()) // its conversions to bf16 flush subnormal numbers; a GPU's do not
    if (feature.first() != "avx512bf16" && feature.first() != "avxneconvert")
      features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  // Kernels run once or twice on little data: most of the time is compilation.
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(llvm::Triple(llvm::sys::getProcessTriple()), llvm::sys::getHostCPUName(), features,
                                  options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Less));
}

/// Blocks that are not at work, for any host thread: their stacks are kept.
class Idle {
public:
  std::unique_ptr<Block> take() {
    std::lock_guard lock(mutex_);
    if (blocks_.empty())
      return std::make_unique<Block>();
    auto block = std::move(blocks_.back());
    blocks_.pop_back();
    return block;
  }
  void give(std::unique_ptr<Block> block) {
    std::lock_guard lock(mutex_);
    if (blocks_.size() < kMost)
      blocks_.push_back(std::move(block));
  }

private:
  static constexpr size_t kMost = 16;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
};
Idle &idle() {
  static auto *all = new Idle; // host threads may still run when the process ends
  return *all;
}

class Module : public EmulatedModule {
public:
  explicit Module(const llvm::Module &source) {
    std::unique_ptr<llvm::Module> module = llvm::CloneModule(source);
    emulate::rewrite(*module, codes_);
    auto machine = hostMachine();
    module->setTargetTriple(machine->getTargetTriple());
    module->setDataLayout(machine->createDataLayout());
    for (llvm::Function &f : *module) {
      f.removeFnAttr("target-cpu");
      f.removeFnAttr("target-features");
    }
    std::string problem;
    llvm::raw_string_ostream out(problem);
    if (llvm::verifyModule(*module, &out))
      throw InternalError("code for the emulation of a GPU is malformed: " + problem);
    llvm::SmallVector<char, 0> object;
    {
      llvm::raw_svector_ostream bytes(object);
      llvm::legacy::PassManager passes;
      if (machine->addPassesToEmitFile(passes, bytes, nullptr, llvm::CodeGenFileType::ObjectFile))
        throw InternalError("LLVM cannot emit object code");
      passes.run(*module);
    }
    load(std::move(object));
  }

  int32_t run(const Launch &launch, int64_t begin, int64_t end, int64_t blocks) const override {
    const auto found = codes_.find(launch.symbol);
    if (found == codes_.end())
      throw InternalError("no kernel '" + launch.symbol + "' in the module");
    const Code &code = *found->second;
    int32_t status = 0;
    std::vector<uint64_t> arguments;
    for (void *buffer : launch.buffers)
      arguments.push_back(reinterpret_cast<uintptr_t>(buffer));
    for (int64_t scalar : launch.scalars)
      arguments.push_back(static_cast<uint64_t>(scalar));
    arguments.push_back(reinterpret_cast<uintptr_t>(&status));
    if (static_cast<int>(arguments.size()) != code.numArguments)
      throw InternalError("kernel '" + launch.symbol + "' has " + std::to_string(code.numArguments) +
                          " parameters, not " + std::to_string(arguments.size()));
    if (launch.threads < 1 || launch.threads > kMaxBlockThreads || launch.threads % kWarp || blocks > INT32_MAX)
      throw InternalError("kernel '" + launch.symbol + "': no GPU has " + std::to_string(blocks) + " blocks of " +
                          std::to_string(launch.threads) + " threads");
    Block::Launch run{
        &code,   arguments,          static_cast<uint32_t>(launch.threads), static_cast<uint32_t>(blocks), {},
        &status, launch.watchBuffers};
    run.buffers = knownBuffers(launch);
    const runtime::FloatScope floats(code.flushesSubnormals ? runtime::FloatMode::Flush : runtime::FloatMode::Keep);
    if (launch.cluster < 1 || launch.cluster > kMostInCluster || blocks % launch.cluster)
      throw InternalError("kernel '" + launch.symbol + "': " + std::to_string(blocks) + " blocks are no clusters of " +
                          std::to_string(launch.cluster));
    std::vector<std::unique_ptr<Block>> taken;
    std::vector<Block *> cluster;
    for (int64_t i = 0; i < launch.cluster; ++i) {
      cluster.push_back(taken.emplace_back(idle().take()).get());
      cluster.back()->begin(run, i ? cluster.front() : nullptr);
    }
    for (int64_t i = dim::ceilDiv(begin, launch.cluster) * launch.cluster; i < std::min(end, blocks);
         i += launch.cluster)
      Block::run(cluster, static_cast<uint32_t>(i));
    for (std::unique_ptr<Block> &block : taken)
      idle().give(std::move(block));
    return status;
  }

private:
  /// Sorted, and each byte in one: results may lie on operands.
  static std::vector<Buffer> knownBuffers(const Launch &launch) {
    std::vector<Buffer> known;
    for (size_t i = 0; i < launch.bytes.size() && i < launch.buffers.size(); ++i)
      known.push_back(
          {static_cast<char *>(launch.buffers[i]), static_cast<uint64_t>(launch.bytes[i]), static_cast<int>(i)});
    std::ranges::sort(known, [](const Buffer &a, const Buffer &b) {
      return a.begin != b.begin ? a.begin < b.begin : a.bytes > b.bytes;
    });
    std::vector<Buffer> disjoint;
    for (const Buffer &buffer : known)
      if (disjoint.empty() || buffer.begin >= disjoint.back().begin + disjoint.back().bytes)
        disjoint.push_back(buffer);
      else
        disjoint.back().bytes =
            std::max(disjoint.back().bytes, static_cast<uint64_t>(buffer.begin - disjoint.back().begin) + buffer.bytes);
    return disjoint;
  }

  void load(llvm::SmallVector<char, 0> object) {
    auto jit = llvm::orc::LLJITBuilder()
                   .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                   .setLinkProcessSymbolsByDefault(false)
                   .create();
    if (!jit)
      check(jit.takeError());
    jit_ = std::move(*jit);
    llvm::orc::JITDylib &library = jit_->getMainJITDylib();
    llvm::orc::SymbolMap symbols;
    for (const emulate::Symbol &symbol : emulate::symbols())
      symbols[jit_->mangleAndIntern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                                     llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    check(library.define(llvm::orc::absoluteSymbols(std::move(symbols))));
    // The C library, for what LLVM makes calls of: fmod, memcpy.
    auto process =
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit_->getDataLayout().getGlobalPrefix());
    if (!process)
      check(process.takeError());
    library.addGenerator(std::move(*process));
    check(jit_->addObjectFile(std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object), "kernels", false)));
    for (auto &[name, code] : codes_) {
      auto address = jit_->lookup(emulate::entryName(name));
      if (!address)
        check(address.takeError());
      code->entry = address->toPtr<void (*)(emulate::Thread *)>();
    }
  }

  std::map<std::string, std::unique_ptr<Code>> codes_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

} // namespace

std::shared_ptr<EmulatedModule> EmulatedModule::create(const llvm::Module &module) {
  return std::make_shared<Module>(module);
}

} // namespace tressel::codegen::cuda
