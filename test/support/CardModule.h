// GPU kernels on a card, behind the emulator's interface: the same tests run on either.
#pragma once

#include "codegen/cuda/emulate/Emulate.h"
#include "codegen/cuda/target/Target.h"

#include <memory>
#include <string>
#include <string_view>

namespace tressel::test {

/// Whether TRESSEL_TEST_ON says "cuda": tests of kernels then run on the first card instead of being emulated.
bool onCard();
/// The architecture that a test compiles for to run: `arch`, but on a card that is older, the card's own.
std::string_view runnableArch(std::string_view arch);
/// The architecture whose code the first card runs and no others do ("sm_90a"), for which there are kernels; empty:
/// none, or tests do not run on a card.
std::string_view ownArch();
/// Such PTX on the first card. `params`: as below.
std::shared_ptr<codegen::cuda::EmulatedModule> onCard(std::string ptx, std::string arch, std::string params);
/// What runs the kernels of an optimized module (Target::optimize), which may be changed: the card if onCard(), else
/// the emulator. `params`: of a kernel's description (launchParams), if it has more than threads, on a card alone. On a
/// card, a kernel that writes behind one of its buffers throws Error, races are not looked for, and every status but 0
/// is 1. Throws Error without a card.
std::shared_ptr<codegen::cuda::EmulatedModule> runnable(llvm::Module &module, const codegen::cuda::Target &target,
                                                        std::string params = {});

} // namespace tressel::test
