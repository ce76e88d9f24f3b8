// Models: the same way as the command line goes, from the file to the schedule. TRESSEL_FUZZ_SUFFIX is the format's.
#include "test/fuzz/Target.h"
#include "tools/tressel/Compiler.h"

using namespace tressel;

extern "C" tool::CompilerLibrary *tressel_compiler_library();

namespace {

/// Work grows with what an input says, not with its length, and without end: loops in loops, sizes. What is large is
/// asked about, not compiled.
bool isSmall(const tool::ModelInfo &info) {
  int ops = 0;
  for (const auto &[name, count] : info.opCounts)
    ops += count;
  return ops <= 200 && info.weightBytes <= (1 << 20);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static tool::CompilerLibrary *library = tressel_compiler_library();
  const std::string path = fuzz::fileOf(data, size, TRESSEL_FUZZ_SUFFIX);
  bool small = false;
  fuzz::survives([&] { small = isSmall(library->describe(path, /*checksInputs=*/true)); });
  if (!small)
    return 0;
  for (bool keepDynamic : {false, true})
    fuzz::survives([&] {
      tool::CompileRequest request;
      request.path = path;
      request.cpu = "baseline";
      request.keepDynamic = keepDynamic;
      request.emit = "schedule";
      request.sink = [](std::string) {};
      library->compile(request);
    });
  return 0;
}
