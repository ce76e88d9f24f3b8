// A machine that is described by figures alone, with accelerators that are not there: their kernels are computed by the
// processor, on memory of their own, and time is virtual (CommandLog.h). What it computes is what a real machine would;
// how long that takes is as true as the figures are.
//
// It is also where mistakes are found. A schedule that lacks a wait runs on it in any order that its waits allow; reads
// of bytes that were never written, or whose memory was released, can be made to show; so can accesses that a kernel
// did not declare; and failures can be injected.
#pragma once

#include "tressel/runtime/CommandLog.h"

#include <optional>

namespace tressel::runtime {

struct SimulatedOptions {
  /// False: nothing is computed, memory takes no space, sizes may be any; only times are right.
  bool computes = true;
  /// Commands run one at a time in an order that this seed chooses among those that the waits allow; else as given.
  std::optional<uint64_t> interleaving;
  /// An access that no wait orders behind an earlier one of the same bytes, one of which writes, is a failure, whatever
  /// order was run: one run finds what any order of its commands could do wrong. So is reading what was never written.
  bool checkRaces = false;
  /// Memory that is allocated, released or about to be overwritten holds NaNs (all bits set).
  bool poison = false;
  /// Kernels work on copies of their operands with guards around them: writing beyond an operand or into one that is
  /// only read is a failure, and what is read beyond one, or from one that is only written, is NaNs.
  bool isolate = false;
  /// Sums over both ends of each copy are compared.
  bool checkCopies = false;
};

/// Something that goes wrong, once.
struct Fault {
  enum class Kind : uint8_t {
    LaunchFails,   ///< a kernel of the device is not taken
    OutOfMemory,   ///< an allocation of the device fails
    DeviceLost,    ///< at a command of the device: it and all later ones fail, its memory is lost, until Device::reset
    CopyCorrupted, ///< a bit of a copy on a stream of the device arrives wrong
    Hangs,         ///< a command of the device never ends
  };
  Kind kind = Kind::LaunchFails;
  DeviceRef device;
  uint64_t after = 0; ///< so many of what it says go well first
};

class SimulatedMachine : public Machine {
public:
  static std::shared_ptr<SimulatedMachine> create(MachineModel model, const SimulatedOptions &options = {});

  virtual const SimulatedOptions &options() const = 0;
  /// Between calls.
  virtual void setOptions(const SimulatedOptions &options) = 0;
  /// What virtual time is computed with: slow links, a truth that plans do not know.
  virtual void setTime(const VirtualTimeOptions &options) = 0;
  virtual void inject(const Fault &fault) = 0;
};

} // namespace tressel::runtime
