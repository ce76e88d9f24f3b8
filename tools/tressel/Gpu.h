// Machines with GPUs that need not be there: what --device and --gpu name, and the code of kernels for them in
// packages.
#pragma once

#include "tools/tressel/Compiler.h"
#include "tressel/runtime/GpuCode.h"

#include <string>
#include <vector>

namespace tressel::tool {

/// What a program is compiled for.
struct TargetMachine {
  runtime::MachineModel model;
  bool hasAccelerators = false;
};
/// `device`: cpu, cuda (a server with a typical card of the first of `gpus`), sim:NAME, sim:FILE.json. `gpus`:
/// architectures, as --gpu gives them; with one, accelerators compute whatever they can. Throws UsageError and
/// InputError.
TargetMachine targetMachine(const std::string &device, const std::vector<std::string> &gpus);
/// The same in a request.
void setMachine(CompileRequest &request, const TargetMachine &machine, const std::vector<std::string> &gpus);

/// A line per architecture, and with `perKernel` one per kernel: registers, spills, shared memory.
std::string gpuTable(const std::vector<runtime::GpuCode> &codes, bool perKernel);

} // namespace tressel::tool
