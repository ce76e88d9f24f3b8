// Branches and loops.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/TensorData.h"
#include "onnx.pb.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;
using Values = std::vector<Value>;

/// The most iterations that are unrolled, if a loop's body needs the iteration number at import.
constexpr int64_t kLongestUnrolled = 256;

/// One bool of rank 0.
Value flagOf(N &n, const Value &v, const char *what) {
  if (v.dtype() != DType::boolean || dim::numElements(v.type.shape) != 1)
    n.fail(std::string(what) + " must be one bool, not " + v.type.str());
  return n.reshape(v, {});
}

void ifOp(N &n) {
  const Value flag = flagOf(n, n.in(0), "the condition");
  auto branch = [&](const char *name) { return [&n, name](const Values &) { return n.importBody(name, {}); }; };
  n.graphAttr("then_branch"); // both are there, and read
  n.graphAttr("else_branch");
  Values results;
  if (auto known = n.knownScalar(flag))
    results = n.importBody(*known ? "then_branch" : "else_branch", {});
  else
    results = n.emitCond(flag, branch("then_branch"), branch("else_branch"));
  if (static_cast<int>(results.size()) < n.numOutputs())
    n.fail("its branches give " + std::to_string(results.size()) + " values, fewer than its outputs");
  for (int i = 0; i < n.numOutputs(); ++i)
    n.out(i, results[static_cast<size_t>(i)]);
}

/// The loop with a count, a condition, carried values, and results that are stacked.
class LoopImporter {
public:
  explicit LoopImporter(N &n) : n(n), inputs_(givenInputs(n.graphAttr("body"))) {
    for (int i = 2; i < n.numInputs(); ++i)
      initial_.push_back(n.in(i));
    const int results = n.graphAttr("body").output_size();
    numStacked_ = static_cast<int64_t>(results) - 1 - static_cast<int64_t>(initial_.size());
    if (inputs_.size() != initial_.size() + 2 || numStacked_ < 0)
      n.fail("its body takes " + std::to_string(inputs_.size()) + " values and gives " + std::to_string(results) +
             " for " + std::to_string(initial_.size()) + " that are carried");
    if (n.numOutputs() > results - 1)
      n.fail("has more outputs than its body");
    stacks_ = false; // whether any stacked output is wanted
    for (int i = static_cast<int>(initial_.size()); i < n.numOutputs(); ++i)
      stacks_ |= n.wants(i);
    if (n.has(0)) {
      if (!isInteger(n.in(0).dtype()) || dim::numElements(n.in(0).type.shape) != 1)
        n.fail("the number of iterations must be one integer, not " + n.in(0).type.str());
      count_ = n.reshape(n.cast(n.in(0), i64), {});
    }
    start_ = n.has(1) ? flagOf(n, n.in(1), "the condition") : n.scalar(DType::boolean, 1);
    for (size_t i = 0; i < initial_.size(); ++i) // sizes get the type that the body declares
      if (DType declared; initial_[i].symbolic && inputs_[i + 2]->type().has_tensor_type() &&
                          fromOnnx(inputs_[i + 2]->type().tensor_type().elem_type(), declared) && declared != i64)
        initial_[i] = n.cast(Value(initial_[i].type, n.materialize(initial_[i])), declared);
  }

  void run() {
    const std::optional<double> starts = n.knownScalar(start_);
    std::optional<Size> trips; // if they are known, or a size
    if (starts && !*starts)
      trips = 0;
    else if (count_ && count_->host && starts)
      trips = dim::max(count_->size(0), 0);
    if (trips && (*trips).isNumber() && *trips > dim::kMaxSize)
      trips.reset(); // a huge count means that only the condition ends the loop
    if (starts && *starts && !count_ && n.has(1) == false && !mayEnd())
      n.fail("it has neither a count nor a condition, so it never ends");

    N::Refusal refusal;
    std::optional<Values> results;
    if (trips)
      results = n.attempt(refusal, [&] { return counted(*trips); });
    if (!results && !stacks_)
      results = n.attempt(refusal, [&] { return conditional(); });
    if (!results && starts && (trips || !count_))
      results = n.attempt(refusal, [&] { return unrolled(trips); });
    if (!results && !refusal.why)
      n.unsupported("results stacked over a number of iterations that depends on the input's values");
    if (!results)
      n.refuse(std::move(refusal));
    for (int i = 0; i < n.numOutputs(); ++i)
      n.out(i, (*results)[static_cast<size_t>(i)]);
  }

private:
  /// One iteration: the next condition, the carried values, what is stacked.
  Values iterate(const Value &number, Values carried) {
    // The shapes in which the body wants its number and condition: of rank 0, or lists of one.
    auto shaped = [&](size_t i, const Value &v) {
      const auto &type = inputs_[i]->type().tensor_type();
      return type.has_shape() && type.shape().dim_size() == 1 ? n.reshape(v, {1}) : v;
    };
    carried.insert(carried.begin(),
                   {shaped(0, number), shaped(1, n.scalar(DType::boolean, 1))}); // true, or it would not run
    Values results = n.importBody("body", std::move(carried));
    results[0] = flagOf(n, results[0], "the body's condition");
    return results;
  }
  Value integer(int64_t value) { return n.reshape(n.ints({value}), {}); }

  /// The number of iterations is known before the loop begins: a scan.
  Values counted(Size trips) {
    return n.emitScan(trips, initial_, {}, [&](const Values &arguments) {
      Values results = iterate(arguments[0], Values(arguments.begin() + 1, arguments.end()));
      const auto goesOn = n.knownScalar(results[0]);
      if (!goesOn || !*goesOn)
        n.unsupported(kDataDependent);
      results.erase(results.begin());
      return results;
    });
  }

  /// Only carried values, while a condition holds: a while loop.
  Values conditional() {
    Values carried{integer(0), start_};
    carried.insert(carried.end(), initial_.begin(), initial_.end());
    Values last = n.emitWhile(
        carried,
        [&](const Values &arguments) {
          return Values{count_ ? n.emit("logical_and", {n.emit("less", {arguments[0], *count_}), arguments[1]})
                               : arguments[1]};
        },
        [&](const Values &arguments) {
          Values results = iterate(arguments[0], Values(arguments.begin() + 2, arguments.end()));
          results.resize(1 + initial_.size());
          results.insert(results.begin(), n.emit("add", {arguments[0], integer(1)}));
          return results;
        });
    last.erase(last.begin(), last.begin() + 2);
    return last;
  }

  /// Unrolled, so that the iteration number and the condition are known at import.
  Values unrolled(std::optional<Size> trips) {
    Values carried = initial_;
    std::vector<Values> stacks(static_cast<size_t>(numStacked_));
    for (int64_t i = 0; !trips || i < *trips; ++i) {
      if (i == kLongestUnrolled || (trips && !(*trips).isNumber()))
        n.unsupported("a loop that must be unrolled, over more than " + std::to_string(kLongestUnrolled) +
                      " iterations");
      Values results = iterate(integer(i), carried);
      const auto goesOn = n.knownScalar(results[0]);
      if (!goesOn)
        n.unsupported(kDataDependent);
      carried.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(initial_.size()));
      for (size_t k = 0; k < stacks.size(); ++k) {
        const Value &v = results[1 + initial_.size() + k];
        Shape one{1};
        for (Size size : v.type.shape)
          one.push_back(size);
        stacks[k].push_back(n.reshape(v, one));
      }
      if (!*goesOn)
        break;
    }
    for (Values &parts : stacks) {
      if (parts.empty())
        n.unsupported("stacked results of a loop without iterations");
      carried.push_back(parts.size() == 1 ? parts[0] : n.emit("concat", parts, {{"axis", int64_t(0)}}));
    }
    return carried;
  }

  /// Whether the body computes its condition, instead of passing on its argument.
  bool mayEnd() const {
    const auto &body = n.graphAttr("body");
    return body.output(0).name() != inputs_[1]->name();
  }

  static constexpr const char *kDataDependent =
      "whether it goes on depends on the input's values, and so would the length of what it stacks";
  N &n;
  std::vector<const ::onnx::ValueInfoProto *> inputs_; ///< of the body
  Values initial_;
  int64_t numStacked_ = 0;
  bool stacks_ = false;
  std::optional<Value> count_;
  Value start_;
};

void loop(N &n) { LoopImporter(n).run(); }

/// The elements in reverse order along one dimension.
Value flipped(N &n, const Value &v, int64_t axis) { return n.emit("flip", {v}, {{"axis", Ints{axis}}}); }

/// A dimension to another place; the others keep their order.
Value moved(N &n, const Value &v, int64_t from, int64_t to) {
  Ints order;
  for (int64_t i = 0; i < v.rank(); ++i)
    if (i != from)
      order.push_back(i);
  order.insert(order.begin() + to, from);
  return n.transpose(v, order);
}

/// What a scan's attributes say of its inputs and outputs, one entry each.
struct Directions {
  Directions(N &n, const char *axesName, const char *directionsName, size_t count, const char *what)
      : axes(axesName ? n.intsAttr(axesName).value_or(Ints(count, 0)) : Ints(count, 0)),
        backward(n.intsAttr(directionsName).value_or(Ints(count, 0))) {
    if (axes.size() != count || backward.size() != count)
      n.fail("its attributes for " + std::string(what) + " do not have " + std::to_string(count) + " entries");
  }
  Ints axes, backward;
};

/// The number of iterations, and the inputs with it as first dimension.
Size prepare(N &n, Values &slices, const Directions &d) {
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].rank() == 0)
      n.fail("takes slices of a scalar");
    slices[i] = moved(n, slices[i], n.axis(d.axes[i], slices[i].rank()), 0);
    if (slices[i].dim(0) != slices[0].dim(0))
      n.fail("its inputs have " + dim::str(slices[0].dim(0)) + " and " + dim::str(slices[i].dim(0)) + " slices");
    if (d.backward[i])
      slices[i] = flipped(n, slices[i], 0);
  }
  return slices[0].dim(0);
}

void scan(N &n) {
  const bool batched = n.opset() < 9; // version 8: a list of lengths first, and a batch as first dimension of all
  const int first = batched ? 1 : 0, numSlices = static_cast<int>(std::clamp<int64_t>(n.intAttr("num_scan_inputs"), 0, n.numInputs() + 1));
  if (batched && n.has(0))
    n.unsupported("sequences of different lengths");
  const int numStates = n.numInputs() - first - numSlices;
  const int numResults = n.graphAttr("body").output_size();
  if (numSlices < 1 || numStates < 0 || numResults < numStates)
    n.fail("has " + std::to_string(n.numInputs()) + " inputs, num_scan_inputs " + std::to_string(n.intAttr("num_scan_inputs")) +
           " and a body of " + std::to_string(numResults) + " results");
  if (n.numOutputs() > numResults)
    n.fail("has more outputs than its body");
  Values states, slices;
  for (int i = 0; i < numStates; ++i)
    states.push_back(n.in(first + i));
  for (int i = 0; i < numSlices; ++i)
    slices.push_back(n.in(first + numStates + i));
  const Directions in(n, batched ? nullptr : "scan_input_axes", batched ? "directions" : "scan_input_directions",
                      slices.size(), "inputs");
  Directions out(n, batched ? nullptr : "scan_output_axes", batched ? "no_such" : "scan_output_directions",
                 static_cast<size_t>(numResults - numStates), "outputs");

  // One sequence: from states and sequences to states and stacks.
  auto sequence = [&](Values initial, Values taken) {
    const Size trips = prepare(n, taken, in);
    Values results = n.emitScan(trips, std::move(initial), taken, [&](const Values &arguments) {
      return n.importBody("body", Values(arguments.begin() + 1, arguments.end()));
    });
    for (size_t i = 0; i < out.axes.size(); ++i) {
      Value &v = results[i + static_cast<size_t>(numStates)];
      if (out.backward[i])
        v = flipped(n, v, 0);
      v = moved(n, v, 0, n.axis(out.axes[i], v.rank()));
    }
    return results;
  };
  Values results;
  if (!batched) {
    results = sequence(states, slices);
  } else {
    Values all = states;
    all.insert(all.end(), slices.begin(), slices.end());
    for (const Value &v : all)
      if (v.rank() == 0 || v.dim(0) != all[0].dim(0))
        n.fail("its inputs " + all[0].type.str() + " and " + v.type.str() + " differ in the size of the batch");
    results = n.emitScan(all[0].dim(0), {}, all, [&](const Values &arguments) {
      const auto split = arguments.begin() + 1 + numStates;
      return sequence(Values(arguments.begin() + 1, split), Values(split, arguments.end()));
    });
  }
  for (int i = 0; i < n.numOutputs(); ++i)
    n.out(i, results[static_cast<size_t>(i)]);
}

constexpr OpEntry kTable[] = {{"If", 1, ifOp}, {"Loop", 1, loop}, {"Scan", 8, scan}};
} // namespace

std::span<const OpEntry> controlOps() { return kTable; }

} // namespace tressel::onnx
