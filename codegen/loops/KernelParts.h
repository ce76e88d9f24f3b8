// The nests of a kernel: most kernels are one loop nest; small updates of many parameters are one kernel of several.
#pragma once

#include "codegen/loops/LoopPlan.h"

#include <optional>
#include <string>
#include <vector>

namespace tressel::codegen {

/// One of the nests of a kernel. Its ops read nothing that those of the others make.
struct KernelPart {
  LoopPlan plan;
  std::vector<int32_t> operands; ///< KernelSignature::operands of the plan; empty where it is the kernel's only nest
};

/// A nest for each set of ops that exchange values. Where one set is all there is, or sizes are symbolic, this is the one
/// nest of all ops. Nothing if the ops of a set share no nest (`why` says which rule is broken).
std::optional<std::vector<KernelPart>> planParts(const KernelGraph &graph, std::string *why = nullptr);

} // namespace tressel::codegen
