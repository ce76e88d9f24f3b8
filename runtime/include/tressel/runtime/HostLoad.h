// How far this machine is from what it was when it was calibrated.
#pragma once

#include "tressel/runtime/MachineModel.h"

#include <optional>
#include <span>
#include <string>

namespace tressel::runtime {

/// What a fixed piece of work took: arithmetic in registers, and 16 MiB read once, by each of some threads at the same time.
struct PieceTime {
  double seconds = 0; ///< on the slowest thread, the mean over several time slices of the scheduler
  double share = 1;   ///< of this time the threads had a core: less than 1 where other processes want the cores too
};

/// Measures it, in some 50 ms. `threads`: from 1.
PieceTime timePiece(int threads);

/// One sentence on how far `now` is from calibration (DeviceModel::pieceSeconds). Nothing for a machine that is about as fast as then, or was
/// never calibrated.
std::optional<std::string> describeLoad(const DeviceModel &cpu, const PieceTime &now);
/// One sentence where other processes wanted the cores while the machine was calibrated; `times` were taken before, meanwhile and after. Nothing where
/// the threads had their cores.
std::optional<std::string> describeBusyCalibration(std::span<const PieceTime> times);

} // namespace tressel::runtime
