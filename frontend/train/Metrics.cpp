// Figures over batches, as Variables.
#include "frontend/tensor/Fail.h"

#include <tressel/metrics.h>
#include <tressel/ops.h>

#include <cmath>

namespace tressel::metrics {
namespace {

Tensor zero(DType type) { return full({}, 0.0, type); }

/// The class dimension is the second one of the scores.
void checkLabels(const Tensor &scores, const Tensor &labels, const char *op, const SourceLoc &where) {
  std::vector<Size> wanted(scores.type().shape.begin(), scores.type().shape.end());
  if (wanted.size() >= 2)
    wanted.erase(wanted.begin() + 1);
  if (scores.rank() < 2 || !isInteger(labels.dtype()) || labels.type().shape != Shape(std::span<const Size>(wanted)))
    detail::fail<ShapeError>("scores are [batch, classes, ...] and labels integers of that shape without the classes, not " + scores.type().str() +
                                 " and " + labels.type().str(),
                             where, op);
}

double ratio(double of, double all) { return all == 0 ? std::nan("") : of / all; }

} // namespace

Mean::Mean(std::source_location where) : sum_(zero(f64), "sum"), count_(tensor(int64_t(0)), "count") { static_cast<void>(where); }
void Mean::update(const Arg &values) const {
  const detail::LocationScope scope(values.where(), /*library=*/true);
  const Tensor all = values.as_tensor();
  sum_.assign(sum_.value() + sum(cast(all, f64)));
  count_.assign(count_.value() + sum(ones(all.shape(), i64)));
}
double Mean::value(std::source_location where) const {
  return ratio(sum_.value(where).item<double>(where), static_cast<double>(count_.value(where).item<int64_t>(where)));
}
void Mean::reset(std::source_location where) const {
  sum_.assign(zero(f64), where);
  count_.assign(tensor(int64_t(0)), where);
}

double Perplexity::value(std::source_location where) const { return std::exp(mean_.value(where)); }

Accuracy::Accuracy(int64_t k, std::optional<int64_t> ignore, std::source_location where)
    : k_(k), ignore_(ignore), right_(tensor(int64_t(0)), "right"), count_(tensor(int64_t(0)), "count") {
  if (k < 1)
    detail::fail<Error>("k is at least 1, not " + std::to_string(k), detail::toLoc(where), "Accuracy");
}
void Accuracy::update(const Arg &scores, const Arg &labels) const {
  const detail::LocationScope scope(scores.where(), /*library=*/true);
  const Tensor all = scores.as_tensor(), given = cast(labels.as_tensor(), i64);
  checkLabels(all, labels.as_tensor(), "Accuracy", detail::toLoc(scores.where()));
  Tensor counts = ignore_ ? given != *ignore_ : given == given;
  Tensor isRight;
  if (k_ == 1) {
    isRight = argmax(all, 1) == given;
  } else { // correct if fewer than k classes have a greater score than the label's
    const Tensor inside = clip(given, int64_t(0), Arg(all.type().shape[1].isNumber() ? all.type().shape[1].number() - 1 : int64_t(0)));
    const Tensor own = take_along_axis(all, expand_dims(inside, 1), 1);
    isRight = logical_and(sum(cast(all > own, i64), {1}) < k_, inside == given);
  }
  right_.assign(right_.value() + sum(cast(logical_and(isRight, counts), i64)));
  count_.assign(count_.value() + sum(cast(counts, i64)));
}
double Accuracy::value(std::source_location where) const {
  return ratio(static_cast<double>(right_.value(where).item<int64_t>(where)), static_cast<double>(count_.value(where).item<int64_t>(where)));
}
void Accuracy::reset(std::source_location where) const {
  right_.assign(tensor(int64_t(0)), where);
  count_.assign(tensor(int64_t(0)), where);
}

Confusion::Confusion(int64_t classes, std::source_location where) : classes_(classes) {
  if (classes < 1)
    detail::fail<Error>("there is at least one class, not " + std::to_string(classes), detail::toLoc(where), "Confusion");
  counts_ = Variable(zeros({classes, classes}, i64), "confusion");
}
void Confusion::update(const Arg &scores, const Arg &labels) const {
  const detail::LocationScope scope(scores.where(), /*library=*/true);
  const Tensor all = scores.as_tensor(), given = labels.as_tensor();
  checkLabels(all, given, "Confusion", detail::toLoc(scores.where()));
  if (all.rank() != 2 || all.type().shape[1] != classes_)
    detail::fail<ShapeError>("scores are [batch, " + std::to_string(classes_) + "], not " + all.type().str(), detail::toLoc(scores.where()), "Confusion");
  const Tensor numbers = arange(0, classes_);
  const Tensor rows = cast(expand_dims(cast(given, i64), 1) == numbers, f32), columns = cast(expand_dims(argmax(all, 1), 1) == numbers, f32);
  counts_.assign(counts_.value() + cast(matmul(swapaxes(rows), columns), i64)); // whole numbers: exact in f32 below 2^24 per batch
}
std::vector<int64_t> Confusion::counted(const std::source_location &where) const { return counts_.value(where).to_vector<int64_t>(where); }
double Confusion::accuracy(std::source_location where) const {
  const std::vector<int64_t> counts = counted(where);
  double right = 0, all = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    all += static_cast<double>(counts[i]);
    right += i % static_cast<size_t>(classes_ + 1) == 0 ? static_cast<double>(counts[i]) : 0;
  }
  return ratio(right, all);
}

namespace {
/// For each class the correct ones over the total of its row or column; 0 where that is 0.
std::vector<double> shares(const std::vector<int64_t> &counts, size_t classes, bool ofColumns) {
  std::vector<double> shares;
  for (size_t c = 0; c < classes; ++c) {
    double all = 0;
    for (size_t i = 0; i < classes; ++i)
      all += static_cast<double>(ofColumns ? counts[i * classes + c] : counts[c * classes + i]);
    shares.push_back(all == 0 ? 0 : static_cast<double>(counts[c * classes + c]) / all);
  }
  return shares;
}
} // namespace

std::vector<double> Confusion::precision(std::source_location where) const { return shares(counted(where), static_cast<size_t>(classes_), true); }
std::vector<double> Confusion::recall(std::source_location where) const { return shares(counted(where), static_cast<size_t>(classes_), false); }
std::vector<double> Confusion::f1(std::source_location where) const {
  const std::vector<double> p = precision(where), r = recall(where);
  std::vector<double> f1;
  for (size_t c = 0; c < p.size(); ++c)
    f1.push_back(p[c] + r[c] == 0 ? 0 : 2 * p[c] * r[c] / (p[c] + r[c]));
  return f1;
}
double Confusion::macro_f1(std::source_location where) const {
  double sum = 0;
  for (double f : f1(where))
    sum += f;
  return sum / static_cast<double>(classes_);
}
void Confusion::reset(std::source_location where) const { counts_.assign(zeros({classes_, classes_}, i64), where); }

} // namespace tressel::metrics
