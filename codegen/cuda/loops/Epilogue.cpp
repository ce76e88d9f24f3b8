// What follows a root of the device library, point by point: a function that is inlined where the root has a value.
#include "codegen/cuda/loops/Loops.h"

#include "codegen/cuda/loops/PlanEmitter.h"
#include "codegen/cuda/target/Target.h"
#include "tressel/runtime/Error.h"

#include "llvm/ADT/STLExtras.h"

namespace tressel::codegen::cuda {

using llvm::Value;

namespace {

/// A pointer or a number of the launch, from `context`.
class Context {
public:
  Context(llvm::IRBuilder<> &b, Value *context, const Epilogue &epilogue)
      : b_(b), context_(context), epilogue_(epilogue) {}
  Value *buffer(int32_t number) { return b_.CreateAddrSpaceCast(slot(b_.getPtrTy(), number), b_.getPtrTy(kGlobal)); }
  Value *symbol(Size symbol) {
    const auto at = llvm::find(epilogue_.signature.symbols, symbol);
    if (at == epilogue_.signature.symbols.end())
      throw InternalError("an epilogue uses a size that its launch does not give it");
    return slot(b_.getInt64Ty(), epilogue_.numBuffers + (at - epilogue_.signature.symbols.begin()));
  }
  Value *status() { return buffer(epilogue_.numBuffers + static_cast<int32_t>(epilogue_.signature.symbols.size())); }

private:
  Value *slot(llvm::Type *type, int64_t number) {
    return b_.CreateAlignedLoad(type, b_.CreateConstGEP1_64(b_.getInt64Ty(), context_, static_cast<uint64_t>(number)),
                                llvm::Align(8));
  }
  llvm::IRBuilder<> &b_;
  Value *context_;
  const Epilogue &epilogue_;
};

class EpilogueEmitter : public PlanEmitter {
public:
  EpilogueEmitter(llvm::Function &function, const Epilogue &epilogue)
      : PlanEmitter(function, *epilogue.plan), epilogue_(epilogue), context_(b_, function.getArg(0), epilogue) {}

  void run() {
    if (plan_.numParallel != static_cast<int32_t>(plan_.dims.size()) || epilogue_.rootInput < 0)
      throw InternalError("an epilogue is no loop over its root's result");
    if (fits32(plan_, 0))
      indexType_ = b_.getInt32Ty();
    llvm::BasicBlock *entry = block("entry"), *body = block("body");
    b_.SetInsertPoint(entry);
    entry_ = b_.CreateBr(body);
    b_.SetInsertPoint(entry_);
    const auto &operands = epilogue_.signature.operands;
    for (size_t i = 0; i < plan_.buffers.size(); ++i)
      buffers_.push_back(static_cast<int>(i) == epilogue_.rootInput
                             ? llvm::ConstantPointerNull::get(b_.getPtrTy(kGlobal))
                             : context_.buffer(operands.empty() ? static_cast<int32_t>(i) : operands[i]));
    if (llvm::any_of(plan_.exprs, [](const Expr &x) { return x.kind == ExprKind::Checked; }))
      status_ = context_.status();
    b_.SetInsertPoint(body);
    value_ = scalars_.cast(function_.getArg(1), DType::f32, epilogue_.type);
    restart();
    bindPoint();
    for (const Store &s : plan_.stores)
      eval(s.value, 0, 0);
    for (const Store &s : plan_.stores)
      store(s, 0);
    if (epilogue_.rootBuffer >= 0) {
      Value *p = b_.CreateGEP(scalars_.memoryType(epilogue_.type), context_.buffer(epilogue_.rootBuffer), function_.getArg(2));
      b_.CreateAlignedStore(value_, p, llvm::Align(static_cast<uint64_t>(tressel::sizeOf(epilogue_.type))));
    }
    b_.CreateRetVoid();
  }

private:
  Value *symbol(Size symbol) override { return context_.symbol(symbol); }
  Value *instead(int32_t e, int k, int v) override {
    const Expr &x = expr(e);
    if (x.buffer != epilogue_.rootInput)
      return nullptr;
    if (x.index != rootIndex_)
      throw InternalError("an epilogue reads its root's value at another point");
    return x.guard < 0 ? value_
                       : b_.CreateSelect(eval(x.guard, k, v), value_, llvm::Constant::getNullValue(value_->getType()));
  }

  /// The loop indices from the number of the root's element: how it is read says which dimension is which.
  void bindPoint() {
    rootIndex_.coef.assign(plan_.dims.size(), 0);
    const auto load = llvm::find_if(
        plan_.exprs, [&](const Expr &x) { return x.kind == ExprKind::Load && x.buffer == epilogue_.rootInput; });
    std::vector<int> order; // the fastest first
    Size stride = 1;
    for (size_t n = 0; n < plan_.dims.size(); ++n) {
      int next = static_cast<int>(plan_.dims.size() - 1 - n);
      if (load != plan_.exprs.end())
        for (int d = static_cast<int>(plan_.dims.size()); d-- > 0;)
          if (coef(load->index, d) == stride && !llvm::is_contained(order, d)) {
            next = d;
            break;
          }
      order.push_back(next);
      rootIndex_.coef[static_cast<size_t>(next)] = stride;
      stride *= sizeOf(next);
    }
    Value *rest = function_.getArg(2);
    if (dim::bounds(stride).hi < int64_t(1) << 31)
      rest = b_.CreateTrunc(rest, b_.getInt32Ty());
    for (size_t n = 0; n < order.size(); ++n) {
      if (n + 1 == order.size()) {
        bind(order[n], toIndex(rest));
        break;
      }
      Value *size = b_.CreateIntCast(i64(sizeOf(order[n])), rest->getType(), true),
            *quotient = b_.CreateUDiv(rest, size);
      bind(order[n], toIndex(b_.CreateSub(rest, b_.CreateMul(quotient, size))));
      rest = quotient;
    }
  }

  const Epilogue &epilogue_;
  Context context_;
  Value *value_ = nullptr;
  Affine rootIndex_;
};

} // namespace

llvm::Function *emitEpilogue(llvm::Module &module, const Epilogue &epilogue, const std::string &name) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getFloatTy(), b.getInt64Ty()}, false);
  // A root compiled from C++ has declared it.
  auto *function = llvm::cast<llvm::Function>(module.getOrInsertFunction(name, type).getCallee());
  if (!function->isDeclaration())
    throw InternalError("there is an epilogue already");
  function->setLinkage(llvm::GlobalValue::InternalLinkage);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  if (epilogue.plan) {
    EpilogueEmitter(*function, epilogue).run();
    return function;
  }
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  ScalarEmitter scalars(b, Target::features());
  Value *value = scalars.cast(function->getArg(1), DType::f32, epilogue.type);
  Value *p = b.CreateGEP(scalars.memoryType(epilogue.type),
                         Context(b, function->getArg(0), epilogue).buffer(epilogue.rootBuffer), function->getArg(2));
  b.CreateAlignedStore(value, p, llvm::Align(static_cast<uint64_t>(sizeOf(epilogue.type))));
  b.CreateRetVoid();
  return function;
}

} // namespace tressel::codegen::cuda
