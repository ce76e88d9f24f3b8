// Storage formats of operands and results; arithmetic is in f32 for all of them.
#pragma once

#include <cstdint>

namespace tressel::kernels {

enum class Element : uint8_t { F32, F16, BF16 };

static constexpr int64_t bytesOf(Element element) { return element == Element::F32 ? 4 : 2; }

} // namespace tressel::kernels
