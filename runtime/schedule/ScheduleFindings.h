// What is wrong with a schedule, as the verifier's parts find it, and how its commands and buffers are named.
#pragma once

#include "ByteHistory.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/VerifySchedule.h"

#include <optional>
#include <span>

#pragma GCC visibility push(hidden) // of no use outside, and names take room
namespace tressel::runtime {

/// Operands, waits and loops of structurally valid commands.
inline std::span<const Operand> operandsOf(const CommandList &p, size_t command) {
  const Command &c = p.commands[command];
  return {p.operands.data() + c.firstOperand, c.numOperands};
}
inline std::span<const Wait> waitsOf(const CommandList &p, size_t command) {
  const Command &c = p.commands[command];
  return {p.waits.data() + c.firstWait, c.numWaits};
}
/// A loop's trip count and the buffers that move, with how far.
struct LoopParts {
  int64_t trips = 0;
  uint32_t body = 0; ///< tells loops apart
  std::span<const Operand> moving;
  std::span<const Size> strides;
  int64_t stride(size_t m) const { return strides[m].number(); }
};
[[gnu::noinline]] LoopParts loopParts(const CommandList &p, size_t command);

/// Bytes of the space that the buffer lies in; nothing if there is no such space.
[[gnu::noinline]] std::optional<int64_t> spaceBytes(const Schedule &s, const BufferDesc &b);

/// At most `limit` violations of one schedule, which must outlive this.
class ScheduleFindings {
public:
  ScheduleFindings(const Schedule &schedule, size_t limit) : s(schedule), limit(limit) {}

  bool full() const { return list.size() >= limit; }
  bool empty() const { return list.empty(); }
  size_t size() const { return list.size(); }
  void add(Violation violation) { list.push_back(std::move(violation)); }
  std::vector<Violation> take() { return std::move(list); }

  [[gnu::noinline]] std::string place(const CommandList &p, Phase phase, int64_t command) const;
  /// The number of a body; -1 for prepare and step.
  [[gnu::noinline]] int64_t bodyOf(const CommandList &p) const;
  [[gnu::noinline]] std::string describe(uint32_t buffer) const;

  /// A fault of the tables, or of one command.
  [[gnu::noinline]] void structure(std::initializer_list<MessagePart> message);
  [[gnu::noinline]] void structure(const CommandList &p, Phase phase, size_t command,
                                   std::initializer_list<MessagePart> message);
  /// A fault of an access, and of the earlier one if there are two.
  [[gnu::noinline]] void report(ViolationKind kind, const CommandList &p, Phase phase, const Epoch &now, const Epoch *other,
                                std::initializer_list<MessagePart> message);

private:
  const Schedule &s;
  const size_t limit;
  std::vector<Violation> list;
};

/// Whether every index, size, offset and access kind means something, of the tables and of both command lists; finds what
/// does not.
struct StructureResult {
  bool tables = false, prepare = false, step = false; ///< what may be walked
};
[[gnu::noinline]] StructureResult checkStructure(const Schedule &schedule, ScheduleFindings &findings);

} // namespace tressel::runtime
#pragma GCC visibility pop
