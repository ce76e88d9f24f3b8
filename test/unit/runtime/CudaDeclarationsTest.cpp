// Our declarations of NVIDIA's driver against its own header, where that is installed: each function has as many parameters, of the same sizes and kinds, and each structure the same
// layout. The product never includes it.
#include <gtest/gtest.h>

#if __has_include(<cuda.h>) && __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>

// cuda.h renames functions by macros, so the members of Driver have other names here.
#include "runtime/cuda/Driver.h"

#include <cstddef>
#include <type_traits>

namespace tressel::runtime::cuda {
namespace {

/// Handles and addresses have types of their own on both sides.
template <typename A, typename B> constexpr bool isAlike() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> && std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}
template <typename... A, typename R, typename... B> constexpr bool agree(Result (*)(A...), R (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B))
    return sizeof(R) == sizeof(Result) && (isAlike<A, B>() && ...);
  else
    return false;
}

// cuGetProcAddress, asked for version 12.0, gives the first form of this one.
static_assert(agree(decltype(Driver::cuGraphGetEdges)(nullptr), PFN_cuGraphGetEdges_v10000(nullptr)));

#define TRESSEL_SAME(ours, member, theirs, other)                                                                                          \
  static_assert(offsetof(ours, member) == offsetof(theirs, other) && sizeof(ours::member) == sizeof(theirs::other))
TRESSEL_SAME(KernelNodeParams, function, CUDA_KERNEL_NODE_PARAMS_v2, func);
TRESSEL_SAME(KernelNodeParams, gridX, CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
TRESSEL_SAME(KernelNodeParams, blockX, CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
TRESSEL_SAME(KernelNodeParams, sharedBytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
TRESSEL_SAME(KernelNodeParams, params, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
TRESSEL_SAME(KernelNodeParams, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);
TRESSEL_SAME(FillNodeParams, to, CUDA_MEMSET_NODE_PARAMS_v1, dst);
TRESSEL_SAME(FillNodeParams, value, CUDA_MEMSET_NODE_PARAMS_v1, value);
TRESSEL_SAME(FillNodeParams, elementBytes, CUDA_MEMSET_NODE_PARAMS_v1, elementSize);
TRESSEL_SAME(FillNodeParams, height, CUDA_MEMSET_NODE_PARAMS_v1, height);
static_assert(offsetof(MemoryPoolProps, location) == offsetof(CUmemPoolProps, location));
static_assert(sizeof(MemoryPoolProps) == sizeof(CUmemPoolProps));
static_assert(offsetof(MemoryPoolProps, maxBytes) == offsetof(CUmemPoolProps, maxSize) && offsetof(MemoryPoolProps, device) == offsetof(CUmemPoolProps, location) + 4);
TRESSEL_SAME(CopyNodeParams, width, CUDA_MEMCPY3D_v2, WidthInBytes);
TRESSEL_SAME(CopyNodeParams, depth, CUDA_MEMCPY3D_v2, Depth);
static_assert(offsetof(CopyNodeParams, from) + offsetof(CopyNodeEnd, address) == offsetof(CUDA_MEMCPY3D_v2, srcDevice));
static_assert(offsetof(CopyNodeParams, from) + offsetof(CopyNodeEnd, type) == offsetof(CUDA_MEMCPY3D_v2, srcMemoryType));
static_assert(offsetof(CopyNodeParams, to) + offsetof(CopyNodeEnd, address) == offsetof(CUDA_MEMCPY3D_v2, dstDevice));
static_assert(offsetof(CopyNodeParams, to) + offsetof(CopyNodeEnd, height) == offsetof(CUDA_MEMCPY3D_v2, dstHeight));
static_assert(sizeof(KernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2) && sizeof(FillNodeParams) == sizeof(CUDA_MEMSET_NODE_PARAMS_v1) &&
              sizeof(CopyNodeParams) == sizeof(CUDA_MEMCPY3D_v2));

#if CUDA_VERSION >= 12030
static_assert(agree(decltype(Driver::cuGraphAddNode)(nullptr), PFN_cuGraphAddNode_v12020(nullptr)));
static_assert(agree(decltype(Driver::cuGraphConditionalHandleCreate)(nullptr), PFN_cuGraphConditionalHandleCreate_v12030(nullptr)));
static_assert(sizeof(NodeParams) == sizeof(CUgraphNodeParams) && NodeParams().type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
static_assert(offsetof(NodeParams, handle) == offsetof(CUgraphNodeParams, conditional.handle) && offsetof(NodeParams, kind) == offsetof(CUgraphNodeParams, conditional.type) &&
              offsetof(NodeParams, size) == offsetof(CUgraphNodeParams, conditional.size) && offsetof(NodeParams, bodies) == offsetof(CUgraphNodeParams, conditional.phGraph_out) &&
              offsetof(NodeParams, context) == offsetof(CUgraphNodeParams, conditional.ctx));
static_assert(CU_GRAPH_COND_TYPE_IF == 0 && CU_GRAPH_COND_TYPE_WHILE == 1);
#endif

TEST(CudaDeclarations, AreThoseOfTheDriversHeader) {
#define TRESSEL_AGREES(name, params)                                                                                                       \
  if (!std::string_view(#name).starts_with("cuGraphGetEdges")) /* checked above */                                                                                        \
    EXPECT_TRUE(agree(static_cast<Result(*) params>(nullptr), decltype(&::name)(nullptr))) << #name;
  TRESSEL_CUDA_FUNCTIONS(TRESSEL_AGREES)
#undef TRESSEL_AGREES
}

} // namespace
} // namespace tressel::runtime::cuda
#else
TEST(CudaDeclarations, AreThoseOfTheDriversHeader) { GTEST_SKIP() << "cuda.h is not installed"; }
#endif
