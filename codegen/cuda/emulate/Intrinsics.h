// NVVM's intrinsics as code for the host.
#pragma once

#include "codegen/cuda/emulate/Block.h"

#include "llvm/IR/IRBuilder.h"

namespace tressel::codegen::cuda::emulate {

/// A call of one of symbols(). `result`: null for none.
llvm::Value *callRuntime(llvm::IRBuilder<> &b, llvm::StringRef name, llvm::Type *result,
                         llvm::ArrayRef<llvm::Value *> arguments);
/// The address, as a constant: it lives as long as the code.
llvm::Value *sitePointer(llvm::IRBuilder<> &b, const Site &site);

class IntrinsicRewriter {
public:
  IntrinsicRewriter(llvm::IRBuilder<> &b, llvm::Value *thread, Code &code) : b_(b), thread_(thread), code_(code) {}
  /// Replaces a call of llvm.nvvm.*; the builder stands before it. False where that is not emulated.
  bool rewrite(llvm::CallInst &call, const std::string &text);

private:
  llvm::Value *registers(llvm::StringRef name);
  llvm::Value *mathematics(llvm::CallInst &call, llvm::StringRef name);
  llvm::Value *conversion(llvm::CallInst &call, llvm::StringRef name);
  bool collective(llvm::CallInst &call, llvm::StringRef name, const std::string &text);
  bool matrices(llvm::CallInst &call, llvm::StringRef name, const std::string &text);
  bool copies(llvm::CallInst &call, llvm::StringRef name, const std::string &text);

  llvm::Value *field(size_t offset);
  /// Stores arguments in `in`, calls, and gives what is in `out` as the call's result.
  void meet(llvm::CallInst &call, Site site, llvm::ArrayRef<llvm::Value *> arguments);
  llvm::Value *asWord(llvm::Value *v);
  llvm::Value *fromWord(llvm::Value *word, llvm::Type *type);
  Site &addSite(Op op, const std::string &text);

  llvm::IRBuilder<> &b_;
  llvm::Value *thread_;
  Code &code_;
};

} // namespace tressel::codegen::cuda::emulate
