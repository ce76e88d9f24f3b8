#include "codegen/cuda/loops/Kernel.h"

#include "codegen/cuda/target/Target.h"
#include "tressel/runtime/Dim.h"

#include "llvm/IR/IRBuilder.h"

namespace tressel::codegen::cuda {

static constexpr uint64_t kTensorMapBytes = 128;
static constexpr llvm::StringLiteral kSubnormals = "denormal-fp-math-f32";

void keepSubnormals(llvm::Function &kernel) { kernel.addFnAttr(kSubnormals, "ieee,ieee"); }
bool flushesSubnormals(const llvm::Function &kernel) {
  return kernel.getFnAttribute(kSubnormals).getValueAsString().starts_with("preserve-sign");
}

Kernel keepingSubnormals(Kernel kernel) {
  kernel.text += " keep subnormals";
  if (kernel.portable)
    kernel.portable = std::make_shared<const Kernel>(keepingSubnormals(*kernel.portable));
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
  const size_t status = types.size() - 1;
  types.insert(types.end(), kernel.maps.size(), llvm::PointerType::get(context, 0));
  auto *function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                                          llvm::Function::ExternalLinkage, kernel.symbol, module);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function->addFnAttr("nvvm.maxntid", std::to_string(kernel.threads));
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(kSubnormals, "preserve-sign,preserve-sign"); // instructions of f32 have .ftz
  for (unsigned i = 0; i < function->arg_size(); ++i) {
    const auto buffers = static_cast<unsigned>(kernel.numBuffers);
    llvm::Argument *argument = function->getArg(i);
    argument->setName(i < buffers   ? "b" + std::to_string(i)
                      : i < status  ? "s" + std::to_string(i - buffers)
                      : i == status ? "status"
                                    : "map" + std::to_string(i - status - 1));
    if (i > status) { // in the parameters themselves, where the card reads it
      argument->addAttr(llvm::Attribute::getWithByValType(
          context, llvm::ArrayType::get(llvm::Type::getInt8Ty(context), kTensorMapBytes)));
      argument->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
      argument->addAttr(llvm::Attribute::get(context, "nvvm.grid_constant"));
    }
    if (i < buffers)
      argument->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  }
  return function;
}

namespace {

std::string quoted(Size size) { return "\"" + dim::spell(size) + "\""; }
std::string quotedOrNumber(Size size) { return size.isNumber() ? std::to_string(size.number()) : quoted(size); }
std::string listOf(const std::vector<Size> &sizes) {
  std::string text;
  for (Size size : sizes)
    text += (text.empty() ? "" : ",") + quotedOrNumber(size);
  return "[" + text + "]";
}

} // namespace

std::string launchParams(const Kernel &kernel, const std::string &library) {
  std::string symbols;
  for (Size symbol : kernel.symbols)
    symbols += (symbols.empty() ? "" : ",") + quoted(symbol);
  std::string special;
  if (kernel.portable) {
    std::string maps;
    for (const TensorMapForm &map : kernel.maps) {
      std::vector<Size> box(map.box.begin(), map.box.end());
      maps += (maps.empty() ? "" : ",") + ("{\"operand\":" + std::to_string(map.operand)) + ",\"type\":\"" +
              std::string(nameOf(map.type)) + "\",\"sizes\":" + listOf(map.sizes) +
              ",\"strides\":" + listOf(map.strides) + ",\"box\":" + listOf(box) + "}";
    }
    special = ",\"arch\":\"" + kernel.arch + "\",\"shared\":" + std::to_string(kernel.sharedBytes) + ",\"maps\":[" +
              maps + "]" + (kernel.cluster == 1 ? "" : ",\"cluster\":" + quotedOrNumber(kernel.cluster)) +
              ",\"portable\":{\"threads\":" + std::to_string(kernel.portable->threads) +
              ",\"blocks\":" + quotedOrNumber(kernel.portable->blocks) + "}";
  }
  return "{\"threads\":" + std::to_string(kernel.threads) + ",\"operands\":" + std::to_string(kernel.numBuffers) +
         ",\"scalars\":" + std::to_string(kernel.symbols.size()) +
         ((library.empty() && special.empty()) || symbols.empty() ? "" : ",\"symbols\":[" + symbols + "]") + special +
         (library.empty() ? "" : ",\"library\":" + library) + "}";
}

} // namespace tressel::codegen::cuda
