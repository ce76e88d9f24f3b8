// Ops registered by a program: eagerly, in traces, in packages.
#include <tressel/autograd.h>
#include <tressel/custom_op.h>
#include <tressel/jit.h>
#include <tressel/machine.h>
#include <tressel/ops.h>
#include <tressel/random.h>
#include <tressel/runtime/CustomKernels.h>
#include <tressel/runtime/Dim.h>
#include <tressel/runtime/Package.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

using namespace tressel;

namespace {

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }

int64_t elements(const tressel_tensor &t) {
  int64_t n = 1;
  for (int i = 0; i < t.rank; ++i)
    n *= t.sizes[i];
  return n;
}

std::atomic<int> cubeCalls{0};
std::atomic<int64_t> cubeUnits{0};
int32_t cubeKernel(const tressel_call *call, int64_t begin, int64_t end) {
  ++cubeCalls, cubeUnits += end - begin;
  const float *x = static_cast<const float *>(call->inputs[0].data);
  float *y = static_cast<float *>(call->outputs[0].data);
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i] * x[i] * x[i];
  return 0;
}

const CustomOp &cube() {
  static const CustomOp &op =
      register_op({.name = "acme.cube",
                   .infer = [](auto in) { return std::vector{in[0]}; },
                   .cpu = cubeKernel,
                   .symbol = "acme_cube",
                   .library = "libacme.so",
                   .range = [](auto in, auto) { return in[0].shape.numElements(); },
                   .grain = 1024,
                   .gradient = [](auto in, auto, auto d) { return std::vector<Tensor>{3.0 * in[0] * in[0] * d[0]}; }});
  return op;
}

/// y = a + factor * b, with the running sum of a as a second result, through scratch memory.
int32_t mixKernel(const tressel_call *call, int64_t, int64_t) {
  if (call->struct_bytes < sizeof(tressel_call) || call->num_attrs != 4)
    return 7;
  const float *a = static_cast<const float *>(call->inputs[0].data),
              *b = static_cast<const float *>(call->inputs[1].data);
  float *y = static_cast<float *>(call->outputs[0].data);
  double *sums = static_cast<double *>(call->outputs[1].data), *scratch = static_cast<double *>(call->scratch);
  const double factor = call->attrs[0].f;
  const int64_t n = elements(call->inputs[0]);
  if (call->scratch_bytes != n * 8 || std::strcmp(call->attrs[1].name, "offset") != 0)
    return 8;
  double sum = static_cast<double>(call->attrs[1].i) + static_cast<double>(std::strlen(call->attrs[2].s));
  for (int64_t i = 0; i < call->attrs[3].num_ints; ++i)
    sum += static_cast<double>(call->attrs[3].ints[i]);
  for (int64_t i = 0; i < n; ++i)
    scratch[i] = a[i];
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>(scratch[i] + factor * b[i]);
    sums[i] = sum += scratch[i];
  }
  return 0;
}

const CustomOp &mix() {
  static const CustomOp &op =
      register_op({.name = "acme.mix",
                   .infer =
                       [](auto in) {
                         if (!(in[0] == in[1]) || in[0].dtype != f32 || in[0].rank() != 1)
                           throw ShapeError("takes two equal f32 vectors");
                         return std::vector{in[0], TensorType{f64, in[0].shape}};
                       },
                   .cpu = mixKernel,
                   .symbol = "acme_mix",
                   .attrs = {{"factor", 2.0}, {"offset", 0}, {"label", ""}, {"more", std::vector<int64_t>{}}},
                   .num_inputs = 2,
                   .num_results = 2,
                   .scratch = [](auto in, auto, const CustomAttrs &) { return in[0].shape.numElements() * 8; }});
  return op;
}

TEST(CustomOp, RunsEagerly) {
  EXPECT_EQ(floats(cube()(tensor({1.0, 2, -3}))), (std::vector<float>{1, 8, -27}));
  EXPECT_EQ(cube()(2.0f).item<float>(), 8); // a number is a tensor of rank 0
  cubeUnits = 0;
  EXPECT_EQ(floats(cube()(zeros({0, 3}))), (std::vector<float>{}));
  EXPECT_EQ(cubeUnits, 0); // else it would read what is not there
}

TEST(CustomOp, HasItsGradientInBodies) { // whose rule is a function on tensors, called while the way back is built
  auto run = [](Tensor x) {
    return value_and_grad(
               [&] {
                 return sum(for_loop(
                     2,
                     [&](Tensor, Tensor h) {
                       return cond(
                           sum(h) > 0, [](Tensor h) { return cube()(h) * 0.5; }, [](Tensor h) { return h; }, h);
                     },
                     x));
               },
               std::vector{x})
        .grads[0];
  };
  const Tensor x = tensor({0.5f, -0.25f, 1.0f});
  const std::vector<float> wanted = floats(run(x)), got = floats(jit(run)(x));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_FLOAT_EQ(got[i], wanted[i]);
  EXPECT_NE(wanted[0], 0);
}

TEST(CustomOp, HasTheGradientThatItWasGiven) {
  auto gradient = [](Tensor x) {
    return value_and_grad([&] { return sum(exp(cube()(x * 2.0))); }, std::vector{x}).grads[0];
  };
  const Tensor x = tensor({0.25, -0.5});
  const std::vector<float> now = floats(gradient(x)), compiled = floats(jit(gradient)(x)), in = floats(x);
  for (size_t i = 0; i < in.size(); ++i) {
    const double cubed = 8.0 * in[i] * in[i] * in[i], wanted = std::exp(cubed) * 24 * in[i] * in[i];
    EXPECT_NEAR(now[i], wanted, 1e-5);
    EXPECT_NEAR(compiled[i], wanted, 1e-5);
  }
}

TEST(CustomOp, RunsInParallelParts) {
  Tensor x = rng::normal({1 << 18}, 1);
  cubeCalls = 0;
  std::vector<float> y = floats(cube()(x)), in = floats(x);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i], in[i] * in[i] * in[i]) << i;
}

TEST(CustomOp, CountsWhenSizesAreKnown) {
  auto f = jit([](Tensor x) { return cube()(x + 1); });
  f.compile({f32, {"n"}});
  auto g = jit([](Tensor a, Tensor b) { return mix().call({a, b}); });
  g.compile({f32, {"n"}}, {f32, {"n"}});
  for (int64_t n : {1, 5, 3000}) {
    Tensor x = rng::normal({n}, 1);
    const std::vector<float> in = floats(x), y = floats(f(x));
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_FLOAT_EQ(y[i], (in[i] + 1) * (in[i] + 1) * (in[i] + 1)) << n << " " << i;
    const std::vector<Tensor> compiled = g(x, ones({n})), eager = mix().call({x, ones({n})});
    EXPECT_EQ(floats(compiled[0]), floats(eager[0]));
    EXPECT_EQ(compiled[1].to_vector<double>(), eager[1].to_vector<double>());
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(CustomOp, StandsInTheGraphByItsName) {
  auto f = jit([](Tensor x) { return exp(cube()(x * 2)) + 1; });
  EXPECT_NE(f.graph(ones({2})).find("tressel.acme.cube"), std::string::npos) << f.graph(ones({2}));
  std::vector<float> y = floats(f(tensor({0, 0.5})));
  EXPECT_NEAR(y[0], 2, 1e-5);
  EXPECT_NEAR(y[1], std::exp(1.0) + 1, 1e-5);
}

TEST(CustomOp, SeveralResultsAttributesScratch) {
  auto fn = [](Tensor a, Tensor b) {
    return mix().call({a, b}, {{"factor", 3}, {"offset", 10}, {"label", "four"}, {"more", std::vector<int64_t>{1, 2}}});
  };
  Tensor a = tensor({1.0, 2}), b = tensor({10.0, 20});
  auto eager = fn(a, b);
  auto compiled = jit(fn)(a, b);
  for (const auto *r : {&eager, &compiled}) {
    ASSERT_EQ(r->size(), 2u);
    EXPECT_EQ(floats((*r)[0]), (std::vector<float>{31, 62}));
    EXPECT_EQ((*r)[1].to_vector<double>(), (std::vector<double>{18, 20}));
    EXPECT_EQ((*r)[1].dtype(), f64);
  }
  // Defaults; one result unused; one operand twice; a constant operand, which kernels elsewhere take in as an
  // immediate.
  EXPECT_EQ(floats(jit([](Tensor x) { return mix().call({x, x})[0]; })(a)), (std::vector<float>{3, 6}));
  EXPECT_EQ(floats(jit([](Tensor x) { return mix().call({ones({2}), x})[0]; })(a)), (std::vector<float>{3, 5}));
  EXPECT_EQ(jit([](Tensor x) {
              return mix().call({x * 1.5, ones({2})})[1];
            })(a)
                .to_vector<double>(),
            (std::vector<double>{1.5, 4.5}));
}

TEST(CustomOp, PureAndUnusedIsRemoved) {
  auto f = jit([](Tensor x) {
    cube()(x);
    return x + 1;
  });
  cubeCalls = 0;
  floats(f(ones({4})));
  EXPECT_EQ(cubeCalls, 0);
}

/// y = -x, whatever it says that costs.
int32_t heavyKernel(const tressel_call *call, int64_t begin, int64_t end) {
  const float *x = static_cast<const float *>(call->inputs[0].data);
  float *y = static_cast<float *>(call->outputs[0].data);
  for (int64_t i = begin; i < end; ++i)
    y[i] = -x[i];
  return 0;
}
const CustomOp &heavy() {
  static const CustomOp &op =
      register_op({.name = "acme.heavy",
                   .infer = [](auto in) { return std::vector{in[0]}; },
                   .cpu = heavyKernel,
                   .attrs = {{"each", 0}},
                   .range = [](auto in, auto) { return in[0].shape.numElements(); },
                   .flops = [](auto in, auto,
                               const CustomAttrs &attrs) { return attrs.as_int("each") * in[0].shape.numElements(); }});
  return op;
}

TEST(CustomOp, RunsOnAcceleratorsAndCostsWhatItSays) {
  struct Cpu {
    ~Cpu() { use_machine("cpu"); }
  } afterwards;
  use_machine("sim:2gpu-pcie3");
  auto stepOf = [](int64_t each, const TensorSpec &type) {
    auto f = jit([each](Tensor x) {
      return with_device(gpu(1), [&] { return heavy()(x * 2.0, {{"each", each}}); }) + 1.0;
    });
    f.compile(type);
    return f.explain().step_seconds;
  };
  // 14 TFLOP/s at the share that kernels reach of it.
  const double light = stepOf(0, {f32, {1000, 1000}}), once = stepOf(1'000'000, {f32, {1000, 1000}}),
               twice = stepOf(2'000'000, {f32, {1000, 1000}});
  EXPECT_GT(once - light, 1e12 / 14e12);
  EXPECT_NEAR((twice - once) / (once - light), 1, 0.01);
  EXPECT_GT(stepOf(1'000'000, {f32, {"n", 1000}}), stepOf(0, {f32, {"n", 1000}}) + 1e-6);
  auto f = jit([](Tensor x) {
    return with_device(gpu(1), [&] { return heavy()(x * 2.0, {{"each", 1000}}); }) + 1.0;
  });
  EXPECT_EQ(floats(f(tensor({1.0, 2, -3}))), (std::vector<float>{-1, -3, 7}));
  // As long as was told.
  const double before = machine_seconds();
  f(tensor({1.0, 2, -3})).wait();
  EXPECT_DOUBLE_EQ(machine_seconds() - before, f.explain().step_seconds);
  EXPECT_THROW(stepOf(-1, {f32, {4}}), Error);
}

std::vector<int64_t> notes;
int32_t noteKernel(const tressel_call *call, int64_t, int64_t) {
  notes.push_back(call->attrs[0].i + static_cast<int64_t>(*static_cast<const float *>(call->inputs[0].data)));
  return 0;
}

TEST(CustomOp, EffectsStayInOrder) {
  static const CustomOp &note = register_op({.name = "acme.note",
                                             .infer = [](auto) { return std::vector<TensorType>{}; },
                                             .cpu = noteKernel,
                                             .symbol = "acme_note",
                                             .attrs = {{"tag", 0}},
                                             .num_results = 0,
                                             .has_effects = true});
  // Later notes are ready earlier, some twice the same, one on a constant.
  auto f = jit([](Tensor x) {
    Tensor y = sum(exp(x) * 0, 0) + 1;
    Tensor z = matmul(reshape(x, {1, 4}), reshape(x, {4, 1}));
    note.call({reshape(z, {})}, {{"tag", 100}});
    note.call({y}, {{"tag", 200}});
    note.call({y}, {{"tag", 200}});
    note.call({x}, {{"tag", 300}});
    note.call({7.0f}, {{"tag", 400}});
    note.call({sqrt(y)}, {{"tag", 500}});
    return y;
  });
  for (int i = 0; i < 2; ++i) {
    notes.clear();
    f(ones({4})).wait();
    EXPECT_EQ(notes, (std::vector<int64_t>{104, 201, 201, 301, 407, 501}));
  }
  // A program of effects alone runs.
  notes.clear();
  auto g = jit([](Tensor x) { note.call({x}, {{"tag", 1}}); });
  g(ones({1}));
  wait_all();
  EXPECT_EQ(notes, (std::vector<int64_t>{2}));
}

int32_t failingKernel(const tressel_call *call, int64_t, int64_t) {
  if (*static_cast<const float *>(call->inputs[0].data) > 1)
    throw std::runtime_error("too large");
  std::snprintf(call->message, static_cast<size_t>(call->message_bytes), "the input is not large enough");
  return 42;
}

TEST(CustomOp, FailuresNameOpLineStatusAndMessage) {
  static const CustomOp &failing = register_op({.name = "acme.failing",
                                                .infer = [](auto in) { return std::vector{in[0]}; },
                                                .cpu = failingKernel,
                                                .symbol = "acme_failing"});
  auto check = [](auto call, uint32_t line, const char *message) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const RuntimeError &e) {
      EXPECT_EQ(e.op(), "acme.failing") << e.what();
      EXPECT_EQ(e.where().line, line) << e.what();
      EXPECT_NE(std::string(e.where().file).find("CustomOpTest.cpp"), std::string::npos);
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  };
  const char *message = "the input is not large enough (status 42 of kernel 'acme_failing')";
  check([] { failing(zeros({2})).wait(); }, __LINE__, message);
  check([] { failing(zeros({2})).wait(); }, __LINE__, message); // the same program, from another line
  check([] { (failing(zeros({2})) + 1).wait(); }, __LINE__, message);
  const uint32_t line = __LINE__ + 1;
  auto f = jit([](Tensor x) { return failing(x * 2) + 1; });
  check([&] { f(zeros({2})).wait(); }, line, message);
  check([&] { f(ones({2})).wait(); }, line, "its kernel 'acme_failing' threw: too large");
}

TEST(CustomOp, WrongOperandsAndAttributes) {
  auto message = [](auto call) -> std::string {
    try {
      call();
      return "nothing was thrown";
    } catch (const Error &e) {
      EXPECT_NE(e.where().line, 0u) << e.what();
      return (e.op().empty() ? "" : e.op() + ": ") + e.message() + (e.hint().empty() ? "" : " (" + e.hint() + ")");
    }
  };
  EXPECT_EQ(message([] {
              mix().call({ones({2}), ones({3})});
            }),
            "acme.mix: takes two equal f32 vectors: f32[2] x f32[3]");
  EXPECT_EQ(message([] { cube()(ones({2}), ones({3})); }), "acme.cube: takes 1 operand, got 2: f32[2] x f32[3]");
  EXPECT_EQ(message([] { mix()(ones({2}), ones({2})); }), "acme.mix: has 2 results (use call())");
  EXPECT_EQ(message([] {
              mix().call({ones({2}), ones({2})}, {{"fctor", 1}});
            }),
            "acme.mix: there is no attribute 'fctor' (it has factor, offset, label, more)");
  EXPECT_EQ(message([] {
              mix().call({ones({2}), ones({2})}, {{"offset", "x"}});
            }),
            "acme.mix: attribute 'offset' is not an integer");
}

TEST(CustomOp, IncompleteRegistrations) {
  auto infer = [](auto in) { return std::vector{in[0]}; };
  EXPECT_THROW(register_op({.name = "cube", .infer = infer, .symbol = "x"}), Error);
  EXPECT_THROW(register_op({.name = "acme.", .infer = infer, .symbol = "x"}), Error);
  EXPECT_THROW(register_op({.name = "acme.none", .symbol = "x"}), Error);
  EXPECT_THROW(register_op({.name = "acme.none", .infer = infer}), Error);
  cube();
  EXPECT_THROW(register_op({.name = "acme.cube", .infer = infer, .symbol = "x"}), Error);
}

TEST(CustomOp, PackagesRecordSymbolAndLibrary) {
  const std::string path = (std::filesystem::temp_directory_path() / "tressel-custom-op.tsl").string();
  auto f = jit([](Tensor x) { return cube()(x + 1) * 2; });
  f.export_package(path, {.inputs = {{f32, {4}}}, .outputs = {"y"}});
  runtime::Package package = runtime::Package::open(path);
  runtime::Context context = package.context();
  const float x[4] = {0, 1, 2, -1};
  float y[4];
  const void *in = x;
  void *out = y;
  context.run({&in, 1}, {&out, 1});
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{2, 16, 54, 0}));

  // A program that lacks the kernel.
  static const CustomOp &lost = register_op({.name = "acme.lost",
                                             .infer = [](auto in) { return std::vector{in[0]}; },
                                             .symbol = "acme_lost",
                                             .library = "liblost.so"});
  auto g = jit([](Tensor t) { return lost(t); });
  g.export_package(path, {.inputs = {{f32, {4}}}});
  try {
    runtime::Package::open(path).context();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InputError &e) {
    EXPECT_NE(std::string(e.what()).find("acme.lost: "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("needs the kernel 'acme_lost' of 'liblost.so', which is not in this program "
                                         "(load the library"),
              std::string::npos)
        << e.what();
  }
  std::filesystem::remove(path);
}

TEST(CustomOp, CallsSurviveTheirDescription) {
  runtime::CustomCall call{.op = "a.b",
                           .symbol = "s\"\n",
                           .library = "",
                           .operands = {{f32, {2, dim::symbol("n", 2, 9) + 1}}, {i64, {}}},
                           .numInputs = 1,
                           .buffers = {1, 0},
                           .attrs = {{"i", int64_t(-5)},
                                     {"f", -std::numeric_limits<double>::infinity()},
                                     {"s", std::string("x\0y", 3)},
                                     {"l", std::vector<int64_t>{1, 2}}},
                           .scratchBytes = 64};
  runtime::CustomCall back = runtime::CustomCall::fromJson(call.toJson());
  EXPECT_EQ(back.toJson(), call.toJson());
  EXPECT_EQ(back.operands, call.operands);
  EXPECT_EQ(std::get<double>(back.attrs[1].value), -std::numeric_limits<double>::infinity());
  for (const char *bad : {"", "{}", "[1]", R"({"op":"a"})"})
    EXPECT_THROW(runtime::CustomCall::fromJson(bad), InputError) << bad;
}

} // namespace
