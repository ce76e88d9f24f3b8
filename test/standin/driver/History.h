// Who touched which bytes of an allocation last, and whether that is ordered with who touches them now. What is found follows from the waits, not from the order in
// which the operations happened to run.
#pragma once

#include "Clock.h"

#include <map>
#include <optional>

namespace tressel::standin {

/// Bytes [begin, end) of an allocation.
struct Bytes {
  uint64_t begin = 0, end = 0;
};

class History {
public:
  struct Conflict {
    Access other;
    bool isOtherWrite = false;
    Bytes bytes;
  };
  /// An access by an operation that knows `clock`. Returns an earlier one of the same bytes that nothing orders, one of both being a write.
  std::optional<Conflict> add(Bytes bytes, bool isWrite, const Access &access, const Clock &clock);
  /// The same without remembering it: all of [0, size) is about to go.
  std::optional<Conflict> findUnordered(const Clock &clock) const;
  void clear() { pieces_.clear(); }

private:
  struct Piece {
    uint64_t end = 0;
    Access writer;
    std::vector<Access> readers; ///< since it was written, the latest of each timeline
  };
  using Pieces = std::map<uint64_t, Piece>; ///< by their begin; they do not overlap
  void splitAt(uint64_t offset);
  Pieces pieces_;
};

} // namespace tressel::standin
