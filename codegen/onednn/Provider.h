// oneDNN's bids for clusters: matrix products and convolutions of f32, of static and symbolic sizes.
#pragma once

#include "passes/cluster/KernelProvider.h"

#include <memory>

namespace tressel::onednn {

/// Whether this process has oneDNN. An empty library may stand for it, where a program that is linked with it is
/// carried to another machine.
bool isThere();
/// Also registers the kernels with the runtime.
std::unique_ptr<passes::KernelProvider> makeProvider();

} // namespace tressel::onednn
