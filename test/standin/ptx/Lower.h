// From statements to instructions.
#pragma once

#include "test/standin/ptx/Registers.h"
#include "test/standin/ptx/Syntax.h"

#include <initializer_list>

namespace tressel::standin::ptx {

/// Modifiers of a mnemonic.
struct Modifiers {
  std::vector<std::string_view> words; ///< what is neither of the following, in order
  std::vector<Type> types;
  unsigned rounding = kNearest;
  bool hasRounding = false, flushes = false, saturates = false;
  bool has(std::string_view word) const;
};

class Lowerer {
public:
  Lowerer(const Text &text, const Function &function, Program &program)
      : text_(text), function_(function), program_(program) {}
  void run();

private:
  struct Location {
    Space space = Space::Global;
    uint64_t offset = 0;
  };
  using Method = void (Lowerer::*)();
  static const std::unordered_map<std::string_view, Method> &methods();

  // ---- Functions and variables
  void layOut();
  void collectShared(const Function &function, std::vector<const Variable *> &found,
                     std::vector<const Function *> &seen);
  void layOutBody(const Function &function);
  void lowerBody(const Function &function, int returnLabel);
  Location locationOf(const Variable &variable);
  uint64_t allocateLocal(uint64_t bytes, uint64_t align);
  void inlineCall();

  // ---- Operands
  [[noreturn]] void fail(const std::string &message) const;
  [[noreturn]] void unknown() const;
  Modifiers modifiers(std::string_view allowed, size_t from = 1) const;
  void expectOperands(size_t least, size_t most) const;
  const Operand &operand(size_t index) const { return statement_->operands[index]; }
  Type typeOf(const Modifiers &modifiers) const;
  uint32_t temporary(Width width);
  uint32_t constant(Width width, uint64_t bits);
  uint32_t use(const Operand &operand, Type type);
  uint32_t use(size_t index, Type type) { return use(operand(index), type); }
  uint32_t useSpecial(const Operand &operand, Width width);
  uint32_t narrowed(uint32_t ref, Width from, Width to);
  /// A place for a result; if the register is wider, what widens follows with endStatement.
  uint32_t define(const Operand &operand, Type type);
  uint32_t define(size_t index, Type type) { return define(operand(index), type); }
  Width widthOf(uint32_t reg) const { return widths_[reg]; }
  struct Address {
    uint32_t base = kNone;
    int64_t offset = 0;
    Space space = Space::Generic;
    bool isConstant = false;
  };
  Address address(const Operand &operand, Space space);
  Address baseOf(const Operand &operand, Space space); ///< without the coordinates

  // ---- Instructions
  Draft &emit(const std::string &handler, std::initializer_list<uint32_t> defs, std::initializer_list<uint32_t> uses);
  Draft &emitKind(Kind kind, std::initializer_list<uint32_t> defs, std::initializer_list<uint32_t> uses);
  Draft &emitTogether(Together what, std::initializer_list<uint32_t> defs, std::initializer_list<uint32_t> uses,
                      const Operand &lanes);
  void setMode(Draft &draft, const Modifiers &modifiers);
  void endStatement();
  void lower(const Statement &statement);
  void saturateTo(uint32_t target, uint32_t value, Type type, const Modifiers &modifiers);

  void arithmetic();
  void multiply();
  void carry();
  void approximation();
  void logic();
  void shift();
  void select();
  void setPredicate();
  void set();
  void fieldOrCount();
  void move();
  void pack(const Operand &to, const Operand &from, Type type);
  void unpack(const Operand &to, const Operand &from, Type type);
  void convert();
  uint32_t convertTo(Type to, Type from, uint32_t value, uint32_t target, const Modifiers &modifiers);
  void dot();
  void testClass();

  void load();
  void store();
  void atomic();
  void convertAddress();
  void mapToPeer();
  void isInSpace();
  void copyLater();
  void loadMatrix();
  void nothing();

  void branch();
  void branchIndexed();
  void leave();
  void trap();
  void call();
  void barrier();
  void clusterBarrier();
  void barrierOf(size_t at, std::string_view what, const Modifiers &modifiers);
  void shuffle();
  void vote();
  void matchLanes();
  void reduceLanes();
  void activeMask();
  void elect();
  void multiplyMatrix();
  bool fenceAsync();
  void barrierObject();
  void copyTensor();
  void warpgroup();
  void multiplyWarpgroup();
  void tensorMemory();
  void setRegisters();

  const Text &text_;
  const Function &function_;
  Program &program_;
  const Function *current_ = nullptr; ///< whose body is lowered
  const Statement *statement_ = nullptr;
  std::vector<std::string_view> parts_; ///< of the mnemonic
  std::vector<Draft> drafts_;
  size_t statementBegin_ = 0;
  std::vector<Width> widths_;
  std::vector<int> places_; ///< of labels
  uint32_t registerBase_ = 0;
  int labelBase_ = 0, returnLabel_ = -1;
  unsigned depth_ = 0;
  std::unordered_map<const Variable *, Location> locations_;
  std::unordered_map<uint64_t, uint32_t> constants_[4];
  struct Widening {
    uint32_t target = 0, value = 0;
    bool isSigned = false;
  };
  std::vector<Widening> widenings_;
};

Width widthOf(Type type);
/// "f32", "s16": of a type as handlers are named.
std::string nameOf(Type type);
bool asSpace(std::string_view word, Space &space);

} // namespace tressel::standin::ptx
