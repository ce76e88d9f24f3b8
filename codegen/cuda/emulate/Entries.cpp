// What generated code calls. Nothing here may throw, or leave anything to destroy on a stack that is given up.
#include "codegen/cuda/emulate/Block.h"

#include <bit>
#include <cmath>

using namespace tressel::codegen::cuda::emulate;

namespace {

void watch(Thread *thread, void *address, uint64_t bytes, const Site *site) {
  thread->home->access(*thread, address, bytes, *site);
  thread->home->leaveIfFailed(*thread);
}
void poll(Thread *thread, const Site *site) {
  thread->home->poll(*thread, *site);
  thread->home->leaveIfFailed(*thread);
}
void collective(Thread *thread, const Site *site) {
  if (site->op >= Op::Barrier && site->op <= Op::BarrierOr)
    thread->home->barrier(*thread, *site);
  else if (site->op == Op::ClusterBarrier)
    thread->home->clusterBarrier(*thread, *site);
  else
    thread->home->warp(*thread, *site);
  thread->home->leaveIfFailed(*thread);
}
void *placeInPeer(Thread *thread, const void *own, uint32_t rank, const Site *site) {
  void *there = thread->home->placeInPeer(*thread, own, rank, *site);
  thread->home->leaveIfFailed(*thread);
  return there;
}
void copyAsync(Thread *thread, void *to, const void *from, uint32_t given, const Site *site) {
  thread->home->copyAsync(*thread, to, from, given, *site);
  thread->home->leaveIfFailed(*thread);
}
void commitCopies(Thread *thread) { thread->home->commitCopies(*thread); }
void waitForCopies(Thread *thread, uint32_t pendingGroups) {
  // All copies, committed or not.
  if (pendingGroups == ~0u)
    commitCopies(thread), pendingGroups = 0;
  thread->home->waitForCopies(*thread, pendingGroups);
  thread->home->leaveIfFailed(*thread);
}

// What LLVM calls where the host's instruction set lacks a conversion. f16 and bf16 are passed in the low half of a
// vector register, as the low half of a float here.
float asFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits)); }

uint16_t halfOf(double v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double a = std::fabs(v);
  if (std::isnan(a))
    return sign | 0x7e00;
  if (a >= 65520)
    return sign | 0x7c00;
  // To a multiple of the distance between neighbours there, to nearest even.
  const int exponent = a < 0x1p-14 ? -14 : std::ilogb(a);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(a, 10 - exponent)));
  return static_cast<uint16_t>(sign | (uint32_t(exponent + 14) * 1024 + steps));
}
float ofHalf(float low) {
  const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(low));
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float a = exponent == 31 ? (mantissa ? NAN : INFINITY)
                  : exponent     ? std::ldexp(float(1024 + mantissa), exponent - 25)
                                 : std::ldexp(float(mantissa), -24);
  return bits & 0x8000 ? -a : a;
}
uint16_t bfloatOf(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  if (std::isnan(v))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/// To odd, so that rounding once more gives what rounding once would.
float toOdd(double v) {
  const auto near = static_cast<float>(v);
  if (static_cast<double>(near) == v || std::isnan(v) || std::isinf(near))
    return near;
  const auto bits = std::bit_cast<uint32_t>(near);
  const bool away = std::fabs(static_cast<double>(near)) > std::fabs(v);
  return std::bit_cast<float>((away ? bits - 1 : bits) | 1);
}
float truncateSingleToHalf(float v) { return asFloat(halfOf(v)); }
float truncateDoubleToHalf(double v) { return asFloat(halfOf(v)); }
float truncateSingleToBfloat(float v) { return asFloat(bfloatOf(v)); }
float truncateDoubleToBfloat(double v) { return asFloat(bfloatOf(toOdd(v))); }

template <typename Fn> void *addressOf(Fn *fn) { return reinterpret_cast<void *>(fn); }

} // namespace

namespace tressel::codegen::cuda::emulate {

std::span<const Symbol> symbols() {
  static const Symbol all[] = {
      {"tressel_gpu_access", addressOf(watch)},
      {"tressel_gpu_poll", addressOf(poll)},
      {"tressel_gpu_collective", addressOf(collective)},
      {"tressel_gpu_place_in_peer", addressOf(placeInPeer)},
      {"tressel_gpu_copy_async", addressOf(copyAsync)},
      {"tressel_gpu_commit_copies", addressOf(commitCopies)},
      {"tressel_gpu_wait_for_copies", addressOf(waitForCopies)},
      {"__truncsfhf2", addressOf(truncateSingleToHalf)},
      {"__gnu_f2h_ieee", addressOf(truncateSingleToHalf)},
      {"__truncdfhf2", addressOf(truncateDoubleToHalf)},
      {"__extendhfsf2", addressOf(ofHalf)},
      {"__gnu_h2f_ieee", addressOf(ofHalf)},
      {"__truncsfbf2", addressOf(truncateSingleToBfloat)},
      {"__truncdfbf2", addressOf(truncateDoubleToBfloat)},
  };
  return all;
}

} // namespace tressel::codegen::cuda::emulate
