// Programs for the ranks of a mesh (Schedule.h): their symbols, and the program of all ranks for one process.
//
//   mesh data = 4, tensor = 2        rank 5 has coordinates data 2, tensor 1
//   a collective over "data"         of ranks 1, 3, 5, 7 on rank 5: those with tensor 1
//
// All ranks run the same calls in the same order, with the same values of `dims`, and prepare together: what starts the program of each rank
// sees to that.
#pragma once

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Schedule.h"

#include <span>

namespace tressel::runtime {

/// The coordinate of the rank along the axis as a size, "rank.data", from 0 to the axis's size - 1 (of a symbol: to its upper bound - 1); the
/// number 0 for an axis of one.
Size rankSymbol(const MeshAxis &axis);

/// Ranks of a mesh, or of those of its axes; the sizes must be numbers.
int64_t numRanks(std::span<const MeshAxis> mesh);
int64_t numRanks(std::span<const MeshAxis> mesh, std::span<const uint32_t> axes);

/// Binds what `rank` has for coordinates. `values` has the sizes of axes that are symbols. Throws Error when there is no such rank.
void bindRank(dim::Values &values, std::span<const MeshAxis> mesh, int64_t rank);

/// The schedule with the sizes of its mesh and the coordinates of one rank as numbers; `values` gives the axes whose size is a symbol. Other symbols (`dims`) stay. What a rank runs, and what `simulate` predicts. What depends on
/// the rank can no longer be seen in it: that ranks decide alike is proved of `schedule`, the sizes and places of this rank of the result.
Schedule scheduleOfRank(const Schedule &schedule, int64_t rank, const dim::Values &values = {});

/// The program of all ranks in one process, with explicit groups: each rank on accelerators of its own (of rank r those from r times as many
/// as a rank uses), all on the same hosts. Inputs, outputs and states are those of rank 0, then those of rank 1, and so on, named
/// "rank1.x"; constants, kernels and `dims` are shared. Loops with collectives over axes become one loop over all ranks. `values` as in
/// scheduleOfRank. Needs a verified schedule; the result is to be verified as any other.
///
/// Throws InputError for what one process cannot have: two members of a collective on one device (collectives of hosts), a kernel whose
/// sizes depend on the rank, a collective over axes in a branch or while, or in a loop that writes its number.
Schedule expandRanks(const Schedule &schedule, const dim::Values &values = {});

} // namespace tressel::runtime
