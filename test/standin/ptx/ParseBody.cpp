// The bodies of functions.
#include "test/standin/ptx/Parse.h"

#include <charconv>

namespace tressel::standin::ptx {

bool Parser::findRegister(std::string_view name, RegisterId &id) const {
  for (int s = scope_; s >= 0; s = scopes_[static_cast<size_t>(s)].parent) {
    const auto &registers = scopes_[static_cast<size_t>(s)].registers;
    if (const auto one = registers.find(name); one != registers.end() && !one->second.count) {
      id = one->second.first;
      return true;
    }
    // "%r12" is the twelfth of "%r<20>", "%r1" may have numbers of its own.
    for (size_t split = name.size(); split > 1 && name[split - 1] >= '0' && name[split - 1] <= '9'; --split) {
      const auto range = registers.find(name.substr(0, split - 1));
      if (range == registers.end() || !range->second.count)
        continue;
      uint32_t number = 0;
      std::from_chars(name.data() + split - 1, name.data() + name.size(), number);
      if (number < range->second.count) {
        id = range->second.first + number;
        return true;
      }
    }
  }
  return false;
}

const Variable *Parser::findVariable(std::string_view name) const {
  for (int s = scope_; s >= 0; s = scopes_[static_cast<size_t>(s)].parent) {
    const auto &variables = scopes_[static_cast<size_t>(s)].variables;
    if (const auto found = variables.find(name); found != variables.end())
      return found->second;
  }
  const auto found = globals_.find(name);
  return found == globals_.end() ? nullptr : found->second;
}

int &Parser::labelAt(std::string_view name) {
  auto [entry, isNew] = scopes_[static_cast<size_t>(scope_)].labels.try_emplace(name, -1);
  if (isNew)
    entry->second = function_->labels++;
  return entry->second;
}

void Parser::registers() {
  const unsigned line = lexer_.peek().line;
  Type type;
  const std::string_view word = lexer_.word();
  if (!parseType(word.substr(1), type))
    failParse(line, "registers of type '" + std::string(word) + "' are not interpreted");
  do {
    const std::string_view name = lexer_.word();
    uint32_t count = 0;
    if (lexer_.accept('<')) {
      const uint64_t number = lexer_.integer();
      if (!number || number > 1u << 20)
        failParse(line, "a number of registers is out of range");
      count = static_cast<uint32_t>(number);
      lexer_.expect('>');
    }
    scopes_[static_cast<size_t>(scope_)].registers[name] = {static_cast<RegisterId>(function_->registers.size()),
                                                            count};
    function_->registers.insert(function_->registers.end(), std::max(1u, count), type);
  } while (lexer_.accept(','));
  lexer_.expect(';');
}

void Parser::bodyDirective() {
  const unsigned line = lexer_.peek().line;
  const std::string_view word = lexer_.word();
  if (word == ".reg")
    return registers();
  if (word == ".loc" || word == ".file")
    return skipLine(line);
  if (word == ".pragma" || word == ".callprototype")
    return skipStatement();
  if (word == ".shared" || word == ".local" || word == ".param") {
    const size_t first = function_->variables.size();
    variables(word == ".shared"  ? Space::Shared
              : word == ".local" ? Space::Local
                                 : Space::Param,
              false, function_->variables);
    for (size_t i = first; i < function_->variables.size(); ++i)
      scopes_[static_cast<size_t>(scope_)].variables[function_->variables[i]->name] = function_->variables[i].get();
    return;
  }
  failParse(line, "'" + std::string(word) + "' is not interpreted in a function");
}

Operand Parser::named(std::string_view name, unsigned line) {
  Operand operand;
  operand.name = name;
  if (name == "_")
    operand.kind = Operand::Kind::Sink;
  else if (findRegister(name, operand.reg))
    operand.kind = Operand::Kind::Register;
  else if (name.starts_with('%'))
    operand.kind = Operand::Kind::Special;
  else if (name == "WARP_SZ")
    operand.bits = 32;
  else {
    operand.kind = Operand::Kind::Symbol;
    operand.variable = findVariable(name);
    operand.reg = static_cast<RegisterId>(scope_); // where a label of this name is looked for
  }
  (void)line;
  return operand;
}

Operand Parser::simpleOperand() {
  Operand operand;
  const unsigned line = lexer_.peek().line;
  if (lexer_.accept('!')) {
    operand = named(lexer_.word(), line);
    operand.isNegated = true;
    return operand;
  }
  if (lexer_.peek().kind == Token::Kind::Word) {
    operand = named(lexer_.word(), line);
    if (operand.kind == Operand::Kind::Symbol) {
      if (lexer_.accept('+'))
        operand.offset = static_cast<int64_t>(lexer_.integer());
      else if (lexer_.accept('-'))
        operand.offset = -static_cast<int64_t>(lexer_.integer());
    }
    return operand;
  }
  if (lexer_.accept('(')) {
    operand = simpleOperand();
    lexer_.expect(')');
    return operand;
  }
  const bool isNegative = lexer_.accept('-');
  if (!isNegative)
    lexer_.accept('+');
  const Token token = lexer_.next();
  if (token.kind == Token::Kind::Float) {
    operand.kind = Operand::Kind::Float;
    operand.isDouble = token.isDouble;
    operand.bits = isNegative ? token.bits ^ (uint64_t(1) << (token.isDouble ? 63 : 31)) : token.bits;
  } else if (token.kind == Token::Kind::Integer)
    operand.bits = isNegative ? 0 - token.bits : token.bits;
  else
    failParse(token.line, token.kind == Token::Kind::End
                              ? "the text ends in a statement"
                              : "an operand is expected before '" + std::string(token.text) + "'");
  return operand;
}

Operand Parser::operand() {
  Operand operand;
  const unsigned line = lexer_.peek().line;
  if (lexer_.accept('{')) {
    operand.kind = Operand::Kind::Vector;
    do
      operand.parts.push_back(simpleOperand());
    while (lexer_.accept(','));
    lexer_.expect('}');
    return operand;
  }
  if (lexer_.accept('[')) {
    operand.kind = Operand::Kind::Address;
    operand.parts.push_back(simpleOperand());
    Operand &base = operand.parts[0];
    if (base.kind == Operand::Kind::Symbol)
      operand.offset = base.offset, base.offset = 0;
    if (lexer_.accept('+'))
      operand.offset += static_cast<int64_t>(lexer_.integer());
    else if (lexer_.accept('-'))
      operand.offset -= static_cast<int64_t>(lexer_.integer());
    if (lexer_.accept(',')) { // a tensor map with its coordinates
      lexer_.expect('{');
      do
        operand.parts.push_back(simpleOperand());
      while (lexer_.accept(','));
      lexer_.expect('}');
    }
    if (!lexer_.accept(']'))
      failParse(line, "an address of this form is not interpreted");
    return operand;
  }
  operand = simpleOperand();
  if (lexer_.accept('|')) {
    Operand pair;
    pair.kind = Operand::Kind::Vector;
    pair.parts = {operand, simpleOperand()};
    return pair;
  }
  return operand;
}

void Parser::call(Statement &statement) {
  if (lexer_.accept('(')) {
    do
      statement.results.push_back(simpleOperand());
    while (lexer_.accept(','));
    lexer_.expect(')');
    lexer_.expect(',');
  }
  statement.operands.push_back(simpleOperand());
  if (lexer_.accept(',')) {
    lexer_.expect('(');
    if (!lexer_.accept(')')) {
      do
        statement.operands.push_back(simpleOperand());
      while (lexer_.accept(','));
      lexer_.expect(')');
    }
  }
  if (lexer_.isMark(','))
    failParse(statement.line, "a call of a function that is not named is not interpreted");
}

void Parser::statement() {
  Statement statement;
  statement.line = lexer_.peek().line;
  const size_t begin = lexer_.position();
  if (lexer_.accept('@')) {
    statement.isGuardNegated = lexer_.accept('!');
    const std::string_view name = lexer_.word();
    RegisterId id = 0;
    if (!findRegister(name, id) || function_->registers[id].kind != 'p')
      failParse(statement.line, "'" + std::string(name) + "' is not a predicate");
    statement.guard = static_cast<int>(id);
  }
  statement.mnemonic = lexer_.word();
  if (statement.guard < 0 && lexer_.accept(':')) {
    auto &label = labelAt(statement.mnemonic);
    statement.label = label;
    if (lexer_.acceptWord(".branchtargets")) {
      targetsOfLabel_[label] = static_cast<int>(targetNames_.size());
      targetNames_.emplace_back();
      do
        targetNames_.back().emplace_back(lexer_.word(), scope_);
      while (lexer_.accept(','));
      lexer_.expect(';');
      return;
    }
    if (lexer_.acceptWord(".callprototype"))
      return skipStatement();
    function_->statements.push_back(std::move(statement));
    return;
  }
  if (statement.mnemonic == "call" || statement.mnemonic.starts_with("call."))
    call(statement);
  else if (!lexer_.isMark(';')) {
    do
      statement.operands.push_back(operand());
    while (lexer_.accept(','));
  }
  if (!lexer_.isMark(';'))
    failParse(statement.line, "';' is expected before '" + std::string(lexer_.peek().text) + "'");
  lexer_.next();
  statement.text = text_.substr(begin, lexer_.endOfLast() - begin);
  function_->statements.push_back(std::move(statement));
}

void Parser::body() {
  lexer_.expect('{');
  function_->hasBody = true;
  for (int depth = 1; depth;) {
    if (lexer_.peek().kind == Token::Kind::End)
      failParse(lexer_.peek().line, "the text ends in '" + function_->name + "'");
    if (lexer_.accept('{')) {
      scopes_.push_back(Scope{.parent = scope_, .registers = {}, .variables = {}, .labels = {}});
      scope_ = static_cast<int>(scopes_.size()) - 1;
      ++depth;
    } else if (lexer_.accept('}')) {
      if (--depth)
        scope_ = scopes_[static_cast<size_t>(scope_)].parent;
    } else if (lexer_.accept(';'))
      continue;
    else if (lexer_.peek().kind == Token::Kind::Word && lexer_.peek().text.starts_with('.'))
      bodyDirective();
    else
      statement();
  }
  resolveLabels();
}

void Parser::resolve(Operand &operand, unsigned line) {
  for (Operand &part : operand.parts)
    resolve(part, line);
  if (operand.kind != Operand::Kind::Symbol || operand.variable)
    return;
  for (int s = static_cast<int>(operand.reg); s >= 0; s = scopes_[static_cast<size_t>(s)].parent) {
    const auto &labels = scopes_[static_cast<size_t>(s)].labels;
    if (const auto found = labels.find(operand.name); found != labels.end()) {
      operand.kind = Operand::Kind::Label;
      operand.label = found->second;
      if (const auto targets = targetsOfLabel_.find(operand.label); targets != targetsOfLabel_.end())
        operand.bits = static_cast<uint64_t>(targets->second);
      return;
    }
  }
}

void Parser::resolveLabels() {
  for (Statement &statement : function_->statements)
    for (Operand &operand : statement.operands)
      resolve(operand, statement.line);
  for (const auto &names : targetNames_) {
    auto &list = function_->targetLists.emplace_back();
    for (const auto &[name, scope] : names) {
      Operand operand;
      operand.kind = Operand::Kind::Symbol;
      operand.name = name;
      operand.reg = static_cast<RegisterId>(scope);
      resolve(operand, function_->line);
      if (operand.kind != Operand::Kind::Label)
        failParse(function_->line, "'" + std::string(name) + "' is not a label");
      list.push_back(operand.label);
    }
  }
}

} // namespace tressel::standin::ptx
