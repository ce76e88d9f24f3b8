// The reference evaluation of every op: what OpInfo::evaluate of the records is made of. Each family is written from the
// op's definition, one element at a time, and shares no code with loop forms, scalar programs or code generation, because
// it judges them. It is itself judged by NumPy (test/oracle).
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
/// Evaluates one op: completes the attributes, infers the result types, evaluates, or decomposes a composite and evaluates
/// its parts. The error is that of `infer`, or what went wrong with the values (an index outside). Inputs are not changed.
Evaluation run(const OpInfo &op, std::span<const HostTensor> inputs, Attrs attrs = {});

/// Emits by evaluating at once: a composite's value is that of its decomposition. Throws RuntimeError.
class EvaluatingEmitter final : public Emitter {
public:
  Ref add(HostTensor value) { return &values_.emplace_back(std::move(value)); }
  const HostTensor &valueOf(Ref ref) const { return *static_cast<const HostTensor *>(ref); }

  std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) override;
  Ref constant(double value, DType type) override;
  Ref constant(const HostTensor &value) override { return add(value); }
  TensorType typeOf(Ref value) override { return valueOf(value).type; }

private:
  std::deque<HostTensor> values_; // a Ref stays valid while it grows
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
/// Sum, product, smaller (NaN if either is) or larger of two elements.
Element merge(Combine combine, Element a, Element b);

// --- Elementwise ------------------------------------------------------------------------------------------------------
/// What a scalar fragment may ask besides its operands. T is the compute type.
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

/// One element: `fragment` points to the function object.
using ElementFn = Element (*)(const void *fragment, const Place &place, const Element *operands);
/// For every element of the result, with the elements of the operands broadcast to it.
/// `compute` is the type that it computes in: between f32 and another type numbers are converted as arithmetic sees them.
void forEachElement(Inputs in, Outputs out, DType compute, ElementFn fn, const void *fragment);

/// Instantiates the fragment for the compute type: operands are converted to it, and fn(context, Num<T>...) gives a Num or
/// a plain number, which is converted to the result's type. Operands in the mask are Num<bool>.
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
