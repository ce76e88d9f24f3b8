// tressel-tblgen: generates the op table, the frontend's functions and the op page from the records in ir/ops.
#include "mlir/Tools/mlir-tblgen/MlirTblgenMain.h"

int main(int argc, char **argv) { return mlir::MlirTblgenMain(argc, argv); }
