// Predicted times of work and transfers on a machine, from its model. Placement and ordering both take their costs from
// here.
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
  /// The index of `device` in `devices`; nothing if the machine lacks it.
  std::optional<unsigned> indexOf(runtime::DeviceRef device) const;

  /// The engine that executes a device's streams of a kind: a number below `numEngines`.
  unsigned engine(unsigned device, runtime::StreamKind kind) const {
    return engines[device * runtime::kNumStreamKinds + static_cast<size_t>(kind)];
  }
  unsigned numEngines() const { return engineCount; }

  /// Seconds of a launch, of a rank's part of a collective, or of an op with bodies, on a device. A `while` counts as
  /// one iteration.
  double seconds(mlir::Operation *work, unsigned device);

  /// Figures of a copy from one memory to another. `pageable`: its end on the host is not pinned.
  struct Transfer {
    /// The latency; and the whole copy, latency included, when no other transfer is active.
    double latency = 0, seconds = 0;
    double rate = 0;                ///< bytes per second when no other transfer is active
    unsigned engine = 0;            ///< the engine that copies
    llvm::ArrayRef<uint32_t> links; ///< the links whose bandwidth it shares: indices into `capacities`
  };
  /// Nothing if there is no route.
  std::optional<Transfer> transfer(unsigned from, unsigned to, int64_t bytes, bool pageable) const;
  /// Seconds of a copy within one memory, which both reads and writes that memory.
  double copySeconds(unsigned device, int64_t bytes) const {
    return all[device]->commandSeconds + 2 * static_cast<double>(bytes) / all[device]->bytesPerSecond;
  }
  /// Bytes per second of each resource that concurrent transfers share: links, then the memories of `devices`.
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
