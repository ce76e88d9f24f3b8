// Variables that live on several accelerators at once (Variable::on of several): whole on each, or in parts.
//
// The Variable itself stays one cell: a value on the host, which people read and assign, and for programs over a mesh a
// Variable per rank, its part, in that rank's memory. Whichever was written last is current; the others are brought up
// to it when they are needed: parts before a program runs, the whole before somebody reads it.
#pragma once

#include "frontend/tensor/StateGroup.h"

#include <tressel/variable.h>

#include <memory>
#include <vector>

namespace tressel::runtime {
class Machine;
}

namespace tressel::detail {

/// What one rank has of a tensor: first index and number, per dimension.
struct Box {
  std::vector<std::pair<int64_t, int64_t>> dims;
  bool operator==(const Box &) const = default;
};

/// Everything is under the lock of the Variable's group.
class Spread {
public:
  /// TensorImpl::home of each rank.
  explicit Spread(std::vector<uint32_t> homes);

  const std::vector<uint32_t> homes;
  /// Of no other Spread of the process: a program for the parts of one has no use for another, at the same places though
  /// it be.
  const uint64_t serial;

  /// The parts of one layout. Programs hold them.
  struct Layout {
    std::vector<Box> boxes; ///< by rank; together they cover the tensor
    std::vector<std::shared_ptr<VariableImpl>> parts;
    std::shared_ptr<runtime::Machine> machine;
    bool isCurrent = false;
  };
  /// Made at the first call for these boxes on the current machine, with the value of now.
  std::shared_ptr<Layout> layoutOf(VariableImpl &whole, const std::vector<Box> &boxes, SourceLoc where);
  /// Gives the parts the current value.
  void bring(VariableImpl &whole, Layout &layout, SourceLoc where);
  /// A program is about to write the parts: nothing else is current then.
  void noteWritten(const Layout &layout);
  /// Gives the whole the current value.
  void settle(VariableImpl &whole, SourceLoc where);
  /// The whole was written.
  void noteWhole();

private:
  std::vector<std::shared_ptr<Layout>> layouts_;
  bool wholeIsCurrent_ = true;
};

/// The Variable, of the same shape as another one, lies where that lies, cut as that is cut.
void lieAs(VariableImpl &other, const Variable &variable);

/// A program's use of a spread Variable.
struct SpreadUse {
  std::shared_ptr<VariableImpl> whole;
  std::shared_ptr<Spread> spread;
  std::shared_ptr<Spread::Layout> layout;
  bool isWritten = false;
};

} // namespace tressel::detail
