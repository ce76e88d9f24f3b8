#include "frontend/tensor/Spread.h"

#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Make.h"
#include "tressel/runtime/Engine.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tressel::detail {
namespace {

/// Copies between a tensor and the part of it that a box covers, line by line.
void copyBox(std::byte *to, const std::byte *from, const TensorType &whole, const Box &box, bool intoPart) {
  const auto rank = static_cast<size_t>(whole.rank());
  const auto item = static_cast<int64_t>(sizeOf(whole.dtype));
  if (rank == 0) {
    std::memcpy(to, from, static_cast<size_t>(item));
    return;
  }
  int64_t lines = 1;
  for (size_t d = 0; d + 1 < rank; ++d)
    lines *= box.dims[d].second;
  const int64_t bytes = box.dims[rank - 1].second * item;
  for (int64_t line = 0; line < lines; ++line) {
    int64_t rest = line, at = box.dims[rank - 1].first, stride = whole.shape.extent(static_cast<int>(rank) - 1);
    for (size_t d = rank - 1; d-- > 0;) {
      at += (box.dims[d].first + rest % box.dims[d].second) * stride;
      rest /= box.dims[d].second;
      stride *= whole.shape.extent(static_cast<int>(d));
    }
    std::memcpy(to + (intoPart ? line * bytes : at * item), from + (intoPart ? at * item : line * bytes),
                static_cast<size_t>(bytes));
  }
}

/// Waits for a value, and throws its failure.
const std::byte *elements(const Tensor &value, SourceLoc where) {
  runtime::Engine::global().wait(*value.impl()->storage, where, "a Variable on several devices");
  return static_cast<const std::byte *>(elementsOf(*value.impl(), where, "a Variable on several devices"));
}

bool isWhole(const Box &box, const TensorType &type) {
  for (size_t d = 0; d < box.dims.size(); ++d)
    if (box.dims[d].second != type.shape.extent(static_cast<int>(d)))
      return false;
  return true;
}

Tensor partOf(const Tensor &whole, const Box &box, SourceLoc where) {
  if (isWhole(box, whole.type()))
    return whole;
  std::vector<Size> sizes;
  for (auto [first, count] : box.dims)
    sizes.push_back(count);
  Tensor part = allocateTensor({whole.dtype(), Shape(std::span<const Size>(sizes))}, where);
  copyBox(static_cast<std::byte *>(part.impl()->storage->data()), elements(whole, where), whole.type(), box, true);
  return part;
}

} // namespace

static std::atomic<uint64_t> numSpreads = 0;

Spread::Spread(std::vector<uint32_t> homes) : homes(std::move(homes)), serial(++numSpreads) {}

void lieAs(VariableImpl &other, const Variable &variable) {
  std::shared_ptr<Spread> spread;
  std::string sharding;
  uint32_t home = 0;
  {
    const StateGroup::Lock lock(other);
    spread = other.spread, sharding = other.sharding, home = other.home;
  }
  if (home)
    variable.on(Device{static_cast<int>(home) - 1});
  variable.impl()->sharding = std::move(sharding);
  if (spread)
    variable.impl()->spread = std::make_shared<Spread>(spread->homes);
}

std::shared_ptr<Spread::Layout> Spread::layoutOf(VariableImpl &whole, const std::vector<Box> &boxes, SourceLoc where) {
  const auto machine = currentMachine();
  for (const auto &layout : layouts_)
    if (layout->boxes == boxes && layout->machine == machine)
      return layout;
  settle(whole, where);
  std::erase_if(layouts_, [&](const auto &layout) { return layout->machine != machine && layout.use_count() == 1; });
  auto made = std::make_shared<Layout>(Layout{boxes, {}, machine});
  for (size_t rank = 0; rank < boxes.size(); ++rank) {
    auto part = std::make_shared<VariableImpl>();
    part->name = whole.name;
    part->home = homes[rank];
    part->value = moved(partOf(whole.value, boxes[rank], where), deviceOfHome(homes[rank]), machine, where);
    made->parts.push_back(std::move(part));
  }
  made->isCurrent = true;
  layouts_.push_back(made);
  return made;
}

void Spread::bring(VariableImpl &whole, Layout &layout, SourceLoc where) {
  if (layout.isCurrent)
    return;
  settle(whole, where);
  for (size_t rank = 0; rank < layout.parts.size(); ++rank)
    layout.parts[rank]->set(partOf(whole.value, layout.boxes[rank], where));
  layout.isCurrent = true;
}

void Spread::noteWritten(const Layout &layout) {
  for (const auto &each : layouts_)
    each->isCurrent = each.get() == &layout;
  wholeIsCurrent_ = false;
}

void Spread::noteWhole() {
  for (const auto &each : layouts_)
    each->isCurrent = false;
  wholeIsCurrent_ = true;
}

void Spread::settle(VariableImpl &whole, SourceLoc where) {
  if (wholeIsCurrent_)
    return;
  const auto current = std::ranges::find_if(layouts_, [](const auto &layout) { return layout->isCurrent; });
  const Layout &from = **current;
  const TensorType type = whole.value.type();
  Tensor next;
  for (size_t rank = 0; rank < from.parts.size(); ++rank) {
    const Tensor part = from.parts[rank]->get(where);
    if (isWhole(from.boxes[rank], type)) {
      next = moved(part, {}, nullptr, where);
      break;
    }
    if (!next.defined())
      next = allocateTensor(type, where);
    copyBox(static_cast<std::byte *>(next.impl()->storage->data()), elements(part, where), type, from.boxes[rank],
            false);
  }
  std::swap(whole.value, next);
  wholeIsCurrent_ = true;
}

} // namespace tressel::detail
