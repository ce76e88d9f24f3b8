#include "ir/tblgen/Records.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/TableGen/Error.h"

#include <algorithm>

using namespace llvm;

namespace tressel::tblgen {

static constexpr StringLiteral kBackMark = "#line @back@\n";

static Kind kindOf(const mlir::tblgen::Attribute &attr, const Record &def, StringRef name) {
  StringRef base = attr.getBaseAttr().getAttrDefName();
  if (base == "BoolAttr")
    return Kind::Bool;
  if (base == "I64Attr")
    return Kind::Int;
  if (base == "Size")
    return Kind::Size;
  if (base == "Sizes")
    return Kind::Sizes;
  if (base == "F64Attr")
    return Kind::Float;
  if (base == "TypeAttr")
    return Kind::Type;
  if (base == "StrAttr")
    return Kind::String;
  if (base == "DenseI64ArrayAttr")
    return Kind::Ints;
  PrintFatalError(def.getLoc(), "attribute '" + name + "' has kind " + base +
                                    "; use Int, Ints, Size, Sizes, Float, Bool, Str or Type");
}

OpRecord::OpRecord(const Record &record) : def(&record) {
  mlir::tblgen::Operator op(record);
  name = record.getValueAsString("opName").str();
  for (int i = 0, e = op.getNumArgs(); i < e; ++i) {
    mlir::tblgen::Argument arg = op.getArg(i);
    if (auto *operand = dyn_cast_if_present<mlir::tblgen::NamedTypeConstraint *>(arg)) {
      arguments.push_back({operand->name.str(), true, operand->isVariadic()});
      arguments.back().optional = operand->isOptional();
    } else if (auto *attr = dyn_cast_if_present<mlir::tblgen::NamedAttribute *>(arg)) {
      Argument a{attr->name.str(), false};
      a.kind = kindOf(attr->attr, record, attr->name);
      a.hasDefault = attr->attr.hasDefaultValue();
      a.optional = attr->attr.isOptional() && !a.hasDefault;
      if (a.hasDefault)
        a.defaultValue = attr->attr.getDefaultValue().str();
      arguments.push_back(std::move(a));
    } else {
      PrintFatalError(record.getLoc(), "arguments are operands and attributes only");
    }
  }
  auto all = operands();
  bool optional = false;
  for (const Argument *a : all) {
    // Operands have no names at a call, so their number must tell which optional one is absent.
    if (a->variadic && (a != all.back() || optional))
      PrintFatalError(record.getLoc(), "a variadic operand is the last, and no other is optional");
    if (optional && !a->optional)
      PrintFatalError(record.getLoc(), "operand '" + a->name + "' stands behind an optional one");
    optional |= a->optional;
  }
  for (const mlir::tblgen::NamedTypeConstraint &result : op.getResults())
    results.push_back({result.name.str(), false, result.isVariadic()});
  if (results.empty() || (results.size() > 1 && llvm::any_of(results, [](const Argument &a) { return a.variadic; })))
    PrintFatalError(record.getLoc(), "an op has results, of a fixed number or one variadic");
  if (isElementwise() && (results.size() != 1 || results[0].variadic || optional || variadicOperand()))
    PrintFatalError(record.getLoc(), "an elementwise op has one result and a fixed number of operands");
  if (isElementwise() && isComposite())
    PrintFatalError(record.getLoc(), "an op has a scalar form or a decomposition, not both");
  if (record.isValueUnset("numpy") || get("numpy").empty())
    PrintFatalError(record.getLoc(), "op '" + name + "' needs the field 'numpy'");
  if (record.isValueUnset("infer") == get("types").empty())
    PrintFatalError(record.getLoc(), "op '" + name + "' needs one of the fields 'infer' and 'types'");
  if (get("summary").empty())
    PrintFatalError(record.getLoc(), "op '" + name + "' needs a summary");
}

static std::vector<const Argument *> filter(const std::vector<Argument> &all, bool operands) {
  std::vector<const Argument *> result;
  for (const Argument &a : all)
    if (a.isOperand == operands)
      result.push_back(&a);
  return result;
}
std::vector<const Argument *> OpRecord::operands() const { return filter(arguments, true); }
std::vector<const Argument *> OpRecord::attrs() const { return filter(arguments, false); }

const Argument *OpRecord::variadicOperand() const {
  auto all = operands();
  return !all.empty() && all.back()->variadic ? all.back() : nullptr;
}

std::string OpRecord::body(StringRef field) const {
  StringRef text = get(field);
  // Finds the line of the fragment: its first occurrence after the record's name.
  SMLoc loc = def->getLoc().front();
  unsigned bufferId = SrcMgr.FindBufferContainingLoc(loc);
  StringRef buffer = SrcMgr.getMemoryBuffer(bufferId)->getBuffer();
  size_t at = buffer.find(text, loc.getPointer() - buffer.data());
  if (at != StringRef::npos)
    loc = SMLoc::getFromPointer(buffer.data() + at);
  unsigned line = SrcMgr.getLineAndColumn(loc, bufferId).first;

  std::string result;
  raw_string_ostream os(result);
  os << "#line " << line << " " << quoted(SrcMgr.getMemoryBuffer(bufferId)->getBufferIdentifier()) << "\n";
  if (Regex("(^|[^A-Za-z0-9_])return[^A-Za-z0-9_]").match(text))
    os << text << "\n";
  else
    os << "return (" << text << ");\n";
  os << kBackMark;
  return result;
}

std::vector<OpRecord> collect(const RecordKeeper &records) {
  std::vector<const Record *> defs = records.getAllDerivedDefinitions("TableOp");
  llvm::sort(defs, [](const Record *a, const Record *b) { return a->getID() < b->getID(); });
  std::vector<OpRecord> ops;
  for (const Record *def : defs)
    ops.emplace_back(*def);
  return ops;
}

std::string resultCppType(const OpRecord &op, StringRef type) {
  if (op.hasVariadicResult())
    return ("std::vector<" + type + ">").str();
  if (op.results.size() == 1)
    return type.str();
  std::string tuple = "std::tuple<";
  ListSeparator sep;
  for (size_t i = 0; i < op.results.size(); ++i)
    tuple += (StringRef(sep) + type).str();
  return tuple + ">";
}

const char *cppType(Kind kind) {
  switch (kind) {
  case Kind::Bool: return "bool";
  case Kind::Int: return "int64_t";
  case Kind::Float: return "double";
  case Kind::Type: return "DType";
  case Kind::String: return "std::string";
  case Kind::Ints: return "Ints";
  case Kind::Size:
    return "Size";
  case Kind::Sizes:
    return "Sizes";
  }
  return "";
}

std::string attrValue(const Argument &a) {
  if (!a.hasDefault)
    return "Attr{}";
  std::string type = cppType(a.kind);
  return "Attr(" + type + (isList(a.kind) ? a.defaultValue : "(" + a.defaultValue + ")") + ")";
}

std::string defaultArgument(const Argument &a) {
  return a.optional || (!a.isOperand && isList(a.kind)) ? "{}" : a.defaultValue;
}

void unpackAttrs(const OpRecord &op, raw_ostream &os) {
  int i = 0;
  for (const Argument *a : op.attrs()) {
    os << "  [[maybe_unused]] const " << cppType(a->kind);
    if (a->optional)
      os << " *" << a->name << " = std::get_if<" << cppType(a->kind) << ">(&attrs[" << i << "]);\n";
    else
      os << " &" << a->name << " = std::get<" << cppType(a->kind) << ">(attrs[" << i << "]);\n";
    ++i;
  }
}

std::string quoted(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '\n')
      result += "\\n";
    else if (c == '"' || c == '\\')
      (result += '\\') += c;
    else
      result += c;
  }
  return result + "\"";
}

void writeResolved(std::string text, StringRef generatedName, raw_ostream &os) {
  unsigned line = 1;
  StringRef rest = text;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    StringRef current = rest.substr(0, end == StringRef::npos ? end : end + 1);
    rest = rest.drop_front(current.size());
    ++line;
    if (current == kBackMark)
      os << "#line " << line << " \"" << generatedName << "\"\n";
    else
      os << current;
  }
}

std::string dedent(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  while (!lines.empty() && lines.front().trim().empty())
    lines.erase(lines.begin());
  while (!lines.empty() && lines.back().trim().empty())
    lines.pop_back();
  size_t indent = StringRef::npos;
  for (StringRef line : lines)
    if (!line.trim().empty())
      indent = std::min(indent, line.size() - line.ltrim().size());
  std::string result;
  for (StringRef line : lines)
    result += (line.trim().empty() ? "" : line.drop_front(indent).rtrim().str()) + "\n";
  return result;
}

} // namespace tressel::tblgen
