// Functions, variables and operands. The instructions are in Lower*.cpp.
#include "test/standin/ptx/Lower.h"
#include "test/standin/ptx/Lexer.h"
#include "test/standin/ptx/Special.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tressel::standin::ptx {

Width widthOf(Type type) {
  return type.kind == 'p'  ? Width::Predicate
         : type.bits <= 16 ? Width::Half
         : type.bits == 32 ? Width::Word
                           : Width::Double;
}

std::string nameOf(Type type) {
  if (type.kind == 'p')
    return "pred";
  if (type.isPacked)
    return type.kind == 'h' ? "bf16x2" : "f16x2";
  if (type.kind == 'h')
    return "bf16";
  return type.kind + std::to_string(type.bits);
}

bool asSpace(std::string_view word, Space &space) {
  static const std::unordered_map<std::string_view, Space> spaces = {
      {"global", Space::Global},           {"shared", Space::Shared},     {"shared::cta", Space::Shared},
      {"shared::cluster", Space::Cluster}, {"local", Space::Local},       {"param", Space::Param},
      {"param::entry", Space::Param},      {"param::func", Space::Param}, {"const", Space::Const}};
  const auto found = spaces.find(word);
  if (found == spaces.end())
    return false;
  space = found->second;
  return true;
}

bool Modifiers::has(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

void Lowerer::fail(const std::string &message) const {
  failParse(statement_ ? statement_->line : function_.line, message);
}
void Lowerer::unknown() const { fail("'" + std::string(statement_->mnemonic) + "' is not interpreted"); }

// ---- Functions and variables

void Lowerer::run() {
  layOut();
  lowerBody(function_, -1);
  // A thread that reaches the end of the body returns.
  emitKind(Kind::Exit, {}, {});
  for (int &place : places_)
    if (place < 0)
      place = static_cast<int>(drafts_.size()) - 1;
  placeRegisters(drafts_, places_, widths_, program_);
  program_.code.reserve(drafts_.size());
  for (const Draft &draft : drafts_) {
    program_.code.push_back(draft.instr);
    program_.places.push_back({draft.line, draft.text});
  }
}

void Lowerer::collectShared(const Function &function, std::vector<const Variable *> &found,
                            std::vector<const Function *> &seen) {
  if (std::ranges::find(seen, &function) != seen.end())
    return;
  seen.push_back(&function);
  auto add = [&](const Variable *variable) {
    if (variable && variable->space == Space::Shared && std::ranges::find(found, variable) == found.end())
      found.push_back(variable);
  };
  for (const auto &variable : function.variables)
    add(variable.get());
  auto visit = [&](const Operand &operand, auto &self) -> void {
    add(operand.variable);
    for (const Operand &part : operand.parts)
      self(part, self);
  };
  for (const Statement &statement : function.statements) {
    for (const Operand &operand : statement.operands)
      visit(operand, visit);
    if (statement.mnemonic.starts_with("call") && !statement.operands.empty())
      if (const Function *callee = text_.find(statement.operands[0].name))
        collectShared(*callee, found, seen);
  }
}

void Lowerer::layOut() {
  for (const auto &param : function_.params)
    locations_[param.get()] = {Space::Param, param->offset},
    program_.paramBytes = static_cast<uint32_t>(param->offset + param->bytes);
  for (const auto &variable : text_.variables)
    if (variable->space != Space::Shared)
      locations_[variable.get()] = {variable->space,
                                    variable->offset + (variable->space == Space::Global ? kModuleWindow : 0)};
  std::vector<const Variable *> shared;
  std::vector<const Function *> seen;
  collectShared(function_, shared, seen);
  uint64_t at = 0;
  for (const Variable *variable : shared) {
    if (variable->isExternal)
      continue;
    at = (at + variable->align - 1) / variable->align * variable->align;
    locations_[variable] = {Space::Shared, at};
    at += variable->bytes;
  }
  if (at > 1u << 20)
    fail("kernel '" + function_.name + "' has too much shared memory");
  program_.sharedBytes = static_cast<uint32_t>(at);
  uint64_t align = 16;
  for (const Variable *variable : shared)
    if (variable->isExternal)
      align = std::max<uint64_t>(align, variable->align);
  at = (at + align - 1) / align * align;
  // No better aligned than it has to be.
  if (align < 1024 && at % (2 * align) == 0)
    at += align;
  program_.dynamicBegin = static_cast<uint32_t>(at);
  for (const Variable *variable : shared)
    if (variable->isExternal)
      locations_[variable] = {Space::Shared, program_.dynamicBegin};
}

uint64_t Lowerer::allocateLocal(uint64_t bytes, uint64_t align) {
  const uint64_t at = (program_.localBytes + align - 1) / align * align;
  if (at + bytes > 1u << 20)
    fail("a thread has too much local memory");
  program_.localBytes = static_cast<uint32_t>((at + bytes + 15) / 16 * 16);
  return at;
}

void Lowerer::layOutBody(const Function &function) {
  // Parameters of calls are local memory: a call is the body in its place.
  for (const auto &variable : function.variables)
    if (variable->space == Space::Local || variable->space == Space::Param)
      locations_[variable.get()] = {Space::Local, allocateLocal(variable->bytes, variable->align)};
}

Lowerer::Location Lowerer::locationOf(const Variable &variable) {
  const auto found = locations_.find(&variable);
  if (found == locations_.end())
    fail("'" + variable.name + "' has no place");
  return found->second;
}

void Lowerer::lowerBody(const Function &function, int returnLabel) {
  const Function *outer = std::exchange(current_, &function);
  const auto outerBase = std::exchange(registerBase_, static_cast<uint32_t>(widths_.size()));
  const int outerLabels = std::exchange(labelBase_, static_cast<int>(places_.size()));
  const int outerReturn = std::exchange(returnLabel_, returnLabel);
  for (const Type type : function.registers)
    widths_.push_back(ptx::widthOf(type));
  places_.resize(places_.size() + static_cast<size_t>(function.labels), -1);
  layOutBody(function);
  for (const Statement &statement : function.statements)
    lower(statement);
  current_ = outer, registerBase_ = outerBase, labelBase_ = outerLabels, returnLabel_ = outerReturn;
}

void Lowerer::lower(const Statement &statement) {
  const Statement *outer = std::exchange(statement_, &statement);
  if (statement.label >= 0) {
    auto &place = places_[static_cast<size_t>(labelBase_ + statement.label)];
    if (place >= 0)
      fail("label '" + std::string(statement.mnemonic) + "' is there twice");
    place = static_cast<int>(drafts_.size());
    statement_ = outer;
    return;
  }
  parts_.clear();
  for (size_t from = 0; from <= statement.mnemonic.size();) {
    const size_t dot = std::min(statement.mnemonic.find('.', from), statement.mnemonic.size());
    parts_.push_back(statement.mnemonic.substr(from, dot - from));
    from = dot + 1;
  }
  const auto method = methods().find(parts_[0]);
  if (method == methods().end())
    unknown();
  statementBegin_ = drafts_.size();
  (this->*method->second)();
  endStatement();
  statement_ = outer;
}

void Lowerer::endStatement() {
  for (const Widening &widening : widenings_) {
    const std::string kind = widening.isSigned ? "s" : "u";
    const Width from = widths_[widening.value];
    emit("cvt." + kind + (widths_[widening.target] == Width::Double ? "64." : "32.") + kind +
             (from == Width::Word ? "32" : "16"),
         {widening.target}, {widening.value});
  }
  widenings_.clear();
  if (statement_->guard < 0)
    return;
  for (size_t i = statementBegin_; i < drafts_.size(); ++i) {
    if (drafts_[i].guard != kNone)
      continue; // of a body in the place of a call
    drafts_[i].guard = registerBase_ + static_cast<uint32_t>(statement_->guard);
    drafts_[i].instr.flags |= kGuarded | (statement_->isGuardNegated ? kGuardNegated : 0);
  }
}

void Lowerer::call() {
  const bool isGuarded = statement_->guard >= 0;
  if (isGuarded)
    fail("a call under a predicate is not interpreted");
  inlineCall();
}

void Lowerer::inlineCall() {
  const Statement &statement = *statement_;
  const Operand &named = statement.operands[0];
  const Function *callee =
      named.kind == Operand::Kind::Symbol || named.kind == Operand::Kind::Label ? text_.find(named.name) : nullptr;
  if (!callee || !callee->hasBody || callee->isKernel)
    fail("a call of '" + std::string(named.name) + "', which has no body here, is not interpreted");
  if (++depth_ > 32)
    fail("calls within calls of '" + callee->name + "' are too deep");
  if (statement.operands.size() - 1 != callee->params.size() || statement.results.size() != callee->results.size())
    fail("'" + callee->name + "' has another number of parameters");
  std::vector<std::pair<uint32_t, uint32_t>> moves; // to formal registers
  for (size_t i = 0; i < callee->params.size(); ++i) {
    const Operand &actual = statement.operands[i + 1];
    if (callee->formalRegisters[i] >= 0) {
      const auto reg = static_cast<size_t>(callee->formalRegisters[i]);
      moves.emplace_back(reg, use(actual, callee->registers[reg]));
    } else if (actual.variable)
      locations_[callee->params[i].get()] = locationOf(*actual.variable);
    else {
      const uint64_t at = allocateLocal(callee->params[i]->bytes, callee->params[i]->align);
      locations_[callee->params[i].get()] = {Space::Local, at};
      const Type type{'b', static_cast<uint8_t>(8 * callee->params[i]->bytes), false};
      Draft &draft = emit("st.any." + std::string(type.bits == 8 ? "u8" : nameOf(type)), {},
                          {constant(Width::Double, at), use(actual, type)});
      draft.instr.space = Space::Local;
    }
  }
  // The registers of the body follow those that there are now.
  const auto first = static_cast<uint32_t>(widths_.size());
  for (const auto &[reg, value] : moves)
    emit("mov." + nameOf(callee->registers[reg].kind == 'p'
                             ? callee->registers[reg]
                             : Type{'b', std::max<uint8_t>(callee->registers[reg].bits, 16), false}),
         {first + reg}, {value});
  std::vector<std::pair<uint32_t, const Operand *>> results;
  for (size_t i = 0; i < callee->results.size(); ++i) {
    const Operand &actual = statement.results[i];
    if (callee->resultRegisters[i] >= 0)
      results.emplace_back(first + static_cast<uint32_t>(callee->resultRegisters[i]), &actual);
    else if (actual.variable)
      locations_[callee->results[i].get()] = locationOf(*actual.variable);
    else
      fail("a result in a register of a function that returns a parameter is not interpreted");
  }
  const int end = static_cast<int>(places_.size());
  places_.push_back(-1);
  const auto parts = parts_;
  lowerBody(*callee, end);
  statementBegin_ = drafts_.size();
  places_[static_cast<size_t>(end)] = static_cast<int>(drafts_.size());
  for (const auto &[reg, actual] : results) {
    const Width width = widths_[reg];
    const Type type{width == Width::Predicate ? 'p' : 'b',
                    static_cast<uint8_t>(width == Width::Predicate ? 1
                                         : width == Width::Half    ? 16
                                         : width == Width::Word    ? 32
                                                                   : 64),
                    false};
    emit("mov." + nameOf(type), {define(*actual, type)}, {reg});
  }
  parts_ = parts;
  --depth_;
}

// ---- Operands

Modifiers Lowerer::modifiers(std::string_view allowed, size_t from) const {
  Modifiers result;
  for (size_t i = from; i < parts_.size(); ++i) {
    const std::string_view part = parts_[i];
    Type type;
    if (parseType(part, type)) {
      result.types.push_back(type);
      continue;
    }
    // Is it among the words allowed?
    bool isAllowed = false;
    for (size_t at = 0; at < allowed.size() && !isAllowed;) {
      const size_t end = std::min(allowed.find(' ', at), allowed.size());
      isAllowed = allowed.substr(at, end - at) == part;
      at = end + 1;
    }
    if (!isAllowed)
      unknown();
    if (part == "rn" || part == "rz" || part == "rm" || part == "rp") {
      result.hasRounding = true;
      result.rounding = part == "rn" ? kNearest : part == "rz" ? kZero : part == "rm" ? kDown : kUp;
    } else if (part == "ftz")
      result.flushes = true;
    else if (part == "sat")
      result.saturates = true;
    else
      result.words.push_back(part);
  }
  return result;
}

Type Lowerer::typeOf(const Modifiers &modifiers) const {
  if (modifiers.types.size() != 1)
    unknown();
  // f32 can flush, f16 too; of bf16 only an exponential.
  const Type &only = modifiers.types[0];
  if (modifiers.flushes && nameOf(only) != "f32" && only.bits != 16 && !only.isPacked)
    unknown();
  if (modifiers.flushes && nameOf(only).starts_with("bf16") && parts_[0] != "ex2")
    unknown();
  return modifiers.types[0];
}

void Lowerer::expectOperands(size_t least, size_t most) const {
  const size_t count = statement_->operands.size();
  if (count < least || count > most)
    fail("'" + std::string(statement_->mnemonic) + "' has " + std::to_string(count) + " operands");
}

uint32_t Lowerer::temporary(Width width) {
  widths_.push_back(width);
  return static_cast<uint32_t>(widths_.size() - 1);
}

uint32_t Lowerer::constant(Width width, uint64_t bits) {
  constexpr size_t kBytes[] = {4, 2, 4, 8};
  const size_t bytes = kBytes[static_cast<size_t>(width)];
  if (bytes < 8)
    bits &= (uint64_t(1) << (8 * bytes)) - 1;
  auto [entry, isNew] = constants_[static_cast<size_t>(width)].try_emplace(bits, 0);
  if (isNew) {
    auto &pool = program_.constants;
    const size_t at = pool.size();
    pool.resize(at + (bytes * kLanes + 63) / 64 * 64);
    for (size_t l = 0; l < kLanes; ++l)
      std::memcpy(pool.data() + at + l * bytes, &bits, bytes);
    entry->second = kConstant | static_cast<uint32_t>(at) | 1;
  }
  return entry->second;
}

uint32_t Lowerer::narrowed(uint32_t ref, Width from, Width to) {
  while (from != to) {
    const Width next = from == Width::Double ? Width::Word : Width::Half;
    const uint32_t low = temporary(next);
    emit(from == Width::Double ? "low.b64" : "low.b32", {low}, {ref});
    ref = low, from = next;
  }
  return ref;
}

uint32_t Lowerer::useSpecial(const Operand &operand, Width width) {
  struct Known {
    Special which;
    uint8_t axis = 0;
    bool isWide = false;
  };
  static const std::unordered_map<std::string_view, Known> known = {
      {"%tid.x", {Special::Thread, 0}},
      {"%tid.y", {Special::Thread, 1}},
      {"%tid.z", {Special::Thread, 2}},
      {"%ntid.x", {Special::BlockSize, 0}},
      {"%ntid.y", {Special::BlockSize, 1}},
      {"%ntid.z", {Special::BlockSize, 2}},
      {"%ctaid.x", {Special::BlockIndex, 0}},
      {"%ctaid.y", {Special::BlockIndex, 1}},
      {"%ctaid.z", {Special::BlockIndex, 2}},
      {"%nctaid.x", {Special::GridSize, 0}},
      {"%nctaid.y", {Special::GridSize, 1}},
      {"%nctaid.z", {Special::GridSize, 2}},
      {"%laneid", {Special::Lane}},
      {"%warpid", {Special::Warp}},
      {"%nwarpid", {Special::Warps}},
      {"%cluster_ctarank", {Special::ClusterRank}},
      {"%cluster_nctarank", {Special::ClusterSize}},
      {"%smid", {Special::Zero}},
      {"%nsmid", {Special::One}},
      {"%lanemask_eq", {Special::LanesEqual}},
      {"%lanemask_lt", {Special::LanesLess}},
      {"%lanemask_le", {Special::LanesLessEqual}},
      {"%lanemask_gt", {Special::LanesGreater}},
      {"%lanemask_ge", {Special::LanesGreaterEqual}},
      {"%clock", {Special::Clock}},
      {"%clock_hi", {Special::Zero}},
      {"%clock64", {Special::WideClock, 0, true}},
      {"%globaltimer", {Special::WideClock, 0, true}},
      {"%globaltimer_lo", {Special::Clock}},
      {"%total_smem_size", {Special::SharedBytes}},
      {"%dynamic_smem_size", {Special::DynamicSharedBytes}}};
  const auto found = known.find(operand.name);
  if (found == known.end())
    fail("register '" + std::string(operand.name) + "' is not declared");
  const Width own = found->second.isWide ? Width::Double : Width::Word;
  if (width > own || width == Width::Predicate)
    fail("'" + std::string(operand.name) + "' has 32 bits");
  const uint32_t value = temporary(own);
  Draft &draft = emit("special", {value}, {});
  draft.instr.sub = static_cast<uint8_t>(found->second.which);
  draft.instr.count = found->second.axis;
  return narrowed(value, own, width);
}

uint32_t Lowerer::use(const Operand &operand, Type type) {
  const Width width = ptx::widthOf(type);
  switch (operand.kind) {
  case Operand::Kind::Register: {
    const uint32_t reg = registerBase_ + operand.reg;
    const Width own = widths_[reg];
    if ((own == Width::Predicate) != (width == Width::Predicate) || own < width)
      fail("an operand of '" + std::string(statement_->mnemonic) +
           "' is too narrow, or a predicate where there is to be none");
    if (operand.isNegated) {
      if (width != Width::Predicate)
        fail("only predicates are negated");
      const uint32_t value = temporary(width);
      emit("not.pred", {value}, {reg});
      return value;
    }
    return narrowed(reg, own, width);
  }
  case Operand::Kind::Special:
    return useSpecial(operand, width);
  case Operand::Kind::Integer:
    if (width == Width::Predicate)
      return constant(width, operand.bits ? ~uint64_t(0) : 0);
    if (type.kind == 'f' && !type.isPacked && type.bits >= 32)
      fail("a floating-point number is expected");
    return constant(width, operand.bits);
  case Operand::Kind::Float: {
    uint64_t bits = operand.bits;
    if (width == Width::Double && !operand.isDouble)
      bits = std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    else if (width == Width::Word && operand.isDouble)
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    else if (width != Width::Double && width != Width::Word)
      fail("a floating-point number does not fit");
    return constant(width, bits);
  }
  case Operand::Kind::Symbol: {
    if (!operand.variable)
      fail("'" + std::string(operand.name) + "' is not declared");
    if (width != Width::Double && width != Width::Word)
      fail("an address does not fit");
    return constant(width, locationOf(*operand.variable).offset + static_cast<uint64_t>(operand.offset));
  }
  default:
    fail("an operand of '" + std::string(statement_->mnemonic) + "' is not interpreted");
  }
}

uint32_t Lowerer::define(const Operand &operand, Type type) {
  const Width width = ptx::widthOf(type);
  if (operand.kind == Operand::Kind::Sink)
    return temporary(width);
  if (operand.kind != Operand::Kind::Register || operand.isNegated)
    fail("the result of '" + std::string(statement_->mnemonic) + "' is no register");
  const uint32_t reg = registerBase_ + operand.reg;
  const Width own = widths_[reg];
  if (own == width)
    return reg;
  if (own < width || width == Width::Predicate)
    fail("the result of '" + std::string(statement_->mnemonic) + "' does not fit its register");
  const uint32_t value = temporary(width);
  widenings_.push_back({reg, value, type.kind == 's'});
  return value;
}

Lowerer::Address Lowerer::address(const Operand &operand, Space space) {
  if (operand.kind != Operand::Kind::Address || operand.parts.size() != 1)
    fail("'" + std::string(statement_->mnemonic) + "' has no address");
  return baseOf(operand, space);
}

Lowerer::Address Lowerer::baseOf(const Operand &operand, Space space) {
  Address result{.base = kNone, .offset = operand.offset, .space = space};
  const Operand &base = operand.parts[0];
  if (base.kind == Operand::Kind::Register && widths_[registerBase_ + base.reg] == Width::Word) {
    result.base = temporary(Width::Double);
    emit("cvt.u64.u32", {result.base}, {registerBase_ + base.reg});
    return result;
  }
  if (base.kind == Operand::Kind::Symbol && base.variable) {
    const Location location = locationOf(*base.variable);
    if (space == Space::Param || space == Space::Generic)
      result.space = location.space;
    else if (space != location.space)
      fail("'" + base.variable->name + "' is in another space");
    result.offset += static_cast<int64_t>(location.offset);
    result.base = constant(Width::Double, 0);
    result.isConstant = true;
    return result;
  }
  result.isConstant = base.kind == Operand::Kind::Integer;
  result.base = use(base, {'b', 64, false});
  return result;
}

// ---- Instructions

Draft &Lowerer::emit(const std::string &handler, std::initializer_list<uint32_t> defs,
                     std::initializer_list<uint32_t> uses) {
  Draft &draft = drafts_.emplace_back();
  draft.instr.run = findHandler(handler);
  if (!draft.instr.run)
    unknown();
  draft.defs = static_cast<unsigned>(defs.size());
  draft.refs.assign(defs);
  draft.refs.insert(draft.refs.end(), uses);
  if (statement_)
    draft.line = statement_->line, draft.text = statement_->text;
  return draft;
}

Draft &Lowerer::emitKind(Kind kind, std::initializer_list<uint32_t> defs, std::initializer_list<uint32_t> uses) {
  Draft &draft = emit("nothing", defs, uses);
  draft.instr.kind = kind;
  draft.instr.flags |= kControl;
  return draft;
}

Draft &Lowerer::emitTogether(Together what, std::initializer_list<uint32_t> defs, std::initializer_list<uint32_t> uses,
                             const Operand &lanes) {
  const uint32_t mask = use(lanes, {'b', 32, false});
  Draft &draft = emitKind(Kind::Collective, defs, uses);
  draft.instr.sub = static_cast<uint8_t>(what);
  draft.refs.resize(8, kNone);
  draft.refs[7] = mask;
  return draft;
}

void Lowerer::setMode(Draft &draft, const Modifiers &modifiers) {
  draft.instr.flags |= 1u << (modifiers.rounding | (modifiers.flushes ? kFlush : 0));
}

} // namespace tressel::standin::ptx
