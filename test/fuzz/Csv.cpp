#include "frontend/io/Csv.h"
#include "test/fuzz/Target.h"

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz::survives([&] {
    io::parseCsv({reinterpret_cast<const char *>(data), size}, "table", ',', [](std::vector<std::string> &fields, int64_t line) {
      if (fields.empty() || line < 1)
        throw InternalError("a row without fields");
    });
  });
}
