// tressel-opt: parses, verifies, runs passes on the command line, prints. For tests and for looking at single passes.
#include "ir/graph/Graph.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tressel::graph::registerDialects(registry);
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tressel's optimizer driver\n", registry));
}
