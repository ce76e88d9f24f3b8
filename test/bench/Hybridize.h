// Compiled against imperative calls of the networks of Models.h.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of the rows hybridize and hybridize.levels, a case for each network and batch, and of
/// hybridize.NAME.bBATCH; empty for other rows.
Arms hybridizeArms(const std::string &row);

/// For people: prints for each network and batch its name, the batch, the threads, the seconds of an imperative and of
/// a compiled call (the medians of calls in turn), and the first over the second, after both have agreed. `only` is
/// part of a case's name, "lenet.b1", say. False when some did not agree.
bool printHybridized(const std::string &only);

} // namespace tressel::bench
