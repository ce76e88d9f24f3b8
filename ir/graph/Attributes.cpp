#include "ir/graph/Attributes.h"

#include "ir/graph/TableOp.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/TypeSwitch.h"

#include "ir/graph/AttributeEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/graph/Attributes.cpp.inc"

using namespace mlir;

namespace tressel::graph {

void TresselDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/graph/Attributes.cpp.inc"
      >();
}

/// Parses an integer, or an expression in quotes.
static ParseResult parseOne(AsmParser &parser, Size &size) {
  const SMLoc at = parser.getCurrentLocation();
  int64_t number = 0;
  if (OptionalParseResult result = parser.parseOptionalInteger(number); result.has_value()) {
    if (failed(*result))
      return failure();
    if (number < Size::kLeast)
      return parser.emitError(at, "the size is out of range");
    size = number;
    return success();
  }
  std::string text;
  if (parser.parseString(&text))
    return failure();
  const std::optional<Size> parsed = text == "?" ? std::optional(kDynamic) : dim::parse(text);
  if (!parsed)
    return parser.emitError(at, "'") << text << "' is no size: write numbers, names, + - * // % max(a, b)";
  size = *parsed;
  return success();
}
static void printOne(AsmPrinter &p, Size size) {
  if (size.isNumber())
    p << size.number();
  else
    p.printString(dim::spell(size));
}

Attribute SizeAttr::parse(AsmParser &parser, Type) {
  Size size;
  if (parser.parseLess() || parseOne(parser, size) || parser.parseGreater())
    return {};
  return get(parser.getContext(), size);
}
void SizeAttr::print(AsmPrinter &p) const {
  p << '<';
  printOne(p, getValue());
  p << '>';
}

Attribute DimsAttr::parse(AsmParser &parser, Type) {
  SmallVector<Size> sizes;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     [&] { return parseOne(parser, sizes.emplace_back()); }))
    return {};
  return get(parser.getContext(), sizes);
}
void DimsAttr::print(AsmPrinter &p) const {
  p << '<';
  llvm::interleaveComma(getSizes(), p, [&](Size size) { printOne(p, size); });
  p << '>';
}

bool isSize(Attribute attr) {
  if (auto number = dyn_cast_if_present<IntegerAttr>(attr))
    return number.getType().isSignlessInteger(64) && number.getInt() >= Size::kLeast;
  return isa_and_present<SizeAttr>(attr);
}
Size sizeOf(Attribute attr) {
  if (auto symbolic = dyn_cast_if_present<SizeAttr>(attr))
    return symbolic.getValue();
  auto number = dyn_cast_if_present<IntegerAttr>(attr);
  return number ? Size(number.getInt()) : Size();
}
Attribute sizeAttr(MLIRContext *context, Size size) {
  if (!size.isNumber())
    return SizeAttr::get(context, size);
  return IntegerAttr::get(IntegerType::get(context, 64), size.number());
}

ParseResult parseSize(OpAsmParser &parser, Attribute &size) {
  Size value;
  if (parseOne(parser, value))
    return failure();
  size = sizeAttr(parser.getContext(), value);
  return success();
}
void printSize(OpAsmPrinter &p, Operation *, Attribute size) { printOne(p, sizeOf(size)); }

} // namespace tressel::graph
