// Matrix instructions and asynchronous copies of the emulator.
#include "test/unit/codegen/GpuText.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace tressel;
using namespace tressel::codegen::test;

namespace {

uint32_t bf16(float v) { return std::bit_cast<uint32_t>(v) >> 16; }
/// Of small integers.
uint32_t f16(float v) {
  if (v == 0)
    return 0;
  int exponent;
  const float m = std::frexp(std::fabs(v), &exponent); // in [0.5, 1)
  return (v < 0 ? 0x8000u : 0u) | static_cast<uint32_t>(exponent + 14) << 10 | (static_cast<uint32_t>(m * 2048) & 1023);
}

/// A matrix instruction: the type of its fragments' registers, how many there are, and what it multiplies.
struct Mma {
  const char *name;
  const char *type; ///< of registers of a and b
  int k, a, b;      ///< registers
  int perRegister;
  uint32_t (*bits)(float);
};
const Mma instructions[] = {
    {"m16n8k16.row.col.f32.f32", "<2 x half>", 16, 4, 2, 2, f16},
    {"m16n8k8.row.col.f32.f32", "<2 x half>", 8, 2, 1, 2, f16},
    {"m16n8k16.row.col.bf16", "i32", 16, 4, 2, 2, bf16},
    {"m16n8k8.row.col.bf16", "i32", 8, 2, 1, 2, bf16},
    {"m16n8k8.row.col.tf32", "i32", 8, 4, 2, 1, [](float v) { return std::bit_cast<uint32_t>(v); }},
    {"m16n8k4.row.col.tf32", "i32", 4, 2, 1, 1, [](float v) { return std::bit_cast<uint32_t>(v); }},
};

/// Each lane reads its registers of a, b and c from b0, one after the other, and writes those of d to b1.
std::string kernelOf(const Mma &mma) {
  const std::string type = mma.type;
  std::string list, body, argumentTypes;
  const int count = mma.a + mma.b + 4;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), t = i < mma.a + mma.b ? type : "float";
    body += "  %p" + n + " = getelementptr i32, ptr addrspace(1) %in, i32 " + n + "\n  %r" + n + " = load " + t +
            ", ptr addrspace(1) %p" + n + ", align 4\n";
    list += (i ? ", " : "") + t + " %r" + n;
    argumentTypes += (i ? ", " : "") + t;
  }
  const std::string result = "{ float, float, float, float }", name = "@llvm.nvvm.mma." + std::string(mma.name);
  body += "  %d = call " + result + " " + name + "(" + list + ")\n";
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    body += "  %d" + n + " = extractvalue " + result + " %d, " + n + "\n  %q" + n +
            " = getelementptr float, ptr addrspace(1) %out, i32 " + n + "\n  store float %d" + n +
            ", ptr addrspace(1) %q" + n + ", align 4\n";
  }
  return "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndeclare " + result + " " + name + "(" + argumentTypes +
         ")\ndefine ptx_kernel void @k(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %status) {\n"
         "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %ti = mul i32 %t, " +
         std::to_string(count) +
         "\n  %to = mul i32 %t, 4\n  %in = getelementptr i32, ptr addrspace(1) %b0, i32 %ti\n"
         "  %out = getelementptr i32, ptr addrspace(1) %b1, i32 %to\n" +
         body + "  ret void\n}\n";
}

TEST(EmulateMatrices, Products) {
  for (const Mma &mma : instructions) {
    SCOPED_TRACE(mma.name);
    std::mt19937 random(7);
    auto value = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8); };
    float a[16][16], b[16][8], c[16][8];
    for (auto *row : {&a[0][0]})
      for (int i = 0; i < 256; ++i)
        row[i] = value();
    for (int i = 0; i < 128; ++i)
      (&b[0][0])[i] = value(), (&c[0][0])[i] = value();
    // The ISA's formulas for which element a register of a lane holds, for each width of elements.
    const int count = mma.a + mma.b + 4;
    std::vector<uint32_t> in(static_cast<size_t>(32 * count));
    for (int lane = 0; lane < 32; ++lane) {
      const int group = lane >> 2, inGroup = lane % 4;
      uint32_t *registers = &in[static_cast<size_t>(lane * count)];
      for (int i = 0; i < mma.a * mma.perRegister; ++i) {
        int row, column;
        if (mma.perRegister == 2) {
          row = i % 4 < 2 ? group : group + 8;
          column = inGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        } else {
          row = i % 2 == 0 ? group : group + 8;
          column = i < 2 ? inGroup : inGroup + 4;
        }
        registers[i / mma.perRegister] |= mma.bits(a[row][column]) << (mma.perRegister == 2 ? 16 * (i & 1) : 0);
      }
      for (int i = 0; i < mma.b * mma.perRegister; ++i) {
        const int row = mma.perRegister == 2 ? inGroup * 2 + (i & 1) + (i >= 2 ? 8 : 0) : inGroup + 4 * i;
        registers[mma.a + i / mma.perRegister] |= mma.bits(b[row][group]) << (mma.perRegister == 2 ? 16 * (i & 1) : 0);
      }
      for (int i = 0; i < 4; ++i)
        registers[mma.a + mma.b + i] = std::bit_cast<uint32_t>(c[i < 2 ? group : group + 8][inGroup * 2 + (i & 1)]);
    }
    std::vector<float> out(128);
    EXPECT_EQ(GpuKernels(kernelOf(mma)).run("k", {in.data(), out.data()}, 32, 1), 0);
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int row = i < 2 ? lane >> 2 : (lane >> 2) + 8, column = (lane % 4) * 2 + (i & 1);
        float want = c[row][column];
        for (int j = 0; j < mma.k; ++j)
          want += a[row][j] * b[j][column];
        EXPECT_EQ(out[static_cast<size_t>(lane * 4 + i)], want) << row << ", " << column;
      }
  }
}

/// Four 8 x 8 matrices of 16 bits go from b0 to shared memory, asynchronously, and from there to registers.
std::string loadKernel(bool transposed, bool wait, bool barrier) {
  const std::string load = std::string("@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4") + (transposed ? ".trans" : "") +
                           ".b16.p3(ptr addrspace(3)";
  return R"(
@tile = internal addrspace(3) global [256 x i16] poison, align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare { i32, i32, i32, i32 } )" +
         load + R"()
define ptx_kernel void @k(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %status) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %e = mul i32 %t, 8
  %p = getelementptr i16, ptr addrspace(1) %b0, i32 %e
  %s = getelementptr i16, ptr addrspace(3) @tile, i32 %e
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %s, ptr addrspace(1) %p)
  call void @llvm.nvvm.cp.async.commit.group()
)" + (wait ? "  call void @llvm.nvvm.cp.async.wait.group(i32 0)\n" : "") +
         (barrier ? "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n" : "") + "  %m = call { i32, i32, i32, i32 } " +
         load + R"( %s)
  %o = mul i32 %t, 4
  %q0 = getelementptr i32, ptr addrspace(1) %b1, i32 %o
  %q1 = getelementptr i32, ptr addrspace(1) %q0, i32 1
  %q2 = getelementptr i32, ptr addrspace(1) %q0, i32 2
  %q3 = getelementptr i32, ptr addrspace(1) %q0, i32 3
  %m0 = extractvalue { i32, i32, i32, i32 } %m, 0
  %m1 = extractvalue { i32, i32, i32, i32 } %m, 1
  %m2 = extractvalue { i32, i32, i32, i32 } %m, 2
  %m3 = extractvalue { i32, i32, i32, i32 } %m, 3
  store i32 %m0, ptr addrspace(1) %q0, align 4
  store i32 %m1, ptr addrspace(1) %q1, align 4
  store i32 %m2, ptr addrspace(1) %q2, align 4
  store i32 %m3, ptr addrspace(1) %q3, align 4
  ret void
}
)";
}

TEST(EmulateMatrices, Loads) {
  alignas(64) std::array<uint16_t, 256> in;
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<uint16_t>(i);
  for (bool transposed : {false, true}) {
    std::array<uint32_t, 128> out{};
    EXPECT_EQ(GpuKernels(loadKernel(transposed, true, true)).run("k", {in.data(), out.data()}, 32, 1), 0);
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t matrix = 0; matrix < 4; ++matrix) {
        const uint32_t row = lane / 4, column = lane % 4 * 2;
        const uint32_t first = transposed ? column * 8 + row : row * 8 + column,
                       second = transposed ? (column + 1) * 8 + row : row * 8 + column + 1;
        EXPECT_EQ(out[lane * 4 + matrix], (matrix * 64 + first) | (matrix * 64 + second) << 16);
      }
  }
}

TEST(EmulateMatrices, CopiesMustBeWaitedFor) {
  alignas(64) std::array<uint16_t, 256> in{};
  std::array<uint32_t, 128> out{};
  expectContains(GpuKernels(loadKernel(false, false, true)).failure("k", {in.data(), out.data()}, 32, 1),
                 {"where a cp.async may still write", "nobody has waited"});
  // A thread waits for its own copies only.
  expectContains(GpuKernels(loadKernel(false, true, false)).failure("k", {in.data(), out.data()}, 32, 1),
                 {"reads shared memory", "no barrier is between"});
}

} // namespace
