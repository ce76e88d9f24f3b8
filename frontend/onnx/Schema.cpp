#include "frontend/onnx/Schema.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace tressel::onnx {

namespace {

/// What the format's own records say: inputs and element types, a row for each version that differs from the one before.
struct TypeRow {
  std::string_view op;
  int64_t since;
  std::string_view inputs, types;
};
constexpr TypeRow kTypes[] = {
#include "frontend/onnx/Schemas.inc"
};

/// How many dimensions inputs may have, which the records say in prose only. For one or more ops NAME:RULE of each input in any
/// version, or *:RULE for all. A rule is N, N-M, N+ (N or more), any, one (a single element of 0 or 1 dimensions), single (of any number of dimensions), =X (as many as
/// input X has), =X-1, <=X, or several of these with | between them.
struct RankRow {
  std::string_view ops, inputs;
};
constexpr RankRow kRanks[] = {
    // Element by element; what broadcasts.
    {"Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Cos Cosh "
     "Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log "
     "Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub "
     "Sum Swish Tan Tanh ThresholdedRelu Where Xor", "*:any"},
    {"Clip", "input:any min:one max:one"},
    {"Dropout", "data:any ratio:0 training_mode:0"},
    // Along axes.
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare",
     "data:any axes:0-1"},
    {"ArgMax ArgMin Hardmax LogSoftmax MeanVarianceNormalization Softmax", "*:any"},
    {"LpNormalization", "input:1+"},
    {"CumProd CumSum", "x:1+ axis:one"},
    {"TopK", "X:1+ K:one"},
    // Products.
    {"MatMul", "*:1+"},
    {"Gemm", "A:2 B:2 C:0-2"},
    {"Einsum", "*:any"},
    {"MatMulInteger", "A:1+ B:1+ a_zero_point:0-1|=A b_zero_point:0-1|=B"},
    {"QLinearMatMul", "a:1+ a_scale:0-1|=a a_zero_point:0-1|=a b:1+ b_scale:0-1|=b b_zero_point:0-1|=b y_scale:one y_zero_point:one"},
    // Windows: [batch, channels, space...].
    {"Conv ConvTranspose", "X:3+ W:=X B:1"},
    {"ConvInteger", "x:3+ w:=x x_zero_point:one w_zero_point:0-1"},
    {"QLinearConv", "x:3+ x_scale:one x_zero_point:one w:=x w_scale:0-1 w_zero_point:0-1 y_scale:one y_zero_point:one B:1"},
    {"AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool", "X:3+"},
    {"Col2Im", "input:3 image_shape:1 block_shape:1"},
    {"DepthToSpace SpaceToDepth", "input:4"},
    {"Resize Upsample", "X:1+ roi:1 scales:1 sizes:1"},
    {"GridSample", "X:3+ grid:=X"},
    {"AffineGrid", "theta:3 size:1"},
    {"CenterCropPad", "input_data:any shape:1"},
    // Normalizations, quantization, losses.
    {"BatchNormalization", "X:1+ scale:1 B:1 mean:1 var:1 input_mean:1 input_var:1"},
    {"InstanceNormalization", "input:3+ scale:1 B:1"},
    {"GroupNormalization", "X:3+ scale:1 bias:1"},
    {"LayerNormalization", "X:1+ Scale:<=X B:<=X"},
    {"RMSNormalization", "X:1+ scale:<=X"},
    {"LRN", "X:3+"},
    {"QuantizeLinear", "x:any y_scale:0-1|=x y_zero_point:0-1|=x"},
    {"DequantizeLinear", "x:any x_scale:0-1|=x x_zero_point:0-1|=x"},
    {"DynamicQuantizeLinear", "x:any"},
    {"NegativeLogLikelihoodLoss", "input:2+ target:=input-1 weight:1"},
    {"SoftmaxCrossEntropyLoss", "scores:2+ labels:=scores-1 weights:1"},
    // Sequences.
    {"RNN GRU LSTM", "X:3 W:3 R:3 B:2 sequence_lens:1 initial_h:3 initial_c:3 P:2"},
    {"CausalConvWithState", "input:3 weight:3 bias:1 past_state:3"},
    {"LinearAttention", "query:3 key:3 value:3 past_state:4 decay:3 beta:3"},
    {"Attention", "Q:3-4 K:3-4 V:3-4 attn_mask:0-4 past_key:4 past_value:4 nonpad_kv_seqlen:1"},
    {"RotaryEmbedding", "X:3-4 cos_cache:2-3 sin_cache:=cos_cache position_ids:2"},
    {"ReverseSequence", "input:2+ sequence_lens:1"},
    {"DFT", "input:2+ dft_length:one axis:one"},
    {"STFT", "signal:2-3 frame_step:one window:1 frame_length:one"},
    {"BlackmanWindow HammingWindow HannWindow MelWeightMatrix Range", "*:one"},
    // Shapes and places.
    {"Constant", ""},
    {"Shape Size Flatten Transpose", "*:any"},
    {"Concat", "*:1+"},
    {"Reshape", "data:any shape:1"},
    {"Squeeze Unsqueeze", "data:any axes:0-1"},
    {"Expand", "input:any shape:1"},
    {"Tile", "input:any repeats:1"},
    {"Slice", "data:any starts:1 ends:1 axes:1 steps:1"},
    {"Split", "input:1+ split:1"},
    {"Pad", "data:any pads:1 constant_value:one axes:1"},
    {"ConstantOfShape", "input:1"},
    {"EyeLike", "input:2"},
    {"Trilu", "input:2+ k:one"},
    {"OneHot", "indices:any depth:one values:1"},
    {"Compress", "input:any condition:1"},
    {"Gather", "data:1+ indices:any"},
    {"GatherElements", "data:1+ indices:=data"},
    {"GatherND", "data:1+ indices:1+"},
    {"Scatter ScatterElements", "data:1+ indices:=data updates:=data"},
    {"ScatterND", "data:1+ indices:1+ updates:any"},
    // Bodies.
    {"If", "cond:single"},
    {"Loop", "M:single cond:single v_initial:any"},
    {"Scan", "sequence_lens:1 initial_state_and_scan_inputs:any"},
};

/// The parts of a text between signs; none of an empty one.
std::vector<std::string_view> split(std::string_view text, char sign) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(sign), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}
/// The text before a separator and the text behind it.
std::pair<std::string_view, std::string_view> halves(std::string_view text, char sign) {
  const size_t at = text.find(sign);
  return at == text.npos ? std::pair(text, std::string_view()) : std::pair(text.substr(0, at), text.substr(at + 1));
}

uint32_t bit(DType type) { return 1u << static_cast<unsigned>(type); }
uint32_t typesOf(std::string_view names) {
  constexpr uint32_t all = (1u << kNumDTypes) - 1;
  uint32_t types = 0;
  for (std::string_view name : split(names, '|')) {
    const uint32_t floats = bit(f16) | bit(f32) | bit(f64);
    DType type;
    if (name == "any" || name == "number")
      types |= name == "any" ? all : all & ~bit(bool_);
    else if (name == "float" || name == "real")
      types |= name == "float" ? floats : floats | bit(bf16);
    else if (parseDType(name, type))
      types |= bit(type);
    else
      throw InternalError("the records of ONNX's ops hold an element type '" + std::string(name) + "'");
  }
  return types;
}

RankRule parseRank(std::string_view text, const OpSchema &schema) {
  if (text == "any")
    return {};
  if (text == "one")
    return {0, 1, -1, true};
  if (text == "single")
    return {0, kMaxRank, -1, true};
  if (text.starts_with("=") || text.starts_with("<=")) {
    const auto [name, less] = halves(text.substr(text.find('=') + 1), '-');
    const auto input = std::ranges::find(schema.inputs, name, &InputSchema::name);
    if (input == schema.inputs.end())
      throw InternalError("a rule for ranks names an input '" + std::string(name) + "'");
    const int offset = less.empty() ? 0 : -(less[0] - '0');
    return {text[0] == '<' ? -kMaxRank : offset, offset, static_cast<int>(input - schema.inputs.begin())};
  }
  const int lo = text[0] - '0'; // kMaxRank has one digit
  return {lo, text.ends_with('+') ? kMaxRank : text.size() == 3 ? text[2] - '0' : lo};
}

std::vector<RankRule> ranksOf(std::string_view op, std::string_view input, const OpSchema &schema) {
  for (const RankRow &row : kRanks) {
    const auto ops = split(row.ops, ' ');
    if (std::ranges::find(ops, op) == ops.end())
      continue;
    for (std::string_view rule : split(row.inputs, ' ')) {
      const auto [name, ranks] = halves(rule, ':');
      if (name != "*" && name != input)
        continue;
      std::vector<RankRule> rules;
      for (std::string_view one : split(ranks, '|'))
        rules.push_back(parseRank(one, schema));
      return rules;
    }
  }
  throw InternalError("no rule says how many dimensions input '" + std::string(input) + "' of ONNX's " + std::string(op) + " has");
}

OpSchema parse(const TypeRow &row) {
  OpSchema schema{row.since, {}};
  std::map<std::string_view, int> firstOf; // of each letter
  for (std::string_view text : split(row.inputs, ' ')) {
    auto [name, letter] = halves(text, ':');
    InputSchema input;
    input.variadic = name.ends_with('*');
    const bool isMixed = name.ends_with("**");
    input.name = name.substr(0, name.find_first_of("?*"));
    std::string_view types = letter;
    for (std::string_view declared : split(row.types, ' '))
      if (halves(declared, '=').first == letter) {
        types = halves(declared, '=').second;
        const int first = firstOf.emplace(letter, static_cast<int>(schema.inputs.size())).first->second;
        input.sameAs = isMixed ? -1 : first;
      }
    input.types = typesOf(types);
    schema.inputs.push_back(std::move(input));
  }
  for (InputSchema &input : schema.inputs)
    input.ranks = ranksOf(row.op, input.name, schema);
  return schema;
}

/// By op, oldest first.
const std::map<std::string_view, std::vector<OpSchema>> &schemas() {
  static const auto all = [] {
    std::map<std::string_view, std::vector<OpSchema>> map;
    for (const TypeRow &row : kTypes)
      map[row.op].push_back(parse(row));
    return map;
  }();
  return all;
}

//===-- What is wrong --------------------------------------------------------------------------------------------===//

using Inputs = std::span<const std::optional<GivenInput>>;

std::string dimensions(int n) { return std::to_string(n) + (n == 1 ? " dimension" : " dimensions"); }
std::string listed(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

/// The dimensions that a rule allows, or nothing where it is about an input that is absent.
std::optional<std::pair<int, int>> range(const RankRule &rule, Inputs inputs) {
  if (rule.like < 0)
    return std::pair(rule.lo, rule.hi);
  const auto like = static_cast<size_t>(rule.like);
  if (like >= inputs.size() || !inputs[like])
    return {};
  const int rank = inputs[like]->type.rank();
  return std::pair(std::max(rank + rule.lo, 0), rank + rule.hi);
}
bool holds(const RankRule &rule, const TensorType &type, Inputs inputs) {
  const auto allowed = range(rule, inputs);
  if (!allowed)
    return true;
  if (type.rank() < allowed->first || type.rank() > allowed->second)
    return false;
  return !rule.one || !dim::distinct(dim::numElements(type.shape), 1);
}
std::string spell(const RankRule &rule, const OpSchema &schema, Inputs inputs) {
  if (rule.one)
    return rule.hi == 1 ? "one element in no or one dimension" : "one element";
  const auto [lo, hi] = range(rule, inputs).value_or(std::pair(0, kMaxRank));
  std::string text = lo == hi ? dimensions(lo) : hi == kMaxRank ? "at least " + dimensions(lo) : lo == 0 && rule.like >= 0 ? "at most " + dimensions(hi)
                     : std::to_string(lo) + (hi == lo + 1 ? " or " : " to ") + dimensions(hi);
  if (rule.like >= 0) {
    const auto like = static_cast<size_t>(rule.like);
    text += ", as '" + std::string(schema.inputs[like].name) + "' is " + inputs[like]->type.str();
  }
  return text;
}

std::string problemWithInput(const OpSchema &schema, const InputSchema &input, size_t number, Inputs inputs) {
  const GivenInput &given = *inputs[number];
  const std::string what = "input " + std::to_string(number) + " '" + std::string(input.name) + "' needs ", is = ", but is " + given.type.str();
  constexpr DType integers[] = {i8, i16, i32, i64, u8};
  const bool fits = given.anyInteger ? std::ranges::any_of(integers, [&](DType t) { return (input.types & bit(t)) != 0; })
                                     : (input.types & bit(given.type.dtype)) != 0;
  if (!fits) {
    std::vector<std::string> names;
    for (int t = 0; t < kNumDTypes; ++t)
      if (input.types & (1u << t))
        names.emplace_back(nameOf(static_cast<DType>(t)));
    return what + "elements of type " + listed(names) + " from operator set " + std::to_string(schema.since) + " on" + is;
  }
  if (input.sameAs >= 0 && !given.anyInteger) {
    const auto first = static_cast<size_t>(input.sameAs);
    if (first < number && inputs[first] && !inputs[first]->anyInteger && inputs[first]->type.dtype != given.type.dtype)
      return what + "the element type of '" + std::string(schema.inputs[first].name) + "', which is " + inputs[first]->type.str() + is;
  }
  if (std::ranges::any_of(input.ranks, [&](const RankRule &rule) { return holds(rule, given.type, inputs); }))
    return {};
  std::vector<std::string> rules;
  for (const RankRule &rule : input.ranks)
    rules.push_back(spell(rule, schema, inputs));
  return what + listed(rules) + is;
}

} // namespace

const OpSchema *findSchema(std::string_view type, int64_t opset) {
  const auto it = schemas().find(type);
  const OpSchema *found = nullptr;
  if (it != schemas().end())
    for (const OpSchema &schema : it->second)
      if (schema.since <= opset)
        found = &schema;
  return found;
}

std::string problemWithInputs(const OpSchema &schema, Inputs inputs) {
  const size_t known = schema.inputs.size();
  const bool isOpen = known && schema.inputs.back().variadic;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i])
      continue;
    if (i >= known && !isOpen)
      return "has an input " + std::to_string(i) + ", but " + std::to_string(known) + " are all that the op takes from operator set " + std::to_string(schema.since) + " on";
    if (std::string problem = problemWithInput(schema, schema.inputs[std::min(i, known - 1)], i, inputs); !problem.empty())
      return problem;
  }
  return {};
}

} // namespace tressel::onnx
