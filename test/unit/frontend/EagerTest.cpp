// Imperative ops: kernels by layout class, against the interpreter; what is compiled and when; what goes wrong. With
// TRESSEL_TEST_ON=cuda the comparisons are of ops on a card, or on the stand-in for it (test/standin).
#include "codegen/OpKernel.h"
#include "frontend/eager/Class.h"
#include "frontend/eager/OneOp.h"
#include "frontend/eager/Prebuilt.h"
#include "frontend/eager/prebuilt/CommonCalls.h"
#include "frontend/trace/Record.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "test/support/RandomOps.h"

#include <tressel/runtime/Engine.h>
#include <tressel/runtime/MachineModel.h>
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string_view>
#include <thread>

using namespace tressel;

namespace {

bool onCard() {
  static const bool on = [] {
    const char *where = std::getenv("TRESSEL_TEST_ON");
    if (!where || std::string_view(where) != "cuda")
      return false;
    use_machine("cuda");
    return true;
  }();
  return on;
}

Tensor tensorOf(const op::HostTensor &t) { return from_bytes(t.data.get(), t.type); }
op::HostTensor hostOf(const Tensor &t) {
  op::HostTensor host = op::HostTensor::allocate(t.type());
  if (t.type().bytes())
    std::memcpy(host.data.get(), t.data(), static_cast<size_t>(t.type().bytes()));
  return host;
}

std::vector<Tensor> call(const op::OpInfo &info, std::span<const Tensor> operands, const op::Attrs &attrs,
                         size_t numResults) {
  const std::vector<Arg> args(operands.begin(), operands.end());
  std::vector<Tensor> results(numResults);
  detail::recordInto(info, args, attrs, std::source_location::current(), results);
  return results;
}

/// Compares one call with the interpreter; what differs, or "".
std::string differs(const op::OpInfo &info, const std::vector<op::HostTensor> &inputs, const op::Attrs &attrs) {
  const op::interp::Evaluation want = op::interp::run(info, inputs, attrs);
  if (!want)
    return "the interpreter: " + want.error;
  std::vector<Tensor> operands;
  for (const op::HostTensor &t : inputs) {
    operands.push_back(tensorOf(t));
    if (onCard() && (operands.size() == 1 || t.type.rank() > 0)) // numbers stay with the host
      operands.back() = operands.back().to(gpu(0));
  }
  std::vector<Tensor> got;
  try {
    got = call(info, operands, attrs, want.outputs.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const DType type = want.outputs[i].type.dtype;
      std::string why = op::interp::compare(hostOf(got[i]), want.outputs[i], op::interp::looseTolerance(type));
      if (!why.empty())
        return why;
    }
  } catch (const Error &e) {
    return e.what();
  }
  return {};
}

std::string describe(const op::OpInfo &info, const std::vector<op::HostTensor> &inputs, const op::Attrs &attrs) {
  codegen::OpCall call{&info, {}, attrs, {}};
  for (const op::HostTensor &t : inputs)
    call.operands.push_back(t.type);
  return call.str();
}

/// Shapes of two operands, and of one in the middle of three: each layout class, with sizes 0 and 1 and odd tails.
const std::vector<std::vector<Shape>> kLayouts = {
    {{}, {}, {}},
    {{1}, {1}, {1}},
    {{7}, {7}, {7}},
    {{3, 5}, {3, 5}, {3, 5}}, // flat
    {{67}, {}, {67}},         // single on the right
    {{}, {4, 33}, {4, 33}},   // on the left
    {{2, 3, 5}, {1, 1}, {1}},
    {{1, 1, 1}, {3}, {3}},    // the rank is the single's
    {{6, 17}, {17}, {6, 17}}, // rows
    {{17}, {6, 17}, {17}},
    {{6, 17}, {6, 1}, {6, 17}},              // columns
    {{6, 1}, {1, 17}, {6, 17}},              // outer
    {{2, 3, 4, 5}, {3, 1, 5}, {2, 1, 4, 1}}, // by rank
    {{0, 4}, {4}, {}},                       // nothing
    {{0}, {1}, {0}},
    {{130, 31}, {130, 31}, {130, 31}},
};

constexpr size_t kStep = 5;

TEST(Eager, ElementwiseOpsInEachLayoutAreTheInterpreters) {
  const uint64_t seed = 20;
  test::Random random(seed);
  std::map<DType, int> calls;
  std::vector<int> ofLayout(kLayouts.size());
  int numOps = 0;
  for (const op::OpInfo *info : op::allOps()) {
    if (info->family != op::Family::Elementwise || info->operands.empty() || info->operands.back().variadic)
      continue;
    ++numOps;
    int ofOp = 0;
    for (int t = 0; t < kNumDTypes; ++t) {
      const auto dtype = static_cast<DType>(t);
      // Three layouts of each op and type, so that both have met all.
      for (size_t l = static_cast<size_t>(numOps * 3 + t) % kStep; l < kLayouts.size(); l += kStep) {
        const std::vector<Shape> &layout = kLayouts[l];
        test::OpCall c{info, {}, {}, {}};
        for (size_t i = 0; i < info->operands.size(); ++i) {
          const bool condition = info->elementwise && info->elementwise->boolOperands >> i & 1;
          c.operands.push_back({condition ? bool_ : dtype, layout[std::min<size_t>(i, 2)]});
        }
        const auto proposed = test::proposeAttrs(*info, c.operands, random);
        if (!proposed)
          continue;
        std::vector<op::HostTensor> inputs;
        for (size_t i = 0; i < proposed->operands.size(); ++i)
          inputs.push_back(test::randomOperand(*proposed, i, random));
        ++calls[dtype], ++ofOp, ++ofLayout[l];
        ASSERT_EQ(differs(*info, inputs, proposed->attrs), "")
            << describe(*info, inputs, proposed->attrs) << ", seed " << seed;
      }
    }
    EXPECT_GT(ofOp, 0) << info->name << " was never called";
  }
  std::cout << "seed " << seed << ": " << numOps << " ops; calls by element type:";
  for (auto [type, n] : calls)
    std::cout << " " << nameOf(type) << " " << n;
  std::cout << "; by layout:";
  for (int n : ofLayout) {
    std::cout << " " << n;
    EXPECT_GT(n, 0);
  }
  std::cout << "\n";
  EXPECT_EQ(calls.size(), size_t(kNumDTypes));
  EXPECT_GT(numOps, 50);
}

TEST(Eager, AllOpsAreTheInterpreters) {
  const uint64_t seed = 21;
  test::Random random(seed);
  std::map<std::string, int> calls;
  int all = 0;
  for (const op::OpInfo *info : op::allOps()) {
    if (info->family == op::Family::Control || info->family == op::Family::Collective)
      continue;
    for (DType dtype : {f32, i32}) {
      for (int trial = 0; trial < 3; ++trial) {
        const auto c = test::proposeCall(
            *info, dtype, random, {.maxRank = 4, .maxSize = trial == 2 ? 19 : 6, .zeroSize = trial == 1 ? 0.1 : 0});
        if (!c)
          continue;
        std::vector<op::HostTensor> inputs;
        for (size_t i = 0; i < c->operands.size(); ++i)
          inputs.push_back(test::randomOperand(*c, i, random));
        ++calls[info->name], ++all;
        EXPECT_EQ(differs(*info, inputs, c->attrs), "") << describe(*info, inputs, c->attrs) << ", seed " << seed;
      }
    }
  }
  std::cout << "seed " << seed << ": " << all << " calls of " << calls.size() << " ops\n";
  EXPECT_GT(calls.size(), 150u);
}

TEST(Eager, FiveThousandLengthsAreOneKernel) {
  const EagerStats before = eager_stats();
  for (int64_t n = 1; n <= 5000; ++n) {
    const Tensor y = zeros({n}, i32) + 1;
    if (n % 501 == 0)
      ASSERT_EQ(y.to_vector<int32_t>(), std::vector<int32_t>(static_cast<size_t>(n), 1));
  }
  const EagerStats after = eager_stats();
  EXPECT_LE(after.prebuilt - before.prebuilt, 1u);
  EXPECT_EQ(after.compiled, before.compiled);
  EXPECT_EQ(after.programs, before.programs);
  // An op that no library brings: one kernel all the same.
  std::vector<Tensor> inputs;
  for (int64_t n = 2; n <= 300; ++n)
    inputs.push_back(zeros({n}, i16));
  const uint64_t compiled = eager_stats().compiled;
  for (const Tensor &x : inputs)
    EXPECT_EQ(sum(logical_xor(x, ones(Sizes{x.dim(0)}, i16))).item<int64_t>(), x.size());
  EXPECT_LE(eager_stats().compiled - compiled, 3u); // the op, and the sums of two steps
}

TEST(Eager, CommonOpsNeedNoCompiler) {
  const Tensor x = tensor({{1.5f, -2.0f, 3.0f}, {4.0f, 5.0f, -6.0f}}), d = cast(x, f64),
               row = tensor({1.0f, 2.0f, 3.0f});
  const Tensor n = tensor({{1, 2, 3}, {4, 5, 6}}, i64);
  const EagerStats before = eager_stats();
  for (const Tensor &t : {x, d, n, cast(n, i32)}) {
    for (const Tensor &y : {t + 1, 2 - t, t * t, maximum(t, 0), t / 2, -t, abs(t), sum(t), sum(t, 0), mean(t, {1}),
                            max(t), argmax(t), t > 2, t == t, where(t > 0, t, 0)})
      y.wait();
  }
  for (const Tensor &y :
       {exp(x), tanh(d), sigmoid(x), relu(x), sqrt(abs(x)), gelu(x), softmax(x), x * row, x - mean(x, {1}, true),
        cast(x, i32), cast(n, f32), cast(x > 0, f32), pow(x, 2), logical_and(x > 0, x < 4), any(x > 0), clip(x, 0, 1)})
    y.wait();
  EXPECT_EQ(eager_stats().compiled, before.compiled);
  EXPECT_EQ(eager_stats().programs, before.programs);
  EXPECT_GT(eager_stats().available, 1000u);
}

TEST(Eager, CommonOpsOnGpusNeedNoCompiler) {
  const runtime::MachineModel model = runtime::machineOfArchitecture(eager::kPrebuiltArchitecture);
  size_t calls = 0, kernels = 0;
  eager::forEachCommonCall([&](const op::OpInfo &info, std::span<const TensorType> operands, const TensorType &result,
                               const op::Attrs &attrs) {
    if (++calls % 23)
      return;
    const auto common = eager::deviceClassOf(info, operands, result, attrs);
    if (!common)
      return;
    detail::TraceRecorder recorder;
    std::vector<Tensor> results;
    {
      const DeviceScope scope(gpu(0));
      results = eager::recordOp(recorder, common->call, std::vector<uint32_t>(operands.size(), 1));
    }
    recorder.finish(results, {.name = info.name,
                              .model = &model,
                              .architecture = eager::kPrebuiltArchitecture,
                              .gpuArchive = &eager::prebuiltGpuCode(),
                              .gpuCodeUsed = [&](const codegen::CacheKey &key, const codegen::Code &code) {
                                ++kernels;
                                const codegen::Code kept = eager::prebuiltGpuCode().find(key);
                                ASSERT_NE(kept, nullptr) << common->call.str();
                                EXPECT_EQ(*kept, *code);
                              }});
  });
  EXPECT_GT(kernels, 50u);
}

TEST(Eager, KernelsOfTheLibraryAreRightAtEachLevel) {
  test::Random random(22);
  int run = 0;
  for (auto level : {runtime::CpuLevel::Baseline, runtime::CpuLevel::V3, runtime::CpuLevel::V4}) {
    if (level > runtime::hostCpuLevel()) {
      std::cout << "not run here: " << runtime::nameOf(level) << "\n";
      continue;
    }
    for (const char *name : {"add", "pow", "exp", "gelu", "where", "less", "sum", "max", "argmin", "softmax"})
      for (DType type : {f32, f64, i32, bf16})
        for (const Shape &shape : {Shape{3, 37}, Shape{5, 700}}) {
          const op::OpInfo &info = *op::findOp(name);
          test::OpCall c{&info, std::vector<TensorType>(info.operands.size(), {type, shape}), {}, {}};
          if (info.elementwise && info.elementwise->boolOperands)
            c.operands[0].dtype = bool_;
          c.attrs.resize(info.attrs.size());
          if (info.family == op::Family::Reduction)
            c.attrs = {info.attrs[0].kind == op::AttrKind::Int ? op::Attr(int64_t(1)) : op::Attr(op::Ints{1}), false};
          std::vector<op::HostTensor> inputs;
          for (size_t i = 0; i < c.operands.size(); ++i)
            inputs.push_back(test::randomOperand(c, i, random));
          const op::interp::Evaluation want = op::interp::run(info, inputs, c.attrs);
          if (!want || !op::completeAttrs(info, c.attrs).empty())
            continue;
          const eager::Classified classified =
              eager::classesOf(info, c.operands, want.outputs[0].type, c.attrs).front();
          auto code = eager::findPrebuilt(classified.call, level);
          if (!code)
            continue;
          eager::Kernel kernel(classified.call, std::move(*code));
          op::HostTensor got = op::HostTensor::allocate(want.outputs[0].type);
          std::vector<void *> buffers;
          for (const op::HostTensor &t : inputs)
            buffers.push_back(t.data.get());
          buffers.push_back(got.data.get());
          ASSERT_EQ(kernel.launch(buffers.data(), classified.sizes.data()), runtime::kKernelOk);
          ++run;
          ASSERT_EQ(op::interp::compare(got, want.outputs[0], op::interp::looseTolerance(got.type.dtype)), "")
              << classified.call.str() << " at " << runtime::nameOf(level);
        }
  }
  EXPECT_GT(run, 40);
}

TEST(Eager, ThreadsThatMeetANewOpCompileItOnce) {
  clear_compile_caches();
  constexpr int threads = 16;
  const Tensor x = cast(iota({777}, 0, i32), u8);
  x.wait();
  std::barrier start(threads);
  std::vector<Tensor> results(threads);
  const uint64_t before = eager_stats().compiled;
  {
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t)
      pool.emplace_back([&, t] {
        start.arrive_and_wait();
        results[static_cast<size_t>(t)] = hypot(x, x) + 0.0f;
      });
  }
  const std::vector<float> first = results[0].to_vector<float>();
  EXPECT_NEAR(first[3], 3 * std::sqrt(2.0f), 1e-5f);
  for (const Tensor &t : results)
    EXPECT_EQ(t.to_vector<float>(), first);
  EXPECT_EQ(eager_stats().compiled - before, 1u); // the sum's kernel comes with the library
}

TEST(Eager, ProductsOfManySizesAreFewPrograms) {
  const Tensor w = rng::normal({24, 16}, 1);
  const uint64_t before = eager_stats().programs;
  for (int64_t n = 1; n <= 60; ++n) {
    const Tensor x = rng::normal({n, 24}, static_cast<uint64_t>(n));
    const Tensor y = matmul(x, w);
    ASSERT_EQ(y.shape(), (Shape{n, 16}));
    op::HostTensor operands[] = {hostOf(x), hostOf(w)};
    const op::interp::Evaluation want = op::interp::run(*op::findOp("matmul"), operands);
    ASSERT_EQ(op::interp::compare(hostOf(y), want.outputs[0], {1e-4, 1e-4}), "") << n;
  }
  EXPECT_LE(eager_stats().programs - before, 6u);
  // What comes often gets a program of its own, and nobody notices.
  const Tensor x = rng::normal({13, 24}, 5), first = matmul(x, w);
  for (int i = 0; i < 100; ++i)
    ASSERT_LE(max(abs(matmul(x, w) - first)).item<float>(), 1e-4f);
}

TEST(Eager, AShapeErrorIsThrownAtTheCall) {
  const Tensor a = ones({2, 3}), b = ones({4});
  uint32_t line = 0;
  try {
    line = __LINE__ + 1;
    (void)(a + b);
    FAIL() << "nothing was thrown";
  } catch (const ShapeError &e) {
    EXPECT_EQ(e.op(), "add");
    EXPECT_EQ(e.where().line, line);
    EXPECT_NE(e.message().find("f32[2, 3] x f32[4]"), std::string::npos) << e.message();
  }
  try {
    line = __LINE__ + 1;
    (void)(ones({2}, u8) + 300);
    FAIL() << "nothing was thrown";
  } catch (const ShapeError &e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_NE(e.message().find("300 does not fit u8"), std::string::npos) << e.message();
  }
  EXPECT_THROW((void)(Tensor() + 1), Error);
  EXPECT_THROW((void)max(ones({0}), 0), ShapeError);
}

TEST(Eager, FailuresTravelThroughKernels) {
  const Tensor x = ones({5}), bad = take(x, tensor({1, 9}, i64));
  const Tensor after = sum(exp(bad * 2 + x.dim(0)));
  try {
    after.wait();
    FAIL() << "nothing was thrown";
  } catch (const RuntimeError &e) {
    EXPECT_EQ(e.op(), "take");
    EXPECT_NE(e.message().find("out of range"), std::string::npos) << e.message();
  }
  EXPECT_THROW(bad.wait(), RuntimeError);
  EXPECT_EQ((x + 1).to_vector<float>(), std::vector<float>(5, 2));
}

TEST(Eager, ViewsAndMemoryOfOthers) {
  // Elements that begin anywhere, and end in the middle of a vector.
  std::vector<float> memory(1000);
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<float>(i);
  for (int64_t n : {1, 3, 15, 16, 17, 63, 64, 65, 127, 900})
    for (size_t offset : {1, 2, 3, 5}) {
      const Tensor x = adopt(memory.data() + offset, {f32, {n}}, nullptr, nullptr), y = x + 1,
                   z = reshape(y, {1, -1}) * 2;
      const std::vector<float> got = z.to_vector<float>();
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(got[static_cast<size_t>(i)], 2 * (static_cast<float>(offset + static_cast<size_t>(i)) + 1))
            << n << " " << offset;
      ASSERT_EQ(sum(x).item<float>(), sum(cast(x, f64)).item<float>());
    }
  const Tensor scalar = tensor(3.0f), both = scalar + 1;
  EXPECT_EQ(both.rank(), 0);
  EXPECT_EQ(both.item<float>(), 4);
  const Tensor none = zeros({0, 3});
  EXPECT_EQ((none + 1).shape(), (Shape{0, 3}));
  EXPECT_EQ(sum(none).item<float>(), 0);
  EXPECT_EQ(sum(none, 0).to_vector<float>(), std::vector<float>(3, 0));
}

TEST(Eager, ResultsBeyondTheCachesAreTheSame) {
  const int64_t n = (16 << 20) / 4 + 7;
  const Tensor x = cast(remainder(iota({n}, 0, i64), 1001), f32);
  const Tensor y = x * 3 + x, rows = reshape(slice(x, {0}, {4096 * 1024}), {4096, 1024}),
               scaled = rows * slice(x, {0}, {1024});
  const Tensor turned = transpose(rows);
  const std::vector<float> in = x.to_vector<float>(), out = y.to_vector<float>(), product = scaled.to_vector<float>(),
                           columns = turned.to_vector<float>();
  for (size_t i = 0; i < in.size(); ++i)
    ASSERT_EQ(out[i], 4 * in[i]) << i;
  for (size_t i = 0; i < product.size(); ++i)
    ASSERT_EQ(product[i], in[i] * in[i % 1024]) << i;
  for (size_t i = 0; i < columns.size(); ++i)
    ASSERT_EQ(columns[i], in[i % 4096 * 1024 + i / 4096]) << i;
  double total = 0;
  for (float v : in)
    total += v;
  EXPECT_NEAR(sum(x).item<double>(), total, 1e-5 * total);
  EXPECT_NEAR(mean(rows).item<double>(), sum(cast(rows, f64)).item<double>() / (4096 * 1024), 1e-3);
}

TEST(Eager, NumbersTakeTheTypeBesideThem) {
  const Tensor h = ones({3}, f16), i = ones({3}, i32), b = ones({3}, bool_), d = ones({3}, f64);
  EXPECT_EQ((h + 1).dtype(), f16);
  EXPECT_EQ((h + 1.5).to_vector<float>(), std::vector<float>(3, 2.5f));
  EXPECT_EQ((i * 2).dtype(), i32);
  EXPECT_EQ((i * 2.5).dtype(), f32);
  EXPECT_EQ((1 - b).dtype(), i64);
  EXPECT_EQ((d + 0.1).to_vector<double>(), std::vector<double>(3, 1.1));
  EXPECT_EQ(where(b, 1, 2).to_vector<int64_t>(), std::vector<int64_t>(3, 1));
  EXPECT_EQ((ones({3}, i64) + (int64_t(1) << 53) + 1).to_vector<int64_t>(),
            std::vector<int64_t>(3, (int64_t(1) << 53) + 2));
}

using EagerDeathTest = testing::Test;
TEST(EagerDeathTest, WhatWaitsForCodeAtTheEndIsNoCrash) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        clear_compile_caches();
        static Tensor kept;
        const Tensor x = ones({100}, i16);
        kept = cumsum(hypot(x, x) + sinh(x), 0); // nobody waits
        kept = matmul(ones({7, 5}), ones({5, 3}));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

} // namespace
