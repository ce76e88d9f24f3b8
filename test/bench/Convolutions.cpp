#include "Convolutions.h"

#include <dnnl.hpp>

#include <atomic>
#include <map>
#include <random>
#include <thread>

namespace tressel::bench {

namespace {

/// One shape, ready to run.
struct Contest {
  dnnl::stream stream;
  dnnl::convolution_forward call;
  std::unordered_map<int, dnnl::memory> operands;
};

using dnnl::memory;

Contest prepare(const ConvolutionShape &s, memory::data_type type) {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const int64_t pad = s.window / 2, out = s.out();
  auto any = [&](memory::dims dims) { return memory::desc(dims, type, memory::format_tag::any); };
  const dnnl::convolution_forward::primitive_desc best(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any({1, s.inChannels, s.size, s.size}),
       any({s.outChannels, s.inChannels, s.window, s.window}), any({1, s.outChannels, out, out}),
       memory::dims{s.stride, s.stride}, memory::dims{pad, pad}, memory::dims{pad, pad}},
      engine);
  std::mt19937 rng(1);
  auto make = [&](const memory::desc &desc) {
    memory made(desc, engine);
    auto *values = static_cast<float *>(made.get_data_handle()); // without their low halves, also pairs of bf16
    for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i)
      values[i] = static_cast<float>(rng() % 100) / 64 - 0.5f;
    return made;
  };
  return {dnnl::stream(engine),
          dnnl::convolution_forward(best),
          {{DNNL_ARG_SRC, make(best.src_desc())},
           {DNNL_ARG_WEIGHTS, make(best.weights_desc())},
           {DNNL_ARG_DST, make(best.dst_desc())}}};
}

/// `rounds` times 32 multiply-adds of vectors, enough of them independent to hide their latency.
template <typename Vector> [[gnu::always_inline]] inline float multiplyAdds(int64_t rounds) {
  constexpr int chains = 16;
  Vector sums[chains] = {}, factor = Vector{} + 0.99f, addend = Vector{} + 0.01f;
  for (int64_t i = 0; i < rounds; ++i)
    for (int repeat = 0; repeat < 2; ++repeat)
#pragma GCC unroll 16
      for (int c = 0; c < chains; ++c)
        sums[c] = sums[c] * factor + addend;
  float total = 0;
  for (const Vector &sum : sums)
    total += sum[0];
  return total;
}
template <int Lanes> using Vector __attribute__((vector_size(Lanes * sizeof(float)))) = float;
[[gnu::target("avx512f")]] float multiplyAddsV4(int64_t rounds) { return multiplyAdds<Vector<16>>(rounds); }
[[gnu::target("avx2,fma")]] float multiplyAddsV3(int64_t rounds) { return multiplyAdds<Vector<8>>(rounds); }
float multiplyAddsBaseline(int64_t rounds) { return multiplyAdds<Vector<4>>(rounds); }

} // namespace

double peakFlops(int threads) {
  constexpr int64_t rounds = 200000;
  const bool v4 = __builtin_cpu_supports("avx512f"), v3 = __builtin_cpu_supports("avx2");
  const auto work = v4 ? multiplyAddsV4 : v3 ? multiplyAddsV3 : multiplyAddsBaseline;
  std::atomic<float> kept = 0;
  const double seconds = secondsOf([&] {
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
      others.emplace_back([&] { kept = work(rounds); });
    kept = work(rounds);
    for (std::thread &other : others)
      other.join();
  });
  return 2.0 * 32 * (v4 ? 16 : v3 ? 8 : 4) * rounds * threads / seconds;
}

double resnet50Flops() {
  double products = 2048 * 1000;
  // How often each of convolutionShapes() occurs.
  const int counts[] = {1, 1, 3, 4, 2, 1, 1, 4, 1, 3, 3, 1, 1, 6, 1, 5, 5, 1, 1, 3, 1, 2, 2};
  const std::vector<ConvolutionShape> shapes = convolutionShapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const ConvolutionShape &s = shapes[i];
    products += static_cast<double>(counts[i] * s.inChannels * s.window * s.window) *
                static_cast<double>(s.outChannels * s.out() * s.out());
  }
  return 2 * products;
}

static double secondsOf(const ConvolutionShape &shape, memory::data_type type) {
  static std::map<ConvolutionShape, Contest> contests; // a process has one row, and a row one type
  if (!contests.contains(shape))
    contests.emplace(shape, prepare(shape, type));
  Contest &contest = contests.at(shape);
  return secondsPerCall(
      [&] {
        contest.call.execute(contest.stream, contest.operands);
        contest.stream.wait();
      },
      kConvolutionSeconds);
}

double libraryConvolution(const ConvolutionShape &shape) { return secondsOf(shape, memory::data_type::f32); }
double libraryHalfConvolution(const ConvolutionShape &shape) { return secondsOf(shape, memory::data_type::bf16); }

} // namespace tressel::bench
