// First values of parameters.
#include "frontend/tensor/Convert.h"
#include "frontend/tensor/Random.h"
#include "frontend/tensor/Make.h"

#include <tressel/init.h>
#include <tressel/random.h>

#include <algorithm>
#include <cmath>

namespace tressel::nn::init {
namespace {

struct Fans {
  double in = 1, out = 1;
};
Fans fansOf(const Shape &shape) {
  if (shape.rank() < 2)
    return {static_cast<double>(shape.numElements()), static_cast<double>(shape.numElements())};
  if (shape.rank() == 2)
    return {static_cast<double>(shape[0]), static_cast<double>(shape[1])};
  double window = 1;
  for (int i = 2; i < shape.rank(); ++i)
    window *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

/// Random values whose deviation depends on the shape.
template <typename Deviation> Initializer scaled(bool isNormal, Deviation deviation) {
  return [=](const Shape &shape, DType dtype, uint64_t seed) {
    const double d = deviation(fansOf(shape));
    const double bound = d * std::sqrt(3.0); // the uniform distribution of that deviation
    return isNormal ? normal(d)(shape, dtype, seed) : rng::uniform(shape, seed, -bound, bound, dtype);
  };
}

auto glorot(double gain) {
  return [gain](const Fans &fans) { return gain * std::sqrt(2 / std::max(1.0, fans.in + fans.out)); };
}
double he(const Fans &fans) { return std::sqrt(2 / std::max(1.0, fans.in)); }
double lecun(const Fans &fans) { return std::sqrt(1 / std::max(1.0, fans.in)); }

Tensor fromDoubles(const std::vector<double> &values, const Shape &shape, DType dtype) {
  Tensor t = tressel::detail::allocateTensor({dtype, shape}, {});
  tressel::detail::convertElements(t.impl()->storage->data(), dtype, values.data(), DType::f64, t.size());
  return t;
}

/// Rows of length 1 at right angles, by Gram and Schmidt's method done twice, which is exact to rounding. There are at
/// most as many rows as columns.
void orthonormalize(std::vector<double> &m, int64_t rows, int64_t columns) {
  auto at = [&](int64_t r) { return m.data() + r * columns; };
  for (int64_t r = 0; r < rows; ++r) {
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t q = 0; q < r; ++q) {
        double dot = 0;
        for (int64_t c = 0; c < columns; ++c)
          dot += at(r)[c] * at(q)[c];
        for (int64_t c = 0; c < columns; ++c)
          at(r)[c] -= dot * at(q)[c];
      }
    double length = 0;
    for (int64_t c = 0; c < columns; ++c)
      length += at(r)[c] * at(r)[c];
    length = std::sqrt(length);
    for (int64_t c = 0; c < columns && length > 0; ++c)
      at(r)[c] /= length;
  }
}

} // namespace

Initializer constant(double value) {
  return [value](const Shape &shape, DType dtype, uint64_t) {
    return tressel::detail::filled(shape, value, dtype, {}, "init");
  };
}
Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }
Initializer normal(double deviation) {
  return [deviation](const Shape &shape, DType dtype, uint64_t seed) {
    return rng::normal(shape, seed, 0, deviation, dtype);
  };
}
Initializer truncated_normal(double deviation) {
  return [deviation](const Shape &shape, DType dtype, uint64_t seed) {
    std::vector<double> values = rng::normal(shape, seed, 0, 1).to_vector<double>();
    for (uint64_t round = 1; std::ranges::any_of(values, [](double v) { return std::fabs(v) > 2; }); ++round) {
      const std::vector<double> again =
          rng::normal(shape, tressel::detail::mixSeed(seed + round, "again"), 0, 1).to_vector<double>();
      for (size_t i = 0; i < values.size(); ++i)
        if (std::fabs(values[i]) > 2)
          values[i] = again[i];
    }
    for (double &v : values)
      v *= deviation;
    return fromDoubles(values, shape, dtype);
  };
}
Initializer uniform(double low, double high) {
  return [=](const Shape &shape, DType dtype, uint64_t seed) { return rng::uniform(shape, seed, low, high, dtype); };
}
Initializer xavier_uniform(double gain) { return scaled(false, glorot(gain)); }
Initializer xavier_normal(double gain) { return scaled(true, glorot(gain)); }
Initializer he_uniform() { return scaled(false, he); }
Initializer he_normal() { return scaled(true, he); }
Initializer lecun_normal() { return scaled(true, lecun); }

Initializer orthogonal(double gain) {
  return [gain](const Shape &shape, DType dtype, uint64_t seed) {
    if (shape.rank() < 2)
      throw ShapeError("orthogonal first values need a shape of at least 2 dimensions, not " + shape.str());
    const int64_t rows = shape.extent(0), columns = rows ? shape.numElements() / rows : 0;
    const int64_t few = std::min(rows, columns), many = std::max(rows, columns);
    std::vector<double> m = rng::normal({few, many}, seed, 0, 1).to_vector<double>();
    orthonormalize(m, few, many);
    std::vector<double> values(m.size());
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        values[static_cast<size_t>(r * columns + c)] =
            gain * m[static_cast<size_t>(rows <= columns ? r * many + c : c * many + r)];
    return fromDoubles(values, shape, dtype);
  };
}

Initializer identity() {
  return [](const Shape &shape, DType dtype, uint64_t) {
    if (shape.rank() != 2)
      throw ShapeError("an identity needs a shape of 2 dimensions, not " + shape.str());
    std::vector<double> values(static_cast<size_t>(shape.numElements()));
    for (int64_t i = 0; i < std::min(shape[0], shape[1]); ++i)
      values[static_cast<size_t>(i * shape[1] + i)] = 1;
    return fromDoubles(values, shape, dtype);
  };
}

Initializer value(Tensor value) {
  return [value](const Shape &shape, DType dtype, uint64_t) {
    if (value.type().shape != shape)
      throw ShapeError("a first value " + value.type().str() + " is given for a parameter of shape " + shape.str());
    if (value.dtype() == dtype)
      return value;
    Tensor converted = tressel::detail::allocateTensor({dtype, shape}, {});
    tressel::detail::convertElements(converted.impl()->storage->data(), dtype, value.data(), value.dtype(),
                                     value.size());
    return converted;
  };
}

} // namespace tressel::nn::init
