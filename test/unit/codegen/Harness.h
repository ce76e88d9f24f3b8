// Kernels described by hand, compiled, linked, mapped and run, for comparison with plain loops in the tests.
#pragma once

#include "codegen/Link.h"
#include "codegen/cpu/CompileKernels.h"
#include "tressel/runtime/Image.h"
#include "tressel/runtime/Kernel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace tressel::codegen::test {

using op::Combine;
using op::IndexExpr;
using op::LoopForm;
using op::OperandMap;
using op::ScalarNode;
using op::ScalarOp;
using op::ScalarProgram;

/// Writes scalar bodies as expressions over node numbers.
class Body {
public:
  int operand(int k, DType type) { return add({ScalarOp::Operand, type, {-1, -1, -1}, 0, k}); }
  int index(int dim) { return add({ScalarOp::Index, DType::i64, {-1, -1, -1}, 0, dim}); }
  int number(double f, DType type = f32) {
    return add({ScalarOp::Const, type, {-1, -1, -1}, f, static_cast<int64_t>(f)});
  }
  int op(ScalarOp o, DType type, int a, int b = -1, int c = -1) { return add({o, type, {a, b, c}}); }
  ScalarProgram result(int node) {
    program_.result = node;
    return program_;
  }

private:
  int add(ScalarNode n) {
    program_.nodes.push_back(n);
    return static_cast<int>(program_.nodes.size()) - 1;
  }
  ScalarProgram program_;
};

inline IndexExpr dim(int d, Size coef = 1, Size offset = 0) { return {{{d, coef}}, offset, -1}; }
inline IndexExpr at(Size offset) { return {{}, offset, -1}; }

/// A kernel graph under construction.
class Graph : public KernelGraph {
public:
  int input(const TensorType &type) {
    const int v = addValue(type);
    inputs.push_back(v);
    return v;
  }
  int splat(DType type, double value) {
    const int v = addValue({type, {}});
    splats.push_back({v, value, static_cast<int64_t>(value)});
    return v;
  }
  int op(LoopForm form, std::vector<int32_t> operands, const TensorType &type) {
    const int v = addValue(type);
    ops.push_back({std::move(form), std::move(operands), v});
    return v;
  }
  /// Broadcasts as NumPy does.
  OperandMap broadcast(int value, const Shape &to) const {
    const Shape &s = types[static_cast<size_t>(value)].shape;
    OperandMap map;
    for (int d = 0; d < s.rank(); ++d)
      map.dims.push_back(s[d] == 1 ? at(0) : dim(to.rank() - s.rank() + d));
    return map;
  }
  int elementwise(ScalarProgram body, std::vector<int32_t> operands, const TensorType &type) {
    LoopForm form;
    form.domain.assign(type.shape.begin(), type.shape.end());
    form.numParallel = type.rank();
    for (int32_t v : operands)
      form.operands.push_back(broadcast(v, type.shape));
    form.body = std::move(body);
    return op(std::move(form), std::move(operands), type);
  }
  int unary(ScalarOp o, int a) {
    const TensorType type = types[static_cast<size_t>(a)];
    Body b;
    return elementwise(b.result(b.op(o, type.dtype, b.operand(0, type.dtype))), {a}, type);
  }
  int binary(ScalarOp o, int a, int b, const Shape &shape) {
    const DType t = types[static_cast<size_t>(a)].dtype;
    const DType r = o >= ScalarOp::Eq && o <= ScalarOp::Ge ? DType::boolean : t;
    Body body;
    const int x = body.operand(0, t), y = body.operand(1, t);
    return elementwise(body.result(body.op(o, r, x, y)), {a, b}, {r, shape});
  }
  /// Reduces `axes`, keeping them as dims of size 1.
  int reduce(Combine combine, int a, std::vector<int> axes, DType result, double scale = 1) {
    const TensorType type = types[static_cast<size_t>(a)];
    LoopForm form;
    TensorType out{result, type.shape};
    OperandMap map;
    for (int d = 0; d < type.rank(); ++d) {
      const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
      if (reduced)
        out.shape[d] = 1;
      map.dims.push_back(dim(d));
    }
    form.domain.assign(out.shape.begin(), out.shape.end());
    form.numParallel = type.rank();
    for (int axis : axes) {
      map.dims[static_cast<size_t>(axis)] = dim(static_cast<int>(form.domain.size()));
      form.domain.push_back(type.shape[axis]);
    }
    Body b;
    const DType bodyType = type.dtype == DType::f16 || type.dtype == DType::bf16 ? f32 : type.dtype;
    form.body = b.result(b.operand(0, bodyType));
    form.operands = {map};
    form.combine = combine;
    form.scale = scale;
    return op(std::move(form), {a}, out);
  }
  int matmul(int a, int b, int64_t m, int64_t n, int64_t k, bool transposeB = false) {
    LoopForm form;
    form.domain = {m, n, k};
    form.numParallel = 2;
    form.operands = {{{dim(0), dim(2)}}, {transposeB ? std::vector{dim(1), dim(2)} : std::vector{dim(2), dim(1)}}};
    Body body;
    const int x = body.operand(0, f32), y = body.operand(1, f32);
    form.body = body.result(body.op(ScalarOp::Mul, f32, x, y));
    form.combine = Combine::Sum;
    return op(std::move(form), {a, b}, {f32, {m, n}});
  }
};

/// Bytes of a tensor.
struct Data {
  TensorType type;
  std::vector<std::byte> bytes;
  explicit Data(const TensorType &t) : type(t), bytes(static_cast<size_t>(t.bytes()) + 64) {}
  template <typename T> T *as() { return reinterpret_cast<T *>(bytes.data()); }
  int64_t size() const { return type.shape.numElements(); }
};

inline Data randomFloats(const Shape &shape, uint32_t seed, float low = -2, float high = 2) {
  Data d({f32, shape});
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> u(low, high);
  for (int64_t i = 0; i < d.size(); ++i)
    d.as<float>()[i] = u(rng);
  return d;
}

class Compiled {
public:
  Compiled() = default;
  explicit Compiled(const Graph &graph, const std::string &cpu = "native") {
    std::string why;
    auto built = buildLoopPlan(graph, &why);
    if (!built) {
      ADD_FAILURE() << why;
      return;
    }
    plan = *built;
    Target target(cpu);
    schedule = scheduleLoops(plan, target.features());
    load({plan, schedule, {"k", {}, {}}}, target);
    for (int32_t r : graph.results)
      resultTypes.push_back(graph.types[static_cast<size_t>(r)]);
  }
  void load(const KernelSource &source, const Target &target) {
    image = runtime::Image::load(linkImage(compileKernels({source}, target)));
    fn = reinterpret_cast<runtime::KernelFn>(image->find("k"));
    ASSERT_NE(fn, nullptr);
  }
  int32_t call(std::vector<void *> buffers, int64_t begin, int64_t end) const {
    runtime::KernelArgs args = {};
    args.buffers = buffers.data();
    return fn(&args, begin, end);
  }
  /// Runs the whole range, cut into pieces of `chunk` units.
  std::vector<Data> run(std::vector<Data *> inputs, int64_t chunk = 1 << 30, int32_t expected = 0) const {
    std::vector<Data> results(resultTypes.begin(), resultTypes.end());
    std::vector<void *> buffers;
    for (Data *d : inputs)
      buffers.push_back(d->bytes.data());
    for (Data &d : results) {
      std::memset(d.bytes.data(), 0xa5, d.bytes.size());
      buffers.push_back(d.bytes.data());
    }
    int32_t status = 0;
    if (fn)
      for (int64_t u = 0, end = schedule.range.number(); u < end; u += chunk)
        status = std::max(status, call(buffers, u, std::min(end, u + chunk)));
    EXPECT_EQ(status, expected);
    for (Data &d : results) // nothing is written beyond the end
      for (size_t i = static_cast<size_t>(d.type.bytes()); i < d.bytes.size(); ++i)
        EXPECT_EQ(d.bytes[i], std::byte(0xa5)) << "byte " << i << " behind the result";
    return results;
  }

  LoopPlan plan;
  LoopSchedule schedule;
  std::shared_ptr<const runtime::Image> image;
  runtime::KernelFn fn = nullptr;
  std::vector<TensorType> resultTypes;
};

inline void expectNear(Data &got, const std::vector<double> &want, double rtol, double atol) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(want.size()));
  for (int64_t i = 0; i < got.size(); ++i) {
    const double g = got.as<float>()[i], w = want[static_cast<size_t>(i)];
    ASSERT_LE(std::abs(g - w), atol + rtol * std::abs(w)) << "element " << i << ": " << g << " instead of " << w;
  }
}

/// The levels this machine can run.
inline std::vector<std::string> levels() {
  std::vector<std::string> all{"baseline"};
  if (runtime::hostCpuLevel() >= runtime::CpuLevel::V3)
    all.push_back("v3");
  if (runtime::hostCpuLevel() >= runtime::CpuLevel::V4)
    all.push_back("v4");
  return all;
}

} // namespace tressel::codegen::test
