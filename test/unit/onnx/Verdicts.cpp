// onnx_verdicts: reads models from standard input, each behind its size (4 bytes, the lowest first), and prints a line for each: "imported",
// "malformed", "refused" or "unsupported", and why. Anything else ends it.
#include "frontend/onnx/Import.h"
#include "ir/graph/Graph.h"

#include <algorithm>
#include <cstdio>

using namespace tressel;
namespace importer = tressel::onnx;

static void say(const char *verdict, std::string why) {
  std::ranges::replace(why, '\n', ' ');
  std::printf("%s %s\n", verdict, why.c_str());
}

int main() {
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  unsigned char size[4];
  while (std::fread(size, 1, 4, stdin) == 4) {
    std::string bytes(size[0] | size[1] << 8 | size[2] << 16 | size_t(size[3]) << 24, 0);
    if (std::fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size())
      return 1;
    try {
      importer::import(importer::ModelFile::parse(bytes, "m.onnx"), context);
      say("imported", "");
    } catch (const importer::MalformedInput &e) {
      say("malformed", e.what());
    } catch (const importer::UnsupportedError &e) {
      say("unsupported", e.what());
    } catch (const InputError &e) {
      say("refused", e.what());
    }
  }
  return 0;
}
