// Small ONNX models for tests, right and wrong ones.
#pragma once

#include "onnx.pb.h"

#include <string>
#include <vector>

namespace tressel::test {

struct ModelBuilder {
  ::onnx::ModelProto model;

  explicit ModelBuilder(int64_t opset = 17) {
    model.set_ir_version(8);
    model.mutable_graph()->set_name("test");
    model.add_opset_import()->set_version(opset);
  }

  /// A size below 0 is symbolic: -1 is "d1", -2 is "d2".
  ModelBuilder &input(const std::string &name, const std::vector<int64_t> &dims,
                      int type = ::onnx::TensorProto::FLOAT) {
    auto *tensor = declare(model.mutable_graph()->add_input(), name, type);
    auto *shape = tensor->mutable_shape();
    for (int64_t d : dims)
      d < 0 ? shape->add_dim()->set_dim_param("d" + std::to_string(-d)) : shape->add_dim()->set_dim_value(d);
    return *this;
  }
  ModelBuilder &output(const std::string &name, int type = ::onnx::TensorProto::FLOAT) {
    declare(model.mutable_graph()->add_output(), name, type);
    return *this;
  }
  /// What it outputs, by the names: for bodies, whose outputs need no type.
  ModelBuilder &outputs(const std::vector<std::string> &names) {
    for (const std::string &name : names)
      model.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  ::onnx::TensorProto &floats(const std::string &name, const std::vector<int64_t> &dims, std::vector<float> values) {
    auto *t = initializer(name, dims, ::onnx::TensorProto::FLOAT);
    t->mutable_float_data()->Assign(values.begin(), values.end());
    return *t;
  }
  ::onnx::TensorProto &ints(const std::string &name, const std::vector<int64_t> &values) {
    auto *t = initializer(name, {static_cast<int64_t>(values.size())}, ::onnx::TensorProto::INT64);
    t->mutable_int64_data()->Assign(values.begin(), values.end());
    return *t;
  }
  /// One bool of rank 0.
  ::onnx::TensorProto &flag(const std::string &name, bool value) {
    auto *t = initializer(name, {}, ::onnx::TensorProto::BOOL);
    t->add_int32_data(value);
    return *t;
  }
  ::onnx::NodeProto &node(const std::string &op, const std::vector<std::string> &inputs,
                          const std::vector<std::string> &outputs, const std::string &name = "") {
    auto *n = model.mutable_graph()->add_node();
    n->set_op_type(op);
    n->set_name(name.empty() ? op + std::to_string(model.graph().node_size()) : name);
    for (const auto &in : inputs)
      n->add_input(in);
    for (const auto &out : outputs)
      n->add_output(out);
    return *n;
  }
  std::string bytes() const { return model.SerializeAsString(); }

private:
  static ::onnx::TypeProto_Tensor *declare(::onnx::ValueInfoProto *value, const std::string &name, int type) {
    value->set_name(name);
    auto *tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    return tensor;
  }
  ::onnx::TensorProto *initializer(const std::string &name, const std::vector<int64_t> &dims, int type) {
    auto *t = model.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(type);
    for (int64_t d : dims)
      t->add_dims(d);
    return t;
  }
};

inline void setInt(::onnx::NodeProto &node, const std::string &name, int64_t value) {
  auto *a = node.add_attribute();
  a->set_name(name);
  a->set_type(::onnx::AttributeProto::INT);
  a->set_i(value);
}
inline void setInts(::onnx::NodeProto &node, const std::string &name, const std::vector<int64_t> &values) {
  auto *a = node.add_attribute();
  a->set_name(name);
  a->set_type(::onnx::AttributeProto::INTS);
  a->mutable_ints()->Assign(values.begin(), values.end());
}
/// The graph of `body` as attribute of a node.
inline void setBody(::onnx::NodeProto &node, const std::string &name, const ModelBuilder &body) {
  auto *a = node.add_attribute();
  a->set_name(name);
  a->set_type(::onnx::AttributeProto::GRAPH);
  *a->mutable_g() = body.model.graph();
}

} // namespace tressel::test
