// A schedule with symbolic sizes, and the numbers of one call.
#pragma once

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Schedule.h"

#include <span>

namespace tressel::runtime {

/// Calls fn(Size &) for every size of the schedule: bytes, offsets, units, shapes, scalars.
template <typename S, typename Fn>
requires std::same_as<std::remove_const_t<S>, Schedule>
void forEachSize(S &s, Fn fn) {
  auto inType = [&](auto &type) {
    for (auto &d : type.shape)
      fn(d);
  };
  for (auto &axis : s.mesh)
    fn(axis.size);
  for (auto &arena : s.arenas)
    fn(arena.bytes);
  for (auto &buffer : s.buffers)
    fn(buffer.offset), fn(buffer.bytes), inType(buffer.type);
  for (auto *values : {&s.inputs, &s.outputs})
    for (auto &value : *values)
      inType(value.type);
  for (auto &kernel : s.kernels)
    fn(kernel.range), fn(kernel.grain), fn(kernel.scratchBytes), fn(kernel.flops), fn(kernel.bytes);
  auto inList = [&](auto &list) {
    for (auto &scalar : list.scalars)
      fn(scalar);
  };
  inList(s.prepare), inList(s.step);
  for (auto &body : s.bodies)
    inList(body);
  fn(s.peakBytes), fn(s.peakLowerBoundBytes);
}

/// The schedule for these sizes: numbers everywhere, no symbols left. Throws Error when a symbol has no value or a
/// number leaves 64 bits.
Schedule instantiate(const Schedule &schedule, const dim::Values &values);

/// The symbols' values for inputs of these shapes. Throws ShapeError when one does not fit its input, lies outside of
/// its bounds, or disagrees with another.
dim::Values dimsOf(const Schedule &schedule, std::span<const Shape> inputs);

/// A symbol of the schedule by name, or 0.
Size findDim(const Schedule &schedule, std::string_view name);

/// Checks values against the bounds: "'batch' is 600, but lies between 1 and 512". Throws ShapeError.
void checkDims(const Schedule &schedule, const dim::Values &values);

} // namespace tressel::runtime
