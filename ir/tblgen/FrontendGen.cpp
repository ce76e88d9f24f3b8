// Generates the frontend's functions: one per op, over Arg, with a doc comment from the record.
#include "ir/tblgen/Records.h"

#include "mlir/TableGen/GenInfo.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tressel::tblgen;

using Arg = tressel::tblgen::Argument;

static std::string parameterType(const Arg &a) {
  if (a.isOperand)
    return a.variadic ? "std::vector<Arg>" : "Arg";
  if (a.optional)
    return a.kind == Kind::Ints ? "Axes" : "std::optional<" + std::string(cppType(a.kind)) + ">";
  return isList(a.kind) ? "Sizes" : a.kind == Kind::Size ? "Dim" : cppType(a.kind);
}

/// An op without a plain operand has no argument that records the caller's line, so it takes the location as a
/// parameter.
static bool takesLocation(const OpRecord &op) { return op.operands().empty() || op.operands().front()->variadic; }

/// Whether detail::runFlat supports the op.
static bool isFlat(const OpRecord &op) {
  return op.isElementwise() && op.get("family") == "Elementwise" && !op.operands().empty() && op.operands().size() <= 3 &&
         !op.variadicOperand() && !op.operands().back()->optional;
}

/// Optional operands precede the attributes. If the first attribute is a string, a second overload takes it right after
/// the mandatory operands: no operand is a string, so the overloads are unambiguous.
static bool hasShortForm(const OpRecord &op) {
  return !op.operands().empty() && op.operands().back()->optional && !op.attrs().empty() && op.attrs().front()->kind == Kind::String;
}

static void shortForm(const OpRecord &op, raw_ostream &os) {
  os << "inline " << resultCppType(op, "Tensor") << " " << op.name << "(";
  ListSeparator sep, argSep;
  std::string call;
  raw_string_ostream args(call);
  const Arg *first = op.attrs().front();
  for (const Arg &a : op.arguments) {
    args << argSep << (a.isOperand && a.optional ? "Tensor()" : "std::move(" + a.name + ")");
    if (a.isOperand && a.optional)
      continue;
    os << sep << parameterType(a) << " " << a.name;
    if (!a.isOperand && &a != first)
      os << " = " << defaultArgument(a);
  }
  os << ") {\n  return " << op.name << "(" << call << ");\n}\n";
}

static void signature(const OpRecord &op, bool defaults, raw_ostream &os) {
  os << resultCppType(op, "Tensor") << " " << op.name << "(";
  ListSeparator sep;
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const Arg &a = op.arguments[i];
    bool tail = true;
    for (size_t j = i; j < op.arguments.size(); ++j)
      tail &= op.arguments[j].optional || op.arguments[j].hasDefault;
    os << sep << parameterType(a) << " " << a.name;
    if (defaults && tail)
      os << " = " << (a.isOperand ? "Tensor()" : defaultArgument(a));
  }
  if (takesLocation(op))
    os << sep << "std::source_location where" << (defaults ? " = std::source_location::current()" : "");
  os << ")";
}

static bool genHeader(const RecordKeeper &records, raw_ostream &os) {
  os << "// All ops as functions. Generated from the records in ir/ops; docs/ops.md is the same as a page.\n"
     << "//\n// Throws ShapeError, at the call, when shapes or element types do not fit. The result is a future: it is computed\n"
     << "// when somebody waits for it at the latest. An Arg is a Tensor, a Variable or a number;\n// an operand that is optional is left out by an empty Tensor.\n"
     << "#pragma once\n\n#include <tressel/arg.h>\n#include <tressel/axes.h>\n#include <tressel/dim.h>\n\n#include <cstdint>\n#include <optional>\n"
     << "#include <source_location>\n#include <string>\n#include <tuple>\n#include <utility>\n#include <vector>\n\nnamespace tressel {\n\n";
  for (const OpRecord &op : collect(records)) {
    os << "/// " << op.get("summary") << ".\n";
    std::string description = dedent(op.get("description"));
    for (StringRef line : llvm::split(StringRef(description).rtrim(), '\n'))
      if (!description.empty())
        os << "///" << (line.empty() ? "" : " ") << line << "\n";
    if (!op.get("example").empty())
      os << "/// Example: `" << op.get("example") << "`\n";
    signature(op, true, os);
    os << ";\n";
    if (hasShortForm(op))
      shortForm(op, os);
    os << "\n";
  }
  os << "} // namespace tressel\n";
  return false;
}

static bool genSource(const RecordKeeper &records, raw_ostream &os) {
  os << "// Generated from the records in ir/ops by tressel-tblgen.\n#include <tressel/ops.h>\n\n#include "
        "\"frontend/eager/Eager.h\"\n#include \"frontend/trace/Record.h\"\n"
     << "#include \"ir/op/Table.h\"\n\nnamespace tressel {\nusing op::Attr;\n\n"
     << "static Attr toAttr(Sizes &sizes) { return Attr(std::move(sizes).values()); }\n"
     << "static Attr toNumbers(Sizes &sizes) { return Attr(std::move(sizes).numbers()); }\n"
     << "static Attr toAttr(Dim &size) { return Attr(size.raw()); }\n"
     << "static Attr toAttr(Axes &axes) { return axes.all() ? Attr{} : Attr(std::move(axes).values()); }\n"
     << "template <typename T> static Attr toAttr(std::optional<T> &v) { return v ? Attr(std::move(*v)) : Attr{}; "
        "}\n\n";
  for (const OpRecord &op : collect(records)) {
    signature(op, false, os);
    os << " {\n";
    const Arg *variadic = op.variadicOperand();
    auto attrs = [&] {
      if (op.attrs().empty())
        return;
      os << "  const Attr attrs[] = {";
      ListSeparator sep;
      for (const Arg *a : op.attrs())
        os << sep
           << (a->kind == Kind::Ints && !a->optional                            ? "toNumbers("
               : a->optional || a->kind == Kind::Size || a->kind == Kind::Sizes ? "toAttr("
                                                                                : "Attr(std::move(")
           << a->name << (a->optional || isList(a->kind) || a->kind == Kind::Size ? ")" : "))");
      os << "};\n";
    };
    if (isFlat(op)) { // runs at once where possible, with operands on the stack
      attrs();
      os << "  const Arg *const operands[] = {";
      ListSeparator sep;
      for (const Arg *a : op.operands())
        os << sep << "&" << a->name;
      os << "};\n  if (Tensor result; detail::runFlat(op::table::" << op.name << ", operands, "
         << (op.attrs().empty() ? "{}" : "attrs") << ", result)) [[likely]]\n    return result;\n";
    }
    std::string args;
    if (variadic) {
      args = variadic->name;
      auto fixed = op.operands();
      fixed.pop_back();
      for (const Arg *a : llvm::reverse(fixed))
        os << "  " << args << ".insert(" << args << ".begin(), std::move(" << a->name << "));\n";
    } else if (!op.operands().empty()) {
      os << "  const Arg args[] = {";
      ListSeparator sep;
      for (const Arg *a : op.operands())
        os << sep << "std::move(" << a->name << ")";
      os << "};\n";
      args = "args";
    } else {
      args = "{}";
    }
    if (!isFlat(op))
      attrs();
    const char *call = op.hasVariadicResult() ? "recordList" : "record";
    os << "  return detail::" << call;
    if (op.results.size() > 1)
      os << "Tuple<" << op.results.size() << ">";
    os << "(op::table::" << op.name << ", " << args << ", " << (op.attrs().empty() ? "{}" : "attrs")
       << (takesLocation(op) ? ", where" : "") << ");\n}\n\n";
  }
  os << "} // namespace tressel\n";
  return false;
}

static mlir::GenRegistration header("gen-frontend-header", "The frontend's functions, declarations", genHeader);
static mlir::GenRegistration source("gen-frontend", "The frontend's functions", genSource);
