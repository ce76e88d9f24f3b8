// One compilation for all sizes: against the interpreter at each.
#include "ir/graph/Graph.h"
#include "test/support/SizedRun.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

using namespace tressel;
using op::Ints;
using test::ProgramBuilder;
using test::sizes;

namespace {

const Size n = dim::symbol("n"), m = dim::symbol("m"), z = dim::symbol("z", 0, 300);
constexpr op::interp::Tolerance kNear{2e-5, 2e-6};

class Symbolic : public testing::Test {
protected:
  Symbolic() : context(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
  }
  void check(mlir::OwningOpRef<mlir::ModuleOp> module, std::initializer_list<dim::Values> all,
             const codegen::CompileOptions &options = {}, op::interp::Tolerance tolerance = kNear) {
    test::SizedRun run(*module, options);
    for (const dim::Values &dims : all)
      EXPECT_EQ(run.differsAt(dims, tolerance), "") << "at " << dim::str(dims.all().front().second);
  }
  mlir::MLIRContext context;
};

TensorType floats(Shape shape) { return {f32, shape}; }

TEST_F(Symbolic, Mlp) {
  for (bool library : {false, true}) {
    ProgramBuilder b(context);
    auto x = b.input(floats({n, 100}));
    auto w = b.state(floats({100, 33}), "w"), bias = b.state(floats({33}), "b"), v = b.state(floats({33, 10}), "v");
    auto h = b.op("relu", {b.op("add", {b.op("matmul", {x, w}), bias})});
    auto y = b.op("softmax", {b.op("matmul", {h, v})});
    check(b.finish({y}),
          {sizes({{n, 1}}), sizes({{n, 2}}), sizes({{n, 7}}), sizes({{n, 64}}), sizes({{n, 1000}}), sizes({{n, 7}})},
          {.allowLibrary = library, .verifyEach = !library});
  }
}

/// Attention whose length is dynamic in every place: rows, columns, the reduced dimension.
TEST_F(Symbolic, Attention) {
  ProgramBuilder b(context);
  auto q = b.input(floats({2, n, 16})), k = b.input(floats({2, m, 16})), v = b.input(floats({2, m, 16}));
  auto scores = b.op("matmul", {q, b.op("transpose", {k}, {{"permutation", Ints{0, 2, 1}}})});
  auto y = b.op("matmul", {b.op("softmax", {scores}), v});
  check(b.finish({y, scores}), {sizes({{n, 1}, {m, 1}}), sizes({{n, 5}, {m, 3}}), sizes({{n, 64}, {m, 64}}),
                                sizes({{n, 33}, {m, 130}}), sizes({{n, 1}, {m, 257}})});
}

/// The parameters of bitcode kernels are computed from the sizes, and so is their scratch memory: n has no bound.
TEST_F(Symbolic, BitcodeKernels) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, 5})), t = b.input(floats({2, z}));
  auto sums = b.op("cumsum", {x}, {{"axis", int64_t(0)}});
  auto rows = b.op("sort", {x}, {{"axis", int64_t(0)}});
  auto order = b.op("argsort", {t}, {{"axis", int64_t(1)}, {"descending", true}});
  check(b.finish({sums, rows, order}),
        {sizes({{n, 1}, {z, 0}}), sizes({{n, 3}, {z, 1}}), sizes({{n, 64}, {z, 40}}), sizes({{n, 1000}, {z, 300}})}, {},
        {1e-4, 1e-4}); // a running total of f32
}

/// Nothing is said of how long the lines are that need scratch memory.
TEST_F(Symbolic, ScratchGrowsWithTheSize) {
  ProgramBuilder b(context);
  auto x = b.input(floats({2, n}));
  auto module = b.finish({b.op("sort", {x}), b.op("argsort", {x}, {{"descending", true}})});
  test::SizedRun run(*module);
  for (int64_t size : {1, 3, 5000, 64, 70000})
    EXPECT_EQ(run.differsAt(sizes({{n, size}}), kNear), "") << size;
}

TEST_F(Symbolic, ReductionsOverSymbols) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, 7, m}));
  auto all = b.op("mean", {x}), rows = b.op("sum", {x}, {{"axis", Ints{0, 1}}}),
       columns = b.op("max", {x}, {{"axis", Ints{2}}, {"keepdims", true}}),
       at = b.op("argmax", {x}, {{"axis", int64_t(2)}});
  auto centered = b.op("sub", {x, b.op("mean", {x}, {{"axis", Ints{-1}}, {"keepdims", true}})});
  check(b.finish({all, rows, columns, at, centered}),
        {sizes({{n, 1}, {m, 1}}), sizes({{n, 2}, {m, 7}}), sizes({{n, 7}, {m, 64}}), sizes({{n, 64}, {m, 129}})});
}

/// To one value: in units of work, of which each gives a partial result, then together.
TEST_F(Symbolic, LargeReductions) {
  for (Size rows : {n, Size(1024)}) {
    ProgramBuilder b(context);
    auto x = b.input(floats({rows, 512}));
    auto module = b.finish({b.op("mean", {b.op("abs", {x})}), b.op("max", {x}, {{"keepdims", true}})});
    test::SizedRun run(*module);
    EXPECT_EQ(llvm::count_if(run.schedule().kernels, [](const auto &kernel) { return kernel.range != 1; }), 2);
    for (int64_t size : rows == n ? Ints{1, 3, 1000} : Ints{1024})
      EXPECT_EQ(run.differsAt(sizes({{n, size}}), kNear), "") << size;
  }
}

TEST_F(Symbolic, ElementTypes) {
  for (DType type : {f64, f16, bf16, i8, i64, u8, bool_}) {
    ProgramBuilder b(context);
    auto x = b.input({type, {n, 3}}), y = b.input({type, {n, 3}});
    check(b.finish({b.op("maximum", {x, y}), b.op("cast", {x}, {{"dtype", f32}})}),
          {sizes({{n, 1}}), sizes({{n, 5}}), sizes({{n, 67}})}, {}, op::interp::kExact);
  }
}

TEST_F(Symbolic, Movement) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, m, 4})), y = b.input(floats({n, 6, 4}));
  auto joined = b.op("concat", {x, y, x}, {{"axis", int64_t(1)}});
  auto flipped =
      b.op("slice", {x},
           {{"starts", Ints{0, -1, 3}}, {"limits", Ints{INT64_MAX, INT64_MIN, 0}}, {"strides", Ints{2, -1, -2}}});
  auto flat = b.op("reshape", {joined}, {{"shape", op::Sizes{-1, 8}}});
  auto named = b.op("reshape", {x}, {{"shape", op::Sizes{n * m, 2, 2}}});
  auto padded = b.op("pad", {x}, {{"low", op::Sizes{1, 0, 0}}, {"high", op::Sizes{0, m + 2, 0}}, {"value", 0.5}});
  auto wide = b.op("broadcast_to", {b.input(floats({m, 1}))}, {{"shape", op::Sizes{n, m, 3}}});
  auto head = b.op("slice", {x}, {{"starts", Ints{0, 0, 0}}, {"limits", Ints{3, -1, 4}}});
  auto turned = b.op("transpose", {x}, {{"permutation", Ints{2, 1, 0}}});
  check(b.finish({joined, flipped, flat, named, padded, wide, head, turned}),
        {sizes({{n, 2}, {m, 2}}), sizes({{n, 4}, {m, 3}}), sizes({{n, 8}, {m, 33}}), sizes({{n, 64}, {m, 10}})});
}

TEST_F(Symbolic, Indexing) {
  ProgramBuilder b(context);
  auto table = b.input(floats({m, 6})), ids = b.input({i64, {n, 2}});
  auto x = b.input(floats({n, m}));
  check(b.finish({b.op("take", {table, ids}), b.op("iota", {}, {{"shape", op::Sizes{n, m}}, {"axis", int64_t(1)}}),
                  b.op("one_hot", {ids}, {{"depth", m}}),
                  b.op("add", {x, b.op("full", {}, {{"shape", op::Sizes{n, 1}}, {"value", 2.0}})})}),
        {sizes({{n, 1}, {m, 2}}), sizes({{n, 7}, {m, 3}}), sizes({{n, 40}, {m, 64}})});
}

/// A kernel takes eight rows at a time: where there are fewer, what chooses them is not read beyond its end.
TEST_F(Symbolic, BlocksOfRowsThatAreChosen) {
  ProgramBuilder b(context);
  const Shape cube{n, n, 2};
  auto x = b.input({u8, cube}), high = b.input({u8, cube}), low = b.input({i16, {n, 1}});
  auto rolled = b.op("roll", {x}, {{"shift", Ints{7}}, {"axis", Ints{0}}});
  check(b.finish({b.op("argmin", {b.op("clip", {rolled, low, high})}, {{"axis", int64_t(1)}})}),
        {sizes({{n, 3}}), sizes({{n, 5}}), sizes({{n, 8}}), sizes({{n, 13}}), sizes({{n, 29}})});
}

TEST_F(Symbolic, Images) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, 3, m, m * 2})), w = b.state(floats({8, 3, 3, 3}), "w");
  auto y = b.op("relu",
                {b.op("conv", {x, w}, {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}, {"strides", Ints{2, 1}}})});
  auto pooled = b.op("max_pool", {y}, {{"window", Ints{2, 2}}});
  auto mean = b.op("mean", {pooled}, {{"axis", Ints{2, 3}}});
  check(b.finish({y, pooled, mean}),
        {sizes({{n, 1}, {m, 4}}), sizes({{n, 2}, {m, 7}}), sizes({{n, 3}, {m, 16}}), sizes({{n, 1}, {m, 33}})});
}

/// The same with channels last, and a border between the layouts.
TEST_F(Symbolic, ImagesWithChannelsLast) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, m, m * 2, 16})), w = b.state(floats({32, 16, 3, 3}), "w"),
       v = b.state(floats({24, 32, 1, 1}), "v"), u = b.state(floats({24, 1, 3, 3}), "u");
  auto conv = [&](auto image, auto weights, int64_t pad, int64_t groups) {
    return b.op("conv", {image, weights}, {{"pad_low", Ints{pad, pad}}, {"pad_high", Ints{pad, pad}}, {"groups", groups},
                                           {"channels_last", true}});
  };
  auto y = b.op("relu", {conv(x, w, 1, 1)});
  auto z = conv(conv(y, v, 0, 1), u, 1, 24);
  auto pooled = b.op("max_pool", {z}, {{"window", Ints{2, 2}}, {"channels_last", true}});
  auto turned = b.op("transpose", {pooled}, {{"permutation", Ints{0, 3, 1, 2}}});
  check(b.finish({z, b.op("mean", {pooled}, {{"axis", Ints{1, 2}}}), turned}),
        {sizes({{n, 1}, {m, 4}}), sizes({{n, 2}, {m, 7}}), sizes({{n, 3}, {m, 16}}), sizes({{n, 1}, {m, 33}})}, {},
        {1e-4, 1e-3});
}

/// The library runs what it runs for the sizes that are taken as typical, and generated code follows it in its units.
TEST_F(Symbolic, LibraryKernels) {
  auto providers = [](const test::SizedRun &run) {
    std::vector<std::string> names;
    for (const runtime::KernelDesc &kernel : run.schedule().kernels)
      names.push_back(kernel.provider + (kernel.epilogue.empty() ? "" : " with epilogue"));
    return names;
  };
  auto both = [&](const char *library, auto build, std::initializer_list<dim::Values> all) {
    ProgramBuilder typical(context), b(context);
    codegen::CompileOptions options;
    options.prefer = library;
    test::SizedRun fixed(*build(typical, 64, 64), options), run(*build(b, n, m), options);
    EXPECT_EQ(providers(run), providers(fixed));
    EXPECT_TRUE(llvm::is_contained(providers(run), library + std::string(" with epilogue")));
    for (const dim::Values &dims : all)
      EXPECT_EQ(run.differsAt(dims, {1e-4, 1e-4}), "") << "at " << dim::str(dims.all().front().second);
  };
  // Weights of a megabyte: beyond two, few rows are cut by columns where their number is known, and rows otherwise.
  both(
      "builtin",
      [](ProgramBuilder &b, Size rows, Size) {
        auto x = b.input(floats({rows, 1024})), w = b.state(floats({1024, 256}), "w"),
             bias = b.state(floats({256}), "b");
        return b.finish({b.op("relu", {b.op("add", {b.op("matmul", {x, w}), bias})})});
      },
      {sizes({{n, 1}}), sizes({{n, 31}}), sizes({{n, 64}}), sizes({{n, 133}}), sizes({{n, 1}})});
  both( // images of any number and height
      "builtin",
      [](ProgramBuilder &b, Size images, Size height) {
        auto x = b.input(floats({images, 16, height, 24})), w = b.state(floats({32, 16, 3, 3}), "w");
        return b.finish({b.op("relu", {b.op("conv", {x, w}, {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}})})});
      },
      {sizes({{n, 1}, {m, 1}}), sizes({{n, 3}, {m, 20}}), sizes({{n, 2}, {m, 64}}), sizes({{n, 3}, {m, 20}})});
  // Two results, the first of which does not need the product that may lie in its place.
  both(
      "builtin",
      [](ProgramBuilder &b, Size rows, Size) {
        auto x = b.input(floats({rows, 1024})), y = b.input(floats({rows, 256})), w = b.state(floats({1024, 256}), "w");
        auto other = b.op("square", {y});
        return b.finish({other, b.op("add", {b.op("matmul", {x, w}), other})});
      },
      {sizes({{n, 1}}), sizes({{n, 70}})});
  // A scale that depends on a size the product does not know.
  ProgramBuilder b(context);
  auto x = b.input(floats({n, 1024})), w = b.state(floats({1024, 512}), "w"), y = b.input(floats({m}));
  auto scaled = b.op("mul", {b.op("matmul", {x, w}), b.op("dim_size", {}, {{"size", m}, {"dtype", f32}})});
  check(b.finish({scaled, y}), {sizes({{n, 3}, {m, 2}}), sizes({{n, 70}, {m, 9}})}, {}, {1e-4, 1e-3});
}

/// Whether it fits the caches or not: the difference to the mean, which two ops read, is stored nowhere.
TEST_F(Symbolic, ALayerNormIsOneKernel) {
  for (int64_t rows : {4, 64, 256, 1024, 4096}) {
    ProgramBuilder b(context);
    auto x = b.input(floats({rows, 768})), scale = b.state(floats({768}), "scale"), bias = b.state(floats({768}), "bias");
    EXPECT_EQ(test::SizedRun(*b.finish({b.op("layer_norm", {x, scale, bias})})).schedule().kernels.size(), 1u) << rows;
  }
}

/// What is left after a cut at either end is equally much, whatever there was.
TEST_F(Symbolic, Neighbours) {
  ProgramBuilder b(context);
  auto x = b.input(floats({3, z})), y = b.input(floats({3, n}));
  check(b.finish({b.op("diff", {x}), b.op("diff", {x}, {{"n", int64_t(3)}}), b.op("diff", {y}, {{"n", int64_t(2)}}),
                  b.op("trapezoid", {y})}),
        {sizes({{z, 0}, {n, 1}}), sizes({{z, 1}, {n, 2}}), sizes({{z, 2}, {n, 3}}), sizes({{z, 64}, {n, 65}})});
}

TEST_F(Symbolic, NothingAtAll) {
  ProgramBuilder b(context);
  auto x = b.input(floats({z, 5})), y = b.input(floats({7, z}));
  auto product = b.op("matmul", {y, x}); // sums of nothing
  auto joined = b.op("concat", {x, b.input(floats({2, 5}))});
  check(b.finish({product, joined, b.op("exp", {x}), b.op("sum", {y}, {{"axis", Ints{1}}}),
                  b.op("sum", {x}, {{"axis", Ints{1}}})}),
        {sizes({{z, 0}}), sizes({{z, 1}}), sizes({{z, 300}}), sizes({{z, 0}})});
}

/// A kernel none of whose tensors is of symbolic size depends on the call's sizes all the same.
TEST_F(Symbolic, SizesInAttributesAlone) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, 3})), w = b.state(floats({3}), "w");
  auto share = b.op("div", {w, b.op("dim_size", {}, {{"size", n}, {"dtype", f32}})});
  check(b.finish({b.op("mul", {b.op("sum", {x}, {{"axis", Ints{0}}}), share}), share}),
        {sizes({{n, 1}}), sizes({{n, 7}}), sizes({{n, 64}}), sizes({{n, 7}})});
}

/// Tiles of full size, and what is left of them on either side, with strides that are known by the call alone.
TEST_F(Symbolic, Transposes) {
  for (int64_t batch : {1, 3}) {
    ProgramBuilder b(context);
    auto x = b.input(floats({batch, n, m})), y = b.input(floats({batch, m, n})), w = b.input(floats({batch, n, 48}));
    auto swap = [&](mlir::Value v) { return b.op("transpose", {v}, {{"permutation", Ints{0, 2, 1}}}); };
    auto results = swap(b.op("add", {b.op("add", {x, x}), b.op("exp", {x})}));
    auto module = b.finish({swap(x), b.op("add", {b.op("relu", {swap(x)}), y}), swap(w), results});
    check(std::move(module), {sizes({{n, 1}, {m, 1}}), sizes({{n, 16}, {m, 64}}), sizes({{n, 15}, {m, 33}}),
                              sizes({{n, 33}, {m, 16}}), sizes({{n, 130}, {m, 17}}), sizes({{n, 70}, {m, 257}})});
  }
}

/// Places and weights that static sizes have tables for; the interpreter knows the sizes, so it uses those.
TEST_F(Symbolic, Resizing) {
  for (const char *mode : {"nearest", "linear", "cubic"})
    for (const char *coordinates :
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
      ProgramBuilder b(context);
      auto x = b.input(floats({2, n, m})), fixed = b.input(floats({n, 5}));
      const std::string how = mode, where = coordinates;
      auto doubled = b.op("resize", {x}, {{"sizes", op::Sizes{2, n * 2, m}}, {"mode", how}, {"coordinates", where}});
      auto shrunk = b.op("resize", {x},
                         {{"sizes", op::Sizes{2, n, dim::ceilDiv(m, 3)}},
                          {"mode", how},
                          {"coordinates", where},
                          {"antialias", how != "nearest"}});
      auto same =
          b.op("resize", {fixed},
               {{"sizes", op::Sizes{7, 3}}, {"mode", how}, {"coordinates", where}, {"nearest", std::string("floor")}});
      SCOPED_TRACE(how + " " + where);
      check(b.finish({doubled, shrunk, same}),
            {sizes({{n, 1}, {m, 1}}), sizes({{n, 2}, {m, 5}}), sizes({{n, 9}, {m, 32}}), sizes({{n, 33}, {m, 7}})}, {},
            {1e-4, 1e-5});
    }
}

TEST_F(Symbolic, WindowsBeyondTheEdge) {
  for (bool counts : {false, true})
    for (int64_t pad : {0, 1}) {
      ProgramBuilder b(context);
      auto x = b.input(floats({2, 3, n, m}));
      auto pool = [&](const char *op, Ints strides, Ints dilations, std::optional<bool> padCounts) {
        const op::OpInfo &info = *op::findOp(op);
        op::Attrs attrs(info.attrs.size());
        auto set = [&](const char *name, op::Attr value) {
          attrs[static_cast<size_t>(info.attrIndex(name))] = std::move(value);
        };
        set("window", Ints{3, 2}), set("strides", std::move(strides)), set("dilations", std::move(dilations));
        set("pad_low", Ints{pad, pad}), set("pad_high", Ints{0, pad}), set("ceil_mode", true);
        if (padCounts)
          set("count_include_pad", *padCounts);
        EXPECT_EQ(op::completeAttrs(info, attrs), "");
        return b.call(info, {x}, attrs).front();
      };
      check(b.finish({pool("max_pool", {2, 2}, {1, 1}, {}), pool("avg_pool", {2, 3}, {1, 2}, counts),
                      pool("avg_pool", {3, 2}, {2, 1}, counts),
                      b.op("adaptive_avg_pool", {x}, {{"sizes", op::Sizes{4, 3}}}),
                      b.op("adaptive_max_pool", {x}, {{"sizes", op::Sizes{2, 5}}})}),
            {sizes({{n, 5}, {m, 3}}), sizes({{n, 6}, {m, 4}}), sizes({{n, 7}, {m, 5}}), sizes({{n, 8}, {m, 33}}),
             sizes({{n, 64}, {m, 10}})});
    }
}

TEST_F(Symbolic, PlacesThatDependOnTheSize) {
  for (const char *mode : {"edge", "reflect", "symmetric", "wrap"}) {
    ProgramBuilder b(context);
    auto x = b.input(floats({n, m}));
    auto padded = b.op("pad", {x}, {{"low", op::Sizes{3, 0}}, {"high", op::Sizes{1, 5}}, {"mode", std::string(mode)}});
    auto rolled = b.op("roll", {x}, {{"shift", Ints{-7, 2}}, {"axis", Ints{0, 1}}});
    std::vector<mlir::Value> results{padded, rolled};
    for (int64_t offset : {0, 2, -3})
      results.push_back(b.op("diagonal", {x}, {{"offset", offset}}));
    results.push_back(b.op("trace", {x}, {{"axis1", int64_t(1)}, {"axis2", int64_t(0)}}));
    SCOPED_TRACE(mode);
    check(b.finish(results),
          {sizes({{n, 1}, {m, 1}}), sizes({{n, 2}, {m, 7}}), sizes({{n, 9}, {m, 4}}), sizes({{n, 33}, {m, 65}})});
  }
}

/// States are packed and folded once; what depends on a call's sizes is not.
TEST_F(Symbolic, PreparedWork) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, 8})), w = b.state(floats({4, 8}), "w");
  auto once = b.op("transpose", {b.op("exp", {w})});
  auto each = b.op("broadcast_to", {b.op("sum", {w}, {{"axis", Ints{0}}})}, {{"shape", op::Sizes{n, 8}}});
  auto module = b.finish({b.op("matmul", {x, once}), b.op("mul", {x, each})});
  test::SizedRun run(*module);
  EXPECT_EQ(run.schedule().dims, std::vector<Size>{n});
  for (int64_t size : {1, 9, 100})
    EXPECT_EQ(run.differsAt(sizes({{n, size}}), kNear), "");
}

TEST_F(Symbolic, MemoryGrowsAndIsBounded) {
  ProgramBuilder b(context);
  auto x = b.input(floats({z, 64})), w = b.state(floats({64, 64}), "w");
  auto module = b.finish({b.op("matmul", {b.op("softmax", {b.op("matmul", {x, w})}), w})});
  test::SizedRun run(*module, {.allowLibrary = false});
  EXPECT_EQ(run.differsAt(sizes({{z, 10}}), kNear), "");
  const int64_t small = run.context().arenaBytes();
  EXPECT_EQ(run.differsAt(sizes({{z, 300}}), kNear), "");
  const int64_t large = run.context().arenaBytes();
  EXPECT_LT(small, large);
  for (int64_t size = 1; size <= 300; size += 13) // more sizes than are remembered
    EXPECT_EQ(run.differsAt(sizes({{z, size}}), kNear), "");
  EXPECT_EQ(run.context().arenaBytes(), large);
  try {
    run.context().run({}, {}, sizes({{z, 301}}));
    FAIL() << "accepted";
  } catch (const ShapeError &error) {
    EXPECT_EQ(error.message(), "dimension 'z' of 'main' is 301, but lies between 0 and 300");
  }

  runtime::Context bounded(run.context().executable().shared_from_this(), {.max_dims = {{"z", 100}}});
  EXPECT_GT(bounded.arenaBytes(), small);
  EXPECT_LT(bounded.arenaBytes(), large);
  EXPECT_THROW(runtime::Context(run.context().executable().shared_from_this(), {.max_dims = {{"q", 1}}}), Error);
  EXPECT_THROW(runtime::Context(run.context().executable().shared_from_this(), {.max_dims = {{"z", 301}}}), Error);
}

TEST_F(Symbolic, ErrorsNameTheDimensions) {
  ProgramBuilder b(context);
  auto x = b.input(floats({n, 3})), y = b.input(floats({m, 3}));
  auto error = [&](auto make) -> std::string {
    try {
      make();
    } catch (const ShapeError &e) {
      return e.message();
    }
    return "no error";
  };
  EXPECT_EQ(error([&] { b.op("add", {x, y}); }), "add: (C1) shapes do not broadcast: f32[n, 3] x f32[m, 3]");
  EXPECT_NE(error([&] { b.op("add", {x, b.input(floats({5, 3}))}); }).find("f32[n, 3] x f32[5, 3]"), std::string::npos);
  EXPECT_NE(error([&] { b.op("reshape", {x}, {{"shape", op::Sizes{-1, 2}}}); }).find("f32[n, 3]"), std::string::npos);
  EXPECT_EQ(error([&] { b.op("add", {x, b.input(floats({1, 3}))}); }), "no error");
}

TEST_F(Symbolic, SizesMustComeFromInputs) {
  auto message = [&](mlir::OwningOpRef<mlir::ModuleOp> module) -> std::string {
    try {
      codegen::compile(*module);
    } catch (const Error &e) {
      return e.message();
    }
    return "no error";
  };
  {
    ProgramBuilder b(context);
    auto x = b.input(floats({n * 2}));
    EXPECT_NE(message(b.finish({b.op("exp", {x})})).find("no input has a dimension of that size alone"),
              std::string::npos);
  }
  {
    ProgramBuilder b(context);
    auto x = b.input(floats({n})), s = b.state(floats({n}), "s");
    EXPECT_NE(message(b.finish({b.op("add", {x, s})})).find("states have fixed sizes"), std::string::npos);
  }
  {
    ProgramBuilder b(context);
    auto x = b.input(floats({n})), y = b.input(floats({dim::symbol("n", 1, 5)}));
    EXPECT_NE(message(b.finish({b.op("exp", {x}), b.op("exp", {y})})).find("different bounds: n and n[1..5]"),
              std::string::npos);
  }
}

} // namespace
