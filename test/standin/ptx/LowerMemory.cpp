// Memory: loads, stores, atomic operations, addresses, copies.
#include "test/standin/ptx/Lower.h"
#include "test/standin/ptx/Special.h"

#include <algorithm>

namespace tressel::standin::ptx {
namespace {

constexpr Type kWord{'b', 32, false}, kAddress{'b', 64, false}, kPredicate{'p', 1, false};

uint64_t windowOf(Space space) {
  switch (space) {
  case Space::Shared:
  case Space::Cluster: // generic addresses are of the own block's
    return kSharedWindow;
  case Space::Local:
    return kLocalWindow;
  case Space::Param:
    return kParamWindow;
  case Space::Const:
    return kConstWindow;
  default:
    return 0;
  }
}

/// What an access says of caches and of the order of memory, which is that of the text here.
bool isHint(std::string_view word) {
  static const std::unordered_map<std::string_view, int> hints = {{"weak", 0},
                                                                  {"volatile", 0},
                                                                  {"relaxed", 0},
                                                                  {"acquire", 0},
                                                                  {"release", 0},
                                                                  {"acq_rel", 0},
                                                                  {"cta", 0},
                                                                  {"cluster", 0},
                                                                  {"gpu", 0},
                                                                  {"sys", 0},
                                                                  {"ca", 0},
                                                                  {"cg", 0},
                                                                  {"cs", 0},
                                                                  {"lu", 0},
                                                                  {"cv", 0},
                                                                  {"wb", 0},
                                                                  {"wt", 0},
                                                                  {"nc", 0},
                                                                  {"L1::evict_normal", 0},
                                                                  {"L1::evict_unchanged", 0},
                                                                  {"L1::evict_first", 0},
                                                                  {"L1::evict_last", 0},
                                                                  {"L1::no_allocate", 0},
                                                                  {"L2::64B", 0},
                                                                  {"L2::128B", 0},
                                                                  {"L2::256B", 0}};
  return hints.contains(word);
}

/// As memory handlers are named: 8 bits have a sign, as registers are wider.
std::string memoryName(Type type) {
  if (type.bits == 8)
    return type.kind == 's' ? "s8" : "u8";
  return "b" + std::to_string(type.bits);
}

std::string placeName(Space space) {
  switch (space) {
  case Space::Global:
    return "global.";
  case Space::Shared:
  case Space::Param:
  case Space::Const:
    return "block.";
  default:
    return "any.";
  }
}

struct Access {
  Space space = Space::Generic;
  Type type;
  unsigned count = 1;
  bool isKnown = false;
};
Access accessOf(const std::vector<std::string_view> &parts) {
  Access access;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parseType(parts[i], access.type))
      access.isKnown = i + 1 == parts.size() && access.type.kind != 'p';
    else if (parts[i] == "v2" || parts[i] == "v4")
      access.count = parts[i] == "v2" ? 2 : 4;
    else if (!asSpace(parts[i], access.space) && !isHint(parts[i]))
      return {};
  }
  return access;
}

} // namespace

void Lowerer::load() {
  const Access access = accessOf(parts_);
  if (!access.isKnown || access.type.bits / 8 * access.count > 16)
    unknown();
  expectOperands(2, 2);
  const Operand &to = operand(0);
  const bool isVector = to.kind == Operand::Kind::Vector;
  if (access.count != (isVector ? to.parts.size() : 1))
    fail("'" + std::string(statement_->mnemonic) + "' has another number of registers");
  const Address from = address(operand(1), access.space);
  const unsigned bytes = access.type.bits / 8u;
  std::vector<uint32_t> targets;
  for (unsigned i = 0; i < access.count; ++i)
    targets.push_back(define(isVector ? to.parts[i] : to, access.type));
  if (from.space == Space::Param && from.isConstant) {
    const int64_t end = from.offset + static_cast<int64_t>(bytes) * access.count;
    if (from.offset < 0 || end > static_cast<int64_t>(program_.paramBytes))
      fail("a parameter is read behind its end");
    if (from.offset % (bytes * access.count))
      fail("a parameter is read at an address that is not a multiple of its size");
    for (unsigned i = 0; i < access.count; ++i)
      emit("ld.param." + memoryName(access.type), {targets[i]}, {}).instr.imm =
          from.offset + static_cast<int64_t>(i * bytes);
    return;
  }
  const std::string handler = "ld." + placeName(from.space) + memoryName(access.type) +
                              (access.count == 1 ? "" : ".v" + std::to_string(access.count));
  Draft &draft = emit(handler, {}, {});
  draft.refs = targets;
  draft.defs = access.count;
  draft.refs.push_back(from.base);
  draft.instr.imm = from.offset;
  draft.instr.space = from.space;
  draft.instr.aux = program_.caches++;
}

void Lowerer::store() {
  const Access access = accessOf(parts_);
  if (!access.isKnown || access.type.bits / 8 * access.count > 16)
    unknown();
  expectOperands(2, 2);
  const Operand &value = operand(1);
  const bool isVector = value.kind == Operand::Kind::Vector;
  if (access.count != (isVector ? value.parts.size() : 1))
    fail("'" + std::string(statement_->mnemonic) + "' has another number of registers");
  const Address to = address(operand(0), access.space);
  std::vector<uint32_t> refs{to.base};
  for (unsigned i = 0; i < access.count; ++i)
    refs.push_back(use(isVector ? value.parts[i] : value, access.type));
  Type type = access.type;
  if (type.bits == 8)
    type.kind = 'u';
  Draft &draft = emit("st." + placeName(to.space) + memoryName(type) +
                          (access.count == 1 ? "" : ".v" + std::to_string(access.count)),
                      {}, {});
  draft.refs = refs;
  draft.instr.imm = to.offset;
  draft.instr.space = to.space;
  draft.instr.aux = program_.caches++;
}

void Lowerer::atomic() {
  // atom, red
  const bool isReduction = parts_[0] == "red";
  static const std::unordered_map<std::string_view, Atomic> operations = {
      {"add", Atomic::Add},           {"min", Atomic::Min},       {"max", Atomic::Max},
      {"and", Atomic::And},           {"or", Atomic::Or},         {"xor", Atomic::Xor},
      {"exch", Atomic::Exchange},     {"inc", Atomic::Increment}, {"dec", Atomic::Decrement},
      {"cas", Atomic::CompareAndSwap}};
  Space space = Space::Generic;
  Type type;
  const Atomic *operation = nullptr;
  for (size_t i = 1; i < parts_.size(); ++i) {
    if (const auto found = operations.find(parts_[i]); found != operations.end())
      operation = &found->second;
    else if (!parseType(parts_[i], type) && !asSpace(parts_[i], space) && !isHint(parts_[i]))
      unknown();
  }
  if (!operation)
    unknown();
  const bool isSwap = *operation == Atomic::CompareAndSwap;
  const bool isLogic = *operation == Atomic::And || *operation == Atomic::Or || *operation == Atomic::Xor;
  if (type.isPacked || type.kind == 'h' ||
      (type.isFloat() && (isLogic || type.bits == 16 || *operation != Atomic::Add)))
    unknown();
  if (type.kind == 'b')
    type.kind = 'u';
  const size_t first = isReduction ? 0 : 1;
  expectOperands(first + (isSwap ? 3 : 2), first + (isSwap ? 3 : 2));
  const Address at = address(operand(first), space);
  const uint32_t b = use(first + 1, type), c = isSwap ? use(first + 2, type) : b;
  const uint32_t old = isReduction ? temporary(ptx::widthOf(type)) : define(0, type);
  Draft &draft = emit("atom." + nameOf(type), {old}, {at.base, b, c});
  draft.instr.sub = static_cast<uint8_t>(*operation);
  draft.instr.imm = at.offset;
  draft.instr.space = at.space;
  if (type.isFloat()) { // PTX ISA, atom: on global memory, .f32 flushes
    Modifiers m;
    m.flushes = type.bits == 32 && at.space == Space::Global;
    setMode(draft, m);
  }
}

void Lowerer::convertAddress() {
  // cvta, cvta.to
  const bool isTo = parts_.size() > 1 && parts_[1] == "to";
  Space space = Space::Generic;
  if (parts_.size() != (isTo ? 4 : 3) || !asSpace(parts_[isTo ? 2 : 1], space) ||
      (parts_.back() != "u64" && parts_.back() != "b64") || (space == Space::Cluster && !isTo))
    unknown();
  expectOperands(2, 2);
  const Operand &from = operand(1);
  if (from.kind == Operand::Kind::Symbol && from.variable)
    space = locationOf(*from.variable).space; // a parameter of a function is elsewhere
  if (space == Space::Global) {
    emit("mov.b64", {define(0, kAddress)}, {use(1, kAddress)});
    return;
  }
  Draft &draft = emit(isTo ? "cvta.to" : "cvta", {define(0, kAddress)}, {use(1, kAddress)});
  draft.instr.imm = static_cast<int64_t>(windowOf(space));
}

void Lowerer::mapToPeer() {
  // mapa.shared::cluster
  if (parts_.size() != 3 || parts_[1] != "shared::cluster" || (parts_[2] != "u32" && parts_[2] != "u64"))
    unknown();
  expectOperands(3, 3);
  const Type type{'b', static_cast<uint8_t>(parts_[2] == "u32" ? 32 : 64), false};
  const uint32_t own = use(1, type), rank = use(2, kWord);
  emit("mapa.b" + std::to_string(type.bits), {define(0, type)}, {own, rank});
}

void Lowerer::isInSpace() {
  Space space = Space::Generic;
  if (parts_.size() != 2 || !asSpace(parts_[1], space) || space == Space::Cluster)
    unknown();
  expectOperands(2, 2);
  Draft &draft = emit("isspacep", {define(0, kPredicate)}, {use(1, kAddress)});
  draft.instr.imm = static_cast<int64_t>(windowOf(space));
}

void Lowerer::copyLater() {
  // cp.async.{ca,cg}.shared.global, commit_group, wait_group, wait_all
  if (parts_.size() < 3 || parts_[1] != "async")
    unknown();
  if (parts_[2] == "bulk")
    return copyTensor();
  if (parts_[2] == "commit_group" && parts_.size() == 3) {
    expectOperands(0, 0);
    emit("cp.async.commit_group", {}, {});
    return;
  }
  if ((parts_[2] == "wait_group" || parts_[2] == "wait_all") && parts_.size() == 3) {
    const bool isAll = parts_[2] == "wait_all";
    expectOperands(isAll ? 0 : 1, isAll ? 0 : 1);
    emit("cp.async.wait_group", {}, {}).instr.imm = isAll ? -1 : static_cast<int64_t>(operand(0).bits);
    return;
  }
  if ((parts_[2] != "ca" && parts_[2] != "cg") || parts_.size() < 5 || !parts_[3].starts_with("shared") ||
      parts_[4] != "global")
    unknown();
  for (size_t i = 5; i < parts_.size(); ++i)
    if (!isHint(parts_[i]))
      unknown();
  expectOperands(3, 4);
  const uint64_t bytes = operand(2).bits;
  const bool isCached = parts_[2] == "ca";
  if (operand(2).kind != Operand::Kind::Integer || (bytes != 16 && !(isCached && (bytes == 4 || bytes == 8))))
    fail("cp.async copies 4, 8 or 16 bytes, around the first cache 16");
  if (statement_->operands.size() == 4 && operand(3).kind == Operand::Kind::Register &&
      widths_[registerBase_ + operand(3).reg] == Width::Predicate)
    unknown();
  const Address to = address(operand(0), Space::Shared), from = address(operand(1), Space::Global);
  const uint32_t given = statement_->operands.size() == 4 ? use(3, kWord) : constant(Width::Word, bytes);
  if (from.offset != static_cast<int32_t>(from.offset))
    unknown();
  Draft &draft = emit("cp.async", {}, {to.base, from.base, given});
  draft.instr.imm = to.offset;
  draft.instr.aux = static_cast<uint32_t>(from.offset);
  draft.instr.count = static_cast<uint8_t>(bytes);
}

void Lowerer::loadMatrix() {
  bool isTransposed = false, isKnown = true;
  unsigned count = 0;
  for (size_t i = 1; i < parts_.size(); ++i) {
    const std::string_view part = parts_[i];
    if (part == "x1" || part == "x2" || part == "x4")
      count = static_cast<unsigned>(part[1] - '0');
    else if (part == "trans")
      isTransposed = true;
    else
      isKnown &= part == "sync" || part == "aligned" || part == "m8n8" || part == "shared" || part == "shared::cta" ||
                 part == "b16";
  }
  if (!isKnown || !count)
    unknown();
  expectOperands(2, 2);
  const Operand &to = operand(0);
  if (to.kind == Operand::Kind::Vector ? to.parts.size() != count : count != 1)
    fail("'" + std::string(statement_->mnemonic) + "' has another number of registers");
  const Address from = address(operand(1), Space::Shared);
  std::vector<uint32_t> refs;
  for (unsigned i = 0; i < count; ++i)
    refs.push_back(define(to.kind == Operand::Kind::Vector ? to.parts[i] : to, kWord));
  refs.push_back(from.base);
  Draft &draft = emitKind(Kind::Collective, {}, {});
  draft.refs = refs;
  draft.defs = count;
  draft.instr.run = nullptr; // Collective.cpp does it
  draft.instr.sub = static_cast<uint8_t>(Together::Matrix);
  draft.instr.count = static_cast<uint8_t>(count);
  draft.instr.aux = isTransposed;
  draft.instr.imm = from.offset;
  draft.instr.space = Space::Shared;
}

void Lowerer::nothing() {
  // prefetch, prefetchu, fence, membar, nanosleep: order and time, of which there is none here
  if (parts_[0] == "fence" && fenceAsync())
    return;
  for (size_t i = 1; i < parts_.size(); ++i) {
    static const std::unordered_map<std::string_view, int> known = {
        {"global", 0},  {"local", 0},     {"L1", 0},    {"L2", 0},   {"L2::evict_last", 0},    {"L2::evict_normal", 0},
        {"sc", 0},      {"gl", 0},        {"cta", 0},   {"u32", 0},  {"launch_dependents", 0}, {"wait", 0},
        {"L2::64B", 0}, {"tensormap", 0}, {"param", 0}, {"const", 0}};
    if (!known.contains(parts_[i]) && !isHint(parts_[i]))
      unknown();
  }
  emit("nothing", {}, {});
}

} // namespace tressel::standin::ptx
