// Branches, and instructions that name threads.
#include "test/standin/ptx/Lower.h"

namespace tressel::standin::ptx {
namespace {

constexpr Type kWord{'b', 32, false}, kPredicate{'p', 1, false};

} // namespace

void Lowerer::branch() {
  modifiers("uni");
  expectOperands(1, 1);
  if (operand(0).kind != Operand::Kind::Label)
    fail("'" + std::string(operand(0).name) + "' is not a label");
  emitKind(Kind::Branch, {}, {}).label = labelBase_ + operand(0).label;
}

void Lowerer::branchIndexed() {
  const Modifiers m = modifiers("idx uni");
  expectOperands(2, 2);
  const Operand &list = operand(1);
  if (!m.has("idx") || list.kind != Operand::Kind::Label || list.bits >= current_->targetLists.size())
    unknown();
  Draft &draft = emitKind(Kind::BranchIndexed, {}, {use(0, kWord)});
  for (const int label : current_->targetLists[list.bits])
    draft.labels.push_back(labelBase_ + label);
}

void Lowerer::leave() {
  // ret, exit
  modifiers("uni");
  expectOperands(0, 0);
  if (parts_[0] == "ret" && returnLabel_ >= 0)
    emitKind(Kind::Branch, {}, {}).label = returnLabel_;
  else
    emitKind(Kind::Exit, {}, {});
}

void Lowerer::trap() {
  expectOperands(0, 0);
  emitKind(Kind::Trap, {}, {});
}

void Lowerer::barrier() {
  // bar.sync, bar.arrive, bar.red, bar.warp.sync, and barrier.cta... of the same meaning
  size_t at = 1;
  if (parts_.size() > at && parts_[at] == "cta")
    ++at;
  if (parts_.size() <= at)
    unknown();
  const std::string_view what = parts_[at];
  if (what == "cluster")
    return clusterBarrier();
  if (what == "warp") {
    if (parts_.size() != at + 2 || parts_[at + 1] != "sync")
      unknown();
    expectOperands(1, 1);
    emitTogether(Together::Sync, {}, {}, operand(0));
    return;
  }
  if (what != "sync" && what != "arrive" && what != "red")
    unknown();
  barrierOf(at, what, modifiers("aligned popc and or", at + 1));
}

void Lowerer::clusterBarrier() {
  // barrier.cluster.{arrive,wait}, by default .release and .acquire: memory is in the order of execution here
  const bool waits = parts_.size() > 2 && parts_[2] == "wait";
  if (parts_[0] != "barrier" || parts_.size() < 3 || (!waits && parts_[2] != "arrive"))
    unknown();
  modifiers(waits ? "acquire aligned" : "release aligned", 3);
  expectOperands(0, 0);
  emitKind(Kind::Barrier, {}, {}).instr.sub = waits ? kWaitsForCluster : kArrivesAtCluster;
}

void Lowerer::barrierOf(size_t, std::string_view what, const Modifiers &m) {
  const bool isReduction = what == "red";
  const size_t first = isReduction ? 1 : 0;
  expectOperands(isReduction ? 3 : what == "arrive" ? 2 : 1, isReduction ? 4 : 2);
  const size_t count = statement_->operands.size() - (isReduction ? 2 : 0);
  const bool hasThreads = count > 1;
  const uint32_t number = use(first, kWord), threads = hasThreads ? use(first + 1, kWord) : kNone;
  if (!isReduction) {
    Draft &draft = emitKind(Kind::Barrier, {}, {kNone, number, threads});
    draft.instr.sub = what == "arrive";
    draft.instr.count = hasThreads;
    return;
  }
  const bool counts = m.has("popc");
  if (!counts && !m.has("and") && !m.has("or"))
    unknown();
  const uint32_t value = use(statement_->operands.size() - 1, kPredicate);
  Draft &draft =
      emitKind(Kind::Barrier, {define(0, counts ? Type{'u', 32, false} : kPredicate)}, {number, threads, value});
  draft.instr.sub = counts ? 2 : m.has("and") ? 3 : 4;
  draft.instr.count = hasThreads;
}

void Lowerer::shuffle() {
  const Modifiers m = modifiers("sync up down bfly idx");
  typeOf(m);
  if (m.words.size() != 2 || m.words[0] != "sync" || m.types[0].bits != 32)
    unknown();
  expectOperands(5, 5);
  const Together what = m.has("up")     ? Together::ShuffleUp
                        : m.has("down") ? Together::ShuffleDown
                        : m.has("bfly") ? Together::ShuffleXor
                                        : Together::ShuffleIndex;
  const Operand &to = operand(0);
  const bool isPair = to.kind == Operand::Kind::Vector;
  const uint32_t value = use(1, kWord), lane = use(2, kWord), clamp = use(3, kWord);
  const uint32_t inRange = isPair ? define(to.parts[1], kPredicate) : temporary(Width::Predicate);
  emitTogether(what, {define(isPair ? to.parts[0] : to, kWord), inRange}, {value, lane, clamp}, operand(4));
}

void Lowerer::vote() {
  const Modifiers m = modifiers("sync all any uni ballot");
  const Type type = typeOf(m);
  if (m.words.size() != 2 || m.words[0] != "sync" || (type.kind == 'p') == m.has("ballot"))
    unknown();
  expectOperands(3, 3);
  const Together what = m.has("all")   ? Together::VoteAll
                        : m.has("any") ? Together::VoteAny
                        : m.has("uni") ? Together::VoteUniform
                                       : Together::VoteBallot;
  const uint32_t value = use(1, kPredicate);
  emitTogether(what, {define(0, type)}, {value}, operand(2));
}

void Lowerer::matchLanes() {
  const Modifiers m = modifiers("any all sync");
  const Type type = typeOf(m);
  if (m.words.size() != 2 || m.words[1] != "sync")
    unknown();
  expectOperands(3, 3);
  const Operand &to = operand(0);
  const bool isPair = to.kind == Operand::Kind::Vector;
  const uint32_t value = use(1, type), isAll = isPair ? define(to.parts[1], kPredicate) : temporary(Width::Predicate);
  Draft &draft = emitTogether(m.has("any") ? Together::MatchAny : Together::MatchAll,
                              {define(isPair ? to.parts[0] : to, kWord), isAll}, {value}, operand(2));
  draft.instr.count = type.bits / 8;
}

void Lowerer::reduceLanes() {
  const Modifiers m = modifiers("sync add min max and or xor");
  const Type type = typeOf(m);
  if (m.words.size() != 2 || m.words[0] != "sync" || type.bits != 32 || type.isFloat())
    unknown();
  expectOperands(3, 3);
  const Together what = m.has("add")   ? Together::ReduceAdd
                        : m.has("min") ? Together::ReduceMin
                        : m.has("max") ? Together::ReduceMax
                        : m.has("and") ? Together::ReduceAnd
                        : m.has("or")  ? Together::ReduceOr
                                       : Together::ReduceXor;
  const uint32_t value = use(1, type);
  emitTogether(what, {define(0, type)}, {value}, operand(2)).instr.count = type.kind == 's';
}

void Lowerer::activeMask() {
  expectOperands(1, 1);
  emit("activemask", {define(0, typeOf(modifiers("")))}, {});
}

void Lowerer::elect() {
  const Modifiers m = modifiers("sync");
  expectOperands(2, 2);
  const Operand &to = operand(0);
  if (!m.has("sync") || to.kind != Operand::Kind::Vector || to.parts.size() != 2)
    unknown();
  emitTogether(Together::Elect, {define(to.parts[0], kWord), define(to.parts[1], kPredicate)}, {}, operand(1));
}

void Lowerer::multiplyMatrix() {
  // mma.sync.aligned.<shape>.row.col.<types of d, a, b, c>
  if (parts_.size() != 10 || parts_[1] != "sync" || parts_[2] != "aligned" || parts_[4] != "row" || parts_[5] != "col")
    unknown();
  std::string handler = "mma." + std::string(parts_[3]);
  for (size_t i = 6; i < 10; ++i)
    handler += "." + std::string(parts_[i]);
  expectOperands(4, 4);
  Draft draft = emitKind(Kind::Collective, {}, {});
  drafts_.pop_back();
  draft.instr.run = findHandler(handler);
  if (!draft.instr.run)
    unknown();
  const unsigned bits = parts_[7] == "tf32" ? 32 : parts_[7] == "f16" || parts_[7] == "bf16" ? 16 : 8;
  const unsigned k = static_cast<unsigned>(std::stoi(std::string(parts_[3].substr(parts_[3].rfind('k') + 1))));
  const size_t b = k * bits / 128, c = parts_[6] == "f16" ? 2 : 4, counts[] = {c, 2 * b, b, c};
  draft.defs = static_cast<unsigned>(c);
  for (size_t i = 0; i < 4; ++i) {
    const Operand &all = operand(i);
    const bool isVector = all.kind == Operand::Kind::Vector;
    if ((isVector ? all.parts.size() : 1) != counts[i])
      fail("'" + std::string(statement_->mnemonic) + "' has another number of registers");
    for (size_t r = 0; r < counts[i]; ++r) {
      const Operand &one = isVector ? all.parts[r] : all;
      draft.refs.push_back(i ? use(one, kWord) : define(one, kWord));
    }
  }
  draft.instr.sub = static_cast<uint8_t>(Together::Matrix);
  setMode(draft, {});
  drafts_.push_back(std::move(draft));
}

const std::unordered_map<std::string_view, Lowerer::Method> &Lowerer::methods() {
  using L = Lowerer;
  static const std::unordered_map<std::string_view, Method> all = {{"add", &L::arithmetic},
                                                                   {"sub", &L::arithmetic},
                                                                   {"min", &L::arithmetic},
                                                                   {"max", &L::arithmetic},
                                                                   {"neg", &L::arithmetic},
                                                                   {"abs", &L::arithmetic},
                                                                   {"div", &L::arithmetic},
                                                                   {"rem", &L::arithmetic},
                                                                   {"fma", &L::arithmetic},
                                                                   {"copysign", &L::arithmetic},
                                                                   {"sad", &L::arithmetic},
                                                                   {"rcp", &L::arithmetic},
                                                                   {"sqrt", &L::arithmetic},
                                                                   {"rsqrt", &L::arithmetic},
                                                                   {"mul", &L::multiply},
                                                                   {"mad", &L::multiply},
                                                                   {"addc", &L::carry},
                                                                   {"subc", &L::carry},
                                                                   {"madc", &L::carry},
                                                                   {"ex2", &L::approximation},
                                                                   {"lg2", &L::approximation},
                                                                   {"sin", &L::approximation},
                                                                   {"cos", &L::approximation},
                                                                   {"tanh", &L::approximation},
                                                                   {"and", &L::logic},
                                                                   {"or", &L::logic},
                                                                   {"xor", &L::logic},
                                                                   {"not", &L::logic},
                                                                   {"cnot", &L::logic},
                                                                   {"lop3", &L::logic},
                                                                   {"shf", &L::logic},
                                                                   {"prmt", &L::logic},
                                                                   {"shl", &L::shift},
                                                                   {"shr", &L::shift},
                                                                   {"selp", &L::select},
                                                                   {"slct", &L::select},
                                                                   {"setp", &L::setPredicate},
                                                                   {"set", &L::set},
                                                                   {"bfe", &L::fieldOrCount},
                                                                   {"bfi", &L::fieldOrCount},
                                                                   {"popc", &L::fieldOrCount},
                                                                   {"clz", &L::fieldOrCount},
                                                                   {"brev", &L::fieldOrCount},
                                                                   {"bfind", &L::fieldOrCount},
                                                                   {"mov", &L::move},
                                                                   {"cvt", &L::convert},
                                                                   {"dp4a", &L::dot},
                                                                   {"testp", &L::testClass},
                                                                   {"ld", &L::load},
                                                                   {"ldu", &L::load},
                                                                   {"st", &L::store},
                                                                   {"atom", &L::atomic},
                                                                   {"red", &L::atomic},
                                                                   {"cvta", &L::convertAddress},
                                                                   {"mapa", &L::mapToPeer},
                                                                   {"isspacep", &L::isInSpace},
                                                                   {"cp", &L::copyLater},
                                                                   {"ldmatrix", &L::loadMatrix},
                                                                   {"prefetch", &L::nothing},
                                                                   {"prefetchu", &L::nothing},
                                                                   {"fence", &L::nothing},
                                                                   {"membar", &L::nothing},
                                                                   {"nanosleep", &L::nothing},
                                                                   {"griddepcontrol", &L::nothing},
                                                                   {"bra", &L::branch},
                                                                   {"brx", &L::branchIndexed},
                                                                   {"ret", &L::leave},
                                                                   {"exit", &L::leave},
                                                                   {"trap", &L::trap},
                                                                   {"brkpt", &L::trap},
                                                                   {"call", &L::call},
                                                                   {"bar", &L::barrier},
                                                                   {"barrier", &L::barrier},
                                                                   {"shfl", &L::shuffle},
                                                                   {"vote", &L::vote},
                                                                   {"match", &L::matchLanes},
                                                                   {"redux", &L::reduceLanes},
                                                                   {"activemask", &L::activeMask},
                                                                   {"elect", &L::elect},
                                                                   {"mma", &L::multiplyMatrix},
                                                                   {"mbarrier", &L::barrierObject},
                                                                   {"wgmma", &L::warpgroup},
                                                                   {"tcgen05", &L::tensorMemory},
                                                                   {"setmaxnreg", &L::setRegisters}};
  return all;
}

} // namespace tressel::standin::ptx
