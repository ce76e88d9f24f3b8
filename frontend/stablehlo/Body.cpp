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

static std::string expressionOf(mlir::Value v, mlir::Block *body) {
  if (auto arg = llvm::dyn_cast<mlir::BlockArgument>(v))
    return arg.getOwner() == body ? "a" + std::to_string(arg.getArgNumber()) : "?";
  mlir::Operation *op = v.getDefiningOp();
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
    operands.push_back(expressionOf(operand, body));
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
    list.push_back(expressionOf(v, &body));
  return list;
}

std::string combinerOf(const std::string &expression, size_t a, size_t b) {
  for (const char *name : kCommutative)
    if (expression == std::string(name) + "(a" + std::to_string(a) + ",a" + std::to_string(b) + ")" ||
        expression == std::string(name) + "(a" + std::to_string(b) + ",a" + std::to_string(a) + ")")
      return name;
  return "";
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
