// The parts that all optimizers share: the rate, groups, f32 copies, accumulation, names of states.
#include "frontend/io/Parameters.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Spread.h"

#include <tressel/autograd.h>
#include <tressel/control.h>
#include <tressel/ops.h>
#include <tressel/optim.h>
#include <tressel/scope.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <set>

namespace tressel {
namespace {

/// The type that a parameter of this type is updated in.
DType computeType(DType type) { return type == f64 ? f64 : f32; }

void checkPositive(double limit, const char *op, const std::source_location &where) {
  if (!(limit > 0))
    detail::fail<Error>("the limit is positive, which " + std::to_string(limit) + " is not", detail::toLoc(where), op);
}

} // namespace

Tensor global_norm(const std::vector<Tensor> &gradients, std::source_location where) {
  const detail::LocationScope scope(where, /*library=*/true);
  DType type = f32;
  for (const Tensor &g : gradients)
    type = g.defined() && g.dtype() == f64 ? f64 : type;
  Tensor total = full({}, 0.0, type);
  for (const Tensor &g : gradients)
    if (g.defined())
      total = total + sum(square(cast(g, type)));
  return sqrt(total);
}

Tensor clip_by_global_norm(std::vector<Tensor> &gradients, double max_norm, std::source_location where) {
  checkPositive(max_norm, "clip_by_global_norm", where);
  const detail::LocationScope scope(where, /*library=*/true);
  const Tensor norm = global_norm(gradients, where), factor = minimum(max_norm / norm, 1.0);
  for (Tensor &g : gradients)
    if (g.defined())
      g = g * cast(factor, g.dtype());
  return norm;
}

void clip_by_value(std::vector<Tensor> &gradients, double limit, std::source_location where) {
  checkPositive(limit, "clip_by_value", where);
  const detail::LocationScope scope(where, /*library=*/true);
  for (Tensor &g : gradients)
    if (g.defined())
      g = clip(g, -limit, limit);
}

namespace optim {
namespace {

/// Shortest text that reads as the same number.
std::string text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

void checkRate(double rate, const char *op, const std::source_location &where) {
  if (!(rate >= 0) || !std::isfinite(rate))
    detail::fail<Error>("a rate is finite and not negative, which " + text(rate) + " is not", detail::toLoc(where), op);
}

void checkDecay(double decay, const std::string &op, const std::source_location &where) {
  if (!(decay >= 0) || !std::isfinite(decay))
    detail::fail<Error>("weight decay is finite and not negative, which " + text(decay) + " is not", detail::toLoc(where), op);
}

} // namespace

//--- The rate -------------------------------------------------------------------------------------------------------------

struct Rate::State {
  Schedule schedule;
  Variable step{tensor(int64_t(0)), "step"};
  /// What was assigned; NaN where the schedule is followed.
  Variable assigned{full({}, std::numeric_limits<double>::quiet_NaN(), f64), "rate"};
  Variable scale{full({}, 1.0, f64), "rate_scale"};

  /// The rate of the next step, f64.
  Tensor now(const std::source_location &where) const { return own(schedule, where) * scale.value(where); }
  Tensor own(const Schedule &schedule, const std::source_location &where) const {
    const Tensor rate = assigned.value(where);
    return tressel::where(isnan(rate), schedule(step.value(where)), rate);
  }
};

void Rate::set(double rate, std::source_location where) const {
  checkRate(rate, "lr", where);
  if (rate == 0)
    detail::fail<Error>("a rate of 0 changes nothing", detail::toLoc(where), "lr", "freeze() parameters that are to stay as they are");
  state_->assigned.assign(full({}, rate, f64, where), where);
}
void Rate::follow_schedule(std::source_location where) const {
  state_->assigned.assign(full({}, std::numeric_limits<double>::quiet_NaN(), f64, where), where);
}
double Rate::value(std::source_location where) const { return state_->now(where).item<double>(where); }

//--- Steps ----------------------------------------------------------------------------------------------------------------

struct Optimizer::Impl {
  struct Entry {
    std::string name;
    Variable parameter;
    DType type; ///< the type that is computed in
    bool isFrozen = false;
    const Group *group = nullptr;
    std::optional<Variable> copy, sum; ///< the parameter in f32; the gradients of a step so far
    std::vector<Variable> slots;
  };
  NamedVariables parameters, states;
  Rule rule;
  Common common;
  std::shared_ptr<Rate::State> rate;
  std::vector<Entry> entries;
  std::optional<Variable> pending; ///< how many gradients are in the sums

  Variable keep(const std::string &what, const Entry &entry, Tensor value) {
    const std::string name = what + "." + entry.name;
    const Variable made(std::move(value), name);
    detail::lieAs(*entry.parameter.impl(), made);
    states.emplace_back(name, made);
    return made;
  }

  double decayOf(const Entry &entry) const { return entry.group && entry.group->weight_decay ? *entry.group->weight_decay : common.weight_decay; }
  Tensor rateOf(const Entry &entry, const Tensor &base, const std::source_location &where) const {
    Tensor of = base;
    if (entry.group && entry.group->lr)
      of = (*entry.group->lr)(rate->step.value(where)) * rate->scale.value(where);
    return entry.group && entry.group->lr_scale != 1 ? of * entry.group->lr_scale : of;
  }

  /// `when`: a bool[], or nothing for always.
  void step(const std::vector<Tensor> &gradients, const Tensor &when, const std::source_location &where) const {
    const Tensor base = rate->now(where);
    const Tensor number = rate->step.value(where) + int64_t(1);
    std::vector<std::pair<Variable, Tensor>> next;
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry &entry = entries[i];
      if (!gradients[i].defined() || entry.isFrozen)
        continue;
      std::vector<Tensor> slots;
      for (const Variable &slot : entry.slots)
        slots.push_back(slot.value(where));
      // The f32 copy is more precise than the parameter, unless the parameter was assigned meanwhile (loaded, say):
      // then the parameter counts.
      Tensor before = entry.parameter.value(where);
      if (entry.copy) {
        const Tensor exact = entry.copy->value(where);
        before = tressel::where(cast(exact, before.dtype()) == before, exact, cast(before, entry.type));
      }
      Update update{.parameter = before,
                    .gradient = cast(gradients[i], entry.type),
                    .slots = slots,
                    .rate = cast(rateOf(entry, base, where), entry.type),
                    .step = cast(number, f64),
                    .weight_decay = decayOf(entry)};
      const Tensor made = rule.apply(update);
      if (entry.copy)
        next.emplace_back(*entry.copy, made);
      next.emplace_back(entry.parameter, cast(made, entry.parameter.dtype(where)));
      for (size_t k = 0; k < slots.size(); ++k)
        next.emplace_back(entry.slots[k], slots[k]);
    }
    // Assigned together at the end, so that a rule that throws changes nothing.
    for (const auto &[variable, value] : next)
      variable.assign(chosen(when, value, variable, where), where);
    rate->step.assign(chosen(when, number, rate->step, where), where);
  }

  static Tensor chosen(const Tensor &when, const Tensor &next, const Variable &variable,
                       const std::source_location &where) {
    return when.defined() ? tressel::where(when, next, variable.value(where)) : next;
  }

  void accumulate(const std::vector<Tensor> &gradients, const Tensor &when, const std::source_location &where) const {
    std::vector<Tensor> means(gradients.size());
    for (size_t i = 0; i < entries.size(); ++i)
      if (gradients[i].defined() && entries[i].sum)
        entries[i].sum->assign(
            chosen(when, entries[i].sum->value(where) + cast(gradients[i], entries[i].type), *entries[i].sum, where),
            where);
    pending->assign(chosen(when, pending->value(where) + int64_t(1), *pending, where), where);
    cond(
        Arg(pending->value(where), where) == Arg(common.accumulate, where),
        [&] {
          for (size_t i = 0; i < entries.size(); ++i)
            if (gradients[i].defined() && entries[i].sum) {
              means[i] = cast(entries[i].sum->value(where) / static_cast<double>(common.accumulate), entries[i].parameter.dtype(where));
              entries[i].sum->assign(zeros(entries[i].sum->value(where).shape(), entries[i].type), where);
            }
          step(means, {}, where);
          pending->assign(tensor(int64_t(0)), where);
        },
        [] {});
  }
};

Optimizer::Optimizer(const NamedVariables &parameters, Rule rule, Common common, std::source_location where) : impl_(std::make_shared<Impl>()) {
  Impl &impl = *impl_;
  auto fail = [&](const std::string &message, const std::string &hint = {}) { detail::fail<Error>(message, detail::toLoc(where), rule.name, hint); };
  if (detail::tracing())
    detail::fail<TraceError>("an optimizer keeps Variables, which are not made in a trace", detail::toLoc(where), rule.name,
                             "make it before the traced function, and capture it");
  if (!rule.apply)
    fail("the rule says nothing of what a step does to a parameter", "set Rule::apply");
  if (common.accumulate < 1)
    fail("a step takes at least one gradient, not " + std::to_string(common.accumulate));
  checkDecay(common.weight_decay, rule.name, where);
  impl.parameters = parameters;
  impl.common = std::move(common);
  impl.rate = std::make_shared<Rate::State>(Rate::State{impl.common.lr});
  lr.state_ = impl.rate;
  for (Variable v : {impl.rate->step, impl.rate->assigned, impl.rate->scale})
    impl.states.emplace_back(v.name(), v);
  std::set<std::string> names;
  std::vector<bool> fits(impl.common.groups.size());
  for (const Group &group : impl.common.groups) {
    checkDecay(group.weight_decay.value_or(0), rule.name, where);
    checkRate(group.lr_scale, rule.name.c_str(), where);
  }
  for (const auto &[name, parameter] : parameters) {
    if (!parameter.defined())
      fail("'" + name + "' has no value yet", "initialize the network with the inputs' types first");
    if (!names.insert(name).second)
      fail("two parameters are called '" + name + "'");
    if (!isFloat(parameter.dtype()))
      fail("'" + name + "' holds " + parameter.type().str() + ", which has no gradient", "leave it out");
    Impl::Entry entry{.name = name, .parameter = parameter, .type = computeType(parameter.dtype())};
    for (size_t g = 0; g < fits.size(); ++g)
      for (const std::string &pattern : impl.common.groups[g].match)
        if (io::matches(pattern, name)) {
          entry.group = entry.group ? entry.group : &impl.common.groups[g];
          fits[g] = true;
        }
    entry.isFrozen = parameter.frozen();
    if (!entry.isFrozen) {
      const std::vector<Size> sizes(parameter.shape().begin(), parameter.shape().end());
      if (entry.type != parameter.dtype())
        entry.copy = impl.keep("copy", entry, cast(parameter.value(where), entry.type));
      for (const std::string &slot : rule.slots ? rule.slots(name, parameter.type()) : std::vector<std::string>())
        entry.slots.push_back(impl.keep(slot, entry, zeros(sizes, entry.type)));
      if (impl.common.accumulate > 1)
        entry.sum = impl.keep("sum", entry, zeros(sizes, entry.type));
    }
    impl.entries.push_back(std::move(entry));
  }
  for (size_t g = 0; g < fits.size(); ++g)
    if (!fits[g]) {
      std::string patterns;
      for (const std::string &pattern : impl.common.groups[g].match)
        patterns += (patterns.empty() ? "" : ", ") + pattern;
      fail("no parameter is called as group " + std::to_string(g) +
               " says: " + (patterns.empty() ? "it has no pattern" : patterns),
           "parameters() lists the names");
    }
  if (impl.common.accumulate > 1) {
    impl.pending = Variable(tensor(int64_t(0)), "pending");
    impl.states.emplace_back("pending", *impl.pending);
  }
  impl.rule = std::move(rule);
}

void Optimizer::update(const std::vector<Tensor> &gradients, std::source_location where) const {
  update_when({}, gradients, where);
}

void Optimizer::update_when(const Tensor &when, const std::vector<Tensor> &gradients,
                            std::source_location where) const {
  const Impl &impl = *impl_;
  if (when.defined() && when.type() != TensorType{bool_, {}})
    detail::fail<ShapeError>("whether a step is taken is a bool[], not " + when.type().str(), detail::toLoc(where),
                             impl.rule.name);
  const detail::LocationScope scope(where, /*library=*/true);
  if (gradients.size() != impl.entries.size())
    detail::fail<ShapeError>("there are " + std::to_string(gradients.size()) + " gradients for " + std::to_string(impl.entries.size()) + " parameters",
                             detail::toLoc(where), impl.rule.name);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Impl::Entry &entry = impl.entries[i];
    if (!gradients[i].defined())
      continue;
    if (gradients[i].type() != entry.parameter.type(where))
      detail::fail<ShapeError>("the gradient of '" + entry.name + "' is " + gradients[i].type().str() + ", but the parameter is " +
                                   entry.parameter.type(where).str(),
                               detail::toLoc(where), impl.rule.name);
    if (entry.isFrozen && !entry.parameter.frozen(where))
      detail::fail<Error>("'" + entry.name + "' was frozen when the optimizer was made, which keeps nothing for it", detail::toLoc(where), impl.rule.name,
                          "make the optimizer behind freeze(false)");
  }
  if (impl.pending)
    impl.accumulate(gradients, when, where);
  else
    impl.step(gradients, when, where);
}

int64_t Optimizer::steps(std::source_location where) const { return impl_->rate->step.value(where).item<int64_t>(where); }
const NamedVariables &Optimizer::parameters() const { return impl_->parameters; }
const NamedVariables &Optimizer::states() const { return impl_->states; }

/// " groups: [*.bias] weight_decay 0; [head.*] lr_scale 2".
static std::string describe(const std::vector<Group> &groups) {
  std::string all;
  for (const Group &group : groups) {
    all += all.empty() ? ", groups: [" : "; [";
    for (size_t i = 0; i < group.match.size(); ++i)
      all += (i ? " " : "") + group.match[i];
    all += "]" + (group.lr ? std::string(" with a schedule of its own") : std::string());
    if (group.lr_scale != 1)
      all += " lr_scale " + text(group.lr_scale);
    if (group.weight_decay)
      all += " weight_decay " + text(*group.weight_decay);
  }
  return all;
}

std::string Optimizer::description() const {
  std::string all = impl_->rule.name + "(";
  for (const auto &[name, value] : impl_->rule.options)
    all += name + " " + text(value) + ", ";
  return all + "weight_decay " + text(impl_->common.weight_decay) + ", accumulate " +
         std::to_string(impl_->common.accumulate) + describe(impl_->common.groups) + ")";
}

//--- Beside them ----------------------------------------------------------------------------------------------------------

struct Plateau::State {
  std::optional<double> best;
  int64_t since = 0; ///< observations without an improvement
};

Plateau::Plateau(Optimizer optimizer, PlateauOptions options, std::source_location where)
    : optimizer_(std::move(optimizer)), options_(options), state_(std::make_shared<State>()) {
  checkRate(options.factor, "Plateau", where);
  checkRate(options.min_rate, "Plateau", where);
  if (options.patience < 0 || !(options.threshold >= 0))
    detail::fail<Error>("patience and threshold are not negative", detail::toLoc(where), "Plateau");
}

bool Plateau::observe(double figure, std::source_location where) {
  auto &[best, since] = *state_;
  const double least = options_.threshold * std::abs(best.value_or(0));
  if (!std::isnan(figure) && (!best || (options_.higher_is_better ? figure > *best + least : figure < *best - least))) {
    best = figure;
    since = 0;
    return false;
  }
  if (++since <= options_.patience)
    return false;
  since = 0;
  const Variable *scale = nullptr;
  for (const auto &[name, variable] : optimizer_.states())
    if (name == "rate_scale")
      scale = &variable;
  const double now = optimizer_.lr.value(where), before = scale->value(where).item<double>(where);
  if (!(now > options_.min_rate))
    return false;
  const double factor = now > 0 ? std::max(options_.factor, options_.min_rate / now) : options_.factor;
  scale->assign(full({}, before * factor, f64, where), where);
  return true;
}

Tensor Plateau::state() const {
  return tensor({state_->best.value_or(std::numeric_limits<double>::quiet_NaN()), static_cast<double>(state_->since)},
                f64);
}
void Plateau::load_state(const Tensor &state, std::source_location where) const {
  const std::vector<double> figures =
      state.dtype() == f64 && state.type().shape == Shape{2} ? state.to_vector<double>(where) : std::vector<double>();
  if (figures.empty() || !(figures[1] >= 0 && figures[1] <= 1e15))
    throw InputError("holds no state of a Plateau, which is two f64: " + state.type().str());
  state_->best = std::isnan(figures[0]) ? std::optional<double>() : figures[0];
  state_->since = static_cast<int64_t>(figures[1]);
}

struct MovingAverage::Impl {
  double decay;
  NamedVariables parameters, states;
  Variable count{tensor(int64_t(0)), "updates"};
};

MovingAverage::MovingAverage(const NamedVariables &parameters, double decay, std::source_location where) : impl_(std::make_shared<Impl>()) {
  if (!(decay >= 0 && decay < 1))
    detail::fail<Error>("the decay is at least 0 and less than 1, which " + text(decay) + " is not", detail::toLoc(where), "MovingAverage");
  impl_->decay = decay;
  impl_->states.emplace_back("updates", impl_->count);
  for (const auto &[name, parameter] : parameters) {
    if (!parameter.defined())
      detail::fail<Error>("'" + name + "' has no value yet", detail::toLoc(where), "MovingAverage", "initialize the network with the inputs' types first");
    if (!isFloat(parameter.dtype()))
      continue;
    impl_->parameters.emplace_back(name, parameter);
    impl_->states.emplace_back("parameters." + name, Variable(cast(parameter.value(where), computeType(parameter.dtype())), "parameters." + name));
  }
}

void MovingAverage::update(std::source_location where) const {
  const detail::LocationScope scope(where, /*library=*/true);
  const Tensor n = cast(impl_->count.value(where), f64);
  const Tensor decay = minimum((n + 1.0) / (n + 10.0), impl_->decay);
  for (size_t i = 0; i < impl_->parameters.size(); ++i) {
    const Variable &average = impl_->states[i + 1].second;
    const DType type = average.dtype(where);
    const Tensor of = average.value(where), d = cast(decay, type);
    average.assign(of + (cast(impl_->parameters[i].second.value(where), type) - of) * (1.0 - d), where);
  }
  impl_->count.assign(impl_->count.value(where) + int64_t(1), where);
}

void MovingAverage::exchange(std::source_location where) const {
  const detail::LocationScope scope(where, /*library=*/true);
  for (size_t i = 0; i < impl_->parameters.size(); ++i) {
    const Variable &parameter = impl_->parameters[i].second, &average = impl_->states[i + 1].second;
    const Tensor was = parameter.value(where), of = average.value(where);
    parameter.assign(cast(of, parameter.dtype(where)), where);
    average.assign(cast(was, average.dtype(where)), where);
  }
}

const NamedVariables &MovingAverage::states() const { return impl_->states; }

struct LossScale::Impl {
  LossScaleOptions options;
  Variable scale, good{tensor(int64_t(0)), "good"}; ///< f32; steps since the scale changed
  NamedVariables states;
};

LossScale::LossScale(LossScaleOptions options, std::source_location where) : impl_(std::make_shared<Impl>()) {
  auto check = [&](bool isRight, const std::string &what) {
    if (!isRight)
      detail::fail<Error>(what, detail::toLoc(where), "LossScale");
  };
  check(std::isfinite(options.initial) && options.initial > 0,
        "the scale is above 0, which " + text(options.initial) + " is not");
  check(std::isfinite(options.growth) && options.growth >= 1,
        "the scale grows by at least 1, not by " + text(options.growth));
  check(options.backoff > 0 && options.backoff < 1,
        "an overflow makes the scale smaller, by a factor between 0 and 1, not by " + text(options.backoff));
  check(options.interval >= 1,
        "the scale grows after at least one step, not after " + std::to_string(options.interval));
  check(std::isfinite(options.most) && options.most >= options.initial,
        "the scale is at most " + text(options.most) + ", less than it begins with");
  impl_->options = options;
  impl_->scale = Variable(full({}, options.initial, f32, where), "scale");
  impl_->states = {{"scale", impl_->scale}, {"good", impl_->good}};
}

Tensor LossScale::operator()(const Tensor &loss, std::source_location where) const {
  const detail::LocationScope scope(where, /*library=*/true);
  return loss * cast(impl_->scale.value(where), loss.dtype());
}

Tensor LossScale::unscale(std::vector<Tensor> &gradients, std::source_location where) const {
  const detail::LocationScope scope(where, /*library=*/true);
  const Tensor scale = impl_->scale.value(where);
  Tensor finite = tensor(true);
  for (Tensor &gradient : gradients)
    if (gradient.defined()) {
      gradient = gradient / cast(scale, gradient.dtype());
      finite = logical_and(finite, all(isfinite(gradient)));
    }
  return finite;
}

void LossScale::adapt(const Tensor &finite, std::source_location where) const {
  const detail::LocationScope scope(where, /*library=*/true);
  const LossScaleOptions &options = impl_->options;
  const Tensor now = impl_->scale.value(where), good = impl_->good.value(where) + int64_t(1);
  const Tensor grows = logical_and(finite, Arg(good, where) >= Arg(options.interval, where));
  // A scale below the least normal number would make all gradients infinite.
  const Tensor smaller = maximum(now * options.backoff, 1e-30), larger = minimum(now * options.growth, options.most);
  impl_->scale.assign(tressel::where(finite, tressel::where(grows, larger, now), smaller), where);
  impl_->good.assign(tressel::where(logical_and(finite, logical_not(grows)), good, tensor(int64_t(0))), where);
}

Tensor LossScale::update(const Optimizer &optimizer, const Tensor &scaled, std::vector<Tensor> gradients,
                         std::source_location where) const {
  const detail::LocationScope scope(where, /*library=*/true);
  const Tensor loss = scaled / cast(impl_->scale.value(where), scaled.dtype());
  const Tensor finite = unscale(gradients, where);
  optimizer.update_when(finite, gradients, where);
  adapt(finite, where);
  return loss;
}

double LossScale::value(std::source_location where) const { return impl_->scale.value(where).item<float>(where); }
const NamedVariables &LossScale::states() const { return impl_->states; }

} // namespace optim
} // namespace tressel
