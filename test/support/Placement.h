// Words at random about where the ops of a program are computed.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "tressel/runtime/Schedule.h"

namespace tressel::test {

/// Says of some ops of @main, and of some of its branches and loops, that the host or one of so many accelerators
/// computes them, and moves some values. What only the host can do stays as it is.
void placeAtRandom(mlir::ModuleOp module, uint64_t seed, unsigned numAccelerators);
/// Says of all of them that the device computes them, unless they say something else. Bodies move nothing then.
void placeOn(mlir::ModuleOp module, runtime::DeviceRef device);

/// Cuts some arguments of @main, and some values that it makes, over the axes of a mesh ("data=2, model=4"). `hold`:
/// some arguments lie in the ranks' memory. `ofOneRank`: the program is that of a rank, and parts are alike. `pipeline`
/// (graph::kPipelineAttr): some ops are of stages, some of these on the way back.
void cutAtRandom(mlir::ModuleOp module, uint64_t seed, llvm::StringRef mesh, bool hold = false, bool ofOneRank = false,
                 mlir::DictionaryAttr pipeline = {});

} // namespace tressel::test
