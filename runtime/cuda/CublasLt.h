// NVIDIA's cuBLASLt, opened at run time: no header or library of the CUDA toolkit takes part in the build. Declarations
// are our own, with the library's names and meaning ("cuBLAS", section "Using the cuBLASLt API", of NVIDIA's
// documentation).
//
// The library is opened when a program that has calls of it is loaded for a card, and stays open. Everything here is
// thread-safe.
#pragma once

#include "Driver.h"

#include <cstddef>
#include <cstdint>
#include <string>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// Types and numbers of the library. The numbers are those of CUDA 12.0 to 13.0.
namespace lt {
using Status = int; ///< cublasStatus_t
inline constexpr Status kDone = 0, kArchitectureMismatch = 8, kNotSupported = 15;
using Handle = struct HandleTag *;
using Operation = struct OperationTag *; ///< cublasLtMatmulDesc_t
using Layout = struct LayoutTag *;       ///< cublasLtMatrixLayout_t
using Preference = struct PreferenceTag *;

struct Algorithm { ///< cublasLtMatmulAlgo_t: bytes that mean something to the library of one version
  uint64_t data[8];
  bool operator==(const Algorithm &) const = default;
};
struct Candidate { ///< cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspaceBytes;
  Status state;
  float waves;
  int reserved[4];
};

enum DataType : int { kF32 = 0, kF16 = 2, kBf16 = 14 }; // cudaDataType
enum ComputeType : int { kComputeF32 = 68 };            // inputs are not rounded to tf32
enum OperationAttribute : int { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8, kBiasType = 26 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int {
  kWorkspaceBytes = 1,
  kReductions = 3,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};
enum Transpose : int { kAsStored = 0, kTransposed = 1 };
enum Epilogue : uint32_t { kPlain = 1, kRelu = 2, kBias = 4 }; // bits, but for kPlain
/// Where partial sums may be added up. In the type of the result (bits 0 and 2) they would be rounded to it.
enum Reductions : uint32_t { kInComputeType = 2 };
} // namespace lt

/// The functions: what each returns, its name and parameters.
#define TRESSEL_CUBLASLT_FUNCTIONS(F)                                                                                  \
  F(size_t, cublasLtGetVersion, ())                                                                                    \
  F(const char *, cublasLtGetStatusName, (lt::Status status))                                                          \
  F(lt::Status, cublasLtCreate, (lt::Handle * handle))                                                                 \
  F(lt::Status, cublasLtMatmulDescCreate, (lt::Operation * operation, int computeType, int scaleType))                 \
  F(lt::Status, cublasLtMatmulDescDestroy, (lt::Operation operation))                                                  \
  F(lt::Status, cublasLtMatmulDescSetAttribute,                                                                        \
    (lt::Operation operation, int attribute, const void *value, size_t bytes))                                         \
  F(lt::Status, cublasLtMatrixLayoutCreate,                                                                            \
    (lt::Layout * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                                 \
  F(lt::Status, cublasLtMatrixLayoutDestroy, (lt::Layout layout))                                                      \
  F(lt::Status, cublasLtMatrixLayoutSetAttribute, (lt::Layout layout, int attribute, const void *value, size_t bytes)) \
  F(lt::Status, cublasLtMatmulPreferenceCreate, (lt::Preference * preference))                                         \
  F(lt::Status, cublasLtMatmulPreferenceDestroy, (lt::Preference preference))                                          \
  F(lt::Status, cublasLtMatmulPreferenceSetAttribute,                                                                  \
    (lt::Preference preference, int attribute, const void *value, size_t bytes))                                       \
  F(lt::Status, cublasLtMatmulAlgoGetHeuristic,                                                                        \
    (lt::Handle handle, lt::Operation operation, lt::Layout a, lt::Layout b, lt::Layout c, lt::Layout d,               \
     lt::Preference preference, int wanted, lt::Candidate *candidates, int *found))                                    \
  F(lt::Status, cublasLtMatmulAlgoCheck,                                                                               \
    (lt::Handle handle, lt::Operation operation, lt::Layout a, lt::Layout b, lt::Layout c, lt::Layout d,               \
     const lt::Algorithm *algorithm, lt::Candidate *result))                                                           \
  F(lt::Status, cublasLtMatmul,                                                                                        \
    (lt::Handle handle, lt::Operation operation, const void *alpha, const void *a, lt::Layout aLayout, const void *b,  \
     lt::Layout bLayout, const void *beta, const void *c, lt::Layout cLayout, void *d, lt::Layout dLayout,             \
     const lt::Algorithm *algorithm, void *workspace, size_t workspaceBytes, StreamHandle stream))

struct CublasLt {
#define TRESSEL_CUBLASLT_MEMBER(result, name, params) result(*name) params = nullptr;
  TRESSEL_CUBLASLT_FUNCTIONS(TRESSEL_CUBLASLT_MEMBER)
#undef TRESSEL_CUBLASLT_MEMBER
  size_t version = 0; ///< 130100 for 13.1.0

  /// The library of this process, opened at the first call: that of CUDA 13 if the driver is as new, else that of
  /// CUDA 12. Null where none serves; `why` then says what was looked for and what is wrong.
  static const CublasLt *find(const Driver &driver, std::string *why = nullptr);
  /// The library's handle for a card, made at the first call, which stays until the process ends. Null when it cannot
  /// be made, with the reason in `why`.
  lt::Handle handleFor(const Card &card, const Driver &driver, std::string *why = nullptr) const;
  /// "CUBLAS_STATUS_NOT_SUPPORTED"
  std::string describe(lt::Status status) const;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
