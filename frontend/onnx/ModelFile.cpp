#include "frontend/onnx/ModelFile.h"

#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/RawData.h"
#include "frontend/onnx/TensorData.h"
#include "onnx.pb.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <filesystem>
#include <google/protobuf/io/coded_stream.h>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace tressel::onnx {

std::string DeclaredValue::type() const {
  std::string text(nameOf(dtype));
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + (dims[i].size == kDynamic ? dims[i].name : dim::str(dims[i].size));
  return text + "]";
}

std::string qualifiedOp(const ::onnx::NodeProto &node) {
  return isDefaultDomain(node.domain()) ? node.op_type() : node.domain() + "." + node.op_type();
}

std::string nodeLabel(const ::onnx::NodeProto &node, int index) {
  return node.name().empty() ? "#" + std::to_string(index + 1) : node.name();
}

std::string bodyLabel(const std::string &node, const std::string &attribute) { return node + "." + attribute + "/"; }

std::optional<Unsupported> unknownOp(const ModelFile &model, const ::onnx::NodeProto &node, std::string label) {
  const int64_t version = model.opset(node.domain());
  std::string why;
  if (version == 0)
    why = "the model imports no operator set of this domain";
  else if (findImporter(node.domain(), node.op_type(), version))
    return {};
  else if (std::ranges::any_of(model.proto().functions(), [&](const auto &f) {
             return f.name() == node.op_type() && f.domain() == node.domain();
           }))
    why = "a function that the model defines; inline it first (onnx.inliner.inline_local_functions)";
  else if (int64_t since = firstVersion(node.domain(), node.op_type()); since > version)
    why = "known from operator set " + std::to_string(since);
  return Unsupported{qualifiedOp(node), std::move(label), version, std::move(why)};
}

void forEachNode(const ::onnx::GraphProto &graph,
                 const std::function<void(const ::onnx::NodeProto &, const std::string &)> &fn,
                 const std::string &where) {
  for (int i = 0; i < graph.node_size(); ++i) {
    const std::string label = where + nodeLabel(graph.node(i), i);
    fn(graph.node(i), label);
    for (const auto &attr : graph.node(i).attribute())
      if (attr.has_g())
        forEachNode(attr.g(), fn, bodyLabel(label, attr.name()));
  }
}

std::vector<const ::onnx::ValueInfoProto *> givenInputs(const ::onnx::GraphProto &graph) {
  std::unordered_set<std::string_view> initializers;
  for (const auto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  std::vector<const ::onnx::ValueInfoProto *> inputs;
  for (const auto &input : graph.input())
    if (!initializers.contains(input.name())) // an input with an initializer has that default; it is a constant here
      inputs.push_back(&input);
  return inputs;
}

ModelFile::ModelFile(ModelFile &&) noexcept = default;
ModelFile &ModelFile::operator=(ModelFile &&) noexcept = default;
ModelFile::~ModelFile() = default;

void ModelFile::fail(const std::string &message) const { throw InputError(name_ + ": " + message); }
const ::onnx::GraphProto &ModelFile::graph() const { return proto_->graph(); }

/// Parts of a file, in one block of memory, each at a multiple of 64.
static std::vector<op::HostTensor> loadRanges(const runtime::InputFile &file, const std::vector<FileRange> &ranges) {
  auto aligned = [](uint64_t bytes) { return (bytes + 63) / 64 * 64; };
  int64_t total = 0;
  for (const FileRange &range : ranges)
    total += static_cast<int64_t>(aligned(range.bytes));
  const op::HostTensor block = op::HostTensor::allocate({u8, {total}});
  std::vector<op::HostTensor> tensors;
  struct Part {
    uint64_t offset;
    std::span<std::byte> to;
  };
  std::vector<Part> parts; // first touch of the memory dominates, so all threads share it
  std::byte *at = block.data.get();
  for (const FileRange &range : ranges) {
    tensors.push_back(range.bytes == 0 ? op::HostTensor()
                                       : op::HostTensor{{u8, {static_cast<int64_t>(range.bytes)}},
                                                        std::shared_ptr<std::byte[]>(block.data, at)});
    constexpr uint64_t part = 2 << 20;
    for (uint64_t done = 0; done < range.bytes; done += part)
      parts.push_back({range.offset + done, {at + done, static_cast<size_t>(std::min(part, range.bytes - done))}});
    at += aligned(range.bytes);
  }
  std::mutex mutex;
  std::exception_ptr failure;
  runtime::ThreadPool::global().parallelFor(
      static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end, int) {
        try {
          for (int64_t i = begin; i < end; ++i)
            file.read(parts[static_cast<size_t>(i)].offset, parts[static_cast<size_t>(i)].to);
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
      });
  if (failure)
    std::rethrow_exception(failure);
  return tensors;
}

ModelFile ModelFile::load(const std::string &path) {
  const runtime::InputFile file(path);
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const WithoutWeights small = withoutWeights(
      file.size(), [&](uint64_t offset, std::span<char> to) { file.read(offset, std::as_writable_bytes(to)); });
  ModelFile m = parseMessage(small.model, file.size(), path, folder.empty() ? "." : folder.string());
  m.rawData_ = loadRanges(file, small.rawData);
  return m;
}

ModelFile ModelFile::parse(std::string_view bytes, std::string name, std::string folder) {
  return parseMessage(bytes, bytes.size(), std::move(name), std::move(folder));
}

ModelFile ModelFile::parseMessage(std::string_view bytes, size_t fileBytes, std::string name, std::string folder) {
  ModelFile m;
  m.name_ = std::move(name);
  m.folder_ = std::move(folder);
  m.proto_ = std::make_unique<::onnx::ModelProto>();
  if (fileBytes > static_cast<size_t>(std::numeric_limits<int>::max()))
    m.fail("larger than 2 GiB, the limit of the format; keep the weights in external data");
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(100); // nested graphs; deeper nesting is refused, not followed
  if (!m.proto_->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    m.fail("not an ONNX model, or damaged: no protobuf message after byte " + std::to_string(stream.CurrentPosition()));
  m.check();
  return m;
}

int64_t ModelFile::opset(std::string_view domain) const {
  auto it = opsets_.find(isDefaultDomain(domain) ? std::string() : std::string(domain));
  return it == opsets_.end() ? 0 : it->second;
}

std::string ModelFile::producer() const {
  std::string text = proto_->producer_name();
  if (!proto_->producer_version().empty())
    text += " " + proto_->producer_version();
  return text;
}

/// The names of a graph and of those around it, while they are checked.
struct ModelFile::Scope {
  const Scope *around;
  std::string where; ///< before the labels of its nodes
  const ::onnx::GraphProto &graph;
  std::unordered_map<std::string, int> producer = {}; ///< value -> node that makes it
  std::unordered_set<std::string> defined = {};

  std::string label(int node) const { return where + nodeLabel(graph.node(node), node); }
  bool defines(const std::string &name) const { return defined.contains(name) || (around && around->defines(name)); }
};

/// Checks everything that the rest of the importer relies on.
void ModelFile::check() {
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
  for (const auto *input : givenInputs(graph()))
    inputs_.push_back(declared(input, true));
  checkNames({nullptr, "", graph()});
  for (const auto &output : graph().output())
    outputs_.push_back(declared(&output, false));
}

DeclaredValue ModelFile::declared(const void *valueInfo, bool isInput) const {
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
  value.hasType = fromOnnx(tensor.elem_type(), value.dtype);
  if (!value.hasType && isInput)
    throw UnsupportedError(name_, {{"input", info.name(), 0, "element type " + typeName(tensor.elem_type())}});
  value.hasShape = tensor.has_shape();
  if (!tensor.has_shape()) {
    if (isInput)
      throw UnsupportedError(name_, {{"input", info.name(), 0, "the model does not declare its shape"}});
    return value;
  }
  for (const auto &dim : tensor.shape().dim()) {
    DeclaredDim d;
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      d.size = dim.dim_value();
    else if (std::ranges::any_of(dim.dim_param(), [](unsigned char c) { return std::isalnum(c); })) // "?" names nothing
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

/// Every name is defined once in its graph, and before its uses. Bodies see names that are defined before them in outer
/// graphs.
void ModelFile::checkNames(Scope scope) const {
  const ::onnx::GraphProto &graph = scope.graph;
  if (!graph.sparse_initializer().empty())
    fail("sparse initializers are not supported");
  auto &producer = scope.producer;
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &out : graph.node(i).output())
      if (!out.empty() && !producer.emplace(out, i).second)
        fail("value '" + out + "' is produced twice, by nodes '" + scope.label(producer[out]) + "' and '" +
             scope.label(i) + "'");

  auto define = [&](const std::string &name, const char *what) {
    if (name.empty())
      fail(std::string("an ") + what + " has no name");
    if (!scope.defined.insert(name).second)
      fail(std::string(what) + " '" + name + "' is defined twice");
    if (auto it = producer.find(name); it != producer.end())
      fail(std::string(what) + " '" + name + "' is also produced by node '" + scope.label(it->second) + "'");
  };
  for (const auto &tensor : graph.initializer())
    define(tensor.name(), "initializer");
  for (const auto *input : givenInputs(graph))
    define(input->name(), "input");

  for (int i = 0; i < graph.node_size(); ++i) {
    const auto &node = graph.node(i);
    const std::string label = scope.label(i);
    if (node.op_type().empty())
      fail("node '" + label + "' has no op type");
    for (const std::string &in : node.input()) {
      if (in.empty() || scope.defines(in))
        continue;
      const Scope *home = &scope;
      while (home && !home->producer.contains(in))
        home = home->around;
      const std::string uses = "node '" + label + "' (" + qualifiedOp(node) + ") uses '" + in + "'";
      if (!home)
        fail(uses + ", which nothing defines");
      fail(uses + " before node '" + home->label(home->producer.at(in)) +
           "' produces it: nodes must be sorted, without cycles");
    }
    for (const auto &attr : node.attribute())
      if (attr.has_g())
        checkNames({&scope, bodyLabel(label, attr.name()), attr.g()});
    for (const std::string &out : node.output())
      if (!out.empty())
        scope.defined.insert(out);
  }
  std::unordered_set<std::string> outputs;
  for (const auto &output : graph.output()) {
    if (!scope.defines(output.name()))
      fail((scope.around ? "output '" + output.name() + "' of the body " + scope.where
                         : "output '" + output.name() + "'") +
           " is defined by nothing in the graph");
    if (!scope.around && !outputs.insert(output.name()).second)
      fail("output '" + output.name() + "' is listed twice");
  }
}

std::map<std::string, int> ModelFile::opCounts() const {
  std::map<std::string, int> counts;
  forEachNode(graph(), [&](const ::onnx::NodeProto &node, const std::string &) { ++counts[qualifiedOp(node)]; });
  return counts;
}

int64_t ModelFile::weightBytes() const {
  int64_t bytes = 0;
  for (const auto &tensor : graph().initializer())
    bytes += tensorType(tensor, name_).bytes();
  forEachNode(graph(), [&](const ::onnx::NodeProto &node, const std::string &) {
    for (const auto &attr : node.attribute()) {
      if (attr.has_t() && node.op_type() == "Constant")
        bytes += tensorType(attr.t(), name_).bytes();
      for (const auto &tensor : attr.g().initializer()) // of a body
        bytes += tensorType(tensor, name_).bytes();
    }
  });
  return bytes;
}

std::vector<Unsupported> ModelFile::unsupportedOps() const {
  std::vector<Unsupported> list;
  forEachNode(graph(), [&](const ::onnx::NodeProto &node, const std::string &label) {
    if (auto unknown = unknownOp(*this, node, label))
      list.push_back(std::move(*unknown));
  });
  return list;
}

} // namespace tressel::onnx
