// Variables that live on several accelerators at once (Variable::on of several): whole on each, or in parts.
//
// The Variable itself stays one cell, with a value on the host, which user code reads and assigns. Programs over a mesh
// use a further Variable per rank, its part, in that rank's memory. The copy that was written last is current. The
// others are updated on demand: the parts before a program runs, the host's value before it is read.
#pragma once

#include "frontend/tensor/StateGroup.h"

#include <tressel/variable.h>

#include <memory>
#include <vector>

namespace tressel::runtime {
class Machine;
}

namespace tressel::detail {

/// The part of a tensor that one rank has: first index and number of elements, per dimension.
struct Box {
  std::vector<std::pair<int64_t, int64_t>> dims;
  bool operator==(const Box &) const = default;
};

/// All of it is guarded by the lock of the Variable's group.
class Spread {
public:
  /// TensorImpl::home of each rank.
  explicit Spread(std::vector<uint32_t> homes);

  const std::vector<uint32_t> homes;
  /// Unique in the process. A program compiled for one Spread's parts cannot use another's, even on the same devices.
  const uint64_t serial;

  /// The parts under one sharding. Programs share ownership of them.
  struct Layout {
    std::vector<Box> boxes; ///< by rank; together they cover the tensor
    std::vector<std::shared_ptr<VariableImpl>> parts;
    std::shared_ptr<runtime::Machine> machine;
    bool isCurrent = false;
  };
  /// Made at the first call for these boxes on the current machine, with the current value.
  std::shared_ptr<Layout> layoutOf(VariableImpl &whole, const std::vector<Box> &boxes, SourceLoc where);
  /// Updates the parts to the current value.
  void bring(VariableImpl &whole, Layout &layout, SourceLoc where);
  /// Before a program writes the parts: makes them the only current copy.
  void noteWritten(const Layout &layout);
  /// Updates the host's value to the current one.
  void settle(VariableImpl &whole, SourceLoc where);
  /// After the host's value was written: makes it the only current copy.
  void noteWhole();

private:
  std::vector<std::shared_ptr<Layout>> layouts_;
  bool wholeIsCurrent_ = true;
};

/// Gives `variable`, which has the shape of `other`, the home and sharding of `other`.
void lieAs(VariableImpl &other, const Variable &variable);

/// A program's use of a spread Variable.
struct SpreadUse {
  std::shared_ptr<VariableImpl> whole;
  std::shared_ptr<Spread> spread;
  std::shared_ptr<Spread::Layout> layout;
  bool isWritten = false;
};

} // namespace tressel::detail
