#include "codegen/cuda/library/DeviceKernel.h"

#include "tressel/runtime/Dim.h"

namespace tressel::codegen::cuda {

bool isLaunchable(Size blocks) { return !blocks.isNumber() || blocks <= INT32_MAX; }

static std::string textOf(const Epilogue &e) {
  std::string text =
      " then " + std::string(nameOf(e.type)) + " " + std::to_string(e.rootInput) + " " + std::to_string(e.rootBuffer);
  if (e.plan) {
    text += " operands";
    for (int32_t operand : e.signature.operands)
      text += " " + std::to_string(operand);
    text += " plan " + e.plan->str();
  }
  return text;
}

Kernel makeDeviceKernel(Kernel kernel, DeviceCall call, const Epilogue *epilogue) {
  std::string &text = kernel.text;
  text = call.str() + " operands " + std::to_string(kernel.numBuffers) + " threads " + std::to_string(kernel.threads) +
         " blocks " + dim::spell(kernel.blocks) + " scalars";
  for (Size symbol : kernel.symbols)
    text += " " + dim::spell(symbol);
  std::shared_ptr<const LoopPlan> plan;
  std::optional<Epilogue> then;
  if (epilogue) {
    text += textOf(*epilogue);
    then = *epilogue;
    if (epilogue->plan)
      plan = std::make_shared<const LoopPlan>(*epilogue->plan);
  }
  // The kernel as it is now, without the function that this becomes a part of.
  if (!kernel.arch.empty()) {
    text += " for " + kernel.arch + " shared " + std::to_string(kernel.sharedBytes) + " cluster " +
            dim::spell(kernel.cluster);
    for (const TensorMapForm &map : kernel.maps) {
      text += " map of " + std::to_string(map.operand);
      for (const std::vector<Size> *sizes : {&map.sizes, &map.strides})
        for (Size size : *sizes)
          text += " " + dim::spell(size);
      for (int64_t size : map.box)
        text += " " + std::to_string(size);
    }
    text += " else " + kernel.portable->text;
  }
  kernel.emit = [declared = kernel, call = std::move(call), then, plan](llvm::Module &module) {
    llvm::Function *function = declareKernel(module, declared);
    emitDeviceCall(*function, call, declared.numBuffers, declared.symbols);
    if (!then)
      return;
    Epilogue epilogue = *then;
    epilogue.plan = plan.get();
    epilogue.signature.symbols = declared.symbols;
    emitEpilogue(module, epilogue, epilogueOf(declared.symbol));
  };
  return kernel;
}

} // namespace tressel::codegen::cuda
