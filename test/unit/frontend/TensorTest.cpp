// Tensors, arguments, numbers beside tensors, printing, errors at the call, failures that are carried.
#include <tressel/ops.h>
#include <tressel/random.h>
#include <tressel/scope.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

using namespace tressel;

namespace {

std::string print(const Tensor &t) {
  std::ostringstream os;
  os << t;
  return os.str();
}

TEST(Tensor, TypeIsKnownAtOnce) {
  Tensor x = tensor({{1.0, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(x.type().str(), "f32[2, 3]");
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.size(), 6);
  EXPECT_EQ(int64_t(x.dim(-1)), 3);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_THROW(x.dim(2), ShapeError);
}

TEST(Tensor, RaggedListIsRefused) { EXPECT_THROW(tensor({{1.0, 2}, {3}}), ShapeError); }

TEST(Tensor, EmptyHandleIsAnError) {
  Tensor nothing;
  EXPECT_THROW(nothing.shape(), Error);
  EXPECT_THROW(nothing + 1, Error);
}

TEST(Tensor, Factories) {
  EXPECT_EQ(zeros({2}).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(ones({3}, i32).to_vector<int32_t>(), (std::vector<int32_t>{1, 1, 1}));
  EXPECT_EQ(ones({3}, bf16).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(arange(2, 8, 3).to_vector<int64_t>(), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(arange(3, 0, -1).to_vector<int64_t>(), (std::vector<int64_t>{3, 2, 1}));
  EXPECT_EQ(from_span(std::vector<float>{1, 2}, {2, 1}).type().str(), "f32[2, 1]");
  EXPECT_THROW(from_span(std::vector<float>{1, 2}, {3}), ShapeError);
  EXPECT_THROW(zeros({-1}), ShapeError);
  EXPECT_EQ(zeros({0, 4}).size(), 0);
}

TEST(Tensor, OperatorsAndNumbers) {
  Tensor x = tensor({1.0, 2, 3});
  EXPECT_EQ((x + 1).to_vector<float>(), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ((10 - x).to_vector<float>(), (std::vector<float>{9, 8, 7}));
  EXPECT_EQ((x * x / 2).to_vector<float>(), (std::vector<float>{0.5, 2, 4.5}));
  EXPECT_EQ((-x).to_vector<float>(), (std::vector<float>{-1, -2, -3}));
  EXPECT_EQ((x == 2).to_vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ((x >= 2).dtype(), bool_);
  Tensor y = x;
  y += 1;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3})) << "a Tensor is a value";
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 3, 4}));
}

TEST(Tensor, NumbersAreWeak) {
  EXPECT_EQ((ones({2}, f64) + 0.1f).dtype(), f64);
  EXPECT_EQ((ones({2}, bf16) + 2.5).dtype(), bf16);
  EXPECT_EQ((ones({2}, i8) + 1).dtype(), i8);
  EXPECT_EQ((ones({2}, i32) + 0.5).dtype(), f32);
  EXPECT_EQ((ones({2}, bool_) + 1).dtype(), i64);
  EXPECT_EQ(where(tensor(true), 1.0, ones({2}, f64)).dtype(), f64);
  EXPECT_THROW(ones({2}, u8) + 300, ShapeError);
}

TEST(Tensor, IdentityIsNotEquality) {
  Tensor x = ones({2}), y = x, z = ones({2});
  EXPECT_TRUE(same(x, y));
  EXPECT_FALSE(same(x, z));
  EXPECT_TRUE(bool(all(x == z)));
  EXPECT_THROW((void)bool(x), ShapeError);
}

TEST(Tensor, ShapeErrorNamesOpTypesAndLine) {
  Tensor x = ones({2, 4});
  unsigned line = 0;
  try {
    line = __LINE__ + 1;
    matmul(x, ones({3, 3})).wait();
    FAIL() << "nothing was thrown";
  } catch (const ShapeError &e) {
    EXPECT_EQ(e.op(), "matmul");
    EXPECT_EQ(e.where().line, line);
    EXPECT_NE(std::string(e.where().file).find("TensorTest.cpp"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("f32[2, 4]"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("f32[3, 3]"), std::string::npos) << e.what();
  }
}

TEST(Tensor, LinesOfOperators) {
  Tensor x = ones({2}), y = ones({3});
  auto lineOf = [](auto fn) -> unsigned {
    try {
      fn();
    } catch (const ShapeError &e) {
      return e.where().line;
    }
    return 0;
  };
  unsigned line = __LINE__;
  EXPECT_EQ(lineOf([&] { x + y; }), line + 1);
  EXPECT_EQ(lineOf([&] { (void)(x == y); }), line + 2);
  EXPECT_EQ(lineOf([&] { x += y; }), line + 3);
}

// A failing op: whatever depends on it fails with its op and line, what does not is untouched.
TEST(Tensor, FailureTravelsToWhoeverWaits) {
  Tensor x = tensor({1.0, 2, 3});
  unsigned line = __LINE__ + 1;
  Tensor bad = take(x, tensor({5}, i64), 0);
  Tensor dependent = bad + 1, unrelated = x + 1;
  for (const Tensor &t : {bad, dependent}) {
    try {
      t.wait();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const RuntimeError &e) {
      EXPECT_EQ(e.where().line, line);
      EXPECT_NE(std::string(e.what()).find("take"), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(unrelated.to_vector<float>(), (std::vector<float>{2, 3, 4}));
}

TEST(Tensor, TypesOfListsAndNumbers) {
  EXPECT_EQ(tensor({1}).type().str(), "i64[1]");
  EXPECT_EQ(tensor({16777217}).to_vector<int64_t>(), (std::vector<int64_t>{16777217}));
  EXPECT_EQ(tensor({{int8_t(1), short(2)}, {3u, 4ll}}).type().str(), "i64[2, 2]");
  EXPECT_EQ(tensor({0.1}).type().str(), "f32[1]");
  EXPECT_EQ(tensor({1, 2.5, 3}).to_vector<float>(), (std::vector<float>{1, 2.5, 3}));
  EXPECT_EQ(tensor({1, 2.5, true}).type().str(), "f32[3]");
  EXPECT_EQ(tensor({true, false}).type().str(), "bool[2]");
  EXPECT_EQ(tensor({true, 2}).to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(tensor({}).type().str(), "f32[0]");
  EXPECT_EQ(tensor({1, 2}, f32).type().str(), "f32[2]");
  EXPECT_EQ(tensor({0.1}, f64).to_vector<double>(), (std::vector<double>{0.1}));
  EXPECT_EQ(tensor(1).type().str(), "i64[]");
  EXPECT_EQ(tensor(uint8_t(200)).type().str(), "i64[]");
  EXPECT_EQ(tensor(0.1).type().str(), "f32[]");
  EXPECT_EQ(tensor(0.1f).item<float>(), 0.1f);
  EXPECT_EQ(tensor(true).type().str(), "bool[]");
  EXPECT_EQ(tensor(0.1, f64).item<double>(), 0.1);
  EXPECT_EQ(tensor(3, i8).type().str(), "i8[]");
  EXPECT_EQ(tensor(int64_t(9007199254740993)).item<int64_t>(), 9007199254740993);
  // What would lose digits in silence.
  unsigned line = 0;
  try {
    line = __LINE__ + 1;
    tensor({0.5, 16777217});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error &e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_EQ(e.message(), "16777217 stands beside fractional numbers, which are f32, and f32 has no such number");
  }
  EXPECT_THROW(tensor({0.5, 9007199254740993}), Error);
  EXPECT_EQ(tensor({0.5, 16777216}).to_vector<float>(), (std::vector<float>{0.5, 16777216}));
  EXPECT_EQ(tensor({0.5, 16777217}, f64).to_vector<double>(), (std::vector<double>{0.5, 16777217}));
  EXPECT_EQ(tensor({16777217}, f32).to_vector<float>(), (std::vector<float>{16777216})) << "as it was asked for";
  EXPECT_THROW(tensor({~uint64_t(0)}), Error);
  EXPECT_THROW(tensor(~uint64_t(0)), Error);
  EXPECT_THROW(tensor(300, u8), Error);
}

TEST(Tensor, ListsOfIntegersAreExactAndInRange) {
  EXPECT_EQ(tensor({9007199254740993LL, -1}, i64).to_vector<int64_t>(), (std::vector<int64_t>{9007199254740993LL, -1}));
  EXPECT_EQ(tensor({255, 0}, u8).to_vector<uint8_t>(), (std::vector<uint8_t>{255, 0}));
  EXPECT_EQ(tensor({-128, 1.5}, i8).to_vector<int8_t>(), (std::vector<int8_t>{-128, 1}));
  EXPECT_EQ(tensor({300, 0.5}, bool_).to_vector<bool>(), (std::vector<bool>{true, true}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto &make : std::vector<std::function<Tensor()>>{
           [] { return tensor({300}, u8); }, [] { return tensor({-1}, u8); }, [] { return tensor({-1.5}, u8); },
           [] { return tensor({128}, i8); }, [&] { return tensor({nan}, i32); }, [] { return tensor({1e19}, i64); },
           [] { return tensor({~uint64_t(0)}, i64); }})
    EXPECT_THROW(make(), Error);
  try {
    tensor({1, 300}, u8);
  } catch (const Error &e) {
    EXPECT_NE(std::string(e.what()).find("tensor: 300 does not fit u8"), std::string::npos) << e.what();
    EXPECT_NE(dynamic_cast<const std::runtime_error *>(&e), nullptr);
    EXPECT_EQ(dynamic_cast<const ShapeError *>(&e), nullptr);
  }
}

TEST(Tensor, AdoptsNoNull) {
  EXPECT_THROW(adopt(nullptr, {f32, {2}}, nullptr, nullptr), Error);
  EXPECT_EQ(adopt(nullptr, {f32, {0}}, nullptr, nullptr).size(), 0);
}

TEST(Tensor, PrintingAFailureNamesNoLineOfTheLibrary) {
  try {
    print(take(ones({3}), tensor({5}, i64)));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RuntimeError &e) {
    EXPECT_EQ(std::string(e.what()).find("Print.cpp"), std::string::npos) << e.what();
  }
}

TEST(Tensor, Prints) {
  EXPECT_EQ(print(tensor({{1, 2.5}, {-3, 4}})), "[[ 1., 2.5],\n [-3.,  4.]] f32[2, 2]");
  EXPECT_EQ(print(tensor({1, 2, 3}, i32)), "[1, 2, 3] i32[3]");
  EXPECT_EQ(print(tensor(2.0f)), "2. f32[]");
  EXPECT_EQ(print(tensor({1, 0}, bool_)), "[ true, false] bool[2]");
  EXPECT_EQ(print(zeros({0})), "[] f32[0]");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(print(tensor({nan, 1})), "[nan,  1.] f32[2]");
  EXPECT_EQ(print(arange(2000)), "[   0,    1,    2, ..., 1997, 1998, 1999] i64[2000]");
  EXPECT_EQ(print(Tensor()), "(no tensor)");
}

TEST(Tensor, LongChainIsBounded) {
  Tensor x = zeros({4}), y = x;
  for (int i = 0; i < 10'000; ++i)
    y = y + 1;
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{10'000, 10'000, 10'000, 10'000}));
}

TEST(Random, SeedDecidesEverything) {
  EXPECT_EQ(rng::normal({100}, 1).to_vector<float>(), rng::normal({100}, 1).to_vector<float>());
  EXPECT_NE(rng::normal({100}, 1).to_vector<float>(), rng::normal({100}, 2).to_vector<float>());
  EXPECT_NE(rng::normal({100}).to_vector<float>(), rng::normal({100}).to_vector<float>());
  // The beginning does not depend on the size: numbers are keyed by the element's index.
  auto small = rng::uniform({5}, 3).to_vector<float>(), large = rng::uniform({100'000}, 3).to_vector<float>();
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

TEST(Random, Moments) {
  auto v = rng::normal({100'000}, 7, 2, 3).to_vector<double>();
  double sum = 0, squares = 0;
  for (double e : v)
    sum += e;
  const double mean = sum / static_cast<double>(v.size());
  for (double e : v)
    squares += (e - mean) * (e - mean);
  EXPECT_NEAR(mean, 2, 0.05);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(v.size())), 3, 0.05);
  for (float e : rng::uniform({1000}, 1, -1, 4).to_vector<float>())
    EXPECT_TRUE(e >= -1 && e < 4);
}

// Philox 4x32-10 of key 0 and counter 0, from the generator's published test vectors: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
TEST(Random, PublishedVector) {
  auto v = rng::uniform({4}, 0).to_vector<float>();
  EXPECT_EQ(v[0], static_cast<float>(0x6627e8d5u >> 8) * 0x1p-24f);
  EXPECT_EQ(v[1], static_cast<float>(0xe169c58du >> 8) * 0x1p-24f);
  EXPECT_EQ(v[2], static_cast<float>(0xbc57ac4cu >> 8) * 0x1p-24f);
  EXPECT_EQ(v[3], static_cast<float>(0x9b00dbd8u >> 8) * 0x1p-24f);
}

// The op takes the first of a counter's four words for each element, the host's generator all of them. Separate code.
TEST(Random, OpEqualsHost) {
  for (int64_t key : {int64_t(0), int64_t(0x3333444455556666)}) {
    auto host = rng::uniform({4 * 37}, static_cast<uint64_t>(key)).to_vector<float>();
    auto op = random_uniform(tensor(key), {37}).to_vector<float>();
    for (size_t i = 0; i < op.size(); ++i)
      EXPECT_EQ(op[i], host[4 * i]) << "element " << i;
  }
}

TEST(Variable, IsOneCell) {
  Variable a(ones({2}), "a"), b = a;
  b.assign(zeros({2}));
  EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(a.version(), 1u);
  EXPECT_THROW(a.assign(zeros({3})), ShapeError);
  EXPECT_EQ((a + 1).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_TRUE(same(a, b));
  EXPECT_THROW(Variable().value(), Error);
}

TEST(Tensor, SeveralResults) {
  auto [quotient, rest] = divmod(tensor({7.0, 8, 9}), 3);
  EXPECT_EQ(quotient.to_vector<float>(), (std::vector<float>{2, 2, 3}));
  EXPECT_EQ(rest.to_vector<float>(), (std::vector<float>{1, 2, 0}));
  std::vector<Tensor> parts = split(arange(6), {1, 3, 2});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(parts[2].to_vector<int64_t>(), (std::vector<int64_t>{4, 5}));
  EXPECT_THROW(split(arange(6), {1, 3}), ShapeError);
}

TEST(Tensor, ErrorsNameTheOpOnce) {
  try {
    matmul(ones({2, 3}), ones({4, 5}));
    FAIL();
  } catch (const ShapeError &e) {
    const std::string what = e.what();
    EXPECT_EQ(what.find("matmul: "), what.rfind("matmul: ")) << what;
  }
}

} // namespace
