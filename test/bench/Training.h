// Steps of training: forward, loss, gradient and update.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of the rows train.NAME.step, and of others about them; empty for other rows.
Arms trainingArms(const std::string &row);
/// Writes the step of train.resnet18.step as a package.
void exportTrainingStep(const std::string &path);

} // namespace tressel::bench
