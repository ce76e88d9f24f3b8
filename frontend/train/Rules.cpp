// The optimizers: what a step does to one parameter.
#include "frontend/io/Parameters.h"
#include "frontend/tensor/Fail.h"

#include <tressel/ops.h>
#include <tressel/optim.h>

#include <algorithm>
#include <cmath>

namespace tressel::optim {
namespace {

using Slots = std::vector<std::string>;
auto always(Slots slots) {
  return [slots = std::move(slots)](const std::string &, const TensorType &) { return slots; };
}

void checkShare(double value, const char *name, const char *op, const std::source_location &where) {
  if (!(value >= 0 && value < 1))
    detail::fail<Error>(std::string(name) + " is at least 0 and less than 1, which " + std::to_string(value) + " is not", detail::toLoc(where), op);
}
void checkNotNegative(double value, const char *name, const char *op, const std::source_location &where) {
  if (!(value >= 0) || !std::isfinite(value))
    detail::fail<Error>(std::string(name) + " is finite and not negative, which " + std::to_string(value) + " is not", detail::toLoc(where), op);
}

Tensor withDecay(const Update &u) { return u.weight_decay == 0 ? u.gradient : u.gradient + u.parameter * u.weight_decay; }
/// The parameter after decoupled decay.
Tensor decayed(const Update &u) { return u.weight_decay == 0 ? u.parameter : u.parameter - u.parameter * (u.rate * u.weight_decay); }

Tensor mix(const Tensor &old, const Tensor &now, double keep) { return old * keep + now * (1 - keep); }

/// The bias correction of moments: 1 - beta^step, in the parameter's type.
Tensor correction(const Update &u, double beta) { return cast(1.0 - pow(full({}, beta, f64), u.step), u.parameter.dtype()); }

/// Adam's direction, from and into slots 0 to 1, and 2 with `amsgrad`.
Tensor adamDirection(Update &u, const Tensor &gradient, double beta1, double beta2, double eps, bool amsgrad) {
  const Tensor m = u.slots[0] = mix(u.slots[0], gradient, beta1);
  Tensor v = u.slots[1] = mix(u.slots[1], square(gradient), beta2);
  if (amsgrad)
    v = u.slots[2] = maximum(u.slots[2], v);
  return (m / correction(u, beta1)) / (sqrt(v / correction(u, beta2)) + eps);
}

template <typename O> void checkAdam(const O &o, const char *op, const std::source_location &where) {
  checkShare(o.beta1, "beta1", op, where);
  checkShare(o.beta2, "beta2", op, where);
  checkNotNegative(o.eps, "eps", op, where);
}
template <typename O> Common commonOf(const O &o) { return {o.lr, o.weight_decay, o.groups, o.accumulate}; }

Rule sgd(const SGDOptions &o, const std::source_location &where) {
  checkShare(o.momentum, "momentum", "SGD", where);
  checkShare(o.dampening, "dampening", "SGD", where);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    detail::fail<Error>("Nesterov's step needs a momentum, and no dampening", detail::toLoc(where), "SGD");
  return {.name = "SGD",
          .slots = always(o.momentum == 0 ? Slots{} : Slots{"momentum"}),
          .apply =
              [o](Update &u) {
                const Tensor g = o.decoupled ? u.gradient : withDecay(u);
                Tensor step = g;
                if (o.momentum != 0) {
                  Tensor momentum = u.slots[0] * o.momentum + g * (1 - o.dampening);
                  if (o.dampening != 0) // the first gradient is the momentum, undampened
                    momentum = tressel::where(u.step == 1.0, g, momentum);
                  u.slots[0] = momentum;
                  step = o.nesterov ? g + momentum * o.momentum : momentum;
                }
                return (o.decoupled ? decayed(u) : u.parameter) - step * u.rate;
              },
          .options = {{"momentum", o.momentum}, {"dampening", o.dampening}, {"nesterov", o.nesterov}, {"decoupled", o.decoupled}}};
}

template <typename O> Rule adam(const O &o, const char *name, bool decoupled, const std::source_location &where) {
  checkAdam(o, name, where);
  return {.name = name,
          .slots = always(o.amsgrad ? Slots{"mean", "square", "greatest"} : Slots{"mean", "square"}),
          .apply =
              [o, decoupled](Update &u) {
                const Tensor direction = adamDirection(u, decoupled ? u.gradient : withDecay(u), o.beta1, o.beta2, o.eps, o.amsgrad);
                return (decoupled ? decayed(u) : u.parameter) - direction * u.rate;
              },
          .options = {{"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"amsgrad", o.amsgrad}}};
}

Rule rmsprop(const RMSPropOptions &o, const std::source_location &where) {
  checkShare(o.alpha, "alpha", "RMSProp", where);
  checkShare(o.momentum, "momentum", "RMSProp", where);
  checkNotNegative(o.eps, "eps", "RMSProp", where);
  Slots slots{"square"};
  if (o.centered)
    slots.push_back("mean");
  if (o.momentum != 0)
    slots.push_back("momentum");
  return {.name = "RMSProp",
          .slots = always(slots),
          .apply =
              [o](Update &u) {
                const Tensor g = withDecay(u);
                Tensor spread = u.slots[0] = mix(u.slots[0], square(g), o.alpha);
                if (o.centered) {
                  u.slots[1] = mix(u.slots[1], g, o.alpha);
                  spread = maximum(spread - square(u.slots[1]), 0.0); // rounding may make it negative
                }
                Tensor step = g / (sqrt(spread) + o.eps);
                if (o.momentum != 0)
                  step = u.slots.back() = u.slots.back() * o.momentum + step;
                return u.parameter - step * u.rate;
              },
          .options = {{"alpha", o.alpha}, {"eps", o.eps}, {"momentum", o.momentum}, {"centered", o.centered}}};
}

Rule adagrad(const AdagradOptions &o, const std::source_location &where) {
  checkNotNegative(o.eps, "eps", "Adagrad", where);
  return {.name = "Adagrad",
          .slots = always({"sum_of_squares"}),
          .apply =
              [o](Update &u) {
                const Tensor g = withDecay(u);
                u.slots[0] = u.slots[0] + square(g);
                return u.parameter - g / (sqrt(u.slots[0]) + o.eps) * u.rate;
              },
          .options = {{"eps", o.eps}}};
}

Tensor norm(const Tensor &x) { return sqrt(sum(square(x))); }

Rule lamb(const LAMBOptions &o, const std::source_location &where) {
  checkAdam(o, "LAMB", where);
  return {.name = "LAMB",
          .slots = always({"mean", "square"}),
          .apply =
              [o](Update &u) {
                Tensor direction = adamDirection(u, u.gradient, o.beta1, o.beta2, o.eps, false);
                if (u.weight_decay != 0)
                  direction = direction + u.parameter * u.weight_decay;
                const Tensor of = norm(u.parameter), length = norm(direction);
                const Tensor trust = tressel::where(logical_and(of > 0.0, length > 0.0), of / length, 1.0);
                return u.parameter - direction * (u.rate * trust);
              },
          .options = {{"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}}};
}

Rule lion(const LionOptions &o, const std::source_location &where) {
  checkShare(o.beta1, "beta1", "Lion", where);
  checkShare(o.beta2, "beta2", "Lion", where);
  return {.name = "Lion",
          .slots = always({"mean"}),
          .apply =
              [o](Update &u) {
                const Tensor direction = sign(mix(u.slots[0], u.gradient, o.beta1));
                u.slots[0] = mix(u.slots[0], u.gradient, o.beta2);
                return decayed(u) - direction * u.rate;
              },
          .options = {{"beta1", o.beta1}, {"beta2", o.beta2}}};
}

/// The nearest matrix whose singular values are all about 1, by the quintic iteration of Newton and Schulz with Jordan's
/// coefficients.
Tensor orthogonalized(const Tensor &matrix, int64_t iterations) {
  const bool isTall = int64_t(matrix.dim(0)) > int64_t(matrix.dim(1));
  Tensor x = isTall ? swapaxes(matrix) : matrix;
  x = x / (norm(x) + 1e-7);
  for (int64_t i = 0; i < iterations; ++i) {
    const Tensor a = matmul(x, swapaxes(x));
    x = x * 3.4445 + matmul(a * -4.7750 + matmul(a, a) * 2.0315, x);
  }
  return isTall ? swapaxes(x) : x;
}

Rule muon(const MuonOptions &o, const std::source_location &where) {
  checkAdam(o, "Muon", where);
  checkShare(o.momentum, "momentum", "Muon", where);
  if (o.iterations < 1)
    detail::fail<Error>("the number of iterations is positive, which " + std::to_string(o.iterations) + " is not", detail::toLoc(where), "Muon");
  return {.name = "Muon",
          .slots =
              [adamw = o.adamw](const std::string &name, const TensorType &type) {
                const bool isMatrix = type.rank() >= 2 && std::ranges::none_of(adamw, [&](const std::string &p) { return io::matches(p, name); });
                return isMatrix ? Slots{"momentum"} : Slots{"mean", "square"};
              },
          .apply =
              [o](Update &u) {
                if (u.slots.size() == 2)
                  return decayed(u) - adamDirection(u, u.gradient, o.beta1, o.beta2, o.eps, false) * u.rate;
                u.slots[0] = u.slots[0] * o.momentum + u.gradient;
                const Tensor step = o.nesterov ? u.gradient + u.slots[0] * o.momentum : u.slots[0];
                const Tensor matrix = reshape(step, {step.dim(0), -1});
                const auto longer = static_cast<double>(std::max(int64_t(matrix.dim(0)), int64_t(matrix.dim(1))));
                const Tensor direction = reshape(orthogonalized(matrix, o.iterations), u.parameter.shape());
                return decayed(u) - direction * (u.rate * (0.2 * std::sqrt(longer)));
              },
          .options = {{"momentum", o.momentum}, {"nesterov", o.nesterov}, {"iterations", static_cast<double>(o.iterations)},
                      {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}}};
}

} // namespace

SGD::SGD(const NamedVariables &parameters, SGDOptions options, std::source_location where)
    : Optimizer(parameters, sgd(options, where), commonOf(options), where) {}
Adam::Adam(const NamedVariables &parameters, AdamOptions options, std::source_location where)
    : Optimizer(parameters, adam(options, "Adam", false, where), commonOf(options), where) {}
AdamW::AdamW(const NamedVariables &parameters, AdamWOptions options, std::source_location where)
    : Optimizer(parameters, adam(options, "AdamW", true, where), commonOf(options), where) {}
RMSProp::RMSProp(const NamedVariables &parameters, RMSPropOptions options, std::source_location where)
    : Optimizer(parameters, rmsprop(options, where), commonOf(options), where) {}
Adagrad::Adagrad(const NamedVariables &parameters, AdagradOptions options, std::source_location where)
    : Optimizer(parameters, adagrad(options, where), commonOf(options), where) {}
LAMB::LAMB(const NamedVariables &parameters, LAMBOptions options, std::source_location where)
    : Optimizer(parameters, lamb(options, where), commonOf(options), where) {}
Lion::Lion(const NamedVariables &parameters, LionOptions options, std::source_location where)
    : Optimizer(parameters, lion(options, where), commonOf(options), where) {}
Muon::Muon(const NamedVariables &parameters, MuonOptions options, std::source_location where)
    : Optimizer(parameters, muon(options, where), commonOf(options), where) {}

} // namespace tressel::optim
