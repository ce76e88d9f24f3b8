// Declarations: the module's, and the heads of functions.
#include "test/standin/ptx/Parse.h"

#include <bit>
#include <cstring>

namespace tressel::standin::ptx {

bool parseType(std::string_view word, Type &type) {
  static const std::unordered_map<std::string_view, Type> types = {
      {"b8", {'b', 8}},           {"b16", {'b', 16}},          {"b32", {'b', 32}}, {"b64", {'b', 64}},
      {"s8", {'s', 8}},           {"s16", {'s', 16}},          {"s32", {'s', 32}}, {"s64", {'s', 64}},
      {"u8", {'u', 8}},           {"u16", {'u', 16}},          {"u32", {'u', 32}}, {"u64", {'u', 64}},
      {"f16", {'f', 16}},         {"f32", {'f', 32}},          {"f64", {'f', 64}}, {"bf16", {'h', 16}},
      {"f16x2", {'f', 32, true}}, {"bf16x2", {'h', 32, true}}, {"pred", {'p', 1}}};
  const auto found = types.find(word);
  if (found == types.end())
    return false;
  type = found->second;
  return true;
}

const Function *Text::find(std::string_view name) const {
  const Function *found = nullptr;
  for (const auto &function : functions)
    if (function->name == name && (!found || function->hasBody))
      found = function.get();
  return found;
}

void Parser::skipStatement() {
  while (lexer_.peek().kind != Token::Kind::End && !lexer_.accept(';'))
    lexer_.next();
}

void Parser::skipLine(unsigned line) {
  while (lexer_.peek().kind != Token::Kind::End && lexer_.peek().line == line)
    lexer_.next();
}

void Parser::parse() {
  while (lexer_.peek().kind != Token::Kind::End)
    directive();
}

void Parser::target() {
  do {
    const std::string_view word = lexer_.word();
    if (!word.starts_with("sm_"))
      continue;
    int number = 0;
    size_t i = 3;
    for (; i < word.size() && word[i] >= '0' && word[i] <= '9'; ++i)
      number = number * 10 + (word[i] - '0');
    result_.target = number;
    result_.isArchitectureSpecific = i < word.size();
  } while (lexer_.accept(','));
}

void Parser::directive() {
  const unsigned line = lexer_.peek().line;
  if (lexer_.accept(';'))
    return;
  bool isExternal = false;
  std::string_view word = lexer_.word();
  while (word == ".visible" || word == ".extern" || word == ".weak" || word == ".common") {
    isExternal |= word == ".extern";
    word = lexer_.word();
  }
  if (word == ".version") {
    const Token number = lexer_.next();
    const size_t dot = number.text.find('.');
    if (number.kind != Token::Kind::Float || dot == std::string_view::npos || dot + 1 >= number.text.size())
      failParse(line, ".version has no number");
    result_.version = 10 * std::atoi(std::string(number.text.substr(0, dot)).c_str()) + (number.text[dot + 1] - '0');
  } else if (word == ".target")
    target();
  else if (word == ".address_size") {
    if (lexer_.integer() != 64)
      failParse(line, "addresses have 64 bits");
  } else if (word == ".entry" || word == ".func")
    function(word == ".entry");
  else if (word == ".global" || word == ".const" || word == ".shared") {
    const size_t first = result_.variables.size();
    variables(word == ".global"  ? Space::Global
              : word == ".const" ? Space::Const
                                 : Space::Shared,
              isExternal, result_.variables);
    for (size_t i = first; i < result_.variables.size(); ++i)
      globals_[result_.variables[i]->name] = result_.variables[i].get();
  } else if (word == ".file" || word == ".loc")
    skipLine(line);
  else if (word == ".section") {
    lexer_.word();
    int depth = 0;
    do {
      if (lexer_.peek().kind == Token::Kind::End)
        failParse(line, ".section does not end");
      depth += lexer_.isMark('{') ? 1 : lexer_.isMark('}') ? -1 : 0;
      lexer_.next();
    } while (depth);
  } else if (word == ".pragma")
    skipStatement();
  else
    failParse(line, "'" + std::string(word) + "' is not interpreted");
}

std::unique_ptr<Variable> Parser::variable(Space space, Type &type) {
  auto variable = std::make_unique<Variable>();
  variable->space = space;
  unsigned count = 1;
  bool hasType = false;
  while (!hasType) {
    const unsigned line = lexer_.peek().line;
    const std::string_view word = lexer_.word();
    if (word == ".align") {
      const uint64_t align = lexer_.integer();
      if (!std::has_single_bit(align) || align > 4096)
        failParse(line, "an alignment is a power of two");
      variable->align = static_cast<uint32_t>(align);
    } else if (word == ".v2" || word == ".v4")
      count = word == ".v2" ? 2 : 4;
    else if (word == ".attribute") {
      lexer_.expect('(');
      while (!lexer_.accept(')'))
        if (lexer_.next().kind == Token::Kind::End)
          failParse(line, ".attribute does not end");
    } else if (word == ".ptr") {
      // What a parameter points to: a space and an alignment, for the compiler alone.
      while (lexer_.isWord(".global") || lexer_.isWord(".shared") || lexer_.isWord(".local") || lexer_.isWord(".const"))
        lexer_.next();
      if (lexer_.acceptWord(".align"))
        lexer_.integer();
      break;
    } else if (parseType(word.substr(1), type) && type.kind != 'p')
      hasType = true;
    else
      failParse(line, "'" + std::string(word) + "' is not interpreted in a declaration");
    if (hasType && lexer_.isWord(".ptr"))
      hasType = false;
  }
  variable->bytes = type.bits / 8u * count;
  variable->align = std::max<uint32_t>(variable->align, static_cast<uint32_t>(variable->bytes));
  return variable;
}

void Parser::variables(Space space, bool isExternal, std::vector<std::unique_ptr<Variable>> &list) {
  Type type;
  const auto first = variable(space, type);
  const uint64_t element = first->bytes;
  do {
    auto one = std::make_unique<Variable>(*first);
    one->name = lexer_.word();
    bool isOpen = false;
    while (lexer_.accept('[')) {
      if (lexer_.accept(']')) {
        isOpen = true;
        continue;
      }
      const unsigned line = lexer_.peek().line;
      const uint64_t count = lexer_.integer();
      if (count > 1u << 30 || one->bytes * count > uint64_t(1) << 32)
        failParse(line, "an array is too large");
      one->bytes *= count;
      lexer_.expect(']');
    }
    if (lexer_.accept('=')) {
      initializer(*one, type);
      if (isOpen)
        one->bytes = one->initial.size();
      else if (one->initial.size() > one->bytes)
        failParse(lexer_.peek().line, "there are more values than '" + one->name + "' has");
      one->initial.resize(one->bytes);
    } else if (isOpen)
      one->isExternal = true, one->bytes = 0,
      one->align = std::max<uint32_t>(one->align, static_cast<uint32_t>(element));
    if (isExternal && space != Space::Shared)
      failParse(lexer_.peek().line, "'" + one->name + "' is of another module, which is not interpreted");
    list.push_back(std::move(one));
  } while (lexer_.accept(','));
  lexer_.expect(';');
}

void Parser::initialValue(Variable &variable, Type type) {
  const unsigned line = lexer_.peek().line;
  const size_t bytes = type.bits / 8u;
  uint64_t bits = 0;
  if (lexer_.peek().kind == Token::Kind::Word) {
    Variable::Address address{.at = variable.initial.size(), .line = line};
    address.of = lexer_.word();
    if (address.of == "generic") {
      lexer_.expect('(');
      address.of = lexer_.word();
      address.isGeneric = true;
    }
    if (lexer_.accept('+'))
      address.offset = static_cast<int64_t>(lexer_.integer());
    if (address.isGeneric)
      lexer_.expect(')');
    if (lexer_.accept('+'))
      address.offset += static_cast<int64_t>(lexer_.integer());
    if (bytes != 8)
      failParse(line, "an address has 64 bits");
    variable.addresses.push_back(address);
  } else {
    const bool isNegative = lexer_.accept('-');
    const Token token = lexer_.next();
    if (token.kind == Token::Kind::Float) {
      double value =
          token.isDouble ? std::bit_cast<double>(token.bits) : std::bit_cast<float>(static_cast<uint32_t>(token.bits));
      value = isNegative ? -value : value;
      if (type.bits == 64)
        bits = std::bit_cast<uint64_t>(value);
      else if (type.bits == 32 && !isNegative && !token.isDouble)
        bits = token.bits;
      else if (type.bits == 32)
        bits = std::bit_cast<uint32_t>(static_cast<float>(value));
      else
        failParse(line, "a value of this type is not interpreted");
    } else if (token.kind == Token::Kind::Integer)
      bits = isNegative ? 0 - token.bits : token.bits;
    else
      failParse(line, "a value is expected before '" + std::string(token.text) + "'");
  }
  const size_t at = variable.initial.size();
  variable.initial.resize(at + bytes);
  std::memcpy(variable.initial.data() + at, &bits, bytes);
}

void Parser::initializer(Variable &variable, Type type) {
  if (!lexer_.accept('{'))
    return initialValue(variable, type);
  if (lexer_.accept('}'))
    return;
  do {
    if (lexer_.isMark('{'))
      initializer(variable, type);
    else
      initialValue(variable, type);
  } while (lexer_.accept(','));
  lexer_.expect('}');
}

void Parser::parameters(std::vector<std::unique_ptr<Variable>> &list, std::vector<int> *registers) {
  if (!lexer_.accept('('))
    return;
  if (lexer_.accept(')'))
    return;
  uint64_t end = 0;
  do {
    const unsigned line = lexer_.peek().line;
    Type type;
    int reg = -1;
    std::unique_ptr<Variable> one;
    if (registers && lexer_.acceptWord(".reg")) {
      const std::string_view word = lexer_.word();
      if (!parseType(word.substr(1), type))
        failParse(line, "'" + std::string(word) + "' is not a type");
      one = std::make_unique<Variable>();
      const std::string_view name = lexer_.word();
      one->name = name;
      reg = static_cast<int>(function_->registers.size());
      scopes_[0].registers[name] = {static_cast<RegisterId>(reg), 0};
      function_->registers.push_back(type);
    } else {
      if (!lexer_.acceptWord(".param"))
        failParse(line, "'.param' is expected before '" + std::string(lexer_.peek().text) + "'");
      one = variable(Space::Param, type);
      one->name = lexer_.word();
      while (lexer_.accept('[')) {
        const uint64_t count = lexer_.integer();
        if (count > 1u << 20)
          failParse(line, "a parameter is too large");
        one->bytes *= count;
        lexer_.expect(']');
      }
      end = (end + one->align - 1) / one->align * one->align;
      one->offset = end;
      end += one->bytes;
    }
    if (registers)
      registers->push_back(reg);
    list.push_back(std::move(one));
  } while (lexer_.accept(','));
  lexer_.expect(')');
}

void Parser::tuning(std::string_view word) {
  unsigned numbers[3] = {1, 1, 1};
  int count = 0;
  if (lexer_.peek().kind == Token::Kind::Integer) {
    do {
      const uint64_t number = lexer_.integer();
      if (count < 3)
        numbers[count] = static_cast<unsigned>(number);
      ++count;
    } while (lexer_.accept(','));
  }
  if (word == ".maxntid" || word == ".reqntid") {
    const uint64_t all = uint64_t(numbers[0]) * numbers[1] * numbers[2];
    if (all > 1024 || !all)
      failParse(lexer_.peek().line, "a block has at most 1024 threads");
    function_->maxThreads = static_cast<unsigned>(all);
    if (word == ".reqntid")
      std::copy(numbers, numbers + 3, function_->requiredThreads);
  } else if (word != ".minnctapersm" && word != ".maxnctapersm" && word != ".maxnreg" && word != ".noreturn")
    failParse(lexer_.peek().line, "'" + std::string(word) + "' is not interpreted");
}

void Parser::function(bool isKernel) {
  auto made = std::make_unique<Function>();
  function_ = made.get();
  function_->isKernel = isKernel;
  function_->line = lexer_.peek().line;
  scopes_.assign(1, Scope{});
  scope_ = 0;
  targetNames_.clear(), targetsOfLabel_.clear();
  if (!isKernel)
    parameters(function_->results, &function_->resultRegisters);
  function_->name = lexer_.word();
  parameters(function_->params, isKernel ? nullptr : &function_->formalRegisters);
  for (auto *list : {&function_->params, &function_->results})
    for (const auto &param : *list)
      if (param->bytes)
        scopes_[0].variables[param->name] = param.get();
  while (!lexer_.isMark('{') && !lexer_.isMark(';')) {
    const unsigned line = lexer_.peek().line;
    const std::string_view word = lexer_.word();
    if (word == ".pragma")
      skipStatement();
    else if (word.starts_with("."))
      tuning(word);
    else
      failParse(line, "'{' is expected before '" + std::string(word) + "'");
  }
  if (!lexer_.accept(';'))
    body();
  result_.functions.push_back(std::move(made));
  function_ = nullptr;
}

Text parseText(std::string_view text) {
  Text result;
  // A driver's text ends with a null character.
  while (!text.empty() && text.back() == '\0')
    text.remove_suffix(1);
  result.text = std::make_shared<const std::string>(text);
  Parser parser(*result.text, result);
  parser.parse();
  return result;
}

} // namespace tressel::standin::ptx
