// Our declarations of NVIDIA's NCCL against its own header, where that is installed. The product never includes it.
#include <gtest/gtest.h>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime_api.h>)
#include "runtime/cuda/Nccl.h"

#include <nccl.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace tressel::runtime::cuda {
namespace {

/// Enumerators, handles, structures and addresses have types of their own on both sides.
template <typename A, typename B> constexpr bool isAlike() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
}
template <typename R, typename... A, typename S, typename... B> constexpr bool agree(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B))
    return isAlike<R, S>() && (isAlike<A, B>() && ...);
  else
    return false;
}

#define TRESSEL_SAME(ours, theirs) static_assert(static_cast<int>(nccl::ours) == static_cast<int>(theirs))
TRESSEL_SAME(kDone, ncclSuccess);
TRESSEL_SAME(kInProgress, ncclInProgress);
TRESSEL_SAME(kI8, ncclInt8);
TRESSEL_SAME(kU8, ncclUint8);
TRESSEL_SAME(kI32, ncclInt32);
TRESSEL_SAME(kI64, ncclInt64);
TRESSEL_SAME(kF16, ncclFloat16);
TRESSEL_SAME(kF32, ncclFloat32);
TRESSEL_SAME(kF64, ncclFloat64);
TRESSEL_SAME(kBf16, ncclBfloat16);
TRESSEL_SAME(kSum, ncclSum);
TRESSEL_SAME(kProduct, ncclProd);
TRESSEL_SAME(kMax, ncclMax);
TRESSEL_SAME(kMin, ncclMin);
TRESSEL_SAME(kShrinkAborting, NCCL_SHRINK_ABORT);
#undef TRESSEL_SAME

TEST(NcclDeclarations, AreThoseOfTheLibrarysHeader) {
#define TRESSEL_AGREES(result, name, params)                                                                           \
  EXPECT_TRUE(agree(static_cast<result(*) params>(nullptr), decltype (&::name)(nullptr))) << #name;
  TRESSEL_NCCL_FUNCTIONS(TRESSEL_AGREES)
#if NCCL_VERSION_CODE >= 22809
  TRESSEL_NCCL_NEWER_FUNCTIONS(TRESSEL_AGREES)
#endif
#undef TRESSEL_AGREES
}

TEST(NcclDeclarations, AConfigurationIsThatOfTheHeader) {
  nccl::Config ours;
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_LE(sizeof ours, sizeof theirs); // later versions only add to it
  ours.size = theirs.size;
  ours.version = theirs.version;
  EXPECT_EQ(std::memcmp(&ours, &theirs, offsetof(nccl::Config, nvlinkCentric) + sizeof(int)), 0);
  EXPECT_EQ(offsetof(nccl::Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(offsetof(nccl::Config, commName), offsetof(ncclConfig_t, commName));
  EXPECT_EQ(offsetof(nccl::Config, nvlinkCentric), offsetof(ncclConfig_t, nvlinkCentricSched));
}

} // namespace
} // namespace tressel::runtime::cuda
#else
TEST(NcclDeclarations, AreThoseOfTheLibrarysHeader) { GTEST_SKIP() << "nccl.h is not installed"; }
#endif
