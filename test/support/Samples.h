// Calls made up from a record's `samples`: a line per operand or attribute, "name: alternative | alternative".
//
//   x: n c h w              an operand's shape; a name is a size, drawn once per call, so equal names are equal sizes
//   w: c f 3 2*h | c f 1 1  terms are products and sums of names and numbers; one alternative is taken at random
//   labels: i64 n           an element type of its own; otherwise the operand has the case's type
//   mask: ... q k           `...` is the same run of dimensions (none to two) wherever it stands
//   groups: g               an integer or list attribute, over the same names
//   strides: 1 2 |          an empty alternative: an empty list, or an attribute or operand that is absent
//   mode: nearest | linear  a string attribute
//   eps: 0.5 | 2            a float attribute
//   causal: 0 | 1           a bool attribute
//   equation: ij,jk->ik     shapes of a variadic operand: one term each, a label is a name
//   scalar                  an operand of rank 0
//   x: sorted n             an operand whose elements ascend
//   labels: places1 i64 n   integers that are places of dimension 1 of the first operand; places-1: of its last one
//
// An operand without a line follows its family's rules; an attribute without one is proposed by its name and kind.
#pragma once

#include "test/support/RandomOps.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tressel::test {

/// Whether the line of operand `index` says "sorted".
bool wantsSorted(const op::OpInfo &op, size_t index);
/// The dimension that the integers of operand `index` are places of, as its line says; negative ones count from the
/// end.
std::optional<int> placesOf(const op::OpInfo &op, size_t index);

/// One call of one op: the sizes its names stand for.
class Sample {
public:
  Sample(const op::OpInfo &op, Random &random, const ShapeLimits &limits) : op_(op), random_(random), limits_(limits) {}

  /// The first operands, whose types are given; false if no alternative's pattern fits.
  bool bind(std::span<const TensorType> given);
  /// The operands that are not given; element type `dtype` where the line names none.
  void drawOperands(DType dtype, std::vector<TensorType> &operands);
  /// Whether there is a line of that name.
  bool has(std::string_view name) const { return !line(name).empty(); }
  op::Attr drawAttr(const op::AttrSpec &spec);

private:
  std::string_view line(std::string_view name) const;
  std::string_view draw(std::string_view name);
  int64_t size(std::string_view name);
  int64_t evaluate(std::string_view term);
  std::vector<std::string> terms();
  TensorType drawType(DType dtype, std::string_view pattern);
  bool matches(std::string_view pattern, const TensorType &type);

  const op::OpInfo &op_;
  Random &random_;
  const ShapeLimits &limits_;
  std::map<std::string, int64_t, std::less<>> sizes_;
  std::string equation_;
  std::optional<Shape> leading_;
};

} // namespace tressel::test
