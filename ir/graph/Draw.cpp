#include "ir/graph/Draw.h"

#include "ir/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace tressel::graph {
namespace {

enum class Kind : uint8_t { Input, State, Constant, Op, Output };
struct Node {
  Kind kind = Kind::Op;
  std::string name;   ///< "matmul", "x", "2"
  std::string detail; ///< the type, attributes
  std::vector<uint32_t> reads;
  uint32_t row = 0; ///< first row behind all its operands
};

/// Nodes come after their operands.
struct Picture {
  std::string title;
  std::vector<Node> nodes;
};

std::string elided(std::string text, size_t most) {
  if (text.size() <= most)
    return text;
  while (most > 3 && (static_cast<unsigned char>(text[most - 3]) & 0xC0) == 0x80) // do not split a character
    --most;
  return text.substr(0, most - 3) + "...";
}

/// Replaces control characters, which names may contain but lines may not, by spaces.
std::string clean(llvm::StringRef text) {
  std::string out = text.str();
  std::ranges::replace_if(
      out, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return out;
}

std::string typeText(mlir::Value value) {
  return isSupported(value.getType()) ? fromMlir(value.getType()).str() : std::string();
}

/// The value of a splat constant, as text.
std::string numberOf(mlir::Operation *op) {
  auto elements = op->getAttrOfType<mlir::DenseElementsAttr>("value");
  if (!elements || !elements.isSplat())
    return "";
  char text[40];
  if (mlir::isa<mlir::FloatType>(elements.getElementType())) {
    std::snprintf(text, sizeof text, "%.6g", elements.getSplatValue<llvm::APFloat>().convertToDouble());
  } else {
    const llvm::APInt number = elements.getSplatValue<llvm::APInt>();
    const bool isUnsigned = number.getBitWidth() == 1 || elements.getElementType().isUnsignedInteger();
    std::snprintf(
        text, sizeof text, "%lld",
        static_cast<long long>(isUnsigned ? static_cast<int64_t>(number.getZExtValue()) : number.getSExtValue()));
  }
  return text;
}

/// "scan (mul, add)".
std::string nameOf(mlir::Operation *op) {
  std::string name = op->getName().stripDialect().str();
  std::vector<std::string> inside;
  for (mlir::Region &region : op->getRegions())
    for (mlir::Block &block : region)
      for (mlir::Operation &inner : block.without_terminator())
        if (std::string each = inner.getName().stripDialect().str();
            !inner.hasTrait<mlir::OpTrait::ConstantLike>() && std::ranges::find(inside, each) == inside.end())
          inside.push_back(std::move(each));
  for (size_t i = 0; i < inside.size(); ++i)
    name += (i ? ", " : " (") + inside[i];
  return inside.empty() ? name : elided(name, 40) + ")";
}

std::string attributesOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (mlir::NamedAttribute attr : op->getAttrs()) {
    if (attr.getName() == "value" || mlir::isa<mlir::UnitAttr>(attr.getValue()))
      continue;
    out << (text.empty() ? "" : ", ") << attr.getName().getValue() << " = ";
    attr.getValue().print(out, /*elideType=*/true);
  }
  return elided(clean(text), 48);
}

Picture pictureOf(mlir::func::FuncOp main) {
  Picture picture;
  llvm::DenseMap<mlir::Value, uint32_t> made;
  auto add = [&](Node node, mlir::ValueRange reads) {
    for (mlir::Value value : reads)
      if (auto found = made.find(value); found != made.end()) {
        node.reads.push_back(found->second);
        node.row = std::max(node.row, picture.nodes[found->second].row + 1);
      }
    picture.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(picture.nodes.size() - 1);
  };
  auto named = [](mlir::DictionaryAttr attrs, llvm::StringRef name) {
    auto text = attrs ? attrs.getAs<mlir::StringAttr>(name) : mlir::StringAttr();
    return text ? clean(text.getValue()) : std::string();
  };
  for (mlir::BlockArgument arg : main.getArguments()) {
    const mlir::DictionaryAttr attrs = main.getArgAttrDict(arg.getArgNumber());
    Node node{.kind = Kind::Input, .name = named(attrs, kNameAttr), .detail = typeText(arg)};
    if (node.name.empty())
      if (node.name = named(attrs, kStateAttr); !node.name.empty())
        node.kind = Kind::State;
    if (node.name.empty())
      node.name = "arg" + std::to_string(arg.getArgNumber());
    made[arg] = add(std::move(node), {});
  }
  for (mlir::Operation &op : main.getBody().front().without_terminator()) {
    Node node;
    const std::string type = op.getNumResults() ? typeText(op.getResult(0)) : "";
    if (op.hasTrait<mlir::OpTrait::ConstantLike>()) {
      node.kind = Kind::Constant;
      node.name = numberOf(&op);
      node.detail = node.name.empty() || !op.getNumResults() || fromMlir(op.getResult(0).getType()).rank() ? type : "";
      if (node.name.empty())
        node.name = "constant";
    } else {
      node.name = nameOf(&op);
      node.detail = attributesOf(&op);
      node.detail += (node.detail.empty() || type.empty() ? "" : "; ") + type;
    }
    const uint32_t index = add(std::move(node), op.getOperands());
    for (mlir::Value result : op.getResults())
      made[result] = index;
  }
  mlir::Operation *end = main.getBody().front().getTerminator();
  for (mlir::OpOperand &operand : end->getOpOperands()) {
    const mlir::DictionaryAttr attrs = main.getResultAttrDict(operand.getOperandNumber());
    std::string name = named(attrs, kNameAttr);
    if (name.empty())
      name = named(attrs, kStateAttr);
    if (name.empty())
      name = "out" + std::to_string(operand.getOperandNumber());
    add({.kind = Kind::Output, .name = std::move(name), .detail = typeText(operand.get())}, operand.get());
  }
  // A constant is placed right above its first reader, not in the top row.
  std::vector<uint32_t> first(picture.nodes.size(), UINT32_MAX);
  for (const Node &node : picture.nodes)
    for (uint32_t read : node.reads)
      first[read] = std::min(first[read], node.row);
  for (size_t i = 0; i < picture.nodes.size(); ++i)
    if (picture.nodes[i].kind == Kind::Constant && first[i] != UINT32_MAX && first[i] > 0)
      picture.nodes[i].row = first[i] - 1;
  return picture;
}

uint32_t numRows(const Picture &picture) {
  uint32_t rows = 0;
  for (const Node &node : picture.nodes)
    rows = std::max(rows, node.row + 1);
  return rows;
}

//--- Dot --------------------------------------------------------------------------------------------------------------

std::string dotQuoted(const std::string &text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out;
}

std::string dot(const Picture &picture) {
  std::string out = "digraph \"" + dotQuoted(picture.title) +
                    "\" {\n  node [fontname=\"Helvetica\", fontsize=11, height=0.3];\n"
                    "  edge [color=\"#6b7280\", arrowsize=0.7];\n";
  static constexpr const char *styles[] = {
      "shape=ellipse", "shape=ellipse, style=bold", "shape=plaintext",
      "shape=box, style=\"rounded,filled\", fillcolor=\"#2f6db5\", fontcolor=white", "shape=ellipse, peripheries=2"};
  for (size_t i = 0; i < picture.nodes.size(); ++i) {
    const Node &node = picture.nodes[i];
    out += "  n" + std::to_string(i) + " [label=\"" + dotQuoted(elided(node.name, 48)) +
           (node.detail.empty() ? "" : "\\n" + dotQuoted(node.detail)) + "\", " +
           styles[static_cast<size_t>(node.kind)] + "];\n";
  }
  for (size_t i = 0; i < picture.nodes.size(); ++i)
    for (uint32_t read : picture.nodes[i].reads)
      out += "  n" + std::to_string(read) + " -> n" + std::to_string(i) + ";\n";
  return out + "}\n";
}

//--- Text -------------------------------------------------------------------------------------------------------------

/// Numbers ops, so that equal ones can be told apart.
std::vector<std::string> textNames(const Picture &picture) {
  std::vector<std::string> names;
  size_t ops = 0;
  for (const Node &node : picture.nodes)
    names.push_back(node.kind == Kind::Op ? "%" + std::to_string(ops++) : node.name);
  return names;
}

std::string text(const Picture &picture) {
  const std::vector<std::string> names = textNames(picture);
  std::string out = picture.title + "\n";
  for (uint32_t row = 0, shown = 0; row < numRows(picture); ++row) {
    std::string line;
    for (size_t i = 0; i < picture.nodes.size(); ++i) {
      const Node &node = picture.nodes[i];
      if (node.row != row || node.kind == Kind::Constant)
        continue;
      line += line.empty() ? "" : "   |   ";
      if (node.kind == Kind::Op) {
        line += names[i] + " = " + node.name + "(";
        for (size_t k = 0; k < node.reads.size(); ++k)
          line += (k ? ", " : "") + names[node.reads[k]];
        line += ")";
      } else if (node.kind == Kind::Output) {
        line += node.name + " = " + (node.reads.empty() ? "?" : names[node.reads[0]]);
      } else {
        line += node.name + ": " + node.detail;
      }
    }
    if (!line.empty())
      out += "  " + std::to_string(shown++) + ".  " + line + "\n";
  }
  return out;
}

//--- Svg --------------------------------------------------------------------------------------------------------------

std::string xmlEscaped(const std::string &text) {
  std::string out;
  for (char c : text)
    c == '<'   ? out += "&lt;"
    : c == '>' ? out += "&gt;"
    : c == '&' ? out += "&amp;"
    : c == '"' ? out += "&quot;"
               : out += c;
  return out;
}

constexpr double kRowHeight = 78, kBoxHeight = 38, kGap = 26, kMargin = 24, kTitle = 26;
constexpr double kNameWidth = 7.4, kDetailWidth = 5.6; // of a character, at most

std::string number(double value) { return std::to_string(static_cast<int64_t>(value + 0.5)); }

/// A layered layout: rows from top to bottom. Within a row, nodes are sorted by the mean position of their neighbours
/// in the row above, then below, for some sweeps. An edge that crosses a row takes a place in it like a node.
class Layout {
public:
  explicit Layout(const Picture &picture) : rows_(numRows(picture)) {
    for (uint32_t i = 0; i < picture.nodes.size(); ++i)
      place(picture.nodes[i].row, widthOf(picture.nodes[i]));
    for (uint32_t i = 0; i < picture.nodes.size(); ++i)
      for (uint32_t read : picture.nodes[i].reads) {
        std::vector<uint32_t> way{read};
        for (uint32_t row = picture.nodes[read].row + 1; row < picture.nodes[i].row; ++row)
          way.push_back(place(row, 0));
        way.push_back(i);
        for (size_t k = 1; k < way.size(); ++k) {
          up_[way[k]].push_back(way[k - 1]);
          down_[way[k - 1]].push_back(way[k]);
        }
        edges_.push_back(std::move(way));
      }
    for (int sweep = 0; sweep < 8; ++sweep)
      for (size_t k = 0; k < rows_.size(); ++k)
        sweep % 2 ? order(rows_.size() - 1 - k, down_) : order(k, up_);
    for (size_t k = 0; k < rows_.size(); ++k)
      pack(k, up_);
    for (size_t k = rows_.size(); k-- > 0;)
      pack(k, down_);
    const double left = std::ranges::min(left_);
    for (size_t i = 0; i < center_.size(); ++i)
      center_[i] += kMargin - left, width = std::max(width, center_[i] + width_[i] / 2 + kMargin);
    height = kTitle + static_cast<double>(rows_.size()) * kRowHeight + kMargin;
  }

  static double widthOf(const Node &node) {
    return std::max({kNameWidth * static_cast<double>(elided(node.name, 48).size()),
                     kDetailWidth * static_cast<double>(node.detail.size()), 30.0}) +
           20;
  }
  double x(uint32_t place) const { return center_[place]; }
  double y(uint32_t place) const { return kTitle + kMargin + kBoxHeight / 2 + kRowHeight * row_[place]; }
  double boxWidth(uint32_t node) const { return width_[node]; }
  const std::vector<std::vector<uint32_t>> &edges() const { return edges_; }
  double width = 0, height = 0;

private:
  using Neighbours = std::vector<std::vector<uint32_t>>;

  uint32_t place(uint32_t row, double width) {
    const auto index = static_cast<uint32_t>(row_.size());
    row_.push_back(row);
    width_.push_back(width);
    center_.push_back(static_cast<double>(rows_[row].size()) * 100);
    left_.push_back(0);
    up_.emplace_back();
    down_.emplace_back();
    rows_[row].push_back(index);
    return index;
  }
  /// The mean position of its neighbours; its own position if it has none.
  double wish(uint32_t place, const Neighbours &neighbours) const {
    const auto &all = neighbours[place];
    double sum = 0;
    for (uint32_t other : all)
      sum += center_[other];
    return all.empty() ? center_[place] : sum / static_cast<double>(all.size());
  }
  void order(size_t row, const Neighbours &neighbours) {
    struct Wish {
      double at;
      size_t before; // position before sorting
      uint32_t place;
    };
    std::vector<Wish> wishes;
    for (uint32_t i : rows_[row])
      wishes.push_back({wish(i, neighbours), wishes.size(), i});
    std::ranges::sort(wishes, {}, [](const Wish &w) { return std::pair(w.at, w.before); });
    double at = 0;
    for (size_t k = 0; k < wishes.size(); ++k) {
      const uint32_t i = rows_[row][k] = wishes[k].place;
      center_[i] = at + width_[i] / 2;
      at += width_[i] + kGap;
    }
    for (uint32_t i : rows_[row]) // rows are centered, so that positions in different rows are comparable
      center_[i] -= (at - kGap) / 2;
  }
  /// Places each as near to its wish as the order in the row permits: the mean of packing from the left and from the
  /// right.
  void pack(size_t row, const Neighbours &neighbours) {
    std::vector<double> fromLeft, fromRight;
    const auto &all = rows_[row];
    double at = -1e12;
    for (uint32_t i : all) {
      at = std::max(wish(i, neighbours), at + width_[i] / 2);
      fromLeft.push_back(at);
      at += width_[i] / 2 + kGap;
    }
    at = 1e12;
    for (size_t k = all.size(); k-- > 0;) {
      at = std::min(wish(all[k], neighbours), at - width_[all[k]] / 2);
      fromRight.push_back(at);
      at -= width_[all[k]] / 2 + kGap;
    }
    for (size_t k = 0; k < all.size(); ++k) {
      center_[all[k]] = (fromLeft[k] + fromRight[all.size() - 1 - k]) / 2;
      left_[all[k]] = center_[all[k]] - width_[all[k]] / 2;
    }
  }

  std::vector<std::vector<uint32_t>> rows_; ///< places of each row, in order
  std::vector<uint32_t> row_;               ///< row of each place; the first places are the nodes'
  std::vector<double> width_, center_, left_;
  Neighbours up_, down_;
  std::vector<std::vector<uint32_t>> edges_; ///< the places along each edge
};

constexpr const char *kStyle = R"(<style>
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; text-anchor: middle; fill: #1f2937 }
.title { font-size: 14px; font-weight: 600; text-anchor: start }
.detail { font-size: 9.5px; fill: #6b7280 }
.page { fill: #fff }
.op { fill: #2f6db5 }
.on { fill: #fff }
.value { fill: #e5e7eb; stroke: #9ca3af }
.state { fill: #fef3c7; stroke: #d97706 }
.edge { fill: none; stroke: #6b7280; stroke-width: 1.2 }
.head { fill: #6b7280 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb }
  .on { fill: #fff }
  .page { fill: #14171c }
  .value { fill: #374151; stroke: #6b7280 }
  .state { fill: #713f12; stroke: #d97706 }
  .detail { fill: #9ca3af }
}
</style>
)";

std::string svg(const Picture &picture) {
  const Layout layout(picture);
  const std::string width = number(std::max(layout.width, 40 + kNameWidth * static_cast<double>(picture.title.size())));
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + number(layout.height) +
                    "\" width=\"" + width + "\" height=\"" + number(layout.height) + "\">\n" + kStyle +
                    "<rect class=\"page\" width=\"" + width + "\" height=\"" + number(layout.height) + "\"/>\n" +
                    "<text class=\"title\" x=\"" + number(kMargin) + "\" y=\"24\">" + xmlEscaped(picture.title) +
                    "</text>\n";
  for (const auto &way : layout.edges()) {
    std::string path;
    for (size_t k = 1; k < way.size(); ++k) {
      const double half = kBoxHeight / 2;
      const double x1 = layout.x(way[k - 1]), x2 = layout.x(way[k]);
      const double y1 = layout.y(way[k - 1]) + (k == 1 ? half : 0);
      const double y2 = layout.y(way[k]) - (k + 1 == way.size() ? half + 5 : 0), middle = (y1 + y2) / 2;
      path += (k == 1 ? "M" + number(x1) + " " + number(y1) : "") + "C" + number(x1) + " " + number(middle) + " " +
              number(x2) + " " + number(middle) + " " + number(x2) + " " + number(y2);
    }
    const std::string x = number(layout.x(way.back())), y = number(layout.y(way.back()) - kBoxHeight / 2);
    out += "<path class=\"edge\" d=\"" + path + "\"/><path class=\"head\" d=\"M" + x + " " + y + "l-4 -8h8z\"/>\n";
  }
  for (uint32_t i = 0; i < picture.nodes.size(); ++i) {
    const Node &node = picture.nodes[i];
    const double x = layout.x(i), y = layout.y(i), wide = layout.boxWidth(i);
    const bool isOp = node.kind == Kind::Op;
    if (node.kind != Kind::Constant)
      out += std::string("<rect class=\"") +
             (isOp                       ? "op"
              : node.kind == Kind::State ? "state"
                                         : "value") +
             "\" x=\"" + number(x - wide / 2) + "\" y=\"" + number(y - kBoxHeight / 2) + "\" width=\"" + number(wide) +
             "\" height=\"" + number(kBoxHeight) + "\" rx=\"" + (isOp ? "5" : number(kBoxHeight / 2)) + "\"/>";
    out += std::string("<text") + (isOp ? " class=\"on\"" : "") + " x=\"" + number(x) + "\" y=\"" +
           number(y + (node.detail.empty() ? 4 : -2)) + "\">" + xmlEscaped(elided(node.name, 48)) + "</text>";
    if (!node.detail.empty())
      out += std::string("<text class=\"detail") + (isOp ? " on" : "") + "\" x=\"" + number(x) + "\" y=\"" +
             number(y + 12) + "\">" + xmlEscaped(node.detail) + "</text>";
    out += "\n";
  }
  return out + "</svg>\n";
}

} // namespace

std::optional<Drawing> drawingOf(std::string_view file) {
  if (file.ends_with(".dot"))
    return Drawing::Dot;
  if (file.ends_with(".svg"))
    return Drawing::Svg;
  if (file.ends_with(".txt"))
    return Drawing::Text;
  return std::nullopt;
}

Drawn draw(std::string_view mlirText, Drawing form, const std::string &title) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(mlirText, mlir::ParserConfig(&context));
  auto main = module ? module->lookupSymbol<mlir::func::FuncOp>("main") : mlir::func::FuncOp();
  if (!main || main.isExternal())
    return {.text = {}, .problem = "there is no graph to draw: @main is missing"};
  Picture picture = pictureOf(main);
  const size_t ops = static_cast<size_t>(std::ranges::count(picture.nodes, Kind::Op, &Node::kind));
  picture.title = elided(clean(title), 80) + ": " + std::to_string(ops) + (ops == 1 ? " op" : " ops");
  if (form == Drawing::Dot)
    return {.text = dot(picture), .problem = {}};
  if (form == Drawing::Text)
    return {.text = text(picture), .problem = {}};
  if (picture.nodes.size() > kMostDrawnNodes)
    return {.text = {},
            .problem = "a graph of " + std::to_string(picture.nodes.size()) + " nodes makes no picture (the most are " +
                       std::to_string(kMostDrawnNodes) + "): name the file .dot and give it to Graphviz, or .txt"};
  return {.text = svg(picture), .problem = {}};
}

} // namespace tressel::graph
