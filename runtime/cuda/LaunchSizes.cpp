#include "LaunchSizes.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::runtime::cuda {

Size sizeFrom(const json::Value &value) {
  if (value.kind() != json::Value::Kind::String)
    return value.asInt();
  const auto parsed = dim::parse(value.asString());
  if (!parsed)
    throwError<InputError>("'", value.asString(), "' is no size");
  return *parsed;
}

LaunchSizes::LaunchSizes(const json::Value &params) {
  if (const json::Value *found = params.find("symbols"))
    for (const json::Value &symbol : found->items())
      symbols_.push_back(sizeFrom(symbol));
}

dim::Values LaunchSizes::valuesOf(std::span<const int64_t> scalars) const {
  dim::Values values;
  for (size_t i = 0; i < std::min(symbols_.size(), scalars.size()); ++i)
    values.bind(symbols_[i], scalars[i]);
  return values;
}

} // namespace tressel::runtime::cuda
