#include "Unrolled.h"

#include "tressel/runtime/DeviceGraphs.h"
#include "tressel/runtime/Dim.h"

namespace tressel::runtime {

std::optional<CommandCounts> unrolled(const Schedule &s, const CommandList &p, const Command &loop) {
  if (loop.kind != CommandKind::Loop || s.streams[loop.stream].device.kind != DeviceKind::Gpu)
    return std::nullopt;
  const int64_t trips = dim::hint(p.scalars[loop.firstScalar]);
  if (trips < 0 || static_cast<uint64_t>(trips) > kMostUnrolled)
    return std::nullopt;
  const CommandList &body = s.bodies[loop.body];
  CommandCounts once{.fills = loop.numOperands == loop.numScalars ? 1u : 0u}; // writes the number of the iteration
  for (const Command &c : body.commands) {
    const bool isOne = isByAccelerator(s, c);
    const std::optional<CommandCounts> inner = isOne ? std::nullopt : unrolled(s, body, c);
    if (!isOne && !inner)
      return std::nullopt;
    const CommandCounts counts = inner.value_or(CommandCounts{});
    once.kernels += counts.kernels + (isOne && c.kind == CommandKind::Launch);
    once.copies += counts.copies + (isOne && c.kind == CommandKind::Copy);
    once.fills += counts.fills + (isOne && c.kind == CommandKind::Fill);
  }
  const auto times = static_cast<uint64_t>(trips);
  if (once.all() * times > kMostUnrolled)
    return std::nullopt;
  return CommandCounts{once.kernels * times, once.copies * times, once.fills * times};
}

} // namespace tressel::runtime
