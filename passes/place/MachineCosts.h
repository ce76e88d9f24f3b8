// What work and transfers take on a machine, by its model: the one place where placement and order get their prices.
#pragma once

#include "passes/Util.h"

#include "ir/graph/Structure.h"

#include "tressel/runtime/MachineModel.h"

namespace tressel::passes {

class MachineCosts {
public:
  /// `machine` outlives it.
  explicit MachineCosts(const runtime::MachineModel &machine);

  /// The devices that a program may use: the host, then the accelerators. Other hosts are other processes.
  llvm::ArrayRef<const runtime::DeviceModel *> devices() const { return all; }
  /// Its place among `devices`; nothing if the machine lacks it.
  std::optional<unsigned> indexOf(runtime::DeviceRef device) const;

  /// The engine of the machine that works on a device's streams of a kind: a number below `numEngines`.
  unsigned engine(unsigned device, runtime::StreamKind kind) const {
    return engines[device * runtime::kNumStreamKinds + static_cast<size_t>(kind)];
  }
  unsigned numEngines() const { return engineCount; }

  /// Of a launch, of a rank's part of a collective, or of an op with bodies: a `while` counts as one that runs its body
  /// once.
  double seconds(mlir::Operation *work, unsigned device);

  /// How a copy goes from one memory to another. `pageable`: its end on the host is not pinned.
  struct Transfer {
    double latency = 0, seconds = 0; ///< the latency, and all of it where nothing else moves
    double rate = 0;                 ///< then, in bytes per second
    unsigned engine = 0;             ///< that copies
    llvm::ArrayRef<uint32_t> links;  ///< that it takes a share of: indices into `capacities`
  };
  /// Nothing where no route leads there.
  std::optional<Transfer> transfer(unsigned from, unsigned to, int64_t bytes, bool pageable) const;
  /// Of a copy within one memory, which reads and writes it.
  double copySeconds(unsigned device, int64_t bytes) const {
    return all[device]->commandSeconds + 2 * static_cast<double>(bytes) / all[device]->bytesPerSecond;
  }
  /// What all transfers at one time share, in bytes per second: links, then the memories of `devices`.
  llvm::ArrayRef<double> capacities() const { return capacity; }
  size_t numLinks() const { return capacity.size() - all.size(); }

private:
  double kernelSeconds(graph::LaunchOp launch, graph::KernelOp kernel, const runtime::DeviceModel &model) const;
  double collectiveSeconds(mlir::Operation *op, unsigned device) const;
  double bodySeconds(mlir::Region &body, unsigned device);

  const runtime::MachineModel &machine;
  llvm::SmallVector<const runtime::DeviceModel *> all;
  struct Route {
    bool exists = false;
    double latency = 0, pinned = 0, pageable = 0; ///< seconds, bytes per second
    llvm::SmallVector<uint32_t, 4> links;
  };
  std::vector<Route> routes; ///< by from and to
  llvm::SmallVector<double> capacity;
  std::vector<unsigned> engines; ///< by device and kind of stream
  unsigned engineCount = 0;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<std::pair<mlir::Attribute, unsigned>, double> ofKernel;
};

} // namespace tressel::passes
