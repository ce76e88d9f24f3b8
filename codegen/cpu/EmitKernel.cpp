#include "codegen/cpu/EmitKernel.h"

#include "codegen/cpu/KernelEmitter.h"
#include "tressel/runtime/Kernel.h"

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

#include <algorithm>

namespace tressel::codegen {

using llvm::BasicBlock;
using llvm::Type;
using llvm::Value;
using op::Combine;
using op::ScalarOp;

void KernelEmitter::loop(int dim, Value *low, Value *high, Size step, bool nonEmpty, llvm::function_ref<void()> body) {
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

bool KernelEmitter::isBlocked(const Reduction &r) const {
  return blockLevel_ != kNoBlocks && r.combine == Combine::Sum && isFloat(r.accumulate);
}

/// Of the loops over the reduced dimensions, in the order of emitReducedLoops, the one whose steps make blocks: those inside of it
/// are short enough. None where all of them are.
void KernelEmitter::chooseBlocks() {
  blockLevel_ = kNoBlocks;
  const int64_t most = plan_.sumBlock();
  const auto first = static_cast<size_t>(plan_.numParallel), numLevels = plan_.dims.size() - first + 1;
  int64_t inside = 1; // terms that an accumulator gets from the loops inside
  for (size_t level = numLevels; level-- > 0;) {
    int64_t steps = 1;
    if (level + 1 == numLevels) { // the vectors
      if (s_.vectorReduced && s_.vectorDim >= 0)
        steps = dim::bounds(dim::ceilDiv(sizeOf(s_.vectorDim), int64_t(s_.lanes) * s_.unroll)).hi;
    } else if (const int dim = static_cast<int>(first + level); dim != s_.vectorDim) {
      const int64_t together = level + 2 == numLevels ? s_.chains : 1;
      steps = (dim::bounds(sizeOf(dim)).hi + together - 1) / together;
    }
    if (steps > most / inside) {
      blockLevel_ = level, blockSteps_ = std::max<int64_t>(1, most / inside);
      break;
    }
    inside *= std::max<int64_t>(1, steps);
  }
  if (blockLevel_ == kNoBlocks)
    return;
  auto leaves = [&](Size size, Size step) { return size.isNumber() && size % step != 0; };
  blocksLeave_ = blockLevel_ + 1 == numLevels ? leaves(sizeOf(s_.vectorDim), int64_t(s_.lanes) * s_.unroll)
                                              : blockLevel_ + 2 == numLevels && leaves(plan_.dims.back().size, s_.chains);
}

void KernelEmitter::blockedLoop(size_t level, int dim, Value *high, Size step, bool nonEmpty,
                                llvm::function_ref<void()> body) {
  if (level != blockLevel_ || stage_ < 0)
    return loop(dim, i64(0), high, step, nonEmpty, body);
  const Size stride = step * blockSteps_;
  loop(-1, i64(0), b_.CreateNSWAdd(high, i64(stride - 1)), stride, nonEmpty, [&] {
    Value *from = index_.back(), *end = b_.CreateNSWAdd(from, i64(stride));
    end = b_.CreateSelect(b_.CreateICmpSLT(end, high), end, high);
    loop(dim, from, end, step, true, body);
    addBlocks();
  });
}

/// What several sums side by side have, of one vector of the results.
Value *KernelEmitter::sumOfBlock(size_t number, int m, int u) {
  const bool horizontal = s_.vectorReduced && s_.vectorDim >= 0;
  const int width = horizontal ? s_.unroll : s_.chains, apart = horizontal ? 1 : s_.unroll;
  llvm::SmallVector<Value *, 8> sums;
  for (int k = 0; k < width; ++k) {
    llvm::AllocaInst *at = accumulators_.at({number, m, u + k * apart}).value;
    sums.push_back(b_.CreateLoad(at->getAllocatedType(), at));
    b_.CreateStore(llvm::Constant::getNullValue(at->getAllocatedType()), at);
  }
  while (sums.size() > 1) {
    const size_t half = (sums.size() + 1) / 2;
    for (size_t k = half; k < sums.size(); ++k)
      sums[k - half] = b_.CreateFAdd(sums[k - half], sums[k]);
    sums.resize(half);
  }
  return sums.front();
}

/// The sums of a block to those of the blocks before, by Kahan's compensated summation (1965).
void KernelEmitter::addBlocks() {
  const bool horizontal = s_.vectorReduced && s_.vectorDim >= 0;
  for (size_t number = 0; number < plan_.reductions.size(); ++number) {
    if (plan_.reductions[number].stage != stage_ || !isBlocked(plan_.reductions[number]))
      continue;
    for (int m = 0; m < block_; ++m)
      for (int u = 0; u < (horizontal ? 1 : unroll_); ++u) {
        const Accumulator &acc = accumulators_.at({number, m, u});
        Type *type = acc.total->getAllocatedType();
        Value *old = b_.CreateLoad(type, acc.total);
        Value *term = b_.CreateFSub(sumOfBlock(number, m, u), b_.CreateLoad(type, acc.excess));
        Value *sum = b_.CreateFAdd(old, term), *more = b_.CreateFSub(b_.CreateFSub(sum, old), term);
        more = b_.CreateSelect(b_.CreateFCmpORD(more, more), more, llvm::Constant::getNullValue(type)); // infinities
        b_.CreateStore(sum, acc.total);
        b_.CreateStore(more, acc.excess);
      }
  }
}

void KernelEmitter::accumulate(const Reduction &r, size_t number) {
  const bool vector = s_.vectorDim >= 0;
  for (int m = 0; m < block_; ++m)
    for (int u = 0; u < unroll_; ++u) {
      const Accumulator &acc = accumulators_.at({number, m, chain_ * s_.unroll + u});
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
      Value *better = scalars_.emit(r.combine == Combine::ArgMax ? ScalarOp::Gt : ScalarOp::Lt, DType::boolean,
                                    {x, old}, r.accumulate);
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
    const ScalarEmitter::Place best =
        scalars_.better(r.combine, r.accumulate, {a.first, a.second}, {b.first, b.second});
    return {best.value, best.index};
  };
  auto read = [&](int m, int u) -> std::pair<Value *, Value *> {
    const Accumulator &acc = accumulators_.at({number, m, u});
    Value *value = b_.CreateLoad(acc.value->getAllocatedType(), acc.value);
    return {value,
            acc.index ? b_.CreateLoad(acc.index->getAllocatedType(), acc.index) : nullptr};
  };
  const bool horizontal = s_.vectorReduced && s_.vectorDim >= 0, blocked = isBlocked(r);
  const DType valueType = r.accumulate;
  for (int m = 0; m < block_; ++m)
    for (int u = 0; u < (horizontal ? 1 : unroll_); ++u) {
      std::pair<Value *, Value *> v;
      if (blocked) {
        const Accumulator &acc = accumulators_.at({number, m, u});
        v.first = b_.CreateFSub(b_.CreateLoad(acc.total->getAllocatedType(), acc.total),
                                b_.CreateLoad(acc.excess->getAllocatedType(), acc.excess));
      } else {
        v = read(m, u);
      }
      if (s_.chains > 1 && !blocked) {
        llvm::SmallVector<std::pair<Value *, Value *>, 8> chains;
        for (int chain = 0; chain < s_.chains; ++chain)
          chains.push_back(read(m, chain * s_.unroll + u));
        for (size_t width = chains.size() / 2; width > 0; width /= 2) // a power of two
          for (size_t c = 0; c < width; ++c)
            chains[c] = merge(chains[c], chains[width + c]);
        v = chains.front();
      }
      if (horizontal) {
        for (int other = 1; other < s_.unroll && !blocked; ++other)
          v = merge(v, read(m, other));
        for (int width = s_.lanes / 2; width > 0; width /= 2) {
          llvm::SmallVector<int, 64> low, high;
          for (int l = 0; l < width; ++l)
            low.push_back(l), high.push_back(width + l);
          auto half = [&](Value *x, llvm::ArrayRef<int> lanesOf) {
            return x ? b_.CreateShuffleVector(x, lanesOf) : nullptr;
          };
          v = merge({half(v.first, low), half(v.second, low)}, {half(v.first, high), half(v.second, high)});
        }
        v.first = b_.CreateExtractElement(v.first, uint64_t(0));
        if (v.second)
          v.second = b_.CreateExtractElement(v.second, uint64_t(0));
      }
      Value *out = v.second ? scalars_.cast(v.second, DType::i64, r.dtype) : scalars_.combined(r.combine, valueType, v.first);
      if (!v.second) {
        if (r.scale != 1 || r.divisor != 1) {
          Value *factor = scalars_.constant(valueType, r.scale, static_cast<int64_t>(r.scale));
          if (r.divisor != 1) // the reciprocal in f64, as that of a constant
            factor = scalars_.cast(b_.CreateFDiv(scalars_.constant(DType::f64, r.scale, 0),
                                                 b_.CreateSIToFP(i64(r.divisor), b_.getDoubleTy())),
                                   DType::f64, valueType);
          if (out->getType()->isVectorTy())
            factor = scalars_.splat(factor, lanes());
          out = scalars_.emit(ScalarOp::Mul, valueType, {out, factor}, valueType);
        }
        out = scalars_.cast(out, valueType, r.dtype);
      }
      reduced_[{number, m, u}] = out;
    }
}

/// Loops over the reduced dimensions, the vector one innermost, around `body`; chains of the innermost one side by side.
void KernelEmitter::emitReducedLoops(size_t k, llvm::function_ref<void()> body) {
  const size_t first = static_cast<size_t>(plan_.numParallel);
  if (first + k < plan_.dims.size()) {
    const int dim = static_cast<int>(first + k);
    const Size size = sizeOf(dim);
    if (dim == s_.vectorDim)
      return emitReducedLoops(k + 1, body);
    if (chains_ > 1 && first + k + 1 == plan_.dims.size()) {
      const Size full = size / chains_ * chains_;
      blockedLoop(k, dim, i64(full), chains_, true, [&] {
        Value *index = index_[static_cast<size_t>(dim)];
        for (; chain_ < chains_; ++chain_)
          once(dim, b_.CreateNSWAdd(index, i64(chain_)), body);
        chain_ = 0;
      });
      if (full < size)
        loop(dim, i64(full), i64(size), 1, true, body);
      return;
    }
    if (size != 0)
      blockedLoop(k, dim, i64(size), 1, isNeverEmpty(size), [&] { emitReducedLoops(k + 1, body); });
    return;
  }
  if (!s_.vectorReduced || s_.vectorDim < 0)
    return body();
  const Size size = sizeOf(s_.vectorDim), step = int64_t(s_.lanes) * s_.unroll;
  if (size.isSymbolic()) {
    if (k != blockLevel_ || stage_ < 0)
      return symbolicVectorLoop(i64(0), i64(size), body);
    const Size stride = step * blockSteps_;
    return loop(-1, i64(0), b_.CreateNSWAdd(i64(size), i64(stride - 1)), stride, false, [&] {
      Value *from = index_.back(), *end = b_.CreateNSWAdd(from, i64(stride));
      symbolicVectorLoop(from, b_.CreateSelect(b_.CreateICmpSLT(end, i64(size)), end, i64(size)), body);
      addBlocks();
    });
  }
  const Size full = size / step * step, rest = size - full;
  unroll_ = s_.unroll, tail_ = 0;
  if (full)
    blockedLoop(k, s_.vectorDim, i64(full), step, true, body);
  if (rest) {
    unroll_ = static_cast<int>((rest + s_.lanes - 1) / s_.lanes), tail_ = (rest % s_.lanes).number();
    once(s_.vectorDim, i64(full), body);
  }
  unroll_ = s_.unroll, tail_ = 0;
}

void KernelEmitter::emitStage(int stage) {
  const bool vector = s_.vectorDim >= 0;
  stage_ = std::any_of(plan_.reductions.begin(), plan_.reductions.end(),
                       [&](const Reduction &r) { return r.stage == stage && isBlocked(r); })
               ? stage
               : -1;
  for (size_t number = 0; number < plan_.reductions.size(); ++number) {
    const Reduction &r = plan_.reductions[number];
    if (r.stage != stage)
      continue;
    const bool arg = r.combine == Combine::ArgMax || r.combine == Combine::ArgMin;
    Type *type = scalars_.registerType(r.accumulate), *indexType = b_.getInt64Ty();
    Value *start = scalars_.identity(r.combine, r.accumulate);
    for (int m = 0; m < block_; ++m)
      for (int u = 0; u < s_.unroll * s_.chains; ++u) {
        if (u % s_.unroll >= unroll_)
          continue;
        Accumulator acc{variable(vector ? vectorOf(type) : type),
                        arg ? variable(vector ? vectorOf(indexType) : indexType) : nullptr};
        b_.CreateStore(vector ? scalars_.splat(start, lanes()) : start, acc.value);
        const bool isSum = u < (s_.vectorReduced && vector ? 1 : unroll_); // of all that are side by side
        if (isBlocked(r) && isSum)
          for (llvm::AllocaInst **part : {&acc.total, &acc.excess}) {
            *part = variable(acc.value->getAllocatedType());
            b_.CreateStore(llvm::Constant::getNullValue(acc.value->getAllocatedType()), *part);
          }
        if (arg)
          b_.CreateStore(llvm::ConstantInt::getSigned(acc.index->getAllocatedType(), INT64_MAX), acc.index);
        accumulators_[{number, m, u}] = acc;
      }
  }
  chains_ = s_.chains;
  emitReducedLoops(0, [&] {
    for (size_t number = 0; number < plan_.reductions.size(); ++number)
      if (plan_.reductions[number].stage == stage)
        accumulate(plan_.reductions[number], number);
  });
  chains_ = 1;
  if (blocksLeave_)
    addBlocks(); // what came after the last whole step
  for (size_t number = 0; number < plan_.reductions.size(); ++number)
    if (plan_.reductions[number].stage == stage)
      finish(plan_.reductions[number], number);
  stage_ = -1;
}

void KernelEmitter::emitPoint() {
  reducedLevel_ = level_;
  for (pass_ = 0; pass_ < plan_.numStages; ++pass_)
    emitStage(pass_);
  storeAll(/*full=*/false);
  if (std::any_of(plan_.stores.begin(), plan_.stores.end(), [](const Store &s) { return s.full; }))
    emitReducedLoops(0, [&] { storeAll(/*full=*/true); });
}

void KernelEmitter::storeAll(bool full) {
  // Everything that is read is read before anything is written: a result may lie on an operand that others need here.
  for (const Store &s : plan_.stores)
    if (s.full == full)
      for (int m = 0; m < block_; ++m)
        for (int u = 0; u < (isVector(s) ? unroll_ : 1); ++u)
          eval(s.value, m, u);
  for (size_t i = 0; i < plan_.stores.size(); ++i)
    if (plan_.stores[i].full == full)
      store(plan_.stores[i], static_cast<int>(i));
}

void KernelEmitter::symbolicVectorLoop(Value *low, Value *high, llvm::function_ref<void()> body) {
  const Size step = int64_t(s_.lanes) * s_.unroll;
  unroll_ = s_.unroll, tail_ = 0;
  loop(s_.vectorDim, low, high, step, false, body);
  Value *count = b_.CreateNSWSub(high, low);
  Value *rest = b_.CreateNSWAdd(low, b_.CreateNSWMul(b_.CreateUDiv(count, i64(step)), i64(step)));
  unroll_ = 1;
  loop(s_.vectorDim, rest, b_.CreateNSWAdd(high, i64(s_.lanes - 1)), s_.lanes, false, [&] {
    Value *left = b_.CreateNSWSub(high, index_[static_cast<size_t>(s_.vectorDim)]);
    lanesMask_ = b_.CreateICmpULT(iota(b_.getInt64Ty(), 1), b_.CreateVectorSplat(lanes(), left));
    body();
    lanesMask_ = nullptr;
  });
  unroll_ = s_.unroll;
}

void KernelEmitter::emitVectorLoop() {
  unroll_ = s_.unroll, tail_ = 0;
  if (s_.vectorDim < 0 || s_.vectorReduced)
    return emitPoint();
  const Size size = sizeOf(s_.vectorDim), step = int64_t(s_.lanes) * s_.unroll;
  if (size.isSymbolic())
    return symbolicVectorLoop(tileBegin_, tileEnd_, [&] { emitPoint(); });
  const int64_t rest = (size % step).number();
  if (size >= step)
    loop(s_.vectorDim, tileBegin_, tileEnd_, step, /*nonEmpty=*/s_.tile == size, [&] { emitPoint(); });
  if (rest == 0)
    return;
  unroll_ = static_cast<int>((rest + s_.lanes - 1) / s_.lanes), tail_ = rest % s_.lanes;
  // The remainder is in the last tile.
  if (s_.tile == size)
    once(s_.vectorDim, i64(size - rest), [&] { emitPoint(); });
  else
    branch(
        b_.CreateICmpEQ(tileEnd_, i64(size)), [&] { once(s_.vectorDim, i64(size - rest), [&] { emitPoint(); }); },
        [] {});
  unroll_ = s_.unroll, tail_ = 0;
}

void KernelEmitter::emitInner(size_t k) {
  if (k == s_.innerDims.size())
    return emitVectorLoop();
  const int dim = s_.innerDims[k];
  const Size size = sizeOf(dim); // symbolic ones make units, unless tiles walk along them
  if (dim != s_.blockDim)
    return loop(dim, i64(0), i64(size), 1, isNeverEmpty(size), [&] { emitInner(k + 1); });
  if (size.isSymbolic()) {
    Value *whole = b_.CreateNSWMul(b_.CreateUDiv(i64(size), i64(s_.block)), i64(s_.block));
    block_ = s_.block;
    loop(dim, i64(0), whole, s_.block, false, [&] { emitInner(k + 1); });
    block_ = 1;
    return loop(dim, whole, i64(size), 1, false, [&] { emitInner(k + 1); });
  }
  const int64_t rest = (size % s_.block).number();
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
  auto digit = [&](Size radix, bool last) -> Value * {
    if (last)
      return rest;
    Value *q = b_.CreateUDiv(rest, i64(radix));
    Value *d = b_.CreateNSWSub(rest, b_.CreateNSWMul(q, i64(radix)));
    rest = q;
    return d;
  };
  // Digits of the unit's number, the last one first: of the unit dimensions, with the tile's between them.
  bool blocked = false;
  auto bindTile = [&](bool last) {
    if (s_.vectorDim < 0 || s_.vectorReduced)
      return;
    const Size size = sizeOf(s_.vectorDim);
    tileBegin_ = i64(0), tileEnd_ = i64(size);
    if (s_.tile == size)
      return;
    tileBegin_ = b_.CreateNSWMul(digit(dim::ceilDiv(size, s_.tile), last), i64(s_.tile));
    Value *end = b_.CreateNSWAdd(tileBegin_, i64(s_.tile));
    tileEnd_ = b_.CreateSelect(b_.CreateICmpSLT(end, i64(size)), end, i64(size));
  };
  const size_t place = s_.tilePlace < 0 ? s_.unitDims.size() : static_cast<size_t>(s_.tilePlace);
  for (size_t k = s_.unitDims.size(); k-- > 0;) {
    if (k + 1 == place)
      bindTile(false);
    const int dim = s_.unitDims[k];
    const bool last = k == 0 && place > 0;
    const Size size = sizeOf(dim);
    if (dim == s_.blockDim) {
      blocked = true;
      bind(dim, b_.CreateNSWMul(digit(dim::ceilDiv(size, s_.block), last), i64(s_.block)));
    } else {
      bind(dim, digit(size, last));
    }
  }
  if (place == 0)
    bindTile(true);
  block_ = 1;
  if (!blocked)
    return emitInner(0);
  const Size size = sizeOf(s_.blockDim), partial = dim::mod(size, s_.block);
  block_ = s_.block;
  if (partial == 0)
    return emitInner(0);
  Value *first = index_[static_cast<size_t>(s_.blockDim)];
  Value *fits = b_.CreateICmpSLE(first, i64(size - s_.block));
  // Bound once more where it is known how many there are: what is read for all of a block must not be read before.
  branch(
      fits,
      [&] {
        bind(s_.blockDim, first);
        emitInner(0);
      },
      [&] {
        if (partial.isSymbolic()) { // one by one
          block_ = 1;
          loop(s_.blockDim, first, i64(size), 1, true, [&] { emitInner(0); });
          return;
        }
        block_ = static_cast<int>(partial);
        bind(s_.blockDim, first);
        emitInner(0);
      });
}

/// Results far larger than the caches are better written past them, which saves reading their old contents. That takes
/// aligned vectors: whether it is possible is known up to the addresses of the results. Null if it is not worth it.
Value *KernelEmitter::storesAligned() {
  constexpr int64_t worthIt = int64_t(16) << 20;
  int64_t bytes = 0;
  Value *low = nullptr;
  if (!plan_.reductions.empty() || s_.vectorDim < 0)
    return nullptr;
  for (const Store &s : plan_.stores) {
    const int64_t size = memoryBytes(s.buffer), vector = size * s_.lanes;
    bytes += size * dim::bounds(plan_.buffers[static_cast<size_t>(s.buffer)].elements).lo;
    if (vector < (s_.tiles ? 64 : 16) || s_.tile.isSymbolic() || coef(s.index, s_.vectorDim) != 1 ||
        s_.tile % s_.lanes != 0)
      return nullptr;
    for (size_t d = 0; d < plan_.dims.size(); ++d)
      if (static_cast<int>(d) != s_.vectorDim && dim::mod(s.index.coef[d] * size, vector) != 0)
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
  function_->addFnAttr("denormal-fp-math", "dynamic,dynamic"); // as the launch sets it
  if (plan_.flushesExplicitly())
    scalars_.flushExplicitly();
  function_->setDSOLocal(true);
  b_.SetInsertPoint(block("entry"));
  allocas_ = b_.CreateAlloca(b_.getInt32Ty());
  status_ = llvm::cast<llvm::AllocaInst>(allocas_);
  b_.CreateStore(b_.getInt32(runtime::kKernelOk), status_);
  static_assert(offsetof(runtime::KernelArgs, buffers) == 0);
  llvm::Instruction *table = b_.CreateLoad(ptr, function_->getArg(0));
  sizesMark_ = table;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const int32_t operand = signature_.operands.empty() ? static_cast<int32_t>(i) : signature_.operands[i];
    Value *base = b_.CreateLoad(ptr, b_.CreateConstGEP1_32(ptr, table, static_cast<unsigned>(operand)));
    // Where a bad index or a guard that does not hold reads element 0, an operand that may be empty needs one.
    const Size elements = plan_.buffers[i].elements;
    if (elements.isSymbolic() && !isNeverEmpty(elements) && static_cast<int32_t>(i) < plan_.numInputs) {
      llvm::AllocaInst *none = variable(llvm::ArrayType::get(b_.getInt8Ty(), 64));
      none->setAlignment(llvm::Align(64));
      b_.CreateStore(llvm::Constant::getNullValue(none->getAllocatedType()), none);
      base = b_.CreateSelect(b_.CreateICmpEQ(i64(elements), i64(0)), none, base);
    }
    buffers_.push_back(base);
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
  chooseBlocks();
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
  if (s_.range != 0) {
    if (Value *aligned = storesAligned())
      branch(
          aligned,
          [&] {
            nonTemporal_ = true;
            units();
            nonTemporal_ = false;
            b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}); // before the pool says that the chunk is done
          },
          units);
    else
      units();
  }
  b_.CreateRet(b_.CreateLoad(b_.getInt32Ty(), status_));
  return function_;
}

llvm::Function *emitKernel(llvm::Module &module, const LoopPlan &plan, const LoopSchedule &schedule,
                           const CpuFeatures &features, const KernelSignature &signature) {
  return KernelEmitter(module, plan, schedule, features, signature).run();
}

} // namespace tressel::codegen
