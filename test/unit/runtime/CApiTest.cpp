#include "tressel/runtime/custom_kernel.h" // the two go together
#include "tressel/runtime/tressel_runtime.h"

#include "ScheduleBuilder.h"
#include "TestImages.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Package.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;

namespace {

/// "main": out = (x + x) + x of n floats, n in [1, 1000], through an arena. "pick": row i of a table of 4, i32 indices.
std::vector<std::byte> packageOfTwo() {
  const Size n = dim::symbol("n", 1, 1000);
  const TensorType type{f32, Shape{n}};
  auto ofSize = [&](ScheduleBuilder &b, uint32_t buffer) {
    b.s.buffers[buffer].bytes = n * 4;
    return buffer;
  };
  auto floats = ScheduleBuilder::floats(1);
  ScheduleBuilder b;
  b.s.name = "main";
  b.s.dims = {n};
  const uint32_t x = ofSize(b, b.input("x", floats)), out = ofSize(b, b.output("out", floats)),
                 h = ofSize(b, b.buffer(Space::Arena, b.arena(dim::alignUp(n * 4, 64)), 0, floats));
  b.s.inputs[0].type = b.s.outputs[0].type = type;
  for (uint32_t buffer : {x, out, h})
    b.s.buffers[buffer].type = type;
  const uint32_t add = b.kernel("add", n, 64);
  b.s.kernels[add].numInputs = 2;
  b.launch(add, {x, x}, {h});
  b.launch(add, {h, x}, {out});

  ScheduleBuilder p;
  p.s.name = "pick";
  const TensorType indices{i32, Shape{2}};
  const uint32_t table = p.input("table", ScheduleBuilder::floats(4)), index = p.input("index", indices),
                 picked = p.output("picked", ScheduleBuilder::floats(2));
  const uint32_t gather = p.kernel("gather", 2, 2);
  p.s.kernels[gather].numInputs = 2;
  p.launch(gather, {table, index}, {picked});

  const std::vector<std::byte> image = testImage("kernels");
  const PackageFunction functions[] = {{"main", &b.s, {{CpuLevel::Baseline, image}}, {}},
                                       {"pick", &p.s, {{CpuLevel::Baseline, image}}, {}}};
  return packageBytes(functions);
}

/// A package in aligned memory.
struct Opened {
  Opened() {
    const std::vector<std::byte> made = packageOfTwo();
    bytes = made.size();
    memory.reset(static_cast<std::byte *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    std::memcpy(memory.get(), made.data(), bytes);
    EXPECT_EQ(tressel_open_memory(memory.get(), bytes, &package), TRESSEL_OK) << tressel_error();
  }
  ~Opened() { tressel_close(package); }

  struct Free {
    void operator()(std::byte *p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> memory;
  size_t bytes = 0;
  tressel_package *package = nullptr;
};

/// A vector; its size stays where it is.
tressel_tensor floats(float *data, const int64_t &n) { return {TRESSEL_F32, 1, &n, data}; }

struct Counted {
  int64_t live = 0, most = 0;
  int calls = 0, failAfter = 1000;
};
void *countedAllocate(size_t bytes, size_t alignment, void *user) {
  auto &c = *static_cast<Counted *>(user);
  if (c.calls++ >= c.failAfter)
    return nullptr;
  c.live += static_cast<int64_t>(bytes);
  c.most = std::max(c.most, c.live);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void countedRelease(void *memory, size_t bytes, void *user) {
  static_cast<Counted *>(user)->live -= static_cast<int64_t>(bytes);
  std::free(memory);
}

} // namespace

TEST(CApi, DescribesAndRunsFunctions) {
  Opened opened;
  EXPECT_EQ(tressel_abi_version(), uint32_t(TRESSEL_ABI_VERSION));
  EXPECT_EQ(tressel_num_functions(opened.package), 2u);
  EXPECT_STREQ(tressel_function_name(opened.package, 1), "pick");
  EXPECT_EQ(tressel_function_name(opened.package, 2), nullptr);

  tressel_context *context = nullptr;
  ASSERT_EQ(tressel_context_create(opened.package, nullptr, &context), TRESSEL_OK) << tressel_error();
  EXPECT_EQ(tressel_num_inputs(context), 1u);
  EXPECT_EQ(tressel_num_outputs(context), 1u);
  ASSERT_EQ(tressel_num_dims(context), 1u);
  tressel_dim dim;
  ASSERT_EQ(tressel_dim_info(context, 0, &dim), TRESSEL_OK);
  EXPECT_STREQ(dim.name, "n");
  EXPECT_EQ(dim.hi, 1000);
  tressel_value value;
  ASSERT_EQ(tressel_input(context, 0, &value), TRESSEL_OK);
  EXPECT_STREQ(value.name, "x");
  EXPECT_EQ(value.dtype, TRESSEL_F32);
  EXPECT_EQ(value.rank, 1);
  EXPECT_EQ(value.sizes[0], -1);
  EXPECT_STREQ(value.symbols[0], "n");

  for (int64_t n : {3, 700, 3}) {
    std::vector<float> x(size_t(n), 2.0f), y(size_t(n), 0.0f);
    const tressel_tensor in = floats(x.data(), n);
    ASSERT_EQ(tressel_output_types(context, &in, 1, &value, 1), TRESSEL_OK) << tressel_error();
    EXPECT_STREQ(value.name, "out");
    EXPECT_EQ(value.rank, 1);
    EXPECT_EQ(value.sizes[0], n);
    EXPECT_EQ(value.symbols[0], nullptr);
    const tressel_tensor out = {value.dtype, value.rank, value.sizes, y.data()};
    ASSERT_EQ(tressel_run(context, &in, 1, &out, 1), TRESSEL_OK) << tressel_error();
    EXPECT_EQ(y, std::vector<float>(size_t(n), 6.0f));
  }
  tressel_context_destroy(context);
}

TEST(CApi, AContextOutlivesItsPackage) {
  tressel_context *context = nullptr;
  Opened opened; // only its memory stays
  ASSERT_EQ(tressel_context_create(opened.package, nullptr, &context), TRESSEL_OK);
  tressel_close(opened.package);
  opened.package = nullptr;
  float x[2] = {1, 2}, y[2];
  const int64_t two = 2;
  const tressel_tensor in = floats(x, two), out = floats(y, two);
  EXPECT_EQ(tressel_run(context, &in, 1, &out, 1), TRESSEL_OK) << tressel_error();
  EXPECT_EQ(y[1], 6.0f);
  tressel_context_destroy(context);
  tressel_context_destroy(nullptr);
  tressel_close(nullptr);
}

TEST(CApi, SaysWhatIsWrong) {
  Opened opened;
  tressel_context *context = nullptr;
  ASSERT_EQ(tressel_context_create(opened.package, nullptr, &context), TRESSEL_OK);
  float x[4] = {}, y[4];
  int64_t n = 4, m = 4;
  tressel_tensor in = floats(x, n), out = floats(y, m);
  auto run = [&](tressel_status want) {
    EXPECT_EQ(tressel_run(context, &in, 1, &out, 1), want);
    return std::string(tressel_error());
  };
  m = 3;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "output 'out' of 'main' is f32[4], given f32[3]");
  m = 4;
  in.dtype = TRESSEL_I32;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "input 'x' of 'main' is f32[n], given i32[4]");
  in.dtype = 77;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "input 0 has no element type (dtype 77)");
  in.dtype = TRESSEL_F32;
  in.rank = 9;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "input 0 has rank 9, not 0 to 8");
  in.rank = 1;
  n = -4;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "input 0 has -4 as the size of dimension 0");
  n = m = 1001;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT),
            "input 'x' is f32[n], given f32[1001]: dimension 0 is 1001, but n lies between 1 and 1000");
  n = m = 4;
  in.sizes = nullptr;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "input 0 has no sizes: the pointer is null");
  in.sizes = &n;
  in.data = nullptr;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "input 'x' is null");
  in.data = y;
  EXPECT_EQ(run(TRESSEL_INVALID_ARGUMENT), "output 'out' overlaps input 'x'");
  EXPECT_EQ(tressel_run(context, &in, 0, &out, 1), TRESSEL_INVALID_ARGUMENT);
  EXPECT_EQ(tressel_run(context, nullptr, 1, &out, 1), TRESSEL_INVALID_ARGUMENT);
  EXPECT_EQ(tressel_run(nullptr, &in, 1, &out, 1), TRESSEL_INVALID_ARGUMENT);
  tressel_value value;
  EXPECT_EQ(tressel_input(context, 1, &value), TRESSEL_INVALID_ARGUMENT);
  in.data = x;
  EXPECT_EQ(tressel_run(context, &in, 1, &out, 1), TRESSEL_OK); // as good as before

  tressel_package *package = opened.package;
  EXPECT_EQ(tressel_open("/nonexistent/a.tsl", &package), TRESSEL_BAD_PACKAGE);
  EXPECT_EQ(package, opened.package) << "results stay untouched";
  EXPECT_NE(std::string(tressel_error()).find("/nonexistent/a.tsl"), std::string::npos);
  EXPECT_EQ(tressel_open(nullptr, &package), TRESSEL_INVALID_ARGUMENT);
  EXPECT_EQ(tressel_open_memory(opened.memory.get(), opened.bytes - 1, &package), TRESSEL_BAD_PACKAGE);
  EXPECT_EQ(tressel_open_memory(opened.memory.get() + 1, opened.bytes - 1, &package), TRESSEL_INVALID_ARGUMENT);
  EXPECT_STREQ(tressel_error(), "the memory of a package must be aligned to 64 bytes");
  tressel_context_destroy(context);
}

TEST(CApi, AKernelsFindingIsTold) {
  Opened opened;
  tressel_context_options options = {};
  options.struct_size = sizeof(options);
  options.function = "nobody";
  tressel_context *context = nullptr;
  EXPECT_EQ(tressel_context_create(opened.package, &options, &context), TRESSEL_INVALID_ARGUMENT);
  options.function = "pick";
  ASSERT_EQ(tressel_context_create(opened.package, &options, &context), TRESSEL_OK) << tressel_error();
  float table[4] = {1, 2, 3, 4}, picked[2];
  int32_t index[2] = {3, 9};
  const int64_t four = 4, two = 2;
  const tressel_tensor in[] = {floats(table, four), {TRESSEL_I32, 1, &two, index}}, out = floats(picked, two);
  EXPECT_EQ(tressel_run(context, in, 2, &out, 1), TRESSEL_RUN_FAILED);
  EXPECT_EQ(std::string(tressel_error()), "an index, or a label of a class, is out of range in kernel 'gather'");
  std::string other = "unset";
  std::thread([&] { other = tressel_error(); }).join();
  EXPECT_EQ(other, "") << "errors are a thread's own";
  tressel_context_destroy(context);
}

TEST(CApi, MemoryIsBoundedAndTheCallers) {
  Opened opened;
  Counted counted;
  const char *names[] = {"n"};
  const int64_t sizes[] = {100};
  tressel_context_options options = {};
  options.struct_size = sizeof(options);
  options.num_max_dims = 1;
  options.max_dim_names = names;
  options.max_dims = sizes;
  options.allocate = countedAllocate;
  options.user = &counted;
  tressel_context *context = nullptr;
  EXPECT_EQ(tressel_context_create(opened.package, &options, &context), TRESSEL_INVALID_ARGUMENT);
  EXPECT_STREQ(tressel_error(), "of allocate and release, one is null");
  options.release = countedRelease;
  ASSERT_EQ(tressel_context_create(opened.package, &options, &context), TRESSEL_OK) << tressel_error();
  EXPECT_EQ(counted.live, tressel_context_bytes(context));
  const int calls = counted.calls;
  std::vector<float> x(1000, 1.0f), y(1000);
  for (int64_t n : {100, 1, 57}) {
    const tressel_tensor in = floats(x.data(), n), out = floats(y.data(), n);
    EXPECT_EQ(tressel_run(context, &in, 1, &out, 1), TRESSEL_OK) << tressel_error();
  }
  EXPECT_EQ(counted.calls, calls) << "all was taken at once";
  int64_t size = 101;
  const tressel_tensor in = floats(x.data(), size), out = floats(y.data(), size);
  EXPECT_EQ(tressel_run(context, &in, 1, &out, 1), TRESSEL_INVALID_ARGUMENT);
  tressel_context_destroy(context);
  EXPECT_EQ(counted.live, 0);

  // A bound instead of sizes: growth stops there, and what fitted still does.
  options.num_max_dims = 0;
  options.max_bytes = 1200;
  ASSERT_EQ(tressel_context_create(opened.package, &options, &context), TRESSEL_OK) << tressel_error();
  counted.most = counted.live;
  auto run = [&](int64_t n) {
    size = n;
    return tressel_run(context, &in, 1, &out, 1);
  };
  EXPECT_EQ(run(150), TRESSEL_OK);
  EXPECT_EQ(run(1000), TRESSEL_OUT_OF_MEMORY);
  EXPECT_NE(std::string(tressel_error()).find("but its context may hold 1200"), std::string::npos) << tressel_error();
  EXPECT_LE(counted.most, 1200);
  EXPECT_EQ(run(150), TRESSEL_OK);
  // The allocator has no more: the same.
  tressel_context_destroy(context);
  options.max_bytes = 0;
  ASSERT_EQ(tressel_context_create(opened.package, &options, &context), TRESSEL_OK);
  counted.failAfter = counted.calls;
  EXPECT_EQ(run(500), TRESSEL_OUT_OF_MEMORY);
  counted.failAfter = 1000;
  EXPECT_EQ(run(500), TRESSEL_OK);
  EXPECT_EQ(y[499], 3.0f);
  tressel_context_destroy(context);
  EXPECT_EQ(counted.live, 0);
}

/// The package is fine: these sizes are too large for any machine.
TEST(CApi, ImpossibleSizesAreAMatterOfMemory) {
  const Size n = dim::symbol("n");
  ScheduleBuilder b;
  b.s.dims = {n};
  const auto one = ScheduleBuilder::floats(1);
  const uint32_t x = b.input("x", one), out = b.output("out", one),
                 h = b.buffer(Space::Arena, b.arena(n * (1 << 20)), 0, one);
  b.s.inputs[0].type = b.s.outputs[0].type = {f32, Shape{n}};
  for (uint32_t buffer : {x, out, h})
    b.s.buffers[buffer].bytes = n * 4, b.s.buffers[buffer].type = {f32, Shape{n}};
  const uint32_t add = b.kernel("add", n, 64);
  b.s.kernels[add].numInputs = 2;
  b.launch(add, {x, x}, {h});
  b.launch(add, {h, x}, {out});
  const std::vector<std::byte> image = testImage("kernels");
  const PackageFunction function{"main", &b.s, {{CpuLevel::Baseline, image}}, {}};
  const std::vector<std::byte> bytes = packageBytes({&function, 1});
  std::unique_ptr<std::byte, Opened::Free> memory(
      static_cast<std::byte *>(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64)));
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  tressel_package *package = nullptr;
  tressel_context *context = nullptr;
  ASSERT_EQ(tressel_open_memory(memory.get(), bytes.size(), &package), TRESSEL_OK) << tressel_error();
  ASSERT_EQ(tressel_context_create(package, nullptr, &context), TRESSEL_OK) << tressel_error();
  float few[2] = {};
  const int64_t size = (int64_t(1) << 31) - 1;
  const tressel_tensor in = floats(few, size), result = floats(few + 1, size);
  EXPECT_EQ(tressel_run(context, &in, 1, &result, 1), TRESSEL_OUT_OF_MEMORY) << tressel_error();
  tressel_context_destroy(context);
  tressel_close(package);
}

//--- Many threads: run under the tsan preset too ------------------------------------------------------------------

namespace {

/// Calls fn(i) in threads 0 to n-1, which begin together.
template <typename Fn> void inThreads(int n, Fn fn) {
  std::atomic<int> waiting{n};
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0)
        std::this_thread::yield();
      fn(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// One call of "main" with x = value everywhere: what is wrong, "" if all of out is 3 * value.
std::string callMain(tressel_context *context, int64_t n, float value) {
  std::vector<float> x(size_t(n), value), y(size_t(n), 0.0f);
  const tressel_tensor in = floats(x.data(), n), out = floats(y.data(), n);
  if (tressel_run(context, &in, 1, &out, 1))
    return tressel_error();
  return y == std::vector<float>(size_t(n), 3 * value) ? "" : "wrong values";
}

} // namespace

TEST(CApi, EightThreadsRunOnePackage) {
  // Sizes on both sides of the grain: in the caller, and over the pool that all callers share.
  Opened opened;
  std::string problems[8];
  inThreads(8, [&](int thread) {
    tressel_context *context = nullptr;
    if (tressel_context_create(opened.package, nullptr, &context)) {
      problems[thread] = tressel_error();
      return;
    }
    for (int i = 0; i < 60 && problems[thread].empty(); ++i)
      problems[thread] = callMain(context, 1 + (i * 37 + thread * 211) % 1000, static_cast<float>(thread + i));
    tressel_context_destroy(context);
  });
  for (const std::string &problem : problems)
    EXPECT_EQ(problem, "");
}

TEST(CApi, EightThreadsOpenAndCloseAFile) {
  const std::string path = testing::TempDir() + "tressel_threads_" + std::to_string(::getpid()) + ".tsl";
  writeFile(path, packageOfTwo());
  std::string problems[8];
  inThreads(8, [&](int thread) {
    for (int i = 0; i < 12 && problems[thread].empty(); ++i) {
      tressel_package *package = nullptr;
      tressel_context *context = nullptr;
      if (tressel_open(path.c_str(), &package) || tressel_context_create(package, nullptr, &context)) {
        problems[thread] = tressel_error();
        return;
      }
      tressel_close(package); // the context goes on
      problems[thread] = callMain(context, 100, static_cast<float>(i));
      tressel_context_destroy(context);
    }
  });
  std::filesystem::remove(path);
  for (const std::string &problem : problems)
    EXPECT_EQ(problem, "");
}

TEST(CApi, ErrorsOfAThreadDisturbNoOther) {
  Opened opened;
  std::string problems[8];
  inThreads(8, [&](int thread) {
    tressel_context *context = nullptr;
    if (tressel_context_create(opened.package, nullptr, &context)) {
      problems[thread] = tressel_error();
      return;
    }
    for (int i = 0; i < 60 && problems[thread].empty(); ++i) {
      if (thread % 2) {
        problems[thread] = callMain(context, 300, static_cast<float>(i));
        if (problems[thread].empty() && *tressel_error())
          problems[thread] = std::string("this thread has had no error, but is told: ") + tressel_error();
        continue;
      }
      const int64_t n = 1001 + thread * 100 + i; // more than there may be, another number in each thread
      std::vector<float> x(size_t(n), 0.0f), y = x;
      const tressel_tensor in = floats(x.data(), n), out = floats(y.data(), n);
      const tressel_status status = tressel_run(context, &in, 1, &out, 1);
      if (status != TRESSEL_INVALID_ARGUMENT ||
          std::string(tressel_error()).find("is " + std::to_string(n) + ",") == std::string::npos)
        problems[thread] = std::string("another's error: ") + tressel_error();
    }
    if (problems[thread].empty())
      problems[thread] = callMain(context, 5, 1.0f);
    tressel_context_destroy(context);
  });
  for (const std::string &problem : problems)
    EXPECT_EQ(problem, "");
}

TEST(CApi, EightThreadsRunWhatTheCompilerMade) {
  const std::string path =
      TRESSEL_SOURCE_DIR "/test/packages/mlp-v" + std::to_string(kPackageVersion) + ".tsl"; // y = softmax(x w)
  tressel_package *package = nullptr;
  ASSERT_EQ(tressel_open(path.c_str(), &package), TRESSEL_OK) << tressel_error();
  const int64_t sizes[][2] = {{4, 16}, {16, 8}, {4, 8}};
  auto call = [&](tressel_context *context, int seed, std::vector<float> &y) {
    std::vector<float> x(64), w(128);
    for (size_t i = 0; i < w.size(); ++i)
      x[i % 64] = w[i] = static_cast<float>((static_cast<int>(i) * 7 + seed) % 11 - 5) / 8;
    y.assign(32, 0.0f);
    const tressel_tensor in[] = {{TRESSEL_F32, 2, sizes[0], x.data()}, {TRESSEL_F32, 2, sizes[1], w.data()}};
    const tressel_tensor out = {TRESSEL_F32, 2, sizes[2], y.data()};
    return tressel_run(context, in, 2, &out, 1);
  };
  auto create = [&] {
    tressel_context *context = nullptr;
    EXPECT_EQ(tressel_context_create(package, nullptr, &context), TRESSEL_OK) << tressel_error();
    return context;
  };
  std::vector<std::vector<float>> expected(16);
  tressel_context *alone = create();
  for (int seed = 0; seed < 16; ++seed)
    ASSERT_EQ(call(alone, seed, expected[size_t(seed)]), TRESSEL_OK) << tressel_error();
  EXPECT_NE(expected[0], expected[1]);
  tressel_context_destroy(alone);
  int wrong[8] = {};
  inThreads(8, [&](int thread) {
    tressel_context *context = create();
    std::vector<float> y;
    for (int i = 0; i < 100; ++i)
      wrong[thread] += call(context, (i + thread) % 16, y) != TRESSEL_OK || y != expected[size_t((i + thread) % 16)];
    tressel_context_destroy(context);
  });
  tressel_close(package);
  for (int count : wrong)
    EXPECT_EQ(count, 0);
}
