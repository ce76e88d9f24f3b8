// ONNX's importer alone, which the target `onnx` reaches with fewer inputs a second: described and imported, with fixed and with symbolic sizes.
#include "frontend/onnx/Import.h"
#include "ir/graph/Graph.h"
#include "test/fuzz/Target.h"

using namespace tressel;
namespace importer = tressel::onnx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry all;
    graph::registerDialects(all);
    return all;
  }();
  return fuzz::survives([&] {
    const importer::ModelFile model = importer::ModelFile::parse({reinterpret_cast<const char *>(data), size}, "m.onnx", "/nonexistent");
    int nodes = 0;
    for (const auto &[op, count] : model.opCounts())
      nodes += count;
    if (nodes > 200 || model.weightBytes() > 1 << 20) // work grows with what an input says, not with its length
      return;
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([](mlir::Diagnostic &) {});
    model.unsupportedOps();
    importer::findMalformed(model, context);
    for (bool keepDynamic : {false, true})
      fuzz::survives([&] {
        importer::ImportOptions options;
        options.keepDynamic = keepDynamic;
        importer::import(model, context, options);
      });
  });
}
