// Numbers that Lower.cpp puts into instructions for Common.cpp.
#pragma once

#include <cstdint>

namespace tressel::standin::ptx {

enum class Special : uint8_t {
  Thread,
  BlockSize,
  BlockIndex,
  GridSize,
  Lane,
  Warp,
  Warps,
  ClusterRank,
  ClusterSize,
  Zero, ///< of a multiprocessor...
  One,
  LanesEqual,
  LanesLess,
  LanesLessEqual,
  LanesGreater,
  LanesGreaterEqual,
  Clock,
  WideClock,
  SharedBytes,
  DynamicSharedBytes
};

enum class Atomic : uint8_t { Add, Min, Max, And, Or, Xor, Exchange, Increment, Decrement, CompareAndSwap };

} // namespace tressel::standin::ptx
