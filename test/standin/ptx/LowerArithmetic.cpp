// Arithmetic, logic, moves and conversions.
#include "test/standin/ptx/Lower.h"

namespace tressel::standin::ptx {
namespace {

Type bitsOf(Type type) { return {'b', type.bits, false}; }
constexpr Type kWord{'b', 32, false}, kPredicate{'p', 1, false};

bool isSmall(Type type) { return type.isFloat() && (type.bits == 16 || type.isPacked); }
/// Integers without a sign of their own.
Type asNumber(Type type) { return type.kind == 'b' ? Type{'u', type.bits, false} : type; }

/// Nearest, whatever else is said of rounding.
Modifiers flushing(const Modifiers &modifiers) {
  Modifiers result;
  result.flushes = modifiers.flushes;
  return result;
}

} // namespace

void Lowerer::saturateTo(uint32_t target, uint32_t value, Type type, const Modifiers &modifiers) {
  Draft &draft = emit("sat." + nameOf(type), {target}, {value});
  setMode(draft, modifiers);
}

void Lowerer::arithmetic() {
  // add, sub, min, max, neg, abs, div, rem, fma, copysign, sad, rcp, sqrt, rsqrt
  const std::string name(parts_[0]);
  if (parts_.size() > 1 && (name == "add" || name == "sub") && (parts_[1] == "cc"))
    return carry();
  Modifiers m = modifiers("rn rz rm rp ftz sat approx full NaN relu");
  const Type type = asNumber(typeOf(m));
  const bool isUnary = name == "neg" || name == "abs" || name == "rcp" || name == "sqrt" || name == "rsqrt";
  const bool isTernary = name == "fma" || name == "sad";
  expectOperands(isUnary ? 2 : isTernary ? 4 : 3, isUnary ? 2 : isTernary ? 4 : 3);
  if (!type.isFloat() && (m.hasRounding || m.flushes || !m.words.empty() || (m.saturates && nameOf(type) != "s32")))
    unknown();
  std::string handler = name;
  if (m.has("NaN"))
    handler += ".nan";
  // Moves of signs and choices are not computed, so MXCSR does not flush them.
  const bool isMove = name == "min" || name == "max" || name == "neg" || name == "abs";
  if (m.flushes && isMove && type.bits == 32 && !type.isPacked)
    handler += ".ftz";
  if (m.saturates && !type.isFloat()) {
    // add.sat.s32, sub.sat.s32: by way of 64 bits.
    if (name != "add" && name != "sub")
      unknown();
    const uint32_t a = temporary(Width::Double), b = temporary(Width::Double), sum = temporary(Width::Double);
    emit("cvt.s64.s32", {a}, {use(1, type)});
    emit("cvt.s64.s32", {b}, {use(2, type)});
    emit(name + ".s64", {sum}, {a, b});
    emit("cvt.sat.s32.s64", {define(0, type)}, {sum});
    return;
  }
  handler += "." + nameOf(type);
  const uint32_t a = use(1, type), b = isUnary ? kNone : use(2, type),
                 c = isTernary ? use(3, name == "sad" ? Type{'u', type.bits, false} : type) : kNone;
  const uint32_t target = define(0, type);
  const bool hasMore = m.saturates || m.has("relu");
  const uint32_t result = hasMore ? temporary(ptx::widthOf(type)) : target;
  Draft &draft = isUnary     ? emit(handler, {result}, {a})
                 : isTernary ? emit(handler, {result}, {a, b, c})
                             : emit(handler, {result}, {a, b});
  if (isSmall(type)) {
    draft.instr.sub = m.flushes;
    draft.instr.count = isUnary ? 0 : isTernary ? 2 : 1;
    if (m.rounding != kNearest)
      unknown();
    setMode(draft, {});
  } else if (type.isFloat())
    setMode(draft, m);
  if (m.saturates)
    saturateTo(target, result, type, m);
  else if (m.has("relu")) {
    Draft &more = emit("relu." + nameOf(type), {target}, {result});
    setMode(more, {});
  }
}

void Lowerer::multiply() {
  // mul, mad
  const bool isMad = parts_[0] == "mad";
  if (isMad && parts_.back() != "f32" && parts_.back() != "f64" && parts_.size() > 2 && parts_[2] == "cc")
    return carry();
  Modifiers m = modifiers("rn rz rm rp ftz sat lo hi wide");
  const Type type = asNumber(typeOf(m));
  expectOperands(isMad ? 4 : 3, isMad ? 4 : 3);
  if (type.isFloat()) {
    if (!m.words.empty())
      unknown();
    const uint32_t a = use(1, type), b = use(2, type), c = isMad ? use(3, type) : kNone, target = define(0, type);
    const uint32_t result = m.saturates ? temporary(ptx::widthOf(type)) : target;
    const std::string handler = (isMad ? "fma." : "mul.") + nameOf(type);
    Draft &draft = isMad ? emit(handler, {result}, {a, b, c}) : emit(handler, {result}, {a, b});
    setMode(draft, isSmall(type) ? Modifiers{} : m);
    if (isSmall(type)) {
      draft.instr.sub = m.flushes, draft.instr.count = isMad ? 2 : 1;
      if (m.rounding != kNearest)
        unknown();
    }
    if (m.saturates)
      saturateTo(target, result, type, m);
    return;
  }
  if (m.words.size() != 1 || m.hasRounding || m.flushes || m.saturates)
    unknown();
  const bool isWide = m.words[0] == "wide";
  Type result = type;
  if (isWide)
    result.bits = static_cast<uint8_t>(2 * type.bits);
  const std::string handler = std::string(parts_[0]) + "." + std::string(m.words[0]) + "." + nameOf(type);
  const uint32_t a = use(1, type), b = use(2, type);
  if (isMad) {
    const uint32_t c = use(3, result);
    emit(handler, {define(0, result)}, {a, b, c});
  } else
    emit(handler, {define(0, result)}, {a, b});
}

void Lowerer::carry() {
  // add.cc, addc, addc.cc, sub.cc, subc, mad.lo.cc, madc.lo...
  const std::string name(parts_[0]);
  Modifiers m = modifiers("cc lo hi");
  const Type type = asNumber(typeOf(m));
  if (type.isFloat() || type.bits < 32)
    unknown();
  const bool isMad = name.starts_with("mad");
  expectOperands(isMad ? 4 : 3, isMad ? 4 : 3);
  uint32_t a = use(1, type), b = use(2, type);
  if (isMad) {
    if (!m.has("lo") && !m.has("hi"))
      unknown();
    const uint32_t product = temporary(ptx::widthOf(type));
    emit(std::string(m.has("lo") ? "mul.lo." : "mul.hi.") + nameOf(type), {product}, {a, b});
    a = product;
    b = use(3, type);
  }
  Draft &draft = emit("carry." + nameOf(bitsOf(type)), {define(0, type)}, {a, b});
  draft.instr.sub = static_cast<uint8_t>((name == "addc" || name == "subc" || name == "madc" ? 1 : 0) |
                                         (m.has("cc") ? 2 : 0) | (name.starts_with("sub") ? 4 : 0));
}

void Lowerer::approximation() {
  // ex2, lg2, sin, cos, tanh
  Modifiers m = modifiers("approx ftz");
  const Type type = typeOf(m);
  expectOperands(2, 2);
  if (!type.isFloat() || type.bits == 64)
    unknown();
  Draft &draft = emit(std::string(parts_[0]) + "." + nameOf(type), {define(0, type)}, {use(1, type)});
  draft.instr.sub = m.flushes;
  setMode(draft, isSmall(type) ? Modifiers{} : m);
}

void Lowerer::logic() {
  // and, or, xor, not, cnot, lop3, shf, prmt
  const std::string name(parts_[0]);
  if (name == "lop3") {
    const Type type = typeOf(modifiers(""));
    expectOperands(5, 5);
    Draft &draft = emit("lop3." + nameOf(type), {define(0, type)}, {use(1, type), use(2, type), use(3, type)});
    draft.instr.imm = static_cast<int64_t>(operand(4).bits);
    return;
  }
  if (name == "shf") {
    const Modifiers m = modifiers("l r wrap clamp");
    expectOperands(4, 4);
    if (m.words.size() != 2)
      unknown();
    emit("shf." + std::string(m.words[0]) + "." + std::string(m.words[1]) + "." + nameOf(typeOf(m)), {define(0, kWord)},
         {use(1, kWord), use(2, kWord), use(3, kWord)});
    return;
  }
  if (name == "prmt") {
    const Modifiers m = modifiers("f4e b4e rc8 ecl ecr rc16");
    expectOperands(4, 4);
    Draft &draft = emit("prmt." + nameOf(typeOf(m)), {define(0, kWord)}, {use(1, kWord), use(2, kWord), use(3, kWord)});
    constexpr std::string_view kModes[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    for (uint8_t i = 1; i < 7; ++i)
      if (m.has(kModes[i]))
        draft.instr.sub = i;
    return;
  }
  const Type type = typeOf(modifiers(""));
  if (type.kind != 'b' && type.kind != 'p')
    unknown();
  if (name == "not" || name == "cnot") {
    expectOperands(2, 2);
    emit(name + "." + nameOf(type), {define(0, type)}, {use(1, type)});
  } else {
    expectOperands(3, 3);
    emit(name + "." + nameOf(type), {define(0, type)}, {use(1, type), use(2, type)});
  }
}

void Lowerer::shift() {
  const bool isLeft = parts_[0] == "shl";
  const Type type = typeOf(modifiers(""));
  expectOperands(3, 3);
  emit(std::string(parts_[0]) + "." + nameOf(isLeft ? bitsOf(type) : asNumber(type)), {define(0, type)},
       {use(1, type), use(2, kWord)});
}

void Lowerer::select() {
  // selp, slct
  if (parts_[0] == "selp") {
    const Type type = typeOf(modifiers(""));
    expectOperands(4, 4);
    emit("selp." + nameOf(bitsOf(type)), {define(0, type)}, {use(1, type), use(2, type), use(3, kPredicate)});
    return;
  }
  const Modifiers m = modifiers("ftz");
  expectOperands(4, 4);
  if (m.types.size() != 2)
    unknown();
  const Type type = m.types[0], by = m.types[1];
  Draft &draft = emit(std::string(by.isFloat() ? "slct.f." : "slct.") + nameOf(bitsOf(type)), {define(0, type)},
                      {use(1, type), use(2, type), use(3, by)});
  if (by.isFloat())
    setMode(draft, m);
}

void Lowerer::setPredicate() {
  Modifiers m = modifiers("eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz");
  Type type = typeOf(m);
  if (m.words.empty() || m.words.size() > 2)
    unknown();
  std::string how(m.words[0]);
  if (!type.isFloat() && how.size() == 2 && (how == "lo" || how == "ls" || how == "hi" || how == "hs")) {
    how = how == "lo" ? "lt" : how == "ls" ? "le" : how == "hi" ? "gt" : "ge";
    type.kind = 'u';
  }
  const bool isCombined = m.words.size() == 2;
  expectOperands(isCombined ? 4 : 3, isCombined ? 4 : 3);
  const Operand &to = operand(0);
  const bool isPair = to.kind == Operand::Kind::Vector;
  if (isPair && to.parts.size() != 2)
    unknown();
  const uint32_t a = use(1, type), b = use(2, type), c = isCombined ? use(3, kPredicate) : kNone;
  const uint32_t target = define(isPair ? to.parts[0] : to, kPredicate);
  const uint32_t result = isPair || isCombined ? temporary(Width::Predicate) : target;
  Draft &draft = emit("setp." + how + "." + nameOf(asNumber(type)), {result}, {a, b});
  if (type.isFloat())
    setMode(draft, isSmall(type) ? Modifiers{} : m), draft.instr.sub = m.flushes;
  const std::string combine = isCombined ? std::string(m.words[1]) + ".pred" : "";
  if (isPair) {
    // The second is of the opposite. The first is written last, as it may be an operand.
    const uint32_t opposite = isCombined ? temporary(Width::Predicate) : define(to.parts[1], kPredicate);
    emit("not.pred", {opposite}, {result});
    if (isCombined)
      emit(combine, {define(to.parts[1], kPredicate)}, {opposite, c});
  }
  if (isCombined)
    emit(combine, {target}, {result, c});
  else if (isPair)
    emit("mov.pred", {target}, {result});
}

void Lowerer::set() {
  Modifiers m = modifiers("eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan ftz");
  if (m.types.size() != 2 || m.words.size() != 1)
    unknown();
  expectOperands(3, 3);
  const Type to = m.types[0];
  Type type = m.types[1];
  std::string how(m.words[0]);
  if (!type.isFloat() && (how == "lo" || how == "ls" || how == "hi" || how == "hs"))
    how = how == "lo" ? "lt" : how == "ls" ? "le" : how == "hi" ? "gt" : "ge";
  const uint32_t is = temporary(Width::Predicate);
  Draft &draft = emit("setp." + how + "." + nameOf(asNumber(type)), {is}, {use(1, type), use(2, type)});
  if (type.isFloat())
    setMode(draft, isSmall(type) ? Modifiers{} : m), draft.instr.sub = m.flushes;
  const uint64_t yes = to.kind == 'f' && to.bits == 32 ? 0x3f800000 : to.kind == 'f' ? 0x3c00 : ~uint64_t(0);
  const Width width = ptx::widthOf(to);
  emit("selp." + nameOf(bitsOf(to)), {define(0, to)}, {constant(width, yes), constant(width, 0), is});
}

void Lowerer::fieldOrCount() {
  // bfe, bfi, popc, clz, brev, bfind
  const std::string name(parts_[0]);
  const Modifiers m = modifiers(name == "bfind" ? "shiftamt" : "");
  const Type type = name == "bfe" || name == "bfind" ? asNumber(typeOf(m)) : bitsOf(typeOf(m));
  const std::string handler = name + (m.has("shiftamt") ? ".shiftamt." : ".") + nameOf(type);
  const size_t count = name == "bfe" ? 4 : name == "bfi" ? 5 : 2;
  expectOperands(count, count);
  if (name == "bfe")
    emit(handler, {define(0, type)}, {use(1, type), use(2, kWord), use(3, kWord)});
  else if (name == "bfi")
    emit(handler, {define(0, type)}, {use(1, type), use(2, type), use(3, kWord), use(4, kWord)});
  else
    emit(handler, {define(0, name == "brev" ? type : Type{'u', 32, false})}, {use(1, type)});
}

void Lowerer::pack(const Operand &to, const Operand &from, Type type) {
  std::vector<uint32_t> values;
  const size_t n = from.parts.size();
  if ((n != 2 && n != 4) || type.bits / n < 16)
    unknown();
  auto bits = static_cast<uint8_t>(type.bits / n);
  for (const Operand &part : from.parts)
    values.push_back(use(part, {'b', bits, false}));
  for (; values.size() > 2; bits = static_cast<uint8_t>(2 * bits)) {
    std::vector<uint32_t> wider;
    for (size_t i = 0; i < values.size(); i += 2) {
      wider.push_back(temporary(Width::Word));
      emit("pack.b16", {wider.back()}, {values[i], values[i + 1]});
    }
    values = wider;
  }
  emit(bits == 16 ? "pack.b16" : "pack.b32", {define(to, type)}, {values[0], values[1]});
}

void Lowerer::unpack(const Operand &to, const Operand &from, Type type) {
  const size_t n = to.parts.size();
  if ((n != 2 && n != 4) || type.bits / n < 16)
    unknown();
  const auto bits = static_cast<uint8_t>(type.bits / n);
  std::vector<uint32_t> values{use(from, type)};
  std::vector<Width> widths{ptx::widthOf(type)};
  if (n == 4) {
    const uint32_t low = temporary(Width::Word), high = temporary(Width::Word);
    emit("low.b64", {low}, {values[0]});
    emit("high.b64", {high}, {values[0]});
    values = {low, high};
  }
  for (size_t i = 0; i < n; ++i) {
    if (to.parts[i].kind == Operand::Kind::Sink)
      continue;
    const std::string wide = n == 4 || type.bits == 32 ? ".b32" : ".b64";
    emit((i & 1 ? "high" : "low") + wide, {define(to.parts[i], {'b', bits, false})}, {values[n == 4 ? i / 2 : 0]});
  }
}

void Lowerer::move() {
  const Type type = typeOf(modifiers(""));
  expectOperands(2, 2);
  const Operand &to = operand(0), &from = operand(1);
  if (from.kind == Operand::Kind::Vector)
    return pack(to, from, type);
  if (to.kind == Operand::Kind::Vector)
    return unpack(to, from, type);
  emit("mov." + nameOf(type.kind == 'p' ? type : bitsOf(type)), {define(0, type)}, {use(1, type)});
}

uint32_t Lowerer::convertTo(Type to, Type from, uint32_t value, uint32_t target, const Modifiers &m) {
  const bool isIntegral = m.has("rni") || m.has("rzi") || m.has("rmi") || m.has("rpi");
  const std::string integral = m.has("rni") ? ".rni." : m.has("rzi") ? ".rzi." : m.has("rmi") ? ".rmi." : ".rpi.";
  const std::string types = nameOf(to) + "." + nameOf(from);
  auto direction = [&](Draft &draft) { draft.instr.sub = static_cast<uint8_t>(m.rounding << 1 | m.flushes); };
  if (!to.isFloat() && !from.isFloat()) {
    emit((m.saturates ? "cvt.sat." : "cvt.") + types, {target}, {value});
    return target;
  }
  if (!to.isFloat()) {
    if (!isIntegral)
      unknown();
    setMode(emit("cvt" + integral + types, {target}, {value}), flushing(m));
    return target;
  }
  if (from.isFloat() && to.kind == from.kind && to.bits == from.bits) {
    Draft &draft = emit("cvt" + (isIntegral ? integral : ".") + types, {target}, {value});
    setMode(draft, flushing(m));
    if (m.flushes && to.bits == 32 && !isIntegral)
      emit("ftz.f32", {target}, {target});
    return target;
  }
  if (isIntegral) {
    // Between floating-point types: integral first.
    const uint32_t between = temporary(ptx::widthOf(from));
    setMode(emit("cvt" + integral + nameOf(from) + "." + nameOf(from), {between}, {value}), flushing(m));
    value = between;
  }
  if (isSmall(to) && isSmall(from)) { // bf16 and f16, by way of f32, which has both
    const uint32_t wide = temporary(Width::Word);
    setMode(emit("cvt.f32." + nameOf(from), {wide}, {value}), {});
    Draft &draft = emit("cvt." + nameOf(to) + ".f32", {target}, {wide});
    direction(draft), setMode(draft, {});
    return target;
  }
  const bool isNearest = isSmall(to) && from.isFloat() && from.bits == 32 && m.rounding == kNearest;
  Draft &draft = emit((isNearest ? "cvt.rn." : "cvt.") + types, {target}, {value});
  // Rounding to 16 bits is not left to the processor.
  setMode(draft, isSmall(to) ? flushing(m) : m);
  direction(draft);
  return target;
}

void Lowerer::convert() {
  Modifiers m = modifiers("rn rz rm rp rna rni rzi rmi rpi ftz sat satfinite relu tf32");
  if (m.has("satfinite"))
    unknown();
  if (m.has("tf32")) {
    expectOperands(2, 2);
    const bool isAway = m.has("rna");
    if (m.types.size() != 1 || nameOf(m.types[0]) != "f32" || m.has("relu") ||
        (!isAway && (!m.hasRounding || m.rounding != kNearest)))
      unknown();
    setMode(emit(isAway ? "cvt.rna.tf32.f32" : "cvt.rn.tf32.f32", {define(0, kWord)}, {use(1, m.types[0])}), {});
    return;
  }
  if (m.types.size() != 2 || m.has("rna"))
    unknown();
  const Type to = m.types[0], from = m.types[1];
  if (to.kind == 'p' || from.kind == 'p' || to.kind == 'b' || from.kind == 'b' || from.isPacked)
    unknown();
  const bool hasMore = (m.saturates && to.isFloat()) || m.has("relu");
  if (to.isPacked) {
    expectOperands(3, 3);
    if (nameOf(from) != "f32" || !m.hasRounding)
      unknown();
    const uint32_t target = define(0, to), result = hasMore ? temporary(Width::Word) : target;
    Draft &draft = emit("cvt." + nameOf(to) + ".f32", {result}, {use(1, from), use(2, from)});
    draft.instr.sub = static_cast<uint8_t>(m.rounding << 1);
    setMode(draft, {});
    if (hasMore) {
      Draft &more = emit((m.has("relu") ? "relu." : "sat.") + nameOf(to), {target}, {result});
      setMode(more, {});
    }
    return;
  }
  expectOperands(2, 2);
  if (m.has("relu") && !isSmall(to))
    unknown();
  const uint32_t value = use(1, from), target = define(0, to);
  if (!hasMore) {
    convertTo(to, from, value, target, m);
    return;
  }
  const uint32_t result = temporary(ptx::widthOf(to));
  convertTo(to, from, value, result, m);
  Draft &more = emit((m.has("relu") ? "relu." : "sat.") + nameOf(to), {target}, {result});
  setMode(more, isSmall(to) ? Modifiers{} : flushing(m));
}

void Lowerer::dot() {
  const Modifiers m = modifiers("");
  expectOperands(4, 4);
  if (m.types.size() != 2 || m.types[0].bits != 32 || m.types[1].bits != 32)
    unknown();
  const bool isSigned = m.types[0].kind == 's' || m.types[1].kind == 's';
  Draft &draft =
      emit("dp4a.b32", {define(0, {isSigned ? 's' : 'u', 32, false})}, {use(1, kWord), use(2, kWord), use(3, kWord)});
  draft.instr.sub = static_cast<uint8_t>((m.types[0].kind == 's') | (m.types[1].kind == 's') << 1);
}

void Lowerer::testClass() {
  const Modifiers m = modifiers("finite infinite number notanumber normal subnormal");
  const Type type = typeOf(m);
  expectOperands(2, 2);
  constexpr std::string_view kClasses[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  Draft &draft = emit("testp." + nameOf(type), {define(0, kPredicate)}, {use(1, type)});
  for (uint8_t i = 0; i < 6; ++i)
    if (m.has(kClasses[i]))
      draft.instr.sub = i;
}

} // namespace tressel::standin::ptx
