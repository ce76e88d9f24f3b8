// From an ONNX model to a module of the graph dialect.
#pragma once

#include "frontend/onnx/ModelFile.h"
#include "frontend/onnx/Weights.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace tressel::onnx {

struct ImportOptions {
  /// Sizes of the model's symbolic dimensions by name, or what they lie between: then they are symbols of the program.
  std::map<std::string, std::pair<int64_t, int64_t>> dims;
  bool keepDynamic = false; ///< the others are symbols too, else 1
  std::map<std::string, Size>
      sizes; ///< of those that have one already: numbers, or sizes of the program that the graph becomes part of
  /// Values to compute instead of the model's outputs: any that a node gives. Nodes that these do not need are left
  /// out.
  std::vector<std::string> outputs;
  std::vector<Weight> weights; ///< these are arguments behind the inputs instead of constants
};

/// A symbolic dimension and the size it got.
struct BoundDim {
  std::string name;
  Size size = 1;        ///< its name, if it is a symbol, has _ where the model's has other signs
  bool assumed = false; ///< not given: 1 was taken
  std::string why;      ///< what importOpen found to stand against all sizes
};

struct Imported {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< func.func @main, verified; arguments and results carry tressel.name
  std::vector<BoundDim> dims;               ///< in order of first use
};

/// The model's symbolic dimensions with their sizes. Throws InputError for a name that the model does not have and for
/// a size below 1.
std::vector<BoundDim> bindDims(const ModelFile &model, const ImportOptions &options);

/// Imports the whole graph. What depends on shapes and constants alone is computed here, so that the results have
/// static shapes. An op's location is (model file, number of the node), named after the node. Throws UnsupportedError
/// with everything that is not supported at once, and InputError when the model is at fault, naming the node.
Imported import(const ModelFile &model, mlir::MLIRContext &context, const ImportOptions &options = {});

/// The same with every dimension open that can be: where the model is not written for all sizes, the fewest dimensions
/// get 1 (assumed, with `why`) of those that `options` does not name. `options.keepDynamic` is taken for set.
Imported importOpen(const ModelFile &model, mlir::MLIRContext &context, ImportOptions options);

/// Inputs of nodes that their ops do not take, a line for each node: in the nodes that can be reached with the sizes open, or 1. What is
/// wrong for some sizes only is none of it.
std::vector<Malformed> findMalformed(const ModelFile &model, mlir::MLIRContext &context);

} // namespace tressel::onnx
