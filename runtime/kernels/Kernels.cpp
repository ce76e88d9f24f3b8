#include "Kernels.h"

#include "AttentionKernel.h"
#include "ConvolutionKernel.h"
#include "Fields.h"
#include "Levels.h"
#include "ProductKernel.h"
#include "WinogradKernel.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

namespace tressel::kernels {

using Maker = runtime::LoadedKernel (*)(const runtime::KernelDesc &, const Fields &, const Level &);

static constexpr std::pair<std::string_view, Maker> makers[] = {
    {"product", makeProduct},
    {"pack_product", makeProductPack},
    {"attention", makeAttention},
    {"convolution", makeConvolution},
    {"pack_convolution", makeConvolutionPack},
    {"winograd", makeWinograd},
    {"pack_winograd", makeWinogradPack},
};

static runtime::LoadedKernel make(const runtime::KernelDesc &desc) {
  const Fields fields = Fields::parse(desc.params);
  const std::string &kind = fields.text("kind");
  Level level = kernelLevel();
  if (desc.floats == runtime::FloatMode::Keep)
    level.split = nullptr; // tiles flush subnormal numbers to zero
  for (const auto &[name, maker] : makers)
    if (kind == name)
      return maker(desc, fields, level);
  throw InputError("kernel '" + desc.symbol + "' is of the unknown kind '" + kind + "'");
}

void checkOperands(const runtime::KernelDesc &desc, std::initializer_list<int32_t> operands) {
  for (int32_t operand : operands)
    if (operand >= desc.numInputs)
      throw InputError("kernel '" + desc.symbol + "' reads operand " + std::to_string(operand) + " of " + std::to_string(desc.numInputs));
}

void checkScratch(const runtime::KernelDesc &desc, Size needed) {
  if (needed.isNumber() && desc.scratchBytes.isNumber() && desc.scratchBytes.number() < needed.number())
    throw InputError("kernel '" + desc.symbol + "' has too little scratch memory");
}

void registerKernels() { runtime::registerKernelProvider("builtin", make); }

} // namespace tressel::kernels

const tressel::runtime::KernelFactory tressel_kernel_factory = tressel::kernels::make;
