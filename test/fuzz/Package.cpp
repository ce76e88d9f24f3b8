#include "runtime/package/PackageFormat.h"
#include "test/fuzz/Target.h"
#include "tressel/runtime/Package.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto *bytes = static_cast<std::byte *>(std::aligned_alloc(64, (size + 64) / 64 * 64));
  std::shared_ptr<const void> owner(bytes, [](const void *p) { std::free(const_cast<void *>(p)); });
  if (size)
    std::memcpy(bytes, data, size);
  return fuzz::survives([&] {
    runtime::Package package = runtime::Package::open(std::span(bytes, size), owner);
    for (const std::string &name : package.functions()) {
      for (const runtime::StateDesc &state : package.schedule(name).states)
        package.stateValue(state.name);
      package.levels(name);
      package.executable(name);
      // Nothing is run, since what code does is the package's own affair; states are prepared by code.
      if (package.schedule(name).prepare.commands.empty())
        runtime::Context context = package.context({.max_bytes = int64_t(64) << 20}, name);
    }
  });
}

/// The metadata, with checksums that fit: otherwise every change is refused as damage.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  using runtime::PackageHeader;
  if (size < sizeof(PackageHeader) || seed % 8 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  PackageHeader header;
  std::memcpy(&header, data, sizeof header);
  uint8_t *metadata = data + sizeof header;
  size_t length = std::min<uint64_t>(header.metadataBytes, size - sizeof header);
  if (!length)
    return LLVMFuzzerMutate(data, size, maxSize);
  LLVMFuzzerMutate(metadata, length, length); // shorter metadata keeps its old end
  if (seed % 8 == 1) {
    LLVMFuzzerMutate(data, sizeof header, sizeof header);
    std::memcpy(&header, data, sizeof header);
  }
  header.metadataChecksum = runtime::checksum(std::as_bytes(std::span(metadata, length)));
  header.headerChecksum =
      runtime::checksum(std::as_bytes(std::span(reinterpret_cast<uint8_t *>(&header), offsetof(PackageHeader, headerChecksum))));
  std::memcpy(data, &header, sizeof header);
  return size;
}
