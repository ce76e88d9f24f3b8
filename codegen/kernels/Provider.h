// The provider "kernels": prebuilt kernels of our own (runtime/kernels), which packages may use too.
#pragma once

#include "codegen/MatrixProduct.h"
#include "passes/KernelProvider.h"

#include <memory>

namespace tressel::kernels {

/// Also registers the kernels with the runtime.
std::unique_ptr<passes::KernelProvider> makeProvider();

/// One family's bid for a candidate of which `root` is all.
std::optional<passes::Bid> bidForProduct(const codegen::BinaryRoot &root, const passes::Candidate &candidate,
                                         llvm::ArrayRef<bool> parameterOnly);
std::optional<passes::Bid> bidForConvolution(const codegen::BinaryRoot &root, const passes::Candidate &candidate,
                                             llvm::ArrayRef<bool> parameterOnly);

/// Of ops that have the form of the kernel attention_f32 (ir/op/KernelForm.h).
std::optional<passes::Bid> bidForAttention(const passes::Candidate &candidate);

} // namespace tressel::kernels
