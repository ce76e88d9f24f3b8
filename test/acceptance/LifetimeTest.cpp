// Names, schedules and errors outlive what they came from. What is wrong here shows under AddressSanitizer.
#include <tressel/runtime/Package.h>
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

using namespace tressel;

namespace {

TEST(Lifetime, ContextsOutliveTheirPackageAndItsNames) {
  const std::string path = (std::filesystem::temp_directory_path() / "tressel-lifetime.tsl").string();
  std::optional<runtime::Context> context;
  {
    // Names made of temporaries, on the way in and out.
    Variable w(ones({3}), std::string("a name too long to be kept within the string ") + std::to_string(1));
    auto f = jit([w](Tensor x, Tensor i) { return take(x * w, i); }, {.name = std::string("function ") + "name"});
    f.export_package(path,
                     {.inputs = {{f32, {3}, std::string("input ") + "x"}, {i64, {2}, std::string("input ") + "i"}},
                      .outputs = {std::string("output ") + "of a long name that lives on the heap"}});
    std::optional<runtime::Package> package = runtime::Package::open(path);
    context.emplace(package->context());
    package.reset();
    std::filesystem::remove(path);
  }
  const runtime::Schedule &schedule = context->executable().schedule();
  EXPECT_EQ(schedule.outputs[0].name, "output of a long name that lives on the heap");
  EXPECT_EQ(schedule.inputs[1].name, "input i");
  float x[3] = {1, 2, 3}, y[2];
  int64_t i[2] = {2, 0};
  const void *in[] = {x, i};
  void *out = y;
  context->run(in, {&out, 1});
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], 1);

  // A failure's names outlive the program too.
  std::optional<RuntimeError> error;
  i[0] = 99;
  try {
    context->run(in, {&out, 1});
  } catch (const RuntimeError &e) {
    error = e;
  }
  context.reset();
  ASSERT_TRUE(error);
  EXPECT_NE(error->op().find("take"), std::string::npos) << error->op();
  EXPECT_NE(std::string(error->where().file).find("LifetimeTest.cpp"), std::string::npos);
}

TEST(Lifetime, TensorsOutliveTheFunctionThatMadeThem) {
  Tensor y, bad;
  {
    Variable w(ones({3}), "w");
    auto f = jit([w](Tensor x, Tensor i) { return take(exp(x) * w, i); }, {.name = std::string("f") + "g"});
    y = f(zeros({3}), tensor({0, 2}, i64));
    bad = f(zeros({3}), tensor({0, 7}, i64));
  }
  clear_compile_caches();
  EXPECT_EQ((y + 1).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_THROW(bad.wait(), RuntimeError);
}

TEST(Lifetime, NamesOfCustomOpsMayBeTemporaries) {
  const CustomOp *op = nullptr;
  {
    std::string name = std::string("test.") + "identity_with_a_long_name_on_the_heap";
    op = &register_op({.name = name,
                       .infer = [](auto in) { return std::vector{in[0]}; },
                       .cpu = [](const tressel_call *call, int64_t, int64_t) -> int32_t {
                         *static_cast<float *>(call->outputs[0].data) = *static_cast<float *>(call->inputs[0].data);
                         return 0;
                       },
                       .symbol = name + "_symbol",
                       .attrs = {{std::string("attribute ") + "name", std::string("value")}}});
  }
  clear_compile_caches();
  EXPECT_EQ((*op)(3.0f).item<float>(), 3);
  EXPECT_NE(jit([&](Tensor x) { return (*op)(x); }).graph(1.0f).find("identity_with_a_long_name"), std::string::npos);
}

} // namespace
