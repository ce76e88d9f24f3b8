#include "frontend/stablehlo/OpTable.h"

#include "frontend/stablehlo/OpImporter.h"

#include <algorithm>
#include <map>

namespace tressel::stablehlo {

static void importRenamed(OpImporter &n) {
  const auto entry = std::ranges::find(renamedOps(), n.name(), &Renamed::name);
  const op::OpInfo *info = op::findOp(entry->ours);
  n.wantInputs(info ? static_cast<int>(info->operands.size()) : n.numInputs());
  for (int i = 1; i < n.numInputs(); ++i)
    n.sameElementType(n.in(0), n.in(i));
  n.out(0, n.emit(entry->ours, n.inputs(0, n.numInputs())));
}

ImportFn findImporter(std::string_view name) {
  static const auto table = [] {
    std::map<std::string_view, ImportFn> map;
    for (const Renamed &entry : renamedOps())
      map[entry.name] = importRenamed;
    for (auto family : {elementwiseOps, shapeOps, reductionOps, linearOps, indexingOps, orderingOps})
      for (const OpEntry &entry : family())
        map[entry.name] = entry.import;
    return map;
  }();
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

} // namespace tressel::stablehlo
