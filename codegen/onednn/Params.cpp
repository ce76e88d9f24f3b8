#include "codegen/onednn/Params.h"

#include "tressel/runtime/Error.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

namespace tressel::onednn {

using nlohmann::json;

Numbers Params::at(const dim::Values &values) const {
  auto number = [&](Size size) { return dim::evaluate(size, values); };
  auto three = [&](const std::array<Size, 3> &sizes) {
    return std::array<int64_t, 3>{number(sizes[0]), number(sizes[1]), number(sizes[2])};
  };
  auto all = [&](const std::vector<Size> &sizes) {
    std::vector<int64_t> numbers;
    std::ranges::transform(sizes, std::back_inserter(numbers), number);
    return numbers;
  };
  Numbers n{kind,
            {number(matmul.batch), number(matmul.m), number(matmul.n), number(matmul.k), three(matmul.a),
             three(matmul.b), number(matmul.rows)},
            {number(conv.batch), conv.groups, conv.inChannels, conv.outChannels, conv.blocks, all(conv.in), conv.window,
             all(conv.out), conv.strides, conv.dilations, conv.padLow, conv.padHigh, conv.channelsLast, conv.images},
            left,
            right,
            packed,
            number(unit)};
  callUnitSizesDense(n.matmul);
  return n;
}

Numbers Params::typical() const {
  dim::Values values;
  for (Size symbol : symbols)
    values.bind(symbol, dim::hint(symbol));
  return at(values);
}

Params Params::of(const Numbers &n) {
  auto three = [](const std::array<int64_t, 3> &numbers) {
    return std::array<Size, 3>{numbers[0], numbers[1], numbers[2]};
  };
  const Matmul<int64_t> &m = n.matmul;
  const Conv<int64_t> &c = n.conv;
  Params p;
  p.kind = n.kind, p.left = n.left, p.right = n.right, p.packed = n.packed, p.unit = n.unit;
  p.matmul = {m.batch, m.m, m.n, m.k, three(m.a), three(m.b), m.rows};
  p.conv = {c.batch,        c.groups,
            c.inChannels,   c.outChannels,
            c.blocks,       {c.in.begin(), c.in.end()},
            c.window,       {c.out.begin(), c.out.end()},
            c.strides,      c.dilations,
            c.padLow,       c.padHigh,
            c.channelsLast, c.images};
  return p;
}

/// A number, or an expression's text.
static json toJson(Size size) { return size.isNumber() ? json(size.number()) : json(dim::spell(size)); }
static json toJson(std::span<const Size> sizes) {
  json list = json::array();
  for (Size size : sizes)
    list.push_back(toJson(size));
  return list;
}
static Size sizeOf(const json &j) {
  if (!j.is_string())
    return j.get<int64_t>();
  const std::optional<Size> size = dim::parse(j.get<std::string>());
  if (!size)
    throw InputError("a oneDNN kernel has an impossible size");
  return *size;
}
static std::vector<Size> sizesOf(const json &j) {
  std::vector<Size> sizes;
  for (const json &size : j)
    sizes.push_back(sizeOf(size));
  return sizes;
}
static std::array<Size, 3> threeOf(const json &j) {
  const std::vector<Size> sizes = sizesOf(j);
  if (sizes.size() != 3)
    throw InputError("oneDNN matmul without three strides");
  return {sizes[0], sizes[1], sizes[2]};
}

static const char *const kindNames[] = {"matmul",    "pack_matmul",     "conv",
                                        "pack_conv", "conv_by_weights", "conv_by_data"};
static constexpr int kNumKinds = std::size(kindNames);

std::string Params::toJson() const {
  json j{{"kind", kindNames[static_cast<int>(kind)]},
         {"left", left},
         {"right", right},
         {"packed", packed},
         {"unit", onednn::toJson(unit)},
         {"symbols", onednn::toJson(symbols)}};
  if (kind == Kind::Matmul || kind == Kind::PackMatmul)
    j["matmul"] = {{"batch", onednn::toJson(matmul.batch)}, {"m", onednn::toJson(matmul.m)},
                   {"n", onednn::toJson(matmul.n)},         {"k", onednn::toJson(matmul.k)},
                   {"a", onednn::toJson(matmul.a)},         {"b", onednn::toJson(matmul.b)},
                   {"rows", onednn::toJson(matmul.rows)}};
  else
    j["conv"] = {{"batch", onednn::toJson(conv.batch)},
                 {"groups", conv.groups},
                 {"in_channels", conv.inChannels},
                 {"out_channels", conv.outChannels},
                 {"blocks", conv.blocks},
                 {"in", onednn::toJson(conv.in)},
                 {"window", conv.window},
                 {"out", onednn::toJson(conv.out)},
                 {"strides", conv.strides},
                 {"dilations", conv.dilations},
                 {"pad_low", conv.padLow},
                 {"pad_high", conv.padHigh},
                 {"channels_last", conv.channelsLast},
                 {"images", conv.images}};
  return j.dump();
}

Params Params::fromJson(const std::string &text) {
  try {
    json j = json::parse(text);
    Params p;
    std::string kind = j.at("kind");
    int which = 0;
    while (which < kNumKinds && kind != kindNames[which])
      ++which;
    if (which == kNumKinds)
      throw InputError("oneDNN kernel of unknown kind '" + kind + "'");
    p.kind = static_cast<Kind>(which);
    p.left = j.at("left"), p.right = j.at("right"), p.packed = j.at("packed"), p.unit = sizeOf(j.at("unit"));
    p.symbols = sizesOf(j.at("symbols"));
    for (Size symbol : p.symbols)
      if (!dim::isSymbol(symbol))
        throw InputError("a oneDNN kernel depends on something that is no dimension");
    if (p.kind == Kind::Matmul || p.kind == Kind::PackMatmul) {
      const json &m = j.at("matmul");
      p.matmul = {sizeOf(m.at("batch")), sizeOf(m.at("m")),  sizeOf(m.at("n")),   sizeOf(m.at("k")),
                  threeOf(m.at("a")),    threeOf(m.at("b")), sizeOf(m.at("rows"))};
      for (Size size : {p.matmul.batch, p.matmul.m, p.matmul.n, p.matmul.k, p.matmul.rows})
        if (size.numberOr(1) < 1)
          throw InputError("oneDNN matmul with a size below 1");
    } else {
      const json &c = j.at("conv");
      p.conv = {sizeOf(c.at("batch")), c.at("groups"),   c.at("in_channels"),   c.at("out_channels"), c.at("blocks"),
                sizesOf(c.at("in")),   c.at("window"),   sizesOf(c.at("out")),  c.at("strides"),      c.at("dilations"),
                c.at("pad_low"),       c.at("pad_high"), c.at("channels_last"), c.at("images")};
      size_t rank = p.conv.in.size();
      for (size_t entries : {p.conv.window.size(), p.conv.out.size(), p.conv.strides.size(), p.conv.dilations.size(),
                             p.conv.padLow.size(), p.conv.padHigh.size()})
        if (entries != rank || rank < 1 || rank > 3)
          throw InputError("oneDNN convolution with sizes of different rank");
      // By the weights, a range of the features is one of whole groups.
      const bool wholeGroups = p.kind == Kind::ConvByWeights && p.conv.groups > 1;
      const int64_t ranged = p.kind == Kind::ConvByData ? p.conv.inChannels : p.conv.outChannels;
      if (p.conv.blocks < 1 || p.conv.groups < 1 || p.conv.outChannels % p.conv.groups != 0 ||
          p.conv.inChannels % p.conv.groups != 0 ||
          (wholeGroups ? p.conv.groups % p.conv.blocks != 0 : ranged % (p.conv.blocks * p.conv.groups) != 0))
        throw InputError("oneDNN convolution whose blocks do not divide its channels");
      if (p.conv.images < 1 ||
          (p.conv.images > 1 && (!p.conv.batch.isNumber() || p.conv.batch.number() % p.conv.images != 0)))
        throw InputError("oneDNN convolution whose units do not divide its images");
    }
    return p;
  } catch (const json::exception &e) {
    throw InputError("oneDNN kernel description is damaged: " + std::string(e.what()));
  }
}

} // namespace tressel::onednn
