#include "test/fuzz/Target.h"
#include "tressel/runtime/Npy.h"

#include <span>

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz::survives([&] {
    runtime::NpyArray array = runtime::parseNpy(std::as_bytes(std::span(data, size)), "input.npy");
    // What was read can be written, and read again.
    std::string again = runtime::formatNpy(array.type, array.data->data());
    if (runtime::parseNpy(std::as_bytes(std::span(again)), "again.npy").type.shape != array.type.shape)
      throw InternalError("written and read again, the shape differs");
  });
}
