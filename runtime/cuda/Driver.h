// NVIDIA's driver, opened at run time: no header or library of the CUDA toolkit takes part in the build. The functions are those of CUDA 12.0, asked
// for by cuGetProcAddress, so newer drivers serve too; declarations are our own, with the driver's names and meaning ("CUDA Driver API" of NVIDIA's
// documentation).
//
// A Card is one GPU with its primary context, which it keeps until the process ends. Everything here is thread-safe.
#pragma once

#include "tressel/runtime/Device.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

using Result = int; ///< CUresult
inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600, kAlreadyRegistered = 712;
using Address = unsigned long long; ///< CUdeviceptr; of host memory that the driver allocated, the host's own address
using Context = struct ContextTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using StreamHandle = struct StreamTag *;
using EventHandle = struct EventTag *;
using Graph = struct GraphTag *;
using GraphExec = struct GraphExecTag *;
using GraphNode = struct GraphNodeTag *;
using MemoryPool = struct MemoryPoolTag *;

/// Structures that the driver reads, as "CUDA Driver API" lays them out.
struct KernelNodeParams { ///< CUDA_KERNEL_NODE_PARAMS_v2
  Function function = nullptr;
  unsigned gridX = 1, gridY = 1, gridZ = 1, blockX = 1, blockY = 1, blockZ = 1, sharedBytes = 0;
  void **params = nullptr, **extra = nullptr;
  void *kernel = nullptr;
  Context context = nullptr;
};
struct MemoryPoolProps { ///< CUmemPoolProps
  int allocation = 1;    ///< CU_MEM_ALLOCATION_TYPE_PINNED: memory that stays where it is
  int handles = 0;
  int location = 1, device = 0; ///< CU_MEM_LOCATION_TYPE_DEVICE
  void *security = nullptr;
  size_t maxBytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
struct FillNodeParams { ///< CUDA_MEMSET_NODE_PARAMS
  Address to = 0;
  size_t pitch = 0; ///< bytes from row to row
  unsigned value = 0, elementBytes = 1;
  size_t width = 0, height = 1; ///< elements, rows
};
struct CopyNodeEnd {
  size_t x = 0, y = 0, z = 0, lod = 0;
  unsigned type = 4; ///< CU_MEMORYTYPE_UNIFIED: any address
  const void *host = nullptr;
  Address address = 0;
  void *array = nullptr, *reserved = nullptr;
  size_t pitch = 0, height = 0;
};
struct CopyNodeParams { ///< CUDA_MEMCPY3D
  CopyNodeEnd from, to;
  size_t width = 0, height = 1, depth = 1; ///< bytes, rows, layers
};

struct alignas(128) TensorMap { ///< CUtensorMap, which only the driver and the card understand
  uint64_t opaque[16] = {};
};
struct LaunchAttribute { ///< CUlaunchAttribute
  int id = 4;            ///< CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  int pad = 0;
  struct alignas(8) Value { ///< CUlaunchAttributeValue
    unsigned x = 1, y = 1, z = 1;
    unsigned char rest[52] = {};
  } value;
};
struct LaunchConfig { ///< CUlaunchConfig
  unsigned gridX = 1, gridY = 1, gridZ = 1, blockX = 1, blockY = 1, blockZ = 1, sharedBytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute *attributes = nullptr;
  unsigned numAttributes = 0;
};
using ConditionalHandle = unsigned long long;
struct NodeParams { ///< CUgraphNodeParams, of a conditional node
  int type = 13;    ///< CU_GRAPH_NODE_TYPE_CONDITIONAL
  int reserved[3] = {};
  ConditionalHandle handle = 0;
  int kind = 0; ///< 0: if, 1: while
  unsigned size = 1;
  Graph *bodies = nullptr; ///< the driver's, set by it
  Context context = nullptr;
  long long rest[26] = {};
};

/// The functions by name, each with its parameters.
#define TRESSEL_CUDA_FUNCTIONS(F)                                                                                      \
  F(cuInit, (unsigned flags))                                                                                          \
  F(cuDriverGetVersion, (int *version))                                                                                \
  F(cuGetErrorName, (Result error, const char **text))                                                                 \
  F(cuGetErrorString, (Result error, const char **text))                                                               \
  F(cuDeviceGetCount, (int *count))                                                                                    \
  F(cuDeviceGet, (int *device, int ordinal))                                                                           \
  F(cuDeviceGetName, (char *name, int bytes, int device))                                                              \
  F(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                     \
  F(cuDeviceTotalMem, (size_t * bytes, int device))                                                                    \
  F(cuDeviceCanAccessPeer, (int *can, int device, int peer))                                                           \
  F(cuDevicePrimaryCtxRetain, (Context * context, int device))                                                         \
  F(cuCtxSetCurrent, (Context context))                                                                                \
  F(cuCtxSynchronize, ())                                                                                              \
  F(cuCtxEnablePeerAccess, (Context peer, unsigned flags))                                                             \
  F(cuMemGetInfo, (size_t * free, size_t * total))                                                                     \
  F(cuMemAlloc, (Address * memory, size_t bytes))                                                                      \
  F(cuMemFree, (Address memory))                                                                                       \
  F(cuMemPoolCreate, (MemoryPool * pool, const MemoryPoolProps *props))                                                \
  F(cuMemPoolDestroy, (MemoryPool pool))                                                                               \
  F(cuMemPoolSetAttribute, (MemoryPool pool, int attribute, void *value))                                              \
  F(cuMemPoolTrimTo, (MemoryPool pool, size_t bytes))                                                                  \
  F(cuMemAllocFromPoolAsync, (Address * memory, size_t bytes, MemoryPool pool, StreamHandle stream))                   \
  F(cuMemFreeAsync, (Address memory, StreamHandle stream))                                                             \
  F(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                                     \
  F(cuMemFreeHost, (void *memory))                                                                                     \
  F(cuMemHostRegister, (void *memory, size_t bytes, unsigned flags))                                                   \
  F(cuMemHostUnregister, (void *memory))                                                                               \
  F(cuMemcpy, (Address to, Address from, size_t bytes))                                                                \
  F(cuMemcpyAsync, (Address to, Address from, size_t bytes, StreamHandle stream))                                      \
  F(cuMemsetD8Async, (Address to, unsigned char value, size_t count, StreamHandle stream))                             \
  F(cuMemsetD16Async, (Address to, unsigned short value, size_t count, StreamHandle stream))                           \
  F(cuMemsetD32Async, (Address to, unsigned value, size_t count, StreamHandle stream))                                 \
  F(cuMemsetD2D32Async, (Address to, size_t pitch, unsigned value, size_t width, size_t height, StreamHandle stream))  \
  F(cuStreamCreate, (StreamHandle * stream, unsigned flags))                                                           \
  F(cuStreamDestroy, (StreamHandle stream))                                                                            \
  F(cuStreamSynchronize, (StreamHandle stream))                                                                        \
  F(cuStreamQuery, (StreamHandle stream))                                                                              \
  F(cuStreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags))                                       \
  F(cuStreamWaitValue32, (StreamHandle stream, Address word, unsigned value, unsigned flags))                          \
  F(cuStreamBeginCapture, (StreamHandle stream, int mode))                                                             \
  F(cuStreamEndCapture, (StreamHandle stream, Graph * graph))                                                          \
  F(cuGraphCreate, (Graph * graph, unsigned flags))                                                                    \
  F(cuGraphAddKernelNode,                                                                                              \
    (GraphNode * node, Graph graph, const GraphNode *after, size_t count, const KernelNodeParams *params))             \
  F(cuGraphKernelNodeSetAttribute, (GraphNode node, int attribute, const LaunchAttribute::Value *value))               \
  F(cuGraphAddMemcpyNode, (GraphNode * node, Graph graph, const GraphNode *after, size_t count,                        \
                           const CopyNodeParams *params, Context context))                                             \
  F(cuGraphAddMemsetNode, (GraphNode * node, Graph graph, const GraphNode *after, size_t count,                        \
                           const FillNodeParams *params, Context context))                                             \
  F(cuGraphAddEmptyNode, (GraphNode * node, Graph graph, const GraphNode *after, size_t count))                        \
  F(cuGraphGetEdges, (Graph graph, GraphNode * from, GraphNode * to, size_t * count))                                  \
  F(cuGraphExecKernelNodeSetParams, (GraphExec exec, GraphNode node, const KernelNodeParams *params))                  \
  F(cuGraphExecMemcpyNodeSetParams, (GraphExec exec, GraphNode node, const CopyNodeParams *params, Context context))   \
  F(cuGraphExecMemsetNodeSetParams, (GraphExec exec, GraphNode node, const FillNodeParams *params, Context context))   \
  F(cuGraphInstantiateWithFlags, (GraphExec * exec, Graph graph, unsigned long long flags))                            \
  F(cuGraphLaunch, (GraphExec exec, StreamHandle stream))                                                              \
  F(cuGraphExecDestroy, (GraphExec exec))                                                                              \
  F(cuGraphDestroy, (Graph graph))                                                                                     \
  F(cuEventCreate, (EventHandle * event, unsigned flags))                                                              \
  F(cuEventDestroy, (EventHandle event))                                                                               \
  F(cuEventRecord, (EventHandle event, StreamHandle stream))                                                           \
  F(cuEventQuery, (EventHandle event))                                                                                 \
  F(cuEventSynchronize, (EventHandle event))                                                                           \
  F(cuEventElapsedTime, (float *milliseconds, EventHandle from, EventHandle to))                                       \
  F(cuModuleLoadDataEx, (Module * module, const void *image, unsigned count, int *options, void **values))             \
  F(cuModuleGetFunction, (Function * function, Module module, const char *name))                                       \
  F(cuModuleUnload, (Module module))                                                                                   \
  F(cuFuncGetAttribute, (int *value, int attribute, Function function))                                                \
  F(cuFuncSetAttribute, (Function function, int attribute, int value))                                                 \
  F(cuTensorMapEncodeTiled,                                                                                            \
    (TensorMap * map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,          \
     const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill))                \
  F(cuLaunchKernel,                                                                                                    \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,              \
     unsigned blockZ, unsigned sharedBytes, StreamHandle stream, void **params, void **extra))                         \
  F(cuLaunchKernelEx, (const LaunchConfig *config, Function function, void **params, void **extra))

/// Those of newer drivers, null where there are none: with the version that they are asked for.
#define TRESSEL_CUDA_NEWER_FUNCTIONS(F)                                                                                \
  F(cuGraphAddNode, 12020, (GraphNode * node, Graph graph, const GraphNode *after, size_t count, NodeParams *params))  \
  F(cuGraphConditionalHandleCreate, 12030,                                                                             \
    (ConditionalHandle * handle, Graph graph, Context context, unsigned value, unsigned flags))

/// Why dlopen has just failed to open the file: that it is not found, or what the loader says of one that is there.
std::string whyNotOpened(const char *file);

struct Driver {
#define TRESSEL_CUDA_MEMBER(name, params) Result(*name) params = nullptr;
  TRESSEL_CUDA_FUNCTIONS(TRESSEL_CUDA_MEMBER)
#undef TRESSEL_CUDA_MEMBER
  int version = 0; ///< 13000 for CUDA 13.0
#define TRESSEL_CUDA_MEMBER(name, version, params) Result(*name) params = nullptr;
  TRESSEL_CUDA_NEWER_FUNCTIONS(TRESSEL_CUDA_MEMBER)
#undef TRESSEL_CUDA_MEMBER

  /// The driver of this process, opened and initialized at the first call. Null where there is none that serves, and `why` says what
  /// was looked for and what is wrong.
  static const Driver *find(std::string *why = nullptr);
  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string describe(Result error) const;
  /// Throws RuntimeError: "gpu0: cuMemAlloc failed: ...".
  void check(Result result, std::string_view what, std::string_view where = "the CUDA driver") const;
};

/// Whether this process was forked from one that had opened the driver, which serves its parent alone.
bool wasForked();
/// Throws RuntimeError if so. Before locks are taken: a thread that the child does not have may hold them.
void refuseFork();

/// One GPU.
struct Card {
  int ordinal = 0; ///< as the driver counts those that CUDA_VISIBLE_DEVICES leaves
  int device = 0;
  std::string name; ///< "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0; ///< of the compute capability
  int multiprocessors = 0;
  int64_t memoryBytes = 0;
  Context context = nullptr;
  std::string architecture() const; ///< "sm_90"
  /// Makes its context the calling thread's.
  void use(const Driver &driver) const;
};
/// Those of this process, made at the first call. Throws RuntimeError when the driver refuses a context.
const std::vector<Card> &cards(const Driver &driver);

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
