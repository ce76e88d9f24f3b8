// Collects the faults that the parts of the verifier find in a schedule, and names its commands and buffers in
// messages.
#pragma once

#include "ByteHistory.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/VerifySchedule.h"

#include <optional>
#include <span>

#pragma GCC visibility push(hidden) // internal to the library; exported names would take space
namespace tressel::runtime {

/// The operands of a structurally valid command. The functions that follow need validity too.
inline std::span<const Operand> operandsOf(const CommandList &p, size_t command) {
  const Command &c = p.commands[command];
  return {p.operands.data() + c.firstOperand, c.numOperands};
}
inline std::span<const Wait> waitsOf(const CommandList &p, size_t command) {
  const Command &c = p.commands[command];
  return {p.waits.data() + c.firstWait, c.numWaits};
}
/// A loop's trip count, and the buffers that it moves with their strides.
struct LoopParts {
  int64_t trips = 0;
  uint32_t body = 0; ///< the loop's body, which identifies the loop
  std::span<const Operand> moving;
  std::span<const Size> strides;
  int64_t stride(size_t m) const { return strides[m].number(); }
};
[[gnu::noinline]] LoopParts loopParts(const CommandList &p, size_t command);

/// Bytes of the space that contains the buffer; nothing if there is no such space.
[[gnu::noinline]] std::optional<int64_t> spaceBytes(const Schedule &s, const BufferDesc &b);

/// Collects at most `limit` violations of one schedule, which must outlive this.
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

  /// Reports a fault of the tables, or of one command.
  [[gnu::noinline]] void structure(std::initializer_list<MessagePart> message);
  [[gnu::noinline]] void structure(const CommandList &p, Phase phase, size_t command,
                                   std::initializer_list<MessagePart> message);
  /// Reports a fault of an access, and of the earlier access that it conflicts with, if there is one.
  [[gnu::noinline]] void report(ViolationKind kind, const CommandList &p, Phase phase, const Epoch &now, const Epoch *other,
                                std::initializer_list<MessagePart> message);

private:
  const Schedule &s;
  const size_t limit;
  std::vector<Violation> list;
};

/// Checks that all indices, sizes, offsets and access kinds are valid, in the tables and in both command lists.
struct StructureResult {
  bool tables = false, prepare = false, step = false; ///< which parts may be walked
};
[[gnu::noinline]] StructureResult checkStructure(const Schedule &schedule, ScheduleFindings &findings);

} // namespace tressel::runtime
#pragma GCC visibility pop
