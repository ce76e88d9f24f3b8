#include "WinogradKernel.h"

#include "Kernels.h"
#include "Levels.h"
#include "WinogradParams.h"
#include "tressel/runtime/Error.h"

namespace tressel::kernels {

using runtime::KernelArgs;
using runtime::LoadedKernel;

namespace {

struct WinogradState {
  WinogradParams params;
  std::optional<WinogradCallSizes<int64_t>> fixed;
  int32_t numInputs;
  const WinogradKernels &kernels;
};

} // namespace

static void run(const WinogradState &state, const WinogradCallSizes<int64_t> &p, const KernelArgs &args, int64_t begin,
                int64_t end) {
  if (p.batch < 1 || p.shape.out[0] < 1 || p.shape.out[1] < 1)
    return;
  state.kernels.convolve({p.shape, static_cast<const float *>(args.buffers[p.image]),
                          static_cast<const float *>(args.buffers[p.packed]),
                          static_cast<float *>(args.buffers[state.numInputs]), begin, end,
                          static_cast<float *>(args.scratch)});
}

static int32_t runWinograd(const KernelArgs *args, int64_t begin, int64_t end) {
  const auto &state = *static_cast<const WinogradState *>(args->state);
  return statusOf([&] {
    if (state.fixed)
      run(state, *state.fixed, *args, begin, end);
    else
      run(state, state.params.at(args->scalars), *args, begin, end);
  });
}

static int32_t runPack(const KernelArgs *args, int64_t begin, int64_t end) {
  const auto &state = *static_cast<const WinogradState *>(args->state);
  if (begin == 0 && end > 0)
    state.kernels.pack(state.fixed->shape, static_cast<const float *>(args->buffers[0]),
                       static_cast<float *>(args->buffers[state.numInputs]));
  return runtime::kKernelOk;
}

static LoadedKernel load(runtime::KernelFn fn, const runtime::KernelDesc &desc, WinogradParams params,
                         const Level &level) {
  auto state = std::make_shared<const WinogradState>(
      WinogradState{params, fixedNumbers(params), desc.numInputs, at(level, winogradBaseline, winogradV3, winogradV4)});
  return {fn, state.get(), state};
}

LoadedKernel makeWinograd(const runtime::KernelDesc &desc, const Fields &fields, const Level &level) {
  WinogradParams params = WinogradParams::parse(fields, /*isPack=*/false);
  checkOperands(desc, {params.image, params.packed});
  checkScratch(desc, params.scratchBytes());
  return load(runWinograd, desc, std::move(params), level);
}

LoadedKernel makeWinogradPack(const runtime::KernelDesc &desc, const Fields &fields, const Level &level) {
  return load(runPack, desc, WinogradParams::parse(fields, /*isPack=*/true), level);
}

} // namespace tressel::kernels
