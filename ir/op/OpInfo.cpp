#include "ir/op/OpInfo.h"

#include "ir/op/CustomOp.h"
#include "ir/op/Num.h"
#include "ir/op/Registry.h"

#include <algorithm>
#include <new>
#include <sys/mman.h>
#include <unordered_map>

namespace tressel::op {

thread_local constinit bool KeepSubnormals::current_ = false;

int OpInfo::attrIndex(std::string_view attr) const {
  for (size_t i = 0; i < attrs.size(); ++i)
    if (attr == attrs[i].name)
      return static_cast<int>(i);
  return -1;
}

std::span<const OpInfo *const> allOps() { return builtinOps(); }

const OpInfo *findOp(std::string_view name) {
  static const auto *byName = [] {
    auto *map = new std::unordered_map<std::string_view, const OpInfo *>;
    for (const OpInfo *op : allOps())
      map->emplace(op->name, op);
    return map;
  }();
  auto it = byName->find(name);
  return it == byName->end() ? findCustomOp(name) : it->second;
}

static bool holds(const Attr &attr, AttrKind kind) { return attr.index() == static_cast<size_t>(kind) + 1; }

std::string completeAttrs(const OpInfo &op, Attrs &attrs) {
  static constexpr const char *kinds[] = {"a bool",   "an integer",         "a number", "an element type",
                                          "a string", "a list of integers", "a size",   "a list of sizes"};
  static_assert(std::is_same_v<std::variant_alternative_t<static_cast<size_t>(AttrKind::Sizes) + 1, Attr>, Sizes>);
  if (attrs.size() > op.attrs.size())
    return std::string(op.name) + ": has " + std::to_string(op.attrs.size()) + " attributes, got " +
           std::to_string(attrs.size());
  attrs.resize(op.attrs.size());
  for (size_t i = 0; i < attrs.size(); ++i) {
    const AttrSpec &spec = op.attrs[i];
    if (std::holds_alternative<std::monostate>(attrs[i]))
      attrs[i] = spec.defaultValue;
    if (std::holds_alternative<std::monostate>(attrs[i])) {
      if (!spec.optional)
        return std::string(op.name) + ": attribute '" + spec.name + "' is missing";
    } else if (spec.kind == AttrKind::Size && holds(attrs[i], AttrKind::Int)) {
      attrs[i] = Size::clamped(std::get<int64_t>(attrs[i]));
    } else if (spec.kind == AttrKind::Sizes && holds(attrs[i], AttrKind::Ints)) {
      Sizes sizes;
      for (int64_t number : std::get<Ints>(attrs[i]))
        sizes.push_back(Size::clamped(number));
      attrs[i] = std::move(sizes);
    } else if (!holds(attrs[i], spec.kind)) {
      return std::string(op.name) + ": attribute '" + spec.name + "' is not " + kinds[static_cast<int>(spec.kind)];
    }
  }
  return {};
}

bool isSymbolic(const Attrs &attrs) {
  for (const Attr &attr : attrs) {
    if (const auto *size = std::get_if<Size>(&attr); size && size->isSymbolic())
      return true;
    if (const auto *sizes = std::get_if<Sizes>(&attr); sizes && std::ranges::any_of(*sizes, &Size::isSymbolic))
      return true;
  }
  return false;
}

Attrs withSizes(const Attrs &attrs, const dim::Values &values) {
  Attrs out = attrs;
  auto put = [&](Size &size) {
    if (size.isSymbolic())
      size = dim::evaluate(size, values);
  };
  for (Attr &attr : out) {
    if (auto *size = std::get_if<Size>(&attr))
      put(*size);
    else if (auto *sizes = std::get_if<Sizes>(&attr))
      for (Size &size : *sizes)
        put(size);
  }
  return out;
}

std::optional<Shape> broadcastShapes(const Shape &a, const Shape &b) {
  const Shape &longer = a.rank() >= b.rank() ? a : b, &shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  int offset = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    Size x = longer[i + offset], y = shorter[i];
    if (x == y || y == 1)
      continue;
    if (x == 1 || x == kDynamic) // the dynamic size is 1 or n: checked at run time
      result[i + offset] = y;
    else if (y != kDynamic)
      return std::nullopt;
  }
  return result;
}

DType promote(DType a, DType b) {
  if (a == b)
    return a;
  if (a > b)
    std::swap(a, b); // a is the earlier in the order floats, signed integers, u8, bool
  if (b == DType::boolean)
    return a;
  if (isFloat(a)) {
    if (!isFloat(b))
      return a;
    if (a == DType::f16) // f16 with bf16: neither represents all values of the other
      return DType::f32;
    return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
  }
  if (b == DType::u8)
    return a == DType::i8 ? DType::i16 : a;
  return b; // of two signed integers the wider
}

DType computeType(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results) {
  unsigned conditions = op.elementwise ? op.elementwise->boolOperands : 0;
  std::optional<DType> type;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!(conditions >> i & 1))
      type = type ? promote(*type, operands[i].dtype) : operands[i].dtype;
  if (!type)
    return isFloat(results.front().dtype) ? DType::f64 : DType::i64;
  if (op.compute == ComputeClass::Bool)
    return DType::boolean;
  if (op.compute == ComputeClass::Float && !isFloat(*type))
    return DType::f32;
  return *type;
}

HostTensor HostTensor::allocate(const TensorType &type) {
  constexpr std::align_val_t align{64};
  size_t bytes = static_cast<size_t>(std::max<int64_t>(type.bytes(), 1));
  constexpr size_t large = size_t(4) << 20; // fresh pages from the system are zero already
  if (bytes >= large) {
    void *pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
      throw std::bad_alloc();
    ::madvise(pages, bytes, MADV_HUGEPAGE); // optional: huge pages cause fewer page faults
    return {type, std::shared_ptr<std::byte[]>(static_cast<std::byte *>(pages), [=](std::byte *p) { ::munmap(p, bytes); })};
  }
  auto *data = static_cast<std::byte *>(::operator new(bytes, align));
  std::fill_n(data, bytes, std::byte{0});
  return {type, std::shared_ptr<std::byte[]>(data, [=](std::byte *p) { ::operator delete(p, align); })};
}

} // namespace tressel::op
