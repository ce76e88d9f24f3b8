#include "AttentionParams.h"

#include "Attention.h"
#include "Product.h"
#include "tressel/runtime/Error.h"

#include <cmath>
#include <cstring>

namespace tressel::kernels {

int64_t AttentionParams::scratchBytes() const {
  const int64_t few = productScratchFloats(kDepthOfBlock, /*leftDense=*/true, /*packed=*/false);
  const int64_t row = dim::alignUp(keys, 16), atOnce = dim::min(queries, kQueriesAtOnce);
  const int64_t packed = dim::add(dim::mul(row, size), dim::mul(dim::alignUp(width, 16), keys));
  return dim::mul(4, dim::add(dim::mul(atOnce, row), dim::max(packed, few)));
}

AttentionParams AttentionParams::at(const int64_t *scalars) const {
  if (symbols.empty())
    return *this;
  dim::Values values;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.bind(symbols[i], scalars[i]);
  AttentionParams p = *this;
  for (int64_t *size :
       {&p.heads, &p.queries, &p.keys, &p.size, &p.width, &p.rows, &p.maskHeads, &p.maskShared, &p.maskRow})
    *size = dim::evaluate(*size, values);
  p.symbols.clear();
  return p;
}

std::string AttentionParams::text() const {
  int64_t scaleBits; // exactly, without a decimal point
  std::memcpy(&scaleBits, &scale, sizeof scaleBits);
  return FieldsText()
      .text("kind", "attention")
      .size("heads", heads)
      .size("shared", shared)
      .size("queries", queries)
      .size("keys", keys)
      .size("size", size)
      .size("width", width)
      .size("rows", rows)
      .size("causal", causal)
      .size("scale_bits", scaleBits)
      .size("q", q)
      .size("k", k)
      .size("v", v)
      .size("mask", mask)
      .size("mask_hides", maskHides)
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
    const int64_t value = fields.size(name);
    if (dim::isConstant(value) && (value < least || value > most))
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
