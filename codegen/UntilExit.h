// LLVM and MLIR have objects with static lifetime, which are destroyed while the process ends: a thread that compiles
// at that moment would find them gone. Whoever uses them holds a CompilerUse meanwhile. When the process ends, the end
// waits for those that are held, and other threads that would begin one stand still until the process is gone.
#pragma once

namespace tressel::codegen {

class CompilerUse {
public:
  CompilerUse();
  ~CompilerUse();
  CompilerUse(const CompilerUse &) = delete;
  CompilerUse &operator=(const CompilerUse &) = delete;
};

/// This thread may be the one that ends the process. Known of those that made a CompilerUse, and of the main thread.
/// Where another one calls exit(), static objects that were made by the last uses may be gone before they are waited
/// for.
void watchExit();

} // namespace tressel::codegen
