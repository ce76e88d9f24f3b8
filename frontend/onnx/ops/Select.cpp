// Reading and writing at computed places, running totals, order.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"

#include <algorithm>

namespace tressel::onnx {

namespace {
using N = NodeImporter;

const Value &indexInput(N &n, int i) {
  const Value &v = n.in(i);
  if (v.dtype() != i64 && v.dtype() != i32)
    n.fail("indices must be integers, not " + v.type.str());
  return v;
}
/// What is done with the element that stands at a place.
std::string scatterMode(N &n) {
  const std::string reduction = n.stringAttr("reduction", "none");
  if (reduction != "none" && reduction != "add" && reduction != "mul" && reduction != "min" && reduction != "max")
    n.fail("attribute 'reduction' is '" + reduction + "'");
  return reduction == "none" ? "set" : reduction;
}

void gatherElements(N &n) {
  const Value &x = n.in(0);
  const int axis = n.axis(n.intAttr("axis", 0), x.rank());
  n.out(0, n.emit("take_along_axis", {x, indexInput(n, 1)}, {{"axis", int64_t(axis)}}));
}
void gatherND(N &n) {
  n.out(0, n.emit("gather_nd", {n.in(0), indexInput(n, 1)}, {{"batch_dims", n.intAttr("batch_dims", 0)}}));
}
void scatterElements(N &n) {
  const Value &x = n.in(0);
  n.sameType(x, n.in(2));
  const int axis = n.axis(n.intAttr("axis", 0), x.rank());
  n.out(0, n.emit("put_along_axis", {x, indexInput(n, 1), n.in(2)}, {{"axis", int64_t(axis)}, {"mode", scatterMode(n)}}));
}
void scatterND(N &n) {
  n.sameType(n.in(0), n.in(2));
  n.out(0, n.emit("scatter_nd", {n.in(0), indexInput(n, 1), n.in(2)}, {{"mode", scatterMode(n)}}));
}

template <const char *Op> void running(N &n) {
  const Value &x = n.in(0);
  const auto at = n.knownScalar(n.in(1));
  if (!at)
    n.unsupported("an axis computed from the input's values");
  const int axis = n.axis(static_cast<int64_t>(*at), x.rank());
  const bool exclusive = n.intAttr("exclusive", 0) != 0, reverse = n.intAttr("reverse", 0) != 0;
  n.out(0, n.cast(n.emit(Op, {x}, {{"axis", int64_t(axis)}, {"reverse", reverse}, {"exclusive", exclusive}}), x.dtype()));
}
constexpr char kCumSum[] = "cumsum", kCumProd[] = "cumprod";

void topK(N &n) {
  const Value &x = n.in(0);
  const int axis = n.axis(n.intAttr("axis", -1), x.rank());
  const auto k = n.opset() >= 10 ? n.knownInts(1, "the number of elements") : std::vector<int64_t>{n.intAttr("k")};
  const bool largest = n.intAttr("largest", 1) != 0;
  n.ignoreAttr("sorted"); // any order is allowed where it is 0
  if (k.size() != 1 || k[0] < 0 || k[0] > n.number(x, axis))
    n.fail("the number of elements does not fit dimension " + std::to_string(axis) + " of " + x.type.str());
  const auto results = n.emitAll("top_k", {x}, {{"k", k[0]}, {"axis", int64_t(axis)}, {"largest", largest}});
  n.out(0, results[0]);
  n.out(1, n.cast(results[1], i64));
}

/// Integers, bit by bit.
template <const char *Op> void bits(N &n) {
  std::vector<Value> operands;
  for (int i = 0; i < n.numInputs(); ++i) {
    n.sameType(n.in(0), n.in(i));
    operands.push_back(n.in(i));
  }
  n.out(0, n.emit(Op, operands));
}
constexpr char kAnd[] = "bitwise_and", kOr[] = "bitwise_or", kXor[] = "bitwise_xor", kNot[] = "bitwise_not";
void shift(N &n) {
  const std::string direction = n.stringAttr("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    n.fail("attribute 'direction' is '" + direction + "'");
  n.sameType(n.in(0), n.in(1));
  n.out(0, n.emit(direction == "LEFT" ? "left_shift" : "right_shift", {n.in(0), n.in(1)}));
}

constexpr OpEntry kTable[] = {
    {"GatherElements", 11, gatherElements},
    {"GatherND", 11, gatherND},
    {"ScatterElements", 11, scatterElements},
    {"Scatter", 9, scatterElements},
    {"ScatterND", 11, scatterND},
    {"CumSum", 11, running<kCumSum>},
    {"CumProd", 26, running<kCumProd>},
    {"TopK", 1, topK},
    {"BitwiseAnd", 18, bits<kAnd>},
    {"BitwiseOr", 18, bits<kOr>},
    {"BitwiseXor", 18, bits<kXor>},
    {"BitwiseNot", 18, bits<kNot>},
    {"BitShift", 11, shift},
};
} // namespace

std::span<const OpEntry> selectOps() { return kTable; }

} // namespace tressel::onnx
