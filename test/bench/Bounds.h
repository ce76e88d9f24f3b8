// What no plan for a program can beat on a machine: found from the program as it was written, before any pass has seen
// it, and from the machine's figures. No placement, order or copy of a plan is looked at, so a bad plan cannot make its
// own bound longer.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "tressel/runtime/MachineModel.h"

namespace tressel::bench {

/// Seconds, the largest of these. An op that is annotated may run on its device alone, every other one on all;
/// arithmetic counts at the rate that the best kernels reach, reading and writing memory not at all, as fusion may
/// leave it out.
///  - Arithmetic: all ops, shared among the devices without loss; and what is annotated for one device, there.
///  - Chains: each op where it takes least, behind those that it reads. Transfers do not count, as ops may be cut into
///  blocks of rows.
///  - Bytes: what annotations force over a link; and for ops without, results that reach the host and inputs that leave
///  it, at the rate of the links,
///    less what the host could compute itself in that time.
double leastSeconds(mlir::ModuleOp program, const runtime::MachineModel &machine);

} // namespace tressel::bench
