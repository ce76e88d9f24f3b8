// What a text says, before it means anything: functions with their variables, registers and statements.
#pragma once

#include "test/standin/ptx/Ptx.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tressel::standin::ptx {

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const, Cluster };

/// A fundamental type: ".f32" is {'f', 32}. Kinds: b, s, u, f, h (bf16), p (pred); of packed types (.f16x2) the halves'
/// kind.
struct Type {
  char kind = 'b';
  uint8_t bits = 32;
  bool isPacked = false; ///< two of 16 bits
  bool isFloat() const { return kind == 'f' || kind == 'h'; }
};

/// A register by its number in its function.
using RegisterId = uint32_t;

struct Variable {
  std::string name;
  Space space = Space::Global;
  uint32_t align = 1;
  uint64_t bytes = 0;
  bool isExternal = false; ///< without a size: dynamic shared memory
  uint64_t offset = 0;     ///< in its space, once it has a place
  std::vector<std::byte> initial;
  struct Address { ///< an initializer that is an address
    uint64_t at = 0;
    std::string of;
    int64_t offset = 0;
    bool isGeneric = false;
    unsigned line = 0;
  };
  std::vector<Address> addresses;
};

struct Operand {
  enum class Kind : uint8_t {
    Register,
    Special, ///< a special register, by name
    Integer,
    Float,
    Symbol,  ///< a variable or a function
    Label,   ///< a place in the text
    Address, ///< [parts[0] + offset], or of a tensor map [parts[0], {parts[1], ...}]
    Vector,  ///< {parts}
    Sink     ///< _
  };
  Kind kind = Kind::Integer;
  bool isDouble = false;
  bool isNegated = false; ///< !predicate
  RegisterId reg = 0;
  uint64_t bits = 0;
  int64_t offset = 0; ///< of an address or a symbol
  std::string_view name;
  const Variable *variable = nullptr; ///< of a symbol
  int label = -1;
  std::vector<Operand> parts;
};

struct Statement {
  unsigned line = 0;
  std::string_view text;     ///< all of it
  std::string_view mnemonic; ///< with its modifiers
  int guard = -1;            ///< a register
  bool isGuardNegated = false;
  std::vector<Operand> operands;
  std::vector<Operand> results; ///< of a call
  int label = -1;               ///< it is no instruction, but this label
};

struct Function {
  std::string name;
  bool isKernel = false;
  bool hasBody = false;
  unsigned line = 0;
  std::vector<std::unique_ptr<Variable>> params, results; ///< space Param
  std::vector<std::unique_ptr<Variable>> variables;       ///< of the body: .shared, .local, .param
  std::vector<Type> registers;
  std::vector<int> formalRegisters, resultRegisters; ///< of parameters that are registers: their numbers, else -1
  std::vector<Statement> statements;
  std::vector<std::vector<int>> targetLists; ///< of .branchtargets
  int labels = 0;
  unsigned maxThreads = 1024;
  unsigned requiredThreads[3] = {0, 0, 0};
};

struct Text {
  std::shared_ptr<const std::string> text; ///< what the views look at
  int version = 0, target = 0;
  bool isArchitectureSpecific = false;
  std::vector<std::unique_ptr<Variable>> variables; ///< of the module
  std::vector<std::unique_ptr<Function>> functions;
  const Function *find(std::string_view name) const;
};

/// Throws ParseError.
Text parseText(std::string_view text);
/// "f32", without the dot. False: it is not a type.
bool parseType(std::string_view word, Type &type);

} // namespace tressel::standin::ptx
