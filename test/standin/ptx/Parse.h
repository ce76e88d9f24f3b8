// The parser's state. Parse.cpp has declarations, ParseBody.cpp the bodies of functions.
#pragma once

#include "test/standin/ptx/Lexer.h"
#include "test/standin/ptx/Syntax.h"

namespace tressel::standin::ptx {

class Parser {
public:
  Parser(std::string_view text, Text &result) : text_(text), lexer_(text), result_(result) {}
  void parse();

private:
  struct Range {
    RegisterId first = 0;
    uint32_t count = 0; ///< 0: one register, without a number
  };
  /// Names that hold between braces.
  struct Scope {
    int parent = -1;
    std::unordered_map<std::string_view, Range> registers;
    std::unordered_map<std::string_view, const Variable *> variables;
    std::unordered_map<std::string_view, int> labels;
  };

  void skipStatement();
  void skipLine(unsigned line);
  void directive();
  void target();
  void function(bool isKernel);
  void parameters(std::vector<std::unique_ptr<Variable>> &list, std::vector<int> *registers);
  void tuning(std::string_view word);
  /// Declarations of variables, after the word of their space.
  void variables(Space space, bool isExternal, std::vector<std::unique_ptr<Variable>> &list);
  std::unique_ptr<Variable> variable(Space space, Type &type);
  void initializer(Variable &variable, Type type);
  void initialValue(Variable &variable, Type type);

  void body();
  void bodyDirective();
  void registers();
  void statement();
  void operands(Statement &statement);
  void call(Statement &statement);
  Operand operand();
  Operand simpleOperand();
  Operand named(std::string_view name, unsigned line);
  bool findRegister(std::string_view name, RegisterId &id) const;
  const Variable *findVariable(std::string_view name) const;
  int &labelAt(std::string_view name);
  void resolveLabels();
  void resolve(Operand &operand, unsigned line);

  std::string_view text_;
  Lexer lexer_;
  Text &result_;
  Function *function_ = nullptr;
  std::vector<Scope> scopes_;
  int scope_ = 0;
  std::unordered_map<std::string_view, const Variable *> globals_;
  std::vector<std::vector<std::pair<std::string_view, int>>> targetNames_; ///< of .branchtargets: names, and the scope
  std::unordered_map<int, int> targetsOfLabel_;                            ///< label -> list
};

} // namespace tressel::standin::ptx
