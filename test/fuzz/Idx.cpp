#include "frontend/io/Idx.h"
#include "test/fuzz/Target.h"

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string path = fuzz::fileOf(data, size, ".gz");
  return fuzz::survives([&] { io::readIdx(path, 3, 1 << 20); });
}
