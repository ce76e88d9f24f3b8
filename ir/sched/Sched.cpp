// Registration and types of the dialect.
#include "ir/sched/Sched.h"

#include "ir/graph/TableOp.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/sched/SchedDialect.cpp.inc"
#include "ir/sched/SchedEnums.cpp.inc"
#include "ir/sched/SchedInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/sched/SchedAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/sched/SchedTypes.cpp.inc"

namespace tressel::sched {

void SchedDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/sched/SchedAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/sched/SchedTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/sched/SchedOps.cpp.inc"
      >();
}

// `<data = 4, tensor = "t[2..8]">`
Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<Size> sizes;
  auto one = [&]() -> ParseResult {
    std::string name, spelled;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual())
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    const SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseOptionalString(&spelled))) {
      int64_t number = 0;
      if (parser.parseInteger(number))
        return failure();
      sizes.push_back(Size::clamped(number)); // checked by `verify`
      return success();
    }
    const auto size = dim::parse(spelled);
    if (!size)
      return parser.emitError(loc, "'") << spelled << "' is no size";
    sizes.push_back(*size);
    return success();
  };
  const SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, one))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), names, sizes);
}

void MeshAttr::print(AsmPrinter &p) const {
  p << '<';
  llvm::interleaveComma(llvm::zip(getNames(), getSizes()), p, [&](auto axis) {
    p.printKeywordOrString(std::get<0>(axis).getValue());
    p << " = ";
    if (const Size size = std::get<1>(axis); size.isNumber())
      p << size.number();
    else
      p << '"' << dim::spell(size) << '"';
  });
  p << '>';
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> names,
                               ArrayRef<Size> sizes) {
  if (names.empty() || names.size() != sizes.size())
    return emitError() << "a mesh has axes, each with a size";
  for (auto [i, name] : llvm::enumerate(names)) {
    const auto symbol = dim::parse(name.getValue());
    if (!symbol || !dim::isSymbol(*symbol) || StringRef(dim::symbolName(*symbol)) != name.getValue() ||
        llvm::is_contained(names.take_front(i), name))
      return emitError() << "a mesh has axes of different names, which are identifiers, not \"" << name.getValue()
                         << '"';
    if (sizes[i].isNumber() ? sizes[i].number() < 1 : !dim::isSymbol(sizes[i]))
      return emitError() << "the size of axis \"" << name.getValue() << "\" must be a positive number or a symbol, not "
                         << dim::str(sizes[i]);
  }
  return success();
}

void registerDialect(DialectRegistry &registry) { registry.insert<SchedDialect>(); }

} // namespace tressel::sched
