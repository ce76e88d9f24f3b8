#include "frontend/onnx/OpTable.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tressel::onnx {

bool isDefaultDomain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

namespace {
using Key = std::pair<std::string_view, std::string_view>;
/// Entries of one op, oldest first.
const std::map<Key, std::vector<OpEntry>> &table() {
  static const auto all = [] {
    std::map<Key, std::vector<OpEntry>> map;
    for (auto family : {elementwiseOps, shapeOps, reductionOps, linearOps, windowOps, normOps, attentionOps, lossOps,
                        resizeOps, recurrentOps, signalOps, quantizeOps, selectOps, controlOps})
      for (const OpEntry &entry : family())
        map[{entry.domain, entry.type}].push_back(entry);
    for (auto &[key, entries] : map)
      std::ranges::sort(entries, {}, &OpEntry::since);
    return map;
  }();
  return all;
}
const std::vector<OpEntry> *entriesOf(std::string_view domain, std::string_view type) {
  auto it = table().find({isDefaultDomain(domain) ? std::string_view() : domain, type});
  return it == table().end() ? nullptr : &it->second;
}
} // namespace

ImportFn findImporter(std::string_view domain, std::string_view type, int64_t opset) {
  ImportFn found = nullptr;
  if (const auto *entries = entriesOf(domain, type))
    for (const OpEntry &entry : *entries)
      if (entry.since <= opset)
        found = entry.import;
  return found;
}

int64_t firstVersion(std::string_view domain, std::string_view type) {
  const auto *entries = entriesOf(domain, type);
  return entries ? entries->front().since : 0;
}

} // namespace tressel::onnx
