// Elements as dynamically typed values: read, converted and written one by one. Slow and simple, as a reference may be.
// Integers stay integers (i64 never goes through a float); floats are doubles, which represent them exactly.
#pragma once

#include "ir/op/Num.h"
#include "ir/op/OpInfo.h"
#include "tressel/runtime/Half.h"

namespace tressel::op::interp {

struct Element {
  bool isFloat = false;
  int64_t i = 0; ///< integers and bool
  double f = 0;  ///< floats

  Element() = default;
  template <class T> Element(T value) : isFloat(std::is_floating_point_v<T>) {
    if constexpr (std::is_floating_point_v<T>)
      f = value;
    else
      i = static_cast<int64_t>(value);
  }
  template <class T> Element(Num<T> value) : Element(value.v) {}
  /// Converts like the op `cast`.
  template <class T> T as() const { return isFloat ? num::convert<T>(f) : num::convert<T>(i); }
  bool isNan() const { return isFloat && f != f; }
};

/// The element at a row-major position.
Element load(const HostTensor &tensor, int64_t position);
/// Converts to the tensor's type: integers wrap around, floats are rounded once.
void store(HostTensor &tensor, int64_t position, Element value);
/// Loads for arithmetic in f32, on f32 or bf16 operands: flushes subnormal numbers to zero (num::flushed).
Element loadFlushed(const HostTensor &tensor, int64_t position);
void storeFlushed(HostTensor &tensor, int64_t position, Element value);
/// Flushes a value as arithmetic on `type` does with operands and results.
Element flushedIn(DType type, Element value);
/// The value after storing it in a tensor of `type` and loading it.
Element roundTo(DType type, Element value);

/// Calls f with std::type_identity<T> of the C++ type in which `type` is computed: float for 16-bit floats.
template <class F> decltype(auto) dispatch(DType type, F f) {
  switch (type) {
  case DType::f64: return f(std::type_identity<double>());
  case DType::f32:
  case DType::f16:
  case DType::bf16: return f(std::type_identity<float>());
  case DType::i8: return f(std::type_identity<int8_t>());
  case DType::i16: return f(std::type_identity<int16_t>());
  case DType::i32: return f(std::type_identity<int32_t>());
  case DType::i64: return f(std::type_identity<int64_t>());
  case DType::u8: return f(std::type_identity<uint8_t>());
  case DType::boolean: break;
  }
  return f(std::type_identity<bool>());
}

/// A multi-index of an element, outermost dimension first.
class Index {
public:
  Index() = default;
  /// An index of `rank` zeros.
  explicit Index(int rank) : rank_(rank) {}
  /// The sizes of a static shape, as an index.
  explicit Index(const Shape &shape) {
    for (Size size : shape)
      push_back(size.number());
  }
  int rank() const { return rank_; }
  size_t size() const { return static_cast<size_t>(rank_); }
  int64_t operator[](int d) const { return at_[static_cast<size_t>(d)]; }
  int64_t &operator[](int d) { return at_[static_cast<size_t>(d)]; }
  int64_t back() const { return at_[static_cast<size_t>(rank_ - 1)]; }
  void pop_back() { --rank_; }
  void push_back(int64_t i) { at_[static_cast<size_t>(rank_++)] = i; }
  int64_t *begin() { return at_.data(); }
  int64_t *end() { return at_.data() + rank_; }
  const int64_t *begin() const { return at_.data(); }
  const int64_t *end() const { return at_.data() + rank_; }

private:
  std::array<int64_t, kMaxRank> at_{};
  int rank_ = 0;
};

/// Iterates over a shape in row-major order:
///   for (Walk at(shape); at; ++at) use(at.index(), at.position());
class Walk {
public:
  explicit Walk(const Shape &shape) : shape_(shape), index_(shape.rank()), more_(shape.numElements() > 0) {}
  explicit operator bool() const { return more_; }
  Walk &operator++() {
    ++position_;
    for (int d = shape_.rank() - 1; d >= 0; --d) {
      if (++index_[d] < shape_[d])
        return *this;
      index_[d] = 0;
    }
    more_ = false;
    return *this;
  }
  const Index &index() const { return index_; }
  int64_t operator[](int d) const { return index_[d]; }
  int64_t position() const { return position_; }

private:
  Index shape_, index_;
  int64_t position_ = 0;
  bool more_;
};

/// The row-major position of an index.
int64_t positionOf(const Shape &shape, const Index &index);
/// The position in an operand that broadcasts to a result with this index: aligned at the last dimension, size 1
/// repeats.
int64_t broadcastPosition(const Shape &operand, const Index &resultIndex);

/// An attribute by its name, which the record must have.
const Attr &attrNamed(const OpInfo &op, const Attrs &attrs, std::string_view name);
int64_t intAttr(const OpInfo &op, const Attrs &attrs, std::string_view name);
bool boolAttr(const OpInfo &op, const Attrs &attrs, std::string_view name);
double floatAttr(const OpInfo &op, const Attrs &attrs, std::string_view name);
/// An attribute that is a list of integers or sizes; `size` times `fallback` if it is empty or absent.
Ints intsAttr(const OpInfo &op, const Attrs &attrs, std::string_view name, size_t size, int64_t fallback);

} // namespace tressel::op::interp
