#include "frontend/stablehlo/Sharding.h"

#include "frontend/stablehlo/OpImporter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <vector>

namespace tressel::stablehlo {
namespace {

/// Reads the text inside of an attribute's brackets.
class Scanner {
public:
  Scanner(mlir::Attribute attribute, llvm::StringRef kind) : kind_(kind) {
    llvm::raw_string_ostream(whole_) << attribute;
    const auto opaque = llvm::dyn_cast_or_null<mlir::OpaqueAttr>(attribute);
    rest_ = opaque ? opaque.getAttrData().trim() : llvm::StringRef();
    if (!rest_.consume_front(kind) || !accept("<") || !rest_.consume_back(">"))
      refuse();
  }

  [[noreturn]] void refuse(const std::string &why = "is not understood") const {
    throw OpUnsupported{kind_ + " " + whole_ + " " + why};
  }
  bool accept(llvm::StringRef token) {
    rest_ = rest_.ltrim();
    return rest_.consume_front(token);
  }
  void want(llvm::StringRef token) {
    if (!accept(token))
      refuse();
  }
  std::string quoted() {
    want("\"");
    const size_t end = rest_.find('"');
    if (end == llvm::StringRef::npos || end == 0)
      refuse();
    const llvm::StringRef name = rest_.take_front(end);
    if (!llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      refuse("has an axis whose name is no identifier");
    rest_ = rest_.drop_front(end + 1);
    return name.str();
  }
  std::string identifier() {
    rest_ = rest_.ltrim();
    const llvm::StringRef name = rest_.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; });
    if (name.empty())
      refuse();
    rest_ = rest_.drop_front(name.size());
    return name.str();
  }
  int64_t number() {
    int64_t value = 0;
    rest_ = rest_.ltrim();
    if (rest_.consumeInteger(10, value) || value < 1)
      refuse();
    return value;
  }
  void finish() {
    if (!rest_.trim().empty())
      refuse();
  }

private:
  std::string kind_, whole_;
  llvm::StringRef rest_;
};

} // namespace

std::string meshText(mlir::Attribute mesh) {
  Scanner in(mesh, "mesh");
  std::string text;
  in.want("[");
  while (!in.accept("]")) {
    if (!text.empty()) {
      in.want(",");
      text += ", ";
    }
    const std::string axis = in.quoted();
    in.want("=");
    text += axis + "=" + std::to_string(in.number());
  }
  if (in.accept(","))
    in.refuse("lists its devices in another order");
  in.finish();
  return text;
}

ShardingText shardingText(mlir::Attribute sharding, size_t rank) {
  Scanner in(sharding, "sharding");
  ShardingText text;
  in.want("@");
  text.mesh = in.identifier();
  in.want(",");
  in.want("[");
  std::vector<std::string> dims;
  bool saysAnything = false;
  while (!in.accept("]")) {
    if (!dims.empty())
      in.want(",");
    in.want("{");
    std::vector<std::string> axes;
    bool isOpen = false;
    while (!in.accept("}")) {
      if (isOpen || !axes.empty())
        in.want(",");
      if (in.accept("?")) {
        isOpen = true;
        continue;
      }
      axes.push_back(in.quoted());
      if (in.accept(":"))
        in.refuse("has a part of an axis");
    }
    if (in.accept("p")) // a priority for Shardy's propagation, which does not apply here
      (void)in.number();
    saysAnything |= !isOpen || !axes.empty();
    dims.push_back(axes.empty() ? "-" : llvm::join(axes, "+"));
  }
  if (in.accept(",")) { // axes along which the tensor is replicated: so it is along all axes that are not named
    if (!in.accept("replicated"))
      in.refuse("leaves sums unfinished");
    in.want("=");
    in.want("{");
    while (!in.accept("}"))
      if (!in.accept(","))
        (void)in.quoted();
    saysAnything = true;
  }
  in.finish();
  if (dims.size() != rank)
    in.refuse("has another number of dimensions than the tensor");
  if (saysAnything)
    text.words = llvm::join(dims, ", ");
  return text;
}

} // namespace tressel::stablehlo
