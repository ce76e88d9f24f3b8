#include "ScheduleFindings.h"

#include "ScheduleSizes.h"

namespace tressel::runtime {

LoopParts loopParts(const CommandList &p, size_t i) {
  const Command &c = p.commands[i];
  LoopParts parts{.trips = p.scalars[c.firstScalar].number(), .body = c.body};
  parts.strides = {p.scalars.data() + c.firstScalar + 1, c.numScalars - size_t(1)};
  parts.moving = operandsOf(p, i);
  if (parts.moving.size() > parts.strides.size())
    parts.moving = parts.moving.last(parts.strides.size());
  return parts;
}

std::optional<int64_t> spaceBytes(const Schedule &s, const BufferDesc &b) {
  switch (b.space) {
  case Space::Arena:
    return b.index < s.arenas.size() ? std::optional(s.arenas[b.index].bytes.number()) : std::nullopt;
  case Space::Input:
    return b.index < s.inputs.size() ? typeBytes(s.inputs[b.index].type) : std::nullopt;
  case Space::Output:
    return b.index < s.outputs.size() ? typeBytes(s.outputs[b.index].type) : std::nullopt;
  case Space::State:
    return b.index < s.states.size() ? typeBytes(s.states[b.index].type) : std::nullopt;
  case Space::Constant:
    return b.index < s.constants.size() ? std::optional(s.constants[b.index].bytes) : std::nullopt;
  }
  return std::nullopt;
}

std::string ScheduleFindings::place(const CommandList &p, Phase phase, int64_t command) const {
  const int64_t body = bodyOf(p);
  std::string text = body >= 0 ? concat("body ", body) : phase == Phase::Prepare ? "prepare" : "step";
  text += concat(" command ", command);
  const Command &c = p.commands[static_cast<size_t>(command)];
  if (c.loc < s.locations.size()) {
    const Location &l = s.locations[c.loc];
    if (!l.op.empty() || !l.file.empty())
      text += concat(" (", l.op, l.file.empty() ? "" : concat(" at ", l.file, ":", l.line), ")");
  }
  if (c.stream < s.streams.size() && s.streams.size() > 1)
    text += concat(" on stream '", s.streams[c.stream].name, "'");
  return text;
}

int64_t ScheduleFindings::bodyOf(const CommandList &p) const {
  const bool isBody = !s.bodies.empty() && &p >= s.bodies.data() && &p < s.bodies.data() + s.bodies.size();
  return isBody ? &p - s.bodies.data() : -1;
}

std::string ScheduleFindings::describe(uint32_t buffer) const {
  const BufferDesc &b = s.buffers[buffer];
  std::string text = concat("buffer ", buffer, " (", nameOf(b.space), " ", b.index);
  if (b.space == Space::State)
    text += concat(" '", s.states[b.index].name, "'");
  if (b.space == Space::Input || b.space == Space::Output)
    text += concat(" '", (b.space == Space::Input ? s.inputs : s.outputs)[b.index].name, "'");
  return concat(text, ", bytes ", b.offset, " to ", b.offset + b.bytes, ")");
}

void ScheduleFindings::structure(std::initializer_list<MessagePart> message) {
  if (!full())
    list.push_back({.message = "schedule: " + joinParts(message)});
}

void ScheduleFindings::structure(const CommandList &p, Phase phase, size_t command,
                                 std::initializer_list<MessagePart> message) {
  if (!full())
    list.push_back({.phase = phase,
                    .command = static_cast<int64_t>(command),
                    .body = bodyOf(p),
                    .loc = p.commands[command].loc,
                    .message = place(p, phase, static_cast<int64_t>(command)) + ": " + joinParts(message)});
}

void ScheduleFindings::report(ViolationKind kind, const CommandList &p, Phase phase, const Epoch &now, const Epoch *other,
                              std::initializer_list<MessagePart> message) {
  if (full())
    return;
  Violation v{.kind = kind, .phase = phase, .command = now.command, .body = bodyOf(p), .buffer = now.buffer};
  v.loc = p.commands[now.command].loc;
  if (other) {
    v.otherCommand = other->command;
    v.otherBody = bodyOf(*other->list);
    v.otherBuffer = other->buffer;
    v.otherLoc = other->list->commands[other->command].loc;
  }
  v.message = place(p, phase, now.command) + " " + joinParts(message);
  list.push_back(std::move(v));
}

} // namespace tressel::runtime
