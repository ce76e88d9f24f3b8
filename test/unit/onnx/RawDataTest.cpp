// Models without the bytes of their large weights: whatever the bytes, the parser must see the same message as before.
#include "frontend/onnx/RawData.h"
#include "onnx.pb.h"

#include <gtest/gtest.h>

namespace tressel::onnx {
namespace {

::onnx::ModelProto model() {
  ::onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto *graph = m.mutable_graph();
  graph->set_name("g");
  for (size_t bytes : {size_t(8), size_t(100000), size_t(0), size_t(70000)}) {
    auto *tensor = graph->add_initializer();
    tensor->set_name("w" + std::to_string(bytes));
    tensor->add_dims(static_cast<int64_t>(bytes));
    tensor->set_data_type(::onnx::TensorProto::UINT8);
    tensor->set_raw_data(std::string(bytes, static_cast<char>('a' + bytes % 7)));
  }
  graph->add_node()->set_op_type("Identity");
  return m;
}

/// Bytes in memory, and what of them was read.
WithoutWeights withoutWeights(const std::string &bytes, size_t *read = nullptr) {
  return onnx::withoutWeights(bytes.size(), [&](uint64_t offset, std::span<char> to) {
    ASSERT_LE(offset + to.size(), bytes.size());
    std::copy_n(bytes.data() + offset, to.size(), to.data());
    if (read)
      *read += to.size();
  });
}
std::string at(const std::string &bytes, FileRange range) { return bytes.substr(range.offset, range.bytes); }

TEST(RawData, OnlyLargeWeightsAreLeftOut) {
  ::onnx::ModelProto m = model();
  const std::string bytes = m.SerializeAsString();
  size_t read = 0;
  const WithoutWeights small = withoutWeights(bytes, &read);
  ASSERT_EQ(small.rawData.size(), 4u);
  EXPECT_EQ(small.rawData[0].bytes, 0u);
  EXPECT_EQ(at(bytes, small.rawData[1]), m.graph().initializer(1).raw_data());
  EXPECT_EQ(small.rawData[2].bytes, 0u);
  EXPECT_EQ(at(bytes, small.rawData[3]), m.graph().initializer(3).raw_data());
  EXPECT_LT(read, 40000u); // not the weights

  ::onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(small.model));
  EXPECT_LT(small.model.size(), 300u);
  m.mutable_graph()->mutable_initializer(1)->clear_raw_data();
  m.mutable_graph()->mutable_initializer(3)->clear_raw_data();
  EXPECT_EQ(parsed.SerializeAsString(), m.SerializeAsString());
}

TEST(RawData, GraphsInPartsCountOn) {
  // A field that stands twice is merged: protobuf's rule.
  std::string bytes;
  ASSERT_TRUE(model().AppendToString(&bytes));
  ASSERT_TRUE(model().AppendToString(&bytes));
  const WithoutWeights small = withoutWeights(bytes);
  ::onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(small.model));
  ASSERT_EQ(parsed.graph().initializer_size(), 8);
  ASSERT_EQ(small.rawData.size(), 8u);
  EXPECT_EQ(small.rawData[5].bytes, 100000u);
}

TEST(RawData, WhatCannotBeFollowedStaysWhole) {
  const std::string bytes = model().SerializeAsString();
  for (size_t length = 0; length < bytes.size(); length += length < 300 ? 1 : 997) {
    const std::string part = bytes.substr(0, length);
    const WithoutWeights small = withoutWeights(part);
    ::onnx::ModelProto whole, left;
    EXPECT_EQ(whole.ParseFromString(part), left.ParseFromString(small.model)) << length;
  }
  for (const std::string &odd :
       {std::string("\x0b\x0c"), std::string(12, '\xff'), std::string("\x3a\xff\xff\xff\xff\x0f"), std::string()}) {
    const WithoutWeights small = withoutWeights(odd);
    EXPECT_EQ(small.model, odd);
    EXPECT_TRUE(small.rawData.empty());
  }
}

TEST(RawData, OfSeveralTheParserTakesTheLast) {
  ::onnx::TensorProto first, second;
  first.set_raw_data(std::string(50000, 'a'));
  second.set_raw_data(std::string(60000, 'b'));
  const std::string tensor = first.SerializeAsString() + second.SerializeAsString();
  auto message = [](int number, const std::string &content) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    size_t size = content.size();
    for (; size >= 0x80; size >>= 7)
      out += static_cast<char>(size | 0x80);
    return out + static_cast<char>(size) + content;
  };
  const WithoutWeights small = withoutWeights(message(7, message(5, tensor)));
  ::onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(small.model));
  EXPECT_EQ(parsed.graph().initializer(0).raw_data(), std::string(60000, 'b'));
  EXPECT_TRUE(small.rawData.empty() || small.rawData[0].bytes == 0);
}

} // namespace
} // namespace tressel::onnx
