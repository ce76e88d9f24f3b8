#include "codegen/onednn/Params.h"

#include "tressel/runtime/Error.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

namespace tressel::onednn {

using nlohmann::json;

void Matmul::callUnitSizesDense() {
  auto fix = [](int64_t &stride, int64_t size, int64_t value) {
    if (size == 1)
      stride = value;
  };
  fix(a[2], k, 1), fix(a[1], m, dim::max(dim::mul(k, a[2]), 1));
  fix(b[2], n, 1), fix(b[1], k, dim::max(dim::mul(n, b[2]), 1));
}

template <typename Fn> static void forEachSize(Params &p, Fn fn) {
  Matmul &m = p.matmul;
  for (int64_t *size : {&m.batch, &m.m, &m.n, &m.k, &m.rows, &p.unit, &p.conv.batch})
    fn(*size);
  for (auto *strides : {&m.a, &m.b})
    std::for_each(strides->begin(), strides->end(), fn);
  for (auto *sizes : {&p.conv.in, &p.conv.out})
    std::for_each(sizes->begin(), sizes->end(), fn);
}

Params Params::at(const dim::Values &values) const {
  Params p = *this;
  p.symbols.clear();
  forEachSize(p, [&](int64_t &size) { size = dim::evaluate(size, values); });
  p.matmul.callUnitSizesDense();
  return p;
}

Params Params::typical() const {
  dim::Values values;
  for (int64_t symbol : symbols)
    values.bind(symbol, dim::hint(symbol));
  return at(values);
}

/// A number, or an expression's text.
static json toJson(int64_t size) { return dim::isConstant(size) ? json(size) : json(dim::spell(size)); }
static json toJson(std::span<const int64_t> sizes) {
  json list = json::array();
  for (int64_t size : sizes)
    list.push_back(toJson(size));
  return list;
}
static int64_t sizeOf(const json &j) {
  const std::optional<int64_t> size =
      j.is_string() ? dim::parse(j.get<std::string>()) : std::optional(j.get<int64_t>());
  if (!size || (!j.is_string() && !dim::isConstant(*size)))
    throw InputError("a oneDNN kernel has an impossible size");
  return *size;
}
static std::vector<int64_t> sizesOf(const json &j) {
  std::vector<int64_t> sizes;
  for (const json &size : j)
    sizes.push_back(sizeOf(size));
  return sizes;
}
static std::array<int64_t, 3> threeOf(const json &j) {
  const std::vector<int64_t> sizes = sizesOf(j);
  if (sizes.size() != 3)
    throw InputError("oneDNN matmul without three strides");
  return {sizes[0], sizes[1], sizes[2]};
}

static const char *const kindNames[] = {"matmul", "pack_matmul", "conv", "pack_conv"};

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
                 {"channels_last", conv.channelsLast}};
  return j.dump();
}

Params Params::fromJson(const std::string &text) {
  try {
    json j = json::parse(text);
    Params p;
    std::string kind = j.at("kind");
    int which = 0;
    while (which < 4 && kind != kindNames[which])
      ++which;
    if (which == 4)
      throw InputError("oneDNN kernel of unknown kind '" + kind + "'");
    p.kind = static_cast<Kind>(which);
    p.left = j.at("left"), p.right = j.at("right"), p.packed = j.at("packed"), p.unit = sizeOf(j.at("unit"));
    p.symbols = sizesOf(j.at("symbols"));
    for (int64_t symbol : p.symbols)
      if (!dim::isSymbol(symbol))
        throw InputError("a oneDNN kernel depends on something that is no dimension");
    if (p.kind == Kind::Matmul || p.kind == Kind::PackMatmul) {
      const json &m = j.at("matmul");
      p.matmul = {sizeOf(m.at("batch")), sizeOf(m.at("m")),  sizeOf(m.at("n")),   sizeOf(m.at("k")),
                  threeOf(m.at("a")),    threeOf(m.at("b")), sizeOf(m.at("rows"))};
      for (int64_t size : {p.matmul.batch, p.matmul.m, p.matmul.n, p.matmul.k, p.matmul.rows})
        if (dim::isConstant(size) && size < 1)
          throw InputError("oneDNN matmul with a size below 1");
    } else {
      const json &c = j.at("conv");
      p.conv = {sizeOf(c.at("batch")), c.at("groups"),      c.at("in_channels"), c.at("out_channels"),
                c.at("blocks"),        sizesOf(c.at("in")), c.at("window"),      sizesOf(c.at("out")),
                c.at("strides"),       c.at("dilations"),   c.at("pad_low"),     c.at("pad_high"), c.at("channels_last")};
      size_t rank = p.conv.in.size();
      for (const auto *v : {&p.conv.window, &p.conv.out, &p.conv.strides, &p.conv.dilations, &p.conv.padLow, &p.conv.padHigh})
        if (v->size() != rank || rank < 1 || rank > 3)
          throw InputError("oneDNN convolution with sizes of different rank");
      if (p.conv.blocks < 1 || p.conv.groups < 1 || p.conv.outChannels % (p.conv.blocks * p.conv.groups) != 0 ||
          (p.conv.channelsLast && p.conv.blocks != 1))
        throw InputError("oneDNN convolution whose blocks do not divide its channels");
    }
    return p;
  } catch (const json::exception &e) {
    throw InputError("oneDNN kernel description is damaged: " + std::string(e.what()));
  }
}

} // namespace tressel::onednn
