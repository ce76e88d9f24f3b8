// The compiler's writer of what CustomCall::fromJson reads.
#include "tressel/runtime/CustomKernels.h"
#include "tressel/runtime/Dim.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace tressel::runtime {

std::string CustomCall::toJson() const {
  using Json = nlohmann::ordered_json;
  Json types = Json::array(), values = Json::array();
  for (const TensorType &t : operands) {
    Json sizes = Json::array();
    for (Size size : t.shape)
      sizes.push_back(size.isNumber() ? Json(size.number()) : Json(dim::spell(size)));
    types.push_back({nameOf(t.dtype), std::move(sizes)});
  }
  for (const CustomAttr &a : attrs) {
    Json value{{"name", a.name}, {"kind", a.value.index()}};
    // As bits, since text cannot represent infinities.
    if (auto *f = std::get_if<double>(&a.value))
      value["value"] = std::bit_cast<int64_t>(*f);
    else
      std::visit([&](const auto &v) { value["value"] = v; }, a.value);
    values.push_back(std::move(value));
  }
  Json j{{"op", op},
         {"symbol", symbol},
         {"library", library},
         {"inputs", numInputs},
         {"operands", types},
         {"buffers", buffers},
         {"attrs", values},
         {"scratch", scratchBytes},
         {"range", range},
         {"counts_later", countsLater}};
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace tressel::runtime
