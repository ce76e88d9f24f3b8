// What tests of NVIDIA's libraries share: a card with operands on it, values of the types that libraries take, and the
// generated kernel of a plain product.
#pragma once

#include "test/standin/StandIn.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Half.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace tressel::runtime {

inline constexpr DeviceRef kCpu{DeviceKind::Cpu, 0}, kGpu0{DeviceKind::Gpu, 0};

inline const standin::Control &driver() { return *standin::control(); }

/// Of the operands left, right and result of f32: left x right, one block an element.
inline std::string productKernel(const std::string &symbol, int64_t n, int64_t k, int scalars) {
  const std::string N = std::to_string(n), K = std::to_string(k);
  std::string text = "\n.version 7.0\n.target sm_80\n.address_size 64\n.visible .entry " + symbol +
                     "(.param .u64 p0, .param "
                     ".u64 p1, .param .u64 p2";
  for (int i = 0; i <= scalars; ++i)
    text += ", .param .u64 p" + std::to_string(3 + i);
  return text + R"() {
  .reg .u64 %rd<8>; .reg .u32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<4>;
  mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; @%p1 ret; mov.u32 %r1, %ctaid.x;
  div.u32 %r3, %r1, )" +
         N + "; mul.lo.u32 %r5, %r3, " + N + R"(; sub.u32 %r4, %r1, %r5;
  ld.param.u64 %rd1, [p0]; cvta.to.global.u64 %rd1, %rd1; ld.param.u64 %rd2, [p1]; cvta.to.global.u64 %rd2, %rd2;
  ld.param.u64 %rd3, [p2]; cvta.to.global.u64 %rd3, %rd3;
  mul.lo.u32 %r5, %r3, )" +
         K + R"(; mul.wide.u32 %rd4, %r5, 4; add.u64 %rd1, %rd1, %rd4;
  mul.wide.u32 %rd5, %r4, 4; add.u64 %rd2, %rd2, %rd5; mov.f32 %f1, 0f00000000; mov.u32 %r6, 0;
$more:
  ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2]; fma.rn.f32 %f1, %f2, %f3, %f1; add.u64 %rd1, %rd1, 4; add.u64 %rd2, %rd2, )" +
         std::to_string(4 * n) + "; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, " + K + R"(; @%p2 bra $more;
  mul.wide.u32 %rd6, %r1, 4; add.u64 %rd3, %rd3, %rd6; st.global.f32 [%rd3], %f1; ret;
}
)";
}

inline float load(const std::byte *at, DType type) {
  if (type == f32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return type == f16 ? halfToFloat(bits) : bfloatToFloat(bits);
}
inline std::vector<std::byte> spell(const std::vector<float> &values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_t(sizeOf(type)));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = type == f16 ? halfFromFloat(values[i]) : bfloatFromFloat(values[i]);
    if (type == f32)
      std::memcpy(&bytes[4 * i], &values[i], 4);
    else
      std::memcpy(&bytes[2 * i], &bits, 2);
  }
  return bytes;
}

/// A card with a stream, and memory that it frees.
class Card {
public:
  explicit Card(const MachineRequest &request = {})
      : machine(openMachine("cuda", request)), gpu(machine->at(kGpu0)),
        stream(gpu.makeStream(StreamKind::Compute, "", 0)) {}
  ~Card() {
    await(stream->last());
    stream.reset(); // what has failed may still run
    for (void *memory : memory_)
      gpu.release(memory, {});
  }
  std::byte *allocate(size_t bytes) {
    return static_cast<std::byte *>(memory_.emplace_back(gpu.allocate(int64_t(bytes), MemoryKind::Device)));
  }
  static Region on(void *at, size_t bytes, Access access) {
    return {at, int64_t(bytes), access, {kGpu0, MemoryKind::Device}};
  }
  static Region host(void *at, size_t bytes, Access access) {
    return {at, int64_t(bytes), access, {kCpu, MemoryKind::Host}};
  }
  Event copyIn(std::byte *to, std::vector<std::byte> &from) {
    const Region regions[] = {host(from.data(), from.size(), Access::Read), on(to, from.size(), Access::Write)};
    return stream->submit({.kind = DeviceCommandKind::Copy, .regions = regions});
  }
  std::vector<std::byte> copyOut(std::byte *from, size_t bytes) {
    std::vector<std::byte> to(bytes);
    const Region regions[] = {on(from, bytes, Access::Read), host(to.data(), bytes, Access::Write)};
    if (const std::string failure = await(stream->submit({.kind = DeviceCommandKind::Copy, .regions = regions}));
        !failure.empty())
      throw RuntimeError(failure);
    return to;
  }
  /// What went wrong; empty if nothing did.
  std::string await(Event event) {
    if (event.value == 0)
      return "";
    machine->awaitAny({&event, 1}, INT64_MAX);
    return event.state() == Semaphore::State::Failed ? event.semaphore->failure()->message : "";
  }
  DeviceKernelRef load(const KernelDesc &desc, std::string ptx = "no code") {
    const KernelCode code{.desc = &desc};
    return gpu
        .load({&code, 1},
              std::make_shared<const std::vector<GpuCode>>(1, GpuCode{.arch = "sm_80", .ptx = std::move(ptx)}))
        .front();
  }

  std::shared_ptr<Machine> machine;
  Device &gpu;
  std::unique_ptr<Stream> stream;

private:
  std::vector<void *> memory_;
};

} // namespace tressel::runtime
