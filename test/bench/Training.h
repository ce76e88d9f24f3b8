// Steps of training: forward, loss, gradient and update.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of the rows train.NAME.step, and of others about them; empty for other rows.
Arms trainingArms(const std::string &row);
/// Writes the step of the row train.NAME.step as a package, for the architecture `gpu` ("sm_90") if it is not empty.
/// False: there is no such row.
/// `isBlank`: weights are NaN in the package, which then takes little room; gpu-bench fills them by their names
/// (Values.h).
bool exportTrainingStep(const std::string &row, const std::string &path, const std::string &gpu = "",
                        bool isBlank = false);

} // namespace tressel::bench
