// What is computed at the points of a loop plan, as code for one GPU thread: addresses, loads, guards, scalar
// functions, stores. Those who drive it (LoopEmitter, epilogues) say which points there are.
#pragma once

#include "codegen/loops/LoopPlan.h"
#include "codegen/loops/ScalarEmitter.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <bit>
#include <map>
#include <tuple>

namespace tressel::codegen::cuda {

/// A thread has points side by side: `vector` indices of one dimension (numbered v), so that it loads and stores them
/// together, and several indices (numbered k) of the dimensions in `kDims_`. Values are scalars in LLVM's sense, one
/// per point.
///
/// Loops are entered from the outside in; each opens a scope. An expression is evaluated in the outermost scope where
/// the loop indices it depends on are known, just before that scope's current inner loop: so nothing is computed more
/// often than needed, loads included, which LLVM could not move across stores.
class PlanEmitter {
public:
  PlanEmitter(llvm::Function &function, const LoopPlan &plan);
  virtual ~PlanEmitter() = default;

  /// Whether all indices, and numbers up to `numbers`, fit 32 bits: half the registers, and faster division.
  static bool fits32(const LoopPlan &plan, double numbers);

protected:
  struct Scope {
    llvm::Instruction *mark = nullptr; ///< in the enclosing scope, the branch that enters this one
    std::map<std::tuple<int, int, int>, llvm::Value *> values;
  };

  /// The value of one of the launch's symbols, as i64: called where the function is entered.
  virtual llvm::Value *symbol(Size symbol) = 0;
  /// What is in place of a load, or null.
  virtual llvm::Value *instead(int32_t e, int k, int v) {
    (void)e, (void)k, (void)v;
    return nullptr;
  }

  // Structure.
  void openScope(llvm::Instruction *mark) { scopes_.push_back({mark, {}}), level_ = scopes_.size() - 1; }
  void closeScope() { scopes_.pop_back(), level_ = scopes_.size() - 1; }
  /// All that was evaluated is forgotten; what is bound stays, as known where the function is entered.
  void restart() { scopes_.clear(), openScope(nullptr); }
  llvm::BasicBlock *block(const char *name) { return llvm::BasicBlock::Create(b_.getContext(), name, &function_); }
  /// for (i = low; i < high; i += step), in a scope of its own.
  void loop(llvm::Value *low, llvm::Value *high, llvm::Value *step, llvm::function_ref<void(llvm::Value *)> body);
  /// if (condition) body(), which changes no scope. Null conditions hold.
  void onlyIf(llvm::Value *condition, llvm::function_ref<void()> body);
  /// condition ? make() : 0, where make() may only run if the condition holds.
  llvm::Value *guarded(llvm::Value *condition, llvm::function_ref<llvm::Value *()> make);
  void bind(int dim, llvm::Value *index) {
    index_[static_cast<size_t>(dim)] = index, dimLevel_[static_cast<size_t>(dim)] = level_;
  }
  /// One of a dimension's indices that are side by side.
  void bind(int dim, int k, llvm::Value *index) {
    kIndex_[{dim, k}] = index, dimLevel_[static_cast<size_t>(dim)] = level_;
  }
  void setVector(int dim, int vector);
  llvm::AllocaInst *variable(llvm::Type *type);

  // Values.
  llvm::Value *eval(int32_t e, int k, int v);
  llvm::Value *indexAt(int dim, int k) {
    return bit(dim) & kDims_ ? kIndex_.at({dim, k}) : index_[static_cast<size_t>(dim)];
  }
  /// Of all v at once.
  void store(const Store &s, int k);
  llvm::Value *elementPointer(int32_t buffer, const Affine &index, int k, int v);
  /// Whether a result may lie on the operand: it is read point by point.
  bool mayBeOverwritten(const Expr &load) const;
  /// How many of the elements of all v one access takes: a power of two.
  int piece(const Affine &index, int32_t guard, DType type) const;
  bool alongVector(int32_t e) const {
    return vectorDim_ >= 0 && (expr(e).dims & bit(vectorDim_)) && !uniform_[static_cast<size_t>(e)];
  }

  // Sizes.
  /// A number, or a symbolic size, computed where the function is entered: i64, or as an index.
  llvm::Value *i64(Size v) { return v.isNumber() ? b_.getInt64(static_cast<uint64_t>(v.number())) : size(v); }
  llvm::Value *number(Size v);
  llvm::Value *size(Size symbolic);
  llvm::Value *toIndex(llvm::Value *v) { return b_.CreateIntCast(v, indexType_, true); }

  const Expr &expr(int32_t e) const { return plan_.exprs[static_cast<size_t>(e)]; }
  static uint64_t bit(int dim) { return uint64_t(1) << dim; }
  Size sizeOf(int dim) const { return plan_.dims[static_cast<size_t>(dim)].size; }
  static Size coef(const Affine &a, int dim) { return dim < 0 ? Size() : a.coef[static_cast<size_t>(dim)]; }
  llvm::Value *both(llvm::Value *a, llvm::Value *b) { return !a ? b : !b ? a : b_.CreateAnd(a, b); }

  llvm::Function &function_;
  const LoopPlan &plan_;
  llvm::IRBuilder<> b_;
  ScalarEmitter scalars_;
  llvm::Type *indexType_;
  std::vector<llvm::Value *> buffers_;  ///< of the plan, in global memory
  llvm::Value *status_ = nullptr;       ///< null: nothing fails
  llvm::Value *valid_ = nullptr;        ///< whether this thread's points are to be computed; null: always
  std::map<int, llvm::Value *> kValid_; ///< the same of those numbered k; null or missing: always
  std::map<std::tuple<size_t, int>, llvm::Value *> reduced_; ///< results of reductions, by number and v
  std::vector<Scope> scopes_;
  size_t level_ = 0;
  uint64_t kDims_ = 0;
  int vectorDim_ = -1, vector_ = 1;
  llvm::Instruction *entry_ = nullptr; ///< sizes and variables are made before it

private:
  llvm::Value *compute(int32_t e, int k, int v);
  llvm::Value *load(int32_t e, int k, int v);
  llvm::Value *checked(const Expr &x, int k, int v);
  /// Whether points are this thread's to compute, that a value over `dims` is for; null: always.
  llvm::Value *validAt(uint64_t dims, int k);
  llvm::Value *scalarIndex(const Affine &index, int k, int v);
  /// The terms that are not the same everywhere.
  llvm::Value *terms(const Affine &index, int k, int v);
  size_t levelOf(uint64_t dims) const;
  template <typename Fn> auto atLevel(size_t level, Fn &&fn);

  std::vector<llvm::Value *> index_;
  std::map<std::pair<int, int>, llvm::Value *> kIndex_;
  std::vector<size_t> dimLevel_;
  std::vector<char> uniform_; ///< the same for all v, although it depends on the dimension
  std::map<int64_t, llvm::Value *> sizes_; ///< by the bits of a size
};

} // namespace tressel::codegen::cuda
