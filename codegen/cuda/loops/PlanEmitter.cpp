#include "codegen/cuda/loops/PlanEmitter.h"

#include "codegen/loops/EmitSize.h"
#include "codegen/cuda/target/Target.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"

#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <algorithm>

namespace tressel::codegen::cuda {

using llvm::BasicBlock;
using llvm::Type;
using llvm::Value;
using op::ScalarOp;

PlanEmitter::PlanEmitter(llvm::Function &function, const LoopPlan &plan)
    : function_(function), plan_(plan), b_(function.getContext()), scalars_(b_, Target::features()),
      indexType_(b_.getInt64Ty()), index_(plan.dims.size(), nullptr), dimLevel_(plan.dims.size(), 0),
      uniform_(plan.exprs.size(), 0) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(!plan.deterministic);
  b_.setFastMathFlags(flags);
  if (plan.flushesExplicitly()) // the GPU's instructions do so by their type, those of the emulation do not
    scalars_.flushExplicitly();
}

bool PlanEmitter::fits32(const LoopPlan &plan, double numbers) {
  constexpr double limit = 2147483648.0;
  auto greatest = [](Size size) {
    const dim::Bounds bounds = dim::bounds(size);
    return std::max(std::abs(static_cast<double>(bounds.lo)), std::abs(static_cast<double>(bounds.hi)));
  };
  auto fits = [&](const Affine &a, double most) {
    most += greatest(a.offset);
    for (size_t d = 0; d < a.coef.size(); ++d)
      most += greatest(a.coef[d]) * greatest(plan.dims[d].size);
    for (const auto &i : a.indirect) {
      const Expr &x = plan.exprs[static_cast<size_t>(i.expr)];
      if (x.kind != ExprKind::Checked)
        return false;
      most += greatest(i.scale) * greatest(x.size);
    }
    return most < limit;
  };
  if (numbers >= limit)
    return false;
  for (const Expr &x : plan.exprs)
    if (x.kind == ExprKind::Load || x.kind == ExprKind::Index || x.kind == ExprKind::InRange)
      if (!fits(x.index, x.kind == ExprKind::InRange ? greatest(x.size) : 0))
        return false;
  return std::all_of(plan.stores.begin(), plan.stores.end(), [&](const Store &s) { return fits(s.index, 0); });
}

// Structure.

void PlanEmitter::loop(Value *low, Value *high, Value *step, llvm::function_ref<void(Value *)> body) {
  BasicBlock *inside = block("loop"), *after = block("after");
  llvm::Instruction *enter = b_.CreateCondBr(b_.CreateICmpSLT(low, high), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode *i = b_.CreatePHI(low->getType(), 2);
  openScope(enter);
  body(i);
  Value *next = b_.CreateNSWAdd(i, step);
  i->addIncoming(low, enter->getParent()); // which evaluations before the loop may have split
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, high), inside, after);
  closeScope();
  b_.SetInsertPoint(after);
}

void PlanEmitter::onlyIf(Value *condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  if (b_.GetInsertPoint() != b_.GetInsertBlock()->end()) { // before a loop that has begun
    llvm::Instruction *at = &*b_.GetInsertPoint();
    b_.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(condition, at->getIterator(), false));
    body();
    b_.SetInsertPoint(at);
    return;
  }
  BasicBlock *then = block("then"), *after = block("after");
  b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

Value *PlanEmitter::guarded(Value *condition, llvm::function_ref<Value *()> make) {
  if (!condition)
    return make();
  Value *made = nullptr;
  BasicBlock *from = b_.GetInsertBlock(), *then = nullptr;
  onlyIf(condition, [&] { made = make(), then = b_.GetInsertBlock(); });
  const auto saved = b_.saveIP();
  BasicBlock *after = b_.GetInsertBlock();
  b_.SetInsertPoint(after, after->begin());
  llvm::PHINode *phi = b_.CreatePHI(made->getType(), 2);
  phi->addIncoming(made, then);
  phi->addIncoming(llvm::Constant::getNullValue(made->getType()), from);
  if (saved.getPoint() == after->end())
    b_.SetInsertPoint(after);
  else
    b_.restoreIP(saved);
  return phi;
}

llvm::AllocaInst *PlanEmitter::variable(Type *type) {
  const auto saved = b_.saveIP();
  b_.SetInsertPoint(entry_);
  llvm::AllocaInst *a = b_.CreateAlloca(type);
  b_.restoreIP(saved);
  return a;
}

size_t PlanEmitter::levelOf(uint64_t dims) const {
  size_t level = 0;
  for (; dims; dims &= dims - 1)
    level = std::max(level, dimLevel_[static_cast<size_t>(std::countr_zero(dims))]);
  return level;
}

template <typename Fn> auto PlanEmitter::atLevel(size_t level, Fn &&fn) {
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

/// Chooses the dimension whose indices v counts, and finds what is the same for all of them because they begin at a
/// multiple of their number: where padding begins, say.
void PlanEmitter::setVector(int dim, int vector) {
  vectorDim_ = vector > 1 ? dim : -1, vector_ = vectorDim_ < 0 ? 1 : vector;
  std::fill(uniform_.begin(), uniform_.end(), 0);
  if (vectorDim_ < 0)
    return;
  auto same = [&](int32_t e) { return e < 0 || !(expr(e).dims & bit(dim)) || uniform_[static_cast<size_t>(e)]; };
  for (size_t e = 0; e < plan_.exprs.size(); ++e) {
    const Expr &x = plan_.exprs[e];
    if (x.kind == ExprKind::Reduced || !(x.dims & bit(dim)))
      continue;
    bool is = same(x.guard);
    for (int32_t a : x.args)
      is &= same(a);
    for (const auto &i : x.index.indirect)
      is &= same(i.expr);
    if (coef(x.index, dim) != 0) {
      auto aligned = [&](Size n) { return dim::mod(n, vector) == 0; };
      is &= x.kind == ExprKind::InRange && coef(x.index, dim) == 1 && aligned(x.index.offset) && aligned(x.size);
      for (size_t d = 0; d < x.index.coef.size(); ++d)
        is &= static_cast<int>(d) == dim || aligned(x.index.coef[d]);
      for (const auto &i : x.index.indirect)
        is &= aligned(i.scale);
    }
    uniform_[e] = is;
  }
}

// Sizes.

Value *PlanEmitter::size(Size symbolic) {
  Value *&value = sizes_[symbolic.bits()];
  if (value)
    return value;
  const auto saved = b_.saveIP();
  b_.SetInsertPoint(entry_);
  Value *sum = emitSize(
      b_, symbolic, [&](Size s) { return symbol(s); }, [&](Size part) { return i64(part); });
  b_.restoreIP(saved);
  return sizes_[symbolic.bits()] = sum;
}

Value *PlanEmitter::number(Size v) {
  if (!v.isSymbolic())
    return llvm::ConstantInt::getSigned(indexType_, v.number());
  Value *wide = i64(v);
  if (wide->getType() == indexType_)
    return wide;
  const auto saved = b_.saveIP();
  b_.SetInsertPoint(entry_);
  Value *narrow = b_.CreateTrunc(wide, indexType_);
  b_.restoreIP(saved);
  return narrow;
}

// Indices.

Value *PlanEmitter::terms(const Affine &index, int k, int v) {
  Value *sum = nullptr;
  auto add = [&](Value *by, Size scale) {
    Value *term = scale == 1 ? by : b_.CreateNSWMul(by, number(scale));
    sum = sum ? b_.CreateNSWAdd(sum, term) : term;
  };
  for (size_t d = 0; d < index.coef.size(); ++d)
    if (index.coef[d])
      add(indexAt(static_cast<int>(d), k), index.coef[d]);
  for (const auto &i : index.indirect)
    add(toIndex(eval(i.expr, k, v)), i.scale);
  return sum;
}

Value *PlanEmitter::elementPointer(int32_t buffer, const Affine &index, int k, int v) {
  Type *element = scalars_.memoryType(plan_.buffers[static_cast<size_t>(buffer)].dtype);
  Value *p = buffers_[static_cast<size_t>(buffer)];
  if (Value *sum = terms(index, k, v))
    p = b_.CreateGEP(element, p, sum);
  const Size constant = index.offset + coef(index, vectorDim_) * v;
  return constant ? b_.CreateGEP(element, p, i64(constant)) : p;
}

Value *PlanEmitter::scalarIndex(const Affine &index, int k, int v) {
  Value *sum = terms(index, k, v);
  Value *constant = number(index.offset + coef(index, vectorDim_) * v);
  return sum ? b_.CreateNSWAdd(sum, constant) : constant;
}

// Values.

Value *PlanEmitter::eval(int32_t e, int k, int v) {
  const Expr &x = expr(e);
  if (!(x.dims & kDims_))
    k = 0;
  if (!alongVector(e))
    v = 0;
  const size_t level = levelOf(x.dims);
  const std::tuple<int, int, int> key(e, k, v);
  auto &cache = scopes_[level].values;
  if (auto it = cache.find(key); it != cache.end())
    return it->second;
  Value *value = atLevel(level, [&] { return compute(e, k, v); });
  return scopes_[level].values[key] = value;
}

Value *PlanEmitter::compute(int32_t e, int k, int v) {
  const Expr &x = expr(e);
  switch (x.kind) {
  case ExprKind::Load:
    return load(e, k, v);
  case ExprKind::InRange:
    return b_.CreateICmpULT(scalarIndex(x.index, k, v), number(x.size));
  case ExprKind::Checked:
    return checked(x, k, v);
  case ExprKind::Reduced:
    return reduced_.at({static_cast<size_t>(x.i), v});
  case ExprKind::Index:
    return b_.CreateSExt(scalarIndex(x.index, k, v), b_.getInt64Ty());
  case ExprKind::Scalar:
    break;
  }
  if (x.op == ScalarOp::Const)
    return scalars_.constant(x.dtype, x.f, x.i);
  llvm::SmallVector<Value *, 3> args;
  DType argType = x.dtype;
  for (int32_t a : x.args)
    if (a >= 0)
      args.push_back(eval(a, k, v)), argType = expr(a).dtype;
  return scalars_.emit(x.op, x.dtype, args, argType);
}

Value *PlanEmitter::validAt(uint64_t dims, int k) {
  Value *valid = valid_;
  if (dims & kDims_)
    if (auto it = kValid_.find(k); it != kValid_.end())
      valid = both(valid, it->second);
  return valid;
}

bool PlanEmitter::mayBeOverwritten(const Expr &x) const {
  return std::any_of(plan_.stores.begin(), plan_.stores.end(), [&](const Store &s) {
    return s.index == x.index && tressel::sizeOf(plan_.buffers[static_cast<size_t>(s.buffer)].dtype) ==
                                     tressel::sizeOf(plan_.buffers[static_cast<size_t>(x.buffer)].dtype);
  });
}

Value *PlanEmitter::checked(const Expr &x, int k, int v) {
  Value *index = eval(x.args[0], k, v), *size = i64(x.size), *zero = b_.getInt64(0);
  Value *wrapped = b_.CreateSelect(b_.CreateICmpSLT(index, zero), b_.CreateAdd(index, size), index);
  Value *good = b_.CreateICmpULT(wrapped, size), *bad = b_.CreateNot(good);
  if (x.guard >= 0)
    bad = b_.CreateAnd(bad, eval(x.guard, k, v));
  bad = both(bad, validAt(x.dims, k));
  if (!status_)
    throw InternalError("an index is checked where nobody is told");
  onlyIf(bad, [&] { b_.CreateStore(b_.getInt32(runtime::kKernelIndexOutOfRange), status_); });
  return b_.CreateSelect(good, wrapped, zero);
}

int PlanEmitter::piece(const Affine &index, int32_t guard, DType type) const {
  if (coef(index, vectorDim_) != 1 || (guard >= 0 && alongVector(guard)))
    return 1;
  int n = static_cast<int>(std::min<int64_t>(vector_, 16 / tressel::sizeOf(type)));
  auto aligned = [&](Size size) { return dim::mod(size, n) == 0; };
  auto all = [&] {
    for (size_t d = 0; d < index.coef.size(); ++d)
      if (static_cast<int>(d) != vectorDim_ && !aligned(index.coef[d]))
        return false;
    for (const auto &i : index.indirect)
      if (!aligned(i.scale))
        return false;
    return aligned(index.offset);
  };
  for (const auto &i : index.indirect)
    if (alongVector(i.expr))
      return 1;
  while (n > 1 && !all())
    n /= 2;
  return n;
}

Value *PlanEmitter::load(int32_t e, int k, int v) {
  const Expr &x = expr(e);
  if (Value *other = instead(e, k, v))
    return other;
  auto finish = [&](Value *raw) -> Value * {
    return x.dtype == DType::boolean ? b_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType())) : raw;
  };
  const Size elements = plan_.buffers[static_cast<size_t>(x.buffer)].elements;
  Type *memory = scalars_.memoryType(x.dtype);
  for (const auto &i : x.index.indirect)
    eval(i.expr, k, v); // also where nothing is read: finds that no index is in range
  if (elements == 0)
    return llvm::Constant::getNullValue(scalars_.registerType(x.dtype));
  Value *guard = x.guard >= 0 ? eval(x.guard, k, v) : nullptr;
  // Where a bad index reads element 0, an operand that may be empty has none.
  if (dim::bounds(elements).lo < 1 && !x.index.indirect.empty())
    guard = both(guard, b_.CreateICmpNE(i64(elements), b_.getInt64(0)));
  // A thread without a point of its own repeats another's, whose result may lie on this operand.
  if (mayBeOverwritten(x))
    guard = both(guard, validAt(x.dims, k));
  const int n = alongVector(e) ? piece(x.index, x.guard, x.dtype) : 1, first = v / n * n;
  const llvm::Align align(static_cast<uint64_t>(n * tressel::sizeOf(x.dtype)));
  Type *type = n > 1 ? llvm::FixedVectorType::get(memory, static_cast<unsigned>(n)) : memory;
  Value *raw =
      guarded(guard, [&] { return b_.CreateAlignedLoad(type, elementPointer(x.buffer, x.index, k, first), align); });
  if (n == 1)
    return finish(raw);
  Value *result = nullptr;
  for (int i = 0; i < n; ++i) {
    Value *one = finish(b_.CreateExtractElement(raw, static_cast<uint64_t>(i)));
    scopes_[level_].values[{e, k, first + i}] = one;
    if (first + i == v)
      result = one;
  }
  return result;
}

void PlanEmitter::store(const Store &s, int k) {
  const DType type = plan_.buffers[static_cast<size_t>(s.buffer)].dtype;
  Type *memory = scalars_.memoryType(type);
  // A value that is reduced along the vector is stored once.
  const int all = s.full || vectorDim_ < plan_.numParallel ? vector_ : 1, n = all > 1 ? piece(s.index, -1, type) : 1;
  const llvm::Align align(static_cast<uint64_t>(n * tressel::sizeOf(type)));
  for (int first = 0; first < all; first += n) {
    Value *together = nullptr;
    for (int i = 0; i < n; ++i) {
      Value *v = eval(s.value, k, first + i);
      if (type == DType::boolean)
        v = b_.CreateZExt(v, memory);
      if (n == 1) {
        together = v;
        break;
      }
      if (!together)
        together = llvm::PoisonValue::get(llvm::FixedVectorType::get(memory, static_cast<unsigned>(n)));
      together = b_.CreateInsertElement(together, v, static_cast<uint64_t>(i));
    }
    b_.CreateAlignedStore(together, elementPointer(s.buffer, s.index, k, first), align);
  }
}

} // namespace tressel::codegen::cuda
