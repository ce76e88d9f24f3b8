// GPU kernels of calls of single ops, of every kind that takes them, run by the emulator with all its checks.
#pragma once

#include "codegen/loops/LoopPlan.h"
#include "codegen/cuda/emulate/Emulate.h"
#include "codegen/cuda/loops/Kernel.h"
#include "ir/interpreter/Evaluate.h"
#include "test/support/RandomOps.h"

#include <memory>
#include <string>
#include <vector>

namespace tressel::codegen::test {

/// Where a kernel comes from.
enum class GpuSource : uint8_t { Loops, Device, Product };

struct GpuCase {
  tressel::test::OpCall call;
  std::vector<op::HostTensor> inputs;
  op::interp::Evaluation want;
  cuda::Kernel kernel;
  std::shared_ptr<LoopPlan> plan; ///< what the kernel may refer to
  GpuSource source = GpuSource::Loops;
  std::string str() const;
};

/// The kernels for a call, whose symbols begin with `symbol`; loops as they are chosen, and in one of several other
/// ways, by `number`.
std::vector<GpuCase> gpuCasesOf(const tressel::test::OpCall &call, const std::string &symbol, int number,
                                const cuda::Arch &arch);
/// What is wrong with what the kernel gives for the inputs, or "". Throws what the emulator finds.
std::string problemOf(const GpuCase &each, const cuda::EmulatedModule &module);

} // namespace tressel::codegen::test
