// Images read from files, augmented and batched.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of the row loader.rate; empty for other rows. They read what pillow_peer.py has written into build/bench/images.
Arms loadingArms(const std::string &row);

} // namespace tressel::bench
