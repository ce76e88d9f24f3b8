#include "WinogradParams.h"

#include "tressel/runtime/Error.h"

namespace tressel::kernels {

WinogradParams WinogradParams::at(const int64_t *scalars) const {
  dim::Values values;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.bind(symbols[i], scalars[i]);
  WinogradParams p = *this;
  p.batch = dim::evaluate(batch, values);
  for (int d = 0; d < 2; ++d) {
    p.shape.in[d] = dim::evaluate(shape.in[d], values);
    p.shape.out[d] = dim::evaluate(shape.out[d], values);
  }
  p.symbols.clear();
  return p;
}

static FieldsText common(const WinogradParams &p, const char *kind) {
  FieldsText text;
  text.text("kind", kind).size("in_channels", p.shape.inChannels).size("out_channels", p.shape.outChannels);
  return text;
}

std::string WinogradParams::packText() const { return common(*this, "pack_winograd").str(); }

std::string WinogradParams::text() const {
  const WinogradShape &s = shape;
  const int64_t unit = hasEvenUnits() ? dim::mul(kWinogradOut * s.outChannels, s.out[1]) : 0;
  return common(*this, "winograd")
      .size("batch", batch)
      .sizes("in", {s.in, s.in + 2})
      .sizes("out", {s.out, s.out + 2})
      .sizes("pads", {s.pad, s.pad + 2})
      .size("image", image)
      .size("packed", packed)
      .size("unit", unit)
      .sizes("symbols", symbols)
      .str();
}

WinogradParams WinogradParams::parse(const Fields &fields, bool isPack) {
  auto refuse = [](const std::string &why) -> void {
    throw InputError("the description of a convolution is damaged: " + why);
  };
  constexpr int64_t most = dim::kMaxSize, mostElements = int64_t(1) << 40;
  WinogradParams p;
  WinogradShape &s = p.shape;
  s.inChannels = fields.number("in_channels", 1, most), s.outChannels = fields.number("out_channels", 1, most);
  if (s.inChannels > mostElements / kWinogradPoints / (s.outChannels + kWinogradRound))
    refuse("its weights are too many");
  if (isPack)
    return p;
  auto two = [&](const char *name, int64_t least, int64_t(&to)[2], bool mayBeSymbolic) {
    const std::vector<int64_t> values = fields.sizes(name);
    if (values.size() != 2)
      refuse(std::string("not two numbers in '") + name + "'");
    for (int d = 0; d < 2; ++d) {
      to[d] = values[static_cast<size_t>(d)];
      if (dim::isConstant(to[d]) ? to[d] < least || to[d] > most : !mayBeSymbolic)
        refuse(std::string("an impossible size in '") + name + "'");
    }
  };
  p.batch = fields.size("batch");
  if (dim::isConstant(p.batch) && (p.batch < 0 || p.batch > most))
    refuse("an impossible size in 'batch'");
  two("in", 0, s.in, true), two("out", 0, s.out, true), two("pads", 0, s.pad, false);
  p.image = static_cast<int32_t>(fields.number("image", 0, 1 << 16));
  p.packed = static_cast<int32_t>(fields.number("packed", 0, 1 << 16));
  p.symbols = fields.symbols("symbols");
  return p;
}

} // namespace tressel::kernels
