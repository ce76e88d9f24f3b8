#include "frontend/trace/Fingerprint.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/Recorder.h"

#include "tressel/runtime/Engine.h"

#include "frontend/tensor/Convert.h"
#include "frontend/tensor/Machine.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace tressel::detail {
namespace {

uint64_t identify(const Tensor &t) {
  if (t.traced())
    return t.impl()->number;
  // A captured tensor is identified by its type and its first 4096 bytes.
  runtime::Engine::global().wait(*t.impl()->storage, {}, "fingerprint");
  const auto n = static_cast<size_t>(std::min<int64_t>(t.type().bytes(), 4096));
  return mixHash(mixHash(0x1234567, t.type()),
             std::hash<std::string_view>()(
                 {static_cast<const char *>(elementsOf(*t.impl(), t.impl()->where, "fingerprint")), n}));
}

} // namespace

std::string Fingerprint::differsFrom(const Fingerprint &earlier) const {
  const auto &a = entries_, &b = earlier.entries_;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i].hash != b[i].hash)
      return std::string(a[i].what) + " at " + a[i].where.str() + " was " + b[i].what + " at " + b[i].where.str() +
             detailsOf(a[i], earlier, b[i]);
  if (a.size() == b.size())
    return {};
  const bool more = a.size() > b.size();
  const Entry &e = more ? a[b.size()] : b[a.size()];
  return std::string(e.what) + " at " + e.where.str() + (more ? " was not there" : " is not there any more");
}

Fingerprint::Part Fingerprint::partOf(const Tensor &t) {
  Part part{identify(t), 0, t.traced() ? Part::Kind::Traced : Part::Kind::Constant, t.type()};
  if (!t.traced() && t.size() == 1) {
    part.kind = Part::Kind::Number;
    part.number = loadDouble(elementsOf(*t.impl(), t.impl()->where, "fingerprint"), t.dtype(), 0);
  }
  return part;
}

Fingerprint::Part Fingerprint::partOf(const op::Attr &attr) {
  Part part{op::mixHash(0, attr)};
  part.kind = Part::Kind::Number;
  if (auto *i = std::get_if<int64_t>(&attr))
    part.number = static_cast<double>(*i);
  else if (auto *size = std::get_if<Size>(&attr); size && size->isNumber())
    part.number = static_cast<double>(size->number());
  else if (auto *f = std::get_if<double>(&attr))
    part.number = *f;
  else if (auto *b = std::get_if<bool>(&attr))
    part.number = *b;
  else
    part.kind = Part::Kind::Other;
  return part;
}

std::string Fingerprint::Part::str() const {
  switch (kind) {
  case Kind::Traced:
    return "a computed " + type.str();
  case Kind::Constant:
    return "a captured " + type.str();
  case Kind::Number: {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
  }
  case Kind::Other:
    break;
  }
  return {};
}

/// ": operand 1 is 3, was 2", of two calls of the same op.
std::string Fingerprint::detailsOf(const Entry &now, const Fingerprint &earlier, const Entry &then) const {
  if (!now.info || now.info != then.info)
    return {};
  if (now.numOperands != then.numOperands)
    return " with another number of operands";
  std::string details;
  const size_t n = now.numOperands + now.info->attrs.size();
  for (size_t i = 0; i < n; ++i) {
    const Part &a = parts_[now.firstPart + i], &b = earlier.parts_[then.firstPart + i];
    if (a.id == b.id)
      continue;
    const bool isOperand = i < now.numOperands;
    details += (details.empty() ? ": " : "; ") +
               (isOperand ? "operand " + std::to_string(i)
                          : "attribute '" + std::string(now.info->attrs[i - now.numOperands].name) + "'");
    const std::string is = a.str(), was = b.str();
    if (is.empty() && was.empty())
      details += " is another";
    else if (is == was)
      details += " is another one: " + is;
    else
      details += " is " + is + ", was " + was;
  }
  return details.empty() ? " with other operands" : details;
}

void Fingerprint::beginGradient(std::span<const Tensor> results, std::span<const Tensor> cotangents,
                                std::span<const Tensor> inputs, SourceLoc where) {
  uint64_t h = 0x2345678;
  for (std::span<const Tensor> tensors : {results, cotangents, inputs})
    for (const Tensor &t : tensors)
      h = mixHash(h, t.defined() ? identify(t) : 0);
  note({h, "a gradient", userLine(where)});
  ++gradients_;
}

void Fingerprint::op(const op::OpInfo &info, std::span<const Tensor> inputs, const op::Attrs &attrs, SourceLoc where) {
  if (gradients_ > 0)
    return;
  uint64_t h = reinterpret_cast<uintptr_t>(&info);
  const auto first = static_cast<uint32_t>(parts_.size());
  for (const Tensor &t : inputs)
    h = mixHash(h, parts_.emplace_back(partOf(t)).id);
  for (const op::Attr &attr : attrs)
    h = mixHash(h, parts_.emplace_back(partOf(attr)).id);
  if (const uint32_t place = callMode() >> 1) [[unlikely]]
    h = mixHash(h, place);
  if (threadState.segment) [[unlikely]]
    h = mixHash(h, threadState.segment);
  note({h, info.name, userLine(where), first, static_cast<uint32_t>(inputs.size()), &info});
}

void Fingerprint::read(const VariableImpl &variable, SourceLoc where) {
  note({reinterpret_cast<uintptr_t>(&variable), "a Variable read", userLine(where)});
}

void Fingerprint::assign(const VariableImpl &variable, const Tensor &value, SourceLoc where) {
  note({mixHash(reinterpret_cast<uintptr_t>(&variable), identify(value)), "a Variable assigned", userLine(where)});
}

void Fingerprint::result(const Tensor &t) {
  note({mixHash(0x7654321, t.defined() ? identify(t) : 0), "a result", t.defined() ? t.impl()->where : SourceLoc{}});
}

void Fingerprint::control(const ControlCall &call) {
  uint64_t h = mixHash(static_cast<uint64_t>(call.kind), static_cast<uint64_t>(call.trips.bits()));
  if (call.condition.defined())
    h = mixHash(h, identify(call.condition));
  for (const std::vector<Tensor> &tensors : {call.carried, call.slices})
    for (const Tensor &t : tensors)
      h = mixHash(h, identify(t));
  note({h, call.name, userLine(toLoc(call.where))});
}

void FingerprintRecorder::op(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const TensorType> types,
                             const op::Attrs &attrs, SourceLoc where, std::span<Tensor> results) {
  fingerprint.op(info, inputs, attrs, where);
  for (size_t i = 0; i < types.size(); ++i)
    results[i] = makeValue(types[i], nullptr, userLine(where));
}

Recorder::GradientStep::GradientStep(Recorder *recorder, std::span<const Tensor> results,
                                     std::span<const Tensor> cotangents, std::span<const Tensor> inputs,
                                     SourceLoc where)
    : recorder_(recorder), numValues_(recorder ? recorder->numValues_ : 0) {
  if (Fingerprint *fingerprint = recorder ? recorder->fingerprintOf() : nullptr)
    fingerprint->beginGradient(results, cotangents, inputs, where);
}
Recorder::GradientStep::~GradientStep() {
  if (!recorder_)
    return;
  recorder_->numValues_ = numValues_; // recorders that follow types only do not number these values, and numbers must
                                      // agree
  if (Fingerprint *fingerprint = recorder_->fingerprintOf())
    fingerprint->endGradient();
}

Tensor &FingerprintRecorder::state(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) {
  auto [it, isNew] = states_.try_emplace(variable.get());
  if (isNew) {
    fingerprint.read(*variable, where);
    it->second = makeValue(variable->value.type(), nullptr, where);
  }
  return it->second;
}

Tensor FingerprintRecorder::read(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) {
  return state(variable, where);
}

void FingerprintRecorder::assign(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where) {
  Tensor &current = state(variable, where);
  fingerprint.assign(*variable, value, where);
  current = value;
}

} // namespace tressel::detail
