#include "codegen/cuda/loops/LoopEmitter.h"
#include "codegen/cuda/target/Target.h"
#include "tressel/runtime/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

#include <sstream>

namespace tressel::codegen::cuda {

using llvm::Type;
using llvm::Value;
using op::Combine;
using op::ScalarOp;

Value *LoopEmitter::symbol(Size symbol) {
  const auto at = llvm::find(signature_.symbols, symbol);
  if (at == signature_.symbols.end())
    throw InternalError("a kernel uses a size that its launch does not give it");
  return function_.getArg(static_cast<unsigned>(numBuffers_ + (at - signature_.symbols.begin())));
}

Value *LoopEmitter::instead(int32_t e, int k, int) {
  const auto tile = readingTiles_ ? tiles_.find(e) : tiles_.end();
  return tile == tiles_.end() ? nullptr : get(tile->second, tilePlace_.at(k), scalars_.registerType(expr(e).dtype));
}

void LoopEmitter::bindDigits(Value *number) {
  for (size_t n = 0; n < s_.order.size(); ++n) {
    const int dim = s_.order[n], step = dim == s_.vectorDim ? s_.vector : 1;
    Value *digit = number;
    if (n + 1 < s_.order.size()) {
      Value *size = this->number(dim::ceilDiv(sizeOf(dim), step)), *quotient = b_.CreateUDiv(number, size);
      digit = b_.CreateNSWSub(number, b_.CreateNSWMul(quotient, size));
      number = quotient;
    }
    bind(dim, step > 1 ? b_.CreateNSWMul(digit, this->number(step)) : digit);
  }
}

void LoopEmitter::bindReduced(int k, Value *number) {
  const int first = plan_.numParallel;
  for (int dim = static_cast<int>(plan_.dims.size()) - 1; dim >= first; --dim) {
    const int step = dim == s_.vectorDim ? s_.vector : 1;
    Value *digit = number;
    if (dim > first) {
      Value *size = this->number(dim::floorDiv(sizeOf(dim), step)), *quotient = b_.CreateUDiv(number, size);
      digit = b_.CreateNSWSub(number, b_.CreateNSWMul(quotient, size));
      number = quotient;
    }
    bind(dim, k, step > 1 ? b_.CreateNSWMul(digit, this->number(step)) : digit);
  }
}

Size LoopEmitter::reducedVectors() const {
  Size n = 1;
  for (size_t d = static_cast<size_t>(plan_.numParallel); d < plan_.dims.size(); ++d)
    n *= plan_.dims[d].size;
  return s_.vectorReduced(plan_) ? dim::floorDiv(n, s_.vector) : n;
}

void LoopEmitter::nestedLoops(size_t k, llvm::function_ref<void(int)> body) {
  const size_t d = static_cast<size_t>(plan_.numParallel) + k;
  if (d == plan_.dims.size())
    return body(1);
  loop(number(0), number(plan_.dims[d].size), number(1), [&](Value *i) {
    bind(static_cast<int>(d), i);
    nestedLoops(k + 1, body);
  });
}

void LoopEmitter::reducedLoops(llvm::function_ref<void(int)> body) {
  if (s_.kept > 0)
    return body(s_.kept);
  if (s_.group == 1)
    return nestedLoops(0, body);
  const Size all = reducedVectors();
  const int64_t step = int64_t(s_.group) * s_.unroll;
  Value *low = toIndex(rank_), *high = number(all);
  auto steps = [&](Value *from, Value *to, int count) {
    loop(from, to, number(int64_t(s_.group) * count), [&](Value *i) {
      for (int k = 0; k < count; ++k)
        bindReduced(k, k ? b_.CreateNSWAdd(i, number(int64_t(s_.group) * k)) : i);
      body(count);
    });
  };
  if (s_.unroll > 1) { // as long as all of them are there; then one by one
    Value *whole = number(all - (step - s_.group));
    steps(low, whole, s_.unroll);
    Value *left = b_.CreateNSWSub(whole, low), *zero = number(0);
    Value *done = b_.CreateUDiv(b_.CreateNSWAdd(left, number(step - 1)), number(step));
    done = b_.CreateSelect(b_.CreateICmpSGT(left, zero), done, zero);
    low = b_.CreateNSWAdd(low, b_.CreateNSWMul(done, number(step)));
  }
  steps(low, high, 1);
}

void LoopEmitter::accumulate(const Reduction &r, size_t number, int k) {
  const bool arg = r.combine == Combine::ArgMax || r.combine == Combine::ArgMin;
  const int lastDim = static_cast<int>(plan_.dims.size()) - 1;
  llvm::SmallVector<Place, 16> terms;
  for (int v = 0; v < vector_; ++v) {
    Place term{eval(r.body, k, v), nullptr};
    if (arg) {
      term.index = indexAt(lastDim, k);
      if (vectorDim_ == lastDim && v)
        term.index = b_.CreateNSWAdd(term.index, this->number(v));
    }
    terms.push_back(term);
  }
  if (vectorDim_ >= plan_.numParallel) { // pairs of neighbours first
    while (terms.size() > 1) {
      for (size_t i = 0; i < terms.size() / 2; ++i)
        terms[i] = merge(r, terms[2 * i], terms[2 * i + 1]);
      terms.resize(terms.size() / 2);
    }
  }
  const auto found = kValid_.find(k);
  Value *valid = found == kValid_.end() ? nullptr : found->second;
  for (size_t v = 0; v < terms.size(); ++v) {
    const Accumulator &acc = accumulators_.at({number, static_cast<int>(v)});
    auto put = [&](Value *next, Value *old, llvm::AllocaInst *at) {
      b_.CreateStore(valid ? b_.CreateSelect(valid, next, old) : next, at);
    };
    Value *old = b_.CreateLoad(acc.value->getAllocatedType(), acc.value);
    if (acc.excess) { // Kahan's compensated summation (1965)
      Value *excess = b_.CreateLoad(acc.excess->getAllocatedType(), acc.excess);
      Value *term = b_.CreateFSub(terms[v].value, excess), *sum = b_.CreateFAdd(old, term);
      Value *more = b_.CreateFSub(b_.CreateFSub(sum, old), term);
      more = b_.CreateSelect(b_.CreateFCmpORD(more, more), more,
                             llvm::Constant::getNullValue(more->getType())); // infinities
      put(sum, old, acc.value), put(more, excess, acc.excess);
      continue;
    }
    Value *oldIndex = acc.index ? b_.CreateLoad(acc.index->getAllocatedType(), acc.index) : nullptr;
    const Place next = merge(r, {old, oldIndex}, terms[v]);
    put(next.value, old, acc.value);
    if (acc.index)
      put(next.index, oldIndex, acc.index);
  }
}

void LoopEmitter::finish(const Part &part) {
  const Reduction &r = plan_.reductions[part.number];
  Value *out = part.place.value;
  if (part.place.index) {
    out = scalars_.cast(b_.CreateSExt(part.place.index, b_.getInt64Ty()), DType::i64, r.dtype);
  } else {
    out = scalars_.combined(r.combine, r.accumulate, out);
    if (r.scale != 1 || r.divisor != 1) {
      Value *factor = scalars_.constant(r.accumulate, r.scale, isFloat(r.accumulate) ? 0 : static_cast<int64_t>(r.scale));
      if (r.divisor != 1) // the reciprocal in f64, as that of a constant
        factor = scalars_.cast(
            b_.CreateFDiv(scalars_.constant(DType::f64, r.scale, 0), b_.CreateSIToFP(i64(r.divisor), b_.getDoubleTy())),
            DType::f64, r.accumulate);
      out = scalars_.emit(ScalarOp::Mul, r.accumulate, {out, factor}, r.accumulate);
    }
    out = scalars_.cast(out, r.accumulate, r.dtype);
  }
  reduced_[{part.number, part.v}] = out;
}

void LoopEmitter::emitStage(int stage) {
  const int sums = vectorDim_ >= plan_.numParallel ? 1 : vector_;
  auto each = [&](auto &&fn) {
    for (size_t number = 0; number < plan_.reductions.size(); ++number)
      if (plan_.reductions[number].stage == stage)
        fn(plan_.reductions[number], number);
  };
  each([&](const Reduction &r, size_t number) {
    const bool arg = r.combine == Combine::ArgMax || r.combine == Combine::ArgMin;
    for (int v = 0; v < sums; ++v) {
      Type *type = scalars_.registerType(r.accumulate);
      Accumulator acc{variable(type), arg ? variable(indexType_) : nullptr, nullptr};
      b_.CreateStore(scalars_.identity(r.combine, r.accumulate), acc.value);
      if (arg)
        b_.CreateStore(
            llvm::ConstantInt::get(indexType_, llvm::APInt::getSignedMaxValue(indexType_->getScalarSizeInBits())),
            acc.index);
      if (isLongSum(r, plan_, s_)) {
        acc.excess = variable(type);
        b_.CreateStore(llvm::Constant::getNullValue(type), acc.excess);
      }
      accumulators_[{number, v}] = acc;
    }
  });
  reducedLoops([&](int count) {
    for (int k = 0; k < count; ++k)
      each([&](const Reduction &r, size_t number) { accumulate(r, number, k); });
  });
  std::vector<Part> parts;
  each([&](const Reduction &, size_t number) {
    for (int v = 0; v < sums; ++v) {
      const Accumulator &acc = accumulators_.at({number, v});
      Value *value = b_.CreateLoad(acc.value->getAllocatedType(), acc.value);
      if (acc.excess)
        value = b_.CreateFSub(value, b_.CreateLoad(acc.excess->getAllocatedType(), acc.excess));
      parts.push_back(
          {number, v, {value, acc.index ? b_.CreateLoad(acc.index->getAllocatedType(), acc.index) : nullptr}});
    }
  });
  acrossGroup(parts);
  for (const Part &part : parts)
    finish(part);
}

void LoopEmitter::storeAll(bool full, int count) {
  // Everything that is read is read before anything is written: a result may lie on an operand that others need here.
  for (int k = 0; k < count; ++k)
    for (const Store &s : plan_.stores)
      if (s.full == full)
        for (int v = 0; v < (full || vectorDim_ < plan_.numParallel ? vector_ : 1); ++v)
          eval(s.value, k, v);
  if (!full && s_.group > 1 && llvm::any_of(plan_.exprs, [&](const Expr &x) {
        return x.kind == ExprKind::Load && !(x.dims & kDims_) && mayBeOverwritten(x);
      }))
    groupBarrier(); // one thread writes what all of them have read
  for (int k = 0; k < count; ++k) {
    Value *valid = valid_;
    if (const auto found = kValid_.find(k); found != kValid_.end())
      valid = both(valid, found->second);
    if (!full && s_.group > 1)
      valid = both(valid, b_.CreateICmpEQ(rank_, b_.getInt32(0)));
    onlyIf(valid, [&] {
      for (const Store &s : plan_.stores)
        if (s.full == full)
          store(s, k);
    });
  }
}

void LoopEmitter::emitPoint() {
  const bool reduces = static_cast<size_t>(plan_.numParallel) < plan_.dims.size();
  kDims_ = 0, kValid_.clear();
  if (reduces && (s_.kept > 0 || s_.group > 1))
    kDims_ = ((uint64_t(1) << plan_.dims.size()) - 1) & ~((uint64_t(1) << plan_.numParallel) - 1);
  if (s_.kept > 0) {
    const Size all = reducedVectors();
    for (int k = 0; k < s_.kept; ++k) {
      Value *at = rank_ ? toIndex(rank_) : number(0);
      if (k)
        at = b_.CreateNSWAdd(at, number(int64_t(s_.group) * k));
      // Where it is beyond the last one it repeats the first, and counts for nothing.
      if (int64_t(s_.group) * (k + 1) > dim::bounds(all).lo) {
        kValid_[k] = b_.CreateICmpSLT(at, number(all));
        at = b_.CreateSelect(kValid_[k], at, number(0));
      }
      bindReduced(k, at);
    }
  }
  for (int stage = 0; stage < plan_.numStages; ++stage)
    emitStage(stage);
  auto stores = [&](bool full) { return llvm::any_of(plan_.stores, [&](const Store &s) { return s.full == full; }); };
  if (stores(true))
    reducedLoops([&](int count) { storeAll(true, count); });
  kValid_.clear();
  if (stores(false))
    storeAll(false, 1);
}

void LoopEmitter::emitPoints() {
  const int perBlock = s_.threads / s_.group;
  place_ = thread_;
  if (s_.group > 1) {
    auto high = [&](int n) { return b_.CreateLShr(thread_, static_cast<uint64_t>(std::countr_zero(unsigned(n)))); };
    auto low = [&](int n) { return b_.CreateAnd(thread_, static_cast<uint64_t>(n - 1)); };
    place_ = s_.groupFast ? high(s_.group) : low(perBlock);
    rank_ = s_.groupFast ? low(s_.group) : high(perBlock);
  }
  Value *point = b_.CreateZExt(block_, indexType_);
  if (perBlock > 1)
    point = b_.CreateAdd(b_.CreateMul(point, number(perBlock)), b_.CreateZExt(place_, indexType_), "", true, true);
  Value *inside = dim::mod(s_.points, perBlock) == 0 ? nullptr : b_.CreateICmpULT(point, number(s_.points));
  if (s_.group > 1) { // all threads of a block meet at its barriers: those beyond the last point repeat the first one
    valid_ = inside;
    if (inside)
      point = b_.CreateSelect(inside, point, number(0));
  }
  onlyIf(s_.group > 1 ? nullptr : inside, [&] {
    restart();
    bindDigits(point);
    const bool parallel = s_.vectorDim >= 0 && !s_.vectorReduced(plan_);
    if (!parallel || dim::mod(sizeOf(s_.vectorDim), s_.vector) == 0) {
      setVector(s_.vectorDim, s_.vector);
      return emitPoint();
    }
    // The last vector of the dimension may not be whole: its elements come one by one.
    Value *from = indexAt(s_.vectorDim, 0), *size = number(sizeOf(s_.vectorDim));
    Value *whole = b_.CreateICmpSLE(b_.CreateNSWAdd(from, number(s_.vector)), size);
    onlyIf(whole, [&] {
      restart();
      setVector(s_.vectorDim, s_.vector);
      emitPoint();
    });
    onlyIf(b_.CreateNot(whole), [&] {
      restart();
      setVector(-1, 1);
      loop(from, size, number(1), [&](Value *i) {
        bind(s_.vectorDim, i);
        emitPoint();
      });
    });
  });
}

void LoopEmitter::run(bool isPart) {
  constexpr double slack = 1 << 20; // numbers of points and of reduced indices run beyond the last by less
  double points = 1, reduced = 1;
  for (size_t d = 0; d < plan_.dims.size(); ++d)
    (plan_.dims[d].reduced ? reduced : points) *= static_cast<double>(dim::bounds(plan_.dims[d].size).hi);
  if (fits32(plan_, std::max(points, reduced) + slack))
    indexType_ = b_.getInt32Ty();
  llvm::BasicBlock *entry = block("entry"), *body = block("body");
  b_.SetInsertPoint(entry);
  entry_ = b_.CreateBr(body);
  for (size_t i = 0; i < plan_.buffers.size(); ++i)
    buffers_.push_back(
        function_.getArg(static_cast<unsigned>(signature_.operands.empty() ? i : signature_.operands[i])));
  status_ = function_.getArg(static_cast<unsigned>(function_.arg_size() - (isPart ? 2 : 1)));
  b_.SetInsertPoint(body);
  thread_ = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  block_ = isPart ? static_cast<Value *>(function_.getArg(static_cast<unsigned>(function_.arg_size() - 1)))
                  : b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
  if (s_.tileDim >= 0)
    emitTiles();
  else
    emitPoints();
  b_.CreateRetVoid();
}

Kernel makeLoopKernel(const LoopPlan &plan, const KernelSignature &signature, int numBuffers, const Arch &arch,
                      const LoopTuning &tuning) {
  const GpuSchedule schedule = scheduleLoops(plan, arch, tuning);
  // Memory is kept busy by many threads. The assembler leaves room for them where the code needs few registers anyway.
  constexpr int resident = 1024;
  const bool light = schedule.vector <= 8 && schedule.kept * schedule.vector <= 16 && plan.exprs.size() <= 40 &&
                     (plan.reductions.empty() || schedule.kept > 0 || plan.exprs.size() <= 3) && // loops unroll as far as registers go
                     llvm::none_of(plan.exprs, [](const Expr &x) { return x.dtype == DType::f64; });
  const int together = light ? std::clamp(resident / schedule.threads, 1, arch.maxBlocks) : 0;
  Kernel kernel;
  kernel.symbol = signature.symbol;
  kernel.numBuffers = numBuffers;
  kernel.symbols = signature.symbols;
  kernel.threads = schedule.threads;
  kernel.blocks = schedule.blocks;
  kernel.seconds = schedule.seconds;
  kernel.joins = mayBeNest(plan, schedule);
  std::ostringstream text;
  text << (tuning.aligned ? "loops " : "unaligned loops ") << arch.name << ' ' << schedule.str() << " operands";
  for (int32_t operand : signature.operands)
    text << ' ' << operand;
  text << " of " << numBuffers << " symbols";
  for (Size symbol : signature.symbols)
    text << ' ' << dim::spell(symbol);
  text << '\n' << plan.str();
  kernel.text = text.str();
  auto declared = std::make_shared<Kernel>(kernel);
  kernel.emit = [plan, schedule, signature, declared, together, aligned = tuning.aligned](llvm::Module &module) {
    llvm::Function *function = declareKernel(module, *declared);
    if (!aligned)
      for (llvm::Argument &argument : function->args())
        argument.removeAttr(llvm::Attribute::Alignment);
    // Numbers of f16 that are subnormal are normal in f32, which computes with them. LLVM narrows some of that to
    // instructions on f16, and these flush where those of f32 do.
    if (plan.floats() == runtime::FloatMode::Keep ||
        llvm::any_of(plan.buffers, [](const auto &buffer) { return buffer.dtype == DType::f16; }))
      keepSubnormals(*function);
    if (together)
      function->addFnAttr("nvvm.minctasm", std::to_string(together));
    LoopEmitter(*function, plan, schedule, signature, declared->numBuffers).run();
  };
  return kernel;
}

} // namespace tressel::codegen::cuda
