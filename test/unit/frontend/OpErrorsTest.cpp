// Every op of the table, fed what does not fit: the error names the op once, the operands' types and the user's line,
// and nothing else ever happens.
#include "frontend/trace/Record.h"
#include "frontend/trace/Recorder.h"
#include "frontend/trace/Trace.h"

#include <tressel/ops.h>

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

using namespace tressel;

namespace {

const TensorType kTypes[] = {
    {f32, {}},
    {f32, {2}},
    {f32, {3}},
    {f32, {2, 3}},
    {f32, {4, 5}},
    {f32, {1, 2, 5, 5}},
    {f32, {0, 3}},
    {f64, {7, 2, 3}},
    {i32, {2, 3}},
    {i64, {3}},
    {bool_, {2, 3}},
    {u8, {2, 3}},
    {f16, {2, 3}},
    {f32, {int64_t(1) << 40}},
    {f32, {1, 1, 1, 1, 1, 1, 1, 2}},
};

/// Values that an attribute of this kind may hardly have, and some it may.
std::vector<op::Attr> valuesOf(op::AttrKind kind) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  using op::Ints;
  switch (kind) {
  case op::AttrKind::Bool:
    return {true, false, int64_t(1)};
  case op::AttrKind::Size:
  case op::AttrKind::Int:
    return {int64_t(0), int64_t(-1), int64_t(100), int64_t(-100), most, least, 1.5, std::string("x")};
  case op::AttrKind::Float:
    return {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), int64_t(1)};
  case op::AttrKind::Type:
    return {f32, i8, bool_, int64_t(1)};
  case op::AttrKind::String:
    return {std::string(""), std::string("no such mode"), int64_t(1)};
  case op::AttrKind::Sizes:
  case op::AttrKind::Ints:
    return {Ints{},       Ints{0},    Ints{-1},       Ints{1, 1},  Ints{99},
            Ints{0, 0},   Ints{most}, Ints{least, 1}, Ints{2, 3},  Ints{most, most, most},
            Ints{-1, -1}, Ints{1, 0}, Ints{0, 1, 2},  Ints(20, 1), 1.5};
  }
  return {};
}

op::Attr defaultOf(const op::AttrSpec &spec) {
  return std::holds_alternative<std::monostate>(spec.defaultValue) && !spec.optional ? valuesOf(spec.kind).front()
                                                                                     : spec.defaultValue;
}

size_t count(const std::string &text, const std::string &part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

class OpErrors : public testing::Test {
protected:
  detail::InferRecorder recorder;
  std::map<std::string, int> refused, accepted;

  void call(const op::OpInfo &info, const std::vector<TensorType> &types, const op::Attrs &attrs) {
    std::vector<Arg> args;
    std::string operands;
    for (const TensorType &type : types) {
      args.emplace_back(recorder.input(type, {}));
      operands += (operands.empty() ? "" : " x ") + type.str();
    }
    const std::source_location where = std::source_location::current();
    try {
      for (const Tensor &t : detail::recordList(info, args, attrs, where))
        EXPECT_GE(t.type().bytes(), 0) << info.name << " of " << operands << " gives " << t.type().str();
      ++accepted[info.name];
    } catch (const Error &e) {
      ++refused[info.name];
      const std::string text = e.what();
      EXPECT_EQ(e.op(), info.name) << text;
      EXPECT_EQ(e.where().line, where.line()) << text;
      EXPECT_TRUE(text.starts_with(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                                   info.name + ": "))
          << text;
      EXPECT_EQ(count(text, std::string(info.name) + ": "), 1u) << text;
      EXPECT_FALSE(e.message().empty());
      // What is wrong with the attributes' number or kind needs no operands.
      if (!e.message().starts_with("attribute '") && e.message().find("attributes, got") == std::string::npos)
        EXPECT_NE(e.message().find(operands), std::string::npos) << text << "\n  should show " << operands;
      EXPECT_TRUE(dynamic_cast<const ShapeError *>(&e)) << text;
    } catch (const std::exception &e) {
      ADD_FAILURE() << info.name << " of " << operands << " throws " << e.what();
    }
  }
};

TEST_F(OpErrors, NameOpOperandsAndLine) {
  detail::RecorderScope scope(&recorder);
  for (const op::OpInfo *info : op::allOps()) {
    SCOPED_TRACE(info->name);
    op::Attrs defaults;
    for (const op::AttrSpec &spec : info->attrs)
      defaults.push_back(defaultOf(spec));
    const size_t n = info->operands.size();

    // Wrong numbers of operands.
    for (size_t k = 0; k <= n + 2; ++k)
      call(*info, std::vector<TensorType>(k, kTypes[3]), defaults);
    // Pairs of types; the other operands follow the first.
    for (const TensorType &a : kTypes)
      for (const TensorType &b : kTypes)
        for (size_t place = 0; place < std::max<size_t>(n, 1); ++place) {
          std::vector<TensorType> types(n, a);
          if (n)
            types[place] = b;
          call(*info, types, defaults);
          // Attributes, one by one.
          for (size_t i = 0; i < info->attrs.size() && (&a - kTypes) % 3 == 0; ++i)
            for (const op::Attr &value : valuesOf(info->attrs[i].kind)) {
              op::Attrs attrs = defaults;
              attrs[i] = value;
              call(*info, types, attrs);
            }
        }
    op::Attrs many(info->attrs.size() + 1);
    call(*info, std::vector<TensorType>(n, kTypes[3]), many);
    EXPECT_GT(refused[info->name], 0) << "no operands were refused";
  }
  // A pool of types that fits most ops: were it none, the refusals would say little.
  if (!testing::Test::HasFailure())
    EXPECT_GT(accepted.size() * 10, op::allOps().size() * 7);
}

} // namespace
