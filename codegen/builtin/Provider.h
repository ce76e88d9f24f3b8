// The provider "builtin": built-in kernels of our own (runtime/kernels), which packages may use too.
#pragma once

#include "codegen/MatrixProduct.h"
#include "passes/cluster/KernelProvider.h"
#include "runtime/kernels/Element.h"

#include <memory>

namespace tressel::kernels {

/// Also registers the kernels with the runtime.
std::unique_ptr<passes::KernelProvider> makeProvider();
/// Of the same kernels, by Winograd's method: convolutions of 3 x 3 windows over images with their channels last, whose
/// results then differ by up to some 1e-4 of the largest one.
std::unique_ptr<passes::KernelProvider> makeWinogradProvider();

/// Of the types that products and convolutions have.
Element elementOf(DType type);

/// One family's bid for a candidate of which `root` is all.
std::optional<passes::Bid> bidForProduct(const codegen::BinaryRoot &root, const passes::Candidate &candidate,
                                         llvm::ArrayRef<bool> parameterOnly);
std::optional<passes::Bid> bidForConvolution(const codegen::BinaryRoot &root, const passes::Candidate &candidate,
                                             llvm::ArrayRef<bool> parameterOnly);

/// Of ops that have the form of the kernel attention_f32 (ir/op/KernelForm.h).
std::optional<passes::Bid> bidForAttention(const passes::Candidate &candidate);

} // namespace tressel::kernels
