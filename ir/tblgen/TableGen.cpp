// Generates the op table: scalar templates, OpInfo objects, the interpreter's elementwise loops, and expressions for
// decompositions.
#include "ir/tblgen/Records.h"

#include "mlir/TableGen/GenInfo.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/Main.h"

#include <set>

using namespace llvm;
using namespace tressel::tblgen;

static constexpr StringLiteral kHead = "// Generated from ir/ops by tressel-tblgen.\n";

/// "Arithmetic" when the input is ops/Arithmetic.td.
static std::string familyFile(const RecordKeeper &records) {
  return StringRef(records.getInputFilename()).rsplit('/').second.rsplit('.').first.str();
}
/// Ops whose record is in the input file itself, not in an included one.
static std::vector<OpRecord> ownOps(const RecordKeeper &records) { return collect(records); }

// --- Scalar templates --------------------------------------------------------------------------------------------------
static bool genScalars(const RecordKeeper &records, raw_ostream &out) {
  std::string text;
  raw_string_ostream os(text);
  os << kHead << "#pragma once\n#include \"ir/op/Attr.h\"\n\nnamespace tressel::op::scalar {\n\n";
  for (const OpRecord &op : ownOps(records)) {
    if (!op.isElementwise())
      continue;
    os << "template <class Cx";
    for (size_t i = 0; i < op.operands().size(); ++i)
      os << ", class T" << i;
    os << ">\nauto scalar_" << op.name << "([[maybe_unused]] const Cx &cx";
    int i = 0;
    for (const Argument *a : op.operands())
      os << ", [[maybe_unused]] T" << i++ << " " << a->name;
    for (const Argument *a : op.attrs())
      os << ", [[maybe_unused]] const " << cppType(a->kind) << " &" << a->name;
    os << ") {\n" << op.body("scalar") << "}\n\n";
  }
  os << "} // namespace tressel::op::scalar\n";
  writeResolved(text, familyFile(records) + ".scalar.h", out);
  return false;
}

static void callScalar(const OpRecord &op, StringRef operandFormat, raw_ostream &os) {
  os << "scalar::scalar_" << op.name << "(cx";
  for (size_t i = 0; i < op.operands().size(); ++i) {
    std::string s = operandFormat.str();
    s.replace(s.find('#'), 1, std::to_string(i));
    os << ", " << s;
  }
  for (const Argument *a : op.attrs())
    os << ", " << a->name;
  os << ")";
}

// --- The interpreter's elementwise loops -----------------------------------------------------------------------------------
static bool genEvaluate(const RecordKeeper &records, raw_ostream &os) {
  std::string family = familyFile(records);
  os << kHead << "#include \"ir/interpreter/Evaluate.h\"\n#include \"ir/op/" << family << ".scalar.h\"\n\n"
     << "namespace tressel::op::evaluate {\n";
  for (const OpRecord &op : ownOps(records)) {
    if (!op.isElementwise() || !op.get("evaluate").empty())
      continue;
    os << "\nvoid " << op.name << "(const OpInfo &info, std::span<const HostTensor> in, const Attrs &attrs, "
       << "std::span<HostTensor> out) {\n";
    unpackAttrs(op, os);
    os << "  interp::elementwise<" << op.operands().size() << ", "
       << op.getInt("boolOperands") << ">(info, in, out, [&](const auto &cx";
    for (size_t i = 0; i < op.operands().size(); ++i)
      os << ", auto x" << i;
    os << ") { return ";
    callScalar(op, "x#", os);
    os << "; });\n}\n";
  }
  os << "\n} // namespace tressel::op::evaluate\n";
  return false;
}

// --- OpInfo objects -------------------------------------------------------------------------------------------------------------
static constexpr StringLiteral kEvaluateParams =
    "(const OpInfo &, std::span<const HostTensor>, const Attrs &, std::span<HostTensor>);\n";

static void genOperandsAndAttrs(const OpRecord &op, raw_ostream &os) {
  if (!op.operands().empty()) {
    os << "constexpr OperandSpec operands[] = {";
    for (const Argument *a : op.operands())
      os << "{\"" << a->name << "\", " << (a->variadic ? "true" : "false") << ", " << (a->optional ? "true" : "false")
         << "}, ";
    os << "};\n";
  }
  os << "constexpr const char *resultNames[] = {";
  for (const tressel::tblgen::Argument &a : op.results)
    os << "\"" << a.name << "\", ";
  os << "};\n";
  if (!op.attrs().empty()) {
    os << "const AttrSpec attrs[] = {\n";
    for (const Argument *a : op.attrs()) {
      static constexpr const char *kinds[] = {"Bool", "Int", "Float", "Type", "String", "Ints", "Size", "Sizes"};
      os << "    {\"" << a->name << "\", AttrKind::" << kinds[static_cast<int>(a->kind)] << ", "
         << (a->optional ? "true" : "false") << ", " << attrValue(*a) << "},\n";
    }
    os << "};\n";
  }
  auto domains = op.def->getValueAsListOfStrings("domains");
  if (!domains.empty()) {
    os << "constexpr Domain domains[] = {";
    for (StringRef d : domains)
      os << "{" << d << "}, ";
    os << "};\n";
  }
  auto samples = op.def->getValueAsListOfStrings("samples");
  if (!samples.empty()) {
    os << "constexpr const char *samples[] = {";
    for (StringRef s : samples)
      os << quoted(s) << ", ";
    os << "};\n";
  }
}

/// Generates `infer` from the fragment `types`.
static void genInfer(const OpRecord &op, raw_ostream &os) {
  os << "Inferred infer(const OpInfo &info, std::span<const TensorType> operands, [[maybe_unused]] const Attrs &attrs) {\n"
     << "  if (auto error = checkArity(info, operands))\n    return *error;\n"
     << "  [[maybe_unused]] auto fail = [&](int rule, std::string_view why) { return inferError(info, rule, why, operands); };\n"
     << "  [[maybe_unused]] auto result = [](auto... types) { return Inferred{{TensorType(types)...}, {}}; };\n";
  int i = 0;
  for (const Argument *a : op.operands())
    if (a->variadic)
      os << "  [[maybe_unused]] const std::span<const TensorType> " << a->name << " = operands.subspan(" << i++ << ");\n";
    else if (a->optional)
      os << "  [[maybe_unused]] const TensorType *" << a->name << " = operands.size() > " << i << " ? &operands[" << i
         << "] : nullptr;\n", ++i;
    else
      os << "  [[maybe_unused]] const TensorType &" << a->name << " = operands[" << i++ << "];\n";
  unpackAttrs(op, os);
  os << op.body("types") << "}\n";
}

static void genFunctions(const OpRecord &op, raw_ostream &os) {
  if (!op.get("types").empty())
    genInfer(op, os);
  if (op.isElementwise()) {
    os << "Sym record([[maybe_unused]] const SymContext &cx, [[maybe_unused]] const Sym *in, "
       << "[[maybe_unused]] const Attrs &attrs) {\n";
    unpackAttrs(op, os);
    os << "  return cx.lift(";
    callScalar(op, "in[#]", os);
    os << ");\n}\nconstexpr ElementwiseInfo elementwise{record, ElementRule::" << op.get("element") << ", "
       << op.getInt("boolOperands") << "};\n";
  }
  if (op.isComposite()) {
    os << "std::vector<Emitter::Ref> decompose(const OpInfo &info, Emitter &emitter, std::span<const Emitter::Ref> in, "
       << "const Attrs &attrs) {\n  using namespace expr;\n  Decomposition scope(info, emitter, in, attrs);\n"
       << "  [[maybe_unused]] auto resultType = [&](int i) -> const TensorType & { return scope.resultType(i); };\n";
    int i = 0;
    for (const Argument *a : op.operands())
      if (a->variadic)
        os << "  [[maybe_unused]] const std::vector<Expr> " << a->name << " = scope.inputsFrom(" << i++ << ");\n";
      else
        os << "  [[maybe_unused]] const Expr &" << a->name << " = scope.input(" << i++ << ");\n";
    unpackAttrs(op, os);
    bool several = op.results.size() > 1 || op.hasVariadicResult();
    os << "  return scope.finish([&]() -> " << (several ? "std::vector<Expr>" : "Expr") << " {\n"
       << op.body("decomposition") << "  }());\n}\n";
  }
  if (!op.get("fromParts").empty())
    os << "std::vector<Emitter::Ref> fromParts(const OpInfo &info, Emitter &emitter, std::span<const Emitter::Ref> in, "
       << "const Attrs &attrs) {\n  using namespace expr;\n  Decomposition scope(info, emitter, in, attrs);\n"
       << "  auto part = [&](int i) -> const Expr & { return scope.input(i); };\n"
       << "  return scope.finish([&]() -> " << (op.results.size() > 1 ? "std::vector<Expr>" : "Expr") << " {\n"
       << op.body("fromParts") << "  }());\n}\n";
}

static void genGradient(const OpRecord &op, raw_ostream &os) {
  if (op.get("gradient").empty())
    return;
  os << "std::vector<Emitter::Ref> gradient(const OpInfo &, Emitter &emitter, const GradientCall &call) {\n"
     << "  using namespace expr;\n  ReverseRule rule(emitter, call);\n  [[maybe_unused]] const Attrs &attrs = "
        "call.attrs;\n"
     << "  [[maybe_unused]] auto out = [&](int i) -> const Expr & { return rule.result(i); };\n"
     << "  [[maybe_unused]] auto d = [&](int i) -> const Expr & { return rule.cotangent(i); };\n"
     << "  [[maybe_unused]] const Expr &y = out(0), &dy = d(0);\n";
  int i = 0;
  for (const Argument *a : op.operands())
    if (a->variadic)
      os << "  [[maybe_unused]] const std::vector<Expr> " << a->name << " = rule.operandsFrom(" << i++ << ");\n";
    else
      os << "  [[maybe_unused]] const Expr &" << a->name << " = rule.operand(" << i++ << ");\n";
  unpackAttrs(op, os);
  os << "  return rule.finish([&]() -> Cotangents {\n" << op.body("gradient") << "  }());\n}\n";
}

static void genInfo(const OpRecord &op, raw_ostream &os) {
  std::string ns = op.name + "_op";
  auto flag = [&](StringRef field) { return op.getBit(field) ? "true" : "false"; };
  std::string evaluate = op.get("evaluate").str();
  if (evaluate.empty() && op.isElementwise())
    evaluate = "evaluate::" + op.name;
  auto list = [&](StringRef name, bool present) { return present ? (ns + "::" + name).str() : std::string("{}"); };
  std::string identity = op.get("identity").empty() ? "std::nullopt" : op.get("identity").str();
  os << "const OpInfo table::" << op.name << "{\n    .name = \"" << op.name
     << "\",\n    .family = Family::" << op.get("family") << ",\n    .summary = " << quoted(op.get("summary"))
     << ",\n    .description = " << quoted(dedent(op.get("description")))
     << ",\n    .operands = " << list("operands", !op.operands().empty())
     << ",\n    .attrs = " << list("attrs", !op.attrs().empty()) << ",\n    .resultNames = " << ns
     << "::resultNames,\n    .numResults = " << (op.hasVariadicResult() ? -1 : static_cast<int>(op.results.size()))
     << ",\n    .commutative = " << flag("commutative") << ",\n    .isView = " << flag("isView")
     << ",\n    .idempotent = " << flag("idempotent")
     << ",\n    .infer = " << (op.get("types").empty() ? op.get("infer").str() : ns + "::infer")
     << ",\n    .loopForm = " << op.get("loopForm") << ",\n    .kernelForm = " << op.get("kernelForm")
     << ",\n    .overwrites = " << op.getInt("overwrites")
     << ",\n    .evaluate = " << (evaluate.empty() ? "nullptr" : evaluate)
     << ",\n    .decompose = " << (op.isComposite() ? ns + "::decompose" : "nullptr")
     << ",\n    .fromParts = " << (op.get("fromParts").empty() ? "nullptr" : ns + "::fromParts") << ",\n    .gradient = "
     << (!op.get("gradient").empty() ? ns + "::gradient"
         : op.isElementwise()        ? "gradientOfElementwise"
                                     : "nullptr")
     << ",\n    .flops = " << op.get("flops") << ",\n    .numpy = " << quoted(op.get("numpy"))
     << ",\n    .domains = " << list("domains", !op.def->getValueAsListOfStrings("domains").empty())
     << ",\n    .samples = " << list("samples", !op.def->getValueAsListOfStrings("samples").empty())
     << ",\n    .example = " << quoted(op.get("example")) << ",\n    .compute = ComputeClass::" << op.get("compute")
     << ",\n    .combine = Combine::" << op.get("combine") << ",\n    .isMean = " << flag("isMean")
     << ",\n    .identity = " << identity << ",\n    .compose = " << op.get("compose")
     << ",\n    .isIdentity = " << op.get("isIdentity") << ",\n    .reorder = " << op.get("reorder")
     << ",\n    .sharding = " << op.get("sharding")
     << ",\n    .elementwise = " << (op.isElementwise() ? "&" + ns + "::elementwise" : "nullptr") << ",\n};\n\n";
}

static bool genTable(const RecordKeeper &records, raw_ostream &out) {
  std::string family = familyFile(records), text;
  raw_string_ostream os(text);
  std::vector<OpRecord> ops = ownOps(records);
  os << kHead
     << "#include \"ir/op/Einsum.h\"\n#include \"ir/op/Gradient.h\"\n#include \"ir/op/Infer.h\"\n#include "
        "\"ir/op/Resample.h\"\n#include \"ir/op/TableSupport.h\"\n#include \"ir/op/Table.h\"\n#include "
        "\"ir/op/Exprs.h\"\n#include \"ir/op/"
     << family
     << ".scalar.h\"\n\n#include \"tressel/runtime/Dim.h\"\n\n#include <algorithm>\n#include <cmath>\n#include "
        "<limits>\n#include <numeric>\n\nnamespace tressel::op {\n\n";
  std::set<std::string> declared;
  for (const OpRecord &op : ops) {
    std::string name = op.get("evaluate").str();
    if (name.empty() && op.isElementwise())
      os << "namespace evaluate { void " << op.name << kEvaluateParams.drop_back() << " }\n";
    else if (!name.empty() && declared.insert(name).second)
      os << "namespace interp { void " << StringRef(name).split("::").second << kEvaluateParams.drop_back() << " }\n";
  }
  os << "\n";
  for (const OpRecord &op : ops) {
    os << "namespace {\nnamespace " << op.name << "_op {\n";
    genOperandsAndAttrs(op, os);
    genFunctions(op, os);
    genGradient(op, os);
    os << "} // namespace " << op.name << "_op\n} // namespace\n";
    genInfo(op, os);
  }
  os << "} // namespace tressel::op\n";
  writeResolved(text, family + ".table.cpp", out);
  return false;
}

static bool genTableHeader(const RecordKeeper &records, raw_ostream &os) {
  os << kHead << "#pragma once\n#include \"ir/op/OpInfo.h\"\n\nnamespace tressel::op::table {\n";
  for (const OpRecord &op : collect(records))
    os << "extern const OpInfo " << op.name << ";\n";
  os << "} // namespace tressel::op::table\n";
  return false;
}

static bool genRegistry(const RecordKeeper &records, raw_ostream &os) {
  std::set<std::string> names;
  os << kHead << "#include \"ir/op/Table.h\"\n#include \"ir/op/Registry.h\"\n\nnamespace tressel::op {\n"
     << "std::span<const OpInfo *const> builtinOps() {\n  static constexpr const OpInfo *ops[] = {\n";
  for (const OpRecord &op : collect(records)) {
    if (!names.insert(op.name).second)
      PrintFatalError(op.def->getLoc(), "there are two ops named '" + op.name + "'");
    os << "      &table::" << op.name << ",\n";
  }
  os << "  };\n  return ops;\n}\n} // namespace tressel::op\n";
  return false;
}

static bool genPrebuilt(const RecordKeeper &records, raw_ostream &os) {
  os << kHead;
  for (const OpRecord &op : collect(records)) {
    const auto types = op.def->getValueAsListOfStrings("prebuilt");
    if (types.empty())
      continue;
    os << "{&table::" << op.name << ", {";
    for (StringRef type : types)
      os << "DType::" << (type == "bool" ? "boolean" : type) << ", ";
    os << "}},\n";
  }
  return false;
}

// --- Expressions --------------------------------------------------------------------------------------------------------------------
static void exprSignature(const OpRecord &op, bool defaults, raw_ostream &os) {
  os << resultCppType(op, "Expr") << " " << op.name << "(";
  ListSeparator sep;
  bool tailHasDefaults = true;
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const tressel::tblgen::Argument &a = op.arguments[i];
    os << sep;
    if (a.isOperand)
      os << (a.variadic ? "const std::vector<Expr> &" : "const Expr &") << a.name;
    else if (a.optional)
      os << (a.kind == Kind::Ints ? "const OptionalInts &" : "std::optional<" + std::string(cppType(a.kind)) + "> ")
         << a.name;
    else
      os << (isList(a.kind) ? "const " + std::string(cppType(a.kind)) + " &" : std::string(cppType(a.kind)) + " ")
         << a.name;
    tailHasDefaults = true;
    for (size_t j = i; j < op.arguments.size(); ++j)
      tailHasDefaults &= op.arguments[j].optional || op.arguments[j].hasDefault;
    if (defaults && tailHasDefaults)
      os << " = " << defaultArgument(a);
  }
  os << ")";
}

static bool genExprsHeader(const RecordKeeper &records, raw_ostream &os) {
  os << kHead << "#pragma once\n#include \"ir/op/Expr.h\"\n\n#include <tuple>\n\nnamespace tressel::op::expr {\n";
  for (const OpRecord &op : collect(records)) {
    exprSignature(op, true, os);
    os << ";\n";
  }
  os << "} // namespace tressel::op::expr\n";
  return false;
}

static bool genExprs(const RecordKeeper &records, raw_ostream &os) {
  os << kHead << "#include \"ir/op/Exprs.h\"\n#include \"ir/op/Table.h\"\n\nnamespace tressel::op::expr {\n";
  for (const OpRecord &op : collect(records)) {
    exprSignature(op, false, os);
    os << " {\n  std::vector<Expr> operands{";
    for (const tressel::tblgen::Argument *a : op.operands())
      if (!a->variadic)
        os << a->name << ", ";
    os << "};\n";
    if (const tressel::tblgen::Argument *a = op.variadicOperand())
      os << "  operands.insert(operands.end(), " << a->name << ".begin(), " << a->name << ".end());\n";
    os << "  std::vector<Expr> results = Expr::apply(table::" << op.name << ", std::move(operands), {";
    for (const tressel::tblgen::Argument *a : op.attrs())
      os << (!a->optional ? "Attr(" + a->name + ")" : a->kind == Kind::Ints ? a->name + ".attr()" : "toAttr(" + a->name + ")")
         << ", ";
    os << "});\n  return ";
    if (op.hasVariadicResult()) {
      os << "results";
    } else {
      os << (op.results.size() > 1 ? "{" : "");
      ListSeparator sep;
      for (size_t i = 0; i < op.results.size(); ++i)
        os << sep << "results[" << i << "]";
      os << (op.results.size() > 1 ? "}" : "");
    }
    os << ";\n}\n";
  }
  os << "} // namespace tressel::op::expr\n";
  return false;
}

static mlir::GenRegistration scalars("gen-op-scalars", "Scalar templates of one family", genScalars);
static mlir::GenRegistration evaluate("gen-op-evaluate", "The interpreter's loops of one family", genEvaluate);
static mlir::GenRegistration table("gen-op-table", "OpInfo objects of one family", genTable);
static mlir::GenRegistration tableHeader("gen-op-table-header", "Declarations of all OpInfo objects", genTableHeader);
static mlir::GenRegistration registry("gen-op-registry", "The list of all ops", genRegistry);
static mlir::GenRegistration prebuilt("gen-op-prebuilt", "Ops and element types whose kernels are compiled ahead", genPrebuilt);
static mlir::GenRegistration exprsHeader("gen-op-exprs-header", "Ops over expressions, declarations", genExprsHeader);
static mlir::GenRegistration exprs("gen-op-exprs", "Ops over expressions", genExprs);
