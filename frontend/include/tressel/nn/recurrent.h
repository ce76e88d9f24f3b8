// Recurrent layers. Gates are in the order of Torch and MLX, and the parameters have Torch's names; matrices are
// [in, gates], as everywhere here (LoadOptions::transpose).
#pragma once

#include <tressel/nn/basic.h>

#include <optional>
#include <vector>

namespace tressel::nn {

struct RecurrentOptions {
  int layers = 1;             ///< each takes the results of the one before
  bool bidirectional = false; ///< a second pass from the end; results lie side by side
  bool batch_first = false;   ///< sequences are [batch, length, width] instead of [length, batch, width]
  bool bias = true;
  double dropout = 0; ///< of the results between layers, in training
};

/// One step: i, f, g, o = x @ weight_ih + bias_ih + h @ weight_hh + bias_hh; cell = sigmoid(f) * cell + sigmoid(i) *
/// tanh(g); hidden = sigmoid(o) * tanh(cell). Both [batch, hidden]; zeros when they are not given.
struct LSTMState {
  Tensor hidden, cell;
};
/// x [batch, in]. Parameters: weight_ih [in, 4 hidden], weight_hh [hidden, 4 hidden], bias_ih, bias_hh [4 hidden].
class LSTMCell : public Module<LSTMCell> {
public:
  static constexpr bool kLibrary = true;
  explicit LSTMCell(int64_t hidden, bool bias = true);
  LSTMState forward(Tensor x, std::optional<LSTMState> state = {}) const;

private:
  int64_t hidden_;
  Parameter weightIn_, weightHidden_;
  std::optional<Parameter> biasIn_, biasHidden_;
};

/// One step: r, z = sigmoid(x @ weight_ih + bias_ih + h @ weight_hh + bias_hh), n = tanh(its x part + r * its h part);
/// the new h is (1 - z) * n + z * h. x [batch, in], h [batch, hidden], zeros when not given. Parameters: weight_ih
/// [in, 3 hidden], weight_hh [hidden, 3 hidden], bias_ih, bias_hh [3 hidden].
class GRUCell : public Module<GRUCell> {
public:
  static constexpr bool kLibrary = true;
  explicit GRUCell(int64_t hidden, bool bias = true);
  Tensor forward(Tensor x, std::optional<Tensor> hidden = {}) const;

private:
  int64_t hidden_;
  Parameter weightIn_, weightHidden_;
  std::optional<Parameter> biasIn_, biasHidden_;
};

namespace detail {
/// One direction of one layer.
struct RecurrentPass {
  Parameter weightIn, weightHidden;
  std::optional<Parameter> biasIn, biasHidden;
};
} // namespace detail

struct LSTMOutput {
  Tensor output;   ///< the last layer's hidden state at every step: [length, batch, directions * hidden]
  LSTMState state; ///< each [layers * directions, batch, hidden], after the last step
};
/// Parameters, for layer k: weight_ih_lk, weight_hh_lk, bias_ih_lk, bias_hh_lk as in LSTMCell, and the same with
/// "_reverse" at the end for the pass from the end. Children: drop, where there is any.
class LSTM : public Module<LSTM> {
public:
  static constexpr bool kLibrary = true;
  explicit LSTM(int64_t hidden, RecurrentOptions options = {});
  LSTMOutput forward(Tensor x, std::optional<LSTMState> state = {}) const;

private:
  int64_t hidden_;
  RecurrentOptions options_;
  std::vector<detail::RecurrentPass> passes_;
  std::vector<Dropout> drops_; ///< after each layer but the last
};

struct GRUOutput {
  Tensor output; ///< [length, batch, directions * hidden]
  Tensor hidden; ///< [layers * directions, batch, hidden], after the last step
};
/// Parameters as LSTM's, of GRUCell's shapes.
class GRU : public Module<GRU> {
public:
  static constexpr bool kLibrary = true;
  explicit GRU(int64_t hidden, RecurrentOptions options = {});
  GRUOutput forward(Tensor x, std::optional<Tensor> hidden = {}) const;

private:
  int64_t hidden_;
  RecurrentOptions options_;
  std::vector<detail::RecurrentPass> passes_;
  std::vector<Dropout> drops_;
};

} // namespace tressel::nn
