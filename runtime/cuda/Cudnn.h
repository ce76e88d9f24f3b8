// NVIDIA's cuDNN, opened at run time: no header or library of the CUDA toolkit takes part in the build. Declarations
// are our own, with the library's names and meaning ("cuDNN Backend API Reference", library cudnn_graph).
//
// The library is opened when a program that has calls of it is loaded for a card, and stays open. Everything here is
// thread-safe, but for descriptors.
#pragma once

#include "Driver.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// Types and numbers of the library. The numbers are those of 9.0 to 9.19.
namespace dnn {
using Status = int; ///< cudnnStatus_t
inline constexpr Status kDone = 0;
/// Whether it says that a graph, an engine or a launch is not what the library takes: BAD_PARAM, NOT_SUPPORTED.
constexpr bool isRefusal(Status status) { return status >= 2000 && status < 4000; }
using Handle = struct ContextTag *;
using Descriptor = void *; ///< cudnnBackendDescriptor_t

enum DataType : int { kF32 = 0, kF16 = 2, kI32 = 4, kBf16 = 9, kBool = 11 };
enum ConvolutionMode : int { kCrossCorrelation = 1 };
enum PointwiseMode : int {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kRelu = 100,
  kGreaterEqual = 303,
  kIndex = 501, ///< along an axis
  kSelect = 601,
};
enum Reduction : int { kSum = 0, kMost = 3 };
enum HeuristicMode : int { kFallback = 2, kModeA = 3 };
/// What numerical notes say of an engine.
enum Note : int {
  kTensorCore = 0,
  kDownConvertsInputs = 1,
  kReducedPrecisionReduction = 2,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,
  kWinograd4 = 6,
  kWinograd6 = 7,
  kWinograd13 = 8,
};
enum Kind : int { ///< cudnnBackendDescriptorType_t
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kExecutionPlan = 5,
  kKnobChoice = 7,
  kConvolutionForward = 10,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kProduct = 18,
  kProductOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
};
enum Type : int { ///< cudnnBackendAttributeType_t
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeBoolean = 2,
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypePointer = 6,
  kTypeConvolutionMode = 7,
  kTypeHeuristicMode = 8,
  kTypeKnob = 9,
  kTypeNote = 11,
  kTypePointwiseMode = 14,
  kTypeDescriptor = 15,
  kTypeReduction = 18,
};
enum Attribute : int { ///< cudnnBackendAttributeName_t
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kConvolutionType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPadHigh = 104,
  kConvolutionPadLow = 105,
  kConvolutionSpaces = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kConfigKnobs = 302,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kKnobType = 600,
  kKnobValue = 601,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseAlpha1 = 754,
  kPointwiseAlpha2 = 755,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineGraph = 1300,
  kEngineIndex = 1301,
  kEngineNotes = 1303,
  kProductType = 1500,
  kProductA = 1520,
  kProductB = 1521,
  kProductC = 1522,
  kProductDescriptor = 1523,
  kReductionMode = 1600,
  kReductionType = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
};
} // namespace dnn

/// The functions: what each returns, its name and parameters.
#define TRESSEL_CUDNN_FUNCTIONS(F)                                                                                     \
  F(size_t, cudnnGetVersion, ())                                                                                       \
  F(const char *, cudnnGetErrorString, (dnn::Status status))                                                           \
  F(dnn::Status, cudnnCreate, (dnn::Handle * handle))                                                                  \
  F(dnn::Status, cudnnSetStream, (dnn::Handle handle, StreamHandle stream))                                            \
  F(dnn::Status, cudnnBackendCreateDescriptor, (int kind, dnn::Descriptor *descriptor))                                \
  F(dnn::Status, cudnnBackendDestroyDescriptor, (dnn::Descriptor descriptor))                                          \
  F(dnn::Status, cudnnBackendFinalize, (dnn::Descriptor descriptor))                                                   \
  F(dnn::Status, cudnnBackendSetAttribute,                                                                             \
    (dnn::Descriptor descriptor, int attribute, int type, int64_t count, const void *values))                          \
  F(dnn::Status, cudnnBackendGetAttribute,                                                                             \
    (const dnn::Descriptor descriptor, int attribute, int type, int64_t wanted, int64_t *count, void *values))         \
  F(dnn::Status, cudnnBackendExecute, (dnn::Handle handle, dnn::Descriptor plan, dnn::Descriptor pack))

struct Cudnn {
  /// A card's handle. It has one stream at a time: `mutex` is held from setting that to the end of the call.
  struct CardHandle {
    dnn::Handle handle = nullptr;
    std::mutex mutex;
  };
#define TRESSEL_CUDNN_MEMBER(result, name, params) result(*name) params = nullptr;
  TRESSEL_CUDNN_FUNCTIONS(TRESSEL_CUDNN_MEMBER)
#undef TRESSEL_CUDNN_MEMBER
  size_t version = 0; ///< 91900 for 9.19.0

  /// The library of this process, opened at the first call. Null where none serves; `why` then says what was looked
  /// for and what is wrong.
  static const Cudnn *find(const Driver &driver, std::string *why = nullptr);
  /// The library's handle for a card, made at the first call, which stays until the process ends. Null when it cannot
  /// be made, with the reason in `why`.
  CardHandle *handleFor(const Card &card, const Driver &driver, std::string *why = nullptr) const;
  /// "CUDNN_STATUS_NOT_SUPPORTED"
  std::string describe(dnn::Status status) const;
};

/// A status of the library other than kDone.
struct CudnnFailure {
  dnn::Status status;
  const char *what; ///< was done: "finalizing the graph"
};

/// A descriptor of the library. What fails throws CudnnFailure. The descriptors that it is given stay alive until it is
/// destroyed: the caller sees to that.
class CudnnDescriptor {
public:
  CudnnDescriptor(const Cudnn &library, dnn::Kind kind, const char *what);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor &&other) noexcept;
  CudnnDescriptor &operator=(CudnnDescriptor &&) = delete;

  dnn::Descriptor get() const { return descriptor_; }
  CudnnDescriptor &set(dnn::Attribute attribute, dnn::Type type, int64_t count, const void *values);
  CudnnDescriptor &set(dnn::Attribute attribute, int64_t value) { return set(attribute, dnn::kTypeInt64, 1, &value); }
  CudnnDescriptor &set(dnn::Attribute attribute, std::span<const int64_t> values) {
    return set(attribute, dnn::kTypeInt64, static_cast<int64_t>(values.size()), values.data());
  }
  /// Of types that the library spells as int.
  CudnnDescriptor &set(dnn::Attribute attribute, dnn::Type type, int value) { return set(attribute, type, 1, &value); }
  CudnnDescriptor &set(dnn::Attribute attribute, float value) { return set(attribute, dnn::kTypeFloat, 1, &value); }
  CudnnDescriptor &set(dnn::Attribute attribute, const CudnnDescriptor &other) {
    return set(attribute, dnn::kTypeDescriptor, 1, &other.descriptor_);
  }
  CudnnDescriptor &set(dnn::Attribute attribute, const std::vector<CudnnDescriptor> &others);
  CudnnDescriptor &finalize();

  /// How many values it has.
  int64_t count(dnn::Attribute attribute, dnn::Type type) const;
  /// Up to `wanted` values; returns how many there are.
  int64_t read(dnn::Attribute attribute, dnn::Type type, int64_t wanted, void *values) const;
  /// One value.
  int64_t number(dnn::Attribute attribute, dnn::Type type = dnn::kTypeInt64) const;
  /// Up to `most` descriptors of a kind.
  std::vector<CudnnDescriptor> list(dnn::Attribute attribute, dnn::Kind kind, int64_t most, const char *what) const;

private:
  void check(dnn::Status status) const;
  const Cudnn *library_;
  const char *what_;
  dnn::Descriptor descriptor_ = nullptr;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
