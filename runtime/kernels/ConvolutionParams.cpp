#include "ConvolutionParams.h"

#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::kernels {

/// Channels of a group as packed weights count them.
static constexpr int64_t paddedChannels(int64_t channels) {
  return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
}

int64_t ConvolutionParams::splitSumsBytes() const {
  return element == Element::F32 ? 0 : (4 * splitSumsOf(shape) + 63) / 64 * 64;
}

int64_t ConvolutionParams::splitBytes() const {
  if (!channelsLast || packed < 0 || !maySplit(shape))
    return 0;
  const int64_t rows = dim::isConstant(pixels()) ? pixels() : dim::kMaxSize;
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

ConvolutionParams ConvolutionParams::at(const int64_t *scalars) const {
  dim::Values values;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.bind(symbols[i], scalars[i]);
  ConvolutionParams p = *this;
  p.batch = dim::evaluate(batch, values), p.rows = dim::evaluate(rows, values);
  for (int d = 0; d < 3; ++d) {
    p.shape.in[d] = dim::evaluate(shape.in[d], values);
    p.shape.out[d] = dim::evaluate(shape.out[d], values);
  }
  p.symbols.clear();
  return p;
}

static std::vector<int64_t> listOf(const int64_t (&values)[3]) { return {values, values + 3}; }

static FieldsText weightsText(const ConvolutionParams &p, const char *kind) {
  const ConvolutionShape &s = p.shape;
  FieldsText text;
  text.text("kind", kind)
      .size("channels_last", p.channelsLast)
      .size("typical", p.typicalRows)
      .size("groups", s.groups)
      .size("in_channels", s.inChannels)
      .size("out_channels", s.outChannels);
  text.sizes("window", listOf(s.window)).element("element", p.element);
  return text;
}

std::string ConvolutionParams::packText() const { return weightsText(*this, "pack_convolution").str(); }

std::string ConvolutionParams::text() const {
  int64_t unit = blocks == 1 ? dim::mul(rows, shape.outChannels) : 0;
  if (!channelsLast) {
    unit = blockChannels();
    for (int64_t size : shape.out)
      unit = dim::mul(unit, size);
  }
  return weightsText(*this, "convolution")
      .size("batch", batch)
      .size("blocks", blocks)
      .size("rows", rows)
      .sizes("in", listOf(shape.in))
      .sizes("out", listOf(shape.out))
      .sizes("strides", listOf(shape.stride))
      .sizes("dilations", listOf(shape.dilation))
      .sizes("pads", listOf(shape.pad))
      .size("image", image)
      .size("weights", weights)
      .size("packed", packed)
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
  ConvolutionShape &s = p.shape;
  auto three = [&](const char *name, int64_t least, int64_t(&to)[3], bool mayBeSymbolic = false) {
    const std::vector<int64_t> values = fields.sizes(name);
    if (values.size() != 3)
      refuse(std::string("not three numbers in '") + name + "'");
    for (int64_t value : values)
      if (dim::isConstant(value) ? value < least || value > most : !mayBeSymbolic)
        refuse(std::string("an impossible size in '") + name + "'");
    std::copy(values.begin(), values.end(), to);
  };
  p.channelsLast = fields.number("channels_last", 0, 1) != 0;
  p.typicalRows = fields.number("typical", 1, most);
  s.groups = fields.number("groups", 1, most);
  s.inChannels = fields.number("in_channels", 1, most), s.outChannels = fields.number("out_channels", 1, most);
  three("window", 1, s.window);
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
  if (dim::isConstant(p.batch) && (p.batch < 0 || p.batch > most))
    refuse("an impossible size in 'batch'");
  p.blocks = fields.number("blocks", 1, most);
  three("in", 0, s.in, true), three("out", 0, s.out, true);
  three("strides", 1, s.stride), three("dilations", 1, s.dilation), three("pads", 0, s.pad);
  p.rows = fields.size("rows");
  if (dim::isConstant(p.rows) && (p.rows < 1 || p.rows > most * most))
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
