// wgmma: products of four warps whose operands lie in shared memory. PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions". Each warp has 16 of the 64 rows.
//
// What a product reads is looked at when it is issued and again when it is waited for: if the bytes have changed
// meanwhile, one of the two waits that order them is missing, which is a fault. Its accumulators hold no numbers until
// then.
#include "test/standin/ptx/Program.h"
#include "test/standin/ptx/TensorMap.h"

#include <algorithm>
#include <cstring>

namespace tressel::standin::ptx {
namespace {

constexpr unsigned kRows = 16, kDepth = 16;
constexpr uint32_t kNoNumber = 0xffffffff;

/// Of wgmma. False: a base offset, or bits that are reserved.
bool decode(uint64_t bits, bool isTransposed, MatrixDescriptor &d) {
  constexpr unsigned kSpans[] = {16, 128, 64, 32};
  d = {(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4, kSpans[bits >> 62], isTransposed};
  return !(bits & 0x3fffc000c000c000);
}

struct Shape {
  unsigned columns;
  bool isBfloat, isLeftTransposed, isRightTransposed;
  explicit Shape(const Instr &instr)
      : columns(static_cast<unsigned>(instr.imm & 0x1ff)), isBfloat(instr.count & 1), isLeftTransposed(instr.count & 2),
        isRightTransposed(instr.count & 4) {}
};

/// The bytes of the operands, in order: a warp's 16 rows of the left one, then all columns of the right one.
void gather(const Warp &warp, const Instr &instr, const Shape &shape, uint64_t left, uint64_t right,
            std::vector<std::byte> &bytes) {
  const Block &block = *warp.block;
  MatrixDescriptor a, b;
  if (!decode(left, shape.isLeftTransposed, a) || !decode(right, shape.isRightTransposed, b))
    block.stop(warp, instr, 0, Fault::Kind::Trap,
               "a descriptor with a base offset or with bits that are reserved is not interpreted");
  uint64_t wrong = 0;
  bytes.clear();
  if (!a.gather(block.shared, warp.index % 4 * kRows, kRows, bytes, wrong) ||
      !b.gather(block.shared, 0, shape.columns, bytes, wrong))
    block.stop(warp, instr, 0, Fault::Kind::IllegalAddress,
               "a descriptor leads to byte " + std::to_string(wrong) + " of shared memory, of " +
                   std::to_string(block.shared.bytes) + ",");
}

float numberOf(uint16_t bits, bool isBfloat) {
  if (isBfloat)
    return std::bit_cast<float>(uint32_t(bits) << 16);
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  const float small = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign |
                              (magnitude < 0x400 ? std::bit_cast<uint32_t>(small) : (magnitude << 13) + (112u << 23)));
}

/// fn(register, lane, row, column): "Register Fragments", accumulator D of m64nNk16.
template <class F> void forFragment(unsigned columns, F fn) {
  for (unsigned i = 0; i < columns / 2; ++i)
    for (unsigned l = 0; l < kLanes; ++l)
      fn(i, l, l / 4 + i / 2 % 2 * 8, i / 4 * 8 + l % 4 * 2 + i % 2);
}

uint64_t mixed(uint64_t state, uint64_t value) { return (state ^ value) * 0x9e3779b97f4a7c15 + (state >> 29); }

void requireWarpgroup(const Warp &warp, const Instr &instr) {
  if (warp.block->threads % (4 * kLanes) && warp.index / 4 == warp.block->threads / (4 * kLanes))
    warp.block->stop(warp, instr, 0, Fault::Kind::Trap, "the warp is none of four that are a warpgroup,");
}

uint32_t placeOf(const Warp &warp, const Instr &instr, size_t operand) {
  return operand < 8 ? instr.op[operand] : warp.block->program->extra[instr.aux + operand - 8];
}

/// Operands: the accumulators, two descriptors, the predicate that they are added to, the accumulators again. imm: the
/// columns, and from bit 16 on the signs; count: bf16, transpositions.
void multiply(Warp &warp, const Instr &instr) {
  Block &block = *warp.block;
  requireWarpgroup(warp, instr);
  const Shape shape(instr);
  const size_t sums = shape.columns / 2;
  auto descriptor = [&](size_t operand) {
    const auto *bits = warp.source<uint64_t>(placeOf(warp, instr, operand));
    for (unsigned l = 1; l < kLanes; ++l)
      if (bits[l] != bits[0])
        block.stop(warp, instr, l, Fault::Kind::Trap, "lanes have different descriptors");
    return bits[0];
  };
  WarpgroupProduct product{.instr = &instr, .left = descriptor(sums), .right = descriptor(sums + 1)};
  const uint32_t adds = warp.predicate(placeOf(warp, instr, sums + 2));
  if (adds != 0 && adds != kAllLanes)
    block.stop(warp, instr, 0, Fault::Kind::Trap, "lanes differ in whether the product is added");
  std::vector<uint32_t> places(sums);
  for (size_t i = 0; i < sums; ++i)
    places[i] = placeOf(warp, instr, i);
  auto known = std::ranges::find(warp.accumulators, places, &Accumulators::places);
  if (known == warp.accumulators.end()) {
    for (const Accumulators &other : warp.accumulators)
      for (const uint32_t place : other.places)
        if (std::ranges::find(places, place) != places.end())
          block.stop(warp, instr, 0, Fault::Kind::Trap, "an accumulator is one of a product in flight that has others");
    if (!warp.isFenced)
      block.stop(warp, instr, 0, Fault::Kind::Trap,
                 "there is no wgmma.fence between what wrote the accumulators and the product");
    Accumulators fresh{.places = places, .sums = std::vector<float>(kRows * shape.columns)};
    forFragment(shape.columns, [&](unsigned i, unsigned l, unsigned row, unsigned column) {
      fresh.sums[row * shape.columns + column] = warp.source<float>(places[i])[l];
    });
    warp.accumulators.push_back(std::move(fresh));
    known = warp.accumulators.end() - 1;
    for (const uint32_t place : places)
      std::fill_n(warp.target<uint32_t>(place), kLanes, kNoNumber);
  }
  if (!adds)
    std::ranges::fill(known->sums, 0.0f);
  gather(warp, instr, shape, product.left, product.right, product.seen);
  std::vector<float> a(kRows * kDepth), b(kDepth * shape.columns);
  expandMatrix(product.seen.data(), kRows, shape.isLeftTransposed, shape.isBfloat, a.data(), kDepth, 1);
  expandMatrix(product.seen.data() + kRows * kDepth * 2, shape.columns, shape.isRightTransposed, shape.isBfloat,
               b.data(), 1, shape.columns);
  if (instr.imm >> 16) // one of the two is negated
    for (float &x : a)
      x = -x;
  SmallProduct small{a.data(), b.data(), known->sums.data(), shape.columns};
  warp.small = &small;
  static const Handler sum = findHandler("wgmma.sums");
  sum(warp, instr);
  warp.small = nullptr;
  ++known->products;
  warp.warpgroupWork = mixed(
      mixed(mixed(warp.warpgroupWork, static_cast<uint64_t>(&instr - block.program->code.data()) + 1), product.left),
      product.right);
  warp.products.push_back(std::move(product));
}

void fence(Warp &warp, const Instr &instr) {
  requireWarpgroup(warp, instr);
  warp.isFenced = true;
}
void commit(Warp &warp, const Instr &instr) {
  requireWarpgroup(warp, instr);
  ++warp.committedProducts;
  for (WarpgroupProduct &product : warp.products)
    if (!product.isCommitted)
      product.isCommitted = true, product.group = warp.committedProducts;
}
/// Until at most imm groups are in flight.
void wait(Warp &warp, const Instr &instr) {
  requireWarpgroup(warp, instr);
  std::vector<std::byte> now;
  size_t kept = 0;
  for (WarpgroupProduct &product : warp.products) {
    const bool isDue =
        product.isCommitted && product.group + static_cast<uint64_t>(instr.imm) <= warp.committedProducts;
    if (!isDue) {
      WarpgroupProduct &to = warp.products[kept++];
      if (&to != &product)
        to = std::move(product);
      continue;
    }
    const Shape shape(*product.instr);
    gather(warp, *product.instr, shape, product.left, product.right, now);
    if (now != product.seen)
      warp.block->stop(warp, *product.instr, 0, Fault::Kind::Trap,
                       "the operands in shared memory changed while the product was in flight: they had not arrived "
                       "when it was issued, or were "
                       "overwritten before it had ended,");
    std::vector<uint32_t> places(shape.columns / 2);
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = placeOf(warp, *product.instr, i);
    const auto mine = std::ranges::find(warp.accumulators, places, &Accumulators::places);
    if (--mine->products)
      continue;
    forFragment(shape.columns, [&](unsigned i, unsigned l, unsigned row, unsigned column) {
      warp.target<float>(places[i])[l] = mine->sums[row * shape.columns + column];
    });
    warp.accumulators.erase(mine);
    warp.isFenced = false;
  }
  warp.products.resize(kept);
}

} // namespace

uint64_t MatrixDescriptor::chunk(unsigned row, unsigned depth) const {
  const bool isSwizzled = span > 16;
  uint64_t at = start;
  if (!isTransposed)
    at += row / 8 * stride + (isSwizzled ? row % 8 * span + depth * 2 : row % 8 * 16 + depth / 8 * leading);
  else if (!isSwizzled)
    at += row / 8 * stride + depth % 8 * 16 + depth / 8 * leading;
  else
    at += row / (span / 2) * leading + row % (span / 2) * 2 + depth % 8 * span + depth / 8 * stride;
  return swizzled(at & 0x3ffff,
                  isSwizzled ? static_cast<TensorMap::Swizzle>(std::countr_zero(span) - 4) : TensorMap::Swizzle::None);
}

bool MatrixDescriptor::gather(const Region &shared, unsigned firstRow, unsigned rows, std::vector<std::byte> &bytes,
                              uint64_t &wrong) const {
  const unsigned count = rows * kDepth / 8;
  const size_t begin = bytes.size();
  bytes.resize(begin + count * 16);
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t at =
        isTransposed ? chunk(firstRow + i % (rows / 8) * 8, i / (rows / 8)) : chunk(firstRow + i / 2, i % 2 * 8);
    if (at > shared.bytes || shared.bytes - at < 16) {
      wrong = at;
      return false;
    }
    std::memcpy(bytes.data() + begin + i * 16, shared.host + at, 16);
  }
  return true;
}

void expandMatrix(const std::byte *bytes, unsigned rows, bool isTransposed, bool isBfloat, float *out, unsigned rowStep,
                  unsigned depthStep) {
  for (unsigned i = 0; i < rows * kDepth; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + i * 2, 2);
    const unsigned row = isTransposed ? i % rows : i / kDepth, depth = isTransposed ? i / rows : i % kDepth;
    out[row * rowStep + depth * depthStep] = numberOf(bits, isBfloat);
  }
}

void endWarpgroups(Block &block) {
  for (const Warp &warp : block.warps) {
    if (!warp.products.empty())
      block.stop(warp, *warp.products.front().instr, 0, Fault::Kind::Trap,
                 "the warp ended with a product in flight, issued");
    const Warp &first = block.warps[warp.index / 4 * 4];
    if (warp.warpgroupWork != first.warpgroupWork)
      throw Stop{
          {Fault::Kind::Trap,
           block.describe(warp, 0) +
               ": the warps of a warpgroup did not execute the same wgmma instructions with the same descriptors"}};
  }
}

void addWarpgroupHandlers(std::unordered_map<std::string, Handler> &handlers) {
  handlers["wgmma.mma_async"] = multiply;
  handlers["wgmma.fence"] = fence;
  handlers["wgmma.commit_group"] = commit;
  handlers["wgmma.wait_group"] = wait;
}

} // namespace tressel::standin::ptx
