#include "codegen/cuda/loops/Kernel.h"

#include "codegen/cuda/target/Target.h"

#include "llvm/IR/IRBuilder.h"

namespace tressel::codegen::cuda {

static constexpr llvm::StringLiteral kSubnormals = "denormal-fp-math-f32";

void keepSubnormals(llvm::Function &kernel) { kernel.addFnAttr(kSubnormals, "ieee,ieee"); }
bool flushesSubnormals(const llvm::Function &kernel) {
  return kernel.getFnAttribute(kSubnormals).getValueAsString().starts_with("preserve-sign");
}

Kernel keepingSubnormals(Kernel kernel) {
  kernel.text += " keep subnormals";
  kernel.emit = [symbol = kernel.symbol, emit = std::move(kernel.emit)](llvm::Module &module) {
    emit(module);
    keepSubnormals(*module.getFunction(symbol));
  };
  return kernel;
}

llvm::Function *declareKernel(llvm::Module &module, const Kernel &kernel) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, kGlobal), *i64 = llvm::Type::getInt64Ty(context);
  std::vector<llvm::Type *> types(static_cast<size_t>(kernel.numBuffers), pointer);
  types.insert(types.end(), kernel.symbols.size(), i64);
  types.push_back(pointer);
  auto *function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                                          llvm::Function::ExternalLinkage, kernel.symbol, module);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function->addFnAttr("nvvm.maxntid", std::to_string(kernel.threads));
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(kSubnormals, "preserve-sign,preserve-sign"); // instructions of f32 have .ftz
  for (unsigned i = 0; i < function->arg_size(); ++i) {
    const auto buffers = static_cast<unsigned>(kernel.numBuffers);
    llvm::Argument *argument = function->getArg(i);
    argument->setName(i < buffers                    ? "b" + std::to_string(i)
                      : i + 1 < function->arg_size() ? "s" + std::to_string(i - buffers)
                                                     : "status");
    if (i < buffers)
      argument->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  }
  return function;
}

} // namespace tressel::codegen::cuda
