#include "Attention.h"

#include <dnnl.hpp>

#include <cmath>
#include <map>
#include <random>

namespace tressel::bench {

namespace {

using dnnl::matmul;
using dnnl::memory;
using dnnl::softmax_forward;

std::function<void()> prepare(const AttentionShape &shape) {
  const auto [heads, length, size] = shape;
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  using Dims = memory::dims;
  constexpr auto f32 = memory::data_type::f32;
  std::mt19937 rng(1);
  auto make = [&](const Dims &dims) {
    memory m({dims, f32, Dims{dims[1] * dims[2], dims[2], 1}}, engine);
    auto *values = static_cast<float *>(m.get_data_handle());
    for (int64_t i = 0; i < dims[0] * dims[1] * dims[2]; ++i)
      values[i] = static_cast<float>(rng() % 1000) / 1000 - 0.5f;
    return m;
  };
  const memory q = make({heads, length, size}), k = make({heads, length, size}), v = make({heads, length, size}),
               y = make({heads, length, size}), scores = make({heads, length, length});
  const memory::desc transposed(Dims{heads, size, length}, f32, Dims{length * size, 1, size});
  dnnl::primitive_attr scale;
  scale.set_output_scales(0, {1 / std::sqrt(static_cast<float>(size))});
  const matmul first(matmul::primitive_desc(matmul::desc(q.get_desc(), transposed, scores.get_desc()), scale, engine)),
      second(matmul::primitive_desc(matmul::desc(scores.get_desc(), v.get_desc(), y.get_desc()), engine));
  const softmax_forward softmax(softmax_forward::primitive_desc(
      softmax_forward::desc(dnnl::prop_kind::forward_inference, scores.get_desc(), 2), engine));
  const memory keys(transposed, engine, k.get_data_handle());
  return [=] {
    first.execute(stream, {{DNNL_ARG_SRC, q}, {DNNL_ARG_WEIGHTS, keys}, {DNNL_ARG_DST, scores}});
    softmax.execute(stream, {{DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, scores}});
    second.execute(stream, {{DNNL_ARG_SRC, scores}, {DNNL_ARG_WEIGHTS, v}, {DNNL_ARG_DST, y}});
    stream.wait();
    static_cast<void>(k); // keeps what `keys` shows
  };
}

} // namespace

double libraryAttention(const AttentionShape &shape) {
  static std::map<AttentionShape, std::function<void()>> calls;
  auto found = calls.find(shape);
  if (found == calls.end())
    found = calls.emplace(shape, prepare(shape)).first;
  return secondsPerCall(found->second, kAttentionSeconds);
}

} // namespace tressel::bench
