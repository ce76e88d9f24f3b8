// NVIDIA's libraries as bidders: cuBLASLt for matrix products, cuDNN for convolutions, with what they can compute
// behind them, and for attention. They are opened where a program runs; what is compiled here is the description of the
// call, and beside it the generated kernel, which runs where the library is missing.
#pragma once

#include "codegen/cuda/loops/KernelSource.h"
#include "passes/cluster/KernelProvider.h"

#include <memory>
#include <optional>
#include <string>

namespace tressel::codegen::cuda {

inline constexpr const char *kCublasProvider = "cublaslt", *kCudnnProvider = "cudnn";
inline constexpr const char *kCudnnAttention = "cudnn.attention"; ///< a call of kCudnnProvider

/// A call of a library in place of a kernel of planRoot: JSON, the value of "library" in KernelDesc::params. cuBLASLt:
/// {"name":"cublaslt","type",
/// "batch","m","n","k","left":{"buffer","strides":[batch,m,k]},"right":{"buffer","strides":[batch,k,n]},"result","alpha","bias","residual","relu"};
/// cuDNN:
/// {"name":"cudnn","type","layout":"nchw"|"nhwc","batch","groups","in_channels","out_channels","in":[],"window":[],"out":[],"strides":[],
/// "dilations":[],"pad":[],"image","weights","result",...};
/// {"name":"cudnn.attention","type","batch","heads","groups","queries","keys","size","width","causal","scale","q","k","v",
/// "result","mask":{"buffer","by_batch","by_head","by_query"}}, groups being the heads of k and v, and a mask added
/// where there is one. Buffers are the launch's. Sizes that are symbolic stand as text (dim::spell).
std::optional<std::string> libraryCall(const KernelBody &body, llvm::StringRef provider);

/// What such a call is taken for: a share of the card's peak.
double librarySeconds(const KernelBody &body, llvm::StringRef provider, const Arch &arch);

std::unique_ptr<passes::KernelProvider> makeCublasProvider(const Arch &arch);
std::unique_ptr<passes::KernelProvider> makeCudnnProvider(const Arch &arch);

} // namespace tressel::codegen::cuda
