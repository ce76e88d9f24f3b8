// NVIDIA's NCCL, opened at run time: no header or library of NVIDIA's takes part in the build. Declarations are our
// own, with the library's names and meaning ("NVIDIA Collective Communication Library", section "NCCL API", of NVIDIA's
// documentation).
//
// The library is opened when the first communicator is made, and stays open. Everything here is thread-safe.
#pragma once

#include "Driver.h"

#include <climits>
#include <cstddef>
#include <string>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// Types and numbers of the library. The numbers are those of NCCL 2.28.
namespace nccl {
using Status = int; ///< ncclResult_t
inline constexpr Status kDone = 0, kInProgress = 7;
using Comm = struct CommTag *;

struct UniqueId { ///< ncclUniqueId
  char bytes[128];
};
struct Config { ///< ncclConfig_t, as the library of 2.28 has it; later ones take it by its size and version
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 22800;
  int blocking = INT_MIN, cgaClusterSize = INT_MIN, minCtas = INT_MIN,
      maxCtas = INT_MIN; ///< INT_MIN: the library's choice
  const char *netName = nullptr;
  int splitShare = INT_MIN, trafficClass = INT_MIN;
  const char *commName = nullptr;
  int collnetEnable = INT_MIN, ctaPolicy = INT_MIN, shrinkShare = INT_MIN, nvlsCtas = INT_MIN,
      channelsPerNetPeer = INT_MIN, nvlinkCentric = INT_MIN;
};
enum Type : int { kI8 = 0, kU8 = 1, kI32 = 2, kI64 = 4, kF16 = 6, kF32 = 7, kF64 = 8, kBf16 = 9 }; // ncclDataType_t
enum Operation : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3 };                               // ncclRedOp_t
enum Shrink : int { kShrinkAborting = 1 };
} // namespace nccl

/// The functions, each with its parameters.
#define TRESSEL_NCCL_FUNCTIONS(F)                                                                                      \
  F(nccl::Status, ncclGetVersion, (int *version))                                                                      \
  F(const char *, ncclGetErrorString, (nccl::Status status))                                                           \
  F(const char *, ncclGetLastError, (nccl::Comm comm))                                                                 \
  F(nccl::Status, ncclGetUniqueId, (nccl::UniqueId * id))                                                              \
  F(nccl::Status, ncclCommInitRankConfig,                                                                              \
    (nccl::Comm * comm, int ranks, nccl::UniqueId id, int rank, nccl::Config *config))                                 \
  F(nccl::Status, ncclCommGetAsyncError, (nccl::Comm comm, nccl::Status * status))                                     \
  F(nccl::Status, ncclCommFinalize, (nccl::Comm comm))                                                                 \
  F(nccl::Status, ncclCommDestroy, (nccl::Comm comm))                                                                  \
  F(nccl::Status, ncclCommAbort, (nccl::Comm comm))                                                                    \
  F(nccl::Status, ncclCommShrink,                                                                                      \
    (nccl::Comm comm, int *lost, int count, nccl::Comm *survivors, nccl::Config *config, int flags))                   \
  F(nccl::Status, ncclAllReduce,                                                                                       \
    (const void *from, void *to, size_t count, int type, int operation, nccl::Comm comm, StreamHandle stream))         \
  F(nccl::Status, ncclReduceScatter,                                                                                   \
    (const void *from, void *to, size_t count, int type, int operation, nccl::Comm comm, StreamHandle stream))         \
  F(nccl::Status, ncclAllGather,                                                                                       \
    (const void *from, void *to, size_t count, int type, nccl::Comm comm, StreamHandle stream))                        \
  F(nccl::Status, ncclBroadcast,                                                                                       \
    (const void *from, void *to, size_t count, int type, int root, nccl::Comm comm, StreamHandle stream))              \
  F(nccl::Status, ncclSend,                                                                                            \
    (const void *from, size_t count, int type, int peer, nccl::Comm comm, StreamHandle stream))                        \
  F(nccl::Status, ncclRecv, (void *to, size_t count, int type, int peer, nccl::Comm comm, StreamHandle stream))        \
  F(nccl::Status, ncclGroupStart, ())                                                                                  \
  F(nccl::Status, ncclGroupEnd, ())

/// Those of newer versions, null where there are none.
#define TRESSEL_NCCL_NEWER_FUNCTIONS(F) F(nccl::Status, ncclCommRevoke, (nccl::Comm comm, int flags))

struct Nccl {
#define TRESSEL_NCCL_MEMBER(result, name, params) result(*name) params = nullptr;
  TRESSEL_NCCL_FUNCTIONS(TRESSEL_NCCL_MEMBER)
  TRESSEL_NCCL_NEWER_FUNCTIONS(TRESSEL_NCCL_MEMBER)
#undef TRESSEL_NCCL_MEMBER
  int version = 0; ///< 22809 for 2.28.9

  /// The library of this process, opened at the first call. Null where none serves; `why` then says what was looked for
  /// and what is wrong.
  static const Nccl *find(std::string *why = nullptr);
  /// "unhandled system error (status 2)", and what the library says besides of `comm`, which may be null.
  std::string describe(nccl::Status status, nccl::Comm comm) const;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
