#include "CudnnDescriptors.h"

#include "Library.h"

#include <algorithm>
#include <initializer_list>

namespace tressel::standin::cudnn {
namespace {

/// An attribute of a kind of descriptor.
struct Attribute {
  Kind kind;
  int number;
  Type type;
  int least, most;         ///< how many values
  bool isRequired = false; ///< before it is finalized
  bool isRead = false;     ///< by the caller alone
  Kind refers = kTensor;   ///< of what kind descriptors are
  bool mayBeDouble = false;
};
constexpr int kDims = 8, kMany = 64;
constexpr Attribute kAttributes[] = {
    {kTensor, 900, kInt64, 1, 1, true},
    {kTensor, 901, kType, 1, 1, true},
    {kTensor, 902, kInt64, 1, kDims, true},
    {kTensor, 903, kInt64, 1, kDims, true},
    {kTensor, 906, kInt64, 1, 1, true},
    {kTensor, 907, kBoolean, 1, 1},
    {kTensor, 908, kBoolean, 1, 1},
    {kConvolution, 100, kType, 1, 1, true},
    {kConvolution, 101, kConvolutionMode, 1, 1, true},
    {kConvolution, 102, kInt64, 1, kDims, true},
    {kConvolution, 103, kInt64, 1, kDims, true},
    {kConvolution, 104, kInt64, 1, kDims, true},
    {kConvolution, 105, kInt64, 1, kDims, true},
    {kConvolution, 106, kInt64, 1, 1, true},
    {kPointwise, 0, kPointwiseMode, 1, 1, true},
    {kPointwise, 1, kType, 1, 1, true},
    {kPointwise, 9, kInt64, 1, 1},
    {kForward, 700, kFloat, 1, 1, true, false, kTensor, true},
    {kForward, 701, kFloat, 1, 1, true, false, kTensor, true},
    {kForward, 702, kDescriptor, 1, 1, true, false, kConvolution},
    {kForward, 703, kDescriptor, 1, 1, true},
    {kForward, 704, kDescriptor, 1, 1, true},
    {kForward, 705, kDescriptor, 1, 1, true},
    {kPointwiseOp, 750, kDescriptor, 1, 1, true, false, kPointwise},
    {kPointwiseOp, 751, kDescriptor, 1, 1, true},
    {kPointwiseOp, 752, kDescriptor, 1, 1},
    {kPointwiseOp, 753, kDescriptor, 1, 1, true},
    {kPointwiseOp, 754, kFloat, 1, 1, false, false, kTensor, true},
    {kPointwiseOp, 755, kFloat, 1, 1, false, false, kTensor, true},
    {kPointwiseOp, 758, kDescriptor, 1, 1},
    {kMatmul, 1500, kType, 1, 1, true},
    {kMatmulOp, 1520, kDescriptor, 1, 1, true},
    {kMatmulOp, 1521, kDescriptor, 1, 1, true},
    {kMatmulOp, 1522, kDescriptor, 1, 1, true},
    {kMatmulOp, 1523, kDescriptor, 1, 1, true, false, kMatmul},
    {kReduction, 1600, kReductionOperator, 1, 1, true},
    {kReduction, 1601, kType, 1, 1, true},
    {kReductionOp, 1610, kDescriptor, 1, 1, true},
    {kReductionOp, 1611, kDescriptor, 1, 1, true},
    {kReductionOp, 1612, kDescriptor, 1, 1, true, false, kReduction},
    {kGraph, 800, kHandle, 1, 1, true},
    {kGraph, 801, kDescriptor, 1, kMany, true, false, kForward},
    {kHeuristics, 200, kHeuristicMode, 1, 1, true},
    {kHeuristics, 201, kDescriptor, 1, 1, true, false, kGraph},
    {kHeuristics, 202, kDescriptor, 0, kMany, false, true, kConfig},
    {kEngine, 1300, kDescriptor, 1, 1, true, false, kGraph},
    {kEngine, 1301, kInt64, 1, 1, true},
    {kEngine, 1303, kNote, 0, kMany, false, true},
    {kConfig, 300, kDescriptor, 1, 1, true, false, kEngine},
    {kConfig, 302, kDescriptor, 0, kMany, false, false, kKnob},
    {kKnob, 600, kKnobType, 1, 1, true},
    {kKnob, 601, kInt64, 1, 1, true},
    {kPlan, 400, kHandle, 1, 1, true},
    {kPlan, 401, kDescriptor, 1, 1, true, false, kConfig},
    {kPlan, 402, kInt64, 0, 1, false, true},
    {kPack, 1000, kInt64, 1, kMany, true},
    {kPack, 1001, kPointer, 1, kMany, true},
    {kPack, 1003, kPointer, 1, 1},
};
size_t widthOf(int type) {
  switch (type) {
  case kBoolean:
    return 1;
  case kHandle:
  case kInt64:
  case kDouble:
  case kPointer:
  case kDescriptor:
    return 8;
  default:
    return 4;
  }
}

const Attribute *find(Kind kind, int number) {
  for (const Attribute &attribute : kAttributes)
    if (attribute.kind == kind && attribute.number == number)
      return &attribute;
  return nullptr;
}
bool isOneOf(int64_t value, std::initializer_list<int64_t> all) {
  return std::find(all.begin(), all.end(), value) != all.end();
}

} // namespace

CudnnControl state;
std::mutex mutex;

int refuse(int status, const char *why) { return standin::refuse(state, status, why); }

std::set<const Descriptor *> &alive() {
  static auto &all = *new std::set<const Descriptor *>;
  return all;
}
const char *dead(const Descriptor &d) {
  for (const auto &[number, values] : d.values) {
    const Attribute *attribute = find(d.kind, number);
    if (attribute->type != kDescriptor)
      continue;
    for (int64_t value : values) {
      const auto *other = reinterpret_cast<const Descriptor *>(value);
      if (!alive().contains(other))
        return "a descriptor that another one refers to was destroyed";
      if (const char *why = dead(*other))
        return why;
    }
  }
  return nullptr;
}

std::shared_ptr<Descriptor> own(Kind kind, std::map<int, std::vector<int64_t>> values) {
  auto *d = new Descriptor{.kind = kind, .isFinal = true, .values = std::move(values)};
  alive().insert(d);
  return {d, [](Descriptor *each) {
            alive().erase(each);
            delete each;
          }};
}

Tensor tensorOf(const Descriptor &d) {
  return {.id = d.one(906),
          .alignment = d.one(900),
          .dataType = d.one(901),
          .dims = d.list(902),
          .strides = d.list(903),
          .isVirtual = d.one(907) != 0,
          .isByValue = d.one(908) != 0};
}

//--- Finalizing -------------------------------------------------------------------------------------------------------
namespace {

int finalizeTensor(const Descriptor &d) {
  const Tensor t = tensorOf(d);
  const bool isKnown = isOneOf(t.dataType, {kF32, kF16, kBf16}), isWhole = isOneOf(t.dataType, {kI32, kBool});
  if (!isKnown && !(isWhole && t.isVirtual))
    return refuse(kDataType, "the type of a tensor");
  if (t.dims.size() != t.strides.size())
    return refuse(kBadParam, "a tensor has other strides than dimensions");
  for (const auto *list : {&t.dims, &t.strides})
    for (int64_t value : *list)
      if (value < 1)
        return refuse(kBadParam, "a dimension or stride is less than 1");
  if (t.alignment < static_cast<int64_t>(t.elementBytes()) || t.alignment & (t.alignment - 1))
    return refuse(kBadParam, "the alignment of a tensor");
  if (t.isByValue && (t.isVirtual || t.elements() != 1))
    return refuse(kBadParam, "what is passed by value is one number, and not virtual");
  return kOk;
}
int finalizeConvolution(const Descriptor &d) {
  if (d.one(100) != 0 || d.one(101) < 0 || d.one(101) > 1)
    return refuse(kNotSupported, "the type of computing, or the mode");
  for (int number : {102, 103, 104, 105}) {
    if (static_cast<int64_t>(d.list(number).size()) != d.one(106))
      return refuse(kBadParam, "a list of the convolution has another length than it has dimensions");
    for (int64_t value : d.list(number))
      if (value < (number <= 103 ? 1 : 0))
        return refuse(kBadParam, "a stride, dilation or pad");
  }
  return kOk;
}
int finalizePointwise(const Descriptor &d) {
  const int64_t mode = d.one(0);
  if (!isOneOf(mode, {kAdd, kMul, kDiv, kSub, kExp, kLog, kRelu, kGreaterEqual, kIndex, kSelect}))
    return refuse(kNotSupported, "the pointwise operation");
  if (d.one(1) != (mode == kGreaterEqual ? kBool : kF32))
    return refuse(kNotSupported, "the type of computing of a pointwise operation");
  return (mode == kIndex) == d.has(9) ? kOk : refuse(kBadParam, "an axis is for the index along it");
}

/// What is repeated along dimensions of 1.
bool isSpread(const Tensor &t, const Tensor &over) {
  if (t.dims.size() != over.dims.size())
    return false;
  for (size_t i = 0; i < over.dims.size(); ++i)
    if (t.dims[i] != 1 && t.dims[i] != over.dims[i])
      return false;
  return true;
}
int finalizePointwiseOp(const Descriptor &d) {
  const int64_t mode = d.other(750).one(0);
  const Tensor x = tensorOf(d.other(751)), y = tensorOf(d.other(753));
  if (x.dims != y.dims)
    return refuse(kShapeMismatch, "a pointwise operation changes sizes");
  const bool isUnary = isOneOf(mode, {kExp, kLog, kRelu, kIndex});
  if (isUnary == d.has(752) || (mode == kSelect) != d.has(758))
    return refuse(kBadParam, "a pointwise operation has another number of operands");
  if (mode != kAdd && (d.real(754, 1) != 1 || d.real(755, 1) != 1))
    return refuse(kNotSupported, "a factor of what is no addition");
  for (int operand : {752, 758})
    if (d.has(operand) && !isSpread(tensorOf(d.other(operand)), y))
      return refuse(kShapeMismatch, "an operand has another size");
  if ((mode == kIndex && y.dataType != kI32) || (mode == kGreaterEqual && y.dataType != kBool) ||
      (mode == kSelect && tensorOf(d.other(758)).dataType != kBool))
    return refuse(kDataType, "indices are of i32, comparisons of bools");
  if (mode == kIndex && static_cast<uint64_t>(d.other(750).one(9)) >= y.dims.size())
    return refuse(kBadParam, "there is no such axis");
  return kOk;
}
int finalizeMatmulOp(const Descriptor &d) {
  const Tensor a = tensorOf(d.other(1520)), b = tensorOf(d.other(1521)), c = tensorOf(d.other(1522));
  const size_t rank = a.dims.size();
  if (rank < 3 || b.dims.size() != rank || c.dims.size() != rank)
    return refuse(kShapeMismatch, "matrices of a product have other dimensions");
  if (b.dims[rank - 2] != a.dims[rank - 1] || c.dims[rank - 2] != a.dims[rank - 2] ||
      c.dims[rank - 1] != b.dims[rank - 1])
    return refuse(kShapeMismatch, "the sizes of a product");
  for (size_t i = 0; i + 2 < rank; ++i)
    if (c.dims[i] != a.dims[i] || a.dims[i] % b.dims[i]) // neighbours share a right matrix
      return refuse(kShapeMismatch, "the batch of a product");
  return a.dataType == b.dataType ? kOk : refuse(kDataType, "the types of the matrices together");
}
int finalizeReductionOp(const Descriptor &d) {
  const Tensor x = tensorOf(d.other(1610)), y = tensorOf(d.other(1611));
  return isSpread(y, x) ? kOk : refuse(kShapeMismatch, "a reduction keeps sizes, or makes 1 of them");
}

} // namespace

int mayFinalize(const Descriptor *d) {
  if (!alive().contains(d))
    return refuse(kBadParam, "no descriptor");
  if (d->isFinal)
    return refuse(kBadParam, "it is finalized already");
  for (const Attribute &attribute : kAttributes)
    if (attribute.kind == d->kind && attribute.isRequired && !d->has(attribute.number))
      return refuse(kBadParam, "an attribute was not set");
  const char *why = dead(*d);
  return why ? refuse(kBadParam, why) : kOk;
}

int finalizePart(const Descriptor &d) {
  switch (d.kind) {
  case kTensor:
    return finalizeTensor(d);
  case kConvolution:
    return finalizeConvolution(d);
  case kForward:
    return finalizeForward(d);
  case kPointwise:
    return finalizePointwise(d);
  case kPointwiseOp:
    return finalizePointwiseOp(d);
  case kMatmul:
    return d.one(1500) == kF32 ? kOk : refuse(kNotSupported, "the type of computing of a product");
  case kMatmulOp:
    return finalizeMatmulOp(d);
  case kReduction:
    return d.one(1601) == kF32 && isOneOf(d.one(1600), {kSum, kMost})
               ? kOk
               : refuse(kNotSupported, "the reduction, or its type of computing");
  case kReductionOp:
    return finalizeReductionOp(d);
  default:
    return kOk;
  }
}

//--- Entry points -----------------------------------------------------------------------------------------------------
PUBLIC int cudnnBackendCreateDescriptor(int kind, Descriptor **out) {
  const std::lock_guard lock(mutex);
  if (!out)
    return refuse(kNullPointer, "no place for the descriptor");
  if (std::none_of(std::begin(kAttributes), std::end(kAttributes), [&](const Attribute &a) { return a.kind == kind; }))
    return refuse(kNotSupported, "no such descriptor");
  *out = new Descriptor{.kind = static_cast<Kind>(kind)};
  alive().insert(*out);
  ++state.descriptors;
  return kOk;
}
PUBLIC int cudnnBackendDestroyDescriptor(Descriptor *d) {
  const std::lock_guard lock(mutex);
  if (!alive().erase(d))
    return refuse(kBadParam, "no descriptor");
  --state.descriptors;
  delete d;
  return kOk;
}

PUBLIC int cudnnBackendSetAttribute(Descriptor *d, int number, int type, int64_t count, const void *values) {
  const std::lock_guard lock(mutex);
  if (!alive().contains(d))
    return refuse(kBadParam, "no descriptor");
  const Attribute *attribute = find(d->kind, number);
  if (!attribute || attribute->isRead)
    return refuse(kBadParam, "no such attribute");
  if (d->isFinal)
    return refuse(kBadParam, "it is finalized already");
  if (type != attribute->type && !(type == kDouble && attribute->mayBeDouble))
    return refuse(kAttributeType, "the attribute has another type");
  if (count < std::max(attribute->least, 1) || count > attribute->most)
    return refuse(kBadParam, "the attribute has another number of values");
  if (!values)
    return refuse(kNullPointer, "no values");
  std::vector<int64_t> all;
  const auto *from = static_cast<const std::byte *>(values);
  for (int64_t i = 0; i < count; ++i, from += widthOf(type)) {
    int64_t value = 0;
    std::memcpy(&value, from, widthOf(type));
    if (type == kFloat) {
      float narrow;
      std::memcpy(&narrow, from, 4);
      const auto wide = static_cast<double>(narrow);
      std::memcpy(&value, &wide, 8);
    }
    if (type == kDescriptor) {
      const auto *other = reinterpret_cast<const Descriptor *>(value);
      if (!alive().contains(other))
        return refuse(kBadParam, "no descriptor");
      const bool isOperation = number == 801 && isOneOf(other->kind, {kPointwiseOp, kMatmulOp, kReductionOp});
      if (other->kind != attribute->refers && !isOperation)
        return refuse(kDescriptorType, "a descriptor of another kind");
      if (!other->isFinal)
        return refuse(kNotFinalized, "a descriptor that is not finalized");
    }
    all.push_back(value);
  }
  d->values[number] = std::move(all);
  return kOk;
}

PUBLIC int cudnnBackendGetAttribute(Descriptor *d, int number, int type, int64_t wanted, int64_t *count, void *values) {
  const std::lock_guard lock(mutex);
  if (!alive().contains(d) || !count || wanted < 0 || (wanted > 0 && !values))
    return refuse(kBadParam, "an argument of the question");
  if (!d->isFinal)
    return refuse(kNotFinalized, "a descriptor that is not finalized");
  const Attribute *attribute = find(d->kind, number);
  if (!attribute)
    return refuse(kBadParam, "no such attribute");
  if (type != attribute->type)
    return refuse(kAttributeType, "the attribute has another type");
  if (const char *why = dead(*d))
    return refuse(kBadParam, why);
  const std::vector<int64_t> none, &all = d->has(number) ? d->list(number) : none;
  *count = static_cast<int64_t>(all.size());
  if (wanted == 0)
    return kOk;
  *count = std::min(*count, wanted);
  auto *to = static_cast<std::byte *>(values);
  for (int64_t i = 0; i < *count; ++i, to += widthOf(type)) {
    const int64_t value = all[static_cast<size_t>(i)];
    if (type == kFloat) {
      double wide;
      std::memcpy(&wide, &value, 8);
      const auto narrow = static_cast<float>(wide);
      std::memcpy(to, &narrow, 4);
    } else if (type == kDescriptor) { // what the caller has made becomes a copy
      Descriptor *filled = nullptr;
      std::memcpy(&filled, to, 8);
      const auto &from = *reinterpret_cast<const Descriptor *>(value);
      if (!alive().contains(filled) || filled->kind != from.kind)
        return refuse(kDescriptorType, "a descriptor to be filled is of another kind");
      *filled = from;
    } else
      std::memcpy(to, &value, widthOf(type));
  }
  return kOk;
}

} // namespace tressel::standin::cudnn
