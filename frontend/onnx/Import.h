// From an ONNX model to a module of the graph dialect.
#pragma once

#include "frontend/onnx/Model.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace tressel::onnx {

struct ImportOptions {
  std::map<std::string, int64_t> dims; ///< sizes of the model's symbolic dimensions, by name
};

/// A symbolic dimension and the size it got.
struct BoundDim {
  std::string name;
  int64_t size = 1;
  bool assumed = false; ///< not given: 1 was taken
};

struct Imported {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< func.func @main, verified; arguments and results carry tressel.name
  std::vector<BoundDim> dims;               ///< in order of first use
};

/// The model's symbolic dimensions with their sizes. Throws InputError for a name that the model does not have and for
/// a size below 1.
std::vector<BoundDim> bindDims(const Model &model, const ImportOptions &options);

/// Imports the whole graph. What depends on shapes and constants alone is computed here, so that the results have
/// static shapes. An op's location is (model file, number of the node), named after the node. Throws UnsupportedError
/// with everything that is not supported at once, and InputError when the model is at fault, naming the node.
Imported import(const Model &model, mlir::MLIRContext &context, const ImportOptions &options = {});

} // namespace tressel::onnx
