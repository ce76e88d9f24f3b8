// The generator behind random tensors and initial values.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace tressel::detail {

/// Four random words of a key and a counter (Philox 4x32-10).
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter);
/// A key for what `name` names, under a seed.
uint64_t mixSeed(uint64_t seed, std::string_view name);
/// Counts the random tensors of this process that were made without a seed.
std::atomic<uint64_t> &nextProcessSeed();

} // namespace tressel::detail
