// Kernels of several nests: each block belongs to one of them.
#include "codegen/cuda/loops/LoopEmitter.h"
#include "codegen/cuda/loops/Loops.h"
#include "codegen/cuda/target/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

#include <memory>
#include <numeric>
#include <sstream>

namespace tressel::codegen::cuda {

using llvm::Value;

namespace {

struct Nest {
  LoopPlan plan;
  GpuSchedule schedule;
  std::vector<int32_t> operands;
};

/// Pointers to the plan's buffers, the status, the number of the block among those of the nest.
llvm::Function *emitNest(llvm::Module &module, const Nest &nest, const std::string &name) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, kGlobal);
  std::vector<llvm::Type *> types(nest.plan.buffers.size() + 1, pointer);
  types.push_back(llvm::Type::getInt32Ty(context));
  auto *function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                                          llvm::GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::AlwaysInline);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  for (unsigned i = 0; i < nest.plan.buffers.size(); ++i)
    function->getArg(i)->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  KernelSignature signature;
  LoopEmitter(*function, nest.plan, nest.schedule, signature, static_cast<int>(nest.plan.buffers.size())).run(/*isPart=*/true);
  return function;
}

} // namespace

std::optional<Kernel> makePartsKernel(const std::string &symbol, const std::vector<KernelPart> &parts, int numBuffers, const Arch &arch) {
  auto nests = std::make_shared<std::vector<Nest>>();
  Kernel kernel;
  kernel.symbol = symbol;
  kernel.numBuffers = numBuffers;
  kernel.threads = 0, kernel.blocks = 0;
  bool keeps = false;
  std::ostringstream text;
  text << "nests " << arch.name << " of " << numBuffers << '\n';
  for (const KernelPart &part : parts) {
    const GpuSchedule schedule = scheduleLoops(part.plan, arch, {});
    if (!mayBeNest(part.plan, schedule))
      return std::nullopt;
    text << schedule.str() << " operands";
    for (int32_t operand : part.operands)
      text << ' ' << operand;
    text << '\n' << part.plan.str();
    kernel.threads = std::max(kernel.threads, schedule.threads);
    kernel.blocks += schedule.blocks;
    kernel.seconds += schedule.seconds;
    keeps |= part.plan.floats() == runtime::FloatMode::Keep ||
             llvm::any_of(part.plan.buffers, [](const Buffer &buffer) { return buffer.dtype == DType::f16; });
    nests->push_back({part.plan, schedule, part.operands});
  }
  kernel.text = text.str();
  auto declared = std::make_shared<Kernel>(kernel);
  kernel.emit = [nests, declared, keeps](llvm::Module &module) {
    llvm::Function *function = declareKernel(module, *declared);
    if (keeps)
      keepSubnormals(*function);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "entry", function));
    Value *thread = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}), *block = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
    uint32_t first = 0;
    for (const auto &[number, nest] : llvm::enumerate(*nests)) {
      llvm::Function *body = emitNest(module, nest, declared->symbol + "_nest" + std::to_string(number));
      if (keeps)
        keepSubnormals(*body);
      else
        body->addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
      const auto end = first + static_cast<uint32_t>(nest.schedule.blocks.number());
      auto *inside = llvm::BasicBlock::Create(module.getContext(), "nest", function),
           *after = llvm::BasicBlock::Create(module.getContext(), "after", function);
      Value *isIn = b.CreateAnd(b.CreateICmpUGE(block, b.getInt32(first)), b.CreateICmpULT(block, b.getInt32(end)));
      if (nest.schedule.threads < declared->threads)
        isIn = b.CreateAnd(isIn, b.CreateICmpULT(thread, b.getInt32(static_cast<uint32_t>(nest.schedule.threads))));
      b.CreateCondBr(isIn, inside, after);
      b.SetInsertPoint(inside);
      std::vector<Value *> arguments;
      for (int32_t operand : nest.operands)
        arguments.push_back(function->getArg(static_cast<unsigned>(operand)));
      arguments.push_back(function->getArg(static_cast<unsigned>(function->arg_size() - 1)));
      arguments.push_back(b.CreateSub(block, b.getInt32(first)));
      b.CreateCall(body, arguments);
      b.CreateBr(after);
      b.SetInsertPoint(after);
      first = end;
    }
    b.CreateRetVoid();
  };
  return kernel;
}

} // namespace tressel::codegen::cuda
