// Products and convolutions of the device library against plain loops: every tile and form, all types, strides that
// suit vectors and that do not, sizes that leave tails, sizes known only at launch.
#include "codegen/cuda/library/LibraryKernels.h"
#include "test/unit/codegen/CudaProductCases.h"

#include <iostream>
#include <map>

using namespace tressel;
using namespace tressel::codegen;
using namespace tressel::codegen::cuda;
using namespace tressel::codegen::cuda::test;

namespace {

constexpr DType kTypes[] = {f32, f16, bf16};

TEST(CudaProduct, EveryTileAndLayout) {
  const Arch &arch = findArch("sm_90");
  for (DType type : kTypes)
    for (const char *tile : {"32", "64", "128"})
      for (int layout = 0; layout < 4; ++layout) {
        if (type == f16 && layout)
          continue; // as bf16
        Random random(17);
        const int64_t edge = std::stoll(tile);
        const bool left = layout & 1, right = layout & 2;
        checkProduct({1, edge, edge, 64, left, right}, type, tile, arch, random);          // whole tiles, in vectors
        checkProduct({1, edge + 8, edge + 24, 72, left, right}, type, tile, arch, random); // in vectors
        checkProduct({2, edge + 3, edge - 5, 37, left, right, /*rightShared=*/true}, type, tile, arch, random);
        if (layout % 3 == 0)
          checkProduct({1, 5, edge + 1, 20, left, right, false, /*gap=*/3}, type, tile, arch, random);
        checkProduct({1, edge + 9, 12, 33, left, right, false, 0, /*symbolic=*/1 + layout % 2}, type, tile, arch,
                     random);
        if (HasFatalFailure())
          return;
      }
}

/// Blocks of a cluster have parts of the depth, of whole steps and of none but the last one's tail.
TEST(CudaProduct, BlocksShareTheDepth) {
  const Arch &arch = findArch("sm_90");
  for (DType type : kTypes)
    for (const char *tile : {"32", "64", "128"})
      for (int parts : {2, 4, 8}) {
        Random random(19);
        const int64_t edge = std::stoll(tile), step = 64;
        auto check = [&](const ProductCase &c) {
          const std::string text = checkProduct(c, type, tile, arch, random, nullptr, parts);
          ASSERT_NE(text.find(" for sm_90 shared 0 cluster "), std::string::npos) << text;
        };
        check({1, edge, edge + 8, parts * step, parts == 4, parts == 8});
        check({2, edge + 3, edge - 5, parts * step + 37, false, true, /*rightShared=*/true});
        if (parts == 4)
          for (int symbolic : {1, 2})
            check({1, 20, edge + 9, 256 + 33, false, false, false, 0, symbolic});
        if (parts == 8) // known at the launch: too short for so many parts, and long enough
          for (int64_t depth : {9, 520})
            check({1, 20, 12, depth, false, false, false, 0, /*symbolic=*/3});
        if (HasFatalFailure())
          return;
      }
}

/// How many do is decided from the sizes, at the launch where these are not known before.
TEST(CudaProduct, SizesSayHowManyBlocksShareTheDepth) {
  const Size s = dim::symbol("s");
  auto made = [](Size m, Size n, Size k, DType type, const char *arch, const std::vector<Size> &symbols = {}) {
    return *makeProductKernel("k", {1, m, n, k, {0, k, 1}, {0, n, 1}}, type, {0, 1}, plainStore(type, 3), symbols,
                              findArch(arch));
  };
  for (DType type : {f32, bf16}) {
    EXPECT_EQ(made(64, 64, 16384, type, "sm_90").cluster, 8);
    EXPECT_EQ(made(64, 64, 16384, type, "sm_80").cluster, 1) << "it has no clusters";
    EXPECT_EQ(made(4096, 4096, 4096, type, "sm_90").cluster, 1) << "the card is full";
    EXPECT_EQ(made(64, 64, 64, type, "sm_90").cluster, 1) << "too short";
  }
  const Kernel kernel = made(s, 64, s * 64, f32, "sm_90", {s});
  auto at = [&](Size size, int64_t value) {
    dim::Values values;
    values.bind(s, value);
    return dim::evaluate(size, values);
  };
  for (int64_t size : {1, 64, 100, 300, 100000}) {
    const int64_t cluster = at(kernel.cluster, size);
    EXPECT_TRUE(cluster == 1 || cluster == 2 || cluster == 4 || cluster == 8) << size;
    EXPECT_EQ(at(kernel.blocks, size) % cluster, 0) << size;
  }
  EXPECT_EQ(at(kernel.cluster, 64), 8);
  EXPECT_EQ(at(kernel.cluster, 1), 1);
  EXPECT_EQ(at(kernel.cluster, 100000), 1);
  // The others have the whole depth in one block.
  const Kernel &portable = kernel.formFor(findArch("sm_80"));
  EXPECT_EQ(&kernel.formFor(findArch("sm_90")), &kernel);
  EXPECT_EQ(&kernel.formFor(findArch("sm_120")), &kernel);
  EXPECT_NE(&portable, &kernel);
  EXPECT_EQ(portable.cluster, 1);
  EXPECT_NE(launchParams(kernel).find(R"("arch":"sm_90","shared":0,"maps":[],"cluster":")"), std::string::npos)
      << launchParams(kernel);
}

TEST(CudaProduct, FewRows) {
  const Arch &arch = findArch("sm_90");
  std::map<std::string, int> functions;
  Random random(5);
  for (DType type : kTypes)
    for (int64_t thin : {1, 2, 3, 8})
      for (bool swapped : {false, true})
        for (bool transposed : {false, true})
          for (int sizes = 0; sizes < (type == f16 ? 2 : 4); ++sizes) {
            // In vectors, not, known at launch, and so long that a block shares a row.
            const int64_t wide = sizes == 0 ? 96 : sizes == 3 ? 40 : 77, k = sizes == 0 ? 128 : sizes == 3 ? 2064 : 75;
            ProductCase c{sizes == 3 ? 1 : 2, thin, wide, k, false, transposed};
            if (swapped)
              std::swap(c.m, c.n), std::swap(c.leftTransposed, c.rightTransposed),
                  c.leftTransposed = !c.leftTransposed, c.rightTransposed = !c.rightTransposed;
            if (sizes == 2)
              c.symbolic = swapped ? 1 : 2, c.batch = 1;
            const std::string text = checkProduct(c, type, "", arch, random);
            ASSERT_NE(text, "");
            ++functions[functionOf(text)];
            if (HasFatalFailure())
              return;
          }
  for (const char *form : {"thin_rows_", "thin_depth_"})
    for (const char *type : {"f32_", "f16_", "bf16_"})
      for (const char *rows : {"1", "2", "4", "8"})
        EXPECT_GT(functions[std::string(form) + type + rows], 0) << form << type << rows;
}

TEST(CudaProduct, MatrixInstructions) {
  std::string ptx;
  Random random(1);
  for (const Arch &each : architectures()) {
    const Arch &arch = findArch(tressel::test::runnableArch(each.name));
    checkProduct({1, 64, 64, 32}, bf16, "64", arch, random, &ptx);
    EXPECT_NE(ptx.find("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), std::string::npos);
    EXPECT_NE(ptx.find("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), std::string::npos);
    EXPECT_NE(ptx.find("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), std::string::npos);
    EXPECT_NE(ptx.find("ld.global.nc.v4.b32"), std::string::npos) << "loads of 16 bytes";
    EXPECT_EQ(ptx.find("local"), std::string::npos) << "sums live in registers";
    checkProduct({1, 64, 64, 32}, f16, "64", arch, random, &ptx);
    EXPECT_NE(ptx.find("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), std::string::npos);
    checkProduct({1, 64, 64, 32}, f32, "64", arch, random, &ptx);
    EXPECT_EQ(ptx.find("mma.sync"), std::string::npos) << "f32 means f32";
    EXPECT_EQ(ptx.find("local"), std::string::npos) << "sums live in registers";
  }
}

TEST(CudaProduct, ChoosesByCost) {
  const Arch &arch = findArch("sm_90");
  auto chosen = [&](int64_t m, int64_t n, int64_t k, DType type) {
    const MatrixProduct p{1, m, n, k, {0, k, 1}, {0, n, 1}};
    auto kernel = makeProductKernel("k", p, type, {0, 1}, plainStore(type, 3), {}, arch);
    return kernel ? functionOf(kernel->text) : "";
  };
  EXPECT_EQ(chosen(4096, 4096, 4096, bf16), "product_bf16_128");
  EXPECT_EQ(chosen(4096, 4096, 4096, f32), "product_f32_128");
  EXPECT_EQ(chosen(64, 64, 4096, f32), "product_f32_32"); // else most multiprocessors would be idle
  EXPECT_EQ(chosen(1, 4096, 4096, f16), "thin_rows_f16_1");
  EXPECT_EQ(chosen(3, 3, 4, f32), "") << "is no work for a tile";
}

// --- Convolutions
// ------------------------------------------------------------------------------------------------------

struct ConvolutionCase {
  int rank;
  int64_t batch, groups, in, out;
  std::vector<int64_t> size, window, strides, dilations, low, high;
  bool symbolic = false;
};

void checkConvolution(const ConvolutionCase &t, bool last, DType type, std::string_view tile, Random &random) {
  const Arch &arch = findArch("sm_90");
  Convolution c;
  c.batch = t.batch, c.groups = t.groups, c.inChannels = t.in, c.outChannels = t.out, c.channelsLast = last;
  c.in.assign(t.size.begin(), t.size.end());
  c.window = t.window, c.strides = t.strides, c.dilations = t.dilations, c.padLow = t.low, c.padHigh = t.high;
  int64_t image = 1, places = 1, window = 1;
  std::vector<int64_t> out;
  for (size_t d = 0; d < t.size.size(); ++d) {
    out.push_back((t.size[d] + t.low[d] + t.high[d] - (t.window[d] - 1) * t.dilations[d] - 1) / t.strides[d] + 1);
    image *= t.size[d], places *= out[d], window *= t.window[d];
  }
  c.out.assign(out.begin(), out.end());
  std::vector<Size> symbols;
  std::vector<int64_t> scalars;
  if (t.symbolic) {
    const Size n = dim::symbol("n"), s = dim::symbol("s");
    symbols = {n, s}, scalars = {t.batch, t.size[0]};
    c.batch = n, c.in[0] = s;
    c.out[0] = dim::floorDiv(s + t.low[0] + t.high[0] - (t.window[0] - 1) * t.dilations[0] - 1, t.strides[0]) + 1;
  }
  auto kernel = makeConvolutionKernel("k", c, type, {0, 1}, plainStore(type, 3), symbols, arch, tile);
  ASSERT_TRUE(kernel);
  const int64_t in = t.in / t.groups, outs = t.out / t.groups;
  Operand x(type, t.batch * t.in * image, &random), w(type, t.out * in * window, &random),
      y(type, t.batch * t.out * places);
  const GpuKernel gpu(*kernel, arch);
  ASSERT_EQ(gpu.run({x.data(), w.data(), y.data()}, {x.bytes(), w.bytes(), y.bytes()}, scalars), 0);
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t o = 0; o < t.out; ++o)
      for (int64_t p = 0; p < places; ++p) {
        double want = 0;
        for (int64_t i = 0; i < in; ++i)
          for (int64_t q = 0; q < window; ++q) {
            int64_t restP = p, restQ = q, at = 0, step = 1;
            bool inside = true;
            for (size_t d = t.size.size(); d-- > 0;) {
              const int64_t z = restP % out[d] * t.strides[d] - t.low[d] + restQ % t.window[d] * t.dilations[d];
              inside &= z >= 0 && z < t.size[d];
              at += z * step;
              step *= t.size[d], restP /= out[d], restQ /= t.window[d];
            }
            if (!inside)
              continue;
            const int64_t channel = o / outs * in + i;
            want += x[last ? (b * image + at) * t.in + channel : (b * t.in + channel) * image + at] *
                    w[(o * in + i) * window + q];
          }
        expectSum(y[last ? (b * places + p) * t.out + o : (b * t.out + o) * places + p], want, type, in * window,
                   kernel->text + " at " + std::to_string(b) + ", " + std::to_string(o) + ", " + std::to_string(p));
        if (testing::Test::HasFatalFailure())
          return;
      }
}

TEST(CudaConvolution, AgreesWithLoops) {
  const ConvolutionCase cases[] = {
      {1, 2, 1, 6, 9, {17}, {3}, {2}, {1}, {1}, {0}},
      {2, 2, 1, 8, 16, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {2, 3, 2, 16, 24, {7, 10}, {2, 3}, {2, 1}, {1, 2}, {0, 2}, {1, 1}},
      {2, 1, 1, 3, 20, {16, 12}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}},
      {3, 1, 1, 4, 12, {4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1}, {0, 1, 0}},
      {2, 2, 2, 8, 18, {8, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, /*symbolic=*/true},
  };
  Random random(3);
  for (const ConvolutionCase &c : cases)
    for (bool last : {false, true})
      for (DType type : kTypes)
        for (const char *tile : {"32", "64", "128"}) {
          if (type == f16 ? tile[0] != '6' : tile[0] == '1' && c.rank != 2)
            continue; // as bf16
          checkConvolution(c, last, type, tile, random);
          if (HasFatalFailure())
            return;
        }
}

TEST(CudaConvolution, LeavesDepthwiseToLoops) {
  Convolution c;
  c.batch = 1, c.groups = 64, c.inChannels = 64, c.outChannels = 64;
  c.in = c.out = {32, 32}, c.window = {3, 3}, c.strides = c.dilations = {1, 1}, c.padLow = c.padHigh = {1, 1};
  EXPECT_FALSE(makeConvolutionKernel("k", c, f32, {0, 1}, plainStore(f32, 3), {}, findArch("sm_80")));
}

// --- Machine code
// ------------------------------------------------------------------------------------------------------

/// Kernels of each function, for each architecture: nothing spills, and shared memory suffices. Says what the assembler
/// gave.
TEST(CudaDevice, Assembles) {
  if (std::string why; assemblerName(&why).empty())
    GTEST_SKIP() << why;
  const Size s = dim::symbol("s");
  for (const Arch &arch : architectures()) {
    std::vector<Kernel> kernels;
    auto add = [&](std::optional<Kernel> kernel) {
      ASSERT_TRUE(kernel);
      kernels.push_back(std::move(*kernel));
    };
    for (DType type : {f32, bf16})
      for (const char *tile : {"32", "64", "128"}) {
        add(makeProductKernel("k", {1, 1024, 1024, 1024, {0, 1024, 1}, {0, 1024, 1}}, type, {0, 1}, plainStore(type, 3),
                              {}, arch, tile));
        add(makeProductKernel("k", {2, s, 1001, 333, {s * 333, 1, s}, {0, 1, 333}}, type, {0, 1}, plainStore(type, 3),
                              {s}, arch, tile));
        if (arch.clusterBlocks > 1)
          add(makeProductKernel("k", {1, 128, 128, 4096, {0, 4096, 1}, {0, 128, 1}}, type, {0, 1}, plainStore(type, 3),
                                {}, arch, tile, 8));
        for (bool last : {false, true}) {
          if (tile[0] == '3')
            continue; // needs less than the others
          Convolution c;
          c.batch = s, c.inChannels = 64, c.outChannels = 128, c.channelsLast = last;
          c.in = c.out = {56, 56}, c.window = {3, 3}, c.strides = c.dilations = {1, 1}, c.padLow = c.padHigh = {1, 1};
          add(makeConvolutionKernel("k", c, type, {0, 1}, plainStore(type, 3), {s}, arch, tile));
        }
      }
    add(makeProductKernel("k", {1, 1, 4096, 4096, {0, 4096, 1}, {0, 4096, 1}}, f16, {0, 1}, plainStore(f16, 3), {},
                          arch));
    add(makeProductKernel("k", {1, 8, 4096, 4096, {0, 4096, 1}, {0, 1, 4096}}, f16, {0, 1}, plainStore(f16, 3), {},
                          arch));
    for (const Kernel &kernel : kernels) {
      const GpuKernel gpu(kernel, arch, /*emulate=*/false);
      std::cout << arch.name << " " << functionOf(kernel.text) << ": " << gpu.assembleFor(arch) << " registers\n";
    }
  }
}

} // namespace
