// How the threads of a group put the parts of a reduction together: every thread gets the result.
#include "codegen/cuda/loops/LoopEmitter.h"
#include "codegen/cuda/target/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tressel::codegen::cuda {

using llvm::Type;
using llvm::Value;

LoopEmitter::Place LoopEmitter::merge(const Reduction &r, Place a, Place b) {
  if (!a.index)
    return {scalars_.combine(r.combine, r.accumulate, a.value, b.value), nullptr};
  return scalars_.better(r.combine, r.accumulate, a, b);
}

/// What lies `distance` lanes away, in either direction. Lanes exchange words of 32 bits.
Value *LoopEmitter::shuffle(Value *v, int distance) {
  Type *type = v->getType(), *i32 = b_.getInt32Ty();
  const unsigned bits = type->getScalarSizeInBits();
  Value *raw = b_.CreateBitCast(v, b_.getIntNTy(bits));
  auto one = [&](Value *word) {
    return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                              {b_.getInt32(~0u), word, b_.getInt32(static_cast<uint32_t>(distance)), b_.getInt32(31)});
  };
  if (bits <= 32)
    return b_.CreateBitCast(b_.CreateTrunc(one(b_.CreateZExt(raw, i32)), b_.getIntNTy(bits)), type);
  Value *low = one(b_.CreateTrunc(raw, i32)), *high = one(b_.CreateTrunc(b_.CreateLShr(raw, 32), i32));
  Value *both =
      b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()), b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32));
  return b_.CreateBitCast(both, type);
}

LoopEmitter::Place LoopEmitter::shuffle(Place a, int distance) {
  return {shuffle(a.value, distance), a.index ? shuffle(a.index, distance) : nullptr};
}

LoopEmitter::Place LoopEmitter::acrossLanes(const Reduction &r, Place place, int width) {
  for (int distance = width / 2; distance > 0; distance /= 2)
    place = merge(r, place, shuffle(place, distance));
  return place;
}

void LoopEmitter::barrier() {
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {}, {b_.getInt32(0)});
}

void LoopEmitter::groupBarrier() {
  if (!s_.groupFast || s_.group > kWarp)
    return barrier();
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {b_.getInt32(~0u)});
}

llvm::GlobalVariable *LoopEmitter::shared(Type *element, int64_t count, const char *name) {
  if (element->isIntegerTy(1))
    element = b_.getInt8Ty();
  Type *array = llvm::ArrayType::get(element, static_cast<uint64_t>(count));
  auto *global = new llvm::GlobalVariable(*function_.getParent(), array, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::PoisonValue::get(array), function_.getName() + "_" + name, nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kShared);
  global->setAlignment(llvm::Align(16));
  return global;
}

void LoopEmitter::put(llvm::GlobalVariable *array, Value *at, Value *v) {
  if (v->getType()->isIntegerTy(1))
    v = b_.CreateZExt(v, b_.getInt8Ty());
  b_.CreateStore(v, b_.CreateGEP(v->getType(), array, at));
}

Value *LoopEmitter::get(llvm::GlobalVariable *array, Value *at, Type *type) {
  const bool flag = type->isIntegerTy(1);
  Type *memory = flag ? b_.getInt8Ty() : type;
  Value *v = b_.CreateLoad(memory, b_.CreateGEP(memory, array, at));
  return flag ? b_.CreateICmpNE(v, b_.getInt8(0)) : v;
}

void LoopEmitter::acrossGroup(std::vector<Part> &parts) {
  if (parts.empty() || s_.group == 1)
    return;
  if (!s_.groupFast)
    return acrossRows(parts);
  for (Part &p : parts)
    p.place = acrossLanes(plan_.reductions[p.number], p.place, std::min(s_.group, kWarp));
  if (s_.group > kWarp)
    acrossWarps(parts);
}

/// Each warp's result through shared memory; then each warp does the same with those of its group.
void LoopEmitter::acrossWarps(std::vector<Part> &parts) {
  const int warps = s_.threads / kWarp, together = s_.group / kWarp;
  Value *lane = b_.CreateAnd(thread_, kWarp - 1), *warp = b_.CreateLShr(thread_, 5);
  struct Arrays {
    llvm::GlobalVariable *value, *index;
  };
  std::vector<Arrays> arrays;
  for (const Part &p : parts)
    arrays.push_back({shared(p.place.value->getType(), warps, "warps"),
                      p.place.index ? shared(p.place.index->getType(), warps, "warps") : nullptr});
  onlyIf(b_.CreateICmpEQ(lane, b_.getInt32(0)), [&] {
    for (size_t i = 0; i < parts.size(); ++i) {
      put(arrays[i].value, warp, parts[i].place.value);
      if (arrays[i].index)
        put(arrays[i].index, warp, parts[i].place.index);
    }
  });
  barrier();
  Value *at = b_.CreateAnd(lane, static_cast<uint64_t>(together - 1));
  if (warps != together)
    at = b_.CreateOr(at, b_.CreateAnd(warp, ~static_cast<uint64_t>(together - 1) & 31));
  for (size_t i = 0; i < parts.size(); ++i) {
    Place &place = parts[i].place;
    place.value = get(arrays[i].value, at, place.value->getType());
    if (place.index)
      place.index = get(arrays[i].index, at, place.index->getType());
    place = acrossLanes(plan_.reductions[parts[i].number], place, together);
  }
}

/// Threads of a group lie one row of the block apart: halves of the rows are added up in shared memory.
void LoopEmitter::acrossRows(std::vector<Part> &parts) {
  const int columns = s_.threads / s_.group;
  std::map<std::pair<size_t, bool>, llvm::GlobalVariable *> arrays;
  auto array = [&](const Part &p, bool index) {
    llvm::GlobalVariable *&a = arrays[{p.number, index}];
    if (!a)
      a = shared((index ? p.place.index : p.place.value)->getType(), int64_t(s_.threads) * vector_, "rows");
    return a;
  };
  auto putPlace = [&](const Part &p, Place place) {
    Value *at = b_.CreateAdd(thread_, b_.getInt32(static_cast<uint32_t>(p.v * s_.threads)));
    put(array(p, false), at, place.value);
    if (place.index)
      put(array(p, true), at, place.index);
  };
  auto getPlace = [&](const Part &p, Value *thread) -> Place {
    Value *at = b_.CreateAdd(thread, b_.getInt32(static_cast<uint32_t>(p.v * s_.threads)));
    return {get(array(p, false), at, p.place.value->getType()),
            p.place.index ? get(array(p, true), at, p.place.index->getType()) : nullptr};
  };
  for (const Part &p : parts)
    putPlace(p, p.place);
  barrier();
  // Where nothing follows, only the first row needs the results, and has written them itself.
  const bool allNeed = plan_.reductions[parts.front().number].stage + 1 < plan_.numStages ||
                       llvm::any_of(plan_.stores, [](const Store &s) { return s.full; });
  for (int half = s_.group / 2; half > 0; half /= 2) {
    onlyIf(b_.CreateICmpULT(rank_, b_.getInt32(static_cast<uint32_t>(half))), [&] {
      for (const Part &p : parts) {
        Value *other = b_.CreateAdd(thread_, b_.getInt32(static_cast<uint32_t>(half * columns)));
        putPlace(p, merge(plan_.reductions[p.number], getPlace(p, thread_), getPlace(p, other)));
      }
    });
    if (half > 1 || allNeed)
      barrier();
  }
  for (Part &p : parts)
    p.place = getPlace(p, allNeed ? place_ : thread_);
}

} // namespace tressel::codegen::cuda
