#include "frontend/onnx/TensorData.h"
#include "test/fuzz/Target.h"

using namespace tressel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string path = fuzz::fileOf(data, size, ".pb");
  return fuzz::survives([&] { tressel::onnx::loadTensorFile(path); });
}
