#include "frontend/eager/prebuilt/CommonCalls.h"

#include "ir/op/Infer.h"
#include "ir/op/Table.h"

#include <algorithm>
#include <vector>

namespace tressel::eager {
namespace {

using op::Attr;
using op::Attrs;
using op::OpInfo;

struct Common {
  const OpInfo *op;
  std::vector<DType> types;
};
const std::vector<Common> &commonOps() {
  using namespace op;
  static const std::vector<Common> ops = {
#include "ir/op/Prebuilt.inc"
  };
  return ops;
}

class Calls {
public:
  explicit Calls(const CommonCall &visit) : visit_(visit) {}
  /// Visits the call if there is one.
  void add(const OpInfo &op, const std::vector<TensorType> &operands, Attrs attrs) {
    if (!op::completeAttrs(op, attrs).empty())
      return;
    if (const op::Inferred inferred = op::inferTypes(op, operands, attrs))
      visit_(op, operands, inferred.types.front(), attrs);
  }

private:
  const CommonCall &visit_;
};

void addElementwise(Calls &calls, const OpInfo &op, DType type, const Attrs &attrs) {
  const size_t n = op.operands.size();
  auto call = [&](const std::vector<Shape> &shapes) {
    std::vector<TensorType> types;
    for (size_t i = 0; i < n; ++i)
      types.push_back({op.elementwise && op.elementwise->boolOperands >> i & 1 ? DType::boolean : type, shapes[i]});
    calls.add(op, types, attrs);
  };
  const Shape flat{64}, huge{int64_t(1) << 25};
  for (size_t singles = 0; singles < size_t(1) << n; ++singles) { // a bit per operand that is one element
    std::vector<Shape> shapes, large;
    for (size_t i = 0; i < n; ++i) {
      shapes.push_back(singles >> i & 1 ? Shape() : flat);
      large.push_back(singles >> i & 1 ? Shape() : huge);
    }
    call(shapes);
    if (n <= 2 && singles != (size_t(1) << n) - 1)
      call(large);
  }
  if (n != 2)
    return;
  const Shape whole{6, 64}, row{64}, column{6, 1};
  for (const Shape &part : {row, column}) {
    call({whole, part});
    call({part, whole});
  }
}

void addReduction(Calls &calls, const OpInfo &op, DType type) {
  const bool one = op.attrs[0].kind == op::AttrKind::Int;
  auto call = [&](const Shape &shape, int64_t axis) {
    calls.add(op, {{type, shape}}, {one ? Attr(axis) : Attr(op::Ints{axis}), Attr(false)});
  };
  for (int64_t length : {100, 1000, 10000}) { // one of each step of a reduced size
    call({length}, 0);
    call({7, length}, 1);
    call({length, 7}, 0);
  }
}

void addRows(Calls &calls, const OpInfo &op, DType type) {
  for (int64_t length : {100, 1000, 10000}) {
    calls.add(op, {{type, {length}}}, Attrs(op.attrs.size()));
    calls.add(op, {{type, {7, length}}}, Attrs(op.attrs.size()));
    calls.add(op, {{type, {3, 7, length}}}, Attrs(op.attrs.size()));
  }
}

} // namespace

bool isCommon(const OpInfo &op) {
  return std::ranges::any_of(commonOps(), [&](const Common &common) { return common.op == &op; });
}

void forEachCommonCall(const CommonCall &visit) {
  Calls calls(visit);
  for (const Common &common : commonOps()) {
    const OpInfo &op = *common.op;
    for (DType type : common.types) {
      if (op.family == op::Family::Reduction && op.combine != op::Combine::None) {
        addReduction(calls, op, type);
      } else if (op.family == op::Family::Elementwise) {
        const int dtype = op.attrIndex("dtype");
        if (dtype < 0) {
          addElementwise(calls, op, type, {});
          continue;
        }
        for (DType to : common.types) { // conversions
          Attrs attrs(op.attrs.size());
          attrs[static_cast<size_t>(dtype)] = to;
          addElementwise(calls, op, type, attrs);
        }
      } else {
        addRows(calls, op, type);
      }
    }
  }
}

} // namespace tressel::eager
