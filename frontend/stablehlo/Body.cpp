#include "frontend/stablehlo/Body.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <algorithm>

namespace tressel::stablehlo {

static constexpr size_t kMaxText = 4096;
static constexpr const char *kCommutative[] = {"add", "multiply", "maximum",    "minimum",    "and",
                                               "or",  "xor",      "compare.EQ", "compare.NE", "compare.EQ.TOTALORDER"};

static mlir::Attribute attributeOf(mlir::Operation *op, llvm::StringRef name) {
  if (auto own = llvm::dyn_cast_or_null<mlir::DictionaryAttr>(op->getPropertiesAsAttribute()))
    if (mlir::Attribute attr = own.get(name))
      return attr;
  return op->getAttr(name);
}

std::string expressionOf(mlir::Value v, mlir::ValueRange arguments) {
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (v == argument)
      return "a" + std::to_string(i);
  mlir::Operation *op = v.getDefiningOp();
  if (!op)
    return "?";
  llvm::StringRef name = op->getName().getStringRef();
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || !name.consume_front("stablehlo."))
    return "?";
  std::string text = name.str();
  if (name == "constant") {
    llvm::raw_string_ostream os(text = "c(");
    if (mlir::Attribute value = attributeOf(op, "value"))
      value.print(os, /*elideType=*/true);
    return text + ")";
  }
  if (name == "compare") {
    if (auto direction = llvm::dyn_cast_or_null<mlir::OpaqueAttr>(attributeOf(op, "comparison_direction")))
      text += "." + direction.getAttrData().rsplit(' ').second.str();
    auto type = llvm::dyn_cast_or_null<mlir::OpaqueAttr>(attributeOf(op, "compare_type"));
    if (type && type.getAttrData().contains("TOTALORDER"))
      text += ".TOTALORDER"; // the others follow from the operands' type
  }
  std::vector<std::string> operands;
  for (mlir::Value operand : op->getOperands())
    operands.push_back(expressionOf(operand, arguments));
  if (name == "broadcast_in_dim" && operands.size() == 1 && operands[0].starts_with("c(dense<"))
    return operands[0]; // of a single value, as all constants here are
  if (std::ranges::find(kCommutative, text) != std::end(kCommutative))
    std::ranges::sort(operands);
  text += "(";
  for (const std::string &operand : operands) {
    text += (text.back() == '(' ? "" : ",") + operand;
    if (operand == "?" || text.size() > kMaxText)
      return "?";
  }
  return text + ")";
}

std::vector<std::string> expressionsOf(mlir::Region &region) {
  std::vector<std::string> list;
  mlir::Block &body = region.front();
  for (mlir::Value v : body.getTerminator()->getOperands())
    list.push_back(expressionOf(v, body.getArguments()));
  return list;
}

std::string combinerOf(const std::string &expression, size_t a, size_t b) {
  for (const char *name : kCommutative)
    if (expression == std::string(name) + "(a" + std::to_string(a) + ",a" + std::to_string(b) + ")" ||
        expression == std::string(name) + "(a" + std::to_string(b) + ",a" + std::to_string(a) + ")")
      return name;
  return "";
}

std::string canonicalFloat(const std::string &a, DType type) {
  const char *nan = type == f64 ? "0x7FF8000000000000" : type == f32 ? "0x7FC00000" : type == f16 ? "0x7E00" : "0x7FC0";
  const std::string zero = "c(dense<0.000000e+00>)";
  return "select(compare.NE(" + a + "," + a + "),c(dense<" + nan + ">),select(compare.EQ(" + a + "," + zero + ")," +
         zero + "," + a + "))";
}

bool isCanonicalFloat(mlir::Value v, DType type) {
  for (int depth = 0; depth < 2; ++depth) { // the canonicalized value is the last operand of the inner select
    mlir::Operation *op = depth ? v.getDefiningOp()->getOperand(2).getDefiningOp() : v.getDefiningOp();
    if (!op || op->getName().getStringRef() != "stablehlo.select" || op->getNumOperands() != 3)
      return false;
  }
  mlir::Value x = v.getDefiningOp()->getOperand(2).getDefiningOp()->getOperand(2);
  return expressionOf(v, x) == canonicalFloat("a0", type);
}

Call callOf(std::string_view expression) {
  const size_t open = expression.find('(');
  if (open == std::string_view::npos || expression.back() != ')')
    return {expression, {}};
  Call call{expression.substr(0, open), {}};
  int depth = 0;
  for (size_t at = open + 1, start = at; at < expression.size(); ++at) {
    const char c = expression[at];
    if (depth == 0 && (c == ',' || at + 1 == expression.size())) {
      call.operands.push_back(expression.substr(start, at - start));
      start = at + 1;
    }
    depth += (c == '(' || c == '<' || c == '[') - (c == ')' || c == '>' || c == ']');
  }
  return call;
}

} // namespace tressel::stablehlo
