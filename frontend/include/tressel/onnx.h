// ONNX models as compiled programs, and as modules that can be trained.
//
//   onnx::Compiled net = onnx::compile("model.onnx", {.dims = {{"batch", 4}}});
//   net.run({{x.data()}}, {{y.data()}});      // dense row-major arrays in the order of net.inputs() and net.outputs()
//
//   onnx::Model net = onnx::load("resnet.onnx");                  // weights are parameters, by their names in the file
//   auto f = jit([net](Tensor image) { return softmax(net((image - 0.45) / 0.225)); });
//
//   struct Classifier : nn::Module<Classifier> {                  // a new head on values from within
//     onnx::Model body = child("body", onnx::load("resnet.onnx", {.outputs = {"features"}}));
//     nn::Dense head = child("head", nn::Dense(10));
//     Tensor forward(Tensor x) const { return head(body(x)); }
//   };
#pragma once

#include <tressel/module.h>

#include "tressel/runtime/Error.h"
#include "tressel/runtime/Handle.h"
#include "tressel/runtime/Types.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
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

/// Reads and compiles a model. Throws InputError if the file is damaged, needs what Tressel does not support
/// (everything is listed), or has no dimension of a given name.
Compiled compile(const std::string &path, const CompileOptions &options = {});

/// An input of a model: what the file declares, or what a node further on needs.
struct Input {
  std::string name;
  DType dtype = f32;
  DeclaredShape shape;
};

struct LoadOptions {
  /// Values to compute instead of the model's outputs, by their names in the graph. Nodes, inputs and weights that
  /// these do not need are dropped.
  std::vector<std::string> outputs;
  /// Weights by name that stay constants of the program. In a pattern, * stands for any characters, ? for one.
  std::vector<std::string> constants;
};

/// A model as a function of tensors whose weights are parameters. A call runs the ops of its nodes, or adds them to the
/// program that is being traced; each kind of call is imported once. Named sizes are taken from the tensors, also sizes
/// that are dynamic in a compiled function.
///
/// Parameters are the floats with at least one dimension among the graph's initializers and constants, except single
/// numbers. Running means and variances of normalizations are buffers. Names are those of the file, where '.' separates
/// modules as everywhere: `net["layer1.0"].freeze()`. If that gives no path of its own, '.' becomes '_'. A value that a
/// node must know at import is a constant, and so is one that only quantization uses as a scale.
///
/// The model computes what its file says, in training and when it is frozen: dropout that the exporter removed stays
/// removed, and normalization uses the running statistics, or those of the batch, as its nodes say.
/// ModuleHandle::replace can only replace it by another Model, as its forward takes and gives lists of tensors.
class Model final : public nn::Module<Model> {
public:
  static constexpr bool kLibrary = true;
  static std::string type_name() { return "Model"; }

  /// Those that are passed, in order.
  const std::vector<Input> &inputs() const;
  /// The names of the results.
  const std::vector<std::string> &outputs() const;

  /// Of a model with one input and one output. Throws Error for others.
  Tensor operator()(const Arg &x) const;
  /// Throws ShapeError when the number, element types or sizes are not those of inputs(), or nodes contradict the
  /// sizes, and InputError when nodes cannot be imported for such sizes.
  std::vector<Tensor> operator()(const std::vector<Tensor> &inputs,
                                 std::source_location where = std::source_location::current()) const {
    return call_at(where, inputs);
  }

  // For nn::Module.
  std::vector<Tensor> forward(const std::vector<Tensor> &inputs) const;
  std::tuple<std::vector<Tensor>> placeholders() const;

private:
  friend Model load(const std::string &path, const LoadOptions &options);
  struct Impl;
  explicit Model(std::shared_ptr<Impl> impl);
  void addWeights();
  std::shared_ptr<Impl> impl_;
  std::vector<nn::Parameter> weights_;
};

/// Reads a model to be called and trained. Throws InputError as compile() does, for a value that no node gives, and for
/// a pattern of `constants` that fits no weight.
Model load(const std::string &path, const LoadOptions &options = {});

} // namespace tressel::onnx
