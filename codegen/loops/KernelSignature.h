// Which buffers and sizes of its launch a generated kernel works on.
#pragma once

#include "codegen/loops/LoopPlan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tressel::codegen {

/// Units that a library kernel gives its epilogue: unit u covers rows [u * block, min((u + 1) * block, rows)).
struct UnitRows {
  Size rows = 1, block = 1;
};

/// What the function reads and writes: buffers[operand i of the plan] is args->buffers[operands[i]].
struct KernelSignature {
  std::string symbol;
  std::vector<int32_t> operands; ///< empty: operand i is buffer i
  std::optional<UnitRows> rows;  ///< an epilogue: the library's units instead of the schedule's
  std::vector<Size> symbols;     ///< whose values are args->scalars, in this order
};

} // namespace tressel::codegen
