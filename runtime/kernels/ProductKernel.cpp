#include "ProductKernel.h"

#include "Kernels.h"
#include "Levels.h"
#include "Product.h"
#include "ProductParams.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <mutex>

namespace tressel::kernels {

using runtime::KernelArgs;
using runtime::LoadedKernel;

namespace {

/// The numbers of a product for recent sizes, so that a call with known sizes evaluates no expressions.
struct ProductState {
  static constexpr size_t kSizes = 8;
  struct Entry {
    std::vector<int64_t> scalars;
    ProductSizes<int64_t> numbers;
  };
  ProductParams params;
  std::optional<ProductSizes<int64_t>> fixed;
  int32_t numInputs;
  const ProductKernels &kernels;
  const SplitKernels *split;
  mutable std::mutex mutex;
  mutable std::vector<std::shared_ptr<const Entry>> recent; // most recently used first

  ProductState(ProductParams params, int32_t numInputs, const ProductKernels &kernels, const SplitKernels *split)
      : params(std::move(params)), fixed(fixedNumbers(this->params)), numInputs(numInputs), kernels(kernels),
        split(split) {}

  std::shared_ptr<const Entry> find(const int64_t *scalars) const {
    std::lock_guard lock(mutex);
    auto found = std::ranges::find_if(
        recent, [&](const auto &entry) { return std::equal(entry->scalars.begin(), entry->scalars.end(), scalars); });
    if (found == recent.end()) {
      auto entry = std::make_shared<const Entry>(
          // may throw, so nothing is changed before
          Entry{{scalars, scalars + params.symbols.size()}, params.at(scalars)});
      if (recent.size() == kSizes)
        recent.pop_back();
      found = recent.insert(recent.begin(), std::move(entry));
    }
    std::rotate(recent.begin(), found, found + 1);
    return recent.front();
  }
};

} // namespace

/// The part that is common to all element types; operands hold `Value`s.
template <typename Value, typename Product>
static void runAs(const ProductState &state, const ProductSizes<int64_t> &p, Product product,
                  void (*multiply)(const Product &), const KernelArgs &args, void *result, int64_t begin, int64_t end) {
  product.right = {p.n, p.k, p.typicalRows};
  product.aRow = p.a[1], product.aDepth = p.a[2], product.bDepth = p.b[1], product.bColumn = p.b[2];
  product.cRow = p.n, product.parts = p.parts, product.scratch = static_cast<float *>(args.scratch);
  product.split = state.split, product.unitRows = std::min(p.rows, p.m);
  product.splitScratch = static_cast<char *>(args.scratch) + state.params.plainScratchBytes();
  const auto *a = static_cast<const Value *>(args.buffers[p.left]);
  const auto *b = p.packed >= 0 ? nullptr : static_cast<const Value *>(args.buffers[p.right]);
  auto *c = static_cast<Value *>(result);
  const int64_t blocks = p.rowBlocks();
  for (int64_t u = begin; u < end;) { // consecutive blocks of rows in one call
    const int64_t block = u % blocks, matrix = u / blocks, entry = matrix / p.parts,
                  numBlocks = std::min(blocks - block, end - u), row = block * p.rows;
    product.rows = std::min(numBlocks * p.rows, p.m - row);
    product.part = matrix % p.parts;
    product.a = a + entry * p.a[0] + row * p.a[1];
    product.b = b ? b + entry * p.b[0] : nullptr;
    product.c = c + (entry * p.m + row) * p.n;
    multiply(product);
    u += numBlocks;
  }
}

static void run(const ProductState &state, const ProductSizes<int64_t> &p, const KernelArgs &args, int64_t begin,
                int64_t end) {
  if (p.m < 1 || p.n < 1 || p.batch < 1)
    return;
  const void *packed = p.packed >= 0 ? args.buffers[p.packed] : nullptr;
  void *result = args.buffers[state.numInputs];
  if (p.element == Element::F32) {
    Product product;
    product.packed = static_cast<const float *>(packed);
    runAs<float>(state, p, product, state.kernels.multiply, args, result, begin, end);
  } else {
    HalfProduct product;
    product.element = p.element, product.packed = packed, product.packedAs = p.packedAs;
    runAs<uint16_t>(state, p, product, state.kernels.multiplyHalves, args, result, begin, end);
  }
}

static int32_t runProduct(const KernelArgs *args, int64_t begin, int64_t end) {
  const auto &state = *static_cast<const ProductState *>(args->state);
  return statusOf([&] {
    if (state.fixed)
      run(state, *state.fixed, *args, begin, end);
    else
      run(state, state.find(args->scalars)->numbers, *args, begin, end);
  });
}

static int32_t runPack(const KernelArgs *args, int64_t begin, int64_t end) {
  const auto &state = *static_cast<const ProductState *>(args->state);
  const ProductSizes<int64_t> &p = *state.fixed;
  const RightSide right{p.n, p.k, p.typicalRows};
  void *to = args->buffers[state.numInputs];
  if (begin != 0 || end < 1)
    return runtime::kKernelOk;
  if (p.element == Element::F32)
    state.kernels.pack(right, static_cast<const float *>(args->buffers[0]), p.b[1], p.b[2], static_cast<float *>(to));
  else
    state.kernels.packHalves(right, p.element, static_cast<const uint16_t *>(args->buffers[0]), p.b[1], p.b[2],
                             p.packedAs, to);
  return runtime::kKernelOk;
}

static LoadedKernel load(runtime::KernelFn fn, const runtime::KernelDesc &desc, ProductParams params,
                         const Level &level, const SplitKernels *split = nullptr) {
  checkOperands(desc, {params.left, params.right, params.packed});
  const ProductKernels &kernels = at(level, productBaseline, productV3, productV4);
  auto state = std::make_shared<const ProductState>(std::move(params), desc.numInputs, kernels, split);
  return {fn, state.get(), state};
}

LoadedKernel makeProduct(const runtime::KernelDesc &desc, const Fields &fields, const Level &level) {
  ProductParams params = ProductParams::parse(fields, /*isPack=*/false);
  // Programs compiled before tiles existed have no scratch memory for them.
  checkScratch(desc, params.plainScratchBytes());
  const bool splits = params.splitBytes() > 0 && desc.scratchBytes.numberOr(0) >= params.scratchBytes();
  return load(runProduct, desc, std::move(params), level, splits ? level.split : nullptr);
}

LoadedKernel makeProductPack(const runtime::KernelDesc &desc, const Fields &fields, const Level &level) {
  ProductParams params = ProductParams::parse(fields, /*isPack=*/true);
  params.right = 0;
  return load(runPack, desc, std::move(params), level);
}

} // namespace tressel::kernels
