#include "frontend/tensor/Fail.h"

#include <tressel/array_names.h>

#include <numeric>

namespace tressel {

Tensor tensordot(Arg a, Arg b, int64_t axes) {
  const Tensor left = a.as_tensor();
  if (axes < 0 || axes > left.rank())
    detail::fail<ShapeError>("axes is " + std::to_string(axes) + ", and a has " + std::to_string(left.rank()) +
                                 " dimensions",
                             detail::toLoc(a.where()), "tensordot");
  std::vector<int64_t> first(static_cast<size_t>(axes)), last = first;
  std::iota(first.begin(), first.end(), 0);
  std::iota(last.begin(), last.end(), left.rank() - axes);
  return tensordot(std::move(a), std::move(b), last, first);
}

/// Appends an element: the exclusive total there is the total of all.
static Tensor totals(Tensor (*scan)(Arg, int64_t, bool, bool), const Arg &x, int64_t axis, bool includeInitial) {
  if (!includeInitial)
    return scan(x, axis, false, false);
  const Tensor t = x.as_tensor();
  if (axis < -t.rank() || axis >= t.rank())
    return scan(x, axis, false, true); // the op itself throws
  std::vector<int64_t> low(static_cast<size_t>(t.rank()), 0), high = low;
  high[static_cast<size_t>(axis < 0 ? axis + t.rank() : axis)] = 1;
  return scan(Arg(pad(x, low, high), x.where()), axis, false, true);
}
Tensor cumulative_sum(Arg x, int64_t axis, bool include_initial) { return totals(cumsum, x, axis, include_initial); }
Tensor cumulative_prod(Arg x, int64_t axis, bool include_initial) { return totals(cumprod, x, axis, include_initial); }

} // namespace tressel
