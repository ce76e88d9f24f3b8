#include "AttentionKernel.h"

#include "Attention.h"
#include "AttentionParams.h"
#include "Kernels.h"
#include "Levels.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::kernels {

using runtime::KernelArgs;
using runtime::LoadedKernel;

namespace {
struct AttentionState {
  AttentionParams params;
  int32_t numInputs;
  const AttentionKernels &kernels;
};
} // namespace

static void run(const AttentionState &state, const KernelArgs &args, int64_t begin, int64_t end) {
  const AttentionSizes<int64_t> p = state.params.at(args.scalars);
  if (p.heads < 1 || p.queries < 1 || p.keys < 1 || p.width < 1 || p.maskHeads < 1 || p.maskShared < 1)
    return;
  AttentionHead head;
  head.keys = p.keys, head.size = p.size, head.width = p.width;
  head.scale = static_cast<float>(p.scale), head.causal = p.causal, head.scratch = static_cast<float *>(args.scratch);
  const auto *q = static_cast<const float *>(args.buffers[p.q]), *k = static_cast<const float *>(args.buffers[p.k]),
             *v = static_cast<const float *>(args.buffers[p.v]);
  auto *out = static_cast<float *>(args.buffers[state.numInputs]);
  const int64_t blocks = p.blocks();
  for (int64_t u = begin; u < end;) { // consecutive blocks of one head in one call
    const int64_t index = u / blocks, block = u % blocks, numBlocks = std::min(blocks - block, end - u);
    head.firstQuery = block * p.rows, head.queries = std::min(numBlocks * p.rows, p.queries - head.firstQuery);
    const int64_t row = index * p.queries + head.firstQuery, group = index / p.shared;
    head.q = q + row * p.size, head.out = out + row * p.width;
    if (p.mask >= 0) {
      const int64_t at = index / p.maskShared % p.maskHeads * (p.maskRow ? p.queries * p.maskRow : p.keys) +
                         head.firstQuery * p.maskRow;
      const void *mask = args.buffers[p.mask];
      if (p.maskHides)
        head.shown = static_cast<const uint8_t *>(mask) + at;
      else
        head.added = static_cast<const float *>(mask) + at;
      head.maskRow = p.maskRow;
    }
    head.k = k + group * p.keys * p.size, head.v = v + group * p.keys * p.width;
    state.kernels.attend(head);
    u += numBlocks;
  }
}

static int32_t runAttention(const KernelArgs *args, int64_t begin, int64_t end) {
  return statusOf([&] { run(*static_cast<const AttentionState *>(args->state), *args, begin, end); });
}

LoadedKernel makeAttention(const runtime::KernelDesc &desc, const Fields &fields, const Level &level) {
  AttentionParams params = AttentionParams::parse(fields);
  checkOperands(desc, {params.q, params.k, params.v, params.mask < 0 ? params.q : params.mask});
  checkScratch(desc, params.scratchBytes());
  auto state = std::make_shared<const AttentionState>(
      AttentionState{std::move(params), desc.numInputs, at(level, attentionBaseline, attentionV3, attentionV4)});
  return {runAttention, state.get(), state};
}

} // namespace tressel::kernels
