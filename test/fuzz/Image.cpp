#include "frontend/io/Images.h"
#include "test/fuzz/Target.h"

#include <span>

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz::survives([&] {
    const io::Pixels pixels = io::decodeImage(std::as_bytes(std::span(data, size)), "image", size % 2 ? 1 : 3);
    if (static_cast<int64_t>(pixels.bytes.size()) != pixels.channels * pixels.height * pixels.width)
      throw InternalError("as many bytes as pixels were expected");
  });
}
