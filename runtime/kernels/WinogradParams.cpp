#include "WinogradParams.h"

#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::kernels {

WinogradCallSizes<int64_t> WinogradParams::at(const int64_t *scalars) const {
  dim::Values values;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.bind(symbols[i], scalars[i]);
  auto number = [&](Size size) { return dim::evaluate(size, values); };
  return {.batch = number(batch),
          .shape = {shape.inChannels,
                    shape.outChannels,
                    {number(shape.in[0]), number(shape.in[1])},
                    {number(shape.out[0]), number(shape.out[1])},
                    {shape.pad[0], shape.pad[1]}},
          .image = image,
          .packed = packed};
}

static FieldsText common(const WinogradParams &p, const char *kind) {
  FieldsText text;
  text.text("kind", kind).number("in_channels", p.shape.inChannels).number("out_channels", p.shape.outChannels);
  return text;
}

std::string WinogradParams::packText() const { return common(*this, "pack_winograd").str(); }

std::string WinogradParams::text() const {
  const WinogradSizes<Size> &s = shape;
  const Size unit = hasEvenUnits() ? kWinogradOut * s.outChannels * s.out[1] : Size();
  return common(*this, "winograd")
      .size("batch", batch)
      .sizes("in", s.in)
      .sizes("out", s.out)
      .sizes("pads", s.pad)
      .number("image", image)
      .number("packed", packed)
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
  WinogradSizes<Size> &s = p.shape;
  s.inChannels = fields.number("in_channels", 1, most), s.outChannels = fields.number("out_channels", 1, most);
  if (s.inChannels > mostElements / kWinogradPoints / (s.outChannels + kWinogradRound))
    refuse("its weights are too many");
  if (isPack)
    return p;
  auto two = [&](const char *name) {
    std::vector<Size> values = fields.sizes(name);
    if (values.size() != 2)
      refuse(std::string("not two numbers in '") + name + "'");
    for (Size value : values)
      if (value.isNumber() && (value.number() < 0 || value.number() > most))
        refuse(std::string("an impossible size in '") + name + "'");
    return values;
  };
  p.batch = fields.size("batch");
  if (p.batch.isNumber() && (p.batch.number() < 0 || p.batch.number() > most))
    refuse("an impossible size in 'batch'");
  std::ranges::copy(two("in"), s.in);
  std::ranges::copy(two("out"), s.out);
  for (size_t d = 0; d < 2; ++d) {
    const Size pad = two("pads")[d];
    if (!pad.isNumber())
      refuse("a size that is no number in 'pads'");
    s.pad[d] = pad.number();
  }
  p.image = static_cast<int32_t>(fields.number("image", 0, 1 << 16));
  p.packed = static_cast<int32_t>(fields.number("packed", 0, 1 << 16));
  p.symbols = fields.symbols("symbols");
  return p;
}

} // namespace tressel::kernels
