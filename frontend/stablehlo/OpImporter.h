// The interface of an op's importer: the op's operands and attributes, checked as they are read, and ops of the graph
// dialect to emit.
#pragma once

#include "ir/graph/Graph.h"
#include "ir/op/OpInfo.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tressel::stablehlo {

using op::Ints;
using NamedAttrs = std::vector<std::pair<std::string_view, op::Attr>>;

/// Thrown by OpImporter::unsupported, caught where all of them are collected.
struct OpUnsupported {
  std::string why;
};

/// State shared by all ops of one import.
struct ImportState {
  ImportState(std::string path, mlir::MLIRContext *context) : path(std::move(path)), builder(context) {}
  std::string path;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Value, mlir::Value> values; ///< of the source, in the graph dialect
};

class OpImporter {
public:
  OpImporter(ImportState &state, mlir::Operation *op);

  std::string name() const { return op_->getName().getStringRef().str(); }
  mlir::Operation *operation() const { return op_; }

  // Operands and results.
  int numInputs() const { return static_cast<int>(op_->getNumOperands()); }
  /// Operand number i in the graph dialect; the module is at fault if it is absent.
  mlir::Value in(int i) const;
  std::vector<mlir::Value> inputs(int first, int count) const;
  /// The module is at fault unless the op has `count` operands.
  void wantInputs(int count) const;
  int numResults() const { return static_cast<int>(op_->getNumResults()); }
  /// The declared type of result i.
  TensorType resultType(int i = 0) const;
  /// The value of result i; the module is at fault if its type is not the declared one.
  void out(int i, mlir::Value value);
  mlir::Region &region(int i) const;

  // Attributes. What an importer did not read is reported as unsupported, so that none is ever ignored by mistake.
  /// Integers of an array or of a dense attribute of any shape; nothing if it is absent.
  std::optional<Ints> ints(const char *name);
  /// One entry per dimension, `fallback` if the attribute is absent.
  Ints intsPerDim(const char *name, int rank, int64_t fallback);
  int64_t integer(const char *name, std::optional<int64_t> fallback = {});
  /// The value of an enumeration: LT of #stablehlo<comparison_direction LT>.
  std::string word(const char *name, std::optional<std::string> fallback = {});
  /// The text inside #stablehlo.dot<...>.
  std::string record(const char *name);
  std::string symbol(const char *name);
  std::string text(const char *name);
  mlir::Attribute attribute(const char *name);
  void ignore(const char *name) { read_.insert(name); }
  /// Throws if an attribute was not read.
  void checkAllRead() const;

  [[noreturn]] void fail(const std::string &message) const;
  [[noreturn]] void unsupported(const std::string &why) const;
  /// "model.mlir:12"
  std::string where() const;

  // Emission.
  /// The results of op `name`; attributes not given have their defaults. Folded when all operands are small constants.
  std::vector<mlir::Value> emitAll(std::string_view name, const std::vector<mlir::Value> &inputs,
                                   const NamedAttrs &attrs = {});
  mlir::Value emit(std::string_view name, const std::vector<mlir::Value> &inputs, const NamedAttrs &attrs = {}) {
    return emitAll(name, inputs, attrs).front();
  }
  /// Of rank 0; `value` must be representable when the type is an integer.
  mlir::Value scalar(DType dtype, double value);
  mlir::Value constant(const op::HostTensor &tensor);

  // What several importers need.
  mlir::Value cast(mlir::Value v, DType to);
  mlir::Value reshape(mlir::Value v, const Shape &shape);
  mlir::Value transpose(mlir::Value v, const Ints &permutation);
  mlir::Value broadcastTo(mlir::Value v, const Shape &shape);
  /// x[starts : limits : strides]; unchanged if that is all of x. An importer has checked the bounds.
  mlir::Value slice(mlir::Value v, const Ints &starts, const Ints &limits, const Ints &strides = {});
  /// x with `interior` elements of `fill` (of rank 0) between neighbours and low and high (negative: cut off) around.
  mlir::Value pad(mlir::Value v, const Ints &low, const Ints &high, const Ints &interior, mlir::Value fill);
  void sameElementType(mlir::Value a, mlir::Value b) const;

private:
  ImportState &state_;
  mlir::Operation *op_;
  mlir::DictionaryAttr properties_;
  std::set<std::string> read_;
};

TensorType typeOf(mlir::Value v);
/// The graph type for a type of the source. i64 represents unsigned integers of 16 and 32 bits, always reduced to their
/// range, which `out` does.
mlir::Type graphType(mlir::Type source);
/// The value of a constant of one element.
std::optional<double> knownScalar(mlir::Value v);

/// `key = [1, 2]` in the text of a record; empty if the key is absent.
Ints listIn(std::string_view record, std::string_view key);
/// `key = 1` in the text of a record.
std::optional<int64_t> integerIn(std::string_view record, std::string_view key);

} // namespace tressel::stablehlo
