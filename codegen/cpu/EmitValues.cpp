// Values inside the loops of a kernel: addresses, loads, guards, scalar functions, what is kept between passes, stores.
#include "codegen/loops/EmitSize.h"
#include "codegen/cpu/KernelEmitter.h"

#include "tressel/runtime/Kernel.h"

#include <algorithm>
#include <bit>

namespace tressel::codegen {

using llvm::Type;
using llvm::Value;
using op::ScalarOp;

Value *KernelEmitter::size(Size symbolic) {
  Value *&value = sizes_[symbolic.bits()];
  if (value)
    return value;
  const auto saved = b_.saveIP();
  b_.SetInsertPoint(sizesMark_);
  Value *sum = emitSize(b_, symbolic, function_->getArg(0), signature_.symbols, [&](Size part) { return i64(part); });
  b_.restoreIP(saved);
  return sizes_[symbolic.bits()] = sum;
}

Value *KernelEmitter::sizeAs(Type *type, Size size) {
  if (!size.isSymbolic())
    return llvm::ConstantInt::getSigned(type, size.number());
  Value *v = b_.CreateIntCast(i64(size), type->getScalarType(), true);
  return type->isVectorTy() ? b_.CreateVectorSplat(lanes(), v) : v;
}

Value *KernelEmitter::iota(Type *element, Size step) {
  if (step.isSymbolic())
    return b_.CreateMul(iota(element, 1), sizeAs(vectorOf(element), step));
  llvm::SmallVector<llvm::Constant *, 64> values;
  for (unsigned l = 0; l < lanes(); ++l)
    values.push_back(llvm::ConstantInt::getSigned(element, (step * l).number()));
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
  if (lanesMask_)
    return lanesMask_;
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
  const Size constant = coef(index, s_.blockDim) * m + coef(index, s_.vectorDim) * (int64_t(s_.lanes) * u);
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
      offsets = b_.CreateAdd(
          offsets, b_.CreateMul(eval(i.expr, m, u), sizeAs(offsets->getType(), i.scale)));
  return offsets;
}

/// The value of the expression in lane 0, without what indirect parts along the lanes add.
Value *KernelEmitter::scalarIndex(const Affine &index, int m, int u) {
  Value *sum = i64(index.offset + coef(index, s_.blockDim) * m + coef(index, s_.vectorDim) * (int64_t(s_.lanes) * u));
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
    return b_.CreateICmpULT(base, i64(x.size));
  if (laneIndirect(x.index) || x.size.isSymbolic() || x.size >= (int64_t(1) << 30)) {
    Value *at = b_.CreateAdd(b_.CreateVectorSplat(lanes(), base), laneOffsets(x.index, m, u));
    return b_.CreateICmpULT(at, sizeAs(at->getType(), x.size));
  }
  // Indices of tensors whose dimension is below 2^30 fit 32 bits, which doubles the lanes of an instruction.
  Value *at = b_.CreateAdd(b_.CreateVectorSplat(lanes(), b_.CreateTrunc(base, b_.getInt32Ty())),
                           iota(b_.getInt32Ty(), coef(x.index, s_.vectorDim)));
  return b_.CreateICmpULT(at, llvm::ConstantInt::getSigned(at->getType(), x.size.number()));
}

Value *KernelEmitter::checked(const Expr &x, int m, int u) {
  const bool vector = alongVector(x.dims);
  Value *index = eval(x.args[0], m, u);
  if (vector)
    index = scalars_.splat(index, lanes());
  Value *size = sizeAs(index->getType(), x.size), *zero = llvm::ConstantInt::get(index->getType(), 0);
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

/// Operands of at least this size are read ahead in kernels whose results go past the caches.
static constexpr int64_t kStreamedBytes = int64_t(8) << 20;
static constexpr int64_t kPrefetchAhead = 4096; ///< bytes
/// So are rows that L2 does not hold; the next row begins behind them.
static constexpr int64_t kFarBytes = int64_t(2) << 20, kRowAhead = 2048;
/// And columns whose steps are so long that nothing else fetches them ahead.
static constexpr int64_t kColumnStep = 1024, kStepsAhead = 16;
/// Results beyond the first cache have their lines read ahead, by less: these come from the next cache.
static constexpr int64_t kNearBytes = int64_t(32) << 10, kStoreAhead = 1024, kLineBytes = 64;

Value *KernelEmitter::load(int32_t e, int m, int u) {
  const Expr &x = plan_.exprs[static_cast<size_t>(e)];
  Type *memory = scalars_.memoryType(x.dtype);
  const bool vector = alongVector(x.dims);
  auto finish = [&](Value *v) -> Value * {
    return x.dtype == DType::boolean ? b_.CreateICmpNE(v, llvm::ConstantInt::get(v->getType(), 0)) : v;
  };
  if (plan_.buffers[static_cast<size_t>(x.buffer)].elements == 0) {
    for (const auto &i : x.index.indirect)
      eval(i.expr, m, u); // finds that no index is in range
    return llvm::Constant::getNullValue(vector ? vectorOf(scalars_.registerType(x.dtype))
                                               : scalars_.registerType(x.dtype));
  }
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
  Value *mask = tailMask(u), *any = guard; // whether some lane is read
  if (guard) {
    guard = scalars_.splat(guard, lanes());
    any = any == guard ? b_.CreateOrReduce(guard) : any;
    mask = mask ? b_.CreateAnd(mask, guard) : guard;
  }
  if (byTiles(x.index, x.guard))
    return loadTile(e, m, u);
  Type *type = vectorOf(memory);
  Value *zero = llvm::Constant::getNullValue(type);
  if (coef(x.index, s_.vectorDim) == 1 && !laneIndirect(x.index)) {
    // What streams through is too much for the caches, and the arithmetic between two lines too long for the processor
    // to run ahead of: lines are asked for early, each once. Values that a row shares stay cached and need none. Of
    // rows that are passed over several times the first pass asks, as the processor itself stops at the end of each
    // page.
    const Size elements = plan_.buffers[static_cast<size_t>(x.buffer)].elements, size = memoryBytes(x.buffer);
    const Size bytes = elements.isNumber() ? elements * size : 0; // of an open size it is not known that it is large
    const bool asks = u * s_.lanes * size % kLineBytes == 0;
    const bool passesRows = s_.vectorReduced && pass_ == 0 && bytes >= kFarBytes;
    // Down the columns of a matrix each step is in another page: those are asked for some steps early.
    const Size down =
        !plan_.reductions.empty() && !s_.vectorReduced ? coef(x.index, static_cast<int>(plan_.dims.size()) - 1) : 0;
    const Size step = down.isNumber() ? down * size : 0;
    const bool passesColumns = step >= kColumnStep && bytes >= kFarBytes;
    if (asks && ((nonTemporal_ && bytes >= kStreamedBytes) || passesRows || passesColumns))
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                         {b_.CreateConstGEP1_64(b_.getInt8Ty(), p, static_cast<uint64_t>(nonTemporal_ ? kPrefetchAhead : passesRows ? kRowAhead : kStepsAhead * step)),
                          b_.getInt32(0), b_.getInt32(passesColumns ? 2 : 3), b_.getInt32(1)});
    // Where no lane is read, the address may lie in a page that does not exist. That is no error, but AMD's processors then take hundreds of
    // cycles to find so.
    if (any)
      p = b_.CreateSelect(any, p, buffers_[static_cast<size_t>(x.buffer)]);
    return finish(mask ? static_cast<Value *>(b_.CreateMaskedLoad(type, p, align, mask, zero))
                       : b_.CreateAlignedLoad(type, p, align));
  }
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

int64_t KernelEmitter::mostReducedPoints() const {
  Size n = 1;
  for (size_t d = static_cast<size_t>(plan_.numParallel); d < plan_.dims.size(); ++d)
    n *= plan_.dims[d].size;
  return dim::bounds(n).hi;
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
      const int64_t points = mostReducedPoints();
      const int64_t padded = s_.vectorReduced ? points + 64 : points * s_.lanes * s_.unroll;
      const int64_t elements = padded * s_.block;
      if (points <= mostBytes && bytes + elements * tressel::sizeOf(x.dtype) <= mostBytes) {
        bytes += elements * tressel::sizeOf(x.dtype);
        llvm::AllocaInst *memory =
            variable(llvm::ArrayType::get(scalars_.registerType(x.dtype), static_cast<uint64_t>(elements)));
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
  auto append = [&](size_t d) { at = b_.CreateNSWAdd(b_.CreateNSWMul(at, i64(plan_.dims[d].size)), index_[d]); };
  // The lanes' dimension comes last, whatever its place among the loops: vectors are stored whole.
  const size_t lanesDim = s_.vectorReduced ? static_cast<size_t>(s_.vectorDim) : plan_.dims.size();
  for (size_t d = static_cast<size_t>(plan_.numParallel); d < plan_.dims.size(); ++d)
    if (d != lanesDim)
      append(d);
  if (s_.vectorReduced) {
    append(lanesDim);
    at = b_.CreateNSWAdd(at, i64((mostReducedPoints() + 64) * m + int64_t(s_.lanes) * u));
  } else {
    at = b_.CreateNSWAdd(b_.CreateNSWMul(at, i64(int64_t(s_.lanes) * s_.unroll * s_.block)),
                         i64((int64_t(m) * s_.unroll + u) * s_.lanes));
  }
  const Scratch &s = scratch_.at(e);
  return b_.CreateGEP(scalars_.registerType(plan_.exprs[static_cast<size_t>(e)].dtype), s.memory, at);
}

Value *KernelEmitter::evalHere(int32_t e, int m, int u) {
  const Expr &x = plan_.exprs[static_cast<size_t>(e)];
  if (auto kept = scratch_.find(e); kept != scratch_.end()) {
    Type *type = scalars_.registerType(x.dtype);
    const llvm::Align align(static_cast<uint64_t>(tressel::sizeOf(x.dtype)));
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
  case ExprKind::Load:
    return load(e, m, u);
  case ExprKind::InRange:
    return inRange(x, m, u);
  case ExprKind::Checked:
    return checked(x, m, u);
  case ExprKind::Reduced:
    return reduced_.at({static_cast<size_t>(x.i), m, u});
  case ExprKind::Index: {
    Value *base = scalarIndex(x.index, m, u);
    return alongVector(x.dims) ? b_.CreateAdd(b_.CreateVectorSplat(lanes(), base), laneOffsets(x.index, m, u)) : base;
  }
  case ExprKind::Scalar:
    break;
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

/// A store waits for its line, and few can wait at once: lines that the first cache does not hold are asked for early, each
/// once. Bytes that become floats within L2 take a tenth less time.
void KernelEmitter::askForLine(const Store &s, Value *p, int u) {
  const Buffer &buffer = plan_.buffers[static_cast<size_t>(s.buffer)];
  const int64_t vector = memoryBytes(s.buffer) * s_.lanes, bytes = dim::hint(buffer.elements) * memoryBytes(s.buffer);
  if (bytes < kNearBytes || u * vector % kLineBytes != 0)
    return;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                     {b_.CreateConstGEP1_64(b_.getInt8Ty(), p, kStoreAhead), b_.getInt32(1), b_.getInt32(3), b_.getInt32(1)});
}

void KernelEmitter::store(const Store &s, int number) {
  const bool vector = isVector(s);
  const DType type = plan_.buffers[static_cast<size_t>(s.buffer)].dtype;
  Type *memory = scalars_.memoryType(type);
  const llvm::Align align(static_cast<uint64_t>(tressel::sizeOf(type)));
  if (vector && byTiles(s.index, -1)) {
    for (int u = 0; u < unroll_; ++u)
      storeTile(s, number, u);
    return;
  }
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
          b_.CreateAlignedStore(v, p, llvm::Align(static_cast<uint64_t>(s_.lanes * tressel::sizeOf(type))))
              ->setMetadata(llvm::LLVMContext::MD_nontemporal,
                            llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
        else
          askForLine(s, p, u), b_.CreateAlignedStore(v, p, align);
      } else {
        b_.CreateMaskedScatter(v, b_.CreateGEP(memory, p, laneOffsets(s.index, m, u)), align,
                               mask ? mask : llvm::ConstantInt::getTrue(vectorOf(b_.getInt1Ty())));
      }
    }
}

} // namespace tressel::codegen
