// Metrics of a model, accumulated over batches. They are Variables: update() may be part of a traced step, and does not
// wait. value() waits.
//
//   metrics::Accuracy accuracy;
//   auto step = jit([net, accuracy](Batch b) {
//     Tensor logits = net(b.x);
//     accuracy.update(logits, b.label);
//     return ...;
//   });
//   for (Batch b : loader.epoch(e))
//     step(b);
//   std::printf("%.4f\n", accuracy.value());
//   accuracy.reset();
//
// Handles: copies are the same figure.
#pragma once

#include <tressel/arg.h>
#include <tressel/tensor.h>
#include <tressel/variable.h>

#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

namespace tressel::metrics {

/// The mean of all elements of the given tensors. NaN while there are none.
class Mean {
public:
  Mean(std::source_location where = std::source_location::current());
  void update(const Arg &values) const;
  double value(std::source_location where = std::source_location::current()) const;
  void reset(std::source_location where = std::source_location::current()) const;

  /// For checkpoints; the other metrics have it too.
  NamedVariables states() const { return {{"sum", sum_}, {"count", count_}}; }

private:
  Variable sum_, count_;
};

/// exp of the mean of cross entropies in nats.
class Perplexity {
public:
  Perplexity(std::source_location where = std::source_location::current()) : mean_(where) {}
  void update(const Arg &losses) const { mean_.update(losses); }
  double value(std::source_location where = std::source_location::current()) const;
  void reset(std::source_location where = std::source_location::current()) const { mean_.reset(where); }

  NamedVariables states() const { return mean_.states(); }

private:
  Mean mean_;
};

/// The share of labels that are among the k classes with the greatest scores. Scores are [batch, classes, ...], labels integers of that
/// shape without the classes (ShapeError); labels that equal `ignore` do not count. NaN while there is none.
class Accuracy {
public:
  explicit Accuracy(int64_t k = 1, std::optional<int64_t> ignore = {}, std::source_location where = std::source_location::current());
  void update(const Arg &scores, const Arg &labels) const;
  double value(std::source_location where = std::source_location::current()) const;
  void reset(std::source_location where = std::source_location::current()) const;

  NamedVariables states() const { return {{"right", right_}, {"count", count_}}; }

private:
  int64_t k_;
  std::optional<int64_t> ignore_;
  Variable right_, count_;
};

/// Counts of each class predicted for each label. Scores are [batch, classes], labels integers [batch]; an invalid
/// label is not counted.
class Confusion {
public:
  explicit Confusion(int64_t classes, std::source_location where = std::source_location::current());
  void update(const Arg &scores, const Arg &labels) const;
  /// i64 [classes, classes]: rows are labels, columns what was predicted.
  Tensor matrix(std::source_location where = std::source_location::current()) const { return counts_.value(where); }
  double accuracy(std::source_location where = std::source_location::current()) const;
  /// Per class; 0 for a class that was never predicted and never a label.
  std::vector<double> precision(std::source_location where = std::source_location::current()) const;
  std::vector<double> recall(std::source_location where = std::source_location::current()) const;
  std::vector<double> f1(std::source_location where = std::source_location::current()) const;
  /// The mean of the classes' f1.
  double macro_f1(std::source_location where = std::source_location::current()) const;
  void reset(std::source_location where = std::source_location::current()) const;

  NamedVariables states() const { return {{"counts", counts_}}; }

private:
  std::vector<int64_t> counted(const std::source_location &where) const;
  int64_t classes_;
  Variable counts_;
};

} // namespace tressel::metrics
