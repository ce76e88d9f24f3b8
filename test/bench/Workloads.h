// Programs over several devices, in the graph dialect, and the machines that they are placed on.
#pragma once

#include "DynamicSchedule.h"
#include "tressel/runtime/MachineModel.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tressel::bench {

/// On each of so many devices a chain of n x n products, each one's factor the result before it, so that none can be
/// left out; operands are parameters there. What is given back: all products, or the sum of the last one.
std::string productsOnDevices(int64_t n, int count, int devices, bool giveBack);
/// The accelerator of a published experiment with that chain of 50, whose figures it gives: 0.5627 s for the products
/// of 4000 x 4000, 2.5115 s for the copies of all results, so 11.4 TFLOP/s and 1.27 GB/s to the host.
runtime::MachineModel referenceMachine();

/// The Cholesky factorization of a matrix of tiles x tiles, its lower triangle in the host's pinned memory and back: the
/// program of docs/examples/cholesky.cpp, tiles placed block-cyclically over a grid of two rows of devices, or, for none, by the compiler. Its kernels
/// of tiles are custom ops, known after registerTileOps().
std::string cholesky(int tiles, int64_t size, int devices);
void registerTileOps();
/// The same for a scheduler that places tasks itself.
TaskGraph choleskyTasks(int tiles, int64_t size);

/// So many ops in 64 branches of elementwise and product ops of small tensors that meet at the end, none placed.
std::string branches(int64_t ops);

struct Workload {
  std::string name, machine, program;
};
/// Ten fixed ones, from independent chains to stencils and trees, placed by hand and by the compiler.
const std::vector<Workload> &workloads();

/// Four steps on one accelerator whose memory bounds them: many layers and their gradients, activations that are read again in
/// the opposite order, a network of more parameters than activations, and blocks of products with cheap ops between them.
const std::vector<Workload> &memoryWorkloads();

} // namespace tressel::bench
