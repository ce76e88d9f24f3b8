// The interpreter of PTX: text, control, memory, and what threads do together. Arithmetic is in PtxArithmeticTest.cpp.
#include "PtxHarness.h"

#include <algorithm>
#include <numeric>

namespace tressel::standin::ptx::test {
namespace {

std::string parseError(const std::string &text) {
  try {
    Module::parse(text);
  } catch (const ParseError &error) {
    return error.what();
  }
  return "";
}

// ---- Text

TEST(PtxText, KernelsAndTheirParameters) {
  const auto module = Module::parse(std::string(kHead) + R"(
.visible .entry first(.param .u32 n, .param .u64 .ptr .global .align 64 p, .param .align 8 .b8 block[12])
.maxntid 128 { .shared .align 16 .b8 a[100]; .shared .b64 b; ret; }
.entry second() .reqntid 32, 2, 1 { ret; }
)");
  EXPECT_EQ(module->version, 80);
  EXPECT_EQ(module->target, 90);
  EXPECT_FALSE(module->isArchitectureSpecific);
  ASSERT_EQ(module->kernels().size(), 2u);
  const Kernel *first = module->find("first");
  ASSERT_EQ(first->params.size(), 3u);
  EXPECT_EQ(first->params[1].offset, 8u);
  EXPECT_EQ(first->params[2].offset, 16u);
  EXPECT_EQ(first->paramBytes, 28u);
  EXPECT_EQ(first->maxThreads, 128u);
  EXPECT_EQ(first->staticSharedBytes, 112u);
  EXPECT_EQ(module->find("second")->requiredThreads[1], 2u);
  EXPECT_EQ(module->find("third"), nullptr);
  EXPECT_TRUE(Module::parse(".version 8.6\n.target sm_90a\n.address_size 64")->isArchitectureSpecific);
}

TEST(PtxText, WhatIsNotInterpretedIsNamedWithItsLine) {
  EXPECT_EQ(parseError(kernelText("tcgen05.wait::st.sync.aligned;", 0)),
            "line 7: 'tcgen05.wait::st.sync.aligned' is not interpreted");
  EXPECT_NE(parseError(kernelText("add.s32.magic %r1, %r2, %r3;", 0)).find("'add.s32.magic' is not interpreted"),
            std::string::npos);
  EXPECT_NE(parseError(kernelText("bra $nowhere;", 0)), "");
  EXPECT_NE(parseError(kernelText("add.s32 %r1, %r99, 1;", 0)), "");
  EXPECT_NE(parseError(kernelText("add.s32 %r1, %rd1;", 0)), "");
  EXPECT_NE(parseError(kernelText("add.s64 %rd1, %r1, 1;", 0)), "");
  EXPECT_NE(parseError("nonsense"), "");
  EXPECT_NE(parseError(""), "");
}

std::string sampleText() {
  return R"(.version 8.0
.target sm_90
.address_size 64
/* a comment */ .const .align 4 .b8 table[4] = {1, 2, 3, 4};
.visible .entry k(
	.param .u64 .ptr .global .align 64 k_param_0,
	.param .u64 k_param_1
)
.maxntid 256
.minnctapersm 4
{
	.local .align 8 .b8 	__local_depot0[56];
	.reg .pred 	%p<8>;
	.reg .b32 	%r<15>;
	.reg .b64 	%rd<18>;
	// demoted variable
	.shared .align 16 .b8 pool[128];
	ld.param.b64 	%rd5, [k_param_0];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd6, %r1, 4;
	setp.gt.s64 	%p1, %rd6, 63;
	@%p1 bra 	$L__BB0_2;
	ld.shared.v4.b32 	{%r4, %r5, %r6, %r7}, [pool+16];
	.pragma "nounroll";
$L__BB0_2:
	selp.f32 	%r8, 0f3F800000, 0f00000000, %p1;
	mov.b64 	{%r9, _}, %rd6;
	shfl.sync.bfly.b32 	%r2|%p2, %r1, 16, 31, -1;
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r4, %r5, %r6, %r7}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r4, %r5, %r6, %r7};
	bar.sync 	0;
	st.global.b32 	[%rd5+-4], %r8;
	ret;
}
)";
}

TEST(PtxText, NoTruncationCrashes) {
  const std::string text = sampleText();
  EXPECT_EQ(parseError(text), "");
  for (size_t length = 0; length < text.size(); ++length) {
    parseError(text.substr(0, length)); // an error or none
    if (length % 7 == 0) {              // a character that is another
      std::string other = text;
      other[length] = static_cast<char>("{}[];,.%@$09ax"[length / 7 % 14]);
      parseError(other);
    }
  }
}

TEST(PtxText, FlushesWhatTheInstructionSetFlushes) {
  auto setp = [](const std::string &type) {
    const std::string body = ".reg .b16 %h<3>; .reg .f32 %f<3>; .reg .f64 %d<3>; .reg .pred %q; setp.neu.ftz." + type + " %q, " +
                             (type == "f32" ? "%f1, %f2" : type == "f64" ? "%d1, %d2" : "%h1, %h2") + "; ret;";
    return parseError(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { " + body + " }\n");
  };
  EXPECT_EQ(setp("f32"), "");
  EXPECT_EQ(setp("f16"), "");
  EXPECT_NE(setp("bf16").find("setp.neu.ftz.bf16"), std::string::npos) << setp("bf16");
  EXPECT_NE(setp("f64").find("setp.neu.ftz.f64"), std::string::npos);
}

// ---- Threads

TEST(PtxThreads, LanesPartAndMeet) {
  // Each lane counts its own number of rounds; all take part in a sum afterwards.
  const auto result = perThread<uint32_t>(R"(
mov.u32 %r1, 0; mov.u32 %r2, %r0;
$loop: setp.eq.u32 %p1, %r2, 0; @%p1 bra $out;
and.b32 %r3, %r2, 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra $even;
add.u32 %r1, %r1, 100; bra $next;
$even: add.u32 %r1, %r1, 1;
$next: sub.u32 %r2, %r2, 1; bra $loop;
$out: activemask.b32 %r4; setp.ne.u32 %p3, %r4, -1; @%p3 trap;
st.global.u32 [%rd20], %r1;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(result[l], (l + 1) / 2 * 100 + l / 2);
}

TEST(PtxThreads, LanesThatAreNotActiveKeepTheirs) {
  const auto result = perThread<uint32_t>(R"(
mov.u32 %r1, 7; setp.lt.u32 %p1, %r0, 5; @%p1 add.u32 %r1, %r0, 1000; setp.gt.u32 %p2, %r0, 29; @!%p2 bra $skip; mov.u32 %r1, 9; $skip:
st.global.u32 [%rd20], %r1;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(result[l], l < 5 ? 1000 + l : l > 29 ? 9 : 7);
}

TEST(PtxThreads, WaitingInALoopForAnotherLane) {
  // Lane 31 releases the others, which spin at a lower place.
  const auto result = perThread<uint32_t>(R"(
.shared .u32 flag;
setp.ne.u32 %p1, %r0, 0; @!%p1 st.shared.u32 [flag], 0; bar.warp.sync -1;
setp.eq.u32 %p2, %r0, 31; @%p2 bra $give;
$spin: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p3, %r1, 0; @%p3 bra $spin; bra $end;
$give: st.volatile.shared.u32 [flag], 5; mov.u32 %r1, 6;
$end: st.global.u32 [%rd20], %r1;)");
  EXPECT_EQ(result[0], 5u);
  EXPECT_EQ(result[31], 6u);
}

TEST(PtxThreads, IndexedBranch) {
  const auto result = perThread<uint32_t>(R"(
and.b32 %r1, %r0, 3;
list: .branchtargets $a, $b, $c, $d;
brx.idx %r1, list;
$a: mov.u32 %r2, 10; bra $end;
$b: mov.u32 %r2, 11; bra $end;
$c: mov.u32 %r2, 12; bra $end;
$d: mov.u32 %r2, 13;
$end: st.global.u32 [%rd20], %r2;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(result[l], 10 + l % 4);
}

TEST(PtxThreads, SpecialRegisters) {
  Card card;
  const uint64_t out = card.add(std::vector<uint32_t>(2 * 2 * 3 * 48 * 6));
  const auto module = Module::parse(kernelText(R"(
mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.z; mov.u32 %r6, %nctaid.x; mov.u32 %r7, %nctaid.y;
mov.u32 %r8, %ntid.x; mov.u32 %r9, %ntid.y; mov.u32 %r10, %ntid.z;
mad.lo.u32 %r11, %r5, %r7, %r3; mad.lo.u32 %r11, %r11, %r6, %r4;
mad.lo.u32 %r12, %r2, %r9, %r1; mad.lo.u32 %r12, %r12, %r8, %r0;
mul.lo.u32 %r13, %r8, %r9; mul.lo.u32 %r13, %r13, %r10; mad.lo.u32 %r14, %r11, %r13, %r12;
mul.wide.u32 %rd1, %r14, 24; add.u64 %rd1, %rd0, %rd1;
mov.u32 %r20, %laneid; mov.u32 %r21, %warpid; mov.u32 %r22, %lanemask_lt; mov.u32 %r23, %lanemask_ge;
st.global.u32 [%rd1], %r14; st.global.u32 [%rd1+4], %r20; st.global.u32 [%rd1+8], %r21; st.global.u32 [%rd1+12], %r22; st.global.u32 [%rd1+16], %r23;)",
                                               1));
  const std::vector<uint64_t> params{out};
  Launch launch{.grid = {2, 2, 3},
                .block = {8, 3, 2},
                .dynamicSharedBytes = 0,
                .params = std::as_bytes(std::span(params)),
                .seed = 5};
  const auto fault = module->find("k")->run(launch, card);
  ASSERT_FALSE(fault) << messageOf(fault);
  const auto words = card.get<uint32_t>(out);
  for (unsigned i = 0; i < 2 * 2 * 3 * 48; ++i) {
    const unsigned lane = i % 48 % 32;
    EXPECT_EQ(words[6 * i], i);
    EXPECT_EQ(words[6 * i + 1], lane);
    EXPECT_EQ(words[6 * i + 2], i % 48 / 32);
    EXPECT_EQ(words[6 * i + 3], (1u << lane) - 1);
    EXPECT_EQ(words[6 * i + 4], ~0u << lane);
  }
}

TEST(PtxThreads, BarrierOrdersWarps) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    const auto result = perThread<uint32_t>(R"(
.shared .align 4 .b8 sh[1024];
mov.u64 %rd1, sh; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2; st.shared.u32 [%rd3], %r0; bar.sync 0;
xor.b32 %r1, %r0, 255; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; ld.shared.u32 %r2, [%rd3];
setp.gt.u32 %p1, %r0, 99; bar.red.popc.u32 %r3, 0, %p1; bar.red.or.pred %p2, 1, %p1; bar.red.and.pred %p3, 1, %p1;
selp.u32 %r4, 1000, 0, %p2; add.u32 %r3, %r3, %r4; selp.u32 %r4, 1000, 0, %p3; add.u32 %r3, %r3, %r4; mad.lo.u32 %r2, %r3, 1000, %r2;
st.global.u32 [%rd20], %r2;)",
                                            {.threads = 256, .blocks = 3, .seed = seed});
    for (unsigned i = 0; i < 768; ++i)
      EXPECT_EQ(result[i], 1156000 + (i % 256 ^ 255));
  }
}

TEST(PtxThreads, BarrierThatNotAllReach) {
  Card card;
  const auto fault =
      runText(kernelText("setp.eq.u32 %p1, %r0, 40; @%p1 bra $out; bar.sync 0; $out:", 0), card, {}, {.threads = 64});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Fault::Kind::Hang);
  EXPECT_NE(fault->message.find("bar.sync 0;"), std::string::npos) << fault->message;
  EXPECT_NE(fault->message.find("thread (40, 0, 0) has exited"), std::string::npos) << fault->message;
}

TEST(PtxThreads, ShuffleThatANamedLaneNeverReaches) {
  Card card;
  const auto fault = runText(
      kernelText("setp.eq.u32 %p1, %r0, 3; @%p1 bra $out; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; $out: bar.sync 0;", 0),
      card, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Fault::Kind::Hang);
  EXPECT_NE(fault->message.find("shfl.sync.idx.b32"), std::string::npos) << fault->message;
  EXPECT_NE(fault->message.find("thread (3, 0, 0) waits in 'bar.sync 0;'"), std::string::npos) << fault->message;
}

TEST(PtxThreads, Trap) {
  Card card;
  const auto fault = runText(kernelText("setp.eq.u32 %p1, %r0, 3; @%p1 trap;", 0), card, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Fault::Kind::Trap);
  EXPECT_NE(fault->message.find("thread (3, 0, 0)"), std::string::npos) << fault->message;
}

TEST(PtxThreads, CallsOfFunctions) {
  const auto result = perThread<uint32_t>(R"(
{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r0; call.uni (r), cube, (a); ld.param.b32 %r1, [r]; }
call (%r2), twice, (%r1);
st.global.u32 [%rd20], %r2;)",
                                          {}, R"(
.func (.param .b32 result) cube(.param .b32 x) { .reg .u32 %a<4>; ld.param.u32 %a1, [x]; mul.lo.u32 %a2, %a1, %a1; setp_skip:
  mul.lo.u32 %a2, %a2, %a1; st.param.b32 [result], %a2; ret; }
.func (.reg .u32 y) twice(.reg .u32 x) { .reg .pred %q; setp.lt.u32 %q, x, 1000; @%q bra small; mov.u32 y, 5; ret; small: add.u32 y, x, x; ret; }
)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(result[l], l * l * l < 1000 ? 2 * l * l * l : 5);
}

// ---- What lanes do together

TEST(PtxWarp, Shuffles) {
  struct Case {
    const char *text;
    unsigned (*from)(unsigned);
  };
  const Case cases[] = {
      {"shfl.sync.bfly.b32 %r1|%p1, %r0, 5, 31, -1;", [](unsigned l) { return l ^ 5; }},
      {"shfl.sync.up.b32 %r1|%p1, %r0, 3, 0, -1;", [](unsigned l) { return l < 3 ? l : l - 3; }},
      {"shfl.sync.down.b32 %r1|%p1, %r0, 4, 31, -1;", [](unsigned l) { return l + 4 > 31 ? l : l + 4; }},
      {"shfl.sync.idx.b32 %r1|%p1, %r0, 9, 31, -1;", [](unsigned) { return 9u; }},
      {"shfl.sync.down.b32 %r1|%p1, %r0, 2, 0x181f, -1;", [](unsigned l) { return l % 8 + 2 > 7 ? l : l + 2; }},
      {"shfl.sync.idx.b32 %r1|%p1, %r0, 3, 0x1c1f, -1;", [](unsigned l) { return l / 4 * 4 + 3; }}};
  for (const Case &one : cases) {
    const auto result = perThread<uint32_t>(
        std::string(one.text) + "selp.u32 %r2, 100, 0, %p1; add.u32 %r1, %r1, %r2; st.global.u32 [%rd20], %r1;");
    for (unsigned l = 0; l < 32; ++l)
      EXPECT_EQ(result[l] % 100, one.from(l)) << one.text << l;
  }
  // By half warps that are apart, each of its own.
  const auto halves = perThread<uint32_t>(R"(
setp.lt.u32 %p1, %r0, 16; @%p1 bra $low;
shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xffff0000; bra $end;
$low: shfl.sync.bfly.b32 %r1, %r0, 2, 31, 0x0000ffff;
$end: st.global.u32 [%rd20], %r1;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(halves[l], l < 16 ? l ^ 2 : l ^ 1);
  // At two places of the text, where they meet.
  const auto apart = perThread<uint32_t>(R"(
setp.lt.u32 %p1, %r0, 16; @%p1 bra $low;
shfl.sync.bfly.b32 %r1, %r0, 16, 31, -1; bra $end;
$low: add.u32 %r2, %r0, 100; shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
$end: st.global.u32 [%rd20], %r1;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(apart[l], l < 16 ? l + 16 : l + 84);
}

TEST(PtxWarp, VotesMatchesAndReductions) {
  const auto votes = perThread<uint64_t>(R"(
setp.gt.u32 %p1, %r0, 20; vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1; vote.sync.uni.pred %p4, %p1, -1;
selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 2, 0, %p3; selp.u32 %r4, 4, 0, %p4; or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4;
mov.b64 %rd1, {%r1, %r2}; st.global.u64 [%rd20], %rd1;)");
  EXPECT_EQ(votes[7], 0xffe00000u | uint64_t(1) << 32);
  const auto matches = perThread<uint64_t>(R"(
and.b32 %r1, %r0, 3; match.any.sync.b32 %r2, %r1, -1; cvt.u64.u32 %rd1, %r0; match.all.sync.b64 %r3|%p1, %rd1, -1;
mov.b64 %rd2, {%r2, %r3}; st.global.u64 [%rd20], %rd2;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(matches[l], 0x11111111u << (l % 4));
  const auto sums = perThread<uint32_t>("sub.u32 %r1, %r0, 5; redux.sync.add.s32 %r2, %r1, -1; redux.sync.min.s32 %r3, "
                                        "%r1, -1; redux.sync.max.u32 %r4, %r1, -1;"
                                        "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%rd20], %r2;");
  EXPECT_EQ(sums[3], static_cast<uint32_t>(31 * 16 - 160 - 5 - 1));
  const auto elected = perThread<uint32_t>("setp.gt.u32 %p1, %r0, 6; mov.u32 %r1, 0; @!%p1 bra $end; elect.sync "
                                           "%r2|%p2, 0xffffff80; selp.u32 %r1, 1, 0, %p2; $end: "
                                           "st.global.u32 [%rd20], %r1;");
  EXPECT_EQ(std::accumulate(elected.begin(), elected.end(), 0u), 1u);
}

TEST(PtxWarp, LoadMatrix) {
  for (const bool isTransposed : {false, true}) {
    // Row r of matrix m is at (31 - 8m - r) * 16; its elements are their numbers.
    const auto result = perThread<uint64_t>(std::string(R"(
.shared .align 16 .b8 sh[512];
mov.u64 %rd1, sh; mul.wide.u32 %rd2, %r0, 16; add.u64 %rd3, %rd1, %rd2; mul.lo.u32 %r1, %r0, 8; cvt.u16.u32 %h1, %r1;
st.shared.u16 [%rd3], %h1; add.u16 %h1, %h1, 1; st.shared.u16 [%rd3+2], %h1; add.u16 %h1, %h1, 1; st.shared.u16 [%rd3+4], %h1; add.u16 %h1, %h1, 1;
st.shared.u16 [%rd3+6], %h1; add.u16 %h1, %h1, 1; st.shared.u16 [%rd3+8], %h1; add.u16 %h1, %h1, 1; st.shared.u16 [%rd3+10], %h1; add.u16 %h1, %h1, 1;
st.shared.u16 [%rd3+12], %h1; add.u16 %h1, %h1, 1; st.shared.u16 [%rd3+14], %h1; bar.warp.sync -1;
sub.u32 %r2, 31, %r0; mul.wide.u32 %rd2, %r2, 16; add.u64 %rd3, %rd1, %rd2;
ldmatrix.sync.aligned.m8n8.x4)") + (isTransposed ? ".trans" : "") +
                                            R"(.shared.b16 {%r4, %r5, %r6, %r7}, [%rd3];
mov.b64 %rd4, {%r4, %r7}; st.global.u64 [%rd20], %rd4;)");
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned m = i / 2 * 3, major = l / 4, minor = l % 4 * 2 + i % 2, row = isTransposed ? minor : major,
                       column = isTransposed ? major : minor;
        EXPECT_EQ(result[l] >> (16 * i) & 0xffff, (31 - 8 * m - row) * 8 + column) << isTransposed << l << i;
      }
  }
}

// ---- Memory

TEST(PtxMemory, WidthsSignsAndVectors) {
  Card card;
  std::vector<uint8_t> bytes(64);
  std::iota(bytes.begin(), bytes.end(), uint8_t(0xf8));
  const uint64_t in = card.add(bytes), out = card.add(std::vector<uint32_t>(16));
  const auto fault = runText(kernelText(R"(
setp.ne.u32 %p1, %r0, 0; @%p1 ret;
ld.global.s8 %r1, [%rd0]; ld.global.u8 %r2, [%rd0+1]; ld.global.s16 %r3, [%rd0+2]; ld.global.u16 %r4, [%rd0+4]; ld.global.s8 %rd5, [%rd0+3]; cvt.u32.u64 %r5, %rd5;
shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r6, %rd5; ld.global.v2.u8 {%h1, %h2}, [%rd0+6]; cvt.u32.u16 %r7, %h1; cvt.u32.u16 %r8, %h2; ld.global.v4.b32 {%r9, %r10, %r11, %r12}, [%rd0+16];
st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%rd1+16], {%r5, %r6}; st.global.u8 [%rd1+24], %r7; st.global.u8 [%rd1+25], %h2; st.global.v4.b32 [%rd1+32], {%r9, %r10, %r11, %r12};)",
                                        2),
                             card, {in, out});
  ASSERT_FALSE(fault) << messageOf(fault);
  const auto words = card.get<uint32_t>(out);
  const std::vector<uint32_t> expected = {0xfffffff8, 0xf9, 0xfffffbfa, 0xfdfc,     0xfffffffb, 0xffffffff,
                                          0xfffe,     0,    0x0b0a0908, 0x0f0e0d0c, 0x13121110, 0x17161514,
                                          0,          0,    0,          0};
  EXPECT_EQ(words, expected);
  std::vector<unsigned> reads = {0, 1, 2, 3, 4, 5, 6, 7};
  for (unsigned i = 16; i < 32; ++i)
    reads.push_back(i);
  EXPECT_EQ(Card::marked(card.span(in).reads, 64), reads);
  EXPECT_EQ(Card::marked(card.span(in).writes, 64).size(), 0u);
  EXPECT_EQ(Card::marked(card.span(out).writes, 64).size(), 16u + 8 + 2 + 16);
  EXPECT_EQ(card.span(in).readsTo, 32u);
  EXPECT_EQ(card.span(out).writesFrom, 0u);
  EXPECT_EQ(card.span(out).writesTo, 48u);
}

TEST(PtxMemory, MarksAreExact) {
  // Whole warps, warps in part, strides, one address: what a loop over the threads marks.
  struct Case {
    const char *address;
    uint64_t (*offset)(unsigned);
  };
  const Case cases[] = {
      {"mul.lo.u32 %r1, %r0, 4;", [](unsigned i) -> uint64_t { return 4 * i; }},
      {"mul.lo.u32 %r1, %r0, 12;", [](unsigned i) -> uint64_t { return 12 * i; }},
      {"mov.u32 %r1, 20;", [](unsigned) -> uint64_t { return 20; }},
      {"xor.b32 %r1, %r0, 7; mul.lo.u32 %r1, %r1, 4;", [](unsigned i) -> uint64_t { return 4 * (i ^ 7); }},
      {"mul.lo.u32 %r1, %r0, %r0; mul.lo.u32 %r1, %r1, 4; and.b32 %r1, %r1, 2047;",
       [](unsigned i) -> uint64_t { return 4 * i * i & 2047; }}};
  for (const Case &one : cases)
    for (const unsigned threads : {32u, 50u, 64u}) {
      Card card;
      const uint64_t buffer = card.add(std::vector<uint32_t>(1024, 5)), other = card.add(std::vector<uint32_t>(1024));
      const auto fault =
          runText(kernelText(std::string(one.address) +
                                 "cvt.u64.u32 %rd2, %r1; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;"
                                 "ld.global.u32 %r2, [%rd3]; st.global.u32 [%rd4], %r2;",
                             2),
                  card, {buffer, other}, {.threads = threads});
      ASSERT_FALSE(fault) << messageOf(fault);
      std::vector<unsigned> expected;
      for (unsigned i = 0; i < threads; ++i)
        for (unsigned b = 0; b < 4; ++b)
          expected.push_back(static_cast<unsigned>(one.offset(i)) + b);
      std::ranges::sort(expected);
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      EXPECT_EQ(Card::marked(card.span(buffer).reads, 4096), expected) << one.address << threads;
      EXPECT_EQ(Card::marked(card.span(other).writes, 4096), expected) << one.address << threads;
      EXPECT_EQ(card.span(buffer).readsFrom, expected.front());
      EXPECT_EQ(card.span(other).writesTo, expected.back() + 1);
    }
}

TEST(PtxMemory, Faults) {
  struct Case {
    const char *body;
    Fault::Kind kind;
    const char *says;
  };
  const Case cases[] = {
      {"mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; ld.global.u32 %r1, [%rd1+4];", Fault::Kind::IllegalAddress,
       "thread (31, 0, 0)"},
      {"st.global.u32 [%rd0+128], %r0;", Fault::Kind::IllegalAddress, "writes 4 bytes of global memory"},
      {"ld.global.u32 %r1, [%rd0+2];", Fault::Kind::Misaligned, "not a multiple"},
      {"mov.u64 %rd1, 0; ld.u32 %r1, [%rd1];", Fault::Kind::IllegalAddress, "at 0x0"},
      {"mov.u64 %rd1, 0; st.global.u32 [%rd1], %r0;", Fault::Kind::IllegalAddress, "(line"},
      {".shared .u32 s; mov.u64 %rd1, s; ld.shared.u32 %r1, [%rd1+4];", Fault::Kind::IllegalAddress, "shared memory"},
      {".shared .align 8 .b8 s[64]; mov.u64 %rd1, s; ld.shared.u64 %rd2, [%rd1+4];", Fault::Kind::Misaligned, "shared"},
      {".local .align 8 .b8 l[8]; mov.u64 %rd1, l; st.local.u64 [%rd1+16], %rd1;", Fault::Kind::IllegalAddress,
       "local memory"},
      {"ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];", Fault::Kind::Misaligned, "16 bytes"},
      {"atom.global.add.u32 %r1, [%rd0+200], 1;", Fault::Kind::IllegalAddress, "changes 4 bytes"}};
  for (const Case &one : cases) {
    Card card;
    const uint64_t buffer = card.add(std::vector<uint32_t>(32));
    const auto fault = runText(kernelText(one.body, 1), card, {buffer});
    ASSERT_TRUE(fault) << one.body;
    EXPECT_EQ(fault->kind, one.kind) << fault->message;
    EXPECT_NE(fault->message.find(one.says), std::string::npos) << fault->message;
  }
  Card card;
  const uint64_t buffer = card.add(std::vector<uint32_t>(32));
  card.span(buffer).isReadOnly = true;
  const auto fault = runText(
      kernelText("mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r0;", 1), card, {buffer});
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->message.find("only to be read"), std::string::npos) << fault->message;
}

TEST(PtxMemory, SharedMemoryBeginsAsNaN) {
  const auto result = perThread<float>(".shared .align 4 .b8 s[256]; mov.u64 %rd1, s; mul.wide.u32 %rd2, %r0, 4; "
                                       "add.u64 %rd1, %rd1, %rd2; ld.shared.f32 %f1, [%rd1];"
                                       "st.global.f32 [%rd20], %f1; st.shared.f32 [%rd1], 0f00000000;",
                                       {.threads = 32, .blocks = 3});
  for (const float value : result)
    EXPECT_TRUE(value != value);
}

TEST(PtxMemory, SpacesByGenericAddresses) {
  const auto result =
      perThread<uint64_t>(R"(
.shared .u64 s; .local .align 8 .b8 depot[16]; .reg .b64 %SP; .reg .b64 %SPL;
mov.b64 %SPL, depot; cvta.local.u64 %SP, %SPL; cvt.u64.u32 %rd1, %r0; st.u64 [%SP+8], %rd1; ld.local.u64 %rd2, [%SPL+8];
mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; setp.eq.u32 %p1, %r0, 0; @%p1 st.u64 [%rd4], 1000; bar.warp.sync -1; ld.shared.u64 %rd5, [s]; add.u64 %rd2, %rd2, %rd5;
cvta.to.shared.u64 %rd6, %rd4; setp.ne.u64 %p2, %rd6, %rd3; @%p2 trap; isspacep.shared %p3, %rd4; @!%p3 trap; isspacep.global %p3, %rd20; @!%p3 trap; isspacep.local %p3, %rd4; @%p3 trap;
ld.const.u8 %rd7, [table+2]; add.u64 %rd2, %rd2, %rd7; ld.global.u32 %rd8, [numbers+4]; add.u64 %rd2, %rd2, %rd8;
cvta.to.global.u64 %rd9, %rd20; st.global.u64 [%rd9], %rd2;)",
                          {}, ".const .align 4 .b8 table[4] = {1, 2, 30, 4}; .global .u32 numbers[2] = {7, 100000};\n");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(result[l], 101030 + l);
}

/// Each thread of a block hands its number to the same thread of the next block of the cluster.
const std::string kHandOn = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;\n"
                            "mov.u32 %r4, hand; mad.lo.u32 %r5, %r0, 4, %r4; st.shared.b32 [%r5], %r3;\n"
                            "FIRST\n"
                            "mov.u32 %r6, %cluster_ctarank; mov.u32 %r7, %cluster_nctarank; add.u32 %r6, %r6, 1;\n"
                            "rem.u32 %r6, %r6, %r7; mapa.shared::cluster.u32 %r8, %r5, %r6;\n"
                            "ld.shared::cluster.b32 %r9, [%r8];\n"
                            "LAST\n"
                            "cvt.u64.u32 %rd1, %r9; st.global.b64 [%rd20], %rd1;";
const char *const kMeet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";

std::string handOn(const std::string &first, const std::string &last) {
  std::string text = kHandOn;
  text.replace(text.find("FIRST"), 5, first).replace(text.find("LAST"), 4, last);
  return text;
}

TEST(PtxCluster, BlocksReadEachOthersSharedMemory) {
  for (const unsigned cluster : {1u, 2u, 4u, 8u})
    for (const uint64_t seed : {0, 1, 2, 77}) {
      const auto got = perThread<uint64_t>(
          handOn(kMeet, kMeet), {.threads = 96, .blocks = 8, .dynamicShared = 0, .seed = seed, .cluster = cluster},
          ".shared .align 4 .b8 hand[384];\n");
      for (unsigned i = 0; i < got.size(); ++i) {
        const unsigned block = i / 96, from = block / cluster * cluster + (block + 1) % cluster;
        ASSERT_EQ(got[i], from * 96 + i % 96) << cluster << " at " << i;
      }
    }
}

TEST(PtxCluster, ExitedThreadsAreNotWaitedFor) {
  const auto got = perThread<uint64_t>("setp.lt.u32 %p1, %r0, 40; @%p1 ret; " + std::string(kMeet) +
                                           " mov.u64 %rd1, 7; st.global.b64 [%rd20], %rd1;",
                                       {.threads = 64, .blocks = 2, .dynamicShared = 0, .seed = 0, .cluster = 2});
  EXPECT_EQ(std::ranges::count(got, 7u), 48);
}

TEST(PtxCluster, MistakesAreFaults) {
  auto faultOf = [](const std::string &body, uint64_t seed = 0, unsigned cluster = 2) {
    Card card;
    const uint64_t out = card.add(std::vector<uint64_t>(128, 0));
    return messageOf(runText(kernelText("mad.lo.u32 %r50, 0, 0, %r0; mul.wide.u32 %rd20, %r50, 8;\n"
                                        "add.u64 %rd20, %rd20, %rd0;\n" +
                                            body,
                                        1, ".shared .align 4 .b8 hand[256];\n"),
                             card, {out},
                             {.threads = 64, .blocks = 4, .dynamicShared = 0, .seed = seed, .cluster = cluster}));
  };
  auto expect = [](const std::string &message, const std::string &part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  EXPECT_EQ(faultOf(handOn(kMeet, kMeet)), "");
  expect(faultOf(handOn(kMeet, "")), "of a block that has ended");
  expect(faultOf("barrier.cluster.arrive; barrier.cluster.arrive;"), "without a wait since it last did");
  expect(faultOf("barrier.cluster.wait;"), "where it has not arrived");
  expect(faultOf("setp.lt.u32 %p1, %r0, 40; @%p1 bra $end; barrier.cluster.arrive; $end: barrier.cluster.wait;"),
         "where it has not arrived");
  expect(faultOf("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra $end; " + std::string(kMeet) +
                 "$end: bar.sync 1, 128;"),
         "where not all that it names arrive");
  expect(faultOf("mov.u32 %r1, hand; mapa.shared::cluster.u32 %r2, %r1, 2;"), "in block 2 of a cluster of 2");
  expect(faultOf("mov.u32 %r1, hand; mapa.shared::cluster.u32 %r2, %r1, 1; ld.shared::cluster.b32 %r3, [%r2+256];"),
         "of shared memory at 0x2000100 of 256");
  expect(faultOf("", 0, 3), "clusters of 3 in a grid of 4");
  EXPECT_EQ(parseError(kernelText("mapa.u64 %rd1, %rd2, 0;", 0)), "line 7: 'mapa.u64' is not interpreted");
  EXPECT_NE(parseError(kernelText("barrier.cluster.arrive.relaxed;", 0)), "");
}

TEST(PtxMemory, DynamicSharedMemory) {
  const auto result = perThread<uint32_t>(
      ".shared .align 4 .b8 fixed[20]; mov.u64 %rd1, dynamic; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2; "
      "st.shared.u32 [%rd1], %r0;"
      "st.shared.u32 [fixed+16], 3; ld.shared.u32 %r1, [%rd1]; st.global.u32 [%rd20], %r1;",
      {.threads = 32, .blocks = 1, .dynamicShared = 128}, ".extern .shared .align 16 .b8 dynamic[];\n");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(result[l], l);
}

TEST(PtxMemory, CopiesArriveWhenTheyAreWaitedFor) {
  const auto result = perThread<uint64_t>(R"(
.shared .align 16 .b8 s[2048]; mov.u64 %rd1, s; mul.wide.u32 %rd2, %r0, 16; add.u64 %rd1, %rd1, %rd2;
st.shared.u64 [%rd1], 1; st.shared.u64 [%rd1+8], 2; st.shared.u64 [%rd1+512], 3;
st.global.u64 [%rd20], 77;
cp.async.ca.shared.global [%rd1], [%rd20], 8; cp.async.commit_group; cp.async.ca.shared.global [%rd1+512], [%rd20], 8, 4; cp.async.commit_group;
ld.shared.u64 %rd3, [%rd1]; cp.async.wait_group 1; ld.shared.u64 %rd4, [%rd1]; ld.shared.u64 %rd5, [%rd1+512]; cp.async.wait_all; ld.shared.u64 %rd6, [%rd1+512];
mul.lo.u64 %rd3, %rd3, 1000000; mad.lo.u64 %rd3, %rd4, 1000, %rd3; mad.lo.u64 %rd3, %rd5, 100, %rd3; add.u64 %rd3, %rd3, %rd6; st.global.u64 [%rd20], %rd3;)");
  for (const uint64_t value : result)
    EXPECT_EQ(value, 1000000u + 77000 + 300 + 77);
}

TEST(PtxMemory, AtomicOperations) {
  Card card;
  const uint64_t out = card.add(std::vector<uint32_t>(16)), old = card.add(std::vector<uint32_t>(96));
  const auto fault = runText(kernelText(R"(
mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2; atom.global.add.u32 %r1, [%rd0], 2; st.global.u32 [%rd3], %r1;
red.global.max.s32 [%rd0+4], %r0; atom.global.or.b32 %r2, [%rd0+8], %r0; red.global.add.f32 [%rd0+12], 0f3F800000; atom.global.cas.b32 %r3, [%rd0+16], %r0, 9;
atom.global.inc.u32 %r4, [%rd0+20], 9; red.global.add.u64 [%rd0+24], 3; atom.exch.b32 %r5, [%rd0+32], 8; atom.global.min.s32 %r6, [%rd0+36], -5;)",
                                        2),
                             card, {out, old}, {.threads = 96});
  ASSERT_FALSE(fault) << messageOf(fault);
  const auto words = card.get<uint32_t>(out);
  EXPECT_EQ(words[0], 192u);
  EXPECT_EQ(words[1], 95u);
  EXPECT_EQ(words[2], 127u);
  EXPECT_EQ(words[3], std::bit_cast<uint32_t>(96.0f));
  EXPECT_EQ(words[4], 9u);
  EXPECT_EQ(words[5], 6u);
  EXPECT_EQ(words[6], 288u);
  EXPECT_EQ(words[8], 8u);
  EXPECT_EQ(words[9], static_cast<uint32_t>(-5));
  auto olds = card.get<uint32_t>(old);
  std::ranges::sort(olds);
  for (unsigned i = 0; i < 96; ++i)
    EXPECT_EQ(olds[i], 2 * i);
  EXPECT_EQ(Card::marked(card.span(out).writes, 64).size(), 40u);
}

} // namespace
} // namespace tressel::standin::ptx::test
