// Steps of training: forward, loss, gradient and update.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of the rows train.NAME.step; empty for other rows.
Arms trainingArms(const std::string &row);

} // namespace tressel::bench
