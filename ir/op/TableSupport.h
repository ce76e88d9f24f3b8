// Declares the functions that records name, for the generated tables.
#pragma once

#include "ir/op/Expr.h"
#include "ir/op/Infer.h"
#include "ir/op/OpInfo.h"
#include "ir/op/Sym.h"
#include "ir/op/Philox.h" // over Sym
#include "tressel/runtime/Dim.h"

namespace tressel::op {

// Result types, in Infer*.cpp.
#define TRESSEL_INFER(name) Inferred name(const OpInfo &, std::span<const TensorType>, const Attrs &);
TRESSEL_INFER(inferElementwise)
TRESSEL_INFER(inferDivmod)
TRESSEL_INFER(inferCreation)
TRESSEL_INFER(inferDimSize)
TRESSEL_INFER(inferIota)
TRESSEL_INFER(inferRandom)
TRESSEL_INFER(inferReduction)
TRESSEL_INFER(inferArgReduction)
TRESSEL_INFER(inferReshape)
TRESSEL_INFER(inferExpandDims)
TRESSEL_INFER(inferSqueeze)
TRESSEL_INFER(inferFlatten)
TRESSEL_INFER(inferTranspose)
TRESSEL_INFER(inferBroadcastTo)
TRESSEL_INFER(inferSlice)
TRESSEL_INFER(inferConcat)
TRESSEL_INFER(inferSplit)
TRESSEL_INFER(inferPad)
TRESSEL_INFER(inferTake)
TRESSEL_INFER(inferTakeAlongAxis)
TRESSEL_INFER(inferPutAlongAxis)
TRESSEL_INFER(inferGatherNd)
TRESSEL_INFER(inferScatterNd)
TRESSEL_INFER(inferScatter)
TRESSEL_INFER(inferDynamicSlice)
TRESSEL_INFER(inferDynamicUpdateSlice)
TRESSEL_INFER(inferSort)
TRESSEL_INFER(inferArgsort)
TRESSEL_INFER(inferTopK)
TRESSEL_INFER(inferScan)
TRESSEL_INFER(inferMatmul)
TRESSEL_INFER(inferConv)
TRESSEL_INFER(inferConvByWeights)
TRESSEL_INFER(inferConvTranspose)
TRESSEL_INFER(inferPool)
TRESSEL_INFER(inferAlongAxis)
TRESSEL_INFER(inferLayerNorm)
TRESSEL_INFER(inferBatchNorm)
TRESSEL_INFER(inferOneHot)
TRESSEL_INFER(inferDecomposition)
TRESSEL_INFER(inferReductionComposite)
TRESSEL_INFER(inferLogsumexp)
TRESSEL_INFER(inferFlip)
TRESSEL_INFER(inferRoll)
TRESSEL_INFER(inferTile)
TRESSEL_INFER(inferRepeat)
TRESSEL_INFER(inferStack)
TRESSEL_INFER(inferUnstack)
TRESSEL_INFER(inferMoveaxis)
TRESSEL_INFER(inferSwapaxes)
TRESSEL_INFER(inferDiff)
TRESSEL_INFER(inferDiagonal)
TRESSEL_INFER(inferTriangle)
TRESSEL_INFER(inferMeshgrid)
TRESSEL_INFER(inferEye)
TRESSEL_INFER(inferLinspace)
TRESSEL_INFER(inferRandomFloat)
TRESSEL_INFER(inferRandint)
TRESSEL_INFER(inferBernoulli)
TRESSEL_INFER(inferPermutation)
TRESSEL_INFER(inferCategorical)
#undef TRESSEL_INFER

// Loop nests, in LoopForms*.cpp.
#define TRESSEL_LOOP_FORM(name)                                                                                        \
  std::optional<LoopForm> name(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);
TRESSEL_LOOP_FORM(noLoopForm)
TRESSEL_LOOP_FORM(loopFormElementwise)
TRESSEL_LOOP_FORM(loopFormReduction)
TRESSEL_LOOP_FORM(loopFormTranspose)
TRESSEL_LOOP_FORM(loopFormBroadcastTo)
TRESSEL_LOOP_FORM(loopFormSlice)
TRESSEL_LOOP_FORM(loopFormConcat)
TRESSEL_LOOP_FORM(loopFormPad)
TRESSEL_LOOP_FORM(loopFormTake)
TRESSEL_LOOP_FORM(loopFormTakeAlongAxis)
TRESSEL_LOOP_FORM(loopFormMatmul)
TRESSEL_LOOP_FORM(loopFormConv)
TRESSEL_LOOP_FORM(loopFormConvByWeights)
TRESSEL_LOOP_FORM(loopFormMaxPool)
TRESSEL_LOOP_FORM(loopFormSumPool)
#undef TRESSEL_LOOP_FORM

// Calls of bitcode kernels, in KernelForms.cpp.
#define TRESSEL_KERNEL_FORM(name)                                                                                      \
  std::optional<KernelForm> name(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>,             \
                                 const Attrs &);
TRESSEL_KERNEL_FORM(kernelFormSort)
TRESSEL_KERNEL_FORM(kernelFormTopK)
TRESSEL_KERNEL_FORM(kernelFormScan)
TRESSEL_KERNEL_FORM(kernelFormPutAlongAxis)
TRESSEL_KERNEL_FORM(kernelFormScatterNd)
TRESSEL_KERNEL_FORM(kernelFormGatherNd)
TRESSEL_KERNEL_FORM(kernelFormDynamicSlice)
TRESSEL_KERNEL_FORM(kernelFormDynamicUpdateSlice)
TRESSEL_KERNEL_FORM(kernelFormAttention)
#undef TRESSEL_KERNEL_FORM

// Costs, in Flops.cpp.
Size flopsOfLoop(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);
Size flopsOfDecomposition(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);

// What the simplifier may know, in Simplify.cpp.
bool composeTranspose(const Attrs &inner, const Attrs &outer, Attrs &merged);
#define TRESSEL_IDENTITY(name)                                                                                         \
  bool name(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);
TRESSEL_IDENTITY(sameType)
TRESSEL_IDENTITY(isIdentityTranspose)
TRESSEL_IDENTITY(isIdentitySlice)
#undef TRESSEL_IDENTITY

// Ops on reordered dimensions, in Reorder.cpp.
#define TRESSEL_REORDER(name)                                                                                          \
  std::optional<Reordered> name(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>,              \
                                const Attrs &, const Ints &order);
TRESSEL_REORDER(reorderElementwise)
TRESSEL_REORDER(reorderReduction)
TRESSEL_REORDER(reorderPerDimension)
TRESSEL_REORDER(reorderConcat)
TRESSEL_REORDER(reorderTake)
TRESSEL_REORDER(reorderImage)
#undef TRESSEL_REORDER

// Which dimensions are cut together, in Sharding.cpp.
#define TRESSEL_SHARDING(name)                                                                                         \
  ShardingRule name(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);
TRESSEL_SHARDING(shardingWhole)
TRESSEL_SHARDING(shardingOfLoop)
TRESSEL_SHARDING(shardingOfRandom)
TRESSEL_SHARDING(shardingOfReshape)
TRESSEL_SHARDING(shardingOfSqueeze)
TRESSEL_SHARDING(shardingAlongAxis)
TRESSEL_SHARDING(shardingPutAlongAxis)
TRESSEL_SHARDING(shardingGatherNd)
TRESSEL_SHARDING(shardingScatterNd)
TRESSEL_SHARDING(shardingOfWindow)
TRESSEL_SHARDING(shardingOfConv)
TRESSEL_SHARDING(shardingOfConvByData)
TRESSEL_SHARDING(shardingOfDecomposition)
#undef TRESSEL_SHARDING

} // namespace tressel::op
