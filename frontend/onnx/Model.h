// An ONNX model as a file: parsed, checked for what any reader of it relies on, and asked about. No MLIR here; `import`
// (Import.h) turns it into a module.
#pragma once

#include "frontend/onnx/Unsupported.h"
#include "tressel/runtime/Types.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onnx {
class GraphProto;
class ModelProto;
class NodeProto;
} // namespace onnx

namespace tressel::onnx {

/// The newest operator set whose changes the table of ops takes into account.
inline constexpr int64_t kNewestOpset = 27;

/// A dimension of an input or output as the model declares it.
struct DeclaredDim {
  int64_t size = kDynamic; ///< kDynamic: see `name`
  std::string name;        ///< of a symbolic dimension; made up ("x.0") when the model gives none
};
struct DeclaredValue {
  std::string name;
  DType dtype = f32;
  std::vector<DeclaredDim> dims;
  /// "f32[batch, 784]".
  std::string type() const;
};

class Model {
public:
  /// Reads and checks a file. Throws InputError: unreadable, no protobuf, no graph, names that are missing or doubled,
  /// nodes out of order (or in a cycle), an opset that is newer than known.
  static Model load(const std::string &path);
  /// The same from memory. `name` stands in messages and locations; tensors in other files are looked for in `folder`.
  static Model parse(std::string_view bytes, std::string name, std::string folder = ".");

  Model(Model &&) noexcept;
  Model &operator=(Model &&) noexcept;
  ~Model();

  const std::string &name() const { return name_; }
  const std::string &folder() const { return folder_; }
  const ::onnx::ModelProto &proto() const { return *proto_; }
  const ::onnx::GraphProto &graph() const;

  /// The inputs a caller gives: those that no initializer provides.
  const std::vector<DeclaredValue> &inputs() const { return inputs_; }
  const std::vector<DeclaredValue> &outputs() const { return outputs_; }
  /// Version of the operator set of a domain; 0 if the model does not import it.
  int64_t opset(std::string_view domain) const;
  const std::map<std::string, int64_t> &opsets() const { return opsets_; }
  std::string producer() const;
  /// Number of nodes per "Op" or "domain.Op".
  std::map<std::string, int> opCounts() const;
  /// Bytes of all initializers, as stored in tensors.
  int64_t weightBytes() const;
  /// Nodes whose op is not in the table of ops, in order.
  std::vector<Unsupported> unsupportedOps() const;

  /// "model.onnx: message" as an InputError.
  [[noreturn]] void fail(const std::string &message) const;

private:
  Model() = default;
  void check();
  void checkNames();
  DeclaredValue declared(const void *valueInfo, bool isInput) const;

  std::string name_, folder_;
  std::unique_ptr<::onnx::ModelProto> proto_;
  std::vector<DeclaredValue> inputs_, outputs_;
  std::map<std::string, int64_t> opsets_;
};

/// "Conv", or "com.microsoft.FusedConv" outside the default domain.
std::string qualifiedOp(const ::onnx::NodeProto &node);
/// The node's name, or "#12".
std::string nodeLabel(const ::onnx::NodeProto &node, int index);

} // namespace tressel::onnx
