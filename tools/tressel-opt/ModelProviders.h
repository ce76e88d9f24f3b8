// Kernel providers with a fixed cost model, for tests of passes: their bids depend on the program alone, not on this
// machine. They make no code.
#pragma once

#include "passes/Passes.h"

namespace tressel::tools {

/// "generated" runs any ops with loop forms over one domain, or over rows of it; contractions, convolutions and windows
/// only alone. "library" runs one contraction or convolution, wants a contraction's right operand packed, and takes an
/// epilogue. "bitcode" runs a single op that has a kernel form.
passes::Providers modelProviders();

} // namespace tressel::tools
