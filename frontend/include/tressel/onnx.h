// ONNX models as compiled programs.
//
//   onnx::Compiled net = onnx::compile("model.onnx", {.dims = {{"batch", 4}}});
//   net.run({{x.data()}}, {{y.data()}});      // dense row-major arrays in the order of net.inputs() and net.outputs()
#pragma once

#include "tressel/runtime/Error.h"
#include "tressel/runtime/Handle.h"
#include "tressel/runtime/Types.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tressel::onnx {

struct CompileOptions {
  std::map<std::string, int64_t> dims; ///< sizes of the model's symbolic dimensions by name; 1 for those not given
};

/// An input or output of a compiled model.
struct Port {
  std::string name;
  TensorType type;
};

/// A model compiled for this machine, with the memory to run it. Movable, not copyable; one thread at a time. One that
/// was moved from throws Error.
class Compiled {
public:
  Compiled(Compiled &&) noexcept;
  Compiled &operator=(Compiled &&) noexcept;
  ~Compiled();

  const std::vector<Port> &inputs() const;
  const std::vector<Port> &outputs() const;
  /// Computes the outputs; no memory is allocated. The arrays hold as many bytes as `Port::type` says and do not
  /// overlap. Throws RuntimeError (an index outside of its dimension, say); the outputs are undefined then.
  void run(std::span<const void *const> inputs, std::span<void *const> outputs);

private:
  friend Compiled compile(const std::string &, const CompileOptions &);
  Compiled();
  struct Impl;
  runtime::Held<std::unique_ptr<Impl>> impl_;
};

/// The sizes and names of the first input's dimensions as the model declares them; kDynamic where a size has a name.
struct DeclaredShape {
  std::vector<Size> sizes;
  std::vector<std::string> names;
};
/// Input number `index` of a model file. Throws InputError.
DeclaredShape declared_input(const std::string &path, size_t index);

/// Reads and compiles a model. Throws InputError: the file is damaged, or asks for what Tressel does not have
/// (everything at once), or has no dimension of a given name.
Compiled compile(const std::string &path, const CompileOptions &options = {});

} // namespace tressel::onnx
