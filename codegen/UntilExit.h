// LLVM and MLIR have objects with static lifetime, which are destroyed while the process ends: a thread that compiles
// at that moment would find them gone. Whoever uses them holds a CompilerUse meanwhile. When the process ends, the end
// waits for those that are held, and other threads that would begin one stand still until the process is gone. (Not
// where another thread than the main one calls exit().)
#pragma once

namespace tressel::codegen {

class CompilerUse {
public:
  CompilerUse();
  ~CompilerUse();
  CompilerUse(const CompilerUse &) = delete;
  CompilerUse &operator=(const CompilerUse &) = delete;
};

} // namespace tressel::codegen
