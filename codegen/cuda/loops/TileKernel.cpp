// Transposes, and whatever reads along one dimension and writes along another: each block reads a tile of such operands
// along the one, and goes on along the other.
#include "codegen/cuda/loops/LoopEmitter.h"

namespace tressel::codegen::cuda {

using llvm::Value;

void LoopEmitter::emitTiles() {
  constexpr int rows = kTileThreads / kTile, each = kTile / rows;
  constexpr int pitch = kTile + 1; // neighbours of a column lie in other banks
  const int writeDim = s_.order.front(), readDim = s_.tileDim;
  Value *rest = b_.CreateZExt(block_, indexType_);
  auto digit = [&](Size size) {
    Value *by = number(size), *quotient = b_.CreateUDiv(rest, by);
    Value *d = b_.CreateNSWSub(rest, b_.CreateNSWMul(quotient, by));
    rest = quotient;
    return d;
  };
  auto tiles = [&](int dim) { return dim::ceilDiv(sizeOf(dim), kTile); };
  restart();
  Value *write = b_.CreateNSWMul(digit(tiles(writeDim)), number(kTile));
  Value *read = b_.CreateNSWMul(digit(tiles(readDim)), number(kTile));
  for (int dim : s_.order)
    if (dim != writeDim && dim != readDim)
      bind(dim, digit(sizeOf(dim)));
  Value *column = b_.CreateAnd(thread_, kTile - 1), *row = b_.CreateLShr(thread_, 5);
  kDims_ = bit(writeDim) | bit(readDim);
  /// The points of this thread whose place along `fast` is the thread's column.
  auto points = [&](int fast, Value *fastFrom, int slow, Value *slowFrom) {
    restart();
    kValid_.clear();
    for (int k = 0; k < each; ++k) {
      Value *valid = nullptr;
      auto place = [&](int dim, Value *from, Value *offset) {
        Value *at = b_.CreateNSWAdd(from, b_.CreateZExt(offset, indexType_));
        if (dim::mod(sizeOf(dim), kTile) != 0) { // the others repeat the first one, and store nothing
          Value *inside = b_.CreateICmpSLT(at, number(sizeOf(dim)));
          at = b_.CreateSelect(inside, at, number(0));
          valid = both(valid, inside);
        }
        bind(dim, k, at);
      };
      place(fast, fastFrom, column);
      place(slow, slowFrom, b_.CreateNSWAdd(row, b_.getInt32(static_cast<uint32_t>(k * rows))));
      if (valid)
        kValid_[k] = valid;
    }
  };
  auto slot = [&](Value *r, Value *c) { return b_.CreateNSWAdd(b_.CreateNSWMul(r, b_.getInt32(pitch)), c); };
  auto offset = [&](int k) { return b_.CreateNSWAdd(row, b_.getInt32(static_cast<uint32_t>(k * rows))); };

  points(readDim, read, writeDim, write);
  for (int32_t e : s_.tiled)
    tiles_[e] = shared(scalars_.registerType(expr(e).dtype), kTile * pitch, "tile");
  for (int32_t e : s_.tiled)
    for (int k = 0; k < each; ++k)
      eval(e, k, 0);
  for (int32_t e : s_.tiled)
    for (int k = 0; k < each; ++k)
      put(tiles_.at(e), slot(offset(k), column), eval(e, k, 0));
  barrier();
  points(writeDim, write, readDim, read);
  for (int k = 0; k < each; ++k)
    tilePlace_[k] = slot(column, offset(k));
  readingTiles_ = true;
  storeAll(false, each);
}

} // namespace tressel::codegen::cuda
