#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Element.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tressel::op::interp {
namespace {

/// Maps floats to integers in the same order: neighbours differ by one, and both zeros are 0.
int64_t ordinal(const HostTensor &t, int64_t position) {
  auto signedMagnitude = [](uint64_t bits, int width) {
    const uint64_t sign = uint64_t(1) << (width - 1);
    const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
    return bits & sign ? -magnitude : magnitude;
  };
  switch (sizeOf(t.type.dtype)) {
  case 2: return signedMagnitude(t.as<uint16_t>()[position], 16);
  case 4: return signedMagnitude(t.as<uint32_t>()[position], 32);
  default: return signedMagnitude(t.as<uint64_t>()[position], 64);
  }
}

bool equal(const HostTensor &got, const HostTensor &want, int64_t position, const Tolerance &tolerance) {
  const Element a = load(got, position), b = load(want, position);
  if (!a.isFloat)
    return a.i == b.i;
  if (a.f != a.f || b.f != b.f)
    return a.f != a.f && b.f != b.f;
  if (a.f == b.f)
    return true;
  if (std::isinf(a.f) || std::isinf(b.f))
    return false;
  if (std::abs(a.f - b.f) <= tolerance.atol + tolerance.rtol * std::abs(b.f))
    return true;
  // Unsigned, since ordinals of f64 with opposite signs differ by more than i64 holds.
  const int64_t x = ordinal(got, position), y = ordinal(want, position);
  const uint64_t apart = x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                               : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
  return apart <= static_cast<uint64_t>(tolerance.ulps);
}

std::string text(Element value) {
  if (!value.isFloat)
    return std::to_string(value.i);
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value.f);
  return buffer;
}

} // namespace

Tolerance looseTolerance(DType type) {
  switch (type) {
  case DType::f64: return {.rtol = 1e-10, .atol = 1e-11};
  case DType::f32: return {.rtol = 2e-4, .atol = 2e-5};
  case DType::f16: return {.rtol = 2e-2, .atol = 4e-3};
  case DType::bf16: return {.rtol = 1e-1, .atol = 4e-2};
  default: return {};
  }
}

std::string compare(const HostTensor &got, const HostTensor &want, const Tolerance &tolerance) {
  if (got.type != want.type)
    return "the type is " + got.type.str() + ", expected " + want.type.str();
  int64_t differing = 0, first = -1;
  double largest = 0;
  const int64_t count = want.type.shape.numElements();
  for (int64_t i = 0; i < count; ++i) {
    if (equal(got, want, i, tolerance))
      continue;
    if (differing++ == 0)
      first = i;
    largest = std::fmax(largest, std::abs(load(got, i).as<double>() - load(want, i).as<double>()));
  }
  if (!differing)
    return "";
  Shape index = want.type.shape;
  int64_t rest = first;
  for (int d = index.rank() - 1; d >= 0; --d) {
    const int64_t size = index[d].number();
    index[d] = rest % size;
    rest /= size;
  }
  return "at " + index.str() + " of " + want.type.str() + ": got " + text(load(got, first)) + ", expected " +
         text(load(want, first)) + "; " + std::to_string(differing) + " of " + std::to_string(count) +
         " elements differ, by at most " + text(largest);
}

} // namespace tressel::op::interp
