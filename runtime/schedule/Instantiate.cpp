#include "tressel/runtime/Instantiate.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

namespace tressel::runtime {

Schedule instantiate(const Schedule &schedule, const dim::Values &values) {
  Schedule out = schedule;
  forEachSize(out, [&](Size &size) {
    if (!size.isNumber())
      size = dim::evaluate(size, values);
  });
  out.dims.clear();
  return out;
}

dim::Values dimsOf(const Schedule &schedule, std::span<const Shape> inputs) {
  dim::Values values;
  if (inputs.size() != schedule.inputs.size())
    throwError<Error>("'", schedule.name, "' takes ", schedule.inputs.size(), " inputs, not ", inputs.size());
  // Dimensions that are a single symbol first: an input with an expression of it may come earlier.
  for (bool last : {false, true})
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueDesc &input = schedule.inputs[i];
      if (std::string problem = dim::unify(input.type.shape, inputs[i], values, !last); !problem.empty())
        throwError<ShapeError>("input '", input.name, "' is ", input.type.str(), ", given ",
                               TensorType{input.type.dtype, inputs[i]}.str(), ": ", problem);
    }
  return values;
}

Size findDim(const Schedule &schedule, std::string_view name) {
  for (Size symbol : schedule.dims)
    if (dim::symbolName(symbol) == name)
      return symbol;
  return {};
}

void checkDims(const Schedule &schedule, const dim::Values &values) {
  for (Size symbol : schedule.dims) {
    const std::string name(dim::symbolName(symbol));
    const Size *value = values.find(symbol);
    if (!value)
      throwError<ShapeError>("the size of dimension '", name, "' of '", schedule.name, "' is not given");
    if (const dim::Bounds range = dim::bounds(symbol); value->number() < range.lo || value->number() > range.hi)
      throwError<ShapeError>("dimension '", name, "' of '", schedule.name, "' is ", value->number(),
                             ", but lies between ", range.lo, " and ", range.hi);
  }
}

} // namespace tressel::runtime
