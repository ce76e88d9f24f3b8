#include "codegen/cpu/EmitKernel.h"

#include "tressel/runtime/Kernel.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

#include <bit>
#include <functional>
#include <map>

namespace tressel::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Type;
using llvm::Value;
using op::Combine;
using op::ScalarOp;

/// Emits one kernel. The loops are entered from the outside in; each opens a scope. An expression is evaluated in the
/// outermost scope where the loop indices it depends on are known, just before that scope's current inner loop, so
/// nothing is computed more often than needed, loads included (which LLVM could not move across the stores, because an
/// output may share its bytes with an operand that is read pointwise).
class KernelEmitter {
public:
  KernelEmitter(llvm::Module &module, const LoopPlan &plan, const LoopSchedule &schedule, const CpuFeatures &features,
                const KernelSignature &signature)
      : module_(module), plan_(plan), s_(schedule), signature_(signature), b_(module.getContext()), scalars_(b_, features) {
    llvm::FastMathFlags flags;
    flags.setAllowContract();
    b_.setFastMathFlags(flags);
  }
  llvm::Function *run();

private:
  struct Scope {
    llvm::Instruction *mark = nullptr; ///< in the enclosing scope, the branch that enters this one
    std::map<std::tuple<int, int, int>, Value *> values;
    std::map<int, Value *> pointers;
  };

  // Structure.
  void openScope(llvm::Instruction *mark) { scopes_.push_back({mark, {}, {}}), level_ = scopes_.size() - 1; }
  void closeScope() { scopes_.pop_back(), level_ = scopes_.size() - 1; }
  BasicBlock *block(const char *name) { return BasicBlock::Create(module_.getContext(), name, function_); }
  /// for (i = low; i + step <= high; i += step); runs at least once if `nonEmpty`.
  void loop(int dim, Value *low, Value *high, int64_t step, bool nonEmpty, llvm::function_ref<void()> body);
  /// The body once, with dim = index, in a scope of its own.
  void once(int dim, Value *index, llvm::function_ref<void()> body);
  /// In a scope of its own: if (condition) then(); else otherwise().
  void branch(Value *condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);
  void bind(int dim, Value *index) { index_[static_cast<size_t>(dim)] = index, dimLevel_[static_cast<size_t>(dim)] = level_; }
  template <typename Fn> auto atLevel(size_t level, Fn &&fn);

  void emitUnits(Value *begin, Value *end);
  void emitUnit(Value *unit);
  void emitInner(size_t k);
  void emitVectorLoop();
  void emitPoint(); ///< block_ x unroll_ parallel points: stages, then stores
  void emitStage(int stage);
  void emitReducedLoops(size_t k, llvm::function_ref<void()> body);
  void accumulate(const Reduction &r, size_t number);
  void finish(const Reduction &r, size_t number);
  void store(const Store &s, int number);

  void planScratch();
  Value *scratchPlace(int32_t e, int m, int u);

  // Values. `m` is the number within the block, `u` that of the vector.
  Value *eval(int32_t e, int m, int u);
  Value *evalHere(int32_t e, int m, int u);
  Value *compute(const Expr &x, int m, int u, int32_t e);
  Value *load(int32_t e, int m, int u);
  Value *pointer(int id, int32_t buffer, const Affine &index, size_t level);
  Value *elementPointer(int id, int32_t buffer, const Affine &index, int m, int u);
  Value *laneOffsets(const Affine &index, int m, int u);
  Value *scalarIndex(const Affine &index, int m, int u);
  Value *inRange(const Expr &x, int m, int u);
  Value *checked(const Expr &x, int m, int u);

  Value *storesAligned();
  bool alongVector(uint64_t dims) const { return s_.vectorDim >= 0 && (dims >> s_.vectorDim & 1); }
  bool alongBlock(uint64_t dims) const { return s_.blockDim >= 0 && (dims >> s_.blockDim & 1); }
  size_t levelOf(uint64_t dims) const;
  bool laneIndirect(const Affine &index) const;
  unsigned lanes() const { return static_cast<unsigned>(s_.lanes); }
  Type *vectorOf(Type *t) const { return llvm::FixedVectorType::get(t, lanes()); }
  /// Constant mask of the lanes that exist in vector u; null if all do.
  Value *tailMask(int u);
  Value *i64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  Value *iota(Type *element, int64_t step);
  llvm::AllocaInst *variable(Type *type);
  int64_t coef(const Affine &a, int dim) const { return dim < 0 ? 0 : a.coef[static_cast<size_t>(dim)]; }
  int64_t memoryBytes(int32_t buffer) const { return sizeOf(plan_.buffers[static_cast<size_t>(buffer)].dtype); }

  llvm::Module &module_;
  const LoopPlan &plan_;
  const LoopSchedule &s_;
  const KernelSignature &signature_;
  llvm::IRBuilder<> b_;
  ScalarEmitter scalars_;
  llvm::Function *function_ = nullptr;
  llvm::Instruction *allocas_ = nullptr;
  llvm::AllocaInst *status_ = nullptr;
  std::vector<Value *> buffers_;
  std::vector<Scope> scopes_;
  size_t level_ = 0;
  std::vector<Value *> index_;
  std::vector<size_t> dimLevel_;
  std::vector<char> usesReduced_;
  size_t reducedLevel_ = 0;
  Value *tileBegin_ = nullptr, *tileEnd_ = nullptr;

  bool nonTemporal_ = false; ///< results go past the caches
  int block_ = 1, unroll_ = 1; ///< of the instance being emitted
  int64_t tail_ = 0;           ///< lanes of its last vector, 0: all
  struct Accumulator {
    llvm::AllocaInst *value, *index;
  };
  std::map<std::tuple<size_t, int, int>, Accumulator> accumulators_;
  /// Costly expressions over P x R that several passes over R need: computed in the first, kept on the stack.
  struct Scratch {
    llvm::AllocaInst *memory;
    int firstPass;
  };
  std::map<int32_t, Scratch> scratch_;
  int pass_ = 0; ///< the stage, or numStages when full results are stored
  std::map<std::tuple<size_t, int, int>, Value *> reduced_;
};

template <typename Fn> auto KernelEmitter::atLevel(size_t level, Fn &&fn) {
  if (level == level_)
    return fn();
  const auto saved = b_.saveIP();
  const size_t savedLevel = level_;
  b_.SetInsertPoint(scopes_[level + 1].mark);
  level_ = level;
  auto result = fn();
  level_ = savedLevel;
  b_.restoreIP(saved);
  return result;
}

void KernelEmitter::loop(int dim, Value *low, Value *high, int64_t step, bool nonEmpty, llvm::function_ref<void()> body) {
  BasicBlock *from = b_.GetInsertBlock(), *inside = block("loop"), *after = block("after");
  Value *last = b_.CreateSub(high, i64(step));
  llvm::Instruction *enter = nonEmpty ? static_cast<llvm::Instruction *>(b_.CreateBr(inside))
                                      : b_.CreateCondBr(b_.CreateICmpSLE(low, last), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode *i = b_.CreatePHI(b_.getInt64Ty(), 2);
  openScope(enter);
  if (dim >= 0)
    bind(dim, i);
  else
    index_.push_back(i);
  body();
  if (dim < 0)
    index_.pop_back();
  Value *next = b_.CreateNSWAdd(i, i64(step));
  i->addIncoming(low, from);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLE(next, last), inside, after);
  closeScope();
  b_.SetInsertPoint(after);
}

void KernelEmitter::once(int dim, Value *index, llvm::function_ref<void()> body) {
  BasicBlock *inside = block("once");
  llvm::Instruction *enter = b_.CreateBr(inside);
  b_.SetInsertPoint(inside);
  openScope(enter);
  bind(dim, index);
  body();
  closeScope();
}

void KernelEmitter::branch(Value *condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  BasicBlock *yes = block("then"), *no = block("else"), *after = block("after");
  llvm::Instruction *enter = b_.CreateCondBr(condition, yes, no);
  for (auto [at, body] : {std::pair(yes, then), std::pair(no, otherwise)}) {
    b_.SetInsertPoint(at);
    openScope(enter);
    body();
    closeScope();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

Value *KernelEmitter::iota(Type *element, int64_t step) {
  llvm::SmallVector<llvm::Constant *, 64> values;
  for (unsigned l = 0; l < lanes(); ++l)
    values.push_back(llvm::ConstantInt::getSigned(element, step * l));
  return llvm::ConstantVector::get(values);
}

llvm::AllocaInst *KernelEmitter::variable(Type *type) {
  const auto saved = b_.saveIP();
  b_.SetInsertPoint(allocas_);
  llvm::AllocaInst *a = b_.CreateAlloca(type);
  b_.restoreIP(saved);
  return a;
}

Value *KernelEmitter::tailMask(int u) {
  if (tail_ == 0 || u != unroll_ - 1)
    return nullptr;
  llvm::SmallVector<llvm::Constant *, 64> values;
  for (unsigned l = 0; l < lanes(); ++l)
    values.push_back(b_.getInt1(l < static_cast<uint64_t>(tail_)));
  return llvm::ConstantVector::get(values);
}

size_t KernelEmitter::levelOf(uint64_t dims) const {
  size_t level = 0;
  for (; dims; dims &= dims - 1)
    level = std::max(level, dimLevel_[static_cast<size_t>(std::countr_zero(dims))]);
  return level;
}

bool KernelEmitter::laneIndirect(const Affine &index) const {
  for (const auto &i : index.indirect)
    if (alongVector(plan_.exprs[static_cast<size_t>(i.expr)].dims))
      return true;
  return false;
}

/// The address for block and vector number 0, built up scope by scope. Indirect parts are left out.
Value *KernelEmitter::pointer(int id, int32_t buffer, const Affine &index, size_t level) {
  if (auto it = scopes_[level].pointers.find(id); it != scopes_[level].pointers.end())
    return it->second;
  Value *base = level == 0 ? buffers_[static_cast<size_t>(buffer)] : pointer(id, buffer, index, level - 1);
  Value *result = atLevel(level, [&] {
    Value *offset = level == 0 && index.offset ? i64(index.offset) : nullptr;
    for (size_t d = 0; d < index.coef.size(); ++d) {
      if (index.coef[d] == 0 || dimLevel_[d] != level)
        continue;
      Value *term = b_.CreateNSWMul(index_[d], i64(index.coef[d]));
      offset = offset ? b_.CreateNSWAdd(offset, term) : term;
    }
    Type *element = scalars_.memoryType(plan_.buffers[static_cast<size_t>(buffer)].dtype);
    return offset ? b_.CreateGEP(element, base, offset) : base;
  });
  return scopes_[level].pointers[id] = result;
}

Value *KernelEmitter::elementPointer(int id, int32_t buffer, const Affine &index, int m, int u) {
  uint64_t dims = 0;
  for (size_t d = 0; d < index.coef.size(); ++d)
    if (index.coef[d])
      dims |= uint64_t(1) << d;
  Value *p = pointer(id, buffer, index, levelOf(dims));
  Type *element = scalars_.memoryType(plan_.buffers[static_cast<size_t>(buffer)].dtype);
  const int64_t constant = coef(index, s_.blockDim) * m + coef(index, s_.vectorDim) * s_.lanes * u;
  for (const auto &i : index.indirect)
    if (!alongVector(plan_.exprs[static_cast<size_t>(i.expr)].dims))
      p = b_.CreateGEP(element, p, b_.CreateNSWMul(eval(i.expr, m, u), i64(i.scale)));
  return constant ? b_.CreateGEP(element, p, i64(constant)) : p;
}

/// What the lanes add to the address of the first one, in elements.
Value *KernelEmitter::laneOffsets(const Affine &index, int m, int u) {
  Value *offsets = iota(b_.getInt64Ty(), coef(index, s_.vectorDim));
  for (const auto &i : index.indirect)
    if (alongVector(plan_.exprs[static_cast<size_t>(i.expr)].dims))
      offsets = b_.CreateAdd(offsets, b_.CreateMul(eval(i.expr, m, u), llvm::ConstantInt::getSigned(offsets->getType(), i.scale)));
  return offsets;
}

/// The value of the expression in lane 0, without what indirect parts along the lanes add.
Value *KernelEmitter::scalarIndex(const Affine &index, int m, int u) {
  Value *sum = i64(index.offset + coef(index, s_.blockDim) * m + coef(index, s_.vectorDim) * s_.lanes * u);
  for (size_t d = 0; d < index.coef.size(); ++d)
    if (index.coef[d])
      sum = b_.CreateNSWAdd(sum, b_.CreateNSWMul(index_[d], i64(index.coef[d])));
  for (const auto &i : index.indirect)
    if (!alongVector(plan_.exprs[static_cast<size_t>(i.expr)].dims))
      sum = b_.CreateNSWAdd(sum, b_.CreateNSWMul(eval(i.expr, m, u), i64(i.scale)));
  return sum;
}

Value *KernelEmitter::inRange(const Expr &x, int m, int u) {
  Value *base = scalarIndex(x.index, m, u);
  if (!alongVector(x.dims))
    return b_.CreateICmpULT(base, i64(x.i));
  if (laneIndirect(x.index) || x.i >= (int64_t(1) << 30)) {
    Value *at = b_.CreateAdd(b_.CreateVectorSplat(lanes(), base), laneOffsets(x.index, m, u));
    return b_.CreateICmpULT(at, llvm::ConstantInt::getSigned(at->getType(), x.i));
  }
  // Indices of tensors whose dimension is below 2^30 fit 32 bits, which doubles the lanes of an instruction.
  Value *at = b_.CreateAdd(b_.CreateVectorSplat(lanes(), b_.CreateTrunc(base, b_.getInt32Ty())),
                           iota(b_.getInt32Ty(), coef(x.index, s_.vectorDim)));
  return b_.CreateICmpULT(at, llvm::ConstantInt::getSigned(at->getType(), x.i));
}

Value *KernelEmitter::checked(const Expr &x, int m, int u) {
  const bool vector = alongVector(x.dims);
  Value *index = eval(x.args[0], m, u);
  if (vector)
    index = scalars_.splat(index, lanes());
  Value *size = llvm::ConstantInt::getSigned(index->getType(), x.i), *zero = llvm::ConstantInt::get(index->getType(), 0);
  Value *wrapped = b_.CreateSelect(b_.CreateICmpSLT(index, zero), b_.CreateAdd(index, size), index);
  Value *good = b_.CreateICmpULT(wrapped, size);
  Value *bad = b_.CreateNot(good);
  if (x.guard >= 0) {
    Value *guard = eval(x.guard, m, u);
    bad = b_.CreateAnd(bad, vector ? scalars_.splat(guard, lanes()) : guard);
  }
  if (vector) {
    if (Value *mask = tailMask(u))
      bad = b_.CreateAnd(bad, mask);
    bad = b_.CreateOrReduce(bad);
  }
  Value *status = b_.CreateLoad(b_.getInt32Ty(), status_);
  b_.CreateStore(b_.CreateSelect(bad, b_.getInt32(runtime::kKernelIndexOutOfRange), status), status_);
  return b_.CreateSelect(good, wrapped, zero);
}

Value *KernelEmitter::load(int32_t e, int m, int u) {
  const Expr &x = plan_.exprs[static_cast<size_t>(e)];
  Type *memory = scalars_.memoryType(x.dtype);
  const bool vector = alongVector(x.dims);
  auto finish = [&](Value *v) -> Value * {
    return x.dtype == DType::boolean ? b_.CreateICmpNE(v, llvm::ConstantInt::get(v->getType(), 0)) : v;
  };
  if (plan_.buffers[static_cast<size_t>(x.buffer)].elements == 0)
    return llvm::Constant::getNullValue(vector ? vectorOf(scalars_.registerType(x.dtype)) : scalars_.registerType(x.dtype));
  Value *guard = x.guard >= 0 ? eval(x.guard, m, u) : nullptr;
  Value *p = elementPointer(e, x.buffer, x.index, m, u);
  const llvm::Align align(static_cast<uint64_t>(memoryBytes(x.buffer)));
  if (!vector) {
    if (!guard)
      return finish(b_.CreateAlignedLoad(memory, p, align));
    // The first element stands in for one that must not be read.
    Value *safe = b_.CreateSelect(guard, p, buffers_[static_cast<size_t>(x.buffer)]);
    Value *v = b_.CreateAlignedLoad(memory, safe, align);
    return finish(b_.CreateSelect(guard, v, llvm::Constant::getNullValue(memory)));
  }
  Value *mask = tailMask(u);
  if (guard) {
    guard = scalars_.splat(guard, lanes());
    mask = mask ? b_.CreateAnd(mask, guard) : guard;
  }
  Type *type = vectorOf(memory);
  Value *zero = llvm::Constant::getNullValue(type);
  if (coef(x.index, s_.vectorDim) == 1 && !laneIndirect(x.index))
    return finish(mask ? static_cast<Value *>(b_.CreateMaskedLoad(type, p, align, mask, zero))
                       : b_.CreateAlignedLoad(type, p, align));
  Value *pointers = b_.CreateGEP(memory, p, laneOffsets(x.index, m, u));
  if (!mask)
    mask = llvm::ConstantInt::getTrue(vectorOf(b_.getInt1Ty()));
  return finish(b_.CreateMaskedGather(type, pointers, align, mask, zero));
}

Value *KernelEmitter::eval(int32_t e, int m, int u) {
  const Expr &x = plan_.exprs[static_cast<size_t>(e)];
  if (!alongBlock(x.dims))
    m = 0;
  // Whether a value stands for all lanes of vector u depends on u alone, so a tail's mask is part of that vector.
  if (!alongVector(x.dims))
    u = 0;
  size_t level = levelOf(x.dims);
  if (usesReduced_[static_cast<size_t>(e)])
    level = std::max(level, reducedLevel_);
  auto &cache = scopes_[level].values;
  const std::tuple<int, int, int> key(e, m, u);
  if (auto it = cache.find(key); it != cache.end())
    return it->second;
  Value *v = atLevel(level, [&] { return evalHere(e, m, u); });
  return scopes_[level].values[key] = v;
}

/// Chooses what is kept from one pass over R to the next.
void KernelEmitter::planScratch() {
  constexpr int64_t mostBytes = 1 << 16;
  std::vector<uint64_t> passes(plan_.exprs.size(), 0); // in which each expression is used, a bit each
  for (const Reduction &r : plan_.reductions)
    passes[static_cast<size_t>(r.body)] |= uint64_t(1) << r.stage;
  for (const Store &s : plan_.stores)
    if (s.full)
      passes[static_cast<size_t>(s.value)] |= uint64_t(1) << plan_.numStages;
  uint64_t reducedDims = 0;
  for (size_t d = static_cast<size_t>(plan_.numParallel); d < plan_.dims.size(); ++d)
    reducedDims |= uint64_t(1) << d;
  int64_t bytes = 0;
  for (size_t e = plan_.exprs.size(); e-- > 0;) {
    const Expr &x = plan_.exprs[e];
    const bool costly = x.kind == ExprKind::Scalar && x.op >= ScalarOp::Exp && x.op <= ScalarOp::Logistic;
    const bool everywhere = (x.dims & reducedDims) == reducedDims;
    if (std::popcount(passes[e]) > 1 && costly && everywhere && x.dtype != DType::boolean) {
      const int64_t padded = s_.vectorReduced ? plan_.reducedPoints() + 64 : plan_.reducedPoints() * s_.lanes * s_.unroll;
      const int64_t elements = padded * s_.block;
      if (bytes + elements * sizeOf(x.dtype) <= mostBytes) {
        bytes += elements * sizeOf(x.dtype);
        llvm::AllocaInst *memory = variable(llvm::ArrayType::get(scalars_.registerType(x.dtype), static_cast<uint64_t>(elements)));
        memory->setAlignment(llvm::Align(64));
        scratch_[static_cast<int32_t>(e)] = {memory, std::countr_zero(passes[e])};
        passes[e] = passes[e] & (~passes[e] + 1); // its arguments are needed in its first pass only
      }
    }
    auto use = [&](int32_t a) {
      if (a >= 0)
        passes[static_cast<size_t>(a)] |= passes[e];
    };
    for (int32_t a : x.args)
      use(a);
    use(x.guard);
    for (const auto &i : x.index.indirect)
      use(i.expr);
  }
}

Value *KernelEmitter::scratchPlace(int32_t e, int m, int u) {
  // Element r of row m; or, with lanes across P, vector (r, m, u).
  Value *at = i64(0);
  for (size_t d = static_cast<size_t>(plan_.numParallel); d < plan_.dims.size(); ++d)
    at = b_.CreateNSWAdd(b_.CreateNSWMul(at, i64(plan_.dims[d].size)), index_[d]);
  if (s_.vectorReduced)
    at = b_.CreateNSWAdd(at, i64((plan_.reducedPoints() + 64) * m + int64_t(s_.lanes) * u));
  else
    at = b_.CreateNSWAdd(b_.CreateNSWMul(at, i64(int64_t(s_.lanes) * s_.unroll * s_.block)),
                         i64((int64_t(m) * s_.unroll + u) * s_.lanes));
  const Scratch &s = scratch_.at(e);
  return b_.CreateGEP(scalars_.registerType(plan_.exprs[static_cast<size_t>(e)].dtype), s.memory, at);
}

Value *KernelEmitter::evalHere(int32_t e, int m, int u) {
  const Expr &x = plan_.exprs[static_cast<size_t>(e)];
  if (auto kept = scratch_.find(e); kept != scratch_.end()) {
    Type *type = scalars_.registerType(x.dtype);
    const llvm::Align align(static_cast<uint64_t>(sizeOf(x.dtype)));
    if (alongVector(x.dims))
      type = vectorOf(type);
    if (pass_ != kept->second.firstPass)
      return b_.CreateAlignedLoad(type, scratchPlace(e, m, u), align);
    Value *v = compute(x, m, u, e);
    b_.CreateAlignedStore(v, scratchPlace(e, m, u), align);
    return v;
  }
  return compute(x, m, u, e);
}

Value *KernelEmitter::compute(const Expr &x, int m, int u, int32_t e) {
  switch (x.kind) {
  case ExprKind::Load: return load(e, m, u);
  case ExprKind::InRange: return inRange(x, m, u);
  case ExprKind::Checked: return checked(x, m, u);
  case ExprKind::Reduced: return reduced_.at({static_cast<size_t>(x.i), m, u});
  case ExprKind::Index: {
    Value *base = scalarIndex(x.index, m, u);
    return alongVector(x.dims) ? b_.CreateAdd(b_.CreateVectorSplat(lanes(), base), laneOffsets(x.index, m, u)) : base;
  }
  case ExprKind::Scalar: break;
  }
  if (x.op == ScalarOp::Const)
    return scalars_.constant(x.dtype, x.f, x.i);
  llvm::SmallVector<Value *, 3> args;
  DType argType = x.dtype;
  for (int32_t a : x.args) {
    if (a < 0)
      continue;
    Value *v = eval(a, m, u);
    args.push_back(alongVector(x.dims) ? scalars_.splat(v, lanes()) : v);
    argType = plan_.exprs[static_cast<size_t>(a)].dtype;
  }
  return scalars_.emit(x.op, x.dtype, args, argType);
}

void KernelEmitter::store(const Store &s, int number) {
  const bool vector = s_.vectorDim >= 0 && (s.full || !s_.vectorReduced);
  const DType type = plan_.buffers[static_cast<size_t>(s.buffer)].dtype;
  Type *memory = scalars_.memoryType(type);
  const llvm::Align align(static_cast<uint64_t>(sizeOf(type)));
  for (int m = 0; m < block_; ++m)
    for (int u = 0; u < (vector ? unroll_ : 1); ++u) {
      Value *v = eval(s.value, m, u);
      if (vector)
        v = scalars_.splat(v, lanes());
      if (type == DType::boolean)
        v = b_.CreateZExt(v, vector ? vectorOf(memory) : memory);
      Value *p = elementPointer(-1 - number, s.buffer, s.index, m, u);
      Value *mask = vector ? tailMask(u) : nullptr;
      if (!vector) {
        b_.CreateAlignedStore(v, p, align);
      } else if (coef(s.index, s_.vectorDim) == 1) {
        // One lane is stored as such: LLVM 22 takes a narrowing masked store of one lane for one of the wide type.
        if (mask && tail_ == 1)
          b_.CreateAlignedStore(b_.CreateExtractElement(v, uint64_t(0)), p, align);
        else if (mask)
          b_.CreateMaskedStore(v, p, align, mask);
        else if (nonTemporal_)
          b_.CreateAlignedStore(v, p, llvm::Align(static_cast<uint64_t>(s_.lanes * sizeOf(type))))
              ->setMetadata(llvm::LLVMContext::MD_nontemporal,
                            llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
        else
          b_.CreateAlignedStore(v, p, align);
      } else {
        b_.CreateMaskedScatter(v, b_.CreateGEP(memory, p, laneOffsets(s.index, m, u)), align,
                               mask ? mask : llvm::ConstantInt::getTrue(vectorOf(b_.getInt1Ty())));
      }
    }
}

void KernelEmitter::accumulate(const Reduction &r, size_t number) {
  const bool vector = s_.vectorDim >= 0;
  for (int m = 0; m < block_; ++m)
    for (int u = 0; u < unroll_; ++u) {
      const Accumulator &acc = accumulators_.at({number, m, u});
      Value *x = eval(r.body, m, u);
      if (vector)
        x = scalars_.splat(x, lanes());
      Value *old = b_.CreateLoad(acc.value->getAllocatedType(), acc.value);
      Value *mask = s_.vectorReduced ? tailMask(u) : nullptr; // other lanes of a parallel tail are never stored
      if (!acc.index) {
        Value *sum = scalars_.combine(r.combine, r.accumulate, old, x);
        b_.CreateStore(mask ? b_.CreateSelect(mask, sum, old) : sum, acc.value);
        continue;
      }
      // The index of the one reduced dimension.
      const int dim = static_cast<int>(plan_.dims.size()) - 1;
      Type *indexType = b_.getInt64Ty();
      Value *index = index_[static_cast<size_t>(dim)];
      if (vector) {
        index = b_.CreateVectorSplat(lanes(), index);
        indexType = vectorOf(indexType);
        if (s_.vectorReduced)
          index = b_.CreateAdd(index, b_.CreateAdd(iota(b_.getInt64Ty(), 1),
                                                   llvm::ConstantInt::getSigned(indexType, int64_t(s_.lanes) * u)));
      }
      Value *oldIndex = b_.CreateLoad(acc.index->getAllocatedType(), acc.index);
      Value *better = scalars_.emit(r.combine == Combine::ArgMax ? ScalarOp::Gt : ScalarOp::Lt, DType::boolean, {x, old},
                                    r.accumulate);
      if (isFloat(r.accumulate)) // the first NaN wins
        better = b_.CreateOr(better, b_.CreateAnd(b_.CreateFCmpUNO(x, x), b_.CreateFCmpORD(old, old)));
      better = b_.CreateOr(better, b_.CreateICmpEQ(oldIndex, llvm::ConstantInt::getSigned(indexType, INT64_MAX)));
      if (mask)
        better = b_.CreateAnd(better, mask);
      b_.CreateStore(b_.CreateSelect(better, x, old), acc.value);
      b_.CreateStore(b_.CreateSelect(better, index, oldIndex), acc.index);
    }
}

void KernelEmitter::finish(const Reduction &r, size_t number) {
  auto merge = [&](std::pair<Value *, Value *> a, std::pair<Value *, Value *> b) -> std::pair<Value *, Value *> {
    if (!a.second)
      return {scalars_.combine(r.combine, r.accumulate, a.first, b.first), nullptr};
    // Unset entries hold the greatest index, so they lose against equal values that are set.
    const ScalarOp op = r.combine == Combine::ArgMax ? ScalarOp::Gt : ScalarOp::Lt;
    Value *better = scalars_.emit(op, DType::boolean, {b.first, a.first}, r.accumulate);
    Value *equal = b_.CreateOr(scalars_.emit(ScalarOp::Eq, DType::boolean, {a.first, b.first}, r.accumulate),
                               b_.CreateICmpEQ(a.second, llvm::ConstantInt::getSigned(a.second->getType(), INT64_MAX)));
    if (isFloat(r.accumulate)) {
      Value *nanA = b_.CreateFCmpUNO(a.first, a.first), *nanB = b_.CreateFCmpUNO(b.first, b.first);
      better = b_.CreateOr(better, b_.CreateAnd(nanB, b_.CreateNot(nanA)));
      equal = b_.CreateOr(equal, b_.CreateAnd(nanA, nanB));
    }
    Value *set = b_.CreateICmpNE(b.second, llvm::ConstantInt::getSigned(b.second->getType(), INT64_MAX));
    better = b_.CreateAnd(b_.CreateOr(better, b_.CreateAnd(equal, b_.CreateICmpSLT(b.second, a.second))), set);
    return {b_.CreateSelect(better, b.first, a.first), b_.CreateSelect(better, b.second, a.second)};
  };
  auto read = [&](int m, int u) -> std::pair<Value *, Value *> {
    const Accumulator &acc = accumulators_.at({number, m, u});
    return {b_.CreateLoad(acc.value->getAllocatedType(), acc.value),
            acc.index ? b_.CreateLoad(acc.index->getAllocatedType(), acc.index) : nullptr};
  };
  const bool horizontal = s_.vectorReduced && s_.vectorDim >= 0;
  const DType valueType = r.accumulate;
  for (int m = 0; m < block_; ++m)
    for (int u = 0; u < (horizontal ? 1 : unroll_); ++u) {
      std::pair<Value *, Value *> v = read(m, u);
      if (horizontal) {
        for (int other = 1; other < s_.unroll; ++other)
          v = merge(v, read(m, other));
        for (int width = s_.lanes / 2; width > 0; width /= 2) {
          llvm::SmallVector<int, 64> low, high;
          for (int l = 0; l < width; ++l)
            low.push_back(l), high.push_back(width + l);
          auto half = [&](Value *x, llvm::ArrayRef<int> lanesOf) { return x ? b_.CreateShuffleVector(x, lanesOf) : nullptr; };
          v = merge({half(v.first, low), half(v.second, low)}, {half(v.first, high), half(v.second, high)});
        }
        v.first = b_.CreateExtractElement(v.first, uint64_t(0));
        if (v.second)
          v.second = b_.CreateExtractElement(v.second, uint64_t(0));
      }
      Value *out = v.second ? scalars_.cast(v.second, DType::i64, r.dtype) : v.first;
      if (!v.second) {
        if (r.scale != 1) {
          Value *factor = scalars_.constant(valueType, r.scale, static_cast<int64_t>(r.scale));
          if (out->getType()->isVectorTy())
            factor = scalars_.splat(factor, lanes());
          out = scalars_.emit(ScalarOp::Mul, valueType, {out, factor}, valueType);
        }
        out = scalars_.cast(out, valueType, r.dtype);
      }
      reduced_[{number, m, u}] = out;
    }
}

/// Loops over the reduced dimensions, the vector one innermost, around `body`.
void KernelEmitter::emitReducedLoops(size_t k, llvm::function_ref<void()> body) {
  const size_t first = static_cast<size_t>(plan_.numParallel);
  if (first + k < plan_.dims.size()) {
    const int dim = static_cast<int>(first + k);
    const int64_t size = plan_.dims[static_cast<size_t>(dim)].size;
    if (dim == s_.vectorDim)
      return emitReducedLoops(k + 1, body);
    if (size > 0)
      loop(dim, i64(0), i64(size), 1, true, [&] { emitReducedLoops(k + 1, body); });
    return;
  }
  if (!s_.vectorReduced || s_.vectorDim < 0)
    return body();
  const int64_t size = plan_.dims[static_cast<size_t>(s_.vectorDim)].size, step = int64_t(s_.lanes) * s_.unroll;
  const int64_t full = size / step * step, rest = size - full;
  unroll_ = s_.unroll, tail_ = 0;
  if (full)
    loop(s_.vectorDim, i64(0), i64(full), step, true, body);
  if (rest) {
    unroll_ = static_cast<int>((rest + s_.lanes - 1) / s_.lanes), tail_ = rest % s_.lanes;
    once(s_.vectorDim, i64(full), body);
  }
  unroll_ = s_.unroll, tail_ = 0;
}

void KernelEmitter::emitStage(int stage) {
  const bool vector = s_.vectorDim >= 0;
  for (size_t number = 0; number < plan_.reductions.size(); ++number) {
    const Reduction &r = plan_.reductions[number];
    if (r.stage != stage)
      continue;
    const bool arg = r.combine == Combine::ArgMax || r.combine == Combine::ArgMin;
    Type *type = scalars_.registerType(r.accumulate), *indexType = b_.getInt64Ty();
    Value *start = scalars_.identity(r.combine, r.accumulate);
    for (int m = 0; m < block_; ++m)
      for (int u = 0; u < unroll_; ++u) {
        Accumulator acc{variable(vector ? vectorOf(type) : type),
                        arg ? variable(vector ? vectorOf(indexType) : indexType) : nullptr};
        b_.CreateStore(vector ? scalars_.splat(start, lanes()) : start, acc.value);
        if (arg)
          b_.CreateStore(llvm::ConstantInt::getSigned(acc.index->getAllocatedType(), INT64_MAX), acc.index);
        accumulators_[{number, m, u}] = acc;
      }
  }
  emitReducedLoops(0, [&] {
    for (size_t number = 0; number < plan_.reductions.size(); ++number)
      if (plan_.reductions[number].stage == stage)
        accumulate(plan_.reductions[number], number);
  });
  for (size_t number = 0; number < plan_.reductions.size(); ++number)
    if (plan_.reductions[number].stage == stage)
      finish(plan_.reductions[number], number);
}

void KernelEmitter::emitPoint() {
  reducedLevel_ = level_;
  for (pass_ = 0; pass_ < plan_.numStages; ++pass_)
    emitStage(pass_);
  bool full = false;
  for (size_t i = 0; i < plan_.stores.size(); ++i) {
    full |= plan_.stores[i].full;
    if (!plan_.stores[i].full)
      store(plan_.stores[i], static_cast<int>(i));
  }
  if (full)
    emitReducedLoops(0, [&] {
      for (size_t i = 0; i < plan_.stores.size(); ++i)
        if (plan_.stores[i].full)
          store(plan_.stores[i], static_cast<int>(i));
    });
}

void KernelEmitter::emitVectorLoop() {
  unroll_ = s_.unroll, tail_ = 0;
  if (s_.vectorDim < 0 || s_.vectorReduced)
    return emitPoint();
  const int64_t size = plan_.dims[static_cast<size_t>(s_.vectorDim)].size, step = int64_t(s_.lanes) * s_.unroll;
  const int64_t rest = size % step;
  if (size >= step)
    loop(s_.vectorDim, tileBegin_, tileEnd_, step, /*nonEmpty=*/s_.tile == size, [&] { emitPoint(); });
  if (rest == 0)
    return;
  unroll_ = static_cast<int>((rest + s_.lanes - 1) / s_.lanes), tail_ = rest % s_.lanes;
  // The remainder is in the last tile.
  if (s_.tile == size)
    once(s_.vectorDim, i64(size - rest), [&] { emitPoint(); });
  else
    branch(b_.CreateICmpEQ(tileEnd_, i64(size)),
           [&] { once(s_.vectorDim, i64(size - rest), [&] { emitPoint(); }); }, [] {});
  unroll_ = s_.unroll, tail_ = 0;
}

void KernelEmitter::emitInner(size_t k) {
  if (k == s_.innerDims.size())
    return emitVectorLoop();
  const int dim = s_.innerDims[k];
  const int64_t size = plan_.dims[static_cast<size_t>(dim)].size;
  if (dim != s_.blockDim)
    return loop(dim, i64(0), i64(size), 1, true, [&] { emitInner(k + 1); });
  const int64_t rest = size % s_.block;
  block_ = s_.block;
  loop(dim, i64(0), i64(size), s_.block, true, [&] { emitInner(k + 1); });
  if (rest) {
    block_ = static_cast<int>(rest);
    once(dim, i64(size - rest), [&] { emitInner(k + 1); });
  }
  block_ = 1;
}

void KernelEmitter::emitUnit(Value *unit) {
  Value *rest = unit;
  auto digit = [&](int64_t radix, bool last) -> Value * {
    if (last)
      return rest;
    Value *q = b_.CreateUDiv(rest, i64(radix));
    Value *d = b_.CreateNSWSub(rest, b_.CreateNSWMul(q, i64(radix)));
    rest = q;
    return d;
  };
  if (s_.vectorDim >= 0 && !s_.vectorReduced) {
    const int64_t size = plan_.dims[static_cast<size_t>(s_.vectorDim)].size;
    tileBegin_ = i64(0), tileEnd_ = i64(size);
    if (s_.tile < size) {
      tileBegin_ = b_.CreateNSWMul(digit((size + s_.tile - 1) / s_.tile, s_.unitDims.empty()), i64(s_.tile));
      Value *end = b_.CreateNSWAdd(tileBegin_, i64(s_.tile));
      tileEnd_ = b_.CreateSelect(b_.CreateICmpSLT(end, i64(size)), end, i64(size));
    }
  }
  bool blocked = false;
  for (size_t k = s_.unitDims.size(); k-- > 0;) {
    const int dim = s_.unitDims[k];
    const int64_t size = plan_.dims[static_cast<size_t>(dim)].size;
    if (dim == s_.blockDim) {
      blocked = true;
      bind(dim, b_.CreateNSWMul(digit((size + s_.block - 1) / s_.block, k == 0), i64(s_.block)));
    } else {
      bind(dim, digit(size, k == 0));
    }
  }
  block_ = 1;
  if (!blocked)
    return emitInner(0);
  const int64_t size = plan_.dims[static_cast<size_t>(s_.blockDim)].size, partial = size % s_.block;
  block_ = s_.block;
  if (partial == 0)
    return emitInner(0);
  Value *fits = b_.CreateICmpSLE(index_[static_cast<size_t>(s_.blockDim)], i64(size - s_.block));
  branch(fits, [&] { emitInner(0); }, [&] {
    block_ = static_cast<int>(partial);
    emitInner(0);
  });
}

/// Results far larger than the caches are better written past them, which saves reading their old contents. That takes
/// aligned vectors: whether it is possible is known up to the addresses of the results. Null if it is not worth it.
Value *KernelEmitter::storesAligned() {
  constexpr int64_t worthIt = int64_t(32) << 20;
  int64_t bytes = 0;
  Value *low = nullptr;
  if (!plan_.reductions.empty() || s_.vectorDim < 0)
    return nullptr;
  for (const Store &s : plan_.stores) {
    const int64_t size = memoryBytes(s.buffer), vector = size * s_.lanes;
    bytes += size * plan_.buffers[static_cast<size_t>(s.buffer)].elements;
    if (vector < 16 || coef(s.index, s_.vectorDim) != 1 || s_.tile % s_.lanes != 0)
      return nullptr;
    for (size_t d = 0; d < plan_.dims.size(); ++d)
      if (static_cast<int>(d) != s_.vectorDim && s.index.coef[d] * size % vector != 0)
        return nullptr;
    Value *address = b_.CreateAnd(b_.CreatePtrToInt(buffers_[static_cast<size_t>(s.buffer)], b_.getInt64Ty()),
                                  static_cast<uint64_t>(vector - 1));
    low = low ? b_.CreateOr(low, address) : address;
  }
  return bytes >= worthIt ? b_.CreateICmpEQ(low, i64(0)) : nullptr;
}

llvm::Function *KernelEmitter::run() {
  llvm::LLVMContext &context = module_.getContext();
  Type *ptr = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr, b_.getInt64Ty(), b_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, signature_.symbol, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->setDSOLocal(true);
  b_.SetInsertPoint(block("entry"));
  allocas_ = b_.CreateAlloca(b_.getInt32Ty());
  status_ = llvm::cast<llvm::AllocaInst>(allocas_);
  b_.CreateStore(b_.getInt32(runtime::kKernelOk), status_);
  static_assert(offsetof(runtime::KernelArgs, buffers) == 0);
  Value *table = b_.CreateLoad(ptr, function_->getArg(0));
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const int32_t operand = signature_.operands.empty() ? static_cast<int32_t>(i) : signature_.operands[i];
    buffers_.push_back(b_.CreateLoad(ptr, b_.CreateConstGEP1_32(ptr, table, static_cast<unsigned>(operand))));
  }
  index_.assign(plan_.dims.size(), nullptr);
  dimLevel_.assign(plan_.dims.size(), 0);
  usesReduced_.assign(plan_.exprs.size(), 0);
  for (size_t e = 0; e < plan_.exprs.size(); ++e) {
    const Expr &x = plan_.exprs[e];
    bool uses = x.kind == ExprKind::Reduced || (x.guard >= 0 && usesReduced_[static_cast<size_t>(x.guard)]);
    for (int32_t a : x.args)
      uses |= a >= 0 && usesReduced_[static_cast<size_t>(a)];
    for (const auto &i : x.index.indirect)
      uses |= usesReduced_[static_cast<size_t>(i.expr)] != 0;
    usesReduced_[e] = uses;
  }
  planScratch();
  openScope(nullptr);
  Value *begin = function_->getArg(1), *end = function_->getArg(2);
  if (signature_.rows) {
    const UnitRows &rows = *signature_.rows;
    auto start = [&](Value *unit) -> Value * {
      Value *row = b_.CreateNSWMul(unit, i64(rows.block));
      return b_.CreateSelect(b_.CreateICmpSLT(row, i64(rows.rows)), row, i64(rows.rows));
    };
    begin = start(begin), end = start(end);
  }
  auto units = [&] { loop(-1, begin, end, 1, false, [&] { emitUnit(index_.back()); }); };
  if (s_.range > 0) {
    if (Value *aligned = storesAligned())
      branch(aligned, [&] {
        nonTemporal_ = true;
        units();
        nonTemporal_ = false;
        b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}); // before the pool says that the chunk is done
      }, units);
    else
      units();
  }
  b_.CreateRet(b_.CreateLoad(b_.getInt32Ty(), status_));
  return function_;
}

} // namespace

llvm::Function *emitKernel(llvm::Module &module, const LoopPlan &plan, const LoopSchedule &schedule,
                           const CpuFeatures &features, const KernelSignature &signature) {
  return KernelEmitter(module, plan, schedule, features, signature).run();
}

} // namespace tressel::codegen
