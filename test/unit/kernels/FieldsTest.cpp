#include "runtime/kernels/Fields.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

namespace tressel::kernels {
namespace {

TEST(Fields, ReadsWhatIsWritten) {
  const Size n = dim::symbol("n", 1, 512), odd = n * 4 + -1, list = dim::max(n, 7);
  const std::string text = FieldsText()
                               .text("kind", "product")
                               .size("m", odd)
                               .size("k", -12)
                               .sizes("symbols", std::vector<Size>{n})
                               .sizes("strides", std::vector<Size>{list, 3})
                               .sizes("none", std::vector<Size>{})
                               .str();
  const Fields fields = Fields::parse(text);
  EXPECT_EQ(fields.text("kind"), "product");
  EXPECT_EQ(fields.size("m"), odd);
  EXPECT_EQ(fields.number("k"), -12);
  EXPECT_EQ(fields.symbols("symbols"), std::vector<Size>{n});
  EXPECT_EQ(fields.sizes("strides"), (std::vector<Size>{list, 3}));
  EXPECT_EQ(fields.sizes("none"), std::vector<Size>{});
  EXPECT_THROW(fields.number("m"), InputError);
  EXPECT_THROW(fields.number("k", 0, 5), InputError);
  EXPECT_THROW(fields.text("other"), InputError);
  EXPECT_THROW(fields.symbols("strides"), InputError);
}

TEST(Fields, DamagedTextIsRefused) {
  const std::string good = FieldsText().text("kind", "product").size("m", 12).str();
  for (size_t end = 0; end < good.size(); ++end)
    EXPECT_THROW(Fields::parse(good.substr(0, end)), InputError) << end;
  for (const char *bad : {"[]", "{\"a\":1}}", "{\"a\"1}", "{\"a\":1,}", "{a:1}", "{\"a\":\"\\n\"}", "{\"a\":{}}"})
    EXPECT_THROW(Fields::parse(bad), InputError) << bad;
  for (const char *bad : {"{\"a\":}", "{\"a\":\"x +\"}", "{\"a\":\"?\"}", "{\"a\":99999999999999999999}"})
    EXPECT_THROW(Fields::parse(bad).size("a"), InputError) << bad;
}

} // namespace
} // namespace tressel::kernels
