// Errors of an import: what Tressel does not support, apart from what is wrong with the model, and nodes with malformed
// inputs.
#pragma once

#include "tressel/runtime/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tressel::onnx {

/// An op, or a use of it, that Tressel cannot import.
struct Unsupported {
  std::string op;    ///< "Conv", "com.microsoft.FusedConv"; "input" and "tensor" for what is no op
  std::string node;  ///< the node's name, or "#12" for the twelfth node when it has none
  int64_t opset = 0; ///< the version of the op's domain that the model asks for; 0 where there is none
  std::string why;   ///< empty: there is no such op in the table
};

/// The model is well formed, but needs what Tressel does not have. `what()` lists everything at once.
struct UnsupportedError : InputError {
  UnsupportedError(const std::string &file, std::vector<Unsupported> list);
  std::vector<Unsupported> list;
};

/// A node's input that its op does not accept in any implementation.
struct Malformed {
  std::string op, node; ///< as in Unsupported
  std::string why;      ///< "input 7 'P' needs 2 dimensions, but is f32[2]"
};
struct MalformedInput : InputError {
  MalformedInput(const std::string &file, const Malformed &input)
      : InputError(file + ": node '" + input.node + "' (" + input.op + "): " + input.why), input(input) {}
  Malformed input;
};

} // namespace tressel::onnx
