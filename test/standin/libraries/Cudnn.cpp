// A stand-in for cuDNN, on the stand-in driver: libcudnn.so.9. It computes what the descriptors of an operation graph
// say, by plain loops over the addresses that a variant pack gives, as an operation of the handle's stream. So a wrong
// stride, pad, type, order of operations or address shows in the numbers, and a missing wait among the findings.
//
// It takes a convolution forward of f32, f16 and bf16 with sums in f32, any strides, and behind it a chain of additions
// (tensors of the result's size, or of 1 where they are the same along a dimension) and relu, with virtual tensors
// between. Its engines add up in different orders, and differ in what they need and what their numerical notes say;
// those that round more than the others do so, for programs that must not take them.
//
// Descriptors are held to more than NVIDIA's library is: one that another one refers to has to be alive. By the
// documentation ("cuDNN Backend API Reference", cudnn_graph); nothing of the project is used.
#include "../driver/Control.h"
#include "CudnnControl.h"
#include "Numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace {

using tressel::standin::Control;
using tressel::standin::CudnnControl;
using tressel::standin::LibraryBytes;
using tressel::standin::Number;

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
};

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
    {kConvolution, 100, kType, 1, 1, true},
    {kConvolution, 101, kConvolutionMode, 1, 1, true},
    {kConvolution, 102, kInt64, 1, kDims, true},
    {kConvolution, 103, kInt64, 1, kDims, true},
    {kConvolution, 104, kInt64, 1, kDims, true},
    {kConvolution, 105, kInt64, 1, kDims, true},
    {kConvolution, 106, kInt64, 1, 1, true},
    {kPointwise, 0, kPointwiseMode, 1, 1, true},
    {kPointwise, 1, kType, 1, 1, true},
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
size_t bytesOf(int type) {
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
  const Descriptor &other(int attribute) const { return *reinterpret_cast<const Descriptor *>(one(attribute)); }
};
struct Context {
  void *stream = nullptr;
};

CudnnControl state;
std::mutex mutex;
std::set<const Descriptor *> &alive() {
  static auto &all = *new std::set<const Descriptor *>;
  return all;
}
std::set<const Context *> &contexts() {
  static auto &all = *new std::set<const Context *>;
  return all;
}

int refuse(int status, const char *why) {
  ++state.refused;
  state.lastRefusal = why;
  return status;
}
const Control *driver() {
  static const Control *const found = [] {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? static_cast<const Control *>(dlsym(library, "tressel_standin_control")) : nullptr;
  }();
  return found;
}
const Attribute *find(Kind kind, int number) {
  for (const Attribute &attribute : kAttributes)
    if (attribute.kind == kind && attribute.number == number)
      return &attribute;
  return nullptr;
}
/// Null: all that it leads to is alive.
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

//--- Tensors and operations -------------------------------------------------------------------------------------------
struct Tensor {
  int64_t id = 0, alignment = 0;
  Number type = Number::Float;
  std::vector<int64_t> dims, strides;
  bool isVirtual = false;

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
};
bool isType(int64_t type) { return type == 0 || type == 2 || type == 9; }
Tensor tensorOf(const Descriptor &d) {
  const int64_t type = d.one(901);
  return {.id = d.one(906),
          .alignment = d.one(900),
          .type = type == 0   ? Number::Float
                  : type == 2 ? Number::Half
                              : Number::Bfloat,
          .dims = d.list(902),
          .strides = d.list(903),
          .isVirtual = d.one(907) != 0};
}
struct Operation {
  bool isForward = false, isRelu = false, flips = false;
  Tensor x, w, y; ///< w: weights, or what is added
  std::vector<int64_t> low, strides, dilations;
  float alpha = 1, beta = 0, alpha2 = 1;
};
Operation operationOf(const Descriptor &d) {
  Operation o;
  if (d.kind == kForward) {
    const Descriptor &c = d.other(702);
    o.isForward = true;
    o.x = tensorOf(d.other(704)), o.w = tensorOf(d.other(703)), o.y = tensorOf(d.other(705));
    o.low = c.list(105), o.strides = c.list(103), o.dilations = c.list(102);
    o.flips = c.one(101) == 0;
    o.alpha = static_cast<float>(d.real(700, 1)), o.beta = static_cast<float>(d.real(701, 0));
    return o;
  }
  o.isRelu = d.other(750).one(0) == 100;
  o.x = tensorOf(d.other(751)), o.y = tensorOf(d.other(753));
  if (d.has(752))
    o.w = tensorOf(d.other(752));
  o.alpha = static_cast<float>(d.real(754, 1)), o.alpha2 = static_cast<float>(d.real(755, 1));
  return o;
}
std::vector<Operation> operationsOf(const Descriptor &graph) {
  std::vector<Operation> all;
  for (int64_t each : graph.list(801))
    all.push_back(operationOf(*reinterpret_cast<const Descriptor *>(each)));
  return all;
}

//--- Engines ----------------------------------------------------------------------------------------------------------
/// In the order in which the heuristics propose them.
enum Engine : int64_t {
  kTf32 = 3,      ///< rounds inputs of f32
  kWinograd = 5,  ///< rounds more than its sums do
  kAtomic = 7,    ///< adds up in another order each time
  kHalfSums = 8,  ///< adds up in f16
  kTiled = 20,    ///< needs tensors at 16 bytes, and channels by fours
  kSplit = 21,    ///< adds up two halves of the channels apart from each other, in the workspace
  kPlain = 22,    ///< knob 12: 1 adds up backwards
  kFallback = 30, ///< that of the fallback mode
};
constexpr Engine kProposed[] = {kTf32, kWinograd, kAtomic, kHalfSums, kTiled, kSplit, kPlain};
constexpr int kOrderKnob = 12;

std::vector<int64_t> notesOf(int64_t engine) {
  switch (engine) {
  case kTf32:
    return {0, 1};
  case kWinograd:
    return {5, 6};
  case kAtomic:
    return {4};
  case kHalfSums:
    return {2};
  default:
    return {};
  }
}
/// Null: it serves this graph.
const char *missing(int64_t engine, const Descriptor &graph) {
  const std::vector<Operation> operations = operationsOf(graph);
  const Operation &first = operations.front();
  switch (engine) {
  case kTf32:
    return first.x.type == Number::Float ? nullptr : "the engine is for f32";
  case kTiled:
    for (const Operation &o : operations)
      for (const Tensor *t : {&o.x, &o.w, &o.y})
        if (!t->dims.empty() && !t->isVirtual && t->alignment % 16)
          return "the engine needs tensors that are aligned better";
    return first.w.dims[1] % 4 ? "the engine needs channels by fours" : nullptr;
  case kSplit:
    return first.w.dims[1] < 2 ? "there is nothing to split" : nullptr;
  case kWinograd:
  case kAtomic:
  case kHalfSums:
  case kPlain:
  case kFallback:
    return nullptr;
  default:
    return "no such engine";
  }
}
int64_t workspaceOf(int64_t engine, const Descriptor &graph) {
  return engine == kSplit ? 8 * operationsOf(graph).front().y.elements() : 0;
}

//--- Finalizing -------------------------------------------------------------------------------------------------------
int finalizeTensor(const Descriptor &d) {
  if (!isType(d.one(901)))
    return refuse(kDataType, "the type of a tensor");
  if (d.list(902).size() != d.list(903).size())
    return refuse(kBadParam, "a tensor has other strides than dimensions");
  for (int number : {902, 903})
    for (int64_t value : d.list(number))
      if (value < 1)
        return refuse(kBadParam, "a dimension or stride is less than 1");
  const int64_t alignment = d.one(900), element = static_cast<int64_t>(tressel::standin::bytesOf(tensorOf(d).type));
  if (alignment < element || alignment & (alignment - 1))
    return refuse(kBadParam, "the alignment of a tensor");
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
int finalizeForward(const Descriptor &d) {
  const Operation o = operationOf(d);
  const Descriptor &c = d.other(702);
  const size_t rank = o.x.dims.size();
  if (rank != o.low.size() + 2 || o.w.dims.size() != rank || o.y.dims.size() != rank)
    return refuse(kShapeMismatch, "tensors of a convolution have other dimensions than it");
  if (o.x.dims[1] % o.w.dims[1] || o.w.dims[0] % (o.x.dims[1] / o.w.dims[1]))
    return refuse(kShapeMismatch, "channels make no groups");
  if (o.y.dims[0] != o.x.dims[0] || o.y.dims[1] != o.w.dims[0])
    return refuse(kShapeMismatch, "the result has another batch, or other channels");
  for (size_t s = 0; s < o.low.size(); ++s) {
    const int64_t room = o.x.dims[2 + s] + o.low[s] + c.list(104)[s] - (o.w.dims[2 + s] - 1) * o.dilations[s] - 1;
    if (room < 0 || room / o.strides[s] + 1 != o.y.dims[2 + s])
      return refuse(kShapeMismatch, "the result of a convolution has another size");
  }
  if (o.x.type != o.w.type || (!o.y.isVirtual && o.y.type != o.x.type))
    return refuse(kDataType, "the types of the tensors together");
  return kOk;
}
int finalizePointwiseOp(const Descriptor &d) {
  const Operation o = operationOf(d);
  if (o.x.dims != o.y.dims)
    return refuse(kShapeMismatch, "a pointwise operation changes sizes");
  if (o.isRelu)
    return o.w.dims.empty() ? kOk : refuse(kBadParam, "relu has one operand");
  if (o.w.dims.size() != o.y.dims.size())
    return refuse(kBadParam, "an addition lacks an operand, or its dimensions");
  for (size_t i = 0; i < o.y.dims.size(); ++i)
    if (o.w.dims[i] != 1 && o.w.dims[i] != o.y.dims[i])
      return refuse(kShapeMismatch, "what is added has another size");
  return kOk;
}
int finalizeGraph(const Descriptor &d) {
  if (state.graphFailure)
    return refuse(state.graphFailure, "asked for by a test");
  if (!contexts().contains(reinterpret_cast<const Context *>(d.one(800))))
    return refuse(kBadParam, "no handle");
  const std::vector<Operation> all = operationsOf(d);
  std::set<int64_t> ids;
  for (size_t i = 0; i < all.size(); ++i) {
    const Operation &o = all[i];
    if (o.isForward != (i == 0) || (i > 0 && o.x.id != all[i - 1].y.id))
      return refuse(kPattern, "the operations are no chain behind a convolution");
    if (o.y.isVirtual != (i + 1 < all.size()))
      return refuse(kPattern, "what lies between operations is virtual, and the result is not");
    if ((i == 0 && o.x.isVirtual) || (!o.w.dims.empty() && o.w.isVirtual))
      return refuse(kPattern, "nothing makes a virtual tensor");
    for (const Tensor *t : {i == 0 ? &o.x : nullptr, o.w.dims.empty() ? nullptr : &o.w, &o.y})
      if (t && !ids.insert(t->id).second)
        return refuse(kDuplicated, "two tensors have one number");
  }
  if (all.front().beta != 0 && all.size() > 1)
    return refuse(kPattern, "a virtual result is added to");
  return kOk;
}
Descriptor *make(Kind kind) {
  auto *d = new Descriptor{.kind = kind};
  alive().insert(d);
  ++state.descriptors;
  return d;
}
std::shared_ptr<Descriptor> own(Kind kind, std::map<int, std::vector<int64_t>> values) {
  auto *d = new Descriptor{.kind = kind, .isFinal = true, .values = std::move(values)};
  alive().insert(d);
  return {d, [](Descriptor *each) {
            alive().erase(each);
            delete each;
          }};
}
int64_t spell(const std::shared_ptr<Descriptor> &d) { return reinterpret_cast<int64_t>(d.get()); }
int finalizeHeuristics(Descriptor &d) {
  ++state.heuristics;
  const int64_t mode = d.one(200);
  if (mode != 0 && mode != 2 && mode != 3)
    return refuse(kNotSupported, "the mode of the heuristics");
  if (mode == 3 && state.modeFailure)
    return refuse(state.modeFailure, "asked for by a test");
  auto propose = [&](Engine number, int64_t order) {
    if (state.hasNoEngine || (state.onlyEngine >= 0 && number != state.onlyEngine) || missing(number, d.other(201)))
      return;
    const auto engine = own(kEngine, {{1300, {d.one(201)}}, {1301, {number}}, {1303, notesOf(number)}});
    const auto config = own(kConfig, {{300, {spell(engine)}}});
    config->owned.push_back(engine);
    if (order >= 0) {
      config->owned.push_back(own(kKnob, {{600, {kOrderKnob}}, {601, {order}}}));
      config->values[302] = {spell(config->owned.back())};
    }
    d.owned.push_back(config);
    d.values[202].push_back(spell(config));
  };
  if (mode == 2)
    propose(kFallback, -1);
  else
    for (const Engine engine : kProposed)
      for (int64_t order = engine == kPlain ? 1 : -1; order >= (engine == kPlain ? 0 : -1); --order)
        propose(engine, order);
  return kOk;
}
int finalizeEngine(Descriptor &d) {
  if (const char *why = missing(d.one(1301), d.other(1300)))
    return refuse(kNotSupported, why);
  d.values[1303] = notesOf(d.one(1301));
  return kOk;
}
int finalizeConfig(const Descriptor &d) {
  const int64_t engine = d.other(300).one(1301);
  if (d.has(302))
    for (int64_t each : d.list(302)) {
      const auto &knob = *reinterpret_cast<const Descriptor *>(each);
      if (engine != kPlain || knob.one(600) != kOrderKnob || knob.one(601) < 0 || knob.one(601) > 1)
        return refuse(kBadParam, "the engine has no such knob, or no such value of it");
    }
  return kOk;
}
int finalizePlan(Descriptor &d) {
  if (const int status = std::exchange(state.planFailure, 0))
    return refuse(status, "asked for by a test");
  if (!contexts().contains(reinterpret_cast<const Context *>(d.one(400))))
    return refuse(kBadParam, "no handle");
  const Descriptor &engine = d.other(401).other(300);
  d.values[402] = {workspaceOf(engine.one(1301), engine.other(1300))};
  return kOk;
}
int finalizePack(const Descriptor &d) {
  if (d.list(1000).size() != d.list(1001).size())
    return refuse(kBadParam, "a pack has other addresses than numbers");
  const std::set<int64_t> ids(d.list(1000).begin(), d.list(1000).end());
  return ids.size() == d.list(1000).size() ? kOk : refuse(kDuplicated, "a number is twice in a pack");
}

//--- Running ----------------------------------------------------------------------------------------------------------
float roundTo10Bits(float value) { // tf32's
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x0fff + (bits >> 13 & 1)) & ~uint32_t(0x1fff);
  std::memcpy(&value, &bits, 4);
  return value;
}

struct Run {
  std::vector<Operation> operations;
  int64_t engine = 0;
  bool isBackwards = false;
  std::map<int64_t, uint64_t> addresses;
  uint64_t workspace = 0;
  mutable std::map<int64_t, std::byte *> memory; ///< of the tensors, while it runs

  static void run(void *user) {
    const std::unique_ptr<Run> all(static_cast<Run *>(user));
    all->compute();
  }
  static std::byte *at(uint64_t address, uint64_t bytes) {
    return static_cast<std::byte *>(driver()->host(address, bytes));
  }
  static uint64_t offsetOf(const Tensor &t, const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (size_t d = 0; d < t.dims.size(); ++d)
      offset += t.dims[d] == 1 ? 0 : index[d] * t.strides[d];
    return static_cast<uint64_t>(offset) * tressel::standin::bytesOf(t.type);
  }
  std::byte *place(const Tensor &t, const std::vector<int64_t> &index) const {
    std::byte *&base = memory[t.id];
    if (!base)
      base = at(addresses.at(t.id), static_cast<uint64_t>(t.span()) * tressel::standin::bytesOf(t.type));
    return base + offsetOf(t, index);
  }
  float value(const Tensor &t, const std::vector<int64_t> &index) const {
    return tressel::standin::load(place(t, index), t.type);
  }
  /// A virtual tensor keeps no more than its type.
  static float rounded(float value, Number type) {
    std::byte bytes[4];
    tressel::standin::store(bytes, type, value);
    return tressel::standin::load(bytes, type);
  }

  float term(const Operation &o, const std::vector<int64_t> &y, int64_t channel, std::vector<int64_t> &tap) const {
    const int64_t inGroup = o.w.dims[1], outGroup = o.w.dims[0] / (o.x.dims[1] / inGroup);
    std::vector<int64_t> x = y;
    x[1] = y[1] / outGroup * inGroup + channel;
    tap[0] = y[1], tap[1] = channel;
    std::vector<int64_t> w = tap;
    for (size_t s = 0; s < o.low.size(); ++s) {
      x[2 + s] = y[2 + s] * o.strides[s] - o.low[s] + tap[2 + s] * o.dilations[s];
      if (x[2 + s] < 0 || x[2 + s] >= o.x.dims[2 + s])
        return 0;
      if (o.flips)
        w[2 + s] = o.w.dims[2 + s] - 1 - tap[2 + s];
    }
    float image = value(o.x, x), weight = value(o.w, w);
    if (engine == kTf32 || engine == kWinograd)
      image = roundTo10Bits(image), weight = roundTo10Bits(weight);
    return image * weight;
  }
  float convolve(const Operation &o, const std::vector<int64_t> &y, int64_t number) const {
    const int64_t channels = o.w.dims[1];
    int64_t taps = 1;
    for (size_t s = 2; s < o.w.dims.size(); ++s)
      taps *= o.w.dims[s];
    std::vector<int64_t> tap(y.size());
    float parts[2] = {0, 0};
    for (int64_t i = 0; i < channels * taps; ++i) {
      int64_t left = isBackwards ? channels * taps - 1 - i : i;
      const int64_t channel = left / taps;
      left %= taps;
      for (size_t s = y.size(); s-- > 2;)
        tap[s] = left % o.w.dims[s], left /= o.w.dims[s];
      float &part = parts[engine == kSplit && channel >= channels / 2];
      part += term(o, y, channel, tap);
      if (engine == kHalfSums)
        part = rounded(part, Number::Half);
    }
    if (engine == kSplit) {
      const uint64_t place = workspace + 8 * static_cast<uint64_t>(number);
      for (uint64_t half = 0; half < 2; ++half)
        tressel::standin::store(at(place + 4 * half, 4), Number::Float, parts[half]);
      return tressel::standin::load(at(place, 4), Number::Float) +
             tressel::standin::load(at(place + 4, 4), Number::Float);
    }
    return parts[0];
  }
  void compute() const {
    const Tensor &result = operations.back().y;
    std::vector<int64_t> index(result.dims.size());
    for (int64_t i = 0; i < result.elements(); ++i) {
      int64_t left = i;
      for (size_t d = index.size(); d-- > 0;)
        index[d] = left % result.dims[d], left /= result.dims[d];
      float sum = 0;
      for (const Operation &o : operations) {
        if (o.isForward) {
          sum = o.alpha * convolve(o, index, i);
          if (o.beta != 0)
            sum += o.beta * value(o.y, index);
        } else if (o.isRelu)
          sum = sum > 0 ? sum : 0; // of NaN too
        else
          sum = o.alpha * sum + o.alpha2 * value(o.w, index);
        if (o.y.isVirtual)
          sum = rounded(sum, o.y.type);
      }
      tressel::standin::store(place(result, index), result.type, sum);
    }
  }
};

/// The bytes of a tensor; those between its elements too, unless it is written.
void addBytes(std::vector<LibraryBytes> &list, const Run &run, const Tensor &t, bool isWrite) {
  const uint64_t element = tressel::standin::bytesOf(t.type), address = run.addresses.at(t.id);
  if (!isWrite || t.span() == t.elements()) {
    list.push_back({address, static_cast<uint64_t>(t.span()) * element, isWrite});
    return;
  }
  std::vector<int64_t> index(t.dims.size());
  for (int64_t i = 0; i < t.elements(); ++i) {
    int64_t left = i;
    for (size_t d = index.size(); d-- > 0;)
      index[d] = left % t.dims[d], left /= t.dims[d];
    list.push_back({address + Run::offsetOf(t, index), element, true});
  }
}

} // namespace

#define PUBLIC extern "C" __attribute__((visibility("default")))

PUBLIC CudnnControl *tressel_standin_cudnn() { return &state; }

PUBLIC size_t cudnnGetVersion() {
  const char *other = std::getenv("TRESSEL_STANDIN_CUDNN_VERSION");
  return other ? static_cast<size_t>(std::atoll(other)) : 91900;
}

PUBLIC const char *cudnnGetErrorString(int status) {
  switch (status) {
  case kOk:
    return "CUDNN_STATUS_SUCCESS";
  case kNotInitialized:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case kBadParam:
    return "CUDNN_STATUS_BAD_PARAM";
  case kNullPointer:
    return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
  case kMisaligned:
    return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
  case kNotFinalized:
    return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
  case kShapeMismatch:
    return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
  case kDuplicated:
    return "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES";
  case kAttributeType:
    return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
  case kDescriptorType:
    return "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE";
  case kNotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case kPattern:
    return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
  case kDataType:
    return "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE";
  case kExecutionFailed:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_UNKNOWN_STATUS";
}

PUBLIC int cudnnCreate(Context **out) {
  const std::lock_guard lock(mutex);
  if (!out)
    return refuse(kNullPointer, "no place for the handle");
  if (!driver())
    return refuse(kNotInitialized, "the stand-in driver is not there");
  *out = new Context;
  contexts().insert(*out);
  return kOk;
}
PUBLIC int cudnnDestroy(Context *context) {
  const std::lock_guard lock(mutex);
  contexts().erase(context);
  delete context;
  return kOk;
}
PUBLIC int cudnnSetStream(Context *context, void *stream) {
  const std::lock_guard lock(mutex);
  if (!contexts().contains(context))
    return refuse(kBadParam, "no handle");
  context->stream = stream;
  return kOk;
}

PUBLIC int cudnnBackendCreateDescriptor(int kind, Descriptor **out) {
  const std::lock_guard lock(mutex);
  if (!out)
    return refuse(kNullPointer, "no place for the descriptor");
  if (std::none_of(std::begin(kAttributes), std::end(kAttributes), [&](const Attribute &a) { return a.kind == kind; }))
    return refuse(kNotSupported, "no such descriptor");
  *out = make(static_cast<Kind>(kind));
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
  for (int64_t i = 0; i < count; ++i, from += bytesOf(type)) {
    int64_t value = 0;
    std::memcpy(&value, from, bytesOf(type));
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
      const bool isOperation = number == 801 && other->kind == kPointwiseOp;
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

PUBLIC int cudnnBackendFinalize(Descriptor *d) {
  const std::lock_guard lock(mutex);
  if (!alive().contains(d))
    return refuse(kBadParam, "no descriptor");
  if (d->isFinal)
    return refuse(kBadParam, "it is finalized already");
  for (const Attribute &attribute : kAttributes)
    if (attribute.kind == d->kind && attribute.isRequired && !d->has(attribute.number))
      return refuse(kBadParam, "an attribute was not set");
  if (const char *why = dead(*d))
    return refuse(kBadParam, why);
  int status = kOk;
  switch (d->kind) {
  case kTensor:
    status = finalizeTensor(*d);
    break;
  case kConvolution:
    status = finalizeConvolution(*d);
    break;
  case kPointwise:
    if (d->one(1) != 0 || (d->one(0) != 0 && d->one(0) != 100))
      status = refuse(kNotSupported, "the pointwise operation, or its type of computing");
    break;
  case kForward:
    status = finalizeForward(*d);
    break;
  case kPointwiseOp:
    status = finalizePointwiseOp(*d);
    break;
  case kGraph:
    status = finalizeGraph(*d);
    break;
  case kHeuristics:
    status = finalizeHeuristics(*d);
    break;
  case kEngine:
    status = finalizeEngine(*d);
    break;
  case kConfig:
    status = finalizeConfig(*d);
    break;
  case kPlan:
    status = finalizePlan(*d);
    break;
  case kPack:
    status = finalizePack(*d);
    break;
  case kKnob:
    break;
  }
  d->isFinal = status == kOk;
  return status;
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
  for (int64_t i = 0; i < *count; ++i, to += bytesOf(type)) {
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
      std::memcpy(to, &value, bytesOf(type));
  }
  return kOk;
}

PUBLIC int cudnnBackendExecute(Context *context, Descriptor *plan, Descriptor *pack) {
  const std::lock_guard lock(mutex);
  if (!contexts().contains(context) || !driver())
    return refuse(kBadParam, "no handle");
  if (!alive().contains(plan) || plan->kind != kPlan || !alive().contains(pack) || pack->kind != kPack)
    return refuse(kBadParam, "no plan, or no pack");
  if (!plan->isFinal || !pack->isFinal)
    return refuse(kNotFinalized, "a descriptor that is not finalized");
  if (const char *why = dead(*plan))
    return refuse(kBadParam, why);
  if (plan->one(400) != reinterpret_cast<int64_t>(context))
    return refuse(kBadParam, "a plan of another handle");
  if (state.failure)
    return refuse(state.failure, "asked for by a test");
  const Descriptor &config = plan->other(401), &engine = config.other(300), &graph = engine.other(1300);
  auto run = std::make_unique<Run>();
  run->operations = operationsOf(graph);
  run->engine = engine.one(1301);
  if (config.has(302))
    for (int64_t each : config.list(302))
      run->isBackwards = reinterpret_cast<const Descriptor *>(each)->one(601) == 1;
  for (size_t i = 0; i < pack->list(1000).size(); ++i)
    run->addresses[pack->list(1000)[i]] = static_cast<uint64_t>(pack->list(1001)[i]);
  std::vector<LibraryBytes> bytes;
  auto touch = [&](const Tensor &t, bool isWrite) -> int {
    if (t.isVirtual)
      return kOk;
    const auto at = run->addresses.find(t.id);
    if (at == run->addresses.end())
      return refuse(kBadParam, "a tensor has no address");
    if (!at->second)
      return refuse(kNullPointer, "the address of a tensor is null");
    if (at->second % static_cast<uint64_t>(t.alignment))
      return refuse(kMisaligned, "an address is not aligned as its tensor says");
    addBytes(bytes, *run, t, isWrite);
    return kOk;
  };
  for (const Operation &o : run->operations) {
    int status = o.isForward ? touch(o.x, false) : kOk;
    if (!status && !o.w.dims.empty())
      status = touch(o.w, false);
    if (!status && o.isForward && o.beta != 0)
      status = touch(o.y, false);
    if (!status)
      status = touch(o.y, true);
    if (status)
      return status;
  }
  run->workspace = static_cast<uint64_t>(pack->one(1003));
  if (const auto used = static_cast<uint64_t>(plan->one(402))) {
    if (!run->workspace)
      return refuse(kNullPointer, "the engine needs a workspace");
    bytes.push_back({run->workspace, used, true});
  }
  const int engineNumber = static_cast<int>(run->engine);
  if (driver()->enqueue(context->stream, "cudnnBackendExecute", bytes.data(), bytes.size(), Run::run, run.get()) != 0)
    return refuse(kExecutionFailed, "the driver");
  static_cast<void>(run.release()); // the operation's
  ++state.executed;
  state.lastEngine = engineNumber;
  return kOk;
}
