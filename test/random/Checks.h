// What is done to a random program before its results are compared with the interpreter's.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "test/support/ScheduleMutations.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tressel::test {

/// Computes the outputs of a program, which it may consume; the error is one line, "" if fine.
using Check = std::function<std::string(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
                                        std::vector<op::HostTensor> &outputs)>;

/// Folds, canonicalizes and merges equal ops, then interprets.
Check simplifies();
/// Compiles for this machine and runs the executable; `quick` as CompileOptions::quickCode.
Check compiles(bool allowLibrary, bool quick);
/// What became of programs on accelerators that have less memory than they would like.
struct MemoryCoverage {
  int64_t programs = 0, changed = 0, refused = 0;        ///< refused: times that an op alone was too large
  int64_t out = 0, back = 0, repeated = 0, streamed = 0; ///< copies, launches, parameters
  std::string str() const;
};
/// Places ops at random on the devices of simulated machines, some of which have slow links, and runs the program there
/// in an order that its waits allow, with all the checks that these machines have. With a tally, mistakes are made in the
/// schedule as well, and the verifier has to refuse them. With `memory`, half of the programs of fixed sizes have as little
/// as a third of the memory that they take where there is enough.
Check runsOnDevices(MutationTally *tally = nullptr, MemoryCoverage *memory = nullptr);

/// Cuts the program at random over a mesh of two, three or four accelerators of a simulated machine, and runs it there as above; with a tally, mistakes are
/// made in the schedule as well.
Check runsInParts(MutationTally *tally = nullptr);

struct RankCoverage {
  int64_t programs = 0, cut = 0, collectives = 0; ///< cut: arguments and results of which ranks have parts
  int64_t uneven = 0;                             ///< programs that were left out, as parts would differ in size
  std::string str() const;
};
/// The same as programs of one rank: that of a mesh is compiled, put together for all ranks, and run on accelerators of
/// a simulated machine.
Check runsAsRanks(RankCoverage *coverage = nullptr);

/// Which kernels ran where in programs compiled for a GPU.
struct GpuCoverage {
  int64_t programs = 0, kernels = 0, onHost = 0; ///< of accelerators, of the host
  std::map<std::string, int64_t> hostOps;        ///< ops of kernels of the host, as their symbols name them
  std::string str() const;
};
/// Compiles for a machine with one GPU, whose kernels are emulated, and runs the program there with all checks of
/// simulated machines; or on this computer's first card, three times.
Check runsOnGpu(GpuCoverage *coverage = nullptr, bool onCard = false);

} // namespace tressel::test
