// The emission of one kernel: LoopKernel.cpp writes what a thread does, GroupReduce.cpp how threads put their parts
// together, TileKernel.cpp what goes through shared memory in tiles.
#pragma once

#include "codegen/cuda/loops/GpuSchedule.h"
#include "codegen/cuda/loops/PlanEmitter.h"

namespace tressel::codegen::cuda {

class LoopEmitter : public PlanEmitter {
public:
  LoopEmitter(llvm::Function &function, const LoopPlan &plan, const GpuSchedule &schedule,
              const KernelSignature &signature, int numBuffers)
      : PlanEmitter(function, plan), s_(schedule), signature_(signature), numBuffers_(numBuffers) {}
  /// `isPart`: the function has the number of the block, an i32, as a further parameter behind the status.
  void run(bool isPart = false);

private:
  using Place = ScalarEmitter::Place; ///< of a reduction's part; no index but for ArgMax and ArgMin
  struct Part {
    size_t number; ///< of the reduction
    int v;
    Place place;
  };

  llvm::Value *symbol(Size symbol) override;
  llvm::Value *instead(int32_t e, int k, int v) override;

  void emitPoints();
  void emitPoint();
  /// Binds the dimensions in `order`, the fastest first, from a number.
  void bindDigits(llvm::Value *number);
  /// The same for indices k of the reduced dimensions.
  void bindReduced(int k, llvm::Value *number);
  /// All points of R that this thread has, in steps of `count` indices side by side.
  void reducedLoops(llvm::function_ref<void(int count)> body);
  void nestedLoops(size_t k, llvm::function_ref<void(int count)> body);
  Size reducedVectors() const;
  void emitStage(int stage);
  void accumulate(const Reduction &r, size_t number, int k);
  void finish(const Part &part);
  void storeAll(bool full, int count);

  Place merge(const Reduction &r, Place a, Place b);
  Place shuffle(Place a, int distance);
  llvm::Value *shuffle(llvm::Value *v, int distance);
  Place acrossLanes(const Reduction &r, Place place, int width);
  void acrossGroup(std::vector<Part> &parts);
  void acrossWarps(std::vector<Part> &parts);
  void acrossRows(std::vector<Part> &parts);
  void barrier();
  void groupBarrier();
  llvm::GlobalVariable *shared(llvm::Type *element, int64_t count, const char *name);
  void put(llvm::GlobalVariable *array, llvm::Value *at, llvm::Value *v);
  llvm::Value *get(llvm::GlobalVariable *array, llvm::Value *at, llvm::Type *type);

  void emitTiles();

  struct Accumulator {
    llvm::AllocaInst *value, *index = nullptr;
    llvm::AllocaInst *excess = nullptr; ///< of long sums: what rounding added to `value` too much
  };

  const GpuSchedule &s_;
  const KernelSignature &signature_;
  const int numBuffers_;
  llvm::Value *thread_ = nullptr, *block_ = nullptr;
  llvm::Value *rank_ = nullptr, *place_ = nullptr; ///< of the thread in its group; of the group in the block
  std::map<std::pair<size_t, int>, Accumulator> accumulators_;
  std::map<int32_t, llvm::GlobalVariable *> tiles_;
  std::map<int, llvm::Value *> tilePlace_; ///< of the point k, while it is computed
  bool readingTiles_ = false;
};

} // namespace tressel::codegen::cuda
