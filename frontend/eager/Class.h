// The layout class of an imperative call: what its kernel is compiled for. Shapes become symbols, so that calls of all
// sizes share one kernel. The class keeps how each operand is read.
//
//   x[640, 480] + 1         add f32[s0] f32[]                one flat dimension, whatever the rank was
//   x[64, 10] + b[10]       add f32[s0, s1] f32[1, s1]       rows
//   sum(x[8, 16, 32], {1})  sum f32[s0, s1, s2] axes (1)     kept, reduced, kept
//   softmax(x[64, 1000])    softmax f32[s0, s1]              by rank; equal sizes are one symbol
//
// Sizes 0 and 1 stay numbers. Where code for any size would be slower, a symbol is bounded to one of two or three
// ranges (Class.cpp): results beyond the caches, rows that fit on the stack.
#pragma once

#include "codegen/OpKernel.h"

#include <vector>

namespace tressel::eager {

struct Classified {
  codegen::OpCall call;       ///< the op as its kernel runs it: perhaps with fewer dimensions and other axes
  std::vector<int64_t> sizes; ///< of call.symbols, at this call
};

/// Classes that the call belongs to, the preferred one first. Types are of known sizes and `infer` accepted them;
/// `result` is the first result's. A launch's buffers are the operands in order, then the results, all dense.
/// `forDevice`: for an accelerator, which needs no code of its own for results beyond the caches.
std::vector<Classified> classesOf(const op::OpInfo &op, std::span<const TensorType> operands, const TensorType &result,
                                  const op::Attrs &attrs, bool forDevice = false);

/// Whether the op's rules infer for the class what they infer for the call, whose result has so many elements.
bool agrees(const Classified &c, int64_t elements);

/// The class whose program a common op's call on an accelerator shares with other sizes; nothing where all its sizes
/// are numbers.
std::optional<Classified> deviceClassOf(const op::OpInfo &op, std::span<const TensorType> operands,
                                        const TensorType &result, const op::Attrs &attrs);

/// Results of at least so many bytes are written by non-temporal stores: flat calls then use other kernels.
inline constexpr int64_t kHugeBytes = int64_t(16) << 20;

/// Splits a reduction of many elements to few in two, so that all threads have work: the first reduces the inner part,
/// the second is the same op over the first's result. Nothing where one reduction is as good.
struct SplitReduction {
  TensorType first, partial, second; ///< operand of the first step, its result, operand of the second
  op::Attrs firstAttrs, secondAttrs;
};
std::optional<SplitReduction> splitReduction(const op::OpInfo &op, const TensorType &operand, const TensorType &result,
                                             const op::Attrs &attrs);

} // namespace tressel::eager
