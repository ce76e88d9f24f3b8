// An ONNX model as a file: parsed, checked for what any reader of it relies on, and asked about. No MLIR here; `import`
// (Import.h) turns it into a module.
#pragma once

#include "frontend/onnx/Unsupported.h"
#include "ir/op/OpInfo.h"
#include "tressel/runtime/Types.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onnx {
class GraphProto;
class ModelProto;
class NodeProto;
class ValueInfoProto;
} // namespace onnx

namespace tressel::onnx {

/// The newest operator set whose changes the table of ops takes into account.
inline constexpr int64_t kNewestOpset = 27;

/// A dimension of an input or output as the model declares it.
struct DeclaredDim {
  Size size = kDynamic; ///< kDynamic: see `name`
  std::string name;     ///< of a symbolic dimension; made up ("x.0") when the model gives none
};
struct DeclaredValue {
  std::string name;
  DType dtype = f32;
  std::vector<DeclaredDim> dims;
  bool hasType = false, hasShape = false; ///< inputs have both; of an output the model need not say
  /// "f32[batch, 784]".
  std::string type() const;
};

class ModelFile {
public:
  /// Reads and checks a file. Throws InputError: unreadable, no protobuf, no graph, names that are missing or doubled,
  /// nodes out of order (or in a cycle), in the graph or in the body of a node, an opset that is newer than known.
  static ModelFile load(const std::string &path);
  /// The same from memory. `name` stands in messages and locations; tensors in other files are looked for in `folder`.
  static ModelFile parse(std::string_view bytes, std::string name, std::string folder = ".");

  ModelFile(ModelFile &&) noexcept;
  ModelFile &operator=(ModelFile &&) noexcept;
  ~ModelFile();

  const std::string &name() const { return name_; }
  const std::string &folder() const { return folder_; }
  const ::onnx::ModelProto &proto() const { return *proto_; }
  const ::onnx::GraphProto &graph() const;
  /// The raw data of a large initializer, which its message lacks; aligned to 64 bytes. Nothing for other initializers.
  op::HostTensor rawData(int initializer) const {
    return static_cast<size_t>(initializer) < rawData_.size() ? rawData_[static_cast<size_t>(initializer)]
                                                              : op::HostTensor();
  }

  /// The inputs a caller gives: those that no initializer provides.
  const std::vector<DeclaredValue> &inputs() const { return inputs_; }
  const std::vector<DeclaredValue> &outputs() const { return outputs_; }
  /// Version of the operator set of a domain; 0 if the model does not import it.
  int64_t opset(std::string_view domain) const;
  const std::map<std::string, int64_t> &opsets() const { return opsets_; }
  std::string producer() const;
  /// Number of nodes per "Op" or "domain.Op", with those of bodies.
  std::map<std::string, int> opCounts() const;
  /// Bytes of all initializers, as stored in tensors.
  int64_t weightBytes() const;
  /// Nodes whose op is not in the table of ops, in order, with those of bodies.
  std::vector<Unsupported> unsupportedOps() const;

  /// "model.onnx: message" as an InputError.
  [[noreturn]] void fail(const std::string &message) const;

private:
  ModelFile() = default;
  static ModelFile parseMessage(std::string_view bytes, size_t fileBytes, std::string name, std::string folder);
  void check();
  struct Scope;
  void checkNames(Scope scope) const;
  DeclaredValue declared(const void *valueInfo, bool isInput) const;

  std::string name_, folder_;
  std::unique_ptr<::onnx::ModelProto> proto_;
  std::vector<op::HostTensor> rawData_;
  std::vector<DeclaredValue> inputs_, outputs_;
  std::map<std::string, int64_t> opsets_;
};

/// "Conv", or "com.microsoft.FusedConv" outside the default domain.
std::string qualifiedOp(const ::onnx::NodeProto &node);
/// The node's name, or "#12".
std::string nodeLabel(const ::onnx::NodeProto &node, int index);
/// The prefix of the labels in a body: the node's label and the attribute, "If_3.then_branch/".
std::string bodyLabel(const std::string &node, const std::string &attribute);
/// Why a node's op cannot be imported: not in the table (an empty reason), or not in this version; nothing if it can.
std::optional<Unsupported> unknownOp(const ModelFile &model, const ::onnx::NodeProto &node, std::string label);
/// Calls fn with each node of the graph and of its bodies: the node, its label.
void forEachNode(const ::onnx::GraphProto &graph,
                 const std::function<void(const ::onnx::NodeProto &, const std::string &)> &fn,
                 const std::string &where = "");
/// The inputs that no initializer provides: what a graph, or a body, is given.
std::vector<const ::onnx::ValueInfoProto *> givenInputs(const ::onnx::GraphProto &graph);

} // namespace tressel::onnx
