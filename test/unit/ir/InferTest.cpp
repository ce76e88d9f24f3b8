// Shape inference and promotion, without MLIR. The rules' errors are tested in test/ir/invalid-*.mlir.
#include "ir/op/OpInfo.h"
#include "ir/op/Table.h"

#include <gtest/gtest.h>

#include <set>

using namespace tressel;
using namespace tressel::op;

namespace {

constexpr Size dyn = kDynamic;

std::string infer(const OpInfo &op, std::vector<TensorType> operands, Attrs attrs = {}) {
  if (std::string error = completeAttrs(op, attrs); !error.empty())
    return error;
  Inferred result = op.infer(op, operands, attrs);
  return result ? result.types[0].str() : result.error;
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcastShapes({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcastShapes({4, 1, 3}, {5, 1}), (Shape{4, 5, 3}));
  EXPECT_EQ(broadcastShapes({}, {2}), (Shape{2}));
  EXPECT_EQ(broadcastShapes({0}, {1}), (Shape{0}));
  EXPECT_EQ(broadcastShapes({2}, {3}), std::nullopt);
  EXPECT_EQ(broadcastShapes({0}, {2}), std::nullopt);
}

TEST(Broadcast, DynamicAgainstOneStaysDynamicAgainstSizeBecomesIt) {
  EXPECT_EQ(broadcastShapes({dyn}, {1}), (Shape{dyn}));
  EXPECT_EQ(broadcastShapes({1}, {dyn}), (Shape{dyn}));
  EXPECT_EQ(broadcastShapes({dyn}, {7}), (Shape{7}));
  EXPECT_EQ(broadcastShapes({7}, {dyn}), (Shape{7}));
  EXPECT_EQ(broadcastShapes({dyn}, {dyn}), (Shape{dyn}));
}

TEST(Promotion, IsTheArrayApisTable) {
  const DType f[] = {f32, f64, f16, bf16}, all[] = {f32, f64, f16, bf16, i8, i16, i32, i64, u8, bool_};
  for (DType a : all)
    for (DType b : all) {
      EXPECT_EQ(promote(a, b), promote(b, a));
      EXPECT_EQ(promote(a, a), a);
      EXPECT_EQ(promote(a, bool_), a);
      for (DType c : all) // the order of operands does not matter
        if (!(isFloat(a) || isFloat(b) || isFloat(c)))
          EXPECT_EQ(promote(promote(a, b), c), promote(a, promote(b, c)));
    }
  for (DType a : f)
    for (DType b : {i8, i16, i32, i64, u8})
      EXPECT_EQ(promote(a, b), a); // an integer takes the float's type
  EXPECT_EQ(promote(f32, f64), f64);
  EXPECT_EQ(promote(f16, f32), f32);
  EXPECT_EQ(promote(bf16, f32), f32);
  EXPECT_EQ(promote(f16, bf16), f32);
  EXPECT_EQ(promote(i8, i32), i32);
  EXPECT_EQ(promote(i8, u8), i16);
  EXPECT_EQ(promote(i16, u8), i16);
}

TEST(Infer, Elementwise) {
  EXPECT_EQ(infer(table::add, {{f32, {2, 1}}, {i8, {3}}}), "f32[2, 3]");
  EXPECT_EQ(infer(table::add, {{f32, {dyn, 1}}, {f32, {3}}}), "f32[?, 3]");
  EXPECT_EQ(infer(table::div, {{i32, {2}}, {i32, {2}}}), "f32[2]");
  EXPECT_EQ(infer(table::floor_divide, {{i32, {2}}, {i8, {2}}}), "i32[2]");
  EXPECT_EQ(infer(table::exp, {{i64, {2}}}), "f32[2]");
  EXPECT_EQ(infer(table::exp, {{f16, {2}}}), "f16[2]");
  EXPECT_EQ(infer(table::less, {{f32, {2}}, {i32, {}}}), "bool[2]");
  EXPECT_EQ(infer(table::logical_and, {{f32, {2}}, {i32, {}}}), "bool[2]");
  EXPECT_EQ(infer(table::where, {{bool_, {2, 1}}, {f32, {3}}, {f64, {}}}), "f64[2, 3]");
  EXPECT_EQ(infer(table::cast, {{f32, {2}}}, {Attr(u8)}), "u8[2]");
  EXPECT_EQ(infer(table::isnan, {{f32, {2}}}), "bool[2]");
}

TEST(Infer, Reductions) {
  TensorType x{f32, {2, 3, 4}};
  EXPECT_EQ(infer(table::sum, {x}), "f32[]");
  EXPECT_EQ(infer(table::sum, {x}, {Attr(Ints{-1, 0})}), "f32[3]");
  EXPECT_EQ(infer(table::max, {x}, {Attr(Ints{1}), Attr(true)}), "f32[2, 1, 4]");
  EXPECT_EQ(infer(table::sum, {x}, {Attr(Ints{})}), "f32[2, 3, 4]");
  EXPECT_EQ(infer(table::sum, {{i8, {2}}}), "i64[]");
  EXPECT_EQ(infer(table::sum, {{bool_, {2}}}), "i64[]");
  EXPECT_EQ(infer(table::mean, {{bool_, {2}}}), "f32[]");
  EXPECT_EQ(infer(table::max, {{i8, {2}}}), "i8[]");
  EXPECT_EQ(infer(table::any, {x}, {Attr(Ints{2})}), "bool[2, 3]");
  EXPECT_EQ(infer(table::argmax, {x}), "i64[2, 3]");
  EXPECT_EQ(infer(table::sum, {{f32, {dyn, 3}}}, {Attr(Ints{1})}), "f32[?]");
}

TEST(Infer, Linear) {
  EXPECT_EQ(infer(table::matmul, {{f32, {2, 3}}, {f32, {3, 5}}}), "f32[2, 5]");
  EXPECT_EQ(infer(table::matmul, {{f32, {3}}, {f32, {3, 5}}}), "f32[5]");
  EXPECT_EQ(infer(table::matmul, {{f32, {2, 3}}, {f32, {3}}}), "f32[2]");
  EXPECT_EQ(infer(table::matmul, {{f32, {3}}, {f32, {3}}}), "f32[]");
  EXPECT_EQ(infer(table::matmul, {{f32, {7, 1, 2, 3}}, {f32, {6, 3, 5}}}), "f32[7, 6, 2, 5]");
  EXPECT_EQ(infer(table::matmul, {{f32, {dyn, 3}}, {f32, {3, 5}}}), "f32[?, 5]");
  EXPECT_EQ(infer(table::conv, {{f32, {1, 4, 9}}, {f32, {6, 2, 3}}},
                  {Attr(Ints{2}), Attr(Ints{1}), Attr(Ints{0}), Attr(Ints{2}), Attr(int64_t(2))}),
            "f32[1, 6, 3]");
  EXPECT_EQ(infer(table::conv, {{f32, {dyn, 1, 28, 28}}, {f32, {32, 1, 3, 3}}}), "f32[?, 32, 26, 26]");
  EXPECT_EQ(infer(table::max_pool, {{i8, {1, 2, 7, 6}}}, {Attr(Ints{2, 3})}), "i8[1, 2, 3, 2]");
  EXPECT_EQ(infer(table::avg_pool, {{f32, {1, 2, 5}}}, {Attr(Ints{3}), Attr(Ints{1}), Attr(Ints{1}), Attr(Ints{1})}),
            "f32[1, 2, 5]");
}

TEST(Infer, Shapes) {
  TensorType x{f32, {2, 3, 4}};
  EXPECT_EQ(infer(table::reshape, {x}, {Attr(Ints{-1, 2})}), "f32[12, 2]");
  EXPECT_EQ(infer(table::reshape, {{f32, {0, 3}}}, {Attr(Ints{0, 7})}), "f32[0, 7]");
  EXPECT_EQ(infer(table::expand_dims, {x}, {Attr(int64_t(-1))}), "f32[2, 3, 4, 1]");
  EXPECT_EQ(infer(table::squeeze, {{f32, {1, 3, 1}}}), "f32[3]");
  EXPECT_EQ(infer(table::squeeze, {{f32, {1, 3, 1}}}, {Attr(Ints{-1})}), "f32[1, 3]");
  EXPECT_EQ(infer(table::flatten, {x}), "f32[2, 12]");
  EXPECT_EQ(infer(table::flatten, {{f32, {}}}, {Attr(int64_t(0))}), "f32[1]");
  EXPECT_EQ(infer(table::transpose, {x}), "f32[4, 3, 2]");
  EXPECT_EQ(infer(table::transpose, {x}, {Attr(Ints{1, -1, 0})}), "f32[3, 4, 2]");
  EXPECT_EQ(infer(table::broadcast_to, {{f32, {3, 1}}}, {Attr(Ints{2, 3, 4})}), "f32[2, 3, 4]");
  EXPECT_EQ(infer(table::concat, {x, x}, {Attr(int64_t(1))}), "f32[2, 6, 4]");
  EXPECT_EQ(infer(table::pad, {{f32, {2}}}, {Attr(Ints{1}), Attr(Ints{3})}), "f32[6]");
  EXPECT_EQ(infer(table::take, {x, {i32, {5, 6}}}, {Attr(int64_t(1))}), "f32[2, 5, 6, 4]");
  EXPECT_EQ(infer(table::one_hot, {{i64, {3}}}, {Attr(int64_t(10))}), "f32[3, 10]");
}

TEST(Infer, SliceFollowsPython) {
  auto slice = [](int64_t start, int64_t limit, int64_t stride) {
    return infer(table::slice, {{f32, {10}}}, {Attr(Ints{start}), Attr(Ints{limit}), Attr(Ints{stride})});
  };
  constexpr int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(slice(2, 5, 1), "f32[3]");
  EXPECT_EQ(slice(-3, high, 1), "f32[3]");
  EXPECT_EQ(slice(0, -2, 3), "f32[3]");
  EXPECT_EQ(slice(5, 2, 1), "f32[0]");
  EXPECT_EQ(slice(20, 30, 1), "f32[0]");
  EXPECT_EQ(slice(high, low, -1), "f32[10]");
  EXPECT_EQ(slice(8, 2, -3), "f32[2]");
  EXPECT_EQ(slice(8, -11, -4), "f32[3]");
  EXPECT_EQ(slice(0, 10, high), "f32[1]");
  EXPECT_EQ(slice(9, low, low), "f32[1]");
}

TEST(Infer, HostileAttributesAreErrorsNotOverflows) {
  constexpr int64_t huge = std::numeric_limits<int64_t>::max();
  TensorType x{f32, {1, 1, 4}};
  EXPECT_NE(infer(table::reshape, {x}, {Attr(Ints{huge, huge})}).find("(C2)"), std::string::npos);
  EXPECT_NE(infer(table::max_pool, {x}, {Attr(Ints{huge})}).find("(C1)"), std::string::npos);
  EXPECT_NE(infer(table::conv, {x, {f32, {1, 1, 2}}}, {Attr(Ints{1}), Attr(Ints{huge})}).find("(C2)"), std::string::npos);
  EXPECT_NE(infer(table::pad, {x}, {Attr(Ints{huge, huge, 0}), Attr(Ints{huge, huge, 0})}).find("(C1)"), std::string::npos);
  EXPECT_NE(infer(table::full, {}, {Attr(Ints{huge, huge}), Attr(1.0)}).find("(C1)"), std::string::npos);
  EXPECT_NE(infer(table::broadcast_to, {{f32, {}}}, {Attr(Ints{huge, huge})}).find("(C1)"), std::string::npos);
  EXPECT_NE(infer(table::one_hot, {{i64, {3}}}, {Attr(huge)}).find("(C2)"), std::string::npos);
}

TEST(Attributes, AreCompletedAndChecked) {
  Attrs attrs;
  EXPECT_EQ(completeAttrs(table::softmax, attrs), "");
  EXPECT_EQ(attrs, Attrs{Attr(int64_t(-1))});
  attrs = {Attr(1.5)};
  EXPECT_EQ(completeAttrs(table::softmax, attrs), "softmax: attribute 'axis' is not an integer");
  attrs = {};
  EXPECT_EQ(completeAttrs(table::cast, attrs), "cast: attribute 'dtype' is missing");
  attrs = {Attr(), Attr()};
  EXPECT_EQ(completeAttrs(table::softmax, attrs), "softmax: has 1 attributes, got 2");
}

TEST(Table, IsConsistent) {
  std::set<std::string> names;
  for (const OpInfo *op : allOps()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(findOp(op->name), op);
    EXPECT_TRUE(op->infer && op->loopForm && op->flops) << op->name;
    EXPECT_TRUE(op->evaluate || op->decompose) << op->name << " cannot be evaluated";
    EXPECT_TRUE(op->domains.empty() || op->domains.size() == op->operands.size()) << op->name;
    EXPECT_EQ(op->elementwise != nullptr,
              !op->decompose &&
                  (op->family == Family::Elementwise || op->family == Family::Constant || op->family == Family::Random))
        << op->name;
  }
  EXPECT_GE(names.size(), 80u);
  EXPECT_EQ(findOp("no_such_op"), nullptr);
}

TEST(Flops, CountTheWork) {
  TensorType a{f32, {2, 3}}, b{f32, {3, 5}}, c{f32, {2, 5}};
  EXPECT_EQ(table::matmul.flops(table::matmul, std::vector{a, b}, std::vector{c}, {}), 2 * 2 * 3 * 5);
  EXPECT_EQ(table::add.flops(table::add, std::vector{a, a}, std::vector{a}, {}), 6);
  TensorType x{f32, {1, 4, 6}}, w{f32, {4, 2, 3}}, y{f32, {1, 4, 4}};
  Attrs attrs{Attr(Ints{}), Attr(Ints{}), Attr(Ints{}), Attr(Ints{}), Attr(int64_t(2))};
  EXPECT_EQ(table::conv.flops(table::conv, std::vector{x, w}, std::vector{y}, attrs), 2 * 16 * 6);
  EXPECT_GT(table::softmax.flops(table::softmax, std::vector{a}, std::vector{a}, {Attr(int64_t(-1))}), 4 * 6);
}

} // namespace
