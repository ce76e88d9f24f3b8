// What runs beside the threads that issued it: mbarriers, copies of tensors, products of warpgroups. PTX ISA,
// "mbarrier", "cp.async.bulk.tensor" and "Asynchronous Warpgroup Level Matrix Instructions".
#include "PtxHarness.h"
#include "test/standin/ptx/TensorMap.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tressel::standin::ptx::test {
namespace {

const char *const kHead90a = ".version 8.0\n.target sm_90a\n.address_size 64\n";

/// Waits for the phase of parity `parity` of the mbarrier "bar".
std::string waitFor(const std::string &parity, const std::string &label, const std::string &barrier = "bar") {
  return "$" + label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p9, [" + barrier + "], " + parity +
         ";\n@!%p9 bra $" + label + ";\n";
}
const std::string kFirst = "setp.eq.u32 %p0, %r0, 0;\n";
/// The first thread initializes "bar" for so many arrivals, and all see it.
std::string initialized(int arrivals) {
  return kFirst + "@%p0 mbarrier.init.shared::cta.b64 [bar], " + std::to_string(arrivals) +
         ";\n@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}
const std::string kBarrier = ".shared .align 8 .b64 bar;\n";

std::string faultOf(const std::string &body, Shape shape = {}, const std::string &declarations = kBarrier) {
  Card card;
  return messageOf(runText(kernelText(body, 0, declarations), card, {}, shape));
}

// ---- mbarrier

TEST(PtxBarrier, AThreadWaitsUntilAllHaveArrived) {
  for (const uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    // Warp 1 writes and arrives, warp 0 waits and reads, twice over.
    const auto got = perThread<uint32_t>(
        ".shared .align 4 .b32 values[32];\n" + initialized(32) +
            "and.b32 %r1, %r0, 31; shl.b32 %r2, %r1, 2; mov.u32 %r3, values; add.u32 %r2, %r2, %r3;\n"
            "mov.u32 %r4, 0; setp.lt.u32 %p1, %r0, 32; @!%p1 bra $writes;\n" +
            waitFor("0", "wait") +
            "ld.shared.b32 %r4, [%r2]; bra $done;\n$writes:\nadd.u32 %r5, %r1, 100; st.shared.b32 [%r2], %r5;\n"
            "mbarrier.arrive.shared::cta.b64 %rd30, [bar];\n$done:\ncvt.u64.u32 %rd21, %r4; st.global.b64 [%rd20], "
            "%rd21;",
        {.threads = 64, .seed = seed}, kBarrier);
    for (unsigned i = 0; i < 32; ++i)
      ASSERT_EQ(got[i], 100 + i) << "seed " << seed;
  }
}

TEST(PtxBarrier, AFreshOneHasEndedThePhaseBefore) {
  const auto got =
      perThread<uint32_t>(initialized(1) + "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1; "
                                           "mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;\n"
                                           "selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; add.u32 %r1, %r1, %r2; "
                                           "cvt.u64.u32 %rd21, %r1; st.global.b64 [%rd20], %rd21;",
                          {}, kBarrier);
  EXPECT_EQ(got[0], 1u);
}

TEST(PtxBarrier, AStateIsOfThePhaseThatItWasGivenIn) {
  const auto got = perThread<uint32_t>(
      initialized(2) +
          "@!%p0 bra $end;\n"
          "mbarrier.arrive.shared::cta.b64 %rd30, [bar]; mbarrier.test_wait.shared::cta.b64 %p1, [bar], %rd30;\n"
          "mbarrier.arrive.shared::cta.b64 _, [bar]; mbarrier.test_wait.shared::cta.b64 %p2, [bar], %rd30;\n"
          "selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; add.u32 %r1, %r1, %r2; cvt.u64.u32 %rd21, %r1; "
          "st.global.b64 [%rd20], %rd21;\n$end:",
      {}, kBarrier);
  EXPECT_EQ(got[0], 2u);
}

TEST(PtxBarrier, BytesThatAreExpectedHoldAPhase) {
  // Bytes that nothing brings.
  EXPECT_NE(
      faultOf(initialized(1) + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n" + waitFor("0", "wait"))
          .find("waits in"),
      std::string::npos);
}

TEST(PtxBarrier, MistakesAreFaults) {
  EXPECT_NE(faultOf(initialized(2) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bar];\n" + waitFor("0", "wait"))
                .find("not all that it names arrive"),
            std::string::npos);
  EXPECT_NE(faultOf("mbarrier.arrive.shared::cta.b64 _, [bar];").find("no mbarrier object"), std::string::npos);
  EXPECT_NE(faultOf(initialized(1) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bar], 2;").find("more arrivals"),
            std::string::npos);
  EXPECT_NE(faultOf(initialized(1) + "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;").find("not invalidated"),
            std::string::npos);
  EXPECT_EQ(faultOf(initialized(1) +
                    "@%p0 mbarrier.inval.shared::cta.b64 [bar]; @%p0 mbarrier.init.shared::cta.b64 [bar], 1;"),
            "");
  EXPECT_NE(faultOf(initialized(1) +
                    "mov.u64 %rd1, 7; @%p0 st.shared.b64 [bar], %rd1; @%p0 mbarrier.arrive.shared::cta.b64 _, [bar];")
                .find("wrote over"),
            std::string::npos);
  EXPECT_NE(faultOf("@%p0 mbarrier.init.shared::cta.b64 [bar], 0;\nmbarrier.init.shared::cta.b64 [bar], 0;")
                .find("0 arrivals"),
            std::string::npos);
  EXPECT_NE(faultOf("mov.u32 %r1, bar; mbarrier.init.shared::cta.b64 [%r1+4], 1;").find("multiple"), std::string::npos);
}

// ---- Copies of tensors

/// A kernel with a tensor map as its first parameter, then pointers: "k".
std::string tensorKernel(const std::string &body, unsigned pointers, const std::string &declarations = "") {
  std::string text = std::string(kHead90a) + declarations +
                     ".visible .entry k(.param .align 64 .b8 map0[128], .param .align 64 .b8 map1[128]";
  for (unsigned i = 0; i < pointers; ++i)
    text += ", .param .u64 p" + std::to_string(i);
  text += ") {\n.reg .pred %p<20>; .reg .b32 %r<60>; .reg .f32 %f<300>; .reg .b64 %rd<40>;\nmov.u32 %r0, %tid.x;\n"
          "mov.b64 %rd30, map0; cvta.param.u64 %rd10, %rd30; mov.b64 %rd31, map1; cvta.param.u64 %rd11, %rd31;\n";
  for (unsigned i = 0; i < pointers; ++i)
    text += "ld.param.u64 %rd" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
  return text + body + "\nret;\n}\n";
}

struct Tensors {
  TensorMap maps[2];
  std::vector<uint64_t> pointers;
};
std::optional<Fault> runTensors(const std::string &text, Card &card, const Tensors &tensors, Shape shape = {}) {
  const auto module = Module::parse(text);
  Launch launch;
  launch.block[0] = shape.threads, launch.grid[0] = shape.blocks;
  launch.dynamicSharedBytes = shape.dynamicShared, launch.seed = shape.seed;
  std::vector<std::byte> params(256 + tensors.pointers.size() * 8);
  for (int i = 0; i < 2; ++i)
    std::memcpy(params.data() + 128 * i, &tensors.maps[i], sizeof(TensorMap));
  std::memcpy(params.data() + 256, tensors.pointers.data(), tensors.pointers.size() * 8);
  launch.params = params;
  return module->find("k")->run(launch, card);
}

TensorMap mapOf(uint64_t address, std::vector<uint64_t> sizes, std::vector<uint64_t> strides, std::vector<uint16_t> box,
                TensorMap::Swizzle swizzle = TensorMap::Swizzle::None) {
  TensorMap map;
  map.address = address;
  map.rank = static_cast<uint8_t>(sizes.size());
  map.elementBytes = 2;
  map.swizzle = swizzle;
  std::ranges::copy(sizes, map.sizes);
  std::ranges::copy(strides, map.strides);
  std::ranges::copy(box, map.box);
  std::ranges::fill(map.steps, uint8_t(1));
  return map;
}

const std::string kTile = kBarrier + ".shared .align 1024 .b8 tile[8192];\n";
std::string copied(const std::string &coordinates, int rank, int bytes) {
  return initialized(1) + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " + std::to_string(bytes) +
         ";\n@%p0 cp.async.bulk.tensor." + std::to_string(rank) +
         "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd10, {" + coordinates + "}], [bar];\n";
}
/// Stores the first `words` of "tile", one after the other.
std::string storedWords(int words) {
  return "mov.u32 %r1, %r0;\n$more:\nsetp.ge.u32 %p1, %r1, " + std::to_string(words) +
         "; @%p1 bra $stored;\nmul.wide.u32 %rd20, %r1, 4; add.u64 %rd20, %rd20, %rd0; shl.b32 %r2, %r1, 2; mov.u32 "
         "%r3, tile; add.u32 %r2, %r2, %r3;\n"
         "ld.shared.b32 %r4, [%r2]; st.global.b32 [%rd20], %r4; add.u32 %r1, %r1, 32; bra $more;\n$stored:";
}

std::vector<uint16_t> numbered(size_t count) {
  std::vector<uint16_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<uint16_t>(i + 1);
  return values;
}

TEST(PtxTensorCopy, ABoxArrivesWithZerosOutsideOfTheTensor) {
  for (const uint64_t seed : {0, 3}) {
    Card card;
    // 3 matrices of 5 rows of 10 elements, rows 32 bytes apart.
    const auto values = numbered(3 * 6 * 16);
    const Tensors tensors{{mapOf(card.add(values), {10, 5, 3}, {32, 192}, {8, 4, 2})},
                          {card.add(std::vector<uint16_t>(64))}};
    const auto fault =
        runTensors(tensorKernel(copied("4, -1, 2", 3, 128) + waitFor("0", "wait") + storedWords(32), 1, kTile), card,
                   tensors, {.seed = seed});
    ASSERT_FALSE(fault) << messageOf(fault);
    const auto got = card.get<uint16_t>(tensors.pointers[0]);
    for (int z = 0; z < 2; ++z)
      for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 8; ++x) {
          const int c = 4 + x, r = -1 + y, b = 2 + z;
          const bool isInside = c < 10 && r >= 0 && r < 5 && b < 3;
          ASSERT_EQ(got[static_cast<size_t>((z * 4 + y) * 8 + x)],
                    isInside ? values[static_cast<size_t>(b * 96 + r * 16 + c)] : 0)
              << x << " " << y << " " << z;
        }
    // What lies outside was not read.
    EXPECT_EQ(Card::marked(card.span(tensors.maps[0].address).reads, 3 * 6 * 32).size(), 3u * 6 * 2);
  }
}

TEST(PtxTensorCopy, ASwizzleMovesChunksOf16Bytes) {
  for (const auto swizzle : {TensorMap::Swizzle::Span32, TensorMap::Swizzle::Span64, TensorMap::Swizzle::Span128}) {
    const uint16_t inner = static_cast<uint16_t>(8u << static_cast<unsigned>(swizzle)); // elements
    Card card;
    const auto values = numbered(size_t(inner) * 32);
    const Tensors tensors{{mapOf(card.add(values), {inner, 32}, {inner * 2u}, {inner, 32}, swizzle)},
                          {card.add(std::vector<uint16_t>(size_t(inner) * 32))}};
    const auto fault = runTensors(
        tensorKernel(copied("0, 0", 2, inner * 64) + waitFor("0", "wait") + storedWords(inner * 16), 1, kTile), card,
        tensors);
    ASSERT_FALSE(fault) << messageOf(fault);
    const auto got = card.get<uint16_t>(tensors.pointers[0]);
    const unsigned chunksPerRow = inner / 8;
    for (unsigned row = 0; row < 32; ++row)
      for (unsigned chunk = 0; chunk < chunksPerRow; ++chunk) {
        const unsigned line = (row * chunksPerRow + chunk) / 8; // of 128 bytes
        const unsigned to = chunk ^ (line & (chunksPerRow - 1));
        ASSERT_EQ(got[(row * chunksPerRow + to) * 8 + 3], values[(row * chunksPerRow + chunk) * 8 + 3])
            << row << " " << chunk;
      }
  }
}

TEST(PtxTensorCopy, NothingIsThereBeforeItIsWaitedFor) {
  Card card;
  const Tensors tensors{{mapOf(card.add(numbered(64)), {8, 8}, {16}, {8, 8})}, {card.add(std::vector<uint16_t>(64))}};
  const auto fault = runTensors(tensorKernel(copied("0, 0", 2, 128) + storedWords(32) + waitFor("0", "wait"), 1, kTile),
                                card, tensors);
  ASSERT_FALSE(fault) << messageOf(fault);
  for (const uint16_t word : card.get<uint16_t>(tensors.pointers[0]))
    ASSERT_EQ(word, 0xffff);
}

TEST(PtxTensorCopy, MistakesAreFaults) {
  auto message = [](const std::string &body, std::function<void(TensorMap &)> change = {}) {
    Card card;
    Tensors tensors{{mapOf(card.add(numbered(64)), {8, 8}, {16}, {8, 8})}, {card.add(std::vector<uint16_t>(64))}};
    if (change)
      change(tensors.maps[0]);
    return messageOf(runTensors(tensorKernel(body, 1, kTile), card, tensors));
  };
  const std::string all = copied("0, 0", 2, 128);
  EXPECT_EQ(message(all + waitFor("0", "wait")), "");
  EXPECT_NE(message(all).find("before its copy of a tensor had arrived"), std::string::npos);
  EXPECT_NE(message(copied("0, 0", 2, 112) + waitFor("0", "wait")).find("waits in"), std::string::npos)
      << "more bytes than were expected never end a phase";
  EXPECT_NE(message(copied("0, 0, 0", 3, 128) + waitFor("0", "wait")).find("2 dimensions"), std::string::npos);
  std::string text = all + waitFor("0", "wait");
  text.replace(text.find("[tile]"), 6, "[tile+16]");
  EXPECT_NE(message(text).find("128 bytes"), std::string::npos);
  text = all + waitFor("0", "wait");
  text.replace(text.find("@%p0 fence.mbarrier_init.release.cluster;"), 41, "");
  EXPECT_NE(message(text).find("fence"), std::string::npos);
  EXPECT_NE(message(all + waitFor("0", "wait"), [](TensorMap &map) { map.magic = 0; }).find("no tensor map"),
            std::string::npos);
  EXPECT_NE(message(all + waitFor("0", "wait"), [](TensorMap &map) { map.strides[0] = 32; }).find("where nothing is"),
            std::string::npos);
}

// ---- wgmma

uint64_t descriptorOf(unsigned start, unsigned leading, unsigned stride, unsigned mode) {
  return (start >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | uint64_t(mode) << 62;
}

/// A matrix of `rows` x 16 in shared memory, as "Canonical Layouts" draws them, for each major and swizzle: where
/// element (row, depth) is, counted in bytes.
struct Layout {
  bool isTransposed;
  unsigned mode; ///< of the descriptor
  unsigned leading, stride;
  unsigned span() const { return mode == 0 ? 16 : 256u >> mode; }
  unsigned place(unsigned row, unsigned depth) const {
    unsigned at = 0;
    if (!isTransposed)
      at = mode == 0 ? row / 8 * stride + depth / 8 * leading + row % 8 * 16 + depth % 8 * 2
                     : row / 8 * stride + row % 8 * span() + depth * 2;
    else if (mode == 0)
      at = row / 8 * stride + row % 8 * 2 + depth % 8 * 16 + depth / 8 * leading;
    else
      at = row / (span() / 2) * leading + row % (span() / 2) * 2 + depth % 8 * span() + depth / 8 * stride;
    const unsigned chunks = mode == 0 ? 0 : span() / 16 - 1;
    return at ^ ((at >> 7 & chunks) << 4);
  }
};
Layout layoutOf(bool isTransposed, unsigned mode, unsigned rows) {
  Layout layout{isTransposed, mode, 0, 0};
  const unsigned span = layout.span();
  if (!isTransposed && mode == 0)
    layout.leading = rows * 16, layout.stride = 128;
  else if (!isTransposed)
    layout.stride = 8 * span;
  else if (mode == 0)
    layout.stride = 256, layout.leading = 128;
  else
    layout.stride = 8 * span, layout.leading = 16 * span;
  return layout;
}

struct ProductText {
  unsigned n = 16;
  std::string type = "f16";
  bool leftTransposed = false, rightTransposed = false;
  std::string fence = "wgmma.fence.sync.aligned;\n", wait = "wgmma.wait_group.sync.aligned 0;\n", between, behind,
              adds = "%p2", signs = "1, 1";
  int count = 1;
};
constexpr unsigned kRight = 8192; ///< where the right matrix is in shared memory

/// p0, p1: the bytes of the two matrices, 8 KiB each, p2: a word for each sum and thread, p3: the descriptors.
std::string productText(const ProductText &t) {
  std::string sums;
  for (unsigned i = 0; i < t.n / 2; ++i)
    sums += (i ? ", %f" : "%f") + std::to_string(i);
  std::string body =
      "mov.u32 %r1, %r0;\n$fill:\nsetp.ge.u32 %p1, %r1, 2048; @%p1 bra $filled;\nmul.wide.u32 %rd20, %r1, 4; add.u64 "
      "%rd21, %rd20, %rd0; add.u64 %rd22, %rd20, %rd1;\n"
      "shl.b32 %r2, %r1, 2; mov.u32 %r3, tiles; add.u32 %r2, %r2, %r3; ld.global.b32 %r4, [%rd21]; st.shared.b32 "
      "[%r2], %r4; ld.global.b32 %r4, [%rd22];\n"
      "st.shared.b32 [%r2+8192], %r4; add.u32 %r1, %r1, 128; bra $fill;\n$filled:\nfence.proxy.async; bar.sync 0;\n"
      "ld.global.b64 %rd12, [%rd3]; ld.global.b64 %rd13, [%rd3+8]; setp.eq.u32 %p2, 0, 0; setp.eq.u32 %p3, 0, 1;\n";
  for (unsigned i = 0; i < t.n / 2; ++i)
    body += "mov.f32 %f" + std::to_string(i) + ", 0f40000000;\n"; // 2
  body += t.fence;
  for (int i = 0; i < t.count; ++i)
    body += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(t.n) + "k16.f32." + t.type + "." + t.type + " {" +
            sums + "}, %rd12, %rd13, " + t.adds + ", " + t.signs + ", " + (t.leftTransposed ? "1" : "0") + ", " +
            (t.rightTransposed ? "1" : "0") + ";\n" + (i + 1 < t.count ? t.between : "");
  body += "wgmma.commit_group.sync.aligned;\n" + t.wait;
  body += "mul.wide.u32 %rd20, %r0, " + std::to_string(t.n * 2) + "; add.u64 %rd20, %rd20, %rd2;\n";
  for (unsigned i = 0; i < t.n / 2; ++i)
    body += "st.global.f32 [%rd20+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
  return tensorKernel(body + t.behind, 4, ".shared .align 1024 .b8 tiles[16384];\n");
}

struct ProductRun {
  std::string message;
  std::vector<float> sums; ///< 64 x n
};
ProductRun runProduct(const ProductText &t, const std::vector<uint16_t> &left, const std::vector<uint16_t> &right,
                      uint64_t a, uint64_t b, uint64_t seed = 0) {
  Card card;
  Tensors tensors;
  tensors.pointers = {card.add(left), card.add(right), card.add(std::vector<float>(64 * t.n)),
                      card.add(std::vector<uint64_t>{a, b})};
  ProductRun run;
  run.message = messageOf(runTensors(productText(t), card, tensors, {.threads = 128, .seed = seed}));
  const auto words = card.get<float>(tensors.pointers[2]);
  run.sums.resize(64 * t.n);
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned i = 0; i < t.n / 2; ++i)
      run.sums[(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * t.n + i / 4 * 8 + thread % 4 * 2 + i % 2] =
          words[thread * (t.n / 2) + i];
  return run;
}

uint16_t smallNumber(int x, bool isBfloat) { // of -8 to 8
  if (!x)
    return 0;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<uint16_t>(
      isBfloat ? bits >> 16 : (bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}
int leftAt(unsigned m, unsigned k) { return static_cast<int>((m * 7 + k * 3) % 17) - 8; }
int rightAt(unsigned n, unsigned k) { return static_cast<int>((n * 5 + k * 11) % 13) - 6; }
double wantedAt(unsigned m, unsigned n) {
  double sum = 0;
  for (unsigned k = 0; k < 16; ++k)
    sum += leftAt(m, k) * rightAt(n, k);
  return sum;
}
std::vector<uint16_t> laidOut(const Layout &layout, unsigned rows, bool isBfloat, int (*at)(unsigned, unsigned)) {
  std::vector<uint16_t> bytes(4096, 0x7fff);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < 16; ++k)
      bytes[layout.place(row, k) / 2] = smallNumber(at(row, k), isBfloat);
  return bytes;
}

TEST(PtxWarpgroup, EveryLayoutAndSwizzle) {
  for (const bool isBfloat : {false, true})
    for (unsigned mode = 0; mode < 4; ++mode)
      for (unsigned transposed = 0; transposed < 4; ++transposed)
        for (const unsigned n : {8u, 64u, 136u, 256u}) {
          ProductText t{.n = n,
                        .type = isBfloat ? "bf16" : "f16",
                        .leftTransposed = (transposed & 1) != 0,
                        .rightTransposed = (transposed & 2) != 0};
          // Rows of 128 bytes hold 64 of the depth, of which one product reads 16: only so many columns fit here.
          if (!t.rightTransposed && n * (mode == 0 ? 32u : 256u >> mode) > 8192)
            continue;
          const Layout a = layoutOf(t.leftTransposed, mode, 64), b = layoutOf(t.rightTransposed, mode, n);
          const auto run = runProduct(t, laidOut(a, 64, isBfloat, leftAt), laidOut(b, n, isBfloat, rightAt),
                                      descriptorOf(0, a.leading, a.stride, mode),
                                      descriptorOf(kRight, b.leading, b.stride, mode), transposed);
          ASSERT_EQ(run.message, "");
          for (unsigned m = 0; m < 64; ++m)
            for (unsigned c = 0; c < n; ++c)
              ASSERT_EQ(static_cast<double>(run.sums[m * n + c]), 2 + wantedAt(m, c))
                  << "mode " << mode << ", transposed " << transposed << ", n " << n << " at " << m << ", " << c;
        }
}

struct Usual {
  Layout a = layoutOf(false, 1, 64), b = layoutOf(false, 1, 16);
  std::vector<uint16_t> left = laidOut(a, 64, false, leftAt), right = laidOut(b, 16, false, rightAt);
  uint64_t first = descriptorOf(0, 0, 1024, 1), second = descriptorOf(kRight, 0, 1024, 1);
  ProductRun run(const ProductText &t) const { return runProduct(t, left, right, first, second); }
};

TEST(PtxWarpgroup, SumsGoOnInTheirRegisters) {
  const Usual usual;
  const auto three = usual.run({.count = 3});
  ASSERT_EQ(three.message, "");
  EXPECT_EQ(static_cast<double>(three.sums[5 * 16 + 3]), 2 + 3 * wantedAt(5, 3));
  const auto fresh = usual.run({.adds = "%p3"});
  EXPECT_EQ(static_cast<double>(fresh.sums[5 * 16 + 3]), wantedAt(5, 3));
  const auto negated = usual.run({.signs = "-1, 1"});
  EXPECT_EQ(static_cast<double>(negated.sums[5 * 16 + 3]), 2 - wantedAt(5, 3));
}

TEST(PtxWarpgroup, AWrongDescriptorGivesWrongNumbers) {
  Usual usual;
  const auto right = usual.run({});
  for (const uint64_t wrong : {descriptorOf(kRight, 0, 512, 1), descriptorOf(kRight, 0, 1024, 0),
                               descriptorOf(kRight, 0, 1024, 2), descriptorOf(kRight + 32, 0, 1024, 1)}) {
    usual.second = wrong;
    const auto run = usual.run({});
    EXPECT_EQ(run.message, "");
    EXPECT_NE(run.sums, right.sums);
  }
}

TEST(PtxWarpgroup, MistakesAreFaults) {
  const Usual usual;
  // The sums are read before they are waited for: no numbers.
  const auto early = usual.run({.wait = "", .behind = "wgmma.wait_group.sync.aligned 0;\n"});
  ASSERT_EQ(early.message, "");
  EXPECT_TRUE(std::ranges::all_of(early.sums, [](float x) { return std::isnan(x); }));
  EXPECT_TRUE(std::isnan(
      usual.run({.wait = "wgmma.wait_group.sync.aligned 1;\n", .behind = "wgmma.wait_group.sync.aligned 0;\n"})
          .sums[0]));
  EXPECT_NE(usual.run({.wait = ""}).message.find("in flight"), std::string::npos);
  EXPECT_NE(usual.run({.fence = ""}).message.find("wgmma.fence"), std::string::npos);
  const std::string overwrites =
      "mov.b32 %r1, 7; mov.u32 %r3, tiles; st.shared.b32 [%r3+8192], %r1;\n"; // of the right matrix, which all warps
                                                                              // read
  const std::string changed = usual.run({.wait = overwrites + "wgmma.wait_group.sync.aligned 0;\n"}).message;
  EXPECT_NE(changed.find("changed while the product was in flight"), std::string::npos) << changed;
  EXPECT_NE(
      usual.run({.fence = "wgmma.fence.sync.aligned;\nsetp.lt.u32 %p4, %r0, 32; selp.b64 %rd13, %rd12, %rd13, %p4;\n"})
          .message.find("same wgmma instructions"),
      std::string::npos);
  EXPECT_NE(runProduct({}, usual.left, usual.right, usual.first | uint64_t(1) << 49, usual.second)
                .message.find("base offset"),
            std::string::npos);
  EXPECT_NE(runProduct({}, usual.left, usual.right, usual.first, descriptorOf(16384, 0, 1024, 1))
                .message.find("a descriptor leads to"),
            std::string::npos);
}

// ---- Tensor memory

/// A product of 128 rows by tcgen05, of 128 threads: p0, p1 the bytes of the matrices, 16 KiB each, p2 a word for each
/// sum, p3 the descriptors and the form.
struct TensorText {
  unsigned n = 16;
  std::string allocate = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], "
                         "32;\ntcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n";
  std::string adds = "%p3", commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n",
              wait = waitFor("0", "ended");
  std::string fence = "tcgen05.fence::after_thread_sync;\n", waitLoad = "tcgen05.wait::ld.sync.aligned;\n",
              release = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n";
  std::string before, lane = "%r11";
  int count = 1;
};
constexpr unsigned kTensorRight = 16384;

std::string tensorText(const TensorText &t) {
  std::string body =
      "mov.u32 %r1, %r0;\n$fill:\nsetp.ge.u32 %p1, %r1, 4096; @%p1 bra $filled;\nmul.wide.u32 %rd20, %r1, 4; add.u64 "
      "%rd21, %rd20, %rd0; add.u64 %rd22, %rd20, %rd1;\n"
      "shl.b32 %r2, %r1, 2; mov.u32 %r3, tiles; add.u32 %r2, %r2, %r3; ld.global.b32 %r4, [%rd21]; st.shared.b32 "
      "[%r2], %r4; ld.global.b32 %r4, [%rd22];\n"
      "st.shared.b32 [%r2+16384], %r4; add.u32 %r1, %r1, 128; bra $fill;\n$filled:\nfence.proxy.async;\n" +
      initialized(1) + "setp.lt.u32 %p4, %r0, 32; @!%p4 bra $allocated;\n" + t.allocate +
      "$allocated:\ntcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ld.shared.b32 "
      "%r10, [place];\n"
      "ld.global.b64 %rd12, [%rd3]; ld.global.b64 %rd13, [%rd3+8]; ld.global.b32 %r12, [%rd3+16]; setp.eq.u32 %p2, 0, "
      "0; setp.eq.u32 %p3, 0, 1;\n"
      "@!%p0 bra $issued;\n";
  for (int i = 0; i < t.count; ++i)
    body += "tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd12, %rd13, %r12, " + (i ? "%p2" : t.adds) + ";\n";
  body += t.before + t.commit + "$issued:\n" + t.wait + t.fence +
          "and.b32 %r11, %r0, 96; shl.b32 %r11, %r11, 16; add.u32 %r11, %r11, %r10;\ntcgen05.ld.sync.aligned.32x32b.x" +
          std::to_string(t.n) + ".b32 {";
  for (unsigned i = 0; i < t.n; ++i)
    body += (i ? ", %f" : "%f") + std::to_string(i);
  body += "}, [" + t.lane + "];\n" + t.waitLoad + "mul.wide.u32 %rd20, %r0, " + std::to_string(t.n * 4) +
          "; add.u64 %rd20, %rd20, %rd2;\n";
  for (unsigned i = 0; i < t.n; ++i)
    body += "st.global.f32 [%rd20+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
  return tensorKernel(body + "bar.sync 0; @!%p4 bra $released;\n" + t.release + "$released:", 4,
                      kBarrier + ".shared .align 1024 .b8 tiles[32768]; .shared .b32 place;\n");
}

uint64_t tensorDescriptor(unsigned start, const Layout &layout) {
  constexpr uint64_t kModes[] = {0, 2, 4, 6}; // of the modes of wgmma
  return (start >> 4) | uint64_t(layout.leading >> 4) << 16 | uint64_t(layout.stride >> 4) << 32 | uint64_t(1) << 46 |
         kModes[layout.mode] << 61;
}

struct TensorRun {
  Layout a = layoutOf(false, 1, 128), b = layoutOf(false, 1, 16);
  bool isBfloat = false;
  uint64_t left = 0, right = 0; ///< instead of the right descriptors
  uint32_t form = 0;
  ProductRun run(const TensorText &t, uint64_t seed = 0) const {
    auto bytes = [&](const Layout &layout, unsigned rows, int (*at)(unsigned, unsigned)) {
      std::vector<uint16_t> all(8192, 0x7fff);
      for (unsigned row = 0; row < rows; ++row)
        for (unsigned k = 0; k < 16; ++k)
          all[layout.place(row, k) / 2] = smallNumber(at(row, k), isBfloat);
      return all;
    };
    const uint32_t usual = 1u << 4 | isBfloat << 7 | isBfloat << 10 | a.isTransposed << 15 | b.isTransposed << 16 |
                           (t.n / 8) << 17 | 8u << 24;
    Card card;
    Tensors tensors;
    tensors.pointers = {
        card.add(bytes(a, 128, leftAt)), card.add(bytes(b, t.n, rightAt)), card.add(std::vector<float>(128 * t.n)),
        card.add(std::vector<uint64_t>{left ? left : tensorDescriptor(0, a),
                                       right ? right : tensorDescriptor(kTensorRight, b), form ? form : usual})};
    ProductRun result;
    result.message = messageOf(runTensors(tensorText(t), card, tensors, {.threads = 128, .seed = seed}));
    result.sums = card.get<float>(tensors.pointers[2]);
    return result;
  }
};

TEST(PtxTensorMemory, EveryLayoutAndSwizzle) {
  for (const bool isBfloat : {false, true})
    for (unsigned mode = 0; mode < 4; ++mode)
      for (unsigned transposed = 0; transposed < 4; ++transposed) {
        const TensorRun one{
            .a = layoutOf(transposed & 1, mode, 128), .b = layoutOf(transposed & 2, mode, 16), .isBfloat = isBfloat};
        const auto got = one.run({.count = 2}, transposed);
        ASSERT_EQ(got.message, "");
        for (unsigned m = 0; m < 128; ++m)
          for (unsigned n = 0; n < 16; ++n)
            ASSERT_EQ(static_cast<double>(got.sums[m * 16 + n]), 2 * wantedAt(m, n))
                << "mode " << mode << ", transposed " << transposed << " at " << m << ", " << n;
      }
}

TEST(PtxTensorMemory, MistakesAreFaults) {
  const TensorRun usual;
  auto message = [&](const TensorText &t) { return usual.run(t).message; };
  EXPECT_EQ(message({}), "");
  EXPECT_TRUE(std::isnan(usual.run({.adds = "%p2"}).sums[0])) << "what was there before is no number";
  EXPECT_TRUE(std::isnan(usual.run({.waitLoad = ""}).sums[0])) << "a load that is not waited for";
  EXPECT_NE(message({.wait = ""}).find("those of a product in flight"), std::string::npos);
  EXPECT_NE(message({.fence = ""}).find("fence::after_thread_sync"), std::string::npos);
  EXPECT_NE(message({.commit = ""}).find("waits in"), std::string::npos);
  EXPECT_NE(message({.release = ""}).find("did not give its tensor memory back"), std::string::npos);
  EXPECT_NE(message({.allocate = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 48;\n"})
                .find("power of two"),
            std::string::npos);
  EXPECT_NE(message({.lane = "%r10"}).find("lane 0"), std::string::npos) << "other lanes than the warp's";
  EXPECT_NE(message({.before = "mov.b32 %r20, 7; mov.u32 %r21, tiles; st.shared.b32 [%r21], %r20;\n"})
                .find("changed while the product was in flight"),
            std::string::npos);
  TensorRun wrong;
  wrong.right = tensorDescriptor(kTensorRight, wrong.b) & ~(uint64_t(1) << 46);
  EXPECT_NE(wrong.run({}).message.find("not of tcgen05"), std::string::npos);
  wrong.right = tensorDescriptor(kTensorRight + 32, wrong.b);
  EXPECT_NE(wrong.run({}).sums, usual.run({}).sums);
  wrong.form = 1u << 4 | 2u << 17 | 4u << 24;
  EXPECT_NE(wrong.run({}).message.find("instruction descriptor"), std::string::npos);
}

} // namespace
} // namespace tressel::standin::ptx::test
