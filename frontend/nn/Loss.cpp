#include "frontend/tensor/Fail.h"

#include <tressel/nn/loss.h>

#include <tressel/array_names.h>
#include <tressel/control.h>
#include <tressel/ops.h>
#include <tressel/scope.h>

#include <limits>
#include <utility>

namespace tressel {
namespace {

/// Stands for the logarithm of 0: sums of it stay finite, so that no difference of two is NaN.
constexpr double kNever = -1e30;

void checkCtc(const Tensor &log_probs, const Tensor &targets, const Tensor &input_lengths, const Tensor &target_lengths,
              const CtcOptions &options, const std::source_location &where) {
  auto failCtc = [&](const std::string &message) {
    detail::fail<ShapeError>(message, detail::toLoc(where), "ctc_loss");
  };
  auto got = [](const Tensor &t) { return ", not " + t.type().str(); };
  if (!isFloat(log_probs.dtype()) || log_probs.rank() != 3)
    failCtc("log_probs must be floats [length, batch, classes]" + got(log_probs));
  const Shape batch{log_probs.type().shape[1]};
  if (!isInteger(targets.dtype()) || targets.rank() != 2 || targets.type().shape[0] != batch[0])
    failCtc("targets must be integers [" + dim::str(batch[0]) + ", most labels]" + got(targets));
  for (const auto &[name, lengths] :
       {std::pair("input_lengths", &input_lengths), std::pair("target_lengths", &target_lengths)})
    if (!isInteger(lengths->dtype()) || lengths->type().shape != batch)
      failCtc(std::string(name) + " must be integers of shape " + batch.str() + got(*lengths));
  if (options.reduction != "mean" && options.reduction != "sum" && options.reduction != "none")
    failCtc("reduction is 'mean', 'sum' or 'none', not '" + options.reduction + "'");
  const Size classes = log_probs.type().shape[2];
  if (options.blank < 0 || (classes.isNumber() && options.blank >= classes.number()))
    failCtc("blank is " + std::to_string(options.blank) + ", no class of " + log_probs.type().str());
}

/// x [batch, n], shifted by `by` in the second dimension; `value` fills the front.
Tensor shifted(const Tensor &x, int64_t by, double value) {
  return slice(pad(x, {0, by}, {0, 0}, value), {0, 0}, {x.dim(0), x.dim(1)});
}

} // namespace

Tensor ctc_loss(const Tensor &log_probs, const Tensor &targets, const Tensor &input_lengths,
                const Tensor &target_lengths, const CtcOptions &options, std::source_location where) {
  checkCtc(log_probs, targets, input_lengths, target_lengths, options, where);
  const detail::LocationScope scope(where, /*library=*/true);
  const Tensor probs = log_probs.dtype() == f64 ? log_probs : cast(log_probs, f32);
  const DType type = probs.dtype();
  const Dim batch = probs.dim(1), most = targets.dim(1), places = most * 2 + 1;
  const Tensor inputs = cast(input_lengths, i64), counts = cast(target_lengths, i64);

  // The labels with a blank before each and one at the end.
  const Tensor isLabel = iota({most}) < expand_dims(counts, 1);
  const Tensor labels = tressel::where(isLabel, cast(targets, i64), options.blank);
  const Tensor blanks = full({batch, most}, static_cast<double>(options.blank), i64);
  const Tensor pairs = reshape(concat({expand_dims(blanks, 2), expand_dims(labels, 2)}, 2), {batch, most * 2});
  const Tensor classes = pad(pairs, {0, 0}, {0, 1}, static_cast<double>(options.blank));
  // A path may go from a label to the next one without the blank between, if the two differ.
  const Tensor mayLeap =
      logical_and(classes != options.blank, classes != shifted(classes, 2, static_cast<double>(options.blank)));
  const Tensor emitted = maximum(take_along_axis(probs, expand_dims(classes, 0), 2), kNever);

  // For each place the log probability of all alignments of the steps so far that end there. Before the first step:
  // only the first place.
  const Tensor none = full({batch, places}, kNever, type);
  const Tensor start = tressel::where(iota({places}) == 0, zeros_like(none), none);
  auto [reached, ignored] = scan(
      [&](const Tensor &before, const std::pair<Tensor, Tensor> &step) {
        const auto &[gain, number] = step;
        const Tensor stay = before, next = shifted(before, 1, kNever);
        const Tensor leap = tressel::where(mayLeap, shifted(before, 2, kNever), kNever);
        const Tensor greatest = stop_gradient(maximum(stay, maximum(next, leap)));
        const Tensor sum = exp(stay - greatest) + exp(next - greatest) + exp(leap - greatest);
        const Tensor after = log(sum) + greatest + gain;
        return std::pair(tressel::where(expand_dims(number < inputs, 1), after, before), std::tuple<>());
      },
      start, std::pair(emitted, iota({probs.dim(0)})), where);
  (void)ignored;

  // The log probability at the last label, or at the blank that follows it.
  auto at = [&, reached = reached](const Tensor &place) {
    return squeeze(take_along_axis(reached, expand_dims(place, 1), 1), 1);
  };
  const Tensor onBlank =
      at(tressel::where(counts < 0, places, counts * 2)); // a negative place would count from the end
  const Tensor onLabel = tressel::where(counts > 0, at(maximum(counts * 2 - 1, 0)), kNever);
  const Tensor likelihood = logaddexp(onBlank, onLabel);
  const double impossible = options.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  Tensor loss = tressel::where(likelihood < kNever / 2, impossible, -likelihood);
  if (options.reduction == "mean")
    loss = mean(loss / cast(maximum(counts, 1), type));
  else if (options.reduction == "sum")
    loss = sum(loss);
  return cast(loss, log_probs.dtype());
}

} // namespace tressel
