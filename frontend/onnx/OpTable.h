// Which ops of ONNX are imported, and by what. An op is added by one function in ops/ and one line of that file's
// table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tressel::onnx {

class NodeImporter;
using ImportFn = void (*)(NodeImporter &);

/// One entry serves the versions from `since` up to the next entry of the same op.
struct OpEntry {
  std::string_view type;
  int64_t since;
  ImportFn import;
  std::string_view domain = {};
};

/// "" and "ai.onnx" are one.
bool isDefaultDomain(std::string_view domain);
/// Null if the op, or this version of it, is unknown.
ImportFn findImporter(std::string_view domain, std::string_view type, int64_t opset);
/// The oldest version in the table; 0 if the op is unknown.
int64_t firstVersion(std::string_view domain, std::string_view type);

// The tables, by family (ops/).
std::span<const OpEntry> elementwiseOps();
std::span<const OpEntry> shapeOps();
std::span<const OpEntry> reductionOps();
std::span<const OpEntry> linearOps();
std::span<const OpEntry> windowOps();
std::span<const OpEntry> normOps();
std::span<const OpEntry> attentionOps();
std::span<const OpEntry> lossOps();
std::span<const OpEntry> resizeOps();
std::span<const OpEntry> recurrentOps();
std::span<const OpEntry> signalOps();
std::span<const OpEntry> quantizeOps();
std::span<const OpEntry> selectOps();
std::span<const OpEntry> controlOps();

} // namespace tressel::onnx
