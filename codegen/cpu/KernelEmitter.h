// The emission of one kernel, in two files: EmitKernel.cpp writes the loops, EmitValues.cpp what is computed in them.
#pragma once

#include "codegen/cpu/EmitKernel.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <tuple>

namespace tressel::codegen {

/// Emits one kernel. The loops are entered from the outside in; each opens a scope. An expression is evaluated in the
/// outermost scope where the loop indices it depends on are known, just before that scope's current inner loop, so
/// nothing is computed more often than needed, loads included (which LLVM could not move across the stores, because an
/// output may share its bytes with an operand that is read pointwise).
class KernelEmitter {
public:
  KernelEmitter(llvm::Module &module, const LoopPlan &plan, const LoopSchedule &schedule, const CpuFeatures &features,
                const KernelSignature &signature)
      : module_(module), plan_(plan), s_(schedule), signature_(signature), b_(module.getContext()),
        features_(featuresFor(plan, features)), scalars_(b_, features_) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(!plan.deterministic);
    b_.setFastMathFlags(flags);
  }
  llvm::Function *run();

private:
  struct Scope {
    llvm::Instruction *mark = nullptr; ///< in the enclosing scope, the branch that enters this one
    std::map<std::tuple<int, int, int>, llvm::Value *> values;
    std::map<int, llvm::Value *> pointers;
  };

  /// Functions of whole vectors alone are rounded otherwise than those of parts of one, and what shares the nest
  /// decides which they are.
  static CpuFeatures featuresFor(const LoopPlan &plan, CpuFeatures features) {
    features.avx512 &= !plan.deterministic;
    return features;
  }

  // Structure.
  void openScope(llvm::Instruction *mark) { scopes_.push_back({mark, {}, {}}), level_ = scopes_.size() - 1; }
  void closeScope() { scopes_.pop_back(), level_ = scopes_.size() - 1; }
  llvm::BasicBlock *block(const char *name) { return llvm::BasicBlock::Create(module_.getContext(), name, function_); }
  /// for (i = low; i + step <= high; i += step); runs at least once if `nonEmpty`.
  void loop(int dim, llvm::Value *low, llvm::Value *high, Size step, bool nonEmpty, llvm::function_ref<void()> body);
  /// The body once, with dim = index, in a scope of its own.
  void once(int dim, llvm::Value *index, llvm::function_ref<void()> body);
  /// In a scope of its own: if (condition) then(); else otherwise().
  void branch(llvm::Value *condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);
  void bind(int dim, llvm::Value *index) {
    index_[static_cast<size_t>(dim)] = index, dimLevel_[static_cast<size_t>(dim)] = level_;
  }
  template <typename Fn> auto atLevel(size_t level, Fn &&fn);

  void emitUnits(llvm::Value *begin, llvm::Value *end);
  void emitUnit(llvm::Value *unit);
  void emitInner(size_t k);
  void emitVectorLoop();
  void emitPoint(); ///< block_ x unroll_ parallel points: stages, then stores
  void emitStage(int stage);
  void emitReducedLoops(size_t k, llvm::function_ref<void()> body);
  void accumulate(const Reduction &r, size_t number);
  void finish(const Reduction &r, size_t number);
  void storeAll(bool full);
  void store(const Store &s, int number);
  bool isVector(const Store &s) const { return s_.vectorDim >= 0 && (s.full || !s_.vectorReduced); }

  int64_t mostReducedPoints() const; ///< whatever symbolic sizes are
  void planScratch();
  llvm::Value *scratchPlace(int32_t e, int m, int u);

  // Values. `m` is the number within the block, `u` that of the vector.
  llvm::Value *eval(int32_t e, int m, int u);
  llvm::Value *evalHere(int32_t e, int m, int u);
  llvm::Value *compute(const Expr &x, int m, int u, int32_t e);
  llvm::Value *load(int32_t e, int m, int u);
  /// The whole tile of a load, so that what follows for other rows of the block finds its vector.
  llvm::Value *loadTile(int32_t e, int m, int u);
  void storeTile(const Store &s, int number, int u);
  void askForLine(const Store &s, llvm::Value *p, int u);
  /// Whether a load or store at `index` goes by tiles in the instance being emitted: single rows and masks of unknown length do
  /// not.
  bool byTiles(const Affine &index, int32_t guard) const {
    return block_ > 1 && tail_ != 1 && !lanesMask_ && movesByTiles(index, guard, plan_, s_);
  }
  void transposeTile(llvm::MutableArrayRef<llvm::Value *> rows);
  llvm::Value *firstLanes(int64_t count); ///< mask; null if that is all of them
  llvm::Value *pointer(int id, int32_t buffer, const Affine &index, size_t level);
  llvm::Value *elementPointer(int id, int32_t buffer, const Affine &index, int m, int u);
  llvm::Value *laneOffsets(const Affine &index, int m, int u);
  llvm::Value *scalarIndex(const Affine &index, int m, int u);
  llvm::Value *inRange(const Expr &x, int m, int u);
  llvm::Value *checked(const Expr &x, int m, int u);

  llvm::Value *storesAligned();
  bool alongVector(uint64_t dims) const { return s_.vectorDim >= 0 && (dims >> s_.vectorDim & 1); }
  bool alongBlock(uint64_t dims) const { return s_.blockDim >= 0 && (dims >> s_.blockDim & 1); }
  size_t levelOf(uint64_t dims) const;
  bool laneIndirect(const Affine &index) const;
  unsigned lanes() const { return static_cast<unsigned>(s_.lanes); }
  llvm::Type *vectorOf(llvm::Type *t) const { return llvm::FixedVectorType::get(t, lanes()); }
  /// Mask of the lanes that exist in vector u; null if all do.
  llvm::Value *tailMask(int u);
  /// A number, or a symbolic size: computed where the kernel is entered.
  llvm::Value *i64(Size v) { return v.isNumber() ? b_.getInt64(static_cast<uint64_t>(v.number())) : size(v); }
  llvm::Value *size(Size symbolic);
  /// The same in `type`, an integer or a vector of them.
  llvm::Value *sizeAs(llvm::Type *type, Size size);
  /// 0, step, 2 * step, ...
  llvm::Value *iota(llvm::Type *element, Size step);
  Size sizeOf(int dim) const { return plan_.dims[static_cast<size_t>(dim)].size; }
  static bool isNeverEmpty(Size size) { return dim::bounds(size).lo >= 1; }
  /// All of [low, high) along the lanes, where the number of elements is known only now: full steps, then single vectors
  /// under a mask.
  void symbolicVectorLoop(llvm::Value *low, llvm::Value *high, llvm::function_ref<void()> body);
  llvm::AllocaInst *variable(llvm::Type *type);
  Size coef(const Affine &a, int dim) const { return dim < 0 ? Size() : a.coef[static_cast<size_t>(dim)]; }
  int64_t memoryBytes(int32_t buffer) const { return tressel::sizeOf(plan_.buffers[static_cast<size_t>(buffer)].dtype); }

  llvm::Module &module_;
  const LoopPlan &plan_;
  const LoopSchedule &s_;
  const KernelSignature &signature_;
  llvm::IRBuilder<> b_;
  const CpuFeatures features_;
  ScalarEmitter scalars_;
  llvm::Function *function_ = nullptr;
  llvm::Instruction *allocas_ = nullptr;
  llvm::AllocaInst *status_ = nullptr;
  llvm::Instruction *sizesMark_ = nullptr; ///< symbolic sizes are computed before it
  std::map<int64_t, llvm::Value *> sizes_; ///< by the bits of a size
  std::vector<llvm::Value *> buffers_;
  std::vector<Scope> scopes_;
  size_t level_ = 0;
  std::vector<llvm::Value *> index_;
  std::vector<size_t> dimLevel_;
  std::vector<char> usesReduced_;
  size_t reducedLevel_ = 0;
  llvm::Value *tileBegin_ = nullptr, *tileEnd_ = nullptr;

  bool nonTemporal_ = false;   ///< results go past the caches
  int block_ = 1, unroll_ = 1; ///< of the instance being emitted
  int chains_ = 1, chain_ = 0; ///< in the loops of a stage; the one being emitted
  int64_t tail_ = 0;           ///< lanes of its last vector, 0: all
  llvm::Value *lanesMask_ = nullptr; ///< lanes of its one vector, where their number is known only now
  struct Accumulator {
    llvm::AllocaInst *value, *index;
    /// Of long sums: what all blocks before gave, and what rounding added to it too much. `value` is the sum of one block.
    llvm::AllocaInst *total = nullptr, *excess = nullptr;
  };
  bool isBlocked(const Reduction &r) const;
  void chooseBlocks();
  /// `loop` over [0, high) in steps, in blocks of so many of them if the loop is the one that blocks are cut from.
  void blockedLoop(size_t level, int dim, llvm::Value *high, Size step, bool nonEmpty, llvm::function_ref<void()> body);
  void addBlocks();
  llvm::Value *sumOfBlock(size_t number, int m, int u);
  size_t blockLevel_ = kNoBlocks; ///< the loop over reduced dimensions that is cut, by its depth
  int64_t blockSteps_ = 0;
  bool blocksLeave_ = false; ///< terms after the last whole step of that loop
  int stage_ = -1; ///< the one being emitted, if it has sums in blocks
  static constexpr size_t kNoBlocks = SIZE_MAX;
  std::map<std::tuple<size_t, int, int>, Accumulator> accumulators_; ///< the vectors of all chains are numbered through
  /// Costly expressions over P x R that several passes over R need: computed in the first, kept on the stack.
  struct Scratch {
    llvm::AllocaInst *memory;
    int firstPass;
  };
  std::map<int32_t, Scratch> scratch_;
  int pass_ = 0; ///< the stage, or numStages when full results are stored
  std::map<std::tuple<size_t, int, int>, llvm::Value *> reduced_;
};

template <typename Fn> auto KernelEmitter::atLevel(size_t level, Fn &&fn) {
  if (level == level_)
    return fn();
  const auto saved = b_.saveIP();
  const size_t savedLevel = level_;
  b_.SetInsertPoint(scopes_[level + 1].mark);
  level_ = level;
  auto result = fn();
  level_ = savedLevel;
  b_.restoreIP(saved);
  return result;
}

} // namespace tressel::codegen
