#include "ProductParams.h"

#include "Product.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::kernels {

int64_t ProductParams::splitBytes() const {
  auto most = [](Size size) { return size.numberOr(dim::kMaxSize); };
  if (most(m) < kLeastSplitRows || most(n) < kLeastSplitColumns || most(k) < kLeastSplitDepth)
    return 0;
  return splitScratchBytes(most(m), most(k));
}

int64_t ProductParams::plainScratchBytes() const {
  const int64_t depth = k.numberOr(kDepthOfBlock);
  if (element != Element::F32)
    return (4 * halfProductScratchFloats(m.numberOr(kRowsOfBlock), depth) + 63) / 64 * 64;
  return (4 * productScratchFloats(depth, a[2] == 1, packed >= 0) + 63) / 64 * 64;
}

int64_t ProductParams::packedBytes() const { return bytesOf(packedAs) * packedFloats(n.number(), k.number()); }

ProductSizes<int64_t> ProductParams::at(const int64_t *scalars) const {
  dim::Values values;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.bind(symbols[i], scalars[i]);
  auto number = [&](Size size) { return dim::evaluate(size, values); };
  ProductSizes<int64_t> p{.element = element,
                          .batch = number(batch),
                          .m = number(m),
                          .n = number(n),
                          .k = number(k),
                          .rows = number(rows),
                          .parts = parts,
                          .typicalRows = typicalRows,
                          .left = left,
                          .right = right,
                          .packed = packed,
                          .packedAs = packedAs};
  std::ranges::transform(a, p.a.begin(), number);
  std::ranges::transform(b, p.b.begin(), number);
  return p;
}

static FieldsText common(const ProductParams &p, const char *kind) {
  FieldsText text;
  text.text("kind", kind).size("n", p.n).size("k", p.k).number("typical", p.typicalRows);
  text.size("b_depth", p.b[1]).size("b_column", p.b[2]).element("element", p.element).element("packed_as", p.packedAs);
  return text;
}

std::string ProductParams::packText() const { return common(*this, "pack_product").str(); }

std::string ProductParams::text() const {
  const Size unit = parts == 1 ? rows * n : Size();
  return common(*this, "product")
      .size("batch", batch)
      .size("m", m)
      .size("a_batch", a[0])
      .size("a_row", a[1])
      .size("a_depth", a[2])
      .size("b_batch", b[0])
      .size("rows", rows)
      .number("parts", parts)
      .number("left", left)
      .number("right", right)
      .number("packed", packed)
      .size("unit", unit)
      .sizes("symbols", symbols)
      .str();
}

ProductParams ProductParams::parse(const Fields &fields, bool isPack) {
  constexpr int64_t most = dim::kMaxSize;
  ProductParams p;
  auto size = [&](const char *name, int64_t least) {
    const Size value = isPack ? Size(fields.number(name, least, most)) : fields.size(name);
    if (value.isNumber() && (value.number() < least || value.number() > most * most))
      throw InputError(std::string("the description of a product has an impossible size in '") + name + "'");
    return value;
  };
  p.n = size("n", 1), p.k = size("k", 1);
  p.b[1] = size("b_depth", 0), p.b[2] = size("b_column", 0);
  p.typicalRows = fields.number("typical", 1, most);
  p.element = fields.element("element"), p.packedAs = fields.element("packed_as");
  if (p.packedAs != Element::F32 && p.packedAs != p.element)
    throw InputError("the description of a product packs another type than it multiplies");
  if (isPack)
    return p;
  p.batch = size("batch", 0), p.m = size("m", 0), p.rows = size("rows", 1);
  p.a = {size("a_batch", 0), size("a_row", 0), size("a_depth", 0)};
  p.b[0] = size("b_batch", 0);
  p.parts = fields.number("parts", 1, most);
  p.left = static_cast<int32_t>(fields.number("left", 0, 1 << 16));
  p.right = static_cast<int32_t>(fields.number("right", 0, 1 << 16));
  p.packed = static_cast<int32_t>(fields.number("packed", -1, 1 << 16));
  p.symbols = fields.symbols("symbols");
  return p;
}

} // namespace tressel::kernels
