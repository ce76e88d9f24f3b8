// The generator behind random tensors and initial values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tressel::detail {

/// Four random words of a key and a counter (Philox 4x32-10).
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter);
/// A key for what `name` names, under a seed.
uint64_t mixSeed(uint64_t seed, std::string_view name);

} // namespace tressel::detail
