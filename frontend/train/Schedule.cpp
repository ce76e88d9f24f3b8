// Learning-rate schedules: traced code from the number of steps to a rate.
#include "frontend/tensor/Fail.h"

#include <tressel/optim.h>
#include <tressel/ops.h>

#include <cmath>
#include <numbers>

namespace tressel::optim {
namespace {

void checkRate(double rate, const char *op, const std::source_location &where) {
  if (!(rate >= 0) || !std::isfinite(rate))
    detail::fail<Error>("a rate is finite and not negative, which " + std::to_string(rate) + " is not", detail::toLoc(where), op);
}
/// A rate must be positive: with zero, training would silently learn nothing.
void checkPositive(double rate, const char *op, const std::source_location &where) {
  checkRate(rate, op, where);
  if (rate == 0)
    detail::fail<Error>("a rate of 0 changes nothing", detail::toLoc(where), op, "freeze() parameters that are to stay as they are");
}
void checkSteps(int64_t steps, int64_t least, const char *what, const char *op, const std::source_location &where) {
  if (steps < least)
    detail::fail<Error>(std::string(what) + " is " + std::to_string(steps) + ", but at least " + std::to_string(least), detail::toLoc(where), op);
}

Tensor number(double value) { return full({}, value, f64); }

/// behind(steps since the warm-up), preceded by a linear rise to behind(0).
Schedule warmedUp(int64_t warmup, const char *op, const std::source_location &where, std::function<Tensor(const Tensor &)> behind) {
  checkSteps(warmup, 0, "the number of steps of the warm-up", op, where);
  if (warmup == 0)
    return Schedule(std::move(behind));
  return Schedule([warmup, behind = std::move(behind)](const Tensor &step) {
    const auto n = static_cast<double>(warmup);
    return behind(maximum(step - n, 0.0)) * minimum((step + 1.0) / n, 1.0);
  });
}

/// From 0 to 1 over so many steps.
Tensor progress(const Tensor &step, int64_t steps) { return minimum(step / static_cast<double>(steps), 1.0); }
/// From 1 to 0 along half a cosine while x goes from 0 to 1.
Tensor fall(const Tensor &x) { return (cos(x * std::numbers::pi) + 1.0) * 0.5; }

} // namespace

Schedule::Schedule(double rate, std::source_location where) {
  checkPositive(rate, "Schedule", where);
  fn_ = [rate](const Tensor &) { return number(rate); };
}

Tensor Schedule::operator()(const Tensor &step) const {
  const Tensor rate = fn_(cast(step, f64));
  if (!rate.defined() || !isFloat(rate.dtype()) || rate.rank() != 0)
    detail::fail<ShapeError>("a schedule gives one float, not " + (rate.defined() ? rate.type().str() : std::string("an empty tensor")), {}, "Schedule");
  return cast(rate, f64);
}

double Schedule::at(int64_t step) const { return (*this)(tensor(step)).item<double>(); }

Schedule constant(double rate, int64_t warmup, std::source_location where) {
  checkPositive(rate, "constant", where);
  return warmedUp(warmup, "constant", where, [rate](const Tensor &) { return number(rate); });
}

Schedule step_decay(double rate, int64_t every, double factor, int64_t warmup, std::source_location where) {
  checkPositive(rate, "step_decay", where);
  checkRate(factor, "step_decay", where);
  checkSteps(every, 1, "the number of steps between two rates", "step_decay", where);
  return warmedUp(warmup, "step_decay", where, [=](const Tensor &step) { return pow(number(factor), floor(step / static_cast<double>(every))) * rate; });
}

Schedule exponential(double rate, double factor, int64_t warmup, std::source_location where) {
  checkPositive(rate, "exponential", where);
  checkRate(factor, "exponential", where);
  return warmedUp(warmup, "exponential", where, [=](const Tensor &step) { return pow(number(factor), step) * rate; });
}

Schedule cosine(double rate, int64_t steps, int64_t warmup, double final, std::source_location where) {
  checkPositive(rate, "cosine", where);
  checkRate(final, "cosine", where);
  checkSteps(steps - warmup, 1, "the number of steps behind the warm-up", "cosine", where);
  return warmedUp(warmup, "cosine", where, [=](const Tensor &step) { return fall(progress(step, steps - warmup)) * (rate - final) + final; });
}

Schedule linear(double rate, int64_t steps, int64_t warmup, double final, std::source_location where) {
  checkPositive(rate, "linear", where);
  checkRate(final, "linear", where);
  checkSteps(steps - warmup, 1, "the number of steps behind the warm-up", "linear", where);
  return warmedUp(warmup, "linear", where, [=](const Tensor &step) { return progress(step, steps - warmup) * (final - rate) + rate; });
}

Schedule inverse_sqrt(double rate, int64_t warmup, std::source_location where) {
  checkPositive(rate, "inverse_sqrt", where);
  checkSteps(warmup, 1, "the number of steps of the warm-up", "inverse_sqrt", where);
  const auto n = static_cast<double>(warmup);
  return Schedule([=](const Tensor &step) { return minimum((step + 1.0) / n, sqrt(n / (step + 1.0))) * rate; });
}

Schedule piecewise(std::vector<std::pair<int64_t, double>> rates, std::source_location where) {
  if (rates.empty() || rates.front().first != 0)
    detail::fail<Error>("the first rate begins with step 0", detail::toLoc(where), "piecewise");
  for (size_t i = 0; i < rates.size(); ++i) {
    checkRate(rates[i].second, "piecewise", where);
    if (i > 0 && rates[i].first <= rates[i - 1].first)
      detail::fail<Error>("steps are in order, but " + std::to_string(rates[i].first) + " follows " + std::to_string(rates[i - 1].first), detail::toLoc(where), "piecewise");
  }
  return Schedule([rates = std::move(rates)](const Tensor &step) {
    Tensor rate = number(rates.front().second);
    for (size_t i = 1; i < rates.size(); ++i)
      rate = tressel::where(step >= static_cast<double>(rates[i].first), rates[i].second, rate);
    return rate;
  });
}

Schedule one_cycle(double max_rate, int64_t steps, OneCycleOptions options, std::source_location where) {
  checkPositive(max_rate, "one_cycle", where);
  checkRate(options.start_factor, "one_cycle", where);
  checkRate(options.end_factor, "one_cycle", where);
  checkSteps(steps, 2, "the number of steps", "one_cycle", where);
  if (!(options.rise > 0 && options.rise < 1))
    detail::fail<Error>("the share of steps in which the rate rises is between 0 and 1, which " + std::to_string(options.rise) + " is not", detail::toLoc(where), "one_cycle");
  const double last = static_cast<double>(steps - 1), top = options.rise * last;
  const double start = max_rate * options.start_factor, end = max_rate * options.end_factor;
  return Schedule([=](const Tensor &step) {
    const Tensor up = fall(minimum(step / top, 1.0)) * (start - max_rate) + max_rate;
    const Tensor down = fall(clip((step - top) / (last - top), 0.0, 1.0)) * (max_rate - end) + end;
    return tressel::where(step < top, up, down);
  });
}

} // namespace tressel::optim
