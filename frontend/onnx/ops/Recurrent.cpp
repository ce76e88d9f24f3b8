// Recurrent networks: one loop per direction, whose body is a step.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;
using Activation = std::function<Value(const Value &)>;

/// The elements in reverse order along the first dimension.
Value reversed(N &n, const Value &v) { return n.emit("flip", {v}, {{"axis", Ints{0}}}); }

/// The common part of RNN, GRU and LSTM: inputs by direction, activations, the loop over the sequence.
class Recurrence {
public:
  /// `gates` blocks of rows in the weights; an LSTM has a second state.
  Recurrence(N &n, int gates, bool hasCell) : n(n), gates_(gates), hasCell_(hasCell) {
    batchFirst_ = n.intAttr("layout", 0) != 0;
    x_ = n.in(0);
    n.requireFloat(x_);
    if (x_.rank() != 3)
      n.fail("needs a sequence of 3 dimensions, not " + x_.type.str());
    if (batchFirst_)
      x_ = n.transpose(x_, {1, 0, 2});
    const std::string direction = n.stringAttr("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      n.fail("attribute 'direction' is '" + direction + "'");
    backward_ = {direction == "reverse"};
    if (direction == "bidirectional")
      backward_.push_back(true);
    const Value &w = n.in(1), &r = n.in(2);
    hidden_ = n.number(r, 2);
    const int64_t rows = hidden_ * gates;
    if (!(w.type.shape == Shape{directions(), rows, x_.dim(2)}) || !(r.type.shape == Shape{directions(), rows, hidden_}))
      n.fail("weights of types " + w.type.str() + " and " + r.type.str() + " do not fit " + x_.type.str());
    if (n.intAttr("hidden_size", hidden_) != hidden_)
      n.fail("'hidden_size' differs from the weights'");
    checkLengths();
    clip_ = n.floatAttr("clip", 0);
    if (steps() == 0)
      n.fail("the sequence is empty");
    readActivations();
  }

  Size steps() const { return x_.dim(0); }
  Size batch() const { return x_.dim(1); }
  int64_t hidden() const { return hidden_; }
  int64_t directions() const { return static_cast<int64_t>(backward_.size()); }

  /// One direction's weights: [in, gates * hidden], [hidden, gates * hidden]; biases or nothing.
  struct Weights {
    Value input, recurrent;
    std::optional<Value> inputBias, recurrentBias, peephole;
    const Activation *activations;
  };
  /// One step: from the projected input and the states to the next states, the output first.
  using Step = std::function<std::vector<Value>(const Weights &, const Value &, const std::vector<Value> &)>;

  void run(const Step &step) {
    std::vector<Value> outputs, last[2];
    for (int64_t d = 0; d < directions(); ++d) {
      const bool backward = backward_[static_cast<size_t>(d)];
      const Weights w = weightsOf(d);
      Value flat = n.reshape(x_, {steps() * batch(), x_.dim(2)});
      Value projected = n.emit("matmul", {flat, w.input});
      if (w.inputBias)
        projected = n.emit("add", {projected, *w.inputBias});
      projected = n.reshape(projected, {steps(), batch(), gates_ * hidden_});
      if (backward)
        projected = reversed(n, projected);
      std::vector<Value> state{initial(5, d)};
      if (hasCell_)
        state.push_back(initial(6, d));
      const size_t numStates = state.size();
      state = n.emitScan(steps(), state, {projected}, [&](const std::vector<Value> &arguments) {
        const std::vector<Value> before(arguments.begin() + 1, arguments.begin() + 1 + static_cast<int64_t>(numStates));
        std::vector<Value> next = step(w, arguments.back(), before);
        next.push_back(next[0]);
        if (n.has(4)) { // past a sequence's end its state stays, and its output is 0
          Value t = arguments[0];
          if (backward)
            t = n.emit("sub", {n.reshape(n.sizes({steps() - 1}), {}), t});
          Value runs = n.emit("greater", {n.reshape(n.cast(n.in(4), i64), {batch(), 1}), t});
          for (size_t k = 0; k < next.size(); ++k)
            next[k] = n.emit("where", {runs, next[k], k < numStates ? before[k] : n.scalar(next[k].dtype(), 0)});
        }
        return next;
      });
      Value all = backward ? reversed(n, state.back()) : state.back();
      outputs.push_back(n.reshape(all, {steps(), 1, batch(), hidden_}));
      for (size_t k = 0; k < numStates; ++k)
        last[k].push_back(n.reshape(state[k], {1, batch(), hidden_}));
    }
    auto joined = [&](const std::vector<Value> &parts, int64_t axis) {
      return parts.size() == 1 ? parts[0] : n.emit("concat", parts, {{"axis", axis}});
    };
    Value all = joined(outputs, 1);
    n.out(0, batchFirst_ ? n.transpose(all, {2, 0, 1, 3}) : all);
    for (int k = 0; k < (hasCell_ ? 2 : 1); ++k) {
      Value final = joined(last[k], 0);
      n.out(k + 1, batchFirst_ ? n.transpose(final, {1, 0, 2}) : final);
    }
  }

  /// Block number `i` of [batch, gates * hidden], or of [gates * hidden].
  Value gate(const Value &v, int i) {
    return n.sliceAxis(v, v.rank() - 1, i * hidden_, (i + 1) * hidden_);
  }
  Value clipped(const Value &v) {
    if (clip_ <= 0)
      return v;
    return n.emit("minimum", {n.emit("maximum", {v, n.scalar(v.dtype(), -clip_)}), n.scalar(v.dtype(), clip_)});
  }

private:
  /// The rows of one direction.
  Value part(const Value &v, int64_t d) {
    Shape rest = v.type.shape;
    Shape shape;
    for (int i = 1; i < rest.rank(); ++i)
      shape.push_back(rest[i]);
    return n.reshape(n.sliceAxis(v, 0, d, d + 1), shape);
  }
  Weights weightsOf(int64_t d) {
    Weights w;
    w.input = n.transpose(part(n.in(1), d), {1, 0});
    w.recurrent = n.transpose(part(n.in(2), d), {1, 0});
    const int64_t rows = gates_ * hidden_;
    if (n.has(3)) {
      if (!(n.in(3).type.shape == Shape{directions(), 2 * rows}))
        n.fail("biases of type " + n.in(3).type.str() + " do not fit " + std::to_string(2 * rows) + " rows");
      Value b = part(n.in(3), d);
      w.inputBias = n.sliceAxis(b, 0, 0, rows);
      w.recurrentBias = n.sliceAxis(b, 0, rows, 2 * rows);
    }
    if (hasCell_ && n.has(7)) {
      if (!(n.in(7).type.shape == Shape{directions(), 3 * hidden_}))
        n.fail("peepholes of type " + n.in(7).type.str() + " do not fit " + std::to_string(hidden_) + " hidden values");
      w.peephole = part(n.in(7), d);
    }
    w.activations = &activations_[static_cast<size_t>(d) * perDirection()];
    return w;
  }
  Value initial(int input, int64_t d) {
    if (!n.has(input))
      return n.broadcastTo(n.scalar(x_.dtype(), 0), {batch(), hidden_});
    Value v = n.in(input);
    if (v.rank() != 3)
      n.fail("a state of type " + v.type.str());
    v = batchFirst_ ? n.transpose(v, {1, 0, 2}) : v;
    if (!(v.type.shape == Shape{directions(), batch(), hidden_}))
      n.fail("a state of type " + v.type.str() + " does not fit");
    return part(v, d);
  }

  /// Checks the lengths of the sequences, if they are constants.
  void checkLengths() const {
    if (!n.has(4) || !n.in(4).host || n.in(4).symbolic)
      return;
    const int64_t longest = dim::bounds(steps()).hi;
    for (int64_t length : n.knownInts(4, "the lengths of the sequences"))
      if (length < 0 || length > longest)
        n.fail("'sequence_lens' holds " + std::to_string(length) + ", but the sequences have " + dim::str(steps()) + " steps");
  }

  size_t perDirection() const { return hasCell_ ? 3 : gates_ == 3 ? 2 : 1; }
  void readActivations() {
    static const std::vector<std::string> defaults[] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    std::vector<std::string> names = n.stringsAttr("activations");
    if (names.empty())
      for (int64_t d = 0; d < directions(); ++d)
        names.insert(names.end(), defaults[perDirection() - 1].begin(), defaults[perDirection() - 1].end());
    if (names.size() != perDirection() * static_cast<size_t>(directions()))
      n.fail("'activations' has " + std::to_string(names.size()) + " entries instead of " +
             std::to_string(perDirection() * static_cast<size_t>(directions())));
    const auto alphas = n.floatsAttr("activation_alpha").value_or(std::vector<double>());
    const auto betas = n.floatsAttr("activation_beta").value_or(std::vector<double>());
    for (size_t i = 0; i < names.size(); ++i) {
      auto or_ = [&](const std::vector<double> &list, double fallback) { return i < list.size() ? list[i] : fallback; };
      activations_.push_back(activation(names[i], alphas, betas, or_));
    }
  }
  template <typename Or>
  Activation activation(std::string name, const std::vector<double> &alphas, const std::vector<double> &betas, Or or_) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const char *plain : {"tanh", "sigmoid", "relu", "softplus"})
      if (name == plain)
        return [this, plain](const Value &v) { return n.emit(plain, {v}); };
    if (name == "leakyrelu" || name == "elu" || name == "thresholdedrelu") {
      const char *op = name == "leakyrelu" ? "leaky_relu" : name == "elu" ? "elu" : "thresholded_relu";
      const double alpha = or_(alphas, name == "leakyrelu" ? 0.01 : 1);
      return [this, op, alpha](const Value &v) { return n.emit(op, {v}, {{"alpha", alpha}}); };
    }
    if (name == "hardsigmoid") {
      const double alpha = or_(alphas, 0.2), beta = or_(betas, 0.5);
      return [this, alpha, beta](const Value &v) { return n.emit("hard_sigmoid", {v}, {{"alpha", alpha}, {"beta", beta}}); };
    }
    if (name == "affine" || name == "scaledtanh") {
      const double alpha = or_(alphas, 1), beta = or_(betas, name == "affine" ? 0 : 1);
      if (name == "affine")
        return [this, alpha, beta](const Value &v) {
          return n.emit("add", {n.emit("mul", {v, n.scalar(v.dtype(), alpha)}), n.scalar(v.dtype(), beta)});
        };
      return [this, alpha, beta](const Value &v) {
        return n.emit("mul", {n.emit("tanh", {n.emit("mul", {v, n.scalar(v.dtype(), beta)})}), n.scalar(v.dtype(), alpha)});
      };
    }
    n.unsupported("activation '" + name + "'");
  }

  N &n;
  int gates_;
  bool hasCell_, batchFirst_ = false;
  double clip_ = 0;
  int64_t hidden_ = 0;
  Value x_;
  std::vector<bool> backward_;
  std::vector<Activation> activations_;
};

Value add(N &n, const Value &a, const Value &b) { return n.emit("add", {a, b}); }
Value mul(N &n, const Value &a, const Value &b) { return n.emit("mul", {a, b}); }
Value affine(N &n, const Value &h, const Recurrence::Weights &w) {
  Value v = n.emit("matmul", {h, w.recurrent});
  return w.recurrentBias ? add(n, v, *w.recurrentBias) : v;
}

void rnn(N &n) {
  Recurrence r(n, 1, false);
  r.run([&](const Recurrence::Weights &w, const Value &x, const std::vector<Value> &state) {
    return std::vector<Value>{w.activations[0](r.clipped(add(n, x, affine(n, state[0], w))))};
  });
}

void gru(N &n) {
  const bool linearBefore = n.intAttr("linear_before_reset", 0) != 0;
  Recurrence r(n, 3, false);
  r.run([&](const Recurrence::Weights &w, const Value &x, const std::vector<Value> &state) {
    const Value &h = state[0];
    Value recurrent = affine(n, h, w);
    Value update = w.activations[0](r.clipped(add(n, r.gate(x, 0), r.gate(recurrent, 0))));
    Value reset = w.activations[0](r.clipped(add(n, r.gate(x, 1), r.gate(recurrent, 1))));
    Value kept;
    if (linearBefore) {
      kept = mul(n, reset, r.gate(recurrent, 2));
    } else {
      kept = n.emit("matmul", {mul(n, reset, h), r.gate(w.recurrent, 2)});
      if (w.recurrentBias)
        kept = add(n, kept, r.gate(*w.recurrentBias, 2));
    }
    Value candidate = w.activations[1](r.clipped(add(n, r.gate(x, 2), kept)));
    // (1 - update) * candidate + update * h
    return std::vector<Value>{add(n, candidate, mul(n, update, n.emit("sub", {h, candidate})))};
  });
}

void lstm(N &n) {
  const bool coupled = n.intAttr("input_forget", 0) != 0;
  Recurrence r(n, 4, true);
  r.run([&](const Recurrence::Weights &w, const Value &x, const std::vector<Value> &state) {
    const Value &cell = state[1];
    Value all = add(n, x, affine(n, state[0], w));
    auto gate = [&](int i, int peephole, const Value &c) { // input, output, forget, candidate
      Value v = r.gate(all, i);
      if (w.peephole && peephole >= 0)
        v = add(n, v, mul(n, r.gate(*w.peephole, peephole), c));
      return r.clipped(v);
    };
    Value input = w.activations[0](gate(0, 0, cell));
    Value forget = coupled ? n.emit("sub", {n.scalar(input.dtype(), 1), input}) : w.activations[0](gate(2, 2, cell));
    Value next = add(n, mul(n, forget, cell), mul(n, input, w.activations[1](gate(3, -1, cell))));
    Value output = w.activations[0](gate(1, 1, next));
    return std::vector<Value>{mul(n, output, w.activations[2](next)), next};
  });
}

/// A depthwise convolution over the past only; its last positions are the state for the next call.
void causalConv(N &n) {
  const Value &x = n.in(0), &w = n.in(1);
  n.requireFloat(x);
  n.sameType(x, w);
  const int64_t channels = n.number(x, 1), past = n.number(w, 2) - 1;
  if (!(w.type.shape == Shape{channels, 1, past + 1}) || past < 0)
    n.fail("weights of type " + w.type.str() + " do not fit " + x.type.str());
  Value padded = x;
  if (n.has(3))
    padded = n.emit("concat", {n.in(3), x}, {{"axis", int64_t(2)}});
  else if (past)
    padded = n.emit("pad", {x}, {{"low", Ints{0, 0, past}}, {"high", Ints{0, 0, 0}}});
  if (padded.dim(2) != x.dim(2) + past)
    n.fail("a past of type " + n.in(3).type.str() + " does not fit weights of type " + w.type.str());
  Value y = n.emit("conv", {padded, w}, {{"groups", channels}});
  if (n.has(2))
    y = add(n, y, n.reshape(n.in(2), {1, channels, 1}));
  const std::string activation = n.stringAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.fail("attribute 'activation' is '" + activation + "'");
  n.out(0, activation == "none" ? y : n.emit("silu", {y}));
  n.out(1, n.sliceAxis(padded, 2, padded.dim(2) - past, padded.dim(2)));
}

/// Attention whose state is one matrix per head, updated at each position.
void linearAttention(N &n) {
  const Value q = n.in(0), k = n.in(1), v = n.in(2);
  n.ignoreAttr("chunk_size"); // a hint
  const int64_t heads = n.intAttr("q_num_heads"), groups = n.intAttr("kv_num_heads");
  const std::string rule = n.stringAttr("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    n.fail("attribute 'update_rule' is '" + rule + "'");
  for (const Value *t : {&q, &k, &v}) {
    n.requireFloat(*t);
    if (t->rank() != 3)
      n.fail("needs 3 dimensions, not " + t->type.str());
    if (!t->dim(2).isNumber())
      n.unsupported("a width that is known only when the program runs");
  }
  if (heads < 1 || groups < 1 || heads % groups || q.dim(2) % heads || k.dim(2) % groups || v.dim(2) % groups ||
      q.dim(2) / heads != k.dim(2) / groups)
    n.fail("queries, keys and values do not divide into " + std::to_string(heads) + " and " + std::to_string(groups) + " heads");
  if (gated != n.has(4) || delta != n.has(5))
    n.fail("'update_rule' " + rule + (gated ? " needs" : " takes no") + " decay and" + (delta ? " needs" : " takes no") + " rate");
  const Size batch = q.dim(0), steps = q.dim(1), keys = k.dim(2) / groups, values = v.dim(2) / groups,
             each = heads / groups;
  const double given = n.floatAttr("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(keys));
  const Shape stateShape{batch, groups, keys, values};
  Value state = n.has(3) ? n.cast(n.in(3), f32) : n.broadcastTo(n.scalar(f32, 0), stateShape);
  if (!(state.type.shape == stateShape))
    n.fail("a state of type " + n.in(3).type.str() + " is not of shape " + stateShape.str());
  // One slice per position: [batch, steps, width] with the steps first.
  std::vector<Value> slices;
  auto slice = [&](const Value &t) {
    if (t.rank() != 3 || t.dim(0) != batch || t.dim(1) != steps)
      n.fail(t.type.str() + " does not fit queries of type " + q.type.str());
    slices.push_back(n.transpose(n.cast(t, f32), {1, 0, 2}));
  };
  for (const Value *t : {&q, &k, &v})
    slice(*t);
  for (int i : {4, 5})
    if (n.has(i))
      slice(n.in(i));
  if (gated && n.in(4).dim(2) != groups && n.in(4).dim(2) != keys * groups) // one decay per head, or one per key
    n.fail("decays of type " + n.in(4).type.str() + " do not fit");
  std::vector<Value> results = n.emitScan(steps, {state}, slices, [&](const std::vector<Value> &arguments) {
    Value now = arguments[1];
    auto query = n.reshape(arguments[2], {batch, groups, each, keys}), key = n.reshape(arguments[3], {batch, groups, keys, 1}),
         value = n.reshape(arguments[4], {batch, groups, 1, values});
    if (gated)
      now = mul(n, now, n.emit("exp", {n.reshape(arguments[5], {batch, groups, n.in(4).dim(2) / groups, 1})}));
    if (delta) {
      Value known = n.emit("matmul", {n.transpose(key, {0, 1, 3, 2}), now});
      value = mul(n, n.reshape(arguments.back(), {batch, n.in(5).dim(2), 1, 1}), n.emit("sub", {value, known}));
    }
    now = add(n, now, mul(n, key, value));
    Value read = mul(n, n.emit("matmul", {query, now}), n.scalar(f32, scale));
    return std::vector<Value>{now, n.reshape(read, {batch, heads * values})};
  });
  n.out(0, n.cast(n.transpose(results[1], {1, 0, 2}), q.dtype()));
  n.out(1, n.cast(results[0], n.has(3) ? n.in(3).dtype() : q.dtype()));
}

constexpr OpEntry kTable[] = {{"RNN", 7, rnn},
                              {"GRU", 7, gru},
                              {"LSTM", 7, lstm},
                              {"CausalConvWithState", 27, causalConv},
                              {"LinearAttention", 27, linearAttention}};
} // namespace

std::span<const OpEntry> recurrentOps() { return kTable; }

} // namespace tressel::onnx
