// Control flow for random programs: runs of their ops become bodies of branches and loops.
#pragma once

#include "test/support/RandomGraph.h"
#include "test/support/RandomOps.h"

namespace tressel::test {

/// Moves runs of neighbouring ops of @main, and of bodies made before, into bodies: a branch of `cond` (the other one
/// gives other values of the same types), the body of `while` or of `scan`, whose carried values and slices differ from
/// iteration to iteration. Conditions and counts are computed or new inputs, as are slices and first carried values. A
/// change after which the program is not harmless (Blur.h) is not made. Ops that are `wanted` in bodies are taken
/// first. Returns the number of ops with bodies.
int nestOps(RandomGraph &graph, Random &random, std::vector<mlir::Operation *> wanted = {});

} // namespace tressel::test
