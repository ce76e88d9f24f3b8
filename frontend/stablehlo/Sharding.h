// Converts shardings of Shardy (JAX's dialect for how arrays lie on devices) to the text form of the graph dialect:
// `@mesh = <["data"=4, "model"=2]>` is "data=4, model=2", and [{"data", "model"}, {}] is "data+model, -".
#pragma once

#include "mlir/IR/Attributes.h"

#include <string>

namespace tressel::stablehlo {

/// Of a mesh's attribute (`#sdy.mesh<["data"=4, "model"=2]>`); "" for a mesh without axes. Throws OpUnsupported for
/// meshes that list their devices in another order, and for what is not a mesh.
std::string meshText(mlir::Attribute mesh);

struct ShardingText {
  std::string mesh;  ///< the name of the mesh
  std::string words; ///< one per dimension; empty where the annotation leaves everything open
};
/// Of a tensor's attribute (`#sdy.sharding<@mesh, [{"data"}, {?}]>`), which must have `rank` dimensions. An axis that is
/// open to more (`?`) is cut along what it names. Throws OpUnsupported for parts of axes and for sums that are not
/// finished (`unreduced`).
ShardingText shardingText(mlir::Attribute sharding, size_t rank);

} // namespace tressel::stablehlo
