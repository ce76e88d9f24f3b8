// The reference evaluation of every op, which OpInfo::evaluate calls. Each family is written from the op's definition,
// one element at a time, and shares no code with loop forms, scalar programs or code generation, since it serves to
// check them. It is checked against NumPy itself (test/oracle).
#pragma once

#include "ir/interpreter/Element.h"
#include "ir/op/Philox.h" // over Num

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace tressel::op::interp {

// --- For callers ----------------------------------------------------------------------------------------------------
struct Evaluation {
  std::vector<HostTensor> outputs;
  std::string error; ///< empty: fine
  explicit operator bool() const { return error.empty(); }
};
/// Evaluates one op: completes the attributes, infers the result types, and evaluates the op, or its decomposition for
/// a composite. The error is that of `infer`, or an invalid value (an index outside). Inputs are not changed.
Evaluation run(const OpInfo &op, std::span<const HostTensor> inputs, Attrs attrs = {});

/// Evaluates ops as they are emitted, for decompositions. Throws RuntimeError.
class EvaluatingEmitter final : public Emitter {
public:
  Ref add(HostTensor value) { return &values_.emplace_back(std::move(value)); }
  const HostTensor &valueOf(Ref ref) const { return *static_cast<const HostTensor *>(ref); }

  std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) override;
  Ref constant(double value, DType type) override;
  Ref constant(const HostTensor &value) override { return add(value); }
  TensorType typeOf(Ref value) override { return valueOf(value).type; }

private:
  std::deque<HostTensor> values_; // a deque, so that Refs stay valid as it grows
};

// --- For the generated table: the signature of OpInfo::evaluate. `out` has the inferred types and is zeroed. ---------
using Inputs = std::span<const HostTensor>;
using Outputs = std::span<HostTensor>;
void reduce(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void matmul(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void conv(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void convByWeights(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void maxPool(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void sumPool(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void view(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void broadcastTo(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void transpose(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void slice(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void concat(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void pad(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void take(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void takeAlongAxis(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void putAlongAxis(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void gatherNd(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void scatterNd(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void scatter(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void dynamicSlice(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void dynamicUpdateSlice(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void sort(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void argsort(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void topK(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
void scan(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out);
/// Combines two elements: sum, product, minimum or maximum (NaN if either is NaN).
Element merge(Combine combine, Element a, Element b);

// --- Elementwise
// ------------------------------------------------------------------------------------------------------
/// What a scalar fragment may use besides its operands. T is the compute type.
struct Place {
  const Shape *shape;
  const Index *at;
  int64_t linear;
};
template <class T> struct Context {
  Place place;
  NumTag<T> result;
  NumTag<int64_t> i64;
  NumTag<float> f32;
  NumTag<double> f64;
  NumTag<bool> boolean;

  Num<int64_t> index(int64_t dim) const { return Num<int64_t>((*place.at)[static_cast<int>(dim)]); }
  Num<int64_t> linearIndex() const { return Num<int64_t>(place.linear); }
  int64_t rank() const { return place.shape->rank(); }
  Num<int64_t> size(int64_t dim) const { return Num<int64_t>(place.shape->extent(static_cast<int>(dim))); }
  Num<int64_t> sizeOf(Size size) const { return Num<int64_t>(size.number()); }
};

/// Computes one element; `fragment` points to the function object.
using ElementFn = Element (*)(const void *fragment, const Place &place, const Element *operands);
/// Calls `fn` for every element of the result, with the operands' elements broadcast to it. `compute` is the compute
/// type: conversions between f32 and other types flush subnormal numbers as arithmetic does.
void forEachElement(Inputs in, Outputs out, DType compute, ElementFn fn, const void *fragment);

/// Instantiates the fragment for the compute type: converts operands to it, and calls fn(context, Num<T>...), which
/// returns a Num or a plain number; that is converted to the result's type. Operands in the mask are Num<bool>.
template <int Arity, unsigned BoolOperands = 0, class Fn>
void elementwise(const OpInfo &op, Inputs in, Outputs out, const Fn &fn) {
  std::vector<TensorType> operands, results;
  for (const HostTensor &t : in)
    operands.push_back(t.type);
  for (const HostTensor &t : out)
    results.push_back(t.type);
  const DType compute = computeType(op, operands, results);
  dispatch(compute, [&]<class T>(std::type_identity<T>) {
    const ElementFn element = [](const void *fragment, const Place &place, const Element *values) -> Element {
      return [&]<size_t... I>(std::index_sequence<I...>) -> Element {
        return (*static_cast<const Fn *>(fragment))(
            Context<T>{place, {}, {}, {}, {}, {}},
            Num<std::conditional_t<(BoolOperands >> I & 1) != 0, bool, T>>(
                values[I].template as<std::conditional_t<(BoolOperands >> I & 1) != 0, bool, T>>())...);
      }(std::make_index_sequence<Arity>());
    };
    forEachElement(in, out, compute, element, &fn);
  });
}

} // namespace tressel::op::interp
