#include "frontend/Fingerprint.h"

#include "tressel/runtime/Engine.h"

#include <algorithm>
#include <string_view>

namespace tressel::detail {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}
uint64_t mix(uint64_t h, const TensorType &type) {
  h = mix(h, static_cast<uint64_t>(type.dtype));
  for (int64_t d : type.shape)
    h = mix(h, static_cast<uint64_t>(d));
  return h;
}
uint64_t mix(uint64_t h, const op::Attr &attr) {
  return std::visit(
      [h](const auto &v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, op::Ints>) {
          uint64_t all = mix(h, v.size());
          for (int64_t i : v)
            all = mix(all, static_cast<uint64_t>(i));
          return all;
        } else if constexpr (std::is_same_v<T, std::monostate>) {
          return mix(h, uint64_t(1));
        } else {
          return mix(h, static_cast<uint64_t>(std::hash<T>()(v)));
        }
      },
      attr);
}

uint64_t identify(const Tensor &t) {
  if (t.traced())
    return t.impl()->number;
  // Elements from outside: by type and, up to a page, by content.
  runtime::Engine::global().wait(*t.impl()->storage);
  const auto n = static_cast<size_t>(std::min<int64_t>(t.type().bytes(), 4096));
  return mix(mix(0x1234567, t.type()),
             std::hash<std::string_view>()({static_cast<const char *>(t.impl()->storage->data()), n}));
}

} // namespace

std::string Fingerprint::differsFrom(const Fingerprint &earlier) const {
  const auto &a = entries_, &b = earlier.entries_;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i].hash != b[i].hash)
      return std::string(a[i].what) + " at " + a[i].where.str() + " was " + b[i].what + " at " + b[i].where.str() +
             (std::string_view(a[i].what) == b[i].what ? " with other operands" : "");
  if (a.size() == b.size())
    return {};
  const bool more = a.size() > b.size();
  const Entry &e = more ? a[b.size()] : b[a.size()];
  return std::string(e.what) + " at " + e.where.str() + (more ? " was not there" : " is not there any more");
}

void Fingerprint::op(const op::OpInfo &info, std::span<const Tensor> inputs, const op::Attrs &attrs, SourceLoc where) {
  uint64_t h = reinterpret_cast<uintptr_t>(&info);
  for (const Tensor &t : inputs)
    h = mix(h, identify(t));
  for (const op::Attr &attr : attrs)
    h = mix(h, attr);
  entries_.push_back({h, info.name, userLine(where)});
}

void Fingerprint::read(const VariableImpl &variable, SourceLoc where) {
  entries_.push_back({reinterpret_cast<uintptr_t>(&variable), "a Variable read", userLine(where)});
}

void Fingerprint::assign(const VariableImpl &variable, const Tensor &value, SourceLoc where) {
  entries_.push_back(
      {mix(reinterpret_cast<uintptr_t>(&variable), identify(value)), "a Variable assigned", userLine(where)});
}

void Fingerprint::result(const Tensor &t) {
  entries_.push_back(
      {mix(0x7654321, t.defined() ? identify(t) : 0), "a result", t.defined() ? t.impl()->where : SourceLoc{}});
}

void Fingerprint::control(const ControlCall &call) {
  uint64_t h = mix(static_cast<uint64_t>(call.kind), static_cast<uint64_t>(call.trips));
  if (call.condition.defined())
    h = mix(h, identify(call.condition));
  for (const std::vector<Tensor> &tensors : {call.carried, call.slices})
    for (const Tensor &t : tensors)
      h = mix(h, identify(t));
  entries_.push_back({h, call.name, userLine(toLoc(call.where))});
}

void FingerprintRecorder::op(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const TensorType> types,
                             const op::Attrs &attrs, SourceLoc where, std::span<Tensor> results) {
  fingerprint.op(info, inputs, attrs, where);
  for (size_t i = 0; i < types.size(); ++i)
    results[i] = makeValue(types[i], nullptr, userLine(where));
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
