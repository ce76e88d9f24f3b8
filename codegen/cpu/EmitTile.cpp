// Tiles that are transposed in registers: rows are read or written as whole vectors along the block's dimension, while
// everything else in the kernel sees vectors along the lanes' dimension.
#include "codegen/cpu/KernelEmitter.h"

#include <algorithm>

namespace tressel::codegen {

using llvm::Type;
using llvm::Value;

Value *KernelEmitter::firstLanes(int64_t count) {
  if (count == s_.lanes)
    return nullptr;
  llvm::SmallVector<llvm::Constant *, 64> values;
  for (unsigned l = 0; l < lanes(); ++l)
    values.push_back(b_.getInt1(l < static_cast<uint64_t>(count)));
  return llvm::ConstantVector::get(values);
}

/// Element j of row i becomes element i of row j. Squares as wide as a 128-bit part of a register are transposed in
/// place by interleaving rows that lie half a square apart, again and again (H. S. Stone's perfect shuffle, 1971), then
/// squares across the diagonal change places, in steps of 1, 2, 4, ... squares: each step is one instruction per row on
/// every CPU.
void KernelEmitter::transposeTile(llvm::MutableArrayRef<Value *> rows) {
  const int n = s_.lanes, bits = static_cast<int>(rows[0]->getType()->getScalarSizeInBits());
  const int square = std::min(n, 128 / bits);
  llvm::SmallVector<Value *, 32> old(rows.begin(), rows.end());
  llvm::SmallVector<int, 32> first, second;
  for (int base = 0; base < n; base += square)
    for (int half = 0; half < square; half += square / 2)
      for (int i = 0; i < square / 2; ++i)
        for (int from : {0, n})
          (half ? second : first).push_back(from + base + half + i);
  for (int step = 1; step < square; step *= 2) {
    for (int base = 0; base < n; base += square)
      for (int i = 0; i < square / 2; ++i) {
        Value *a = old[static_cast<size_t>(base + i)], *b = old[static_cast<size_t>(base + i + square / 2)];
        rows[static_cast<size_t>(base + 2 * i)] = b_.CreateShuffleVector(a, b, first);
        rows[static_cast<size_t>(base + 2 * i + 1)] = b_.CreateShuffleVector(a, b, second);
      }
    std::copy(rows.begin(), rows.end(), old.begin());
  }
  for (int apart = square; apart < n; apart *= 2) {
    first.clear(), second.clear();
    for (int i = 0; i < n; ++i) {
      first.push_back(i & apart ? n + i - apart : i);
      second.push_back(i & apart ? n + i : i + apart);
    }
    for (int i = 0; i < n; ++i)
      if (!(i & apart)) {
        Value *a = rows[static_cast<size_t>(i)], *b = rows[static_cast<size_t>(i + apart)];
        rows[static_cast<size_t>(i)] = b_.CreateShuffleVector(a, b, first);
        rows[static_cast<size_t>(i + apart)] = b_.CreateShuffleVector(a, b, second);
      }
  }
}

Value *KernelEmitter::loadTile(int32_t e, int m, int u) {
  const Expr &x = plan_.exprs[static_cast<size_t>(e)];
  Type *memory = scalars_.memoryType(x.dtype), *type = vectorOf(memory);
  const llvm::Align align(static_cast<uint64_t>(memoryBytes(x.buffer)));
  Value *p = elementPointer(e, x.buffer, x.index, 0, u), *mask = firstLanes(block_);
  Value *none = llvm::Constant::getNullValue(type);
  const Size stride = coef(x.index, s_.vectorDim), rows = tail_ && u == unroll_ - 1 ? tail_ : s_.lanes;
  llvm::SmallVector<Value *, 32> tile(lanes(), none);
  for (int64_t l = 0; l < rows; ++l) {
    Value *row = l ? b_.CreateGEP(memory, p, b_.CreateNSWMul(i64(stride), i64(l))) : p;
    tile[static_cast<size_t>(l)] = mask ? static_cast<Value *>(b_.CreateMaskedLoad(type, row, align, mask, none))
                                        : b_.CreateAlignedLoad(type, row, align);
  }
  transposeTile(tile);
  for (int k = 0; k < block_; ++k) {
    Value *&v = tile[static_cast<size_t>(k)];
    if (x.dtype == DType::boolean)
      v = b_.CreateICmpNE(v, none);
    scopes_[level_].values[{e, k, u}] = v;
  }
  return tile[static_cast<size_t>(m)];
}

void KernelEmitter::storeTile(const Store &s, int number, int u) {
  const DType dtype = plan_.buffers[static_cast<size_t>(s.buffer)].dtype;
  Type *memory = scalars_.memoryType(dtype), *type = vectorOf(memory);
  const llvm::Align align(static_cast<uint64_t>(memoryBytes(s.buffer)));
  llvm::SmallVector<Value *, 32> tile(lanes(), llvm::Constant::getNullValue(type));
  for (int m = 0; m < block_; ++m) {
    Value *v = scalars_.splat(eval(s.value, m, u), lanes());
    tile[static_cast<size_t>(m)] = dtype == DType::boolean ? b_.CreateZExt(v, type) : v;
  }
  transposeTile(tile);
  Value *p = elementPointer(-1 - number, s.buffer, s.index, 0, u), *mask = firstLanes(block_);
  const Size stride = coef(s.index, s_.vectorDim), rows = tail_ && u == unroll_ - 1 ? tail_ : s_.lanes;
  for (int64_t l = 0; l < rows; ++l) {
    Value *row = l ? b_.CreateGEP(memory, p, b_.CreateNSWMul(i64(stride), i64(l))) : p,
          *v = tile[static_cast<size_t>(l)];
    if (mask)
      b_.CreateMaskedStore(v, row, align, mask);
    else
      b_.CreateAlignedStore(v, row, align);
  }
}

} // namespace tressel::codegen
