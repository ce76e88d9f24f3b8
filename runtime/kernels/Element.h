// How the numbers of operands and results are stored; arithmetic is f32 whatever they are.
#pragma once

#include <cstdint>

namespace tressel::kernels {

enum class Element : uint8_t { F32, F16, BF16 };

static constexpr int64_t bytesOf(Element element) { return element == Element::F32 ? 4 : 2; }

} // namespace tressel::kernels
