// What the generated tables refer to: the functions that records name.
#pragma once

#include "ir/op/Expr.h"
#include "ir/op/OpInfo.h"
#include "ir/op/Sym.h"

namespace tressel::op {

// Result types, in Infer*.cpp.
#define TRESSEL_INFER(name) Inferred name(const OpInfo &, std::span<const TensorType>, const Attrs &);
TRESSEL_INFER(inferElementwise)
TRESSEL_INFER(inferDivmod)
TRESSEL_INFER(inferCreation)
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
TRESSEL_INFER(inferMatmul)
TRESSEL_INFER(inferConv)
TRESSEL_INFER(inferConvTranspose)
TRESSEL_INFER(inferPool)
TRESSEL_INFER(inferAlongAxis)
TRESSEL_INFER(inferLayerNorm)
TRESSEL_INFER(inferBatchNorm)
TRESSEL_INFER(inferOneHot)
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
TRESSEL_LOOP_FORM(loopFormMatmul)
TRESSEL_LOOP_FORM(loopFormConv)
TRESSEL_LOOP_FORM(loopFormMaxPool)
TRESSEL_LOOP_FORM(loopFormSumPool)
#undef TRESSEL_LOOP_FORM

// Costs, in Flops.cpp.
int64_t flopsOfLoop(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);
int64_t flopsOfDecomposition(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);

// What the simplifier may know, in Simplify.cpp.
bool composeTranspose(const Attrs &inner, const Attrs &outer, Attrs &merged);
#define TRESSEL_IDENTITY(name)                                                                                         \
  bool name(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>, const Attrs &);
TRESSEL_IDENTITY(sameType)
TRESSEL_IDENTITY(isIdentityTranspose)
TRESSEL_IDENTITY(isIdentitySlice)
#undef TRESSEL_IDENTITY

} // namespace tressel::op
