// Streams, events, launches, and the library's two exported names.
#include "Entries.h"

#include <cstdlib>
#include <cstring>

namespace tressel::standin {

Stream *streamAt(World &world, const void *handle) {
  if (!handle)
    return current() ? &world.legacy[static_cast<size_t>(current()->card)] : nullptr;
  return at(world.streams, handle);
}
Stream *currentStreamAt(World &world, const void *handle) {
  Stream *stream = streamAt(world, handle);
  return stream && stream->context == current() ? stream : nullptr;
}

Result makeLaunch(World &world, const void *function, const unsigned grid[3], const unsigned block[3], unsigned sharedBytes, void **params, KernelLaunch &launch) {
  const Function *known = at(world.functions, function);
  if (!known)
    return kInvalidHandle;
  const ptx::Kernel &kernel = *known->kernel;
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0 || grid[i] > (i == 0 ? 0x7fffffffu : 65535u) || block[i] > (i == 2 ? 64u : 1024u))
      return kInvalidValue;
    if (kernel.requiredThreads[0] && kernel.requiredThreads[i] != block[i])
      return kInvalidValue;
    threads *= block[i];
    launch.grid[i] = grid[i];
    launch.block[i] = block[i];
  }
  if (threads > 1024)
    return kInvalidValue;
  if (threads > kernel.maxThreads)
    return kOutOfResources;
  if (sharedBytes > static_cast<unsigned>(known->maxDynamicShared) || (known->maxDynamicShared <= (48 << 10) && kernel.staticSharedBytes + sharedBytes > (48u << 10)))
    return kInvalidValue;
  if (!params && !kernel.params.empty())
    return kInvalidValue;
  launch.kernel = known->kernel;
  launch.module = known->module;
  launch.code = known->module->code;
  launch.sharedBytes = sharedBytes;
  if (grid[0] % launch.cluster) // of a graph's node, which keeps it
    return kInvalidValue;
  launch.params.assign(kernel.paramBytes, std::byte(0));
  for (size_t i = 0; i < kernel.params.size(); ++i)
    std::memcpy(launch.params.data() + kernel.params[i].offset, params[world.plant == "swapped-parameters" && i < 2 ? 1 - i : i], kernel.params[i].bytes);
  return kSuccess;
}

Result setCluster(const World &world, const unsigned cluster[3], KernelLaunch &launch) {
  // "CUDA C++ Programming Guide", "Thread Block Clusters": at most 8 blocks on all cards that have clusters, the grid a
  // multiple of them.
  constexpr unsigned kPortable = 8;
  if (cluster[0] == 0 || cluster[1] == 0 || cluster[2] == 0)
    return kInvalidValue;
  if (cluster[0] > kPortable || cluster[1] > kPortable || cluster[0] * cluster[1] * cluster[2] > kPortable)
    return kInvalidClusterSize;
  if (world.architecture < 90 || cluster[1] != 1 || cluster[2] != 1)
    return kNotSupported;
  if (launch.grid[0] % cluster[0])
    return kInvalidValue;
  launch.cluster = cluster[0];
  return kSuccess;
}

namespace {

Result cuStreamCreate(Stream **handle, unsigned flags) {
  return call("cuStreamCreate", Needs::Context, [&](World &world) -> Result {
    if (flags > 1)
      return kInvalidValue;
    auto stream = std::make_unique<Stream>();
    stream->context = current();
    stream->isBlocking = flags == 0;
    stream->timeline = world.newTimeline();
    *handle = stream.get();
    world.streams[stream.get()] = std::move(stream);
    return kSuccess;
  });
}
Result cuStreamDestroy(Stream *handle) { // what is in it goes on
  return call("cuStreamDestroy", Needs::Context, [&](World &world) -> Result {
    Stream *stream = at(world.streams, handle);
    if (!stream)
      return kInvalidHandle;
    world.retire(stream->timeline);
    std::erase_if(world.orphans, [&](const OperationRef &last) { return last->hasRun && last->self.isBefore(world.host); });
    if (stream->last)
      world.orphans.push_back(stream->last);
    world.streams.erase(handle);
    return kSuccess;
  });
}
Result cuStreamSynchronize(Stream *handle) {
  return call("cuStreamSynchronize", Needs::Context, [&](World &world) -> Result {
    Stream *stream = streamAt(world, handle);
    if (!stream)
      return kInvalidHandle;
    world.finish(stream->last);
    return stream->context->sticky;
  });
}
Result cuStreamQuery(Stream *handle) {
  return call("cuStreamQuery", Needs::Context, [&](World &world) -> Result {
    Stream *stream = streamAt(world, handle);
    if (!stream)
      return kInvalidHandle;
    return world.looksEnded(stream->last) ? stream->context->sticky : kNotReady;
  });
}
Result cuStreamWaitEvent(Stream *handle, Event *eventHandle, unsigned) {
  return call("cuStreamWaitEvent", Needs::Context, [&](World &world) -> Result {
    Stream *stream = streamAt(world, handle);
    Event *event = at(world.events, eventHandle);
    if (!stream || !event)
      return kInvalidHandle;
    if (event->recorded && world.plant != "no-wait")
      world.issue(*stream, "a wait", nullptr, {}, {event->recorded});
    return kSuccess;
  });
}
/// The word is the host's, of pinned memory, or the card's; it is looked at when the stream may go on.
Result cuStreamWaitValue32(Stream *handle, uint64_t address, unsigned value, unsigned flags) {
  return call("cuStreamWaitValue32", Needs::Context, [&](World &world) -> Result {
    constexpr unsigned kAtLeast = 0, kEqual = 1, kAnd = 2, kNor = 3, kFlush = 1u << 30;
    Stream *stream = streamAt(world, handle);
    if (!stream)
      return kInvalidHandle;
    const Allocation *a = world.heap.find(address);
    const unsigned kind = flags & ~kFlush;
    if (kind > kNor || address % 4 || !a || a->freedBy || a->end() - address < 4)
      return kInvalidValue;
    const auto *word = reinterpret_cast<const volatile uint32_t *>(a->host + (address - a->begin));
    world.issue(*stream, "a wait for a word", nullptr, {address}, {}, [word, value, kind] {
      const uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      return kind == kAtLeast ? static_cast<int32_t>(now - value) >= 0
             : kind == kEqual ? now == value
             : kind == kAnd   ? (now & value) != 0
                              : ~(now | value) != 0;
    });
    return kSuccess;
  });
}
Result notSupported() {
  return call("a function that is not supported", Needs::Init, [](World &) { return kNotSupported; });
}

Result cuEventCreate(Event **handle, unsigned flags) {
  return call("cuEventCreate", Needs::Context, [&](World &world) -> Result {
    auto event = std::make_unique<Event>();
    event->context = current();
    event->isTiming = !(flags & 2);
    *handle = event.get();
    world.events[event.get()] = std::move(event);
    return kSuccess;
  });
}
Result cuEventDestroy(Event *handle) {
  return call("cuEventDestroy", Needs::Context, [&](World &world) { return world.events.erase(handle) ? kSuccess : kInvalidHandle; });
}
Result cuEventRecord(Event *handle, Stream *streamHandle) {
  return call("cuEventRecord", Needs::Context, [&](World &world) -> Result {
    Event *event = at(world.events, handle);
    Stream *stream = streamAt(world, streamHandle);
    if (!event || !stream || event->context != stream->context)
      return kInvalidHandle;
    const OperationRef last = stream->last;
    event->recorded = world.issue(*stream, "an event", nullptr);
    if (world.plant == "early-event")
      event->recorded = stream->beforeLast;
    stream->beforeLast = last;
    return kSuccess;
  });
}
Result cuEventQuery(Event *handle) {
  return call("cuEventQuery", Needs::Init, [&](World &world) -> Result {
    Event *event = at(world.events, handle);
    if (!event)
      return kInvalidHandle;
    return world.looksEnded(event->recorded) ? event->context->sticky : kNotReady;
  });
}
Result cuEventSynchronize(Event *handle) {
  return call("cuEventSynchronize", Needs::Context, [&](World &world) -> Result {
    Event *event = at(world.events, handle);
    if (!event)
      return kInvalidHandle;
    world.finish(event->recorded);
    return event->context->sticky;
  });
}
Result cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
  return call("cuEventElapsedTime", Needs::Context, [&](World &world) -> Result {
    const Event *begin = at(world.events, from), *end = at(world.events, to);
    if (!begin || !end || !begin->isTiming || !end->isTiming || !begin->recorded || !end->recorded)
      return kInvalidHandle;
    if (!begin->recorded->hasRun || !end->recorded->hasRun)
      return kNotReady;
    *milliseconds = static_cast<float>(static_cast<double>(end->recorded->endNs - begin->recorded->endNs) * 1e-6);
    return kSuccess;
  });
}

struct LaunchConfig { // CUlaunchConfig
  unsigned grid[3], block[3], sharedBytes;
  Stream *stream;
  const LaunchAttribute *attributes;
  unsigned numAttributes;
};
static_assert(sizeof(LaunchConfig) == 56 && sizeof(LaunchAttribute) == 72);

Result launch(const char *name, const LaunchConfig &config, Function *function, void **params) {
  return call(name, Needs::Context, [&](World &world) -> Result {
    Stream *stream = currentStreamAt(world, config.stream);
    if (!stream)
      return kInvalidHandle;
    Node node;
    node.kind = Node::Kind::Kernel;
    if (const Result result =
            makeLaunch(world, function, config.grid, config.block, config.sharedBytes, params, node.kernel);
        result != kSuccess)
      return result;
    for (unsigned i = 0; i < config.numAttributes; ++i) {
      const LaunchAttribute &attribute = config.attributes[i];
      if (const Result result =
              attribute.id == kClusterDimension ? setCluster(world, attribute.value, node.kernel) : kNotSupported;
          result != kSuccess)
        return result;
    }
    const LoadedModule *module = node.kernel.module;
    if (module->context != stream->context)
      return kInvalidHandle;
    const OperationRef issued = world.issue(*stream, World::nameOf(node), world.workOf(node), World::mentionsOf(node));
    issued->module = module;
    return kSuccess;
  });
}
Result cuLaunchKernel(Function *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                      unsigned blockY, unsigned blockZ, unsigned sharedBytes, Stream *stream, void **params, void **) {
  return launch("cuLaunchKernel", {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream, nullptr, 0},
                function, params);
}
Result cuLaunchKernelEx(const LaunchConfig *config, Function *function, void **params, void **) {
  return launch("cuLaunchKernelEx", *config, function, params);
}

/// Work of a library in a stream; null: no such stream.
OperationRef enqueueWork(World &world, void *handle, const char *what, const LibraryBytes *bytes, size_t count,
                         std::function<Meets()> meeting, void (*work)(void *), void *user) {
  Stream *stream = streamAt(world, handle);
  if (!stream)
    return nullptr;
  const std::vector<LibraryBytes> touched(bytes, bytes + count);
  std::vector<uint64_t> mentions;
  for (const LibraryBytes &each : touched)
    mentions.push_back(each.address);
  return world.issue(
      *stream, what,
      [&world, touched, work, user](Operation &operation) -> Result {
        for (const LibraryBytes &each : touched) {
          Allocation *a = world.heap.find(each.address);
          if (!a || a->freedBy || each.bytes > a->end() - each.address)
            return kIllegalAddress;
          world.touch(operation, *a, {each.address - a->begin, each.address - a->begin + each.bytes}, each.isWrite);
        }
        work(user);
        return kSuccess;
      },
      mentions, {}, nullptr, std::move(meeting));
}

/// With null=1 when the library is loaded: what costs the host time, at almost none. Nothing is copied or run, every event has ended.
Result nothing() { return kSuccess; }
Result setCurrentAlone(Context *context) {
  current() = context;
  return kSuccess;
}
const char *const kNothing[] = {"cuLaunchKernel",     "cuLaunchKernelEx",  "cuEventRecord",       "cuEventQuery",
                                "cuEventSynchronize", "cuStreamWaitEvent", "cuStreamSynchronize", "cuMemcpyAsync",
                                "cuMemcpy",           "cuMemsetD8Async",   "cuMemsetD32Async",    "cuGraphLaunch"};

#define ENTRY(name) {#name, reinterpret_cast<void *>(&name)}
const Entry kEntries[] = {ENTRY(cuStreamCreate),
                          ENTRY(cuStreamDestroy),
                          ENTRY(cuStreamSynchronize),
                          ENTRY(cuStreamQuery),
                          ENTRY(cuStreamWaitEvent),
                          ENTRY(cuStreamWaitValue32),
                          {"cuStreamBeginCapture", reinterpret_cast<void *>(&notSupported)},
                          {"cuStreamEndCapture", reinterpret_cast<void *>(&notSupported)},
                          ENTRY(cuEventCreate),
                          ENTRY(cuEventDestroy),
                          ENTRY(cuEventRecord),
                          ENTRY(cuEventQuery),
                          ENTRY(cuEventSynchronize),
                          ENTRY(cuEventElapsedTime),
                          ENTRY(cuLaunchKernel),
                          ENTRY(cuLaunchKernelEx)};

[[maybe_unused]] const bool configured = [] {
  const char *options = std::getenv("TRESSEL_STANDIN");
  if (options && !World::get().configure(options)) {
    std::fprintf(stderr, "stand-in driver: TRESSEL_STANDIN has an option that it does not know: %s\n", options);
    std::abort();
  }
  return true;
}();

} // namespace

std::span<const Entry> streamEntries() { return kEntries; }
void *nullEntry(const char *name) {
  for (const char *nothingToDo : kNothing)
    if (std::strcmp(name, nothingToDo) == 0)
      return reinterpret_cast<void *>(&nothing);
  return std::strcmp(name, "cuCtxSetCurrent") == 0 ? reinterpret_cast<void *>(&setCurrentAlone) : nullptr;
}

} // namespace tressel::standin

using namespace tressel::standin;

extern "C" {
__attribute__((visibility("default"))) Result cuGetProcAddress_v2(const char *name, void **function, int, uint64_t, int *status) {
  if (void *entry = World::get().isNull ? nullEntry(name) : nullptr) {
    *function = entry;
    return kSuccess;
  }
  for (const auto &entries : {deviceEntries(), memoryEntries(), streamEntries(), graphEntries(), tensorEntries()})
    for (const Entry &entry : entries)
      if (std::strcmp(entry.name, name) == 0) {
        *function = entry.function;
        if (status)
          *status = 0;
        return kSuccess;
      }
  *function = nullptr;
  if (status)
    *status = 1; // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return kNotFound;
}

__attribute__((visibility("default"))) extern const Control tressel_standin_control;
const Control tressel_standin_control = {
    [](const char *options) {
      std::lock_guard lock(World::get().mutex);
      return World::get().configure(options);
    },
    [](char *text, size_t bytes) {
      World &world = World::get();
      std::lock_guard lock(world.mutex);
      std::string all;
      for (const std::string &finding : world.findings)
        all += finding + "\n";
      if (bytes) {
        const size_t count = std::min(bytes - 1, all.size());
        std::memcpy(text, all.data(), count);
        text[count] = 0;
      }
      return world.findings.size();
    },
    [] {
      std::lock_guard lock(World::get().mutex);
      return World::get().calls;
    },
    [] { return World::get().failedCall.c_str(); },
    [] {
      std::lock_guard lock(World::get().mutex);
      return World::get().alive();
    },
    [] {
      std::lock_guard lock(World::get().mutex);
      World::get().drain();
    },
    [](void *handle, const char *what, const LibraryBytes *bytes, size_t count, void (*work)(void *), void *user) {
      return call(what, Needs::Context, [&](World &world) -> Result {
        return enqueueWork(world, handle, what, bytes, count, nullptr, work, user) ? kSuccess : kInvalidHandle;
      });
    },
    [](void *handle, const char *what, const LibraryBytes *bytes, size_t count, int (*meets)(void *),
       void (*work)(void *), void *user) {
      uint64_t number = 0;
      call(what, Needs::Init, [&](World &world) -> Result {
        std::function<Meets()> meeting;
        if (meets)
          meeting = [meets, user] { return static_cast<Meets>(meets(user)); };
        if (const OperationRef operation =
                enqueueWork(world, handle, what, bytes, count, std::move(meeting), work, user))
          number = operation->number;
        return kSuccess;
      });
      return number;
    },
    [](uint64_t operation, uint64_t before) {
      World &world = World::get();
      std::lock_guard lock(world.mutex);
      const OperationRef later = world.pendingAt(operation), first = world.pendingAt(before);
      if (later && first)
        later->meets.push_back(first);
    },
    [](void *handle) {
      World &world = World::get();
      std::lock_guard lock(world.mutex);
      const Stream *stream = handle ? at(world.streams, handle) : nullptr;
      const Context *context = handle ? (stream ? stream->context : nullptr) : current();
      return context ? context->card : -1;
    },
    [](uint64_t address, uint64_t bytes) -> void * {
      const Allocation *a = World::get().heap.find(address);
      return a && bytes <= a->end() - address ? a->host + (address - a->begin) : nullptr;
    },
};
}
