// Elements of any type on the host, one at a time or in rows: for reading, printing and building tensors.
#pragma once

#include "tressel/runtime/Types.h"

#include <cstdint>

namespace tressel::detail {

double loadDouble(const void *data, DType type, int64_t index);
/// Floats are truncated.
int64_t loadInt(const void *data, DType type, int64_t index);
/// As static_cast does between the C++ types; anything to bool is != 0; f16 and bf16 round to nearest even.
void convertElements(void *to, DType toType, const void *from, DType fromType, int64_t count);

} // namespace tressel::detail
