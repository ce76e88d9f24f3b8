#include "frontend/io/Npz.h"
#include "test/fuzz/Target.h"

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string path = fuzz::fileOf(data, size, ".npz");
  return fuzz::survives([&] { io::readNpz(path, int64_t(64) << 20); });
}
