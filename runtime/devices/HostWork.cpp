#include "HostWork.h"

#include "runtime/types/Concat.h"
#include "runtime/types/KernelStatus.h"
#include "tressel/runtime/Communicator.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tressel::runtime {
namespace {

constexpr int64_t kSplitBytes = int64_t(1) << 20;

int32_t runChunk(const HostKernel &kernel, const KernelDesc &desc, const KernelArgs &args, int64_t begin, int64_t end) {
  FloatScope scope(desc.floats);
  if (!kernel.epilogue)
    return kernel.fn(&args, begin, end);
  for (int64_t to; begin < end; begin = to) { // the epilogue finds in the cache what the kernel has written
    to = std::min(begin + desc.grain.number(), end);
    scope.enter(desc.floats);
    if (const int32_t status = kernel.fn(&args, begin, to); status != kKernelOk)
      return status;
    scope.enter(desc.epilogueFloats);
    if (const int32_t status = kernel.epilogue(&args, begin, to); status != kKernelOk)
      return status;
  }
  return kKernelOk;
}

/// Scratch memory of a thread, for all workers; grows.
std::byte *scratchFor(int64_t bytes) {
  struct Free {
    void operator()(std::byte *p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local int64_t size = 0;
  if (bytes > size) {
    memory.reset();
    size = 0;
    memory.reset(static_cast<std::byte *>(::operator new(static_cast<size_t>(bytes), std::align_val_t(64))));
    size = bytes;
  }
  return memory.get();
}

DeviceFailureRef launch(const DeviceCommand &c, std::span<void *const> addresses, DeviceRef device, ThreadPool &pool) {
  const KernelDesc &desc = *c.desc;
  const auto *kernel = dynamic_cast<const HostKernel *>(c.kernel);
  if (!kernel || !kernel->fn)
    return std::make_shared<DeviceFailure>(FailureKind::Unsupported,
                                           concat("kernel '", desc.symbol, "' was not loaded for ", nameOf(device)), device, c.tag);
  if (desc.range.number() <= 0)
    return nullptr;
  const int64_t stride = (desc.scratchBytes + 63).number() / 64 * 64;
  KernelFailure why;
  KernelArgs base = {};
  base.buffers = addresses.data();
  base.scalars = c.scalars.empty() ? nullptr : c.scalars.data();
  base.scratch = stride ? scratchFor(stride * pool.numThreads()) : nullptr;
  base.state = kernel->state;
  base.failure = &why;
  std::atomic<int32_t> status{kKernelOk};
  pool.parallelFor(desc.range.number(), desc.grain.number(), [&](int64_t begin, int64_t end, int worker) {
    KernelArgs args = base;
    args.worker = worker;
    if (args.scratch)
      args.scratch = static_cast<std::byte *>(args.scratch) + worker * stride;
    if (const int32_t code = runChunk(*kernel, desc, args, begin, end); code != kKernelOk) {
      int32_t none = kKernelOk;
      status.compare_exchange_strong(none, code, std::memory_order_relaxed);
    }
  });
  if (status == kKernelOk)
    return nullptr;
  std::string message = status == kKernelSaysWhy ? why.take() : concat(describeStatus(status), " in kernel '", desc.symbol, "'");
  return std::make_shared<DeviceFailure>(FailureKind::Kernel, std::move(message), device, c.tag);
}

void copyBytes(void *to, const void *from, int64_t bytes, ThreadPool &pool) {
  pool.parallelFor(bytes, kSplitBytes, [&](int64_t begin, int64_t end, int) {
    std::memmove(static_cast<std::byte *>(to) + begin, static_cast<const std::byte *>(from) + begin,
                 static_cast<size_t>(end - begin));
  });
}

void fillBytes(void *to, int64_t bytes, uint64_t value, unsigned elementBytes, ThreadPool &pool) {
  uint64_t pattern = 0; // of eight bytes: it serves every element size
  std::memcpy(&pattern, &value, elementBytes);
  for (unsigned n = elementBytes; n < 8; n *= 2)
    pattern |= pattern << (8 * n);
  pool.parallelFor((bytes + 7) / 8, kSplitBytes / 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(static_cast<std::byte *>(to) + i * 8, &pattern,
                  static_cast<size_t>(std::min<int64_t>(8, bytes - i * 8)));
  });
}

} // namespace

std::vector<DeviceKernelRef> loadOnHost(std::span<const KernelCode> kernels, const DeviceCaps &device) {
  std::vector<DeviceKernelRef> loaded;
  for (const KernelCode &code : kernels) {
    if (!code.fn && device.computes)
      throwError<InputError>("kernel '", code.desc->symbol, "' is code for a GPU; ", device.name, " (", device.implementation,
                             ") runs functions of this process");
    loaded.push_back(std::make_shared<HostKernel>(code));
  }
  return loaded;
}

DeviceFailureRef failureOfPart(const DeviceFailureRef &failure, DeviceRef device, uint64_t tag) {
  if (!failure)
    return nullptr;
  auto own = std::make_shared<DeviceFailure>(*failure);
  own->device = device;
  own->tag = tag;
  return own;
}

void checkShape(const DeviceCommand &c) {
  const char *wrong = nullptr;
  switch (c.kind) {
  case DeviceCommandKind::Launch:
    wrong = !c.kernel || !c.desc ? "a launch has a kernel" : nullptr;
    break;
  case DeviceCommandKind::Copy:
    wrong = c.regions.size() != 2 || c.regions[0].bytes != c.regions[1].bytes
                ? "a copy has a source and a destination of as many bytes"
                : nullptr;
    break;
  case DeviceCommandKind::Fill:
    wrong = c.regions.size() != 1 ? "a fill has one destination" : nullptr;
    break;
  case DeviceCommandKind::HostCall:
    wrong = !c.host && (!c.kernel || !c.desc) ? "a host call has a function" : nullptr;
    break;
  case DeviceCommandKind::Collective:
    if (c.collective && c.collective->communicator)
      c.collective->communicator->check(*c.collective, c.regions);
    else if (!c.collective || c.collective->members.empty() || c.regions.empty() || c.regions.size() > 2)
      wrong = "a part of a collective has a source and a destination";
    break;
  case DeviceCommandKind::Signal:
    wrong = !c.signal.semaphore ? "a signal has a semaphore" : nullptr;
    break;
  case DeviceCommandKind::Wait:
    break;
  }
  for (const Event &wait : c.waits)
    if (!wait.semaphore)
      wrong = "a wait is for an event of some semaphore";
  if (wrong)
    throwError<Error>("a command that means nothing: ", wrong);
}

DeviceFailureRef workOnHost(const DeviceCommand &c, std::span<void *const> addresses, DeviceRef device,
                            ThreadPool &pool) {
  switch (c.kind) {
  case DeviceCommandKind::Launch:
    return launch(c, addresses, device, pool);
  case DeviceCommandKind::Copy:
    copyBytes(addresses[1], addresses[0], c.regions[0].bytes, pool);
    break;
  case DeviceCommandKind::Fill:
    fillBytes(addresses[0], c.regions[0].bytes, c.fillValue, static_cast<unsigned>(sizeOf(c.type)), pool);
    break;
  case DeviceCommandKind::Collective:
    if (c.collective->communicator)
      return failureOfPart(c.collective->communicator->perform(c, addresses), device, c.tag);
    return std::make_shared<DeviceFailure>(FailureKind::Unsupported,
                                           "a collective of several devices is not done by one", device, c.tag);
  case DeviceCommandKind::HostCall:
    if (c.kernel)
      return launch(c, addresses, device, pool);
    if (const int32_t status = c.host(c.user); status != kKernelOk)
      return std::make_shared<DeviceFailure>(FailureKind::Kernel, concat("a host call returned ", status), device,
                                             c.tag);
    break;
  case DeviceCommandKind::Wait:
  case DeviceCommandKind::Signal:
    break;
  }
  return nullptr;
}

uint64_t checksum(const void *bytes, int64_t count) {
  // FNV over words, mixed at the end: any changed bit changes it.
  uint64_t sum = 0xcbf29ce484222325u;
  const auto *p = static_cast<const std::byte *>(bytes);
  for (; count >= 8; count -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    sum = (sum ^ word) * 0x100000001b3u;
    sum ^= sum >> 29;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, p, static_cast<size_t>(count));
  sum = (sum ^ rest) * 0x100000001b3u;
  return sum ^ sum >> 32;
}

} // namespace tressel::runtime
