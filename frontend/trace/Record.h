// Where an op call goes: to the program being traced in this thread, or, without one, to the engine at once.
#pragma once

#include "ir/op/OpInfo.h"

#include <tressel/arg.h>

#include <array>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace tressel::detail {

/// One op call of `results.size()` results. Fills the attributes' defaults, gives numbers their element type, leaves out
/// optional operands that are empty tensors, checks types (ShapeError) and hands the op to the recorder or to the engine.
void recordInto(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> attrs, const std::source_location &where,
                std::span<Tensor> results);
/// Where the call stands, for ops whose operands know.
inline std::source_location whereOf(std::span<const Arg> args) {
  return args.empty() ? std::source_location() : args.front().where();
}

// The generated functions in tressel/ops.h call nothing but these: by number of results.
inline Tensor record(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> attrs,
                     const std::source_location &where) {
  Tensor result;
  recordInto(info, args, attrs, where, {&result, 1});
  return result;
}
inline Tensor record(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> attrs) {
  return record(info, args, attrs, whereOf(args));
}
template <size_t N> auto recordTuple(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> attrs,
                                     const std::source_location &where) {
  std::array<Tensor, N> results;
  recordInto(info, args, attrs, where, results);
  return std::apply([](auto &...t) { return std::make_tuple(std::move(t)...); }, results);
}
template <size_t N> auto recordTuple(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> attrs) {
  return recordTuple<N>(info, args, attrs, whereOf(args));
}
std::vector<Tensor> recordList(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> attrs,
                               const std::source_location &where);
inline std::vector<Tensor> recordList(const op::OpInfo &info, std::span<const Arg> args, std::span<const op::Attr> attrs) {
  return recordList(info, args, attrs, whereOf(args));
}

/// The types of the op's results. Fills defaults of the attributes. Throws ShapeError.
std::vector<TensorType> inferResults(const op::OpInfo &info, std::span<const Tensor> inputs, op::Attrs &attrs,
                                     SourceLoc where);

} // namespace tressel::detail
