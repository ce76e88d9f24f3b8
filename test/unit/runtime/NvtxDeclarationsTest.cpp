// Our declarations of NVTX against its own headers, where they are installed.
#include <gtest/gtest.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include "runtime/cuda/Nvtx.h"

#include <cstddef>
#include <nvtx3/nvToolsExt.h>

namespace tressel::runtime::cuda {
namespace {

TEST(NvtxDeclarations, AreThoseOfItsHeaders) {
  EXPECT_EQ(NvtxAttributes().version, NVTX_VERSION);
  EXPECT_EQ(NvtxAttributes().bytes, NVTX_EVENT_ATTRIB_STRUCT_SIZE);
  EXPECT_EQ(sizeof(NvtxAttributes), sizeof(nvtxEventAttributes_t));
  EXPECT_EQ(offsetof(NvtxAttributes, messageKind), offsetof(nvtxEventAttributes_t, messageType));
  EXPECT_EQ(offsetof(NvtxAttributes, message), offsetof(nvtxEventAttributes_t, message));
  EXPECT_EQ(NvtxAttributes().messageKind, NVTX_MESSAGE_TYPE_ASCII);
  EXPECT_EQ(static_cast<int>(NvtxCore2::DomainRangePush), NVTX_CBID_CORE2_DomainRangePushEx);
  EXPECT_EQ(static_cast<int>(NvtxCore2::DomainRangePop), NVTX_CBID_CORE2_DomainRangePop);
  EXPECT_EQ(static_cast<int>(NvtxCore2::DomainCreate), NVTX_CBID_CORE2_DomainCreateA);
  EXPECT_EQ(static_cast<int>(NvtxCore2::Count), NVTX_CBID_CORE2_SIZE);
  EXPECT_EQ(static_cast<int>(NvtxCuda::NameStream), NVTX_CBID_CUDA_NameCuStreamA);
  EXPECT_EQ(static_cast<int>(NvtxCuda::Count), NVTX_CBID_CUDA_SIZE);
  EXPECT_EQ(offsetof(NvtxCallbacks, functionsOf), offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
  EXPECT_EQ(offsetof(NvtxVersion, version), offsetof(NvtxExportTableVersionInfo, version));
  EXPECT_EQ(offsetof(NvtxVersion, set), offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
}

} // namespace
} // namespace tressel::runtime::cuda

#else
TEST(NvtxDeclarations, AreThoseOfItsHeaders) { GTEST_SKIP() << "NVTX's headers are not installed"; }
#endif
