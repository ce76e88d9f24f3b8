// From StableHLO to a module of the graph dialect.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tressel/runtime/Error.h"

#include <string>
#include <string_view>
#include <vector>

namespace tressel::stablehlo {

/// Which form of StableHLO a text is in. Only the generic one can be read without the dialect's own parser.
enum class Form { None, Generic, Pretty };
/// Looks for the dialect's ops, `"stablehlo.add"(` or `stablehlo.add`, outside of comments.
Form detectForm(std::string_view text);
/// The error message for a file in the pretty form.
std::string prettyFormMessage(const std::string &path);

/// An op, or a use of it, that Tressel cannot import.
struct Unsupported {
  std::string op;    ///< "stablehlo.fft"
  std::string where; ///< "model.mlir:12"
  std::string why;   ///< empty: there is no such op in the table
};

/// The module is well formed, but needs what Tressel does not have. `what()` lists everything at once.
struct UnsupportedError : InputError {
  UnsupportedError(const std::string &file, std::vector<Unsupported> list);
  std::vector<Unsupported> list;
};

/// Converts `source` (parsed with unregistered dialects allowed) to a module of one func.func @main in the graph
/// dialect, with the functions that @main calls inlined. An op's location is that of the op it comes from. `path` is
/// for messages. Throws UnsupportedError that lists everything unsupported, and InputError when the module is at fault,
/// naming the op and its line.
mlir::OwningOpRef<mlir::ModuleOp> import(mlir::ModuleOp source, const std::string &path);

} // namespace tressel::stablehlo
