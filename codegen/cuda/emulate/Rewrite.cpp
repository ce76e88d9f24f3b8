#include "codegen/cuda/emulate/Rewrite.h"

#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/target/Target.h"
#include "codegen/cuda/emulate/Intrinsics.h"
#include "tressel/runtime/Error.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <algorithm>
#include <cstddef>

namespace tressel::codegen::cuda::emulate {
namespace {

/// Between variables of shared memory, so that running over the end of one is seen.
constexpr uint64_t kGap = 64;

std::string print(const llvm::Instruction &instruction, llvm::ModuleSlotTracker &slots) {
  std::string text;
  llvm::raw_string_ostream out(text);
  instruction.print(out, slots);
  text.erase(0, text.find_first_not_of(' '));
  if (const size_t end = text.find(", !"); end != std::string::npos)
    text.resize(end);
  return text;
}

/// The optimizer reads memory ahead of the condition under which the value is used, where that is harmless: such reads
/// count where the condition holds. The select that drops the value, if it is in sight, and whether the value is the
/// one for true.
std::pair<llvm::SelectInst *, bool> selectOf(llvm::LoadInst &load) {
  llvm::Instruction *value = &load;
  while (value->hasOneUse()) {
    llvm::Use &use = *value->use_begin();
    auto *user = llvm::dyn_cast<llvm::Instruction>(use.getUser());
    if (!user || user->getParent() != load.getParent() || user->mayReadOrWriteMemory() || user->isTerminator() ||
        llvm::isa<llvm::PHINode>(user))
      return {};
    if (auto *select = llvm::dyn_cast<llvm::SelectInst>(user)) {
      if (use.getOperandNo() == 0 || select->getCondition()->getType()->isVectorTy())
        return {};
      for (llvm::Instruction *i = load.getNextNode(); i != select; i = i->getNextNode())
        if (llvm::isa<llvm::CallInst>(i) && i->mayHaveSideEffects())
          return {};
      return {select, use.getOperandNo() == 1};
    }
    value = user;
  }
  return {};
}

class KernelRewriter {
public:
  KernelRewriter(llvm::Function &kernel, Code &code, llvm::ModuleSlotTracker &slots)
      : kernel_(kernel), module_(*kernel.getParent()), code_(code), slots_(slots), b_(module_.getContext()) {}

  void run();

private:
  void makeEntry();
  void placeShared();
  void collect();
  /// Where the emulator is told of an access.
  void watch(llvm::Instruction &at, llvm::Value *pointer, llvm::Value *bytes, uint64_t fixedBytes, uint64_t alignment,
             Op op);
  void watchAccess(llvm::Instruction &instruction);
  void shrinkGranule(Space space, uint64_t bytes, uint64_t alignment);

  llvm::Function &kernel_;
  llvm::Module &module_;
  Code &code_;
  llvm::ModuleSlotTracker &slots_;
  llvm::IRBuilder<> b_;
  llvm::Function *entry_ = nullptr;
  llvm::Value *thread_ = nullptr, *shared_ = nullptr;
  std::map<const llvm::Instruction *, std::string> texts_; ///< as they were before anything was replaced
};

void KernelRewriter::makeEntry() {
  llvm::LLVMContext &context = module_.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, 0);
  entry_ = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false),
                                  llvm::Function::ExternalLinkage, entryName(code_.symbol), module_);
  thread_ = entry_->getArg(0);
  thread_->setName("thread");
  // The old body, with arguments that are read from the launch's.
  llvm::ValueToValueMapTy map;
  llvm::BasicBlock *begin = llvm::BasicBlock::Create(context, "arguments", entry_);
  b_.SetInsertPoint(begin);
  llvm::Value *arguments = b_.CreateLoad(
      pointer, b_.CreateConstGEP1_64(b_.getInt8Ty(), thread_, offsetof(Registers, arguments)), "arguments");
  code_.numArguments = static_cast<int>(kernel_.arg_size());
  for (llvm::Argument &argument : kernel_.args()) {
    if (!argument.getType()->isPointerTy() && !argument.getType()->isIntegerTy(64))
      throw Error("kernel '" + code_.symbol + "' cannot be emulated: its parameters are not pointers and i64");
    map[&argument] = b_.CreateLoad(
        argument.getType(), b_.CreateConstGEP1_64(b_.getInt64Ty(), arguments, argument.getArgNo()), argument.getName());
  }
  shared_ = b_.CreateLoad(llvm::PointerType::get(context, kShared),
                          b_.CreateConstGEP1_64(b_.getInt8Ty(), thread_, offsetof(Registers, shared)), "shared");
  llvm::BasicBlock *oldEntry = &kernel_.getEntryBlock();
  entry_->splice(entry_->end(), &kernel_);
  for (llvm::Argument &argument : kernel_.args())
    argument.replaceAllUsesWith(map[&argument]);
  b_.CreateBr(oldEntry);
  // Variables of the thread are where the function begins: those of the old first block move there.
  for (llvm::Instruction &i : llvm::make_early_inc_range(*oldEntry))
    if (auto *variable = llvm::dyn_cast<llvm::AllocaInst>(&i);
        variable && llvm::isa<llvm::ConstantInt>(variable->getArraySize()))
      variable->moveBefore(begin->begin());
  entry_->addFnAttr(llvm::Attribute::NoUnwind);
}

void KernelRewriter::placeShared() {
  const llvm::DataLayout &layout = module_.getDataLayout();
  uint64_t end = 0;
  for (llvm::GlobalVariable &variable : module_.globals()) {
    if (variable.getAddressSpace() != kShared)
      continue;
    bool used = false;
    std::vector<llvm::Use *> uses;
    for (llvm::Use &use : variable.uses())
      if (auto *user = llvm::dyn_cast<llvm::Instruction>(use.getUser()); user && user->getFunction() == entry_)
        uses.push_back(&use), used = true;
    if (!used)
      continue;
    const uint64_t bytes = layout.getTypeAllocSize(variable.getValueType());
    if (!bytes)
      throw Error("kernel '" + code_.symbol + "' cannot be emulated: shared memory of a size known at the launch");
    const uint64_t align = std::max<uint64_t>(16, variable.getAlign().valueOrOne().value());
    const uint64_t begin = end ? llvm::alignTo(end + kGap, align) : 0;
    if (end)
      code_.gaps.push_back({llvm::alignTo(end, 16), begin});
    code_.variables.push_back({begin, variable.getName().str()});
    b_.SetInsertPoint(entry_->getEntryBlock().getTerminator());
    llvm::Value *place = b_.CreateConstGEP1_64(b_.getInt8Ty(), shared_, begin, variable.getName());
    for (llvm::Use *use : uses)
      use->set(place);
    end = begin + bytes;
  }
  code_.sharedBytes = llvm::alignTo(end, 16);
}

void KernelRewriter::shrinkGranule(Space space, uint64_t bytes, uint64_t alignment) {
  const auto least = static_cast<uint32_t>(std::min<uint64_t>({bytes & -bytes, alignment, 16}));
  if (space != Space::Shared)
    code_.globalGranule = std::min(code_.globalGranule, least);
  if (space != Space::Global)
    code_.sharedGranule = std::min(code_.sharedGranule, least);
}

void KernelRewriter::watch(llvm::Instruction &at, llvm::Value *pointer, llvm::Value *bytes, uint64_t fixedBytes,
                           uint64_t alignment, Op op) {
  const llvm::Value *object = llvm::getUnderlyingObject(pointer);
  if (llvm::isa<llvm::AllocaInst>(object) || llvm::isa<llvm::GlobalVariable>(object))
    return; // the thread's own, or a table
  const unsigned space = pointer->getType()->getPointerAddressSpace();
  if (space != 0 && space != kGlobal && space != kShared && space != kSharedCluster)
    throw Error("kernel '" + code_.symbol + "' cannot be emulated: an access to address space " +
                std::to_string(space) + " in '" + texts_[&at] + "'");
  Site site;
  site.op = op;
  site.space = space == kGlobal          ? Space::Global
               : space == kShared        ? Space::Shared
               : space == kSharedCluster ? Space::Cluster
                                         : Space::Generic;
  site.bytes = static_cast<uint32_t>(fixedBytes);
  site.alignment = static_cast<uint32_t>(alignment);
  site.text = texts_[&at];
  shrinkGranule(site.space, fixedBytes ? fixedBytes : 1, fixedBytes ? alignment : 1);
  code_.sites.push_back(std::move(site));
  b_.SetInsertPoint(&at);
  if (!bytes)
    bytes = b_.getInt64(fixedBytes);
  callRuntime(b_, "tressel_gpu_access", nullptr,
              {thread_, b_.CreateAddrSpaceCast(pointer, b_.getPtrTy()), bytes, sitePointer(b_, code_.sites.back())});
}

void KernelRewriter::watchAccess(llvm::Instruction &instruction) {
  const llvm::DataLayout &layout = module_.getDataLayout();
  auto bytesOf = [&](llvm::Type *type) { return layout.getTypeStoreSize(type).getFixedValue(); };
  if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    const uint64_t bytes = bytesOf(load->getType());
    if (auto [select, forTrue] = selectOf(*load); select && load->isSimple()) {
      texts_[select] = texts_[load];
      b_.SetInsertPoint(select);
      llvm::Value *some = b_.getInt64(bytes), *none = b_.getInt64(0);
      watch(*select, load->getPointerOperand(),
            b_.CreateSelect(select->getCondition(), forTrue ? some : none, forTrue ? none : some), bytes,
            load->getAlign().value(), Op::Load);
      return;
    }
    watch(instruction, load->getPointerOperand(), nullptr, bytes, load->getAlign().value(),
          load->isAtomic() ? Op::Atomic : Op::Load);
    if (load->isAtomic()) {
      // Maybe in a loop that waits for another thread.
      Site site;
      site.text = texts_[&instruction];
      code_.sites.push_back(std::move(site));
      callRuntime(b_, "tressel_gpu_poll", nullptr, {thread_, sitePointer(b_, code_.sites.back())});
      code_.ordersBlocks = true;
    }
  } else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    watch(instruction, store->getPointerOperand(), nullptr, bytesOf(store->getValueOperand()->getType()),
          store->getAlign().value(), store->isAtomic() ? Op::Atomic : Op::Store);
  } else if (auto *atomic = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    const uint64_t bytes = bytesOf(atomic->getType());
    watch(instruction, atomic->getPointerOperand(), nullptr, bytes, bytes, Op::Atomic);
    code_.ordersBlocks |= isStrongerThanMonotonic(atomic->getOrdering());
  } else if (auto *exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    const uint64_t bytes = bytesOf(exchange->getNewValOperand()->getType());
    watch(instruction, exchange->getPointerOperand(), nullptr, bytes, bytes, Op::Atomic);
    code_.ordersBlocks |= isStrongerThanMonotonic(exchange->getSuccessOrdering());
  } else if (llvm::isa<llvm::FenceInst>(instruction)) {
    code_.ordersBlocks = true;
  } else if (auto *transfer = llvm::dyn_cast<llvm::MemTransferInst>(&instruction)) {
    watch(instruction, transfer->getRawSource(), b_.CreateZExtOrTrunc(transfer->getLength(), b_.getInt64Ty()), 0, 1,
          Op::Load);
    watch(instruction, transfer->getRawDest(), transfer->getLength(), 0, 1, Op::Store);
  } else if (auto *set = llvm::dyn_cast<llvm::MemSetInst>(&instruction)) {
    watch(instruction, set->getRawDest(), set->getLength(), 0, 1, Op::Store);
  }
}

void KernelRewriter::run() {
  makeEntry();
  placeShared();
  slots_.incorporateFunction(*entry_);
  std::vector<llvm::Instruction *> instructions;
  uint64_t variables = 0;
  for (llvm::Instruction &i : llvm::instructions(*entry_)) {
    i.dropUnknownNonDebugMetadata();
    if (i.getParent() != &entry_->getEntryBlock() && (i.mayReadOrWriteMemory() || llvm::isa<llvm::CallInst>(i))) {
      instructions.push_back(&i);
      texts_[&i] = print(i, slots_);
    }
    if (auto *variable = llvm::dyn_cast<llvm::AllocaInst>(&i)) {
      const auto size = variable->getAllocationSize(module_.getDataLayout());
      if (!size)
        throw Error("kernel '" + code_.symbol + "' cannot be emulated: a variable whose size is known at run time");
      variables += size->getFixedValue();
    }
  }
  code_.stackBytes = (64 << 10) + llvm::alignTo(2 * variables, 4096);
  IntrinsicRewriter intrinsics{b_, thread_, code_};
  for (llvm::Instruction *i : instructions) {
    auto *call = llvm::dyn_cast<llvm::CallInst>(i);
    if (!call || llvm::isa<llvm::MemIntrinsic>(call)) {
      b_.SetInsertPoint(i);
      watchAccess(*i);
      continue;
    }
    const std::string &text = texts_[i];
    const llvm::Function *callee = call->getCalledFunction();
    if (!callee)
      throw Error("kernel '" + code_.symbol + "' cannot be emulated: '" + text + "'");
    if (!callee->getName().starts_with("llvm.nvvm.")) {
      if (!callee->isIntrinsic())
        throw Error("kernel '" + code_.symbol + "' cannot be emulated: a call that was not inlined, '" + text + "'");
      continue; // LLVM's own mean the same everywhere
    }
    b_.SetInsertPoint(i);
    if (!intrinsics.rewrite(*call, text))
      throw Error({.message = "kernel '" + code_.symbol + "' cannot be emulated: '" + text + "'",
                   .hint = "codegen/cuda/README.md lists what is"});
  }
  if (code_.sharedGranule > 16)
    code_.sharedGranule = 16;
}

} // namespace

std::string entryName(const std::string &symbol) { return symbol + ".emulated"; }

void rewrite(llvm::Module &module, std::map<std::string, std::unique_ptr<Code>> &codes) {
  // Constant expressions over shared memory become instructions, so that its address may be one of the run.
  std::vector<llvm::Constant *> shared;
  std::vector<llvm::Function *> kernels, others;
  for (llvm::GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == kShared)
      shared.push_back(&variable);
  llvm::convertUsersOfConstantsToInstructions(shared);
  for (llvm::Function &f : module)
    if (!f.isDeclaration())
      (f.getCallingConv() == llvm::CallingConv::PTX_Kernel ? kernels : others).push_back(&f);
  llvm::ModuleSlotTracker slots(&module);
  for (llvm::Function *kernel : kernels) {
    auto &code = codes[kernel->getName().str()];
    code = std::make_unique<Code>();
    code->symbol = kernel->getName().str();
    code->flushesSubnormals = cuda::flushesSubnormals(*kernel);
    KernelRewriter(*kernel, *code, slots).run();
  }
  for (llvm::Function *f : kernels)
    f->eraseFromParent();
  for (llvm::Function *f : others)
    f->eraseFromParent();
  for (llvm::Constant *variable : shared) {
    auto *global = llvm::cast<llvm::GlobalVariable>(variable);
    global->removeDeadConstantUsers();
    if (!global->use_empty())
      throw Error("a module cannot be emulated: '" + global->getName().str() + "' is used by no kernel");
    global->eraseFromParent();
  }
  for (llvm::GlobalVariable &variable : module.globals())
    if (!variable.isConstant() && !variable.getName().starts_with("llvm."))
      throw Error("a module cannot be emulated: '" + variable.getName().str() + "' is a variable in global memory");
  // What is left of the GPU.
  for (llvm::Function &f : llvm::make_early_inc_range(module))
    if (f.isDeclaration() && f.use_empty())
      f.eraseFromParent();
  for (llvm::GlobalVariable &variable : llvm::make_early_inc_range(module.globals()))
    if (variable.getName() == "llvm.used" || variable.getName() == "llvm.compiler.used")
      variable.eraseFromParent();
  llvm::StripDebugInfo(module);
  for (llvm::NamedMDNode &node : llvm::make_early_inc_range(module.named_metadata()))
    if (node.getName().starts_with("nvvm"))
      module.eraseNamedMetadata(&node);
}

} // namespace tressel::codegen::cuda::emulate
