// mbarriers, copies of tensors, and products of warpgroups.
#include "test/standin/ptx/Lower.h"

#include <algorithm>
#include <charconv>

namespace tressel::standin::ptx {
namespace {

constexpr Type kWord{'b', 32, false}, kAddress{'b', 64, false}, kPredicate{'p', 1, false};

bool isOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

} // namespace

bool Lowerer::fenceAsync() {
  // fence.proxy.async, and fence.mbarrier_init.release.cluster; other fences are but orders of memory
  const std::string_view text = statement_->mnemonic;
  if (!isOneOf(text, {"fence.proxy.async", "fence.proxy.async.shared::cta", "fence.mbarrier_init.release.cluster"}))
    return false;
  expectOperands(0, 0);
  emit("fence.async", {}, {});
  return true;
}

void Lowerer::barrierObject() {
  // mbarrier.{init,inval,arrive,arrive.expect_tx,expect_tx,test_wait,try_wait}, of this block
  if (parts_.size() < 2)
    unknown();
  const std::string_view what = parts_[1];
  bool expects = what == "expect_tx", isParity = false, hasType = false;
  Space space = Space::Generic;
  for (size_t i = 2; i < parts_.size(); ++i) {
    if (parts_[i] == "expect_tx" && what == "arrive")
      expects = true;
    else if (parts_[i] == "parity" && isOneOf(what, {"test_wait", "try_wait"}))
      isParity = true;
    else if (parts_[i] == "b64")
      hasType = true;
    else if (isOneOf(parts_[i], {"shared", "shared::cta"}))
      space = Space::Shared;
    else if (!isOneOf(parts_[i], {"release", "acquire", "relaxed", "cta", "cluster"}))
      unknown();
  }
  if (!hasType)
    unknown();
  Draft *draft = nullptr;
  Address at;
  if (what == "init") {
    expectOperands(2, 2);
    at = address(operand(0), space);
    const uint32_t count = use(1, kWord);
    draft = &emit("mbarrier.init", {}, {at.base, count});
  } else if (what == "inval") {
    expectOperands(1, 1);
    at = address(operand(0), space);
    draft = &emit("mbarrier.inval", {}, {at.base});
  } else if (what == "arrive" || what == "expect_tx") {
    const bool arrives = what == "arrive";
    const size_t first = arrives ? 1 : 0;
    expectOperands(first + 1, first + 2);
    const bool hasCount = statement_->operands.size() == first + 2;
    if (expects && !hasCount)
      unknown();
    at = address(operand(first), space);
    const uint32_t number = hasCount ? use(first + 1, kWord) : constant(Width::Word, 1),
                   zero = constant(Width::Word, 0), one = constant(Width::Word, 1);
    const uint32_t state = arrives ? define(0, kAddress) : temporary(Width::Double);
    draft = &emit("mbarrier.arrive", {state},
                  {at.base,
                   !arrives  ? zero
                   : expects ? one
                             : number,
                   expects ? number : zero});
    draft->instr.sub = !arrives;
  } else if (what == "test_wait" || what == "try_wait") {
    expectOperands(3, what == "try_wait" ? 4 : 3); // for so long at most
    at = address(operand(1), space);
    const uint32_t phase = use(2, isParity ? kWord : kAddress);
    draft = &emit("mbarrier.wait", {define(0, kPredicate)}, {at.base, phase});
    draft->instr.sub = !isParity;
  } else
    unknown();
  draft->instr.imm = at.offset;
  draft->instr.space = at.space;
}

void Lowerer::copyTensor() {
  // cp.async.bulk.tensor.Nd.shared::{cluster,cta}.global[.tile].mbarrier::complete_tx::bytes [to], [map, {at}],
  // [barrier]
  if (parts_.size() < 8 || parts_[3] != "tensor" || parts_[4].size() != 2 || parts_[4][1] != 'd' ||
      !isOneOf(parts_[5], {"shared::cluster", "shared::cta"}) || parts_[6] != "global")
    unknown();
  const size_t next = parts_[7] == "tile" ? 8 : 7;
  if (parts_.size() != next + 1 || parts_[next] != "mbarrier::complete_tx::bytes")
    unknown();
  const auto rank = static_cast<unsigned>(parts_[4][0] - '0');
  expectOperands(3, 3);
  const Operand &map = operand(1);
  if (rank < 1 || rank > 5 || map.kind != Operand::Kind::Address || map.parts.size() != rank + 1)
    fail("'" + std::string(statement_->mnemonic) + "' has another number of coordinates");
  const Address to = address(operand(0), Space::Shared), barrier = address(operand(2), Space::Shared);
  Address from = baseOf(map, Space::Generic);
  auto sum = [&](Address &a) {
    if (!a.offset)
      return;
    const uint32_t whole = temporary(Width::Double);
    emit("add.s64", {whole}, {a.base, constant(Width::Double, static_cast<uint64_t>(a.offset))});
    a.base = whole;
  };
  Address end = barrier;
  sum(end), sum(from);
  if (from.isConstant)
    unknown();
  std::vector<uint32_t> refs{to.base, from.base, end.base};
  for (unsigned d = 0; d < rank; ++d)
    refs.push_back(use(map.parts[d + 1], kWord));
  Draft &draft = emit("cp.async.bulk.tensor", {}, {});
  draft.refs = refs;
  draft.instr.imm = to.offset;
  draft.instr.count = static_cast<uint8_t>(rank);
  draft.instr.space = Space::Shared;
}

void Lowerer::setRegisters() {
  // How many registers a thread has changes nothing here.
  if (!isOneOf(statement_->mnemonic, {"setmaxnreg.inc.sync.aligned.u32", "setmaxnreg.dec.sync.aligned.u32"}))
    unknown();
  expectOperands(1, 1);
  const uint64_t count = operand(0).bits;
  if (operand(0).kind != Operand::Kind::Integer || count < 24 || count > 256 || count % 8)
    fail("setmaxnreg takes a multiple of 8 from 24 to 256");
  emit("nothing", {}, {});
}

void Lowerer::warpgroup() {
  auto together = [this](const char *handler) -> Draft & {
    const Handler run = findHandler(handler);
    Draft &draft = emitKind(Kind::Collective, {}, {});
    draft.instr.run = run;
    draft.instr.sub = static_cast<uint8_t>(Together::Matrix);
    return draft;
  };
  const std::string_view text = statement_->mnemonic;
  if (text == "wgmma.fence.sync.aligned") {
    expectOperands(0, 0);
    together("wgmma.fence");
  } else if (text == "wgmma.commit_group.sync.aligned") {
    expectOperands(0, 0);
    together("wgmma.commit_group");
  } else if (text == "wgmma.wait_group.sync.aligned") {
    expectOperands(1, 1);
    if (operand(0).kind != Operand::Kind::Integer || operand(0).bits > 7)
      fail("wgmma.wait_group takes a number from 0 to 7");
    together("wgmma.wait_group").instr.imm = static_cast<int64_t>(operand(0).bits);
  } else
    multiplyWarpgroup();
}

void Lowerer::multiplyWarpgroup() {
  // wgmma.mma_async.sync.aligned.m64nNk16.f32.{f16,bf16}.{f16,bf16} d, a-desc, b-desc, adds, sign, sign, transposed,
  // transposed
  if (parts_.size() != 8 || parts_[1] != "mma_async" || parts_[2] != "sync" || parts_[3] != "aligned" ||
      parts_[5] != "f32" || parts_[6] != parts_[7] || !isOneOf(parts_[6], {"f16", "bf16"}))
    unknown();
  const std::string_view shape = parts_[4];
  unsigned n = 0;
  const size_t k = shape.find('k');
  if (!shape.starts_with("m64n") || k == std::string_view::npos || shape.substr(k) != "k16" ||
      std::from_chars(shape.data() + 4, shape.data() + k, n).ptr != shape.data() + k || n % 8 || n < 8 || n > 256)
    unknown();
  expectOperands(8, 8);
  const Operand &sums = operand(0);
  if (sums.kind != Operand::Kind::Vector || sums.parts.size() != n / 2)
    fail("'" + std::string(statement_->mnemonic) + "' has another number of registers");
  if (operand(1).kind == Operand::Kind::Vector)
    unknown(); // the left matrix in registers
  int64_t flags[4];
  for (size_t i = 0; i < 4; ++i) {
    const Operand &flag = operand(4 + i);
    flags[i] = static_cast<int64_t>(flag.bits);
    if (flag.kind != Operand::Kind::Integer ||
        (i < 2 ? flags[i] != 1 && flags[i] != -1 : flags[i] != 0 && flags[i] != 1))
      fail("signs are 1 or -1, transpositions 0 or 1");
  }
  std::vector<uint32_t> refs;
  for (const Operand &sum : sums.parts)
    refs.push_back(define(sum, kWord));
  for (const size_t i : {size_t(1), size_t(2)})
    refs.push_back(use(i, kAddress));
  refs.push_back(use(3, kPredicate));
  for (const Operand &sum : sums.parts)
    refs.push_back(use(sum, kWord));
  Draft &draft = emitKind(Kind::Collective, {}, {});
  draft.refs = refs;
  draft.defs = n / 2;
  draft.instr.run = findHandler("wgmma.mma_async");
  draft.instr.sub = static_cast<uint8_t>(Together::Matrix);
  draft.instr.imm = static_cast<int64_t>(n) | (flags[0] * flags[1] < 0 ? 1 << 16 : 0);
  draft.instr.count = static_cast<uint8_t>((parts_[6] == "bf16") | flags[2] << 1 | flags[3] << 2);
  setMode(draft, {});
}

void Lowerer::tensorMemory() {
  // tcgen05 of one block: alloc, dealloc, relinquish_alloc_permit, mma of kind f16, commit, ld of 32 lanes, wait::ld,
  // fences
  auto together = [this](const char *handler, std::vector<uint32_t> refs, unsigned defs = 0) -> Draft & {
    const Handler run = findHandler(handler);
    Draft &draft = emitKind(Kind::Collective, {}, {});
    draft.refs = std::move(refs);
    draft.defs = defs;
    draft.instr.run = run;
    draft.instr.sub = static_cast<uint8_t>(Together::Matrix);
    return draft;
  };
  std::string_view text = statement_->mnemonic;
  if (isOneOf(text, {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
                     "tcgen05.alloc.cta_group::1.sync.aligned.b32"})) {
    expectOperands(2, 2);
    const Address to =
        address(operand(0), text.find("shared") == std::string_view::npos ? Space::Generic : Space::Shared);
    Draft &draft = together("tcgen05.alloc", {to.base, use(1, kWord)});
    draft.instr.imm = to.offset;
    draft.instr.space = to.space;
  } else if (text == "tcgen05.dealloc.cta_group::1.sync.aligned.b32") {
    expectOperands(2, 2);
    together("tcgen05.dealloc", {use(0, kWord), use(1, kWord)});
  } else if (text == "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned") {
    expectOperands(0, 0);
    together("tcgen05.relinquish", {});
  } else if (isOneOf(text, {"tcgen05.mma.cta_group::1.kind::f16",
                            "tcgen05.mma.cta_group::1.kind::f16.collector::a::discard"})) {
    expectOperands(5, 5);
    if (operand(0).kind != Operand::Kind::Address || operand(0).parts.size() != 1 || operand(0).offset ||
        operand(1).kind == Operand::Kind::Address)
      unknown(); // the left matrix in tensor memory
    const uint32_t sums = use(operand(0).parts[0], kWord), left = use(1, kAddress), right = use(2, kAddress),
                   form = use(3, kWord), adds = use(4, kPredicate);
    emit("tcgen05.mma", {}, {sums, left, right, form, adds});
  } else if (text.starts_with("tcgen05.commit.cta_group::1.mbarrier::arrive::one.") && text.ends_with("b64")) {
    text.remove_prefix(50);
    if (!isOneOf(text, {"b64", "shared::cluster.b64"}))
      unknown();
    expectOperands(1, 1);
    const Address at = address(operand(0), text == "b64" ? Space::Generic : Space::Shared);
    Draft &draft = emit("tcgen05.commit", {}, {at.base});
    draft.instr.imm = at.offset;
    draft.instr.space = at.space;
  } else if (text.starts_with("tcgen05.ld.sync.aligned.32x32b.x") && text.ends_with(".b32")) {
    expectOperands(2, 2);
    unsigned count = 0;
    const char *const number = text.data() + 32, *const end = text.data() + text.size() - 4;
    if (std::from_chars(number, end, count).ptr != end || !count || count > 128 || (count & (count - 1)))
      unknown();
    const Operand &to = operand(0);
    if (to.kind != Operand::Kind::Vector || to.parts.size() != count)
      fail("'" + std::string(text) + "' has another number of registers");
    if (operand(1).kind != Operand::Kind::Address || operand(1).parts.size() != 1 || operand(1).offset)
      unknown();
    std::vector<uint32_t> refs;
    for (const Operand &part : to.parts)
      refs.push_back(define(part, kWord));
    refs.push_back(use(operand(1).parts[0], kWord));
    together("tcgen05.ld", std::move(refs), count).instr.count = static_cast<uint8_t>(count);
  } else if (text == "tcgen05.wait::ld.sync.aligned") {
    expectOperands(0, 0);
    together("tcgen05.wait_ld", {});
  } else if (text == "tcgen05.fence::after_thread_sync") {
    expectOperands(0, 0);
    emit("tcgen05.fence_after", {}, {});
  } else if (text == "tcgen05.fence::before_thread_sync") {
    expectOperands(0, 0);
    emit("nothing", {}, {});
  } else
    unknown();
}

} // namespace tressel::standin::ptx
