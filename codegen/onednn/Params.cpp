#include "codegen/onednn/Params.h"

#include "tressel/runtime/Error.h"

#include <nlohmann/json.hpp>

namespace tressel::onednn {

using nlohmann::json;

static const char *const kindNames[] = {"matmul", "pack_matmul", "conv", "pack_conv"};

std::string Params::toJson() const {
  json j{{"kind", kindNames[static_cast<int>(kind)]}, {"left", left}, {"right", right}, {"packed", packed}, {"unit", unit}};
  if (kind == Kind::Matmul || kind == Kind::PackMatmul)
    j["matmul"] = {{"batch", matmul.batch}, {"m", matmul.m}, {"n", matmul.n}, {"k", matmul.k},
                   {"a", matmul.a},         {"b", matmul.b}, {"rows", matmul.rows}};
  else
    j["conv"] = {{"batch", conv.batch},          {"groups", conv.groups},       {"in_channels", conv.inChannels},
                 {"out_channels", conv.outChannels}, {"blocks", conv.blocks},   {"in", conv.in},
                 {"window", conv.window},        {"out", conv.out},             {"strides", conv.strides},
                 {"dilations", conv.dilations},  {"pad_low", conv.padLow},      {"pad_high", conv.padHigh}};
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
    p.left = j.at("left"), p.right = j.at("right"), p.packed = j.at("packed"), p.unit = j.at("unit");
    if (p.kind == Kind::Matmul || p.kind == Kind::PackMatmul) {
      const json &m = j.at("matmul");
      p.matmul = {m.at("batch"), m.at("m"), m.at("n"), m.at("k"), m.at("a"), m.at("b"), m.at("rows")};
      if (p.matmul.batch < 1 || p.matmul.m < 1 || p.matmul.n < 1 || p.matmul.k < 1 || p.matmul.rows < 1)
        throw InputError("oneDNN matmul with a size below 1");
    } else {
      const json &c = j.at("conv");
      p.conv = {c.at("batch"), c.at("groups"), c.at("in_channels"), c.at("out_channels"), c.at("blocks"), c.at("in"),
                c.at("window"), c.at("out"), c.at("strides"), c.at("dilations"), c.at("pad_low"), c.at("pad_high")};
      size_t rank = p.conv.in.size();
      for (const auto *v : {&p.conv.window, &p.conv.out, &p.conv.strides, &p.conv.dilations, &p.conv.padLow, &p.conv.padHigh})
        if (v->size() != rank || rank < 1 || rank > 3)
          throw InputError("oneDNN convolution with sizes of different rank");
      if (p.conv.blocks < 1 || p.conv.groups < 1 || p.conv.outChannels % (p.conv.blocks * p.conv.groups) != 0)
        throw InputError("oneDNN convolution whose blocks do not divide its channels");
    }
    return p;
  } catch (const json::exception &e) {
    throw InputError("oneDNN kernel description is damaged: " + std::string(e.what()));
  }
}

} // namespace tressel::onednn
