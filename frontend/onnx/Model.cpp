#include "frontend/onnx/Model.h"

#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/TensorData.h"
#include "onnx.pb.h"

#include <filesystem>
#include <fstream>
#include <google/protobuf/io/coded_stream.h>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace tressel::onnx {

std::string DeclaredValue::type() const {
  std::string text(nameOf(dtype));
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + (dims[i].size == kDynamic ? dims[i].name : std::to_string(dims[i].size));
  return text + "]";
}

std::string qualifiedOp(const ::onnx::NodeProto &node) {
  return isDefaultDomain(node.domain()) ? node.op_type() : node.domain() + "." + node.op_type();
}

std::string nodeLabel(const ::onnx::NodeProto &node, int index) {
  return node.name().empty() ? "#" + std::to_string(index + 1) : node.name();
}

Model::Model(Model &&) noexcept = default;
Model &Model::operator=(Model &&) noexcept = default;
Model::~Model() = default;

void Model::fail(const std::string &message) const { throw InputError(name_ + ": " + message); }
const ::onnx::GraphProto &Model::graph() const { return proto_->graph(); }

Model Model::load(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code ec;
  if (!in || std::filesystem::is_directory(path, ec))
    throw InputError(path + ": cannot be read");
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return parse(bytes, path, folder.empty() ? "." : folder.string());
}

Model Model::parse(std::string_view bytes, std::string name, std::string folder) {
  Model m;
  m.name_ = std::move(name);
  m.folder_ = std::move(folder);
  m.proto_ = std::make_unique<::onnx::ModelProto>();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    m.fail("larger than 2 GiB, the limit of the format; keep the weights in external data");
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(100); // graphs inside graphs; deeper ones are refused rather than followed
  if (!m.proto_->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    m.fail("not an ONNX model, or damaged: no protobuf message after byte " + std::to_string(stream.CurrentPosition()));
  m.check();
  return m;
}

int64_t Model::opset(std::string_view domain) const {
  auto it = opsets_.find(isDefaultDomain(domain) ? std::string() : std::string(domain));
  return it == opsets_.end() ? 0 : it->second;
}

std::string Model::producer() const {
  std::string text = proto_->producer_name();
  if (!proto_->producer_version().empty())
    text += " " + proto_->producer_version();
  return text;
}

/// What the rest of the importer may rely on.
void Model::check() {
  if (!proto_->has_graph())
    fail("not an ONNX model: it holds no graph");
  for (const auto &import : proto_->opset_import()) {
    std::string domain = isDefaultDomain(import.domain()) ? std::string() : import.domain();
    if (!opsets_.emplace(domain, import.version()).second)
      fail("operator set '" + import.domain() + "' is imported twice");
  }
  if (int64_t version = opset(""); version > kNewestOpset)
    fail("uses operator set " + std::to_string(version) + ", newer than " + std::to_string(kNewestOpset) +
         ", the newest that is known here; convert the model to an older one");
  if (graph().output_size() == 0)
    fail("the graph has no outputs");
  if (!graph().sparse_initializer().empty())
    fail("sparse initializers are not supported");

  std::unordered_set<std::string> initializers;
  for (const auto &tensor : graph().initializer())
    initializers.insert(tensor.name());
  for (const auto &input : graph().input())
    if (!initializers.contains(input.name())) // an input with an initializer has that default; it is a constant here
      inputs_.push_back(declared(&input, true));
  checkNames();
  for (const auto &output : graph().output())
    outputs_.push_back(declared(&output, false));
}

DeclaredValue Model::declared(const void *valueInfo, bool isInput) const {
  const auto &info = *static_cast<const ::onnx::ValueInfoProto *>(valueInfo);
  const std::string what = (isInput ? "input '" : "output '") + info.name() + "'";
  DeclaredValue value;
  value.name = info.name();
  if (info.name().empty())
    fail(isInput ? "an input has no name" : "an output has no name");
  if (!info.type().has_tensor_type()) {
    if (!isInput && !info.has_type())
      return value; // the type follows from the graph
    throw UnsupportedError(name_, {{isInput ? "input" : "output", info.name(), 0, "it is not a tensor"}});
  }
  const auto &tensor = info.type().tensor_type();
  if (!fromOnnx(tensor.elem_type(), value.dtype) && isInput)
    throw UnsupportedError(name_, {{"input", info.name(), 0, "element type " + typeName(tensor.elem_type())}});
  if (!tensor.has_shape()) {
    if (isInput)
      throw UnsupportedError(name_, {{"input", info.name(), 0, "the model does not declare its shape"}});
    return value;
  }
  for (const auto &dim : tensor.shape().dim()) {
    DeclaredDim d;
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      d.size = dim.dim_value();
    else if (!dim.dim_param().empty())
      d.name = dim.dim_param();
    else if (dim.has_dim_value() && dim.dim_value() < -1)
      fail(what + " has a dimension of size " + std::to_string(dim.dim_value()));
    else
      d.name = info.name() + "." + std::to_string(value.dims.size());
    value.dims.push_back(std::move(d));
  }
  if (value.dims.size() > static_cast<size_t>(kMaxRank))
    fail(what + " has " + std::to_string(value.dims.size()) + " dimensions, more than " + std::to_string(kMaxRank));
  return value;
}

/// Every name is defined once and before its uses.
void Model::checkNames() {
  std::unordered_map<std::string, int> producer; // value -> node that makes it
  for (int i = 0; i < graph().node_size(); ++i)
    for (const std::string &out : graph().node(i).output())
      if (!out.empty() && !producer.emplace(out, i).second)
        fail("value '" + out + "' is produced twice, by nodes '" +
             nodeLabel(graph().node(producer[out]), producer[out]) + "' and '" + nodeLabel(graph().node(i), i) + "'");

  std::unordered_set<std::string> defined;
  auto define = [&](const std::string &name, const char *what) {
    if (name.empty())
      fail(std::string("an ") + what + " has no name");
    if (!defined.insert(name).second)
      fail(std::string(what) + " '" + name + "' is defined twice");
    if (auto it = producer.find(name); it != producer.end())
      fail(std::string(what) + " '" + name + "' is also produced by node '" +
           nodeLabel(graph().node(it->second), it->second) + "'");
  };
  for (const auto &tensor : graph().initializer())
    define(tensor.name(), "initializer");
  for (const DeclaredValue &input : inputs_)
    define(input.name, "input");

  for (int i = 0; i < graph().node_size(); ++i) {
    const auto &node = graph().node(i);
    if (node.op_type().empty())
      fail("node '" + nodeLabel(node, i) + "' has no op type");
    for (const std::string &in : node.input()) {
      if (in.empty() || defined.contains(in))
        continue;
      auto it = producer.find(in);
      if (it == producer.end())
        fail("node '" + nodeLabel(node, i) + "' (" + qualifiedOp(node) + ") uses '" + in + "', which nothing defines");
      fail("node '" + nodeLabel(node, i) + "' (" + qualifiedOp(node) + ") uses '" + in + "' before node '" +
           nodeLabel(graph().node(it->second), it->second) + "' produces it: nodes must be sorted, without cycles");
    }
    for (const std::string &out : node.output())
      if (!out.empty())
        defined.insert(out);
  }
  std::unordered_set<std::string> outputs;
  for (const auto &output : graph().output()) {
    if (!defined.contains(output.name()))
      fail("output '" + output.name() + "' is defined by nothing in the graph");
    if (!outputs.insert(output.name()).second)
      fail("output '" + output.name() + "' is listed twice");
  }
}

std::map<std::string, int> Model::opCounts() const {
  std::map<std::string, int> counts;
  for (const auto &node : graph().node())
    ++counts[qualifiedOp(node)];
  return counts;
}

int64_t Model::weightBytes() const {
  int64_t bytes = 0;
  for (const auto &tensor : graph().initializer())
    bytes += tensorType(tensor, name_).bytes();
  return bytes;
}

std::vector<Unsupported> Model::unsupportedOps() const {
  std::vector<Unsupported> list;
  for (int i = 0; i < graph().node_size(); ++i) {
    const auto &node = graph().node(i);
    int64_t version = opset(node.domain());
    std::string why;
    if (version == 0)
      why = "the model imports no operator set of this domain";
    else if (findImporter(node.domain(), node.op_type(), version))
      continue;
    else if (int64_t since = firstVersion(node.domain(), node.op_type()); since > version)
      why = "known from operator set " + std::to_string(since);
    list.push_back({qualifiedOp(node), nodeLabel(node, i), version, why});
  }
  return list;
}

} // namespace tressel::onnx
