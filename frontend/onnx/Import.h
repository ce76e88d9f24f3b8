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
  /// Sizes of the model's symbolic dimensions by name, or ranges: then they are symbols of the program.
  std::map<std::string, std::pair<int64_t, int64_t>> dims;
  bool keepDynamic = false; ///< dimensions that are not in `dims` are symbols too, else 1
  std::map<std::string, Size>
      sizes; ///< of those that have one already: numbers, or sizes of the program that the graph becomes part of
  /// Values to compute instead of the model's outputs: any that a node gives. Nodes that these do not need are left
  /// out.
  std::vector<std::string> outputs;
  std::vector<Weight> weights; ///< arguments after the inputs, instead of constants
};

/// A symbolic dimension and the size it got.
struct BoundDim {
  std::string name;
  Size size = 1;        ///< its name, if it is a symbol, has _ where the model's has other signs
  bool assumed = false; ///< not given: 1 was taken
  std::string why;      ///< from importOpen: why the dimension cannot stay open
};

struct Imported {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< func.func @main, verified; arguments and results carry tressel.name
  std::vector<BoundDim> dims;               ///< in order of first use
};

/// The model's symbolic dimensions with their sizes. Throws InputError for a name that the model does not have and for
/// a size below 1.
std::vector<BoundDim> bindDims(const ModelFile &model, const ImportOptions &options);

/// Imports the whole graph. Values that depend on shapes and constants alone are computed here, so that results have
/// static shapes. An op's location is (model file, number of the node), named after the node. Throws UnsupportedError
/// that lists everything unsupported, and InputError that names the node when the model is at fault.
Imported import(const ModelFile &model, mlir::MLIRContext &context, const ImportOptions &options = {});

/// Keeps every dimension open that can be. Where the model does not support all sizes, as few dimensions as possible of
/// those that `options` does not name become 1 (assumed, with `why`). Implies `options.keepDynamic`.
Imported importOpen(const ModelFile &model, mlir::MLIRContext &context, ImportOptions options);

/// Inputs of nodes that their ops do not accept, one per node, among the nodes that can be reached with open sizes or
/// with sizes of 1. Excludes what is wrong for some sizes only.
std::vector<Malformed> findMalformed(const ModelFile &model, mlir::MLIRContext &context);

} // namespace tressel::onnx
