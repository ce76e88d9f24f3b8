// What all functions of the driver have in common. Each file of them ends in a table of names.
#pragma once

#include "World.h"

#include <span>

namespace tressel::standin {

using DevicePointer = unsigned long long; ///< CUdeviceptr

/// A function of the driver by its name.
struct Entry {
  const char *name;
  void *function;
};
std::span<const Entry> deviceEntries();
std::span<const Entry> memoryEntries();
std::span<const Entry> streamEntries();
std::span<const Entry> graphEntries();
std::span<const Entry> tensorEntries();
/// Shared memory that a block may ask for, by architecture ("CUDA C++ Programming Guide", technical specifications per
/// compute capability).
int mostSharedBytes(const World &world);
/// What does nothing, instead of that function; null: it works as ever.
void *nullEntry(const char *name);

/// The calling thread's context; null: none was set.
Context *&current();

/// That called cuInit is not this one, but a parent.
bool isOtherProcess(const World &world);

enum class Needs : uint8_t { Nothing, Init, Context };
/// The body of a function: counted, failed on demand, refused in a child process, without a context, and in one that is broken.
template <typename Body> Result call(const char *name, Needs needs, Body &&body) {
  World &world = World::get();
  std::lock_guard lock(world.mutex);
  if (++world.calls == world.failAt) {
    world.failedCall = name;
    return world.error ? world.error : kOutOfMemory;
  }
  if (needs == Needs::Nothing)
    return body(world);
  if (!world.isInitialized || isOtherProcess(world))
    return kNotInitialized;
  if (needs == Needs::Context) {
    Context *context = current();
    if (!context)
      return kInvalidContext;
    if (context->sticky != kSuccess)
      return context->sticky;
  }
  world.mayRun();
  return body(world);
}

/// Of a handle: null if there is no such object, or none any more.
template <typename T> T *at(std::map<const void *, std::unique_ptr<T>> &all, const void *handle) {
  const auto found = all.find(handle);
  return found == all.end() ? nullptr : found->second.get();
}
/// Handle 0 is the legacy stream of the current context. Null: no such stream.
Stream *streamAt(World &world, const void *handle);
/// The same where work is given to it: it has to be the current context's.
Stream *currentStreamAt(World &world, const void *handle);
/// What a kernel launch is made of; the parameters are copied. `grid` and `block` are checked.
Result makeLaunch(World &world, const void *function, const unsigned grid[3], const unsigned block[3], unsigned sharedBytes, void **params, KernelLaunch &launch);
/// Makes so many neighbouring blocks of a launch a cluster, if the card has them.
Result setCluster(const World &world, const unsigned cluster[3], KernelLaunch &launch);
/// CUlaunchAttribute, and its id of a cluster's dimensions; others are not supported.
struct LaunchAttribute {
  int id, pad;
  unsigned value[16];
};
constexpr int kClusterDimension = 4;

} // namespace tressel::standin
