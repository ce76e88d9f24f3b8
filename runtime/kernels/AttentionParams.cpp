#include "AttentionParams.h"

#include "Attention.h"
#include "Product.h"
#include "tressel/runtime/Error.h"

#include <cmath>
#include <cstring>

namespace tressel::kernels {

Size AttentionParams::scratchBytes() const {
  const int64_t few = productScratchFloats(kDepthOfBlock, /*leftDense=*/true, /*packed=*/false);
  const Size row = dim::alignUp(keys, 16), atOnce = dim::min(queries, kQueriesAtOnce);
  const Size packed = row * size + dim::alignUp(width, 16) * keys;
  return 4 * (atOnce * row + dim::max(packed, few));
}

AttentionSizes<int64_t> AttentionParams::at(const int64_t *scalars) const {
  dim::Values values;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.bind(symbols[i], scalars[i]);
  auto number = [&](Size size) { return dim::evaluate(size, values); };
  return {.heads = number(heads),
          .queries = number(queries),
          .keys = number(keys),
          .size = number(size),
          .width = number(width),
          .rows = number(rows),
          .shared = shared,
          .causal = causal,
          .scale = scale,
          .q = q,
          .k = k,
          .v = v,
          .mask = mask,
          .maskHides = maskHides,
          .maskHeads = number(maskHeads),
          .maskShared = number(maskShared),
          .maskRow = number(maskRow)};
}

std::string AttentionParams::text() const {
  int64_t scaleBits; // the bits of a double: exact, and independent of the format of numbers
  std::memcpy(&scaleBits, &scale, sizeof scaleBits);
  return FieldsText()
      .text("kind", "attention")
      .size("heads", heads)
      .number("shared", shared)
      .size("queries", queries)
      .size("keys", keys)
      .size("size", size)
      .size("width", width)
      .size("rows", rows)
      .number("causal", causal)
      .number("scale_bits", scaleBits)
      .number("q", q)
      .number("k", k)
      .number("v", v)
      .number("mask", mask)
      .number("mask_hides", maskHides)
      .size("mask_heads", maskHeads)
      .size("mask_shared", maskShared)
      .size("mask_row", maskRow)
      .sizes("symbols", symbols)
      .str();
}

AttentionParams AttentionParams::parse(const Fields &fields) {
  constexpr int64_t most = dim::kMaxSize;
  AttentionParams p;
  auto size = [&](const char *name, int64_t least) {
    const Size value = fields.size(name);
    if (value.isNumber() && (value.number() < least || value.number() > most))
      throw InputError(std::string("the description of attention has an impossible size in '") + name + "'");
    return value;
  };
  p.heads = size("heads", 0), p.queries = size("queries", 0), p.rows = size("rows", 0);
  p.keys = size("keys", 1), p.size = size("size", 0), p.width = size("width", 0);
  if (p.rows == 0 && p.queries != 0)
    throw InputError("the description of attention has units of no queries");
  p.shared = fields.number("shared", 1, most);
  p.causal = fields.number("causal", 0, 1) != 0;
  const int64_t scaleBits = fields.number("scale_bits");
  std::memcpy(&p.scale, &scaleBits, sizeof scaleBits);
  p.q = static_cast<int32_t>(fields.number("q", 0, 1 << 16));
  p.k = static_cast<int32_t>(fields.number("k", 0, 1 << 16));
  p.v = static_cast<int32_t>(fields.number("v", 0, 1 << 16));
  p.mask = static_cast<int32_t>(fields.number("mask", -1, 1 << 16));
  p.maskHides = fields.number("mask_hides", 0, 1) != 0;
  p.maskHeads = size("mask_heads", 1), p.maskShared = size("mask_shared", 1), p.maskRow = size("mask_row", 0);
  p.symbols = fields.symbols("symbols");
  return p;
}

} // namespace tressel::kernels
