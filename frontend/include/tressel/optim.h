// Optimizers: updates of parameters by their gradients, at a scheduled rate.
//
//   optim::AdamW opt(net.parameters(), {.lr = optim::cosine(1e-3, 10'000, 500), .weight_decay = 0.1,
//                                       .groups = {{.match = {"*.bias"}, .weight_decay = 0.0}}});
//   auto step = jit([net, opt](Batch b) {
//     auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(b.x), b.label); }, net.parameters());
//     clip_by_global_norm(grads, 1.0);
//     opt.update(grads);
//     return loss;
//   });
//   opt.lr = 0.05;                              // from the next step on, without a retrace
//
// An optimizer's state, moments and the number of steps, are Variables: a traced step updates them in place, together
// with the parameters. Schedules are part of the program too, computed from the number of steps, so that a packaged
// step follows them without this library. For f16 and bf16 parameters an f32 copy is kept, in which small updates
// accumulate; moments are f32, or f64 for f64 parameters.
#pragma once

#include <tressel/tensor.h>
#include <tressel/variable.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

/// The square root of the sum of all squares, f32 or f64. Empty tensors are skipped, here and below.
Tensor global_norm(const std::vector<Tensor> &gradients, std::source_location where = std::source_location::current());
/// Scales the gradients so that their global norm is at most `max_norm`. Returns the norm before scaling; if it is
/// infinite or NaN, a gradient is, which scaling cannot repair. Throws Error unless max_norm is positive.
Tensor clip_by_global_norm(std::vector<Tensor> &gradients, double max_norm, std::source_location where = std::source_location::current());
/// Limits each element to [-limit, limit]. Throws Error unless the limit is positive.
void clip_by_value(std::vector<Tensor> &gradients, double limit, std::source_location where = std::source_location::current());

namespace optim {

/// The rate of a step as a function of how many steps came before it.
class Schedule {
public:
  /// The same rate always. Throws Error unless it is finite and not negative.
  Schedule(double rate, std::source_location where = std::source_location::current());
  /// fn(step) as traced code: from an f64 scalar, 0 for the first step, to a scalar.
  explicit Schedule(std::function<Tensor(const Tensor &step)> fn) : fn_(std::move(fn)) {}
  /// f64, a scalar, from one of an integer or a float.
  Tensor operator()(const Tensor &step) const;
  double at(int64_t step) const;

private:
  std::function<Tensor(const Tensor &)> fn_;
};

// Schedules. `warmup`: the number of steps in which the rate rises linearly, from rate / warmup in the first. All throw
// Error for rates that are negative or not finite, for negative numbers of steps, and for zero steps where something is
// divided by them.
Schedule constant(double rate, int64_t warmup = 0, std::source_location where = std::source_location::current());
/// rate * factor ^ (step / every), rounded down: multiplied by `factor` after each `every` steps.
Schedule step_decay(double rate, int64_t every, double factor = 0.1, int64_t warmup = 0, std::source_location where = std::source_location::current());
/// rate * factor ^ step.
Schedule exponential(double rate, double factor, int64_t warmup = 0, std::source_location where = std::source_location::current());
/// After the warm-up, from `rate` to `final` at `steps` along half a cosine; constant from there on.
Schedule cosine(double rate, int64_t steps, int64_t warmup = 0, double final = 0, std::source_location where = std::source_location::current());
/// The same along a line.
Schedule linear(double rate, int64_t steps, int64_t warmup = 0, double final = 0, std::source_location where = std::source_location::current());
/// rate * sqrt(warmup / (step + 1)) after a warm-up of at least one step.
Schedule inverse_sqrt(double rate, int64_t warmup, std::source_location where = std::source_location::current());
/// Rates, each with the first step that it applies to; in order, the first one from step 0.
Schedule piecewise(std::vector<std::pair<int64_t, double>> rates, std::source_location where = std::source_location::current());
struct OneCycleOptions {
  double rise = 0.3;            ///< the share of the steps in which the rate rises
  double start_factor = 1.0 / 25; ///< the first rate, over the greatest
  double end_factor = 1.0 / 250'000; ///< the last one
};
/// Up to `max_rate` and down again along half cosines (Smith and Topin 2018).
Schedule one_cycle(double max_rate, int64_t steps, OneCycleOptions options = {}, std::source_location where = std::source_location::current());

/// Parameters with options of their own: those whose name matches one of the patterns, where * stands for any
/// characters and ? for one. The first group that matches counts. Options without a value are as for the rest.
struct Group {
  std::vector<std::string> match;
  std::optional<Schedule> lr = {};    ///< a rate of their own, which `opt.lr = ...` leaves alone
  double lr_scale = 1;                ///< times the rate
  std::optional<double> weight_decay = {};
};

class Optimizer;

/// `opt.lr`: the current rate, from the schedule or assigned.
class Rate {
public:
  /// Replaces the schedule, from the next step on. Throws Error unless the rate is finite and positive.
  void operator=(double rate) const { set(rate); }
  void set(double rate, std::source_location where = std::source_location::current()) const;
  /// Follows the schedule again.
  void follow_schedule(std::source_location where = std::source_location::current()) const;
  /// The rate of the next step, without groups' factors. Waits; throws TraceError in a trace.
  double value(std::source_location where = std::source_location::current()) const;

private:
  friend class Optimizer;
  struct State;
  std::shared_ptr<State> state_;
};

/// What one step does to one parameter. Tensors are f32, or f64 where the parameter is.
struct Update {
  Tensor parameter, gradient;
  std::span<Tensor> slots; ///< the states beside the parameter: to be replaced
  Tensor rate;             ///< a scalar of their type
  Tensor step;             ///< the number of this step, 1 for the first: an f64 scalar
  double weight_decay = 0;
};
/// The definition of an optimizer, for those that are not below.
struct Rule {
  std::string name;
  /// The states beside a parameter: names of tensors of its shape, zeros at first.
  std::function<std::vector<std::string>(const std::string &name, const TensorType &)> slots;
  /// The parameter's next value.
  std::function<Tensor(Update &)> apply;
  /// Its options, for checkpoints.
  std::vector<std::pair<std::string, double>> options = {};
};
struct Common {
  Schedule lr = 1e-3;
  double weight_decay = 0;
  std::vector<Group> groups = {};
  /// So many calls of update() make one step, with the mean of their gradients; one sum per parameter is kept.
  int64_t accumulate = 1;
};

/// A handle: copies are the same optimizer.
class Optimizer {
public:
  /// Parameters must have values. Frozen ones are never updated. Throws Error for parameters without a value, equal
  /// names, options out of range, and groups that match no parameter.
  Optimizer(const NamedVariables &parameters, Rule rule, Common common, std::source_location where = std::source_location::current());

  Rate lr;

  /// Takes a step. One gradient per parameter, in their order and of their types (ShapeError); an empty one leaves its
  /// parameter alone.
  void update(const std::vector<Tensor> &gradients, std::source_location where = std::source_location::current()) const;
  /// A step if `when`, a bool[], is true; otherwise everything stays as it is, and the gradients are not read.
  void update_when(const Tensor &when, const std::vector<Tensor> &gradients,
                   std::source_location where = std::source_location::current()) const;
  /// How many steps were taken. Waits; throws TraceError in a trace.
  int64_t steps(std::source_location where = std::source_location::current()) const;
  const NamedVariables &parameters() const;
  /// The states that a checkpoint needs: "step", "rate", then by slot and parameter: "momentum.conv1.weight".
  const NamedVariables &states() const;
  /// The rule's name and options, as text: loading a checkpoint of another optimizer is refused by it.
  std::string description() const;

private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Each takes its options by name: optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9}). `weight_decay` w adds
// w * parameter to the gradient; decoupled, it takes rate * w * parameter off the parameter instead.

struct SGDOptions {
  Schedule lr = 0.01;
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool decoupled = false;
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
class SGD : public Optimizer {
public:
  explicit SGD(const NamedVariables &parameters, SGDOptions options = {}, std::source_location where = std::source_location::current());
};

struct AdamOptions {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool amsgrad = false; ///< divides by the greatest second moment so far
  double weight_decay = 0;
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
/// Kingma and Ba 2015, with the moments' bias corrected.
class Adam : public Optimizer {
public:
  explicit Adam(const NamedVariables &parameters, AdamOptions options = {}, std::source_location where = std::source_location::current());
};
/// The same with decoupled decay, 0.01 unless told (Loshchilov and Hutter 2019).
struct AdamWOptions {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool amsgrad = false;
  double weight_decay = 0.01;
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
class AdamW : public Optimizer {
public:
  explicit AdamW(const NamedVariables &parameters, AdamWOptions options = {}, std::source_location where = std::source_location::current());
};

struct RMSPropOptions {
  Schedule lr = 0.01;
  double alpha = 0.99, eps = 1e-8, momentum = 0;
  bool centered = false; ///< divides by the standard deviation, not by the root mean square
  double weight_decay = 0;
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
class RMSProp : public Optimizer {
public:
  explicit RMSProp(const NamedVariables &parameters, RMSPropOptions options = {}, std::source_location where = std::source_location::current());
};

struct AdagradOptions {
  Schedule lr = 0.01;
  double eps = 1e-10;
  double weight_decay = 0;
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
class Adagrad : public Optimizer {
public:
  explicit Adagrad(const NamedVariables &parameters, AdagradOptions options = {}, std::source_location where = std::source_location::current());
};

struct LAMBOptions {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6;
  double weight_decay = 0.01;
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
/// Adam's step with decay, scaled by the parameter's norm over the step's norm (You et al. 2020).
class LAMB : public Optimizer {
public:
  explicit LAMB(const NamedVariables &parameters, LAMBOptions options = {}, std::source_location where = std::source_location::current());
};

struct LionOptions {
  Schedule lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0; ///< decoupled
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
/// Steps of equal size: the sign of a mean of gradients (Chen et al. 2023).
class Lion : public Optimizer {
public:
  explicit Lion(const NamedVariables &parameters, LionOptions options = {}, std::source_location where = std::source_location::current());
};

struct MuonOptions {
  Schedule lr = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  int64_t iterations = 5;  ///< of Newton and Schulz
  std::vector<std::string> adamw = {}; ///< patterns as in a group: matrices that AdamW updates too, such as embeddings
                                       ///< and heads
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8; ///< of AdamW
  double weight_decay = 0.01; ///< decoupled
  std::vector<Group> groups = {};
  int64_t accumulate = 1;
};
/// For matrices, and filters seen as [features, the rest]: the nearest orthogonal matrix to the momentum, scaled to the
/// size of AdamW's steps (Jordan 2024; the factor 0.2 * sqrt(longer side) of Liu et al. 2025). AdamW updates vectors
/// and scalars.
class Muon : public Optimizer {
public:
  explicit Muon(const NamedVariables &parameters, MuonOptions options = {}, std::source_location where = std::source_location::current());
};

struct PlateauOptions {
  double factor = 0.1;     ///< the rate is multiplied by it
  int64_t patience = 10;   ///< after so many observations without an improvement
  double threshold = 1e-4; ///< the least improvement, relative to the best
  bool higher_is_better = false;
  double min_rate = 0;
};
/// Lowers an optimizer's rate where a figure stops improving, whatever its schedule. A handle; part of a training's
/// state (checkpoint.h).
class Plateau {
public:
  explicit Plateau(Optimizer optimizer, PlateauOptions options = {}, std::source_location where = std::source_location::current());
  /// A loss or accuracy, once per epoch say. True when it lowered the rate. A NaN is no improvement.
  bool observe(double figure, std::source_location where = std::source_location::current());
  /// The best figure and the observations since: f64[2].
  Tensor state() const;
  /// Throws InputError for what state() did not give.
  void load_state(const Tensor &state, std::source_location where = std::source_location::current()) const;

private:
  struct State;
  Optimizer optimizer_;
  PlateauOptions options_;
  std::shared_ptr<State> state_;
};

/// Moving averages of parameters, which often do better than the last values: average = decay * average + (1 - decay) *
/// parameter, with a smaller decay at first: min(decay, (1 + n) / (10 + n)) at update n. A handle.
class MovingAverage {
public:
  MovingAverage(const NamedVariables &parameters, double decay = 0.999, std::source_location where = std::source_location::current());
  /// Call it after each step.
  void update(std::source_location where = std::source_location::current()) const;
  /// Swaps the parameters' values with the averages: a second call restores them.
  void exchange(std::source_location where = std::source_location::current()) const;
  const NamedVariables &states() const;

private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

struct LossScaleOptions {
  double initial = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000; ///< steps without an overflow after which the scale grows
  double most = 16777216;
};
/// Keeps gradients in the range of f16: the loss is multiplied by a scale before it is differentiated, and the
/// gradients are divided by it. A step whose gradients overflow is skipped and reduces the scale; `interval` good steps
/// increase it (Micikevicius et al., "Mixed precision training", 2018). All of it is part of the program: nothing is
/// traced again, and nothing waits.
///
///   optim::LossScale scale;
///   auto step = jit([=](Tensor x, Tensor label) {
///     auto [scaled, grads] = value_and_grad([&] { return scale(softmax_cross_entropy(net(x), label)); },
///                                           net.parameters());
///     return scale.update(opt, scaled, grads);    // the loss
///   }, {.autocast = f16});
class LossScale {
public:
  explicit LossScale(LossScaleOptions options = {}, std::source_location where = std::source_location::current());
  /// The loss times the scale.
  Tensor operator()(const Tensor &loss, std::source_location where = std::source_location::current()) const;
  /// Divides the gradients by the scale, and says whether all of them are finite: bool[]. For changes of gradients
  /// before the step, such as clipping.
  Tensor unscale(std::vector<Tensor> &gradients, std::source_location where = std::source_location::current()) const;
  /// Call it after a step, also after one that was skipped because its gradients were not finite.
  void adapt(const Tensor &finite, std::source_location where = std::source_location::current()) const;
  /// All three around a step of `optimizer`. Returns the loss, divided by the scale.
  Tensor update(const Optimizer &optimizer, const Tensor &scaled, std::vector<Tensor> gradients,
                std::source_location where = std::source_location::current()) const;
  /// Waits; throws TraceError in a trace.
  double value(std::source_location where = std::source_location::current()) const;
  /// "scale" and "good".
  const NamedVariables &states() const;

private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

} // namespace optim
} // namespace tressel
