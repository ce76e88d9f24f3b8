#include "Memory.h"

#include <dnnl.hpp>

#include <tuple>

namespace tressel::bench {

double libraryRows(bool scaled, int64_t rows, int64_t columns) {
  using dnnl::memory;
  struct Ready {
    std::vector<memory> kept;
    std::function<void()> run;
  };
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  static std::map<std::tuple<bool, int64_t, int64_t>, Ready> all;
  auto [found, isNew] = all.try_emplace({scaled, rows, columns});
  Ready &ready = found->second;
  if (isNew) {
    auto make = [&](memory::dims dims) {
      memory::dims strides(dims.size(), 1);
      if (dims.size() == 2)
        strides[0] = dims[1];
      ready.kept.emplace_back(memory::desc(dims, memory::data_type::f32, strides), engine);
      auto *values = static_cast<float *>(ready.kept.back().get_data_handle());
      for (size_t i = 0; i < ready.kept.back().get_desc().get_size() / sizeof(float); ++i)
        values[i] = static_cast<float>(i % 11) / 8 - 0.5f;
      return ready.kept.back();
    };
    const memory x = make({rows, columns}), y = make({rows, columns});
    if (scaled) {
      using norm = dnnl::layer_normalization_forward;
      const memory scale = make({columns}), shift = make({columns});
      const norm::primitive_desc desc(norm::desc(dnnl::prop_kind::forward_inference, x.get_desc(), 1e-5f,
                                                 dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift),
                                      engine);
      ready.run = [=, call = norm(desc)] {
        call.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_SCALE, scale}, {DNNL_ARG_SHIFT, shift}});
        stream.wait();
      };
    } else {
      using softmax = dnnl::softmax_forward;
      const softmax::primitive_desc desc(softmax::desc(dnnl::prop_kind::forward_inference, x.get_desc(), 1), engine);
      ready.run = [=, call = softmax(desc)] {
        call.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
        stream.wait();
      };
    }
  }
  return secondsPerCall(ready.run, kRowSeconds);
}

} // namespace tressel::bench
