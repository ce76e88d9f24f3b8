#include <tressel/custom_op.h>

#include "frontend/tensor/Fail.h"
#include "frontend/trace/Record.h"
#include "ir/op/CustomOp.h"

#include <algorithm>
#include <deque>
#include <mutex>

namespace tressel {
namespace {

op::Attr toAttr(const CustomAttrValue &value) {
  return std::visit([](const auto &v) { return op::Attr(v); }, value);
}

CustomAttrs fromAttrs(const std::vector<runtime::CustomAttr> &attrs) {
  std::vector<CustomAttrs::Entry> entries;
  for (const runtime::CustomAttr &a : attrs)
    entries.emplace_back(a.name, a.value);
  return CustomAttrs(std::move(entries));
}

/// The declared attributes with the values of a call. A float attribute takes an integer.
op::Attrs attrsOfCall(const CustomOpSpec &spec, const CustomAttrs &given, SourceLoc where) {
  op::Attrs attrs(spec.attrs.entries().size());
  for (const CustomAttrs::Entry &entry : given.entries()) {
    const auto &declared = spec.attrs.entries();
    auto it = std::ranges::find(declared, entry.name, &CustomAttrs::Entry::name);
    if (it == declared.end()) {
      std::string known;
      for (const auto &d : declared)
        known += (known.empty() ? "" : ", ") + d.name;
      detail::fail<Error>("there is no attribute '" + entry.name + "'", where, spec.name,
                          known.empty() ? "the op has none" : "it has " + known);
    }
    op::Attr &attr = attrs[static_cast<size_t>(it - declared.begin())];
    const bool widens = std::holds_alternative<double>(it->value) && std::holds_alternative<int64_t>(entry.value);
    attr = widens ? op::Attr(static_cast<double>(std::get<int64_t>(entry.value))) : toAttr(entry.value);
  }
  return attrs;
}

} // namespace

const CustomAttrValue &CustomAttrs::at(const std::string &name) const {
  auto it = std::ranges::find(entries_, name, &Entry::name);
  if (it == entries_.end())
    throw Error("there is no attribute '" + name + "'");
  return it->value;
}

template <typename T> static const T &valueAs(const CustomAttrValue &value, const std::string &name, const char *what) {
  if (const T *v = std::get_if<T>(&value))
    return *v;
  throw Error("the attribute '" + name + "' is not " + what);
}
int64_t CustomAttrs::as_int(const std::string &name) const { return valueAs<int64_t>(at(name), name, "an integer"); }
double CustomAttrs::as_double(const std::string &name) const {
  if (const int64_t *i = std::get_if<int64_t>(&at(name)))
    return static_cast<double>(*i);
  return valueAs<double>(at(name), name, "a number");
}
const std::string &CustomAttrs::as_string(const std::string &name) const {
  return valueAs<std::string>(at(name), name, "a string");
}
const std::vector<int64_t> &CustomAttrs::as_ints(const std::string &name) const {
  return valueAs<std::vector<int64_t>>(at(name), name, "a list of integers");
}

CustomOp::CustomOp(CustomOpSpec spec) : spec_(std::move(spec)) {
  if (spec_.symbol.empty() && spec_.cpu)
    spec_.symbol = spec_.name; // enough in this process; only packages need an exported symbol
  runtime::CustomOp made;
  made.name = spec_.name;
  made.minInputs = spec_.num_inputs;
  made.maxInputs = std::max(spec_.num_inputs, spec_.max_inputs);
  for (const CustomAttrs::Entry &e : spec_.attrs.entries())
    made.attrs.push_back({e.name, e.value});
  made.numResults = spec_.num_results;
  made.hasEffects = spec_.has_effects;
  made.symbol = spec_.symbol;
  made.library = spec_.library;
  made.kernel = spec_.cpu;
  made.grain = spec_.grain;
  // The functions see this object's copies, which live as long as the op does.
  if (spec_.infer)
    made.infer = [this](auto in, const auto &attrs) { return spec_.infer(in, fromAttrs(attrs)); };
  if (spec_.range)
    made.range = [this](auto in, auto out, const auto &attrs) { return spec_.range(in, out, fromAttrs(attrs)); };
  if (spec_.scratch)
    made.scratch = [this](auto in, auto out, const auto &attrs) { return spec_.scratch(in, out, fromAttrs(attrs)); };
  if (spec_.flops)
    made.flops = [this](auto in, auto out, const auto &attrs) { return spec_.flops(in, out, fromAttrs(attrs)); };
  runtime::registerCustomOp(std::move(made));
  info_ = op::findCustomOp(spec_.name);
}

Tensor CustomOp::one(std::span<const Arg> operands, const CustomAttrs &attrs) const {
  if (spec_.num_results != 1)
    detail::fail<Error>("has " + std::to_string(spec_.num_results) + " results", detail::toLoc(operands[0].where()),
                        spec_.name, "use call()");
  return detail::record(*info_, operands, attrsOfCall(spec_, attrs, detail::toLoc(operands[0].where())));
}

Tensor CustomOp::operator()(Arg a, const CustomAttrs &attrs) const {
  const Arg args[] = {std::move(a)};
  return one(args, attrs);
}
Tensor CustomOp::operator()(Arg a, Arg b, const CustomAttrs &attrs) const {
  const Arg args[] = {std::move(a), std::move(b)};
  return one(args, attrs);
}
Tensor CustomOp::operator()(Arg a, Arg b, Arg c, const CustomAttrs &attrs) const {
  const Arg args[] = {std::move(a), std::move(b), std::move(c)};
  return one(args, attrs);
}

std::vector<Tensor> CustomOp::call(std::vector<Arg> operands, const CustomAttrs &attrs,
                                   std::source_location where) const {
  return detail::recordList(*info_, operands, attrsOfCall(spec_, attrs, detail::toLoc(where)), where);
}

namespace {
struct RegisteredOps {
  std::mutex mutex;
  std::deque<CustomOp> list;
  static RegisteredOps &all() {
    static auto &ops = *new RegisteredOps;
    return ops;
  }
};
} // namespace

const CustomOp &register_op(CustomOpSpec spec) {
  RegisteredOps &ops = RegisteredOps::all();
  std::lock_guard lock(ops.mutex);
  return ops.list.emplace_back(std::move(spec));
}

const CustomOpSpec *detail::customSpec(std::string_view name) {
  RegisteredOps &ops = RegisteredOps::all();
  std::lock_guard lock(ops.mutex);
  const auto found = std::ranges::find(ops.list, name, &CustomOp::name);
  return found == ops.list.end() ? nullptr : &found->spec();
}

} // namespace tressel
