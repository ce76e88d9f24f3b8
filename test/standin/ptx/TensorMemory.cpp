// Tensor memory, and the products that write it. PTX ISA, "TensorCore 5th Generation Family Instructions". Products of
// one block of 128 rows, with sums in f32.
//
// A product is computed when something waits for the mbarrier that it was committed to. Its operands in shared memory
// are looked at when it is issued and again then: bytes that have changed are a fault, and so is reading columns that a
// product in flight writes. What tcgen05.ld reads is in its registers behind tcgen05.wait::ld, and no numbers before.
#include "test/standin/ptx/Program.h"

#include <algorithm>
#include <cstring>

namespace tressel::standin::ptx {
namespace {

constexpr unsigned kRows = TensorMemory::kLanes, kDepth = 16;

template <class F> void forActive(const Warp &warp, F f) {
  for (uint32_t mask = warp.active; mask; mask &= mask - 1)
    f(static_cast<unsigned>(std::countr_zero(mask)));
}
[[noreturn]] void trap(const Warp &warp, const Instr &instr, unsigned lane, const std::string &what) {
  warp.block->stop(warp, instr, lane, Fault::Kind::Trap, what);
}

/// "Shared memory descriptor" of tcgen05. False: bits that are no constants, a base offset, absolute addresses.
bool decode(uint64_t bits, bool isTransposed, MatrixDescriptor &d) {
  constexpr unsigned kSpans[] = {16, 0, 128, 0, 64, 0, 32, 0}; // 0: with atoms of 32 bytes, or none
  d = {(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4, kSpans[bits >> 61], isTransposed};
  return d.span && (bits & 0x1fffc000c000c000) == uint64_t(1) << 46;
}

/// "Instruction descriptor" of kind f16.
struct Form {
  bool isBfloat, isLeftTransposed, isRightTransposed;
  unsigned columns;
  static bool isKnown(uint32_t bits) {
    constexpr uint32_t kFree = 1u << 7 | 1u << 10 | 1u << 15 | 1u << 16 | 0x3fu << 17;
    const unsigned n = (bits >> 17 & 0x3f) * 8;
    return (bits & ~kFree) == (1u << 4 | (kRows / 16) << 24) && (bits >> 7 & 1) == (bits >> 10 & 1) && n &&
           n % 16 == 0 && n <= 256;
  }
  explicit Form(uint32_t bits)
      : isBfloat(bits >> 7 & 1), isLeftTransposed(bits >> 15 & 1), isRightTransposed(bits >> 16 & 1),
        columns((bits >> 17 & 0x3f) * 8) {}
};

bool isAllocated(const TensorMemory &memory, uint32_t first, uint32_t columns) {
  auto next = memory.allocated.upper_bound(first);
  if (next == memory.allocated.begin())
    return false;
  const auto &[begin, count] = *std::prev(next);
  return first + columns <= begin + count;
}

// ---- Columns. Operands: where the address goes, how many.

void allocate(Warp &warp, const Instr &instr) {
  Block &block = *warp.block;
  TensorMemory &memory = block.tensor;
  const uint32_t count = warp.source<uint32_t>(instr.op[1])[0];
  if (count < 32 || count > TensorMemory::kColumns || !std::has_single_bit(count))
    trap(warp, instr, 0, std::to_string(count) + " columns are asked for, and not a power of two from 32 on,");
  if (memory.isRelinquished)
    trap(warp, instr, 0, "the block has given up to ask for columns");
  // From the end on: an address that is not 0.
  uint32_t end = TensorMemory::kColumns;
  for (const auto &[begin, columns] : memory.allocated)
    end = std::min(end, begin);
  if (end < count)
    trap(warp, instr, 0, "there are not so many columns, and none will be given back,");
  if (memory.words.empty())
    memory.words.assign(TensorMemory::kLanes * TensorMemory::kColumns, ~0u);
  memory.allocated[end - count] = count;
  const uint32_t address = end - count;
  std::memcpy(block.locate(warp, instr, instr.space, 0,
                           warp.source<uint64_t>(instr.op[0])[0] + static_cast<uint64_t>(instr.imm), 4, false, true),
              &address, 4);
}
void relinquish(Warp &warp, const Instr &) { warp.block->tensor.isRelinquished = true; }
void release(Warp &warp, const Instr &instr) {
  TensorMemory &memory = warp.block->tensor;
  const uint32_t address = warp.source<uint32_t>(instr.op[0])[0], count = warp.source<uint32_t>(instr.op[1])[0];
  const auto found = memory.allocated.find(address);
  if (found == memory.allocated.end() || found->second != count)
    trap(warp, instr, 0, "these columns were not asked for so");
  if (!memory.products.empty())
    trap(warp, instr, 0, "columns are given back with a product in flight");
  memory.allocated.erase(found);
}

// ---- Products. Operands: address, two descriptors, form, whether it adds.

bool look(const Block &block, const TensorMemory::Product &product, std::vector<std::byte> &bytes, std::string &wrong) {
  const Form form(product.form);
  MatrixDescriptor a, b;
  if (!decode(product.left, form.isLeftTransposed, a) || !decode(product.right, form.isRightTransposed, b)) {
    wrong = "a descriptor is not of tcgen05, or has a base offset or a swizzle that is not interpreted";
    return false;
  }
  uint64_t at = 0;
  bytes.clear();
  if (a.gather(block.shared, 0, kRows, bytes, at) && b.gather(block.shared, 0, form.columns, bytes, at))
    return true;
  wrong = "a descriptor leads to byte " + std::to_string(at) + " of shared memory, of " +
          std::to_string(block.shared.bytes) + ",";
  return false;
}

void multiply(Warp &warp, const Instr &instr) {
  Block &block = *warp.block;
  if (std::popcount(warp.active) != 1)
    trap(warp, instr, static_cast<unsigned>(std::countr_zero(warp.active)),
         std::to_string(std::popcount(warp.active)) + " threads issue a product, which is one's work,");
  forActive(warp, [&](unsigned l) {
    TensorMemory::Product product{.sums = warp.source<uint32_t>(instr.op[0])[l],
                                  .form = warp.source<uint32_t>(instr.op[3])[l],
                                  .left = warp.source<uint64_t>(instr.op[1])[l],
                                  .right = warp.source<uint64_t>(instr.op[2])[l],
                                  .adds = (warp.predicate(instr.op[4]) >> l & 1) != 0,
                                  .warp = &warp,
                                  .instr = &instr,
                                  .lane = l};
    if (!Form::isKnown(product.form))
      trap(warp, instr, l, "the instruction descriptor is not interpreted");
    if (product.sums >> 16 || !isAllocated(block.tensor, product.sums, Form(product.form).columns))
      trap(warp, instr, l, "the sums are not in columns that were asked for");
    std::string wrong;
    if (!look(block, product, product.seen, wrong))
      trap(warp, instr, l, wrong);
    block.tensor.products.push_back(std::move(product));
  });
}
void commit(Warp &warp, const Instr &instr) {
  forActive(warp, [&](unsigned l) {
    Block &block = *warp.block;
    uint64_t barrier = warp.source<uint64_t>(instr.op[0])[l] + static_cast<uint64_t>(instr.imm);
    if (instr.space == Space::Generic && barrier >> kWindowShift)
      barrier -= kSharedWindow;
    block.tensor.commits.push_back({barrier, &warp, &instr, l});
    const auto number = static_cast<int64_t>(block.tensor.ended + block.tensor.commits.size());
    for (TensorMemory::Product &product : block.tensor.products)
      if (product.commit < 0 && product.warp == &warp && product.lane == l)
        product.commit = number;
  });
}

void end(Block &block, const TensorMemory::Product &product) {
  const Form form(product.form);
  std::vector<std::byte> now;
  std::string wrong;
  if (!look(block, product, now, wrong) || now != product.seen)
    trap(*product.warp, *product.instr, product.lane,
         "the operands in shared memory changed while the product was in flight: they had not arrived when it was "
         "issued, or were overwritten before it had ended,");
  std::vector<float> a(kRows * kDepth), b(kDepth * form.columns), sums(kRows * form.columns);
  expandMatrix(now.data(), kRows, form.isLeftTransposed, form.isBfloat, a.data(), kDepth, 1);
  expandMatrix(now.data() + kRows * kDepth * 2, form.columns, form.isRightTransposed, form.isBfloat, b.data(), 1,
               form.columns);
  uint32_t *const words = block.tensor.words.data() + product.sums;
  if (product.adds)
    for (unsigned row = 0; row < kRows; ++row)
      std::memcpy(&sums[row * form.columns], words + row * TensorMemory::kColumns, form.columns * 4);
  static const Handler multiplySmall = findHandler("wgmma.sums");
  for (unsigned row = 0; row < kRows; row += 16) {
    SmallProduct small{&a[row * kDepth], b.data(), &sums[row * form.columns], form.columns};
    product.warp->small = &small;
    multiplySmall(*product.warp, *product.instr);
    product.warp->small = nullptr;
  }
  for (unsigned row = 0; row < kRows; ++row)
    std::memcpy(words + row * TensorMemory::kColumns, &sums[row * form.columns], form.columns * 4);
  for (unsigned column = 0; column < form.columns; ++column)
    block.tensor.written[product.sums + column] = block.tensor.ended + 1;
}

// ---- To registers. Operands: count registers, the address.

uint32_t placeOf(const Warp &warp, const Instr &instr, size_t operand) {
  return operand < 8 ? instr.op[operand] : warp.block->program->extra[instr.aux + operand - 8];
}

void load(Warp &warp, const Instr &instr) {
  const TensorMemory &memory = warp.block->tensor;
  const unsigned count = instr.count;
  const auto *addresses = warp.source<uint32_t>(placeOf(warp, instr, count));
  const uint32_t address = addresses[0], lane = address >> 16, column = address & 0xffff;
  if (std::any_of(addresses, addresses + kLanes, [address](uint32_t other) { return other != address; }))
    trap(warp, instr, 0, "threads of the warp have different addresses");
  if (lane != warp.index % 4 * kLanes)
    trap(warp, instr, 0,
         "the warp reads from lane " + std::to_string(lane) + " of tensor memory on, and has those from " +
             std::to_string(warp.index % 4 * kLanes) + " on,");
  if (!isAllocated(memory, column, count))
    trap(warp, instr, 0, "these columns of tensor memory were not asked for");
  for (const TensorMemory::Product &product : memory.products)
    if (column < product.sums + Form(product.form).columns && product.sums < column + count)
      trap(warp, instr, 0, "the columns are those of a product in flight");
  for (unsigned i = 0; i < count; ++i)
    if (memory.written[column + i] > warp.tensorSeen)
      trap(warp, instr, 0,
           "there is no tcgen05.fence::after_thread_sync between the end of a product and what reads its sums");
  TensorLoad made{.places = std::vector<uint32_t>(count), .values = std::vector<uint32_t>(count * kLanes)};
  for (unsigned i = 0; i < count; ++i) {
    made.places[i] = placeOf(warp, instr, i);
    for (unsigned l = 0; l < kLanes; ++l)
      made.values[i * kLanes + l] = memory.words[(lane + l) * TensorMemory::kColumns + column + i];
    std::fill_n(warp.target<uint32_t>(made.places[i]), kLanes, ~0u);
  }
  warp.tensorLoads.push_back(std::move(made));
}
void waitForLoads(Warp &warp, const Instr &) {
  for (const TensorLoad &made : warp.tensorLoads)
    for (size_t i = 0; i < made.places.size(); ++i)
      std::memcpy(warp.target<uint32_t>(made.places[i]), &made.values[i * kLanes], 4 * kLanes);
  warp.tensorLoads.clear();
}
void fenceAfter(Warp &warp, const Instr &) { warp.tensorSeen = warp.block->tensor.ended; }

} // namespace

void deliverProducts(Block &block, uint64_t barrier, const std::function<void(const TensorMemory::Commit &)> &arrive) {
  TensorMemory &memory = block.tensor;
  // Of one thread they end in order: also those of other barriers before.
  size_t due = 0;
  for (size_t i = 0; i < memory.commits.size(); ++i)
    if (memory.commits[i].barrier == barrier)
      due = i + 1;
  for (; due; --due) {
    const auto number = static_cast<int64_t>(memory.ended + 1);
    std::vector<TensorMemory::Product> ending;
    std::erase_if(memory.products, [&](TensorMemory::Product &product) {
      const bool isDue = product.commit >= 0 && product.commit <= number;
      if (isDue)
        ending.push_back(std::move(product));
      return isDue;
    });
    for (const TensorMemory::Product &product : ending)
      end(block, product);
    const TensorMemory::Commit commit = memory.commits.front();
    memory.commits.erase(memory.commits.begin());
    ++memory.ended;
    arrive(commit);
  }
}

void endTensorMemory(Block &block) {
  if (!block.tensor.products.empty()) {
    const TensorMemory::Product &product = block.tensor.products.front();
    trap(*product.warp, *product.instr, product.lane, "the block ended with a product in flight, issued");
  }
  if (!block.tensor.allocated.empty())
    throw Stop{{Fault::Kind::Trap,
                block.describe(block.warps[0], 0) + ": the block ended and did not give its tensor memory back"}};
}

void addTensorHandlers(std::unordered_map<std::string, Handler> &handlers) {
  handlers["tcgen05.alloc"] = allocate;
  handlers["tcgen05.relinquish"] = relinquish;
  handlers["tcgen05.dealloc"] = release;
  handlers["tcgen05.mma"] = multiply;
  handlers["tcgen05.commit"] = commit;
  handlers["tcgen05.ld"] = load;
  handlers["tcgen05.wait_ld"] = waitForLoads;
  handlers["tcgen05.fence_after"] = fenceAfter;
}

} // namespace tressel::standin::ptx
