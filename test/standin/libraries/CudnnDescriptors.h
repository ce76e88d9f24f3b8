// Descriptors of the stand-in cuDNN: what the caller has set, held to the table of attributes.
#pragma once

#include "CudnnControl.h"
#include "Numbers.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace tressel::standin::cudnn {

enum Status : int {
  kOk = 0,
  kNotInitialized = 1001,
  kBadParam = 2000,
  kNullPointer = 2002,
  kMisaligned = 2003,
  kNotFinalized = 2004,
  kShapeMismatch = 2008,
  kDuplicated = 2009,
  kAttributeType = 2010,
  kDescriptorType = 2012,
  kNotSupported = 3000,
  kPattern = 3001,
  kDataType = 3003,
  kExecutionFailed = 5000,
};
enum Type : int {
  kHandle = 0,
  kType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kKnobType = 9,
  kNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15,
  kReductionOperator = 18,
};
enum Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kKnob = 7,
  kForward = 10,
  kPointwiseOp = 13,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOp = 19,
  kReduction = 21,
  kReductionOp = 22,
};
/// Types of tensors and of computing.
enum DataType : int64_t { kF32 = 0, kF16 = 2, kI32 = 4, kBf16 = 9, kBool = 11 };
/// Of pointwise operations: those that the stand-in has.
enum Mode : int64_t {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kRelu = 100,
  kGreaterEqual = 303,
  kIndex = 501,
  kSelect = 601,
};
enum Reduction : int64_t { kSum = 0, kMost = 3 };

/// Values are the bits of what was set, but for floats: those are doubles.
struct Descriptor {
  Kind kind;
  bool isFinal = false;
  std::map<int, std::vector<int64_t>> values;
  std::vector<std::shared_ptr<Descriptor>> owned; ///< that the library has made for it

  bool has(int attribute) const { return values.contains(attribute); }
  const std::vector<int64_t> &list(int attribute) const { return values.at(attribute); }
  int64_t one(int attribute, int64_t otherwise = 0) const {
    return has(attribute) ? values.at(attribute).front() : otherwise;
  }
  double real(int attribute, double otherwise) const {
    double value = otherwise;
    if (has(attribute))
      std::memcpy(&value, &values.at(attribute).front(), 8);
    return value;
  }
  static const Descriptor &at(int64_t value) { return *reinterpret_cast<const Descriptor *>(value); }
  const Descriptor &other(int attribute) const { return at(one(attribute)); }
};

extern CudnnControl state;
extern std::mutex mutex; ///< of everything here
int refuse(int status, const char *why);
std::set<const Descriptor *> &alive();
/// Null: all that it leads to is alive.
const char *dead(const Descriptor &d);
/// One that the library makes for itself, which is finalized.
std::shared_ptr<Descriptor> own(Kind kind, std::map<int, std::vector<int64_t>> values);

/// A status: whether it is alive, not finalized yet, and has what it needs.
int mayFinalize(const Descriptor *d);
/// A status: what there is to check of tensors, of what an operation computes, and of its tensors together.
int finalizePart(const Descriptor &d);
int finalizeForward(const Descriptor &d); ///< a convolution's part of it

struct Tensor {
  int64_t id = 0, alignment = 0, dataType = kF32;
  std::vector<int64_t> dims, strides;
  bool isVirtual = false, isByValue = false;

  bool operator==(const Tensor &) const = default;
  bool isThere() const { return !dims.empty(); }
  /// Of those in memory.
  Number number() const { return dataType == kF16 ? Number::Half : dataType == kBf16 ? Number::Bfloat : Number::Float; }
  uint64_t elementBytes() const { return bytesOf(number()); }
  int64_t elements() const {
    int64_t all = 1;
    for (int64_t dim : dims)
      all *= dim;
    return all;
  }
  /// Elements from its first to behind its last.
  int64_t span() const {
    int64_t all = 1;
    for (size_t d = 0; d < dims.size(); ++d)
      all += (dims[d] - 1) * strides[d];
    return all;
  }
  /// Of an element, by its number in the order of dimensions.
  std::vector<int64_t> indexOf(int64_t element) const {
    std::vector<int64_t> index(dims.size());
    for (size_t d = index.size(); d-- > 0;)
      index[d] = element % dims[d], element /= dims[d];
    return index;
  }
  /// In bytes; along dimensions of 1 there is one element, whatever the index.
  uint64_t offsetOf(const std::vector<int64_t> &index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      offset += dims[d] == 1 ? 0 : index[d] * strides[d];
    return static_cast<uint64_t>(offset) * elementBytes();
  }
};
Tensor tensorOf(const Descriptor &d);

} // namespace tressel::standin::cudnn
