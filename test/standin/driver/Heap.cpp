#include "Heap.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace tressel::standin {
namespace {

constexpr int kPoison = 0xFF;
constexpr uint64_t kLarge = uint64_t(1) << 20;

/// Large blocks come from the system, whose pages cost nothing until they are touched; these have to be poisoned as well.
std::byte *newBytes(uint64_t bytes) { return static_cast<std::byte *>(std::aligned_alloc(512, (bytes + 511) / 512 * 512)); }

} // namespace

std::string Allocation::describe() const {
  static const char *const names[] = {"memory of card ", "pinned memory of the host", "registered memory of the host"};
  char text[128];
  std::snprintf(text, sizeof text, "%s%s at 0x%llx, %llu bytes", names[static_cast<int>(type)], card < 0 ? "" : std::to_string(card).c_str(),
                static_cast<unsigned long long>(begin), static_cast<unsigned long long>(bytes));
  return text;
}

Heap::Heap() {
  // Addresses that are no memory: the host that touches one ends as it would with a card's.
  void *region = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED)
    std::abort();
  base_ = reinterpret_cast<uint64_t>(region);
  next_ = base_ + kAlign;
}
Heap::~Heap() { munmap(reinterpret_cast<void *>(base_), kReserved); }

Allocation *Heap::add(std::unique_ptr<Allocation> a) {
  a->span = {.begin = a->begin, .end = a->end(), .host = a->host};
  return (allocations_[a->begin] = std::move(a)).get();
}

uint64_t Heap::used(int card) const {
  uint64_t sum = 0;
  for (const auto &[begin, allocation] : allocations_)
    sum += allocation->card == card ? allocation->bytes : 0;
  return sum;
}

Allocation *Heap::allocateOnCard(int card, uint64_t bytes) {
  if (bytes > capacity || used(card) > capacity - bytes)
    return nullptr;
  auto a = std::make_unique<Allocation>();
  a->bytes = bytes;
  a->card = card;
  const uint64_t room = (bytes + kAlign - 1) / kAlign * kAlign;
  if (auto at = freed_.find(room); at != freed_.end() && !at->second.empty()) {
    a->begin = at->second.back();
    at->second.pop_back();
  } else {
    a->begin = next_;
    next_ += room + kAlign; // a gap: what runs over the end is in no allocation
  }
  a->host = newBytes(std::max<uint64_t>(bytes, 1));
  if (!a->host)
    return nullptr;
  if (poisons)
    std::memset(a->host, kPoison, bytes);
  return add(std::move(a));
}

Allocation *Heap::allocatePinned(uint64_t bytes) {
  auto a = std::make_unique<Allocation>();
  a->bytes = bytes;
  a->type = MemoryType::Pinned;
  a->host = newBytes(std::max<uint64_t>(bytes, 1));
  if (!a->host)
    return nullptr;
  if (poisons)
    std::memset(a->host, kPoison, bytes);
  a->begin = reinterpret_cast<uint64_t>(a->host);
  return add(std::move(a));
}

Allocation *Heap::registerHost(void *memory, uint64_t bytes) {
  const uint64_t begin = reinterpret_cast<uint64_t>(memory);
  auto at = allocations_.lower_bound(begin);
  if (at != allocations_.end() && at->first < begin + bytes)
    return nullptr;
  if (at != allocations_.begin() && std::prev(at)->second->end() > begin)
    return nullptr;
  auto a = std::make_unique<Allocation>();
  a->begin = begin;
  a->bytes = bytes;
  a->type = MemoryType::Registered;
  a->host = static_cast<std::byte *>(memory);
  return add(std::move(a));
}

void Heap::free(Allocation *a, bool isUsed) {
  if (a->type == MemoryType::Card)
    freed_[(a->bytes + kAlign - 1) / kAlign * kAlign].push_back(a->begin);
  if (a->type != MemoryType::Registered) {
    if (poisons && (isUsed || a->bytes < kLarge)) // larger ones go back to the system
      std::memset(a->host, kPoison, a->bytes);
    if (isUsed)
      kept_.push_back(a->host);
    else
      std::free(a->host);
  }
  allocations_.erase(a->begin);
}

Allocation *Heap::find(uint64_t address) {
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin())
    return nullptr;
  Allocation *a = std::prev(at)->second.get();
  return address < a->end() ? a : nullptr;
}

std::vector<Bytes> takeRuns(std::vector<uint64_t> &bits, uint64_t from, uint64_t to) {
  std::vector<Bytes> runs;
  auto extend = [&](uint64_t begin, uint64_t end) {
    if (!runs.empty() && runs.back().end == begin)
      runs.back().end = end;
    else
      runs.push_back({begin, end});
  };
  if (from >= to)
    return runs;
  for (uint64_t word = from / 64; word <= (to - 1) / 64; ++word) {
    uint64_t rest = bits[word];
    bits[word] = 0;
    uint64_t place = word * 64;
    if (rest == ~uint64_t(0)) {
      extend(place, place + 64);
      continue;
    }
    while (rest) {
      const int zeros = std::countr_zero(rest);
      rest >>= zeros;
      place += static_cast<uint64_t>(zeros);
      const int ones = std::countr_one(rest);
      extend(place, place + static_cast<uint64_t>(ones));
      rest = ones == 64 ? 0 : rest >> ones;
      place += static_cast<uint64_t>(ones);
    }
  }
  return runs;
}

} // namespace tressel::standin
