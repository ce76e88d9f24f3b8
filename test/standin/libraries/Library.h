// What the stand-ins for NVIDIA's libraries share: the driver that they run on, refusals, and operations of streams.
#pragma once

#include "../driver/Control.h"
#include "LibraryControl.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <vector>

#define PUBLIC extern "C" __attribute__((visibility("default")))

namespace tressel::standin {

/// The stand-in driver of this process; null: it has another, or none.
inline const Control *driver() {
  static const Control *const found = [] {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? static_cast<const Control *>(dlsym(library, "tressel_standin_control")) : nullptr;
  }();
  return found;
}

inline int refuse(LibraryControl &state, int status, const char *why) {
  ++state.refused;
  state.lastRefusal = why;
  return status;
}

/// Where bytes of a card are, while an operation runs.
inline std::byte *hostOf(uint64_t address, uint64_t bytes) {
  return static_cast<std::byte *>(driver()->host(address, bytes));
}

/// An operation of a stream that calls work->compute() when it runs. False: the driver does not take it.
template <typename Work>
bool issue(void *stream, const char *what, const std::vector<LibraryBytes> &bytes, std::unique_ptr<Work> work) {
  auto run = [](void *user) { std::unique_ptr<Work>(static_cast<Work *>(user))->compute(); };
  if (driver()->enqueue(stream, what, bytes.data(), bytes.size(), run, work.get()) != 0)
    return false;
  static_cast<void>(work.release()); // the operation's
  return true;
}

/// What a library says its version is: a variable of the environment, else `version`.
inline size_t versionFrom(const char *variable, size_t version) {
  const char *other = std::getenv(variable);
  return other ? static_cast<size_t>(std::atoll(other)) : version;
}

} // namespace tressel::standin
