// Programs of symbolic sizes: compiled once, run at many sizes, compared with the interpreter at each.
#pragma once

#include "codegen/Compile.h"
#include "ir/interpreter/Compare.h"
#include "ir/op/OpInfo.h"
#include "tressel/runtime/Executable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace tressel::test {

/// Writes a func.func @main op by op, with inferred types.
class ProgramBuilder {
public:
  explicit ProgramBuilder(mlir::MLIRContext &context);
  mlir::Value input(const TensorType &type, std::string name = "");
  mlir::Value state(const TensorType &type, std::string name);
  /// Attributes by name; the others have their defaults. Throws Error with what `infer` finds.
  mlir::Value op(std::string_view name, std::initializer_list<mlir::Value> operands,
                 std::initializer_list<std::pair<const char *, op::Attr>> attrs = {});
  /// All results, for attributes that are complete.
  std::vector<mlir::Value> call(const op::OpInfo &op, const std::vector<mlir::Value> &operands, const op::Attrs &attrs);
  mlir::OwningOpRef<mlir::ModuleOp> finish(const std::vector<mlir::Value> &results);

private:
  mlir::Value argument(const TensorType &type, std::string name, llvm::StringRef attribute);
  mlir::OpBuilder builder_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp main_;
  std::vector<std::pair<std::string, std::string>> names_; ///< of the arguments: attribute and value
};

/// A module kept for the interpreter beside its compiled form.
class SizedRun {
public:
  /// Compiles a copy. Throws Error.
  explicit SizedRun(mlir::ModuleOp module, const codegen::CompileOptions &options = {});

  /// Runs both on seeded inputs for these values of all symbols; what differs, or "".
  std::string differsAt(const dim::Values &dims, op::interp::Tolerance tolerance, uint64_t seed = 7);
  const runtime::Schedule &schedule() const { return executable_->schedule(); }
  runtime::Context &context() { return *context_; }

private:
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::shared_ptr<const runtime::Executable> executable_;
  std::unique_ptr<runtime::Context> context_;
};

/// Values for symbols, in pairs.
dim::Values sizes(std::initializer_list<std::pair<Size, int64_t>> values);

} // namespace tressel::test
