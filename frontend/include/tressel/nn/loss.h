// Losses that are several ops. The others are ops (tressel/ops.h): softmax_cross_entropy, mse_loss, ...
#pragma once

#include <tressel/tensor.h>

#include <cstdint>
#include <source_location>
#include <string>

namespace tressel {

struct CtcOptions {
  int64_t blank = 0;              ///< the class that stands for no label
  std::string reduction = "mean"; ///< of each loss over its number of labels; "sum" or "none" of the losses themselves
  bool zero_infinity = false;     ///< a sequence too short for its labels counts as 0 instead of infinity
};
/// Connectionist temporal classification: the negative log likelihood of label sequences, summed over all alignments
/// with the input (Graves et al. 2006). An alignment names a class for each step; its labels are what is left when
/// repeated classes are merged and blanks are dropped.
///
/// log_probs [length, batch, classes] are floats, log probabilities along the last dimension; targets [batch, most
/// labels] are integers, what lies behind a sequence's labels is not read; input_lengths and target_lengths [batch] are
/// integers. Steps behind an input's length count nothing. The result has log_probs' element type: a scalar, or [batch]
/// for "none". f16 and bf16 are computed in f32. Where no alignment exists the gradient is 0. Throws ShapeError for
/// other shapes, element types, reductions, and a blank outside the classes. A label outside the classes, or a target
/// length that is negative or above the most labels, fails when the program runs.
Tensor ctc_loss(const Tensor &log_probs, const Tensor &targets, const Tensor &input_lengths,
                const Tensor &target_lengths, const CtcOptions &options = {},
                std::source_location where = std::source_location::current());

} // namespace tressel
