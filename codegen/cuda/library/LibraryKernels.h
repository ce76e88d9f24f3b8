// Kernels of the device library: written in C++, compiled to NVPTX bitcode when Tressel is built, specialized to a call
// here. For what is no loop nest, or needs more than one (products, convolutions, attention, sorting, running totals,
// scattering).
#pragma once

#include "codegen/Convolution.h"
#include "codegen/MatrixProduct.h"
#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/loops/Loops.h"
#include "ir/op/KernelForm.h"

#include <optional>

namespace tressel::codegen::cuda {

/// A kernel of its own for an op that names a kernel by its KernelForm ("sort_f32"). `buffers`: for each of the op's operands
/// and results the launch's buffer, or -1 where nobody reads a result. Nothing if the device library lacks it.
std::optional<Kernel> makeFormKernel(const std::string &symbol, const op::KernelForm &form,
                                     const std::vector<TensorType> &types, const std::vector<int32_t> &buffers,
                                     int numBuffers, const std::vector<Size> &symbols, const Arch &arch);

/// Attention, of which makeFormKernel makes use too: KernelForms of "attention_f32", and of "attention_f16" and
/// "attention_bf16", whose sums and softmax are in f32. Nothing for few queries, or 16-bit floats of sizes beyond 128.
std::optional<Kernel> makeAttentionKernel(const std::string &symbol, const op::KernelForm &form,
                                          const std::vector<TensorType> &types, const std::vector<int32_t> &buffers,
                                          int numBuffers, const std::vector<Size> &symbols, const Arch &arch);

/// Where the operands of a product (its left and right matrix, whichever operands of the op these are) or convolution
/// (image, weights) are among the launch's buffers.
struct RootBuffers {
  int left = 0, right = 1;
};
/// Each with an epilogue; nothing if the sizes or types do not suit. `tile`: "32", "64" or "128" instead of the
/// cheapest form; of a product also "w64", "w128" or "w256", by warpgroups (sm_90a), and "t128"
/// or "t256", in tensor memory (sm_100a), and how many blocks share a tile's depth, as a cluster (sm_90 and later).
std::optional<Kernel> makeProductKernel(const std::string &symbol, const MatrixProduct &product, DType type,
                                        const RootBuffers &buffers, const Epilogue &epilogue,
                                        const std::vector<Size> &symbols, const Arch &arch, std::string_view tile = {},
                                        int parts = 1);
std::optional<Kernel> makeConvolutionKernel(const std::string &symbol, const Convolution &convolution, DType type,
                                            const RootBuffers &buffers, const Epilogue &epilogue,
                                            const std::vector<Size> &symbols, const Arch &arch,
                                            std::string_view tile = {});

} // namespace tressel::codegen::cuda
