// From a call to an op with typed operands.
#include "frontend/trace/Record.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/Recorder.h"
#include "frontend/trace/TensorTape.h"

#include "frontend/tensor/Convert.h"
#include "frontend/trace/Debug.h"
#include "frontend/eager/Eager.h"
#include "frontend/tensor/WeakTypes.h"
#include "ir/op/Infer.h"
#include "ir/op/Table.h"
#include "runtime/types/Hash.h"
#include <tressel/ops.h>

#include <array>
#include <bit>

namespace tressel {

Arg::Arg(const Dim &d) : where_(d.where()) {
  if (d.is_static()) {
    kind_ = Kind::Int;
    int_ = d.raw().number();
  } else {
    tensor_ = dim_size(d, i64, d.where());
  }
}

Tensor Arg::as_tensor() const {
  switch (kind_) {
  case Kind::Tensor:
    return tensor_;
  case Kind::Bool: {
    const bool value = int_ != 0;
    return detail::fromBytes(&value, {bool_, {}}, where_);
  }
  case Kind::Int:
    return detail::fromBytes(&int_, {i64, {}}, where_);
  case Kind::Float:
    break;
  }
  const auto value = static_cast<float>(float_);
  return detail::fromBytes(&value, {f32, {}}, where_);
}

namespace detail {
namespace {

/// A number as a tensor of rank 0. Programs use few different ones, again and again, so each thread remembers some.
Tensor scalarTensor(const Arg &arg, DType dtype) {
  struct Entry {
    uint64_t bits = 0;
    int kind = -1;
    Tensor tensor;
  };
  // Thread-locals of the main thread are destroyed before static objects, whose destructors may still call ops.
  static thread_local constinit bool gone = false;
  struct Entries : std::array<Entry, 64> {
    ~Entries() { gone = true; }
  };
  static thread_local Entries entries;
  const bool isFloat = arg.kind() == Arg::Kind::Float;
  const uint64_t bits = isFloat ? std::bit_cast<uint64_t>(arg.as_double()) : static_cast<uint64_t>(arg.as_int());
  const int kind = static_cast<int>(dtype) * 2 + isFloat;
  Entry *e = gone ? nullptr : &entries[(bits * kHashFactor + static_cast<unsigned>(kind) * 0x85EBCA6Bu) >> 58];
  if (e && e->kind == kind && e->bits == bits)
    return e->tensor;
  Tensor t = allocateTensor({dtype, {}}, toLoc(arg.where()));
  if (isFloat) {
    const double v = arg.as_double();
    convertElements(t.impl()->storage->data(), dtype, &v, DType::f64, 1);
  } else {
    const int64_t v = arg.as_int();
    convertElements(t.impl()->storage->data(), dtype, &v, DType::i64, 1);
  }
  if (e)
    *e = {bits, kind, t};
  return t;
}

/// Operand tensors of a call, on the stack for all but very long concatenations.
class Operands {
public:
  Operands(const op::OpInfo &info, std::span<const Arg> args) {
    if (args.size() > few_.size())
      many_.resize(args.size());
    tensors_ = args.size() > few_.size() ? std::span<Tensor>(many_) : std::span<Tensor>(few_.data(), args.size());
    bool numbers = false;
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].kind() == Arg::Kind::Tensor)
        tensors_[i] = args[i].tensor();
      else
        numbers = true;
    }
    if (!numbers)
      return;
    WeakTypes types(info, args);
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].kind() == Arg::Kind::Tensor)
        continue;
      const DType dtype = types.of(args[i], i);
      if (args[i].kind() == Arg::Kind::Int && !fitsNumber(args[i].as_int(), dtype))
        fail<ShapeError>("the number " + std::to_string(args[i].as_int()) + " does not fit " +
                             std::string(nameOf(dtype)),
                         toLoc(args[i].where()), info.name, "convert the tensor with cast() first");
      tensors_[i] = scalarTensor(args[i], dtype);
    }
  }
  std::span<const Tensor> tensors() const { return tensors_; }

private:
  std::array<Tensor, 4> few_;
  std::vector<Tensor> many_;
  std::span<Tensor> tensors_;
};

void checkOperand(const Tensor &t, const Recorder *recorder, const op::OpInfo &info, SourceLoc where) {
  if (!t.defined())
    fail<Error>("an operand is an empty Tensor", where, info.name, "assign it a value first");
  if (t.traced() && (!recorder || t.impl()->trace != recorder->number()))
    fail<TraceError>("an operand " + t.type().str() + " belongs to a trace that has ended (made at " +
                         t.impl()->where.str() + ")",
                     where, info.name, "return tensors from the traced function instead of keeping them aside");
}

} // namespace

/// Without the optional operands at the end that are absent.
static std::span<const Arg> presentArgs(const op::OpInfo &info, std::span<const Arg> args) {
  auto isAbsent = [](const Arg &arg) { return arg.kind() == Arg::Kind::Tensor && !arg.tensor().defined(); };
  while (!args.empty() && args.size() <= info.operands.size() && info.operands[args.size() - 1].optional &&
         isAbsent(args.back()))
    args = args.first(args.size() - 1);
  return args;
}

void recordInto(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> given, const std::source_location &at,
                std::span<Tensor> results) {
  Recorder *recorder = Recorder::current();
  const SourceLoc where = toLoc(at);
  Operands operands(info, presentArgs(info, args));
  for (const Tensor &t : operands.tensors())
    checkOperand(t, recorder, info, where);
  if (!recorder) {
    runEager(info, operands.tensors(), given, where, results);
    if (checkingNan()) [[unlikely]]
      checkResults(info.name, operands.tensors(), results, where);
    if (threadState.tape) [[unlikely]]
      noteOnTapes(info, operands.tensors(), {given.begin(), given.end()}, results, at);
    return;
  }
  op::Attrs attrs(given.begin(), given.end());
  const std::vector<TensorType> types = inferResults(info, operands.tensors(), attrs, where);
  recorder->op(info, operands.tensors(), types, attrs, where, results);
  if (threadState.tape) [[unlikely]]
    noteOnTapes(info, operands.tensors(), std::move(attrs), results, at);
}

std::vector<Tensor> recordList(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> given,
                               const std::source_location &at) {
  op::Attrs attrs(given.begin(), given.end());
  const Operands operands(info, presentArgs(info, args));
  for (const Tensor &t : operands.tensors())
    checkOperand(t, Recorder::current(), info, toLoc(at));
  std::vector<Tensor> results(inferResults(info, operands.tensors(), attrs, toLoc(at)).size());
  recordInto(info, args, given, at, results);
  return results;
}

/// The table's messages begin with the op's name, which an Error holds apart.
static std::string withoutName(const op::OpInfo &info, std::string message) {
  const std::string prefix = std::string(info.name) + ": ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

std::vector<TensorType> inferResults(const op::OpInfo &info, std::span<const Tensor> inputs, op::Attrs &attrs,
                                     SourceLoc where) {
  if (std::string problem = op::completeAttrs(info, attrs); !problem.empty())
    fail<ShapeError>(withoutName(info, std::move(problem)), where, info.name);
  std::array<TensorType, 8> few;
  std::vector<TensorType> many(inputs.size() > few.size() ? inputs.size() : 0);
  std::span<TensorType> types = many.empty() ? std::span<TensorType>(few.data(), inputs.size()) : std::span(many);
  for (size_t i = 0; i < inputs.size(); ++i)
    types[i] = inputs[i].type();
  op::Inferred inferred = op::inferTypes(info, types, attrs);
  if (!inferred)
    fail<ShapeError>(withoutName(info, std::move(inferred.error)), where, info.name);
  return std::move(inferred.types);
}

} // namespace detail

/// Tries the flat call first, which reads the operands without moving them.
static Tensor binary(const op::OpInfo &info, Arg &a, Arg &b) {
  const Arg *const operands[] = {&a, &b};
  if (Tensor result; detail::runFlat(info, operands, {}, result)) [[likely]]
    return result;
  const Arg args[] = {std::move(a), std::move(b)};
  return detail::record(info, args, {});
}
Tensor operator+(Arg a, Arg b) { return binary(op::table::add, a, b); }
Tensor operator-(Arg a, Arg b) { return binary(op::table::sub, a, b); }
Tensor operator*(Arg a, Arg b) { return binary(op::table::mul, a, b); }
Tensor operator/(Arg a, Arg b) { return binary(op::table::div, a, b); }
Tensor operator%(Arg a, Arg b) { return binary(op::table::remainder, a, b); }
Tensor operator-(Arg a) { return negative(std::move(a)); }
Tensor operator==(Arg a, Arg b) { return binary(op::table::equal, a, b); }
Tensor operator!=(Arg a, Arg b) { return binary(op::table::not_equal, a, b); }
Tensor operator<(Arg a, Arg b) { return binary(op::table::less, a, b); }
Tensor operator<=(Arg a, Arg b) { return binary(op::table::less_equal, a, b); }
Tensor operator>(Arg a, Arg b) { return binary(op::table::greater, a, b); }
Tensor operator>=(Arg a, Arg b) { return binary(op::table::greater_equal, a, b); }

} // namespace tressel
