// Which kernel of the device library does a matrix product, by predicted time.
#include "codegen/cuda/library/LibraryKernels.h"
#include "codegen/cuda/library/DeviceCost.h"
#include "codegen/cuda/library/DeviceKernel.h"
#include "codegen/cuda/library/DeviceTiles.h"

#include <algorithm>

namespace tressel::codegen::cuda {

std::span<const TileShape> tileShapes(DType type) {
  // As instantiated in device/*.cpp. Efficiencies are estimates from the ratio of arithmetic to shared memory accesses.
  static constexpr TileShape kFma[] = {
      {"128", 128, 128, 16, 256, 0.75}, {"64", 64, 64, 16, 128, 0.6}, {"32", 32, 32, 32, 256, 0.35}};
  static constexpr TileShape kMma[] = {
      {"128", 128, 128, 32, 256, 0.7}, {"64", 64, 64, 32, 128, 0.45}, {"32", 32, 32, 64, 128, 0.2}};
  return type == f32 ? std::span<const TileShape>(kFma) : kMma;
}

std::span<const TileShape> copiedTiles(const Arch &arch) {
  // As instantiated in device/WarpgroupProduct.cpp and device/TensorProduct.cpp; a warp or two of the threads copy and
  // issue. Efficiencies are estimates that were never compared with a card, in units of what peakOf counts, which is
  // what the warps' own instructions reach.
  static constexpr TileShape kWarpgroup[] = {
      {"w256", 128, 256, 64, 288, 1.1, 4}, {"w128", 128, 128, 64, 288, 0.95, 3}, {"w64", 64, 64, 64, 160, 0.6, 4}};
  static constexpr TileShape kTensor[] = {{"t256", 128, 256, 64, 192, 2.6, 4}, {"t128", 128, 128, 64, 192, 2.2, 3}};
  switch (arch.multiplier) {
  case Arch::Multiplier::Warpgroup:
    return kWarpgroup;
  case Arch::Multiplier::Tensor:
    return kTensor;
  case Arch::Multiplier::None:
    break;
  }
  return {};
}

/// How many blocks share the depth of each tile; where sizes are symbols, an expression of them that the launch decides
/// by. `parts`, a power of 2, if every block then has a step; with 0 the most that leave each of them some steps and
/// find a multiprocessor.
static Size sharing(const TileShape &tile, Size tiles, Size k, const Arch &arch, int parts) {
  constexpr int64_t kLeastSteps = 4;
  auto isOf = [](Size a, Size b) { return dim::min(1, dim::floorDiv(a, b)); }; // 1: b goes into a
  if (parts)
    return 1 + (parts - 1) * isOf(k, parts * tile.step);
  Size all = 1;
  for (int64_t p = 2; p <= arch.clusterBlocks; p *= 2)
    all += p / 2 * dim::min(isOf(arch.multiprocessors, dim::max(1, tiles * p)), isOf(k, kLeastSteps * p * tile.step));
  return all;
}

TileChoice chooseTile(std::span<const TileShape> tiles, Size m, Size n, Size k, Size batch, double bytes,
                      const Arch &arch, DType type, std::string_view wanted, int parts) {
  TileChoice best;
  auto consider = [&](const TileShape &tile, Size shared) {
    const Size blocks = shared * batch * tile.tiles(m, n);
    const double seconds =
        tile.seconds(typical(m), typical(n), typical(k), typical(batch), bytes, arch, type, typical(shared));
    if (isLaunchable(blocks) && (!best.tile || seconds < best.seconds))
      best = {&tile, blocks, seconds, shared};
  };
  for (const TileShape &tile : tiles) {
    if (!wanted.empty() && wanted != tile.name)
      continue;
    // Of a single step nothing overlaps, so that a large tile is none the better.
    if (wanted.empty() && tile.rows > 64 && dim::hint(k) <= tile.step)
      continue;
    if (arch.clusterBlocks < std::max(parts, 2)) {
      if (parts < 2)
        consider(tile, 1);
      continue;
    }
    const Size most = sharing(tile, batch * tile.tiles(m, n), k, arch, parts);
    if (parts) {
      consider(tile, most);
      continue;
    }
    if (!most.isNumber()) // preferred where typical sizes make no difference: others may
      consider(tile, most);
    for (int64_t p = 1; p <= (most.isNumber() ? most.number() : 1); p *= 2)
      consider(tile, p);
  }
  return best;
}

OperandForm operandForm(Size rows, Size rowStride, Size depths, Size depthStride, Size batchStride, DType type) {
  const int64_t vector = 16 / sizeOf(type);
  auto whole = [&](Size size) { return dim::divideExactly(size, vector).has_value(); };
  const bool alongDepth = depthStride == 1 || rowStride != 1;
  const bool vectors = alongDepth ? depthStride == 1 && whole(rowStride) && whole(depths) && whole(batchStride)
                                  : whole(depthStride) && whole(rows) && whole(batchStride);
  return {alongDepth, vectors};
}

namespace {

/// A product with one operand of a few rows.
struct ThinForm {
  DeviceCall call;
  Size blocks;
  double seconds;
};

constexpr int64_t kThinRows = 8, kThinWarps = 8; // ThinProduct.cpp

/// `swapped`: the right operand's columns are the few.
std::optional<ThinForm> thinForm(const MatrixProduct &p, bool swapped, DType type, const RootBuffers &buffers,
                                 const Arch &arch) {
  const Size thin = swapped ? p.n : p.m, wide = swapped ? p.m : p.n;
  const Size thinStride[3] = {swapped ? p.right[0] : p.left[0], swapped ? p.right[2] : p.left[1],
                              swapped ? p.right[1] : p.left[2]};
  const Size wideStride[3] = {swapped ? p.left[0] : p.right[0], swapped ? p.left[1] : p.right[2],
                              swapped ? p.left[2] : p.right[1]};
  if (!thin.isNumber() || thin > kThinRows)
    return std::nullopt;
  const bool alongRows = wideStride[1] == 1 && wideStride[2] != 1;
  const auto whole = [](Size size, int64_t by) { return dim::divideExactly(size, by).has_value(); };
  const double rows = typical(p.batch) * typical(wide);
  // Few products per row are no work for a warp.
  if (!alongRows && typical(p.k) < 2 * kWarp)
    return std::nullopt;
  if (alongRows && typical(wide) < kWarp / 2)
    return std::nullopt;
  int64_t vector = 1, share = 1;
  Size blocks;
  if (alongRows) {
    const bool fits = whole(wide, 4) && whole(wideStride[2], 4) && whole(wideStride[0], 4);
    vector = fits && rows / (4 * kWarp) >= arch.multiprocessors ? 4 : 1;
    blocks = p.batch * dim::ceilDiv(wide, kWarp * vector);
  } else {
    const int64_t most = 16 / sizeOf(type);
    if (wideStride[2] == 1 && whole(p.k, most) && whole(wideStride[1], most) && whole(wideStride[0], most))
      vector = most;
    share = rows < static_cast<double>(4 * kThinWarps * arch.multiprocessors) && typical(p.k) >= 2048 ? kThinWarps : 1;
    blocks = p.batch * wide;
    if (share == 1)
      blocks = dim::ceilDiv(blocks, kThinWarps);
  }
  const int64_t few = thin.number(), instance = few <= 2 ? few : few <= 4 ? 4 : 8;
  DeviceCall call{std::string(alongRows ? "thin_rows_" : "thin_depth_") + std::string(nameOf(type)) + "_" +
                      std::to_string(instance),
                  {p.batch, thin, wide, p.k, thinStride[0], thinStride[1], thinStride[2], wideStride[0], wideStride[1],
                   wideStride[2], swapped ? Size(1) : wide, swapped ? thin : Size(1), vector, share},
                  {swapped ? buffers.right : buffers.left, swapped ? buffers.left : buffers.right},
                  {buffers.left, buffers.right}};
  const double bytes = static_cast<double>(sizeOf(type)) * typical(p.batch) *
                       (typical(wide) * typical(p.k) + typical(thin) * typical(p.k) + typical(p.m) * typical(p.n));
  const double flops = 2 * rows * static_cast<double>(instance) * typical(p.k);
  return ThinForm{std::move(call), blocks,
                  std::max(streamedSeconds(bytes, arch), flops / (0.4 * peakOf(arch, f32).flops))};
}

/// The kernel of all architectures but those with something special, of clusters where that pays.
struct PortableProduct {
  Kernel kernel;
  bool isTiled;
};
constexpr const char *kFirstWithClusters = "sm_90";
std::optional<PortableProduct> portableKernel(const std::string &symbol, const MatrixProduct &p, DType type,
                                              const RootBuffers &buffers, const Epilogue &epilogue,
                                              const std::vector<Size> &symbols, const Arch &arch,
                                              std::string_view wanted, int parts) {
  if (type != f32 && type != f16 && type != bf16)
    return std::nullopt;
  Kernel kernel{.symbol = symbol, .numBuffers = epilogue.numBuffers, .symbols = symbols, .threads = 256};
  for (bool swapped : {false, true})
    if (auto thin = wanted.empty() ? thinForm(p, swapped, type, buffers, arch) : std::nullopt;
        thin && isLaunchable(thin->blocks)) {
      kernel.blocks = thin->blocks, kernel.seconds = thin->seconds;
      return PortableProduct{makeDeviceKernel(std::move(kernel), std::move(thin->call), &epilogue), false};
    }
  // Tiles of few useful elements, or of hardly any depth, are no better than loops.
  const double m = typical(p.m), n = typical(p.n), k = typical(p.k), batch = typical(p.batch);
  if (wanted.empty() && (k < 8 || m * n < 64))
    return std::nullopt;
  const double bytes = static_cast<double>(sizeOf(type)) * batch * (m * k + k * n + m * n);
  const TileChoice best = chooseTile(tileShapes(type), p.m, p.n, p.k, p.batch, bytes, arch, type, wanted, parts);
  if (!best.tile)
    return std::nullopt;
  const OperandForm left = operandForm(p.m, p.left[1], p.k, p.left[2], p.left[0], type);
  const OperandForm right = operandForm(p.n, p.right[2], p.k, p.right[1], p.right[0], type);
  if (best.parts != 1) {
    // Others have the whole depth in one block.
    auto alone = portableKernel(symbol, p, type, buffers, epilogue, symbols, arch, wanted, 1);
    if (!alone)
      return std::nullopt;
    kernel.arch = kFirstWithClusters, kernel.cluster = best.parts;
    kernel.portable = std::make_shared<const Kernel>(std::move(alone->kernel));
  }
  DeviceCall call{"product_" + std::string(nameOf(type)) + "_" + best.tile->name,
                  {p.batch, p.m, p.n, p.k, p.left[0], p.left[1], p.left[2], p.right[0], p.right[1], p.right[2],
                   int(left.alongDepth), int(left.vectors), int(right.alongDepth), int(right.vectors), best.parts},
                  {buffers.left, buffers.right},
                  {buffers.left, buffers.right}};
  // Two blocks at once hide each other's waits. Loads of single elements, sums in f32 and code for sm_120 need more
  // registers than that leaves.
  if (sizeOf(type) == 2 && left.vectors && right.vectors && arch.card != "sm_120")
    call.atOnce = 2;
  kernel.threads = best.tile->threads, kernel.blocks = best.blocks, kernel.seconds = best.seconds;
  return PortableProduct{makeDeviceKernel(std::move(kernel), std::move(call), &epilogue), true};
}

/// An operand as a tensor map has it, with boxes of `rows` rows and 64 of the depth. Nothing if the card cannot copy it
/// so ("CUDA Driver API", cuTensorMapEncodeTiled): neighbours have to lie dense, and all else in steps of 16 bytes.
struct CopiedOperand {
  TensorMapForm map;
  bool isTransposed; ///< neighbours are along the rows
  bool isBatched;
};
std::optional<CopiedOperand> copiedOperand(int32_t buffer, DType type, Size batch, Size rows, Size depth,
                                           Size batchStride, Size rowStride, Size depthStride, int64_t boxRows) {
  constexpr int64_t kSpan = 64, kSteps = 8; // of 128 bytes, 16 bytes
  constexpr int64_t kMostElements = int64_t(1) << 31, kMostStride = int64_t(1)
                                                                    << 39; // the driver's, and of coordinates
  const bool isTransposed = depthStride != 1;
  if (isTransposed && rowStride != 1)
    return std::nullopt;
  CopiedOperand operand{{buffer,
                         type,
                         {isTransposed ? rows : depth, isTransposed ? depth : rows},
                         {isTransposed ? depthStride : rowStride},
                         {}},
                        isTransposed,
                        batch != 1 && batchStride != 0};
  operand.map.box = {kSpan, isTransposed ? kSpan : boxRows};
  if (operand.isBatched)
    operand.map.sizes.push_back(batch), operand.map.strides.push_back(batchStride), operand.map.box.push_back(1);
  for (Size size : operand.map.sizes)
    if (size.isNumber() && size >= kMostElements)
      return std::nullopt;
  for (Size stride : operand.map.strides)
    if (stride == 0 || !dim::divideExactly(stride, kSteps) || (stride.isNumber() && stride >= kMostStride))
      return std::nullopt;
  return operand;
}

/// The product from copied operands, by warpgroups or in tensor memory, for `portable`'s operands; nothing if it takes
/// longer, or they do not suit it.
std::optional<Kernel> copiedKernel(const MatrixProduct &p, DType type, const RootBuffers &buffers,
                                   const Epilogue &epilogue, const Kernel &other, double bytes, const Arch &arch,
                                   std::string_view wanted, int parts) {
  const TileChoice best = chooseTile(copiedTiles(arch), p.m, p.n, p.k, p.batch, bytes, arch, type, wanted, parts);
  if (!best.tile || (wanted.empty() && best.seconds >= other.seconds))
    return std::nullopt;
  const Kernel &portable = other.portable ? *other.portable : other;
  const auto left =
      copiedOperand(buffers.left, type, p.batch, p.m, p.k, p.left[0], p.left[1], p.left[2], best.tile->rows);
  const auto right =
      copiedOperand(buffers.right, type, p.batch, p.n, p.k, p.right[0], p.right[2], p.right[1], best.tile->columns);
  if (!left || !right)
    return std::nullopt;
  // Stages, two barriers for each, one more with an address, and what their alignment may take (device/Ring.h).
  const int64_t stage = (best.tile->rows + best.tile->columns) * best.tile->step * sizeOf(type);
  Kernel kernel{.symbol = portable.symbol,
                .numBuffers = portable.numBuffers,
                .symbols = portable.symbols,
                .threads = best.tile->threads,
                .blocks = best.blocks,
                .seconds = best.seconds};
  kernel.arch = arch.name;
  kernel.sharedBytes = best.tile->stages * (stage + 16) + 16 + 1024;
  kernel.maps = {left->map, right->map};
  kernel.cluster = best.parts;
  kernel.portable = std::make_shared<const Kernel>(portable);
  const bool isTensor = arch.multiplier == Arch::Multiplier::Tensor;
  DeviceCall call{std::string(isTensor ? "tensor" : "warpgroup") + "_product_" + std::string(nameOf(type)) + "_" +
                      best.tile->name,
                  {p.batch, p.m, p.n, p.k, int(left->isTransposed), int(left->isBatched), int(right->isTransposed),
                   int(right->isBatched), best.parts},
                  {buffers.left, buffers.right},
                  {buffers.left, buffers.right}};
  call.numMaps = 2;
  call.atOnce = static_cast<int>(std::max<int64_t>(1, arch.sharedBytes / (kernel.sharedBytes + 1024)));
  return makeDeviceKernel(std::move(kernel), std::move(call), &epilogue);
}

} // namespace

std::optional<Kernel> makeProductKernel(const std::string &symbol, const MatrixProduct &p, DType type,
                                        const RootBuffers &buffers, const Epilogue &epilogue,
                                        const std::vector<Size> &symbols, const Arch &arch, std::string_view wanted,
                                        int parts) {
  if (wanted.empty())
    parts = 0;
  const bool wantsCopies = wanted.starts_with('w') || wanted.starts_with('t');
  auto kernel = wantsCopies ? portableKernel(symbol, p, type, buffers, epilogue, symbols, arch, "128", 1)
                            : portableKernel(symbol, p, type, buffers, epilogue, symbols, arch, wanted, parts);
  // Few rows or columns are read once, whatever multiplies them.
  if (!kernel || arch.multiplier == Arch::Multiplier::None || sizeOf(type) != 2 ||
      (!wantsCopies && (!wanted.empty() || !kernel->isTiled)))
    return wantsCopies ? std::nullopt : kernel ? std::optional(std::move(kernel->kernel)) : std::nullopt;
  const double m = typical(p.m), n = typical(p.n), k = typical(p.k), batch = typical(p.batch);
  const double bytes = static_cast<double>(sizeOf(type)) * batch * (m * k + k * n + m * n);
  auto special =
      copiedKernel(p, type, buffers, epilogue, kernel->kernel, bytes, arch, wantsCopies ? wanted : "", parts);
  return special || wantsCopies ? std::move(special) : std::optional(std::move(kernel->kernel));
}

} // namespace tressel::codegen::cuda
