#include "frontend/tensor/Fail.h"

#include <tressel/nn/recurrent.h>

#include <tressel/control.h>

#include <cmath>
#include <functional>
#include <span>

namespace tressel::nn {
namespace {

using detail::parameterType;
using detail::RecurrentPass;

constexpr int kLstmGates = 4, kGruGates = 3;

[[noreturn]] void failShape(const std::string &message, const char *op) {
  tressel::detail::fail<ShapeError>(
      message, tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())), op);
}

void checkOptions(int64_t hidden, const RecurrentOptions &options, const char *layer) {
  if (hidden < 1 || options.layers < 1)
    throw Error(std::string(layer) + ": the hidden width and the number of layers must be at least 1");
}

/// Uniform within 1 / sqrt(hidden), for matrices and biases alike.
Initializer firstValues(int64_t hidden) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  return init::uniform(-bound, bound);
}

/// Part i of the last dimension, which holds `width` elements of each gate.
Tensor gate(const Tensor &gates, int i, int64_t width) {
  std::vector<Size> starts(static_cast<size_t>(gates.rank()), 0),
      limits(gates.type().shape.begin(), gates.type().shape.end());
  starts.back() = i * width;
  limits.back() = (i + 1) * width;
  return slice(gates, starts, limits);
}

/// x @ weight + bias.
Tensor affine(const Tensor &x, const Parameter &weight, const std::optional<Parameter> &bias, int64_t units) {
  const DType dtype = parameterType(x);
  const Tensor y = matmul(x, weight.need({x.dim(-1), units}, dtype));
  return bias ? y + bias->need({units}, dtype) : y;
}

/// An op's optional operand.
Tensor biasOf(const std::optional<Parameter> &bias, int64_t units, DType dtype) {
  return bias ? bias->need({units}, dtype).value() : Tensor();
}

// The ops of the cells, for a layer that has multiplied all steps' inputs at once.
LSTMState lstmStep(const Tensor &gates, const Tensor &cell, int64_t width) {
  const Tensor in = sigmoid(gate(gates, 0, width)), forget = sigmoid(gate(gates, 1, width));
  const Tensor next = forget * cell + in * tanh(gate(gates, 2, width));
  return {sigmoid(gate(gates, 3, width)) * tanh(next), next};
}

Tensor gruStep(const Tensor &fromX, const Tensor &fromHidden, const Tensor &hidden, int64_t width) {
  const Tensor reset = sigmoid(gate(fromX, 0, width) + gate(fromHidden, 0, width));
  const Tensor update = sigmoid(gate(fromX, 1, width) + gate(fromHidden, 1, width));
  const Tensor candidate = tanh(gate(fromX, 2, width) + reset * gate(fromHidden, 2, width));
  return candidate + update * (hidden - candidate);
}

Tensor zeroState(const Tensor &x, int64_t width) { return zeros({x.dim(0), width}, parameterType(x)); }

/// Row i of the first dimension, with that dimension removed.
Tensor row(const Tensor &x, int64_t i) {
  std::vector<Size> starts(static_cast<size_t>(x.rank()), 0), limits(x.type().shape.begin(), x.type().shape.end());
  starts[0] = i;
  limits[0] = i + 1;
  return squeeze(slice(x, starts, limits), 0);
}

Tensor stack(std::span<const Tensor> rows) {
  std::vector<Arg> parts;
  for (const Tensor &t : rows)
    parts.emplace_back(expand_dims(t, 0));
  return parts.size() == 1 ? parts.front().tensor() : concat(parts, 0);
}

/// Declares the parameters of all passes, in the order of layers and directions.
std::vector<RecurrentPass> declarePasses(const std::shared_ptr<detail::Node> &node, int64_t hidden,
                                         const RecurrentOptions &options) {
  std::vector<RecurrentPass> passes;
  const Initializer first = firstValues(hidden);
  auto declare = [&](const std::string &name) { return node->addParameter(name, {}, f32, first, Role::Parameter); };
  for (int layer = 0; layer < options.layers; ++layer)
    for (const char *direction : {"", "_reverse"}) {
      if (*direction && !options.bidirectional)
        continue;
      const std::string suffix = "_l" + std::to_string(layer) + direction;
      RecurrentPass pass{declare("weight_ih" + suffix), declare("weight_hh" + suffix), {}, {}};
      if (options.bias) {
        pass.biasIn = declare("bias_ih" + suffix);
        pass.biasHidden = declare("bias_hh" + suffix);
      }
      passes.push_back(std::move(pass));
    }
  return passes;
}

/// A step's state: hidden, and for some the cell.
using States = std::vector<Tensor>;
using Step = std::function<States(const Tensor &fromX, const RecurrentPass &pass, const States &)>;

/// All layers and directions over x [length, batch, width], each as one loop.
class Sweep {
public:
  Sweep(const RecurrentOptions &options, std::span<const RecurrentPass> passes, std::span<const Dropout> drops,
        int gates, int64_t hidden, Step step)
      : options_(options), passes_(passes), drops_(drops), hidden_(hidden), units_(gates * hidden),
        step_(std::move(step)) {}

  /// `states` holds each pass's first state and gets its last.
  Tensor run(Tensor x, std::vector<States> &states) const {
    const size_t directions = options_.bidirectional ? 2 : 1;
    for (size_t layer = 0; layer < static_cast<size_t>(options_.layers); ++layer) {
      std::vector<Arg> sides;
      for (size_t d = 0; d < directions; ++d) {
        const size_t pass = layer * directions + d;
        sides.emplace_back(runPass(x, passes_[pass], states[pass], d == 1));
      }
      x = directions == 1 ? sides.front().tensor() : concat(sides, 2);
      if (layer < drops_.size())
        x = drops_[layer](x);
    }
    return x;
  }

private:
  Tensor runPass(const Tensor &x, const RecurrentPass &pass, States &states, bool fromEnd) const {
    const Tensor fromX = affine(x, pass.weightIn, pass.biasIn, units_); // for all steps at once
    // The recurrent parameters get their shapes here, as a loop's body cannot create parameters.
    const DType dtype = parameterType(x);
    pass.weightHidden.need({hidden_, units_}, dtype);
    if (pass.biasHidden)
      pass.biasHidden->need({units_}, dtype);
    auto [last, outputs] = scan(
        [&](States before, Tensor step) {
          States after = step_(step, pass, before);
          Tensor output = after.front();
          return std::pair(std::move(after), std::move(output));
        },
        states, fromEnd ? flip(fromX, {0}) : fromX);
    states = std::move(last);
    return fromEnd ? flip(outputs, {0}) : outputs;
  }

  const RecurrentOptions &options_;
  std::span<const RecurrentPass> passes_;
  std::span<const Dropout> drops_;
  int64_t hidden_, units_;
  Step step_;
};

void checkSequence(const Tensor &x, const char *layer) {
  if (x.rank() != 3 || x.type().shape[0] == 0)
    failShape("a sequence has 3 dimensions and at least one step, and " + x.type().str() + " is none", layer);
}

/// [passes, batch, hidden] as one tensor per pass, or zeros.
std::vector<Tensor> splitState(const std::optional<Tensor> &state, size_t passes, const Tensor &x, int64_t hidden,
                               const char *layer) {
  const TensorType wanted{parameterType(x), {static_cast<int64_t>(passes), x.type().shape[1], hidden}};
  if (state && state->type() != wanted)
    failShape("the initial state is " + state->type().str() + " instead of " + wanted.str(), layer);
  std::vector<Tensor> each;
  for (size_t i = 0; i < passes; ++i)
    each.push_back(state ? row(*state, static_cast<int64_t>(i)) : zeros({x.dim(1), hidden}, wanted.dtype));
  return each;
}

Tensor joinState(const std::vector<States> &states, size_t which) {
  std::vector<Tensor> each;
  for (const States &s : states)
    each.push_back(s[which]);
  return stack(each);
}

Tensor swapBatch(const Tensor &x, bool batchFirst) { return batchFirst ? transpose(x, {1, 0, 2}) : x; }

} // namespace

// --- Cells ---
LSTMCell::LSTMCell(int64_t hidden, bool bias)
    : hidden_(hidden), weightIn_(parameter("weight_ih", firstValues(hidden))),
      weightHidden_(parameter("weight_hh", firstValues(hidden))) {
  checkOptions(hidden, {}, "LSTMCell");
  if (bias) {
    biasIn_ = parameter("bias_ih", firstValues(hidden));
    biasHidden_ = parameter("bias_hh", firstValues(hidden));
  }
}

LSTMState LSTMCell::forward(Tensor x, std::optional<LSTMState> state) const {
  if (x.rank() != 2)
    failShape("a step is [batch, width], not " + x.type().str(), "LSTMCell");
  const int64_t units = kLstmGates * hidden_;
  if (!state)
    state = LSTMState{zeroState(x, hidden_), zeroState(x, hidden_)};
  const DType dtype = parameterType(x);
  auto [hidden, cell] = lstm_cell(x, state->hidden, state->cell, weightIn_.need({x.dim(1), units}, dtype),
                                  weightHidden_.need({hidden_, units}, dtype), biasOf(biasIn_, units, dtype),
                                  biasOf(biasHidden_, units, dtype));
  return {hidden, cell};
}

GRUCell::GRUCell(int64_t hidden, bool bias)
    : hidden_(hidden), weightIn_(parameter("weight_ih", firstValues(hidden))),
      weightHidden_(parameter("weight_hh", firstValues(hidden))) {
  checkOptions(hidden, {}, "GRUCell");
  if (bias) {
    biasIn_ = parameter("bias_ih", firstValues(hidden));
    biasHidden_ = parameter("bias_hh", firstValues(hidden));
  }
}

Tensor GRUCell::forward(Tensor x, std::optional<Tensor> hidden) const {
  if (x.rank() != 2)
    failShape("a step is [batch, width], not " + x.type().str(), "GRUCell");
  const int64_t units = kGruGates * hidden_;
  if (!hidden)
    hidden = zeroState(x, hidden_);
  const DType dtype = parameterType(x);
  return gru_cell(x, *hidden, weightIn_.need({x.dim(1), units}, dtype), weightHidden_.need({hidden_, units}, dtype),
                  biasOf(biasIn_, units, dtype), biasOf(biasHidden_, units, dtype));
}

// --- Layers ---
LSTM::LSTM(int64_t hidden, RecurrentOptions options)
    : hidden_(hidden), options_(options), passes_(declarePasses(node(), hidden, options)) {
  checkOptions(hidden, options, "LSTM");
  for (int i = 0; i + 1 < options.layers && options.dropout > 0; ++i)
    drops_.push_back(child("drop" + std::to_string(i), Dropout(options.dropout)));
}

LSTMOutput LSTM::forward(Tensor x, std::optional<LSTMState> state) const {
  get(); // one that was moved from has no passes
  x = swapBatch(x, options_.batch_first && x.rank() == 3);
  checkSequence(x, "LSTM");
  std::optional<Tensor> hidden, cell;
  if (state) {
    hidden = state->hidden;
    cell = state->cell;
  }
  const std::vector<Tensor> h = splitState(hidden, passes_.size(), x, hidden_, "LSTM"),
                            c = splitState(cell, passes_.size(), x, hidden_, "LSTM");
  std::vector<States> states;
  for (size_t i = 0; i < passes_.size(); ++i)
    states.push_back({h[i], c[i]});
  const Sweep sweep(options_, passes_, drops_, kLstmGates, hidden_,
                    [this](const Tensor &fromX, const RecurrentPass &pass, const States &s) -> States {
                      const Tensor fromHidden = affine(s[0], pass.weightHidden, pass.biasHidden, kLstmGates * hidden_);
                      LSTMState next = lstmStep(fromX + fromHidden, s[1], hidden_);
                      return {next.hidden, next.cell};
                    });
  const Tensor output = sweep.run(x, states);
  return {swapBatch(output, options_.batch_first), {joinState(states, 0), joinState(states, 1)}};
}

GRU::GRU(int64_t hidden, RecurrentOptions options)
    : hidden_(hidden), options_(options), passes_(declarePasses(node(), hidden, options)) {
  checkOptions(hidden, options, "GRU");
  for (int i = 0; i + 1 < options.layers && options.dropout > 0; ++i)
    drops_.push_back(child("drop" + std::to_string(i), Dropout(options.dropout)));
}

GRUOutput GRU::forward(Tensor x, std::optional<Tensor> hidden) const {
  get(); // one that was moved from has no passes
  x = swapBatch(x, options_.batch_first && x.rank() == 3);
  checkSequence(x, "GRU");
  std::vector<States> states;
  for (const Tensor &h : splitState(hidden, passes_.size(), x, hidden_, "GRU"))
    states.push_back({h});
  const Sweep sweep(options_, passes_, drops_, kGruGates, hidden_,
                    [this](const Tensor &fromX, const RecurrentPass &pass, const States &s) -> States {
                      const Tensor fromHidden = affine(s[0], pass.weightHidden, pass.biasHidden, kGruGates * hidden_);
                      return {gruStep(fromX, fromHidden, s[0], hidden_)};
                    });
  const Tensor output = sweep.run(x, states);
  return {swapBatch(output, options_.batch_first), joinState(states, 0)};
}

} // namespace tressel::nn
