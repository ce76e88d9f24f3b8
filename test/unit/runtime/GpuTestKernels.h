// The kernels of DeviceSchedules.h as PTX, written by hand: what compiled programs hand to a card, without a compiler.
//
// A block is a unit of the range, of whose threads the first works.
#pragma once

#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Schedule.h"

#include <string>

namespace tressel::runtime::test {

inline GpuCode gpuTestCode() {
  const std::string head = R"(
.version 7.0
.target sm_80
.address_size 64
)";
  // Parameters; %rd1... are the operands' addresses in global memory, %r1 the block. Other threads than the first are done.
  auto kernel = [](const std::string &name, int operands, const std::string &body) {
    std::string text = ".visible .entry " + name + "(";
    for (int i = 0; i <= operands; ++i)
      text += (i ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
    text += ") {\n  .reg .u64 %rd<12>; .reg .u32 %r<8>; .reg .f32 %f<8>; .reg .pred %p<4>; .reg .u16 %h<4>; .reg .s64 %s<4>;\n"
            "  mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; @%p1 ret; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd9, %r1, 4;\n";
    for (int i = 0; i <= operands; ++i) {
      const std::string r = "%rd" + std::to_string(i + 1);
      text += "  ld.param.u64 " + r + ", [p" + std::to_string(i) + "]; cvta.to.global.u64 " + r + ", " + r + ";\n";
    }
    return text + body + "  ret;\n}\n";
  };
  GpuCode code{.arch = "sm_80"};
  code.ptx = head +
             kernel("add", 3, R"(  add.u64 %rd1, %rd1, %rd9; add.u64 %rd2, %rd2, %rd9; add.u64 %rd3, %rd3, %rd9;
  ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2]; add.f32 %f3, %f1, %f2; st.global.f32 [%rd3], %f3;
)") +
             kernel("twice", 2, R"(  add.u64 %rd1, %rd1, %rd9; add.u64 %rd2, %rd2, %rd9;
  ld.global.f32 %f1, [%rd1]; add.f32 %f2, %f1, %f1; st.global.f32 [%rd2], %f2;
)") +
             kernel("less", 3, R"(  ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2]; setp.lt.f32 %p2, %f1, %f2;
  selp.u16 %h1, 1, 0, %p2; st.global.u8 [%rd3], %h1;
)") +
             kernel("number", 2, R"(  add.u64 %rd2, %rd2, %rd9; ld.global.s64 %s1, [%rd1]; cvt.rn.f32.s64 %f1, %s1; st.global.f32 [%rd2], %f1;
)") +
             kernel("fails", 2, R"(  mov.u32 %r3, 1; st.global.u32 [%rd3], %r3;
)") +
             kernel("half", 2, R"(  mov.u32 %r3, %nctaid.x; shr.u32 %r3, %r3, 1; setp.ge.u32 %p2, %r1, %r3; @%p2 ret;
  add.u64 %rd2, %rd2, %rd9; mov.f32 %f1, 0f3F800000; st.global.f32 [%rd2], %f1;
)");
  return code;
}

/// Those of the provider "test" are on a card what this code has under the same name.
inline KernelDesc onCard(KernelDesc desc) {
  desc.symbol = desc.params;
  desc.target = KernelTarget::Gpu;
  desc.params = "{\"threads\":32}";
  return desc;
}

} // namespace tressel::runtime::test
