#include "Convolutions.h"

#include <dnnl.hpp>

#include <random>

namespace tressel::bench {

namespace {

/// One shape, ready to run.
struct Contest {
  dnnl::stream stream;
  dnnl::convolution_forward call;
  std::unordered_map<int, dnnl::memory> operands;
};

Contest prepare(const ConvolutionShape &s) {
  using dnnl::memory;
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const int64_t pad = s.window / 2, out = s.out();
  auto any = [](memory::dims dims) { return memory::desc(dims, memory::data_type::f32, memory::format_tag::any); };
  const dnnl::convolution_forward::primitive_desc best(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any({1, s.inChannels, s.size, s.size}),
       any({s.outChannels, s.inChannels, s.window, s.window}), any({1, s.outChannels, out, out}),
       memory::dims{s.stride, s.stride}, memory::dims{pad, pad}, memory::dims{pad, pad}},
      engine);
  std::mt19937 rng(1);
  auto make = [&](const memory::desc &desc) {
    memory made(desc, engine);
    auto *values = static_cast<float *>(made.get_data_handle());
    for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i)
      values[i] = static_cast<float>(rng() % 1000) / 1000 - 0.5f;
    return made;
  };
  return {dnnl::stream(engine),
          dnnl::convolution_forward(best),
          {{DNNL_ARG_SRC, make(best.src_desc())},
           {DNNL_ARG_WEIGHTS, make(best.weights_desc())},
           {DNNL_ARG_DST, make(best.dst_desc())}}};
}

} // namespace

double libraryConvolution(const ConvolutionShape &shape) {
  static std::map<ConvolutionShape, Contest> contests;
  if (!contests.contains(shape))
    contests.emplace(shape, prepare(shape));
  Contest &contest = contests.at(shape);
  return secondsPerCall(
      [&] {
        contest.call.execute(contest.stream, contest.operands);
        contest.stream.wait();
      },
      kConvolutionSeconds);
}

} // namespace tressel::bench
