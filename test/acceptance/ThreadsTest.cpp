// One compiled program in many threads: equal bit for bit, compiled once per key.
#include <tressel/runtime/Package.h>
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <thread>

using namespace tressel;

namespace {

constexpr int kThreads = 8, kRounds = 40;

void inThreads(const std::function<void(int)> &body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back(body, t);
  for (std::thread &t : threads)
    t.join();
}

nn::Sequential makeNet() {
  nn::Sequential net{nn::Dense(64, relu), nn::Dense(10)};
  net.initialize({{f32, {16, 32}}}, 7);
  return net;
}

TEST(Threads, OnePackage) {
  const std::string path = (std::filesystem::temp_directory_path() / "tressel-threads.tsl").string();
  nn::Sequential net = makeNet();
  auto f = jit([net](Tensor x) { return softmax(net(x)); });
  f.export_package(path, {.inputs = {{f32, {16, 32}}}});
  runtime::Package package = runtime::Package::open(path);
  const std::vector<float> x = rng::normal({16, 32}, 3).to_vector<float>();
  auto run = [&](runtime::Context &context) {
    std::vector<float> y(160);
    const void *in = x.data();
    void *out = y.data();
    context.run({&in, 1}, {&out, 1});
    return y;
  };
  runtime::Context first = package.context();
  const std::vector<float> want = run(first);
  std::atomic<int> different{0};
  std::array<const runtime::Executable *, kThreads> executables{};
  inThreads([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      runtime::Context context = package.context(); // one per thread; the code is shared
      executables[static_cast<size_t>(t)] = &context.executable();
      const std::vector<float> y = run(context);
      different += std::memcmp(y.data(), want.data(), y.size() * 4) != 0;
    }
  });
  EXPECT_EQ(different, 0);
  for (const runtime::Executable *e : executables)
    EXPECT_EQ(e, &first.executable());
  std::filesystem::remove(path);
}

TEST(Threads, OneJittedFunctionCompilesOncePerKey) {
  nn::Sequential net = makeNet();
  // Keys of equal shape: a size that changes would become one that is known only when the program runs.
  auto fn = [net](Tensor x, int64_t power) {
    Tensor y = softmax(net(x));
    for (int64_t i = 0; i < power; ++i)
      y = y * y;
    return y;
  };
  auto f = jit(fn), reference = jit(fn);
  const Tensor x = rng::normal({16, 32}, 3);
  constexpr int64_t kKeys = 3;
  std::vector<std::vector<float>> want;
  for (int64_t k = 0; k < kKeys; ++k)
    want.push_back(reference(x, k).to_vector<float>());
  std::atomic<int> different{0};
  inThreads([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      const int64_t k = (i + t) % kKeys;
      const std::vector<float> y = f(x, k).to_vector<float>();
      different += std::memcmp(y.data(), want[static_cast<size_t>(k)].data(), y.size() * 4) != 0;
    }
  });
  EXPECT_EQ(different, 0);
  EXPECT_EQ(f.stats().traces, uint64_t(kKeys));
  EXPECT_EQ(f.stats().hits, uint64_t(kThreads * kRounds - kKeys));
}

TEST(Threads, EagerOps) {
  Tensor x = rng::normal({64, 64}, 1);
  const std::vector<float> want = tanh(matmul(x, x) + 1).to_vector<float>();
  std::atomic<int> different{0};
  inThreads([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      const std::vector<float> y = tanh(matmul(x, x) + 1).to_vector<float>();
      different += std::memcmp(y.data(), want.data(), y.size() * 4) != 0;
    }
  });
  EXPECT_EQ(different, 0);
}

} // namespace
