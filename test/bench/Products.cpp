#include "Products.h"
#include "Packaged.h"
#include "Values.h"

#include <dlfcn.h>
#include <dnnl.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

namespace tressel::bench {

namespace {

using dnnl::inner_product_forward;
using dnnl::matmul;
using dnnl::memory;

using Gemm = void (*)(int order, int transA, int transB, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);

/// Null when it is not installed.
void *openBlas() {
  static void *const library = [] {
    if (__builtin_cpu_supports("avx512f"))
      setenv("OPENBLAS_CORETYPE", "SkylakeX", /*overwrite=*/0);
    return dlopen("libopenblas.so.0", RTLD_NOW);
  }();
  return library;
}

/// One shape, ready to run by each library.
struct Contest {
  std::vector<std::function<void()>> arms;
  memory y;
  ProductShape shape;
  memory::data_type type;

  Contest(const ProductShape &shape, memory::data_type type) : shape(shape), type(type) {
    const auto [m, k, n] = shape;
    static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    static dnnl::stream stream(engine);
    using Dims = memory::dims;
    const memory x({Dims{m, k}, type, Dims{k, 1}}, engine), w({Dims{k, n}, memory::data_type::f32, Dims{n, 1}}, engine);
    y = memory({Dims{m, n}, type, Dims{n, 1}}, engine);
    fillValues(x.get_data_handle(), {type == memory::data_type::f32 ? f32 : bf16, {m, k}}, seedOf("a"));
    fillWeights(static_cast<float *>(w.get_data_handle()), k * n, k);
    auto packed = [&](memory source, const memory::desc &to) {
      memory result(to, engine);
      dnnl::reorder(source, result).execute(stream, source, result);
      stream.wait();
      return result;
    };
    const matmul::primitive_desc product(
        matmul::desc(x.get_desc(), memory::desc(Dims{k, n}, type, memory::format_tag::any), y.get_desc()), engine);
    arms.push_back([call = matmul(product), x, y = y, weights = packed(w, product.weights_desc())] {
      call.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y}});
      stream.wait();
    });
    const inner_product_forward::primitive_desc inner(
        inner_product_forward::desc(dnnl::prop_kind::forward_inference, x.get_desc(),
                                    memory::desc(Dims{n, k}, type, memory::format_tag::any), y.get_desc()),
        engine);
    const memory transposed({Dims{n, k}, memory::data_type::f32, Dims{1, n}}, engine, w.get_data_handle());
    arms.push_back([call = inner_product_forward(inner), x, y = y, weights = packed(transposed, inner.weights_desc())] {
      call.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y}});
      stream.wait();
    });
    if (type == memory::data_type::f32 && openBlas())
      if (const auto gemm = reinterpret_cast<Gemm>(dlsym(openBlas(), "cblas_sgemm")))
        arms.push_back([=, y = y, m = int(m), n = int(n), k = int(k)] {
          constexpr int rowMajor = 101, plain = 111;
          gemm(rowMajor, plain, plain, m, n, k, 1, static_cast<float *>(x.get_data_handle()), k,
               static_cast<float *>(w.get_data_handle()), n, 0, static_cast<float *>(y.get_data_handle()), n);
        });
  }

  /// The results of all libraries, the first's where they agree; NaN where they do not.
  Outputs outputs() const {
    Outputs first;
    for (const auto &arm : arms) {
      arm();
      const Outputs got =
          asFloats(y.get_data_handle(), {type == memory::data_type::f32 ? f32 : bf16, {shape.m, shape.n}});
      if (first.empty())
        first = got;
      for (size_t i = 0; i < got.size(); ++i)
        if (!(std::abs(got[i] - first[i]) <= 0.02f * (1 + std::abs(first[i]))))
          first[i] = NAN;
    }
    return first;
  }

  /// By medians, in turns: the least of all samples would be luck.
  void keepTheBest() {
    constexpr int rounds = 5;
    std::vector<std::vector<double>> seconds(arms.size());
    for (int round = 0; round < rounds; ++round)
      for (size_t i = 0; i < arms.size(); ++i)
        seconds[i].push_back(secondsPerCall(arms[i], kProductSeconds));
    for (std::vector<double> &each : seconds)
      std::nth_element(each.begin(), each.begin() + rounds / 2, each.end());
    const auto least = std::min_element(seconds.begin(), seconds.end(),
                                        [](const auto &a, const auto &b) { return a[rounds / 2] < b[rounds / 2]; });
    arms = {arms[static_cast<size_t>(least - seconds.begin())]};
  }
};

} // namespace

const LibraryCall &libraryProduct(const ProductShape &shape, bool isBf16) {
  static std::map<ProductShape, LibraryCall> calls;
  auto [found, isNew] = calls.try_emplace(shape);
  if (isNew) {
    auto contest = std::make_shared<Contest>(shape, isBf16 ? memory::data_type::bf16 : memory::data_type::f32);
    auto decided = std::make_shared<bool>(false);
    found->second = {[=] {
                       if (!*decided)
                         contest->keepTheBest();
                       *decided = true;
                       return secondsPerCall(contest->arms[0], kProductSeconds);
                     },
                     [=] { return contest->outputs(); }};
  }
  return found->second;
}

std::string libraries() {
  const dnnl_version_t *v = dnnl_version();
  std::string text =
      "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  if (!openBlas())
    return text + ", no OpenBLAS";
  const auto config = reinterpret_cast<char *(*)()>(dlsym(openBlas(), "openblas_get_config"));
  const auto core = reinterpret_cast<char *(*)()>(dlsym(openBlas(), "openblas_get_corename"));
  return text + ", " + (config ? config() : "OpenBLAS") + " as " + (core ? core() : "?");
}

} // namespace tressel::bench
