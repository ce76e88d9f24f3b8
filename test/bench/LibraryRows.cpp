#include "Memory.h"
#include "Packaged.h"
#include "Values.h"

#include <dnnl.hpp>

#include <tuple>

namespace tressel::bench {

const LibraryCall &libraryRows(bool scaled, int64_t rows, int64_t columns) {
  using dnnl::memory;
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  static std::map<std::tuple<bool, int64_t, int64_t>, LibraryCall> all;
  auto [found, isNew] = all.try_emplace({scaled, rows, columns});
  if (isNew) {
    auto make = [&](memory::dims dims, const char *name) {
      memory::dims strides(dims.size(), 1);
      int64_t elements = dims[0];
      if (dims.size() == 2) {
        strides[0] = dims[1];
        elements *= dims[1];
      }
      memory made(memory::desc(dims, memory::data_type::f32, strides), engine);
      fillValues(made.get_data_handle(), {f32, {elements}}, seedOf(name));
      return made;
    };
    const memory x = make({rows, columns}, "a"), y = make({rows, columns}, "y");
    std::function<void()> run;
    if (scaled) {
      using norm = dnnl::layer_normalization_forward;
      const memory scale = make({columns}, "b"), shift = make({columns}, "c");
      const norm::primitive_desc desc(
          norm::desc(dnnl::prop_kind::forward_inference, x.get_desc(), 1e-5f,
                     dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift),
          engine);
      run = [=, call = norm(desc)] {
        call.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_SCALE, scale}, {DNNL_ARG_SHIFT, shift}});
        stream.wait();
      };
    } else {
      using softmax = dnnl::softmax_forward;
      const softmax::primitive_desc desc(softmax::desc(dnnl::prop_kind::forward_inference, x.get_desc(), 1), engine);
      run = [=, call = softmax(desc)] {
        call.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
        stream.wait();
      };
    }
    found->second = {[=] { return secondsPerCall(run, kRowSeconds); },
                     [=] {
                       run();
                       const auto *values = static_cast<const float *>(y.get_data_handle());
                       return Outputs(values, values + rows * columns);
                     }};
  }
  return found->second;
}

} // namespace tressel::bench
