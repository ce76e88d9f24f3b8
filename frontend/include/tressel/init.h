// How parameters get their first values.
#pragma once

#include <tressel/tensor.h>

#include <cstdint>
#include <functional>

namespace tressel::nn {

/// Makes a parameter's first value, which is the same for the same shape, type and seed on every machine. May be any
/// function.
using Initializer = std::function<Tensor(const Shape &shape, DType dtype, uint64_t seed)>;

/// Fans: a matrix [in, out] has fan in `in`; a window [out, in, size...] has in times the window's elements.
namespace init {
Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer normal(double deviation = 1);
/// Normal, and drawn again beyond two deviations.
Initializer truncated_normal(double deviation = 1);
Initializer uniform(double low, double high);
/// Glorot and Bengio 2010: variance gain^2 * 2 / (fan in + fan out).
Initializer xavier_uniform(double gain = 1);
Initializer xavier_normal(double gain = 1);
/// He et al. 2015, for relu: variance 2 / fan in. Others call it Kaiming's.
Initializer he_uniform();
Initializer he_normal();
/// LeCun et al. 1998: variance 1 / fan in.
Initializer lecun_normal();
/// Orthogonal rows or columns, whichever are fewer, of length `gain` (Saxe et al. 2014). Dimensions after the first
/// count as one.
Initializer orthogonal(double gain = 1);
/// 1 on the diagonal of a matrix, else 0.
Initializer identity();
/// This value, whatever the seed. Throws ShapeError when the shape is another.
Initializer value(Tensor value);
} // namespace init

} // namespace tressel::nn
