// Names of the Python array API standard for functions that have other names here; docs/names.md has the list. Shapes,
// element types and errors are those of the functions behind them.
#pragma once

#include <tressel/ops.h>

namespace tressel {

inline Tensor subtract(Arg a, Arg b) { return sub(std::move(a), std::move(b)); }
inline Tensor multiply(Arg a, Arg b) { return mul(std::move(a), std::move(b)); }
inline Tensor divide(Arg a, Arg b) { return div(std::move(a), std::move(b)); }
inline Tensor bitwise_invert(Arg x) { return bitwise_not(std::move(x)); }
inline Tensor bitwise_left_shift(Arg a, Arg b) { return left_shift(std::move(a), std::move(b)); }
inline Tensor bitwise_right_shift(Arg a, Arg b) { return right_shift(std::move(a), std::move(b)); }
inline Tensor astype(Arg x, DType dtype) { return cast(std::move(x), dtype); }
inline Tensor zeros_like(Arg x) { return full_like(std::move(x), 0); }
inline Tensor ones_like(Arg x) { return full_like(std::move(x), 1); }
inline Tensor permute_dims(Arg x, Axes axes) { return transpose(std::move(x), std::move(axes)); }
/// The last two dimensions exchanged. Throws ShapeError for less than two.
inline Tensor matrix_transpose(Arg x) { return swapaxes(std::move(x), -1, -2); }
/// Contracts the last `axes` dimensions of a with the first ones of b.
Tensor tensordot(Arg a, Arg b, int64_t axes = 2);
/// With `include_initial`, one element more along `axis`: the 0 or 1 that the totals begin with.
Tensor cumulative_sum(Arg x, int64_t axis = -1, bool include_initial = false);
Tensor cumulative_prod(Arg x, int64_t axis = -1, bool include_initial = false);

} // namespace tressel
