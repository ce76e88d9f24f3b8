#include "runtime/files/Safetensors.h"
#include "test/fuzz/Target.h"

#include <algorithm>
#include <cstring>

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string path = fuzz::fileOf(data, size, ".safetensors");
  return fuzz::survives([&] {
    io::SafetensorsFile file(path);
    for (const io::SafetensorsEntry &entry : file.entries())
      if (entry.unsupported.empty())
        file.read(entry);
  });
}

/// The header, with a length that fits it: bytes changed anywhere are mostly refused for the length alone.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  uint64_t header = 0;
  if (size < 10 || seed % 4 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(&header, data, 8);
  header = std::min<uint64_t>(header, size - 8);
  std::string rest(data + 8 + header, data + size);
  rest.resize(std::min(rest.size(), maxSize / 2));
  size_t now = LLVMFuzzerMutate(data + 8, header, maxSize - 8 - rest.size());
  std::memcpy(data + 8 + now, rest.data(), rest.size());
  header = now;
  std::memcpy(data, &header, 8);
  return 8 + now + rest.size();
}
