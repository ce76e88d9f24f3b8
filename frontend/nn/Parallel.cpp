#include "frontend/tensor/Fail.h"

#include <tressel/parallel.h>

namespace tressel::parallel {

void shard_each(const std::vector<std::pair<std::string, Variable>> &variables, const MeshAxis &axis,
                int64_t least_bytes, std::source_location where) {
  if (axis.size < 1)
    detail::fail<Error>("Variables are to be cut along '" + axis.name + "' of " + std::to_string(axis.size),
                        detail::toLoc(where), "shard_each", "an axis has a size from 1");
  for (const auto &[name, variable] : variables) {
    std::string words;
    bool isCut = false;
    const bool isSmall = variable.type(where).bytes() < least_bytes;
    for (const Size &size : variable.shape(where)) {
      const bool cuts = !isCut && !isSmall && size.isNumber() && size.number() % axis.size == 0;
      words += (words.empty() ? "" : ", ") + (cuts ? axis.name : std::string("-"));
      isCut |= cuts;
    }
    variable.shard(isCut ? words : "", where);
  }
}

} // namespace tressel::parallel
