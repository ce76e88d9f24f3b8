// docs/ops.md: every op with its signature, meaning, types, rules and an example.
#include "ir/tblgen/Records.h"

#include "mlir/TableGen/GenInfo.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tressel::tblgen;

static std::string signature(const OpRecord &op) {
  std::string result = op.name + "(";
  ListSeparator sep;
  for (const tressel::tblgen::Argument &a : op.arguments) {
    result += StringRef(sep).str() + (a.variadic ? "{" + a.name + "...}" : a.name);
    if (a.optional)
      result += a.isOperand || !isList(a.kind) ? " = none" : " = all";
    else if (a.hasDefault)
      result += " = " + StringRef(a.defaultValue).split("DType::").second.str() +
                (StringRef(a.defaultValue).contains("DType::") ? "" : a.defaultValue);
  }
  result += ")";
  if (op.results.size() == 1 && !op.results[0].variadic)
    return result;
  result += " -> ";
  ListSeparator comma;
  for (const tressel::tblgen::Argument &a : op.results)
    result += (StringRef(comma) + a.name).str() + (a.variadic ? "..." : "");
  return result;
}

/// Element types of operands and results, from the record; empty for ops that move elements of any type.
static std::string types(const OpRecord &op) {
  StringRef compute = op.get("compute"), element = op.get("element"), family = op.get("family");
  if (compute == "Float" && (family == "Convolution" || family == "Window"))
    return "floats";
  std::string text = compute == "Number"    ? "numbers, not bools"
                     : compute == "Float"   ? "any; integers and bools are computed in f32"
                     : compute == "Integer" ? "integers"
                     : compute == "Bool"    ? "any; what is not zero is true"
                     : op.isElementwise()   ? "any"
                                            : "";
  if (text.empty())
    return text;
  if (op.operands().empty())
    text = "any";
  if (element == "Bool" || compute == "Bool")
    return text + "; gives bool";
  if (op.isElementwise())
    text += element == "Attr" ? "; gives `dtype`" : op.operands().size() > 1 ? "; gives the promoted type" : "";
  return text;
}

static bool genDocs(const RecordKeeper &records, raw_ostream &os) {
  os << "# Ops\n\nGenerated from the records in `ir/ops/`: change those, then run `ninja -C build update-ops-page`.\n\n"
     << "Names and semantics follow NumPy and the array API where they have the op. Operands broadcast and promote as there; "
     << "an\ninteger with a float takes the float's type. `= none` marks a tensor that may be left out: give none, or `Tensor()`.\n"
     << "An error names the rule (C1, ...) that is broken, and the types:\n"
     << "`matmul: (C2) inner dimensions differ: f32[2, 3] x f32[4, 5]`.\n";
  std::vector<OpRecord> ops = collect(records);
  std::string family;
  for (const OpRecord &op : ops) {
    if (op.get("family") != family) {
      family = op.get("family").str();
      os << "\n## " << (family == "Constant" ? "Creation" : family) << "\n";
    }
    os << "\n### `" << signature(op) << "`\n" << op.get("summary") << ".\n";
    std::string description = dedent(op.get("description"));
    if (!description.empty())
      os << "\n" << description;
    if (std::string text = types(op); !text.empty())
      os << "\nTypes: " << text << ".\n";
    if (op.isElementwise() && !StringRef(dedent(op.get("scalar"))).rtrim().contains('\n'))
      os << "\nScalar: `" << op.get("scalar").trim() << "`\n";
    os << "\nNumPy: `" << op.get("numpy").trim() << "`\n";
    if (!op.get("example").empty())
      os << "\n```cpp\n" << op.get("example") << "\n```\n```\n@result " << op.name << "\n```\n"; // see test/examples
  }
  return false;
}

static mlir::GenRegistration docs("gen-op-docs", "The page of all ops", genDocs);
