#include "tressel/runtime/Types.h"

#include <gtest/gtest.h>

namespace tressel {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.numElements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).numElements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).numElements(), 0);
}

TEST(Shape, SizesBeyondAnyMemoryDoNotOverflow) {
  const int64_t huge = int64_t(1) << 40;
  EXPECT_EQ((Shape{huge, huge, 0}).numElements(), 0);
  EXPECT_EQ((Shape{huge, huge}).numElements(), int64_t(1) << 59);
  EXPECT_EQ((Shape{huge, huge, 3}).numElements(), int64_t(1) << 59);
  EXPECT_GT((TensorType{f64, {INT64_MAX, INT64_MAX}}).bytes(), int64_t(1) << 59);
}

} // namespace
} // namespace tressel
