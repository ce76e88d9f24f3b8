// Tensors in and out of a process that Python owns: C functions for dlpack_oracle.py.
#include <tressel/tressel.h>

#include <cstring>
#include <string>

using namespace tressel;

namespace {
thread_local std::string lastError;
template <typename Fn> void *guarded(Fn fn) {
  try {
    return fn();
  } catch (const std::exception &e) {
    lastError = e.what();
    return nullptr;
  }
}
} // namespace

extern "C" {
const char *bridge_error() { return lastError.c_str(); }
void *bridge_import(void *managed, int versioned) {
  return guarded([&]() -> void * {
    return new Tensor(versioned ? from_dlpack(static_cast<DLManagedTensorVersioned *>(managed))
                                : from_dlpack(static_cast<DLManagedTensor *>(managed)));
  });
}
void *bridge_export(void *tensor, int versioned, int copy) {
  return guarded([&]() -> void * {
    const Tensor &t = *static_cast<Tensor *>(tensor);
    return versioned ? static_cast<void *>(to_dlpack(t, {.copy = copy != 0}))
                     : to_dlpack_unversioned(t, {.copy = copy != 0});
  });
}
/// Another tensor: x + x.
void *bridge_twice(void *tensor) {
  return guarded(
      [&]() -> void * { return new Tensor(*static_cast<Tensor *>(tensor) + *static_cast<Tensor *>(tensor)); });
}
const void *bridge_data(void *tensor) { return static_cast<Tensor *>(tensor)->data(); }
void bridge_free(void *tensor) {
  delete static_cast<Tensor *>(tensor);
  wait_all();
}
}
