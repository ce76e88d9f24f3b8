// Bids for matrix products: how the work is cut into units, and what it will take.
#include "runtime/kernels/Product.h"
#include "codegen/CostModel.h"
#include "codegen/builtin/Provider.h"
#include "ir/graph/Graph.h"
#include "runtime/kernels/Levels.h"
#include "runtime/kernels/ProductParams.h"

#include <algorithm>
#include <cmath>

namespace tressel::kernels {

using codegen::hinted;
using runtime::KernelCost;

/// A range of columns narrower than this reads the left side too often.
static constexpr int64_t kLeastColumns = 128;
/// Whether the columns are cut instead of the rows: where reading the right side is most of the work, so that each
/// range reads its own. What follows such a product is a kernel of its own, as a unit's rows are no neighbours.
static bool cutsColumns(const ProductParams &p) {
  constexpr int64_t fewRows = 32, moreRows = 128, farAway = int64_t(2) << 20;
  return p.m.isNumber() && p.n.isNumber() && p.batch == 1 &&
         (p.m <= fewRows || (p.m <= moreRows && p.k.isNumber() && p.packedBytes() > farAway));
}

/// Whether reading the packed side from memory is most of the work, so that it stays in 16 bits, whose widening then
/// costs nothing: as measured. With more rows it is f32.
static bool isReadOnce(const ProductParams &p) {
  constexpr int64_t fewRows = 8, farFloats = 1 << 18, floatsForARow = 1 << 17;
  return p.typicalRows <= fewRows && p.n * p.k >= std::max(farFloats, p.typicalRows * floatsForARow);
}

/// Whether tiles multiply so many rows at a time.
static bool usesTiles(const ProductParams &p, int64_t rows) {
  return kernelLevel().split && p.splitBytes() > 0 && !goesAlongDepth({dim::hint(p.n), dim::hint(p.k)}, 16) &&
         isWorthSplitting(rows, dim::hint(p.n), /*shortPieces=*/p.a[2] != 1, p.packed >= 0);
}

static void chooseUnits(ProductParams &p, double serialSeconds, const runtime::DeviceModel &cpu) {
  constexpr double worthSplitting = 10e-6;
  p.rows = p.m, p.parts = 1;
  if (serialSeconds < worthSplitting || cpu.threads == 1 || dim::hint(p.batch) >= 4 * cpu.threads)
    return;
  const bool isStatic = p.m.isNumber();
  if (cutsColumns(p)) {
    p.parts = std::clamp<int64_t>(dim::hint(p.n) / kLeastColumns, 1, 4 * cpu.threads);
    if (p.parts > cpu.threads)
      p.parts -= p.parts % cpu.threads; // as many for each
    return;
  }
  if (p.batch == 1) {
    if (!isStatic) {
      p.rows = 64;
      return;
    }
    // Tiles split the right side for each unit.
    const int64_t m = p.m.number(), wanted = usesTiles(p, std::min<int64_t>(m, 128)) ? 192 : 64;
    int64_t blocks = std::clamp<int64_t>(m / wanted, 2, std::max<int64_t>(4 * cpu.threads, m / (2 * wanted)));
    if (blocks > cpu.threads) // as many for each
      blocks = (blocks + cpu.threads - 1) / cpu.threads * cpu.threads;
    p.rows = ((m + blocks - 1) / blocks + 7) / 8 * 8;
    return;
  }
  // Equal blocks, so that units are neighbours.
  if (isStatic)
    for (int64_t blocks = (p.m.number() + 127) / 128; blocks <= p.m / 24; ++blocks)
      if (p.m % blocks == 0) {
        p.rows = p.m / blocks;
        return;
      }
}

/// What the kernel does (runtime/kernels/README.md, A product), in counts that its cost model multiplies.
static KernelCost costOf(const ProductParams &p) {
  const runtime::CpuLevel level = kernelLevel().cpu;
  const double lanes = codegen::lanesOf(level), batch = hinted(p.batch), m = hinted(p.m), n = hinted(p.n), k = hinted(p.k);
  const bool packs = p.packed < 0, strided = p.a[2] != 1, is16Bit = p.element != Element::F32;
  const double packed = packs ? batch * k * n : 0, copied = strided ? batch * m * k : 0;
  const double widened = is16Bit ? batch * (m * k + m * n + (packs || p.packedAs != Element::F32 ? k * n : 0)) : 0;
  if (usesTiles(p, dim::hint(p.m))) {
    const double share = splitShare(std::min(m, 256.0), n, strided, !packs);
    const double counts[] = {batch * m * n * k / share, widened};
    return codegen::costOf("builtin/product-tiles", level, counts);
  }
  if (goesAlongDepth({dim::hint(p.n), dim::hint(p.k)}, static_cast<int64_t>(lanes))) {
    const double counts[] = {batch * m * n * std::ceil(k / lanes), batch * std::ceil(m / 6) * std::ceil(n / 4) * std::ceil(k / lanes),
                             batch * m * n, batch, packed, copied, widened};
    return codegen::costOf("builtin/product-dot", level, counts);
  }
  const double vectors = std::ceil(n / lanes), panels = std::ceil(vectors / 4), tiles = std::ceil(m / 6), blocks = std::ceil(k / 1024);
  const double counts[] = {batch * m * vectors * k,
                           batch * tiles * vectors * k,
                           batch * m * panels * k,
                           batch * tiles * panels * blocks,
                           batch * m * vectors * blocks,
                           batch * blocks,
                           packed,
                           4 * packed > codegen::kMemoryBytes ? packed : 0,
                           copied,
                           widened};
  return codegen::costOf("builtin/product", level, counts);
}

std::optional<passes::Bid> bidForProduct(const codegen::BinaryRoot &root, const passes::Candidate &candidate,
                                         llvm::ArrayRef<bool> parameterOnly) {
  const auto product = codegen::asMatrixProduct(root);
  if (!product)
    return std::nullopt;
  ProductParams p;
  p.batch = product->batch, p.m = product->m, p.n = product->n, p.k = product->k;
  p.a = product->left, p.b = product->right;
  p.left = codegen::inputOf(candidate, product->leftOperand);
  p.right = codegen::inputOf(candidate, product->rightOperand);
  p.symbols = graph::symbolsOf(candidate.ops[0]);
  p.typicalRows = std::max<int64_t>(1, dim::hint(p.m));
  // A packed side serves all rows; sides of a batch are read as they are.
  const bool packed = parameterOnly[static_cast<size_t>(p.right)] && p.b[0] == 0 && p.n.isNumber() && p.k.isNumber();
  if (packed)
    p.packed = static_cast<int32_t>(candidate.inputs.size());
  p.element = elementOf(root.type());
  p.packedAs = packed && isReadOnce(p) ? p.element : Element::F32;

  const runtime::DeviceModel &cpu = codegen::hostCpuModel();
  double bytes =
      hinted(dim::bytes(root.operands[0])) + hinted(dim::bytes(root.operands[1])) + hinted(dim::bytes(root.result));
  if (packed && p.packedAs != p.element) // what is read is twice as large
    bytes += static_cast<double>(p.packedBytes()) -
             hinted(dim::bytes(root.operands[static_cast<size_t>(product->rightOperand)]));
  passes::Bid bid;
  bid.costs = {costOf(p)};
  const double serial = codegen::serialSeconds(bid.costs, bytes);
  chooseUnits(p, serial, cpu);
  const int64_t units = std::max<int64_t>(1, dim::hint(p.units()));
  bid.grain = codegen::grainFor(serial, units);
  bid.seconds = codegen::predictSeconds(bid.costs, bytes, (units + bid.grain - 1) / bid.grain);
  bid.params = p.text();
  bid.range = p.units();
  bid.scratchBytes = p.scratchBytes();
  bid.takesEpilogue = p.parts == 1;
  if (packed)
    bid.packs.push_back({static_cast<unsigned>(p.right), p.packText(), p.packedBytes()});
  return bid;
}

} // namespace tressel::kernels
