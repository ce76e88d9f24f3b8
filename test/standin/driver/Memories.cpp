// Memory: its allocation, and the copies and fills that are called by themselves.
#include "Entries.h"

#include <cstring>

namespace tressel::standin {
namespace {

Result allocate(World &world, DevicePointer *memory, size_t bytes) {
  if (bytes == 0)
    return kInvalidValue;
  Allocation *a = world.heap.allocateOnCard(current()->card, bytes);
  if (!a)
    return kOutOfMemory;
  *memory = a->begin;
  return kSuccess;
}

/// The allocation that begins there; null: none of this type.
Allocation *begins(World &world, uint64_t address, MemoryType type) {
  Allocation *a = world.heap.find(address);
  return a && a->begin == address && a->type == type && !a->freedBy ? a : nullptr;
}

Result cuMemGetInfo(size_t *free, size_t *total) {
  return call("cuMemGetInfo", Needs::Context, [&](World &world) {
    *total = world.heap.capacity;
    *free = world.heap.capacity - world.heap.used(current()->card);
    return kSuccess;
  });
}
Result cuMemAlloc(DevicePointer *memory, size_t bytes) {
  return call("cuMemAlloc", Needs::Context, [&](World &world) -> Result {
    const Result result = allocate(world, memory, bytes);
    if (result == kSuccess) {
      Allocation &a = *world.heap.find(*memory);
      a.history.add({0, a.bytes}, true, world.hostAccess("its allocation"), world.host);
    }
    return result;
  });
}
Result cuMemFree(DevicePointer memory) {
  return call("cuMemFree", Needs::Context, [&](World &world) -> Result {
    Allocation *a = begins(world, memory, MemoryType::Card);
    if (!a)
      return kInvalidValue;
    world.heap.free(a, world.findUse(*a, "cuMemFree"));
    return kSuccess;
  });
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  return call("cuMemHostAlloc", Needs::Context, [&](World &world) -> Result {
    if (bytes == 0)
      return kInvalidValue;
    Allocation *a = world.heap.allocatePinned(bytes);
    if (!a)
      return kOutOfMemory;
    a->history.add({0, a->bytes}, true, world.hostAccess("its allocation"), world.host);
    *memory = a->host;
    return kSuccess;
  });
}
Result giveBack(const char *name, void *memory, MemoryType type, Result otherwise) {
  return call(name, Needs::Context, [&](World &world) -> Result {
    Allocation *a = begins(world, reinterpret_cast<uint64_t>(memory), type);
    if (!a)
      return otherwise;
    world.heap.free(a, world.findUse(*a, name));
    return kSuccess;
  });
}
Result cuMemFreeHost(void *memory) { return giveBack("cuMemFreeHost", memory, MemoryType::Pinned, kInvalidValue); }
Result cuMemHostUnregister(void *memory) { return giveBack("cuMemHostUnregister", memory, MemoryType::Registered, kNotRegistered); }
Result cuMemHostRegister(void *memory, size_t bytes, unsigned) {
  return call("cuMemHostRegister", Needs::Context, [&](World &world) -> Result {
    if (!memory || bytes == 0)
      return kInvalidValue;
    return world.heap.registerHost(memory, bytes) ? kSuccess : kAlreadyRegistered;
  });
}

//--- In the order of streams --------------------------------------------------------------------------------------------
struct PoolProps { // CUmemPoolProps, as far as it is read
  int allocation, handles, location, device;
};
Result cuMemPoolCreate(Pool **pool, const PoolProps *props) {
  return call("cuMemPoolCreate", Needs::Init, [&](World &world) -> Result {
    if (props->allocation != 1 || props->location != 1 || props->device < 0 || props->device >= world.numCards)
      return kInvalidValue;
    auto made = std::make_unique<Pool>();
    made->card = props->device;
    *pool = made.get();
    world.pools[made.get()] = std::move(made);
    return kSuccess;
  });
}
/// Memory of the pool that was freed in stream order goes, if the host knows that it has been.
void trim(World &world, const Pool *pool) {
  for (bool any = true; any;) {
    any = false;
    for (const auto &[begin, held] : world.heap.all())
      if (held->freedBy && held->pool == pool && !held->history.findUnordered(world.host)) {
        world.heap.free(held.get());
        any = true;
        break;
      }
  }
}
Result cuMemPoolDestroy(Pool *pool) {
  return call("cuMemPoolDestroy", Needs::Init, [&](World &world) -> Result {
    if (!at(world.pools, pool))
      return kInvalidValue;
    trim(world, pool);
    world.pools.erase(pool);
    return kSuccess;
  });
}
Result cuMemPoolSetAttribute(Pool *pool, int attribute, void *) {
  return call("cuMemPoolSetAttribute", Needs::Init, [&](World &world) { return at(world.pools, pool) && attribute == 4 ? kSuccess : kInvalidValue; });
}
Result cuMemPoolTrimTo(Pool *pool, size_t) {
  return call("cuMemPoolTrimTo", Needs::Init, [&](World &world) -> Result {
    if (!at(world.pools, pool))
      return kInvalidValue;
    trim(world, pool);
    return kSuccess;
  });
}
Result cuMemAllocFromPoolAsync(DevicePointer *memory, size_t bytes, Pool *pool, void *handle) {
  return call("cuMemAllocFromPoolAsync", Needs::Context, [&](World &world) -> Result {
    Stream *stream = currentStreamAt(world, handle);
    if (!stream || !at(world.pools, pool))
      return stream ? kInvalidValue : kInvalidHandle;
    if (bytes == 0)
      return kInvalidValue;
    // As early as it may: what this stream knows to have been freed.
    Clock knows = stream->clock;
    knows.join(world.host);
    Allocation *chosen = nullptr;
    for (const auto &[begin, a] : world.heap.all())
      if (a->freedBy && a->pool == pool && a->bytes == bytes && !a->history.findUnordered(knows))
        chosen = a.get();
    if (!chosen)
      chosen = world.heap.allocateOnCard(pool->card, bytes);
    if (!chosen)
      return kOutOfMemory;
    chosen->pool = pool;
    chosen->freedBy = nullptr;
    *memory = chosen->begin;
    world.issue(*stream, "its allocation by cuMemAllocFromPoolAsync",
                [&world, chosen](Operation &operation) {
                  world.touch(operation, *chosen, {0, chosen->bytes}, true);
                  if (world.heap.poisons)
                    std::memset(chosen->host, 0xFF, chosen->bytes);
                  return kSuccess;
                },
                {chosen->begin});
    return kSuccess;
  });
}
Result cuMemFreeAsync(DevicePointer memory, void *handle) {
  return call("cuMemFreeAsync", Needs::Context, [&](World &world) -> Result {
    Stream *stream = currentStreamAt(world, handle);
    Allocation *a = begins(world, memory, MemoryType::Card);
    if (!stream || !a)
      return stream ? kInvalidValue : kInvalidHandle;
    world.issue(*stream, "cuMemFreeAsync",
                [&world, a](Operation &operation) {
                  world.touch(operation, *a, {0, a->bytes}, true);
                  a->freedBy = operation.self.what;
                  return kSuccess;
                },
                {memory});
    return kSuccess;
  });
}

//--- Copies and fills ---------------------------------------------------------------------------------------------------
std::string copyName(uint64_t to, uint64_t from, size_t bytes) {
  Node node;
  node.kind = Node::Kind::Copy;
  node.copy = {to, from, bytes, nullptr};
  return World::nameOf(node);
}

Result copy(const char *name, uint64_t to, uint64_t from, size_t bytes, void *handle, bool isAsync) {
  return call(name, Needs::Context, [&](World &world) -> Result {
    Stream *stream = currentStreamAt(world, handle);
    if (!stream)
      return kInvalidHandle;
    if (bytes == 0)
      return kSuccess;
    if (!to || !from)
      return kInvalidValue;
    auto isPageable = [&](uint64_t address) { return !world.heap.find(address) && !world.heap.isCardAddress(address); };
    CopyWork work{to, from, bytes, nullptr};
    const bool fromPageable = isPageable(from), toPageable = isPageable(to), toCard = world.heap.isCardAddress(to), fromCard = world.heap.isCardAddress(from);
    if (!isAsync && fromPageable && toCard)
      world.finish(stream->last);
    if (fromPageable && toCard) {
      const auto *bytesAt = reinterpret_cast<const std::byte *>(from);
      work.staged = std::make_shared<std::vector<std::byte>>(bytesAt, bytesAt + bytes);
    }
    const OperationRef issued = world.issue(*stream, copyName(to, from, bytes), [&world, work](Operation &o) { return world.runCopy(o, work); },
                                            {to, work.staged ? 0 : from});
    // What the host waits for: all that ends in pageable memory, or has the host at both ends; of the synchronous form also what comes from or goes to pinned
    // memory. Neither waits for what was staged, nor for a copy between cards.
    const bool waits = toPageable || (!toCard && !fromCard) || (!isAsync && !fromPageable && (!toCard || !fromCard));
    if (waits)
      world.finish(issued);
    return waits ? stream->context->sticky : kSuccess;
  });
}
Result cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) { return copy("cuMemcpy", to, from, bytes, nullptr, false); }
Result cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, void *stream) { return copy("cuMemcpyAsync", to, from, bytes, stream, true); }

Result fill(const char *name, const FillWork &work, void *handle) {
  return call(name, Needs::Context, [&](World &world) -> Result {
    Stream *stream = currentStreamAt(world, handle);
    if (!stream)
      return kInvalidHandle;
    if (work.to % work.elementBytes != 0)
      return kInvalidValue;
    Node node;
    node.kind = Node::Kind::Fill;
    node.fill = work;
    world.issue(*stream, World::nameOf(node), world.workOf(node), World::mentionsOf(node));
    return kSuccess;
  });
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, void *stream) {
  return fill("cuMemsetD8Async", {.to = to, .value = value, .elementBytes = 1, .width = count}, stream);
}
Result cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count, void *stream) {
  return fill("cuMemsetD16Async", {.to = to, .value = value, .elementBytes = 2, .width = count}, stream);
}
Result cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, void *stream) {
  return fill("cuMemsetD32Async", {.to = to, .value = value, .elementBytes = 4, .width = count}, stream);
}
Result cuMemsetD2D32Async(DevicePointer to, size_t pitch, unsigned value, size_t width, size_t height, void *stream) {
  return fill("cuMemsetD2D32Async", {.to = to, .pitch = pitch, .value = value, .elementBytes = 4, .width = width, .height = height}, stream);
}

#define ENTRY(name) {#name, reinterpret_cast<void *>(&name)}
const Entry kEntries[] = {ENTRY(cuMemGetInfo), ENTRY(cuMemAlloc), ENTRY(cuMemFree), ENTRY(cuMemHostAlloc), ENTRY(cuMemFreeHost), ENTRY(cuMemHostRegister),
                          ENTRY(cuMemHostUnregister), ENTRY(cuMemPoolCreate), ENTRY(cuMemPoolDestroy), ENTRY(cuMemPoolSetAttribute), ENTRY(cuMemPoolTrimTo),
                          ENTRY(cuMemAllocFromPoolAsync),
                          ENTRY(cuMemFreeAsync), ENTRY(cuMemcpy), ENTRY(cuMemcpyAsync), ENTRY(cuMemsetD8Async), ENTRY(cuMemsetD16Async),
                          ENTRY(cuMemsetD32Async), ENTRY(cuMemsetD2D32Async)};

} // namespace

std::span<const Entry> memoryEntries() { return kEntries; }

} // namespace tressel::standin
