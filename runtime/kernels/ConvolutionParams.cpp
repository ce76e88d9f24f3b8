#include "ConvolutionParams.h"

#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::kernels {

/// Channels of a group in packed weights, rounded up to whole blocks.
static constexpr int64_t paddedChannels(int64_t channels) {
  return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
}

int64_t ConvolutionParams::splitSumsBytes() const {
  return element == Element::F32 ? 0 : (4 * splitSumsOf(shape) + 63) / 64 * 64;
}

int64_t ConvolutionParams::splitBytes() const {
  if (!channelsLast || packed < 0 || !maySplit(shape))
    return 0;
  const int64_t rows = pixels().numberOr(dim::kMaxSize);
  return rows < kLeastSplitRows ? 0 : splitSumsBytes() + splitScratchBytes(rows, depthOf(shape));
}

int64_t ConvolutionParams::plainScratchBytes() const {
  if (element != Element::F32)
    return (4 * halfImplicitScratchFloats(shape, packed >= 0) + 63) / 64 * 64;
  if (channelsLast)
    return (4 * implicitScratchFloats(shape, packed >= 0) + 63) / 64 * 64;
  int64_t floats = convolutionScratchFloats(shape);
  if (packed < 0 && wantsPacked()) {
    const int64_t groups = std::max<int64_t>(1, shape.groups / blocks);
    floats += groups * paddedChannels(blockChannels() / groups) * depthOf(shape);
  }
  return (floats * 4 + 63) / 64 * 64;
}

ConvolutionCallSizes<int64_t> ConvolutionParams::at(const int64_t *scalars) const {
  dim::Values values;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.bind(symbols[i], scalars[i]);
  auto number = [&](Size size) { return dim::evaluate(size, values); };
  ConvolutionCallSizes<int64_t> p{.channelsLast = channelsLast,
                                  .element = element,
                                  .batch = number(batch),
                                  .rows = number(rows),
                                  .blocks = blocks,
                                  .typicalRows = typicalRows,
                                  .shape = {shape, {}, {}},
                                  .image = image,
                                  .weights = weights,
                                  .packed = packed};
  std::ranges::transform(shape.in, p.shape.in, number);
  std::ranges::transform(shape.out, p.shape.out, number);
  return p;
}

static FieldsText weightsText(const ConvolutionParams &p, const char *kind) {
  const ConvolutionForm &s = p.shape;
  FieldsText text;
  text.text("kind", kind)
      .number("channels_last", p.channelsLast)
      .number("typical", p.typicalRows)
      .number("groups", s.groups)
      .number("in_channels", s.inChannels)
      .number("out_channels", s.outChannels);
  text.sizes("window", s.window).element("element", p.element);
  return text;
}

std::string ConvolutionParams::packText() const { return weightsText(*this, "pack_convolution").str(); }

std::string ConvolutionParams::text() const {
  Size unit = blocks == 1 ? rows * shape.outChannels : Size();
  if (!channelsLast) {
    unit = blockChannels();
    for (Size size : shape.out)
      unit *= size;
  }
  return weightsText(*this, "convolution")
      .size("batch", batch)
      .number("blocks", blocks)
      .size("rows", rows)
      .sizes("in", shape.in)
      .sizes("out", shape.out)
      .sizes("strides", shape.stride)
      .sizes("dilations", shape.dilation)
      .sizes("pads", shape.pad)
      .number("image", image)
      .number("weights", weights)
      .number("packed", packed)
      .size("unit", unit)
      .sizes("symbols", symbols)
      .str();
}

ConvolutionParams ConvolutionParams::parse(const Fields &fields, bool isPack) {
  auto refuse = [](const std::string &why) -> void {
    throw InputError("the description of a convolution is damaged: " + why);
  };
  constexpr int64_t most = dim::kMaxSize, mostElements = int64_t(1) << 40;
  ConvolutionParams p;
  ConvolutionSizes<Size> &s = p.shape;
  auto three = [&](const char *name, int64_t least) {
    std::vector<Size> values = fields.sizes(name);
    if (values.size() != 3)
      refuse(std::string("not three numbers in '") + name + "'");
    for (Size value : values)
      if (value.isNumber() && (value.number() < least || value.number() > most))
        refuse(std::string("an impossible size in '") + name + "'");
    return values;
  };
  auto threeNumbers = [&](const char *name, int64_t least, int64_t(&to)[3]) {
    const std::vector<Size> values = three(name, least);
    for (size_t d = 0; d < 3; ++d) {
      if (!values[d].isNumber())
        refuse(std::string("a size that is no number in '") + name + "'");
      to[d] = values[d].number();
    }
  };
  p.channelsLast = fields.number("channels_last", 0, 1) != 0;
  p.typicalRows = fields.number("typical", 1, most);
  s.groups = fields.number("groups", 1, most);
  s.inChannels = fields.number("in_channels", 1, most), s.outChannels = fields.number("out_channels", 1, most);
  threeNumbers("window", 1, s.window);
  if (s.inChannels % s.groups != 0 || s.outChannels % s.groups != 0)
    refuse("its groups do not divide its channels");
  int64_t weights = s.outChannels + 16 * s.groups;
  for (int64_t size : {s.inChannels / s.groups, s.window[0], s.window[1], s.window[2]})
    if (size > mostElements / weights)
      refuse("its weights are too many");
    else
      weights *= size;
  p.element = fields.element("element");
  if (p.element != Element::F32 && (!p.channelsLast || isChannelwise(s)))
    refuse("its form wants f32");
  if (isPack)
    return p;
  p.batch = fields.size("batch");
  if (p.batch.isNumber() && (p.batch.number() < 0 || p.batch.number() > most))
    refuse("an impossible size in 'batch'");
  p.blocks = fields.number("blocks", 1, most);
  std::ranges::copy(three("in", 0), s.in);
  std::ranges::copy(three("out", 0), s.out);
  threeNumbers("strides", 1, s.stride), threeNumbers("dilations", 1, s.dilation), threeNumbers("pads", 0, s.pad);
  p.rows = fields.size("rows");
  if (p.rows.isNumber() && (p.rows.number() < 1 || p.rows.number() > most * most))
    refuse("an impossible size in 'rows'");
  double arranged = static_cast<double>(weights);
  for (int d = 0; d < 3; ++d)
    arranged *= static_cast<double>(s.window[d]) * static_cast<double>(s.dilation[d]);
  if (arranged > static_cast<double>(mostElements))
    refuse("its window is too large");
  p.image = static_cast<int32_t>(fields.number("image", 0, 1 << 16));
  p.weights = static_cast<int32_t>(fields.number("weights", 0, 1 << 16));
  p.packed = static_cast<int32_t>(fields.number("packed", -1, 1 << 16));
  p.symbols = fields.symbols("symbols");
  if (p.channelsLast)
    return p;
  const bool cut = s.groups == 1 ? s.outChannels % (p.blocks * kChannelBlock) == 0 : s.groups % p.blocks == 0;
  if (s.outChannels % p.blocks != 0 || (p.blocks > 1 && !isDepthwise(s) && !cut))
    refuse("its blocks do not divide its channels");
  return p;
}

} // namespace tressel::kernels
