// oneDNN's bids for clusters: matrix products and convolutions of f32, of static and symbolic sizes.
#pragma once

#include "passes/cluster/KernelProvider.h"

#include <memory>

namespace tressel::onednn {

/// Also registers the kernels with the runtime.
std::unique_ptr<passes::KernelProvider> makeProvider();

} // namespace tressel::onednn
