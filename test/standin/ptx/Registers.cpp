// Few places for many registers, as a warp's frame is to stay in the nearest cache: a compiler writes each virtual
// register once. A register has a place from its first use in the text to the last, and all through loops that it is
// carried around; others have the place before and after.
#include "test/standin/ptx/Registers.h"

#include <algorithm>

namespace tressel::standin::ptx {
namespace {

constexpr uint32_t kBytes[] = {4, 2 * kLanes, 4 * kLanes, 8 * kLanes};

struct BasicBlock {
  uint32_t begin = 0, end = 0; ///< drafts
  std::vector<uint32_t> next;
  std::vector<uint64_t> in, out, used, defined;
};

class Placement {
public:
  Placement(std::vector<Draft> &drafts, const std::vector<int> &places, const std::vector<Width> &widths,
            Program &program)
      : drafts_(drafts), places_(places), widths_(widths), program_(program), words_((widths.size() + 63) / 64) {}

  void run() {
    makeBlocks();
    flow();
    findIntervals();
    assign();
    rewrite();
  }

private:
  void makeBlocks();
  void flow();
  void findIntervals();
  void assign();
  void rewrite();
  void extend(uint32_t reg, uint32_t position) {
    first_[reg] = std::min(first_[reg], position);
    last_[reg] = std::max(last_[reg], position);
  }

  std::vector<Draft> &drafts_;
  const std::vector<int> &places_;
  const std::vector<Width> &widths_;
  Program &program_;
  size_t words_;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> first_, last_, offsets_;
};

void Placement::makeBlocks() {
  const size_t n = drafts_.size();
  std::vector<bool> begins(n + 1, false);
  begins[0] = true;
  auto target = [&](int label) { begins[static_cast<size_t>(places_[static_cast<size_t>(label)])] = true; };
  for (size_t i = 0; i < n; ++i) {
    const Draft &draft = drafts_[i];
    if (draft.label >= 0)
      target(draft.label);
    for (const int label : draft.labels)
      target(label);
    if (draft.instr.kind != Kind::Plain)
      begins[i + 1] = true;
  }
  std::vector<uint32_t> blockAt(n + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    if (begins[i]) {
      if (!blocks_.empty())
        blocks_.back().end = static_cast<uint32_t>(i);
      blocks_.push_back(
          {.begin = static_cast<uint32_t>(i), .end = 0, .next = {}, .in = {}, .out = {}, .used = {}, .defined = {}});
      drafts_[i].instr.flags |= kBlockStart;
    }
    blockAt[i] = static_cast<uint32_t>(blocks_.size() - 1);
  }
  blocks_.back().end = static_cast<uint32_t>(n);
  for (size_t b = 0; b < blocks_.size(); ++b) {
    BasicBlock &block = blocks_[b];
    const Draft &last = drafts_[block.end - 1];
    const Kind kind = last.instr.kind;
    const bool isGuarded = last.guard != kNone;
    if (last.label >= 0)
      block.next.push_back(blockAt[static_cast<size_t>(places_[static_cast<size_t>(last.label)])]);
    for (const int label : last.labels)
      block.next.push_back(blockAt[static_cast<size_t>(places_[static_cast<size_t>(label)])]);
    const bool isEnd =
        (kind == Kind::Branch || kind == Kind::BranchIndexed || kind == Kind::Exit || kind == Kind::Trap) && !isGuarded;
    if (!isEnd && b + 1 < blocks_.size())
      block.next.push_back(static_cast<uint32_t>(b + 1));
  }
}

void Placement::flow() {
  auto has = [](const std::vector<uint64_t> &set, uint32_t reg) { return set[reg >> 6] >> (reg & 63) & 1; };
  auto put = [](std::vector<uint64_t> &set, uint32_t reg) { set[reg >> 6] |= uint64_t(1) << (reg & 63); };
  for (BasicBlock &block : blocks_) {
    for (auto *set : {&block.in, &block.out, &block.used, &block.defined})
      set->assign(words_, 0);
    for (uint32_t i = block.begin; i < block.end; ++i) {
      const Draft &draft = drafts_[i];
      auto use = [&](uint32_t ref) {
        if (ref != kNone && !(ref & kConstant) && !has(block.defined, ref))
          put(block.used, ref);
      };
      use(draft.guard);
      for (size_t r = 0; r < draft.refs.size(); ++r)
        if (r >= draft.defs || draft.guard != kNone) // where the guard is false, the old value stays
          use(draft.refs[r]);
      for (size_t r = 0; r < draft.defs; ++r)
        if (draft.refs[r] != kNone)
          put(block.defined, draft.refs[r]);
    }
    for (size_t w = 0; w < words_; ++w)
      block.in[w] = block.used[w];
  }
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    for (size_t b = blocks_.size(); b-- > 0;) {
      BasicBlock &block = blocks_[b];
      for (const uint32_t next : block.next)
        for (size_t w = 0; w < words_; ++w)
          block.out[w] |= blocks_[next].in[w];
      for (size_t w = 0; w < words_; ++w) {
        const uint64_t in = block.used[w] | (block.out[w] & ~block.defined[w]);
        hasChanged |= in != block.in[w];
        block.in[w] = in;
      }
    }
  }
}

void Placement::findIntervals() {
  first_.assign(widths_.size(), ~0u);
  last_.assign(widths_.size(), 0);
  auto each = [](const std::vector<uint64_t> &set, auto f) {
    for (size_t w = 0; w < set.size(); ++w)
      for (uint64_t rest = set[w]; rest; rest &= rest - 1)
        f(static_cast<uint32_t>(64 * w + static_cast<size_t>(std::countr_zero(rest))));
  };
  // Of an instruction, sources are before destinations: one may have the place of the other.
  for (const BasicBlock &block : blocks_) {
    each(block.in, [&](uint32_t reg) { extend(reg, 2 * block.begin); });
    each(block.out, [&](uint32_t reg) { extend(reg, 2 * block.end); });
    for (uint32_t i = block.begin; i < block.end; ++i) {
      const Draft &draft = drafts_[i];
      if (draft.guard != kNone)
        extend(draft.guard, 2 * i);
      for (size_t r = 0; r < draft.refs.size(); ++r)
        if (draft.refs[r] != kNone && !(draft.refs[r] & kConstant)) {
          extend(draft.refs[r], 2 * i + (r < draft.defs));
          if (r < draft.defs && draft.guard != kNone)
            extend(draft.refs[r], 2 * i);
        }
    }
  }
}

void Placement::assign() {
  std::vector<uint32_t> order;
  for (uint32_t reg = 0; reg < widths_.size(); ++reg)
    if (first_[reg] != ~0u)
      order.push_back(reg);
  std::ranges::sort(order, {}, [this](uint32_t reg) { return std::pair(first_[reg], reg); });
  offsets_.assign(widths_.size(), 0);
  std::vector<uint32_t> free[4], slotOf(widths_.size(), 0);
  uint32_t counts[4] = {};
  std::vector<std::pair<uint32_t, uint32_t>> active; // a heap: last use, register
  const std::greater<> later;
  for (const uint32_t reg : order) {
    while (!active.empty() && active.front().first < first_[reg]) {
      std::ranges::pop_heap(active, later);
      const uint32_t gone = active.back().second;
      active.pop_back();
      free[static_cast<size_t>(widths_[gone])].push_back(slotOf[gone]);
    }
    const auto width = static_cast<size_t>(widths_[reg]);
    if (free[width].empty())
      slotOf[reg] = counts[width]++;
    else {
      slotOf[reg] = free[width].back();
      free[width].pop_back();
    }
    active.emplace_back(last_[reg], reg);
    std::ranges::push_heap(active, later);
  }
  // The widest first, so that all are aligned.
  uint32_t begins[4], at = 0;
  for (const size_t width : {3, 2, 1, 0}) {
    begins[width] = at;
    at += counts[width] * kBytes[width];
  }
  program_.frameBytes = (at + 63) / 64 * 64;
  for (const uint32_t reg : order) {
    const auto width = static_cast<size_t>(widths_[reg]);
    offsets_[reg] = begins[width] + slotOf[reg] * kBytes[width];
  }
  for (uint32_t reg = 0; reg < widths_.size(); ++reg)
    if (blocks_[0].in[reg >> 6] >> (reg & 63) & 1)
      program_.uninitialized.emplace_back(offsets_[reg], kBytes[static_cast<size_t>(widths_[reg])]);
}

void Placement::rewrite() {
  auto place = [this](uint32_t ref) { return ref == kNone ? 1 : ref & kConstant ? ref & ~kConstant : offsets_[ref]; };
  for (Draft &draft : drafts_) {
    Instr &instr = draft.instr;
    if (draft.guard != kNone)
      instr.guard = offsets_[draft.guard];
    if (draft.refs.size() > 8)
      instr.aux = static_cast<uint32_t>(program_.extra.size());
    for (size_t r = 0; r < draft.refs.size(); ++r)
      if (r < 8)
        instr.op[r] = place(draft.refs[r]);
      else
        program_.extra.push_back(place(draft.refs[r]));
    if (draft.label >= 0)
      instr.aux = static_cast<uint32_t>(places_[static_cast<size_t>(draft.label)]);
    if (!draft.labels.empty()) {
      instr.aux = static_cast<uint32_t>(program_.extra.size());
      instr.imm = static_cast<int64_t>(draft.labels.size());
      for (const int label : draft.labels)
        program_.extra.push_back(static_cast<uint32_t>(places_[static_cast<size_t>(label)]));
    }
  }
}

} // namespace

void placeRegisters(std::vector<Draft> &drafts, const std::vector<int> &places, const std::vector<Width> &widths,
                    Program &program) {
  Placement(drafts, places, widths, program).run();
}

} // namespace tressel::standin::ptx
