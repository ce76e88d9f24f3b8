// Ops of your own, with a kernel in C or C++ (tressel/runtime/custom_kernel.h), used like any other op: eagerly, in
// jitted functions, exported in packages.
//
//   const CustomOp &cube = register_op({.name = "acme.cube",
//                                       .infer = [](auto in) { return std::vector{in[0]}; },
//                                       .cpu = acme_cube, .symbol = "acme_cube"});
//   Tensor y = cube(x);
//
// docs/custom-ops.md is the guide, docs/examples/custom_op a project of its own.
#pragma once

#include <tressel/arg.h>
#include <tressel/runtime/custom_kernel.h>

#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tressel {

namespace op {
struct OpInfo;
}

/// The value of an attribute of a custom op.
using CustomAttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

/// Attributes of a call by name, or in the order of their registration with their defaults.
class CustomAttrs {
public:
  struct Entry {
    std::string name;
    CustomAttrValue value;
    template <typename T>
    requires std::integral<T> Entry(std::string n, T v) : name(std::move(n)), value(static_cast<int64_t>(v)) {}
    template <typename T>
    requires std::floating_point<T> Entry(std::string n, T v) : name(std::move(n)), value(static_cast<double>(v)) {}
    Entry(std::string n, const char *v) : name(std::move(n)), value(std::string(v)) {}
    Entry(std::string n, CustomAttrValue v) : name(std::move(n)), value(std::move(v)) {}
  };

  CustomAttrs() = default;
  CustomAttrs(std::initializer_list<Entry> entries) : entries_(entries) {}
  CustomAttrs(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  const std::vector<Entry> &entries() const { return entries_; }

  /// The value, converted from a number to a number. Throws Error when there is no such attribute, or of another kind.
  int64_t as_int(const std::string &name) const;
  double as_double(const std::string &name) const;
  const std::string &as_string(const std::string &name) const;
  const std::vector<int64_t> &as_ints(const std::string &name) const;

private:
  const CustomAttrValue &at(const std::string &name) const;
  std::vector<Entry> entries_;
};

namespace detail {
/// A callable of (operand types), or of (operand types, attributes).
template <typename Result, typename... Types> class CustomFn {
public:
  CustomFn() = default;
  CustomFn(std::nullptr_t) {}
  template <typename F>
  requires(!std::same_as<std::decay_t<F>, CustomFn>) CustomFn(F fn) {
    if constexpr (std::is_invocable_v<F, Types..., const CustomAttrs &>)
      fn_ = std::move(fn);
    else
      fn_ = [fn = std::move(fn)](Types... types, const CustomAttrs &) { return fn(types...); };
  }
  Result operator()(Types... types, const CustomAttrs &attrs) const { return fn_(types..., attrs); }
  explicit operator bool() const { return static_cast<bool>(fn_); }

private:
  std::function<Result(Types..., const CustomAttrs &)> fn_;
};
} // namespace detail

struct CustomOpSpec {
  using Types = std::span<const TensorType>;

  /// Contains a dot, so that it cannot clash with an op of Tressel's: "acme.cube".
  std::string name;
  /// The results' types: std::vector<TensorType>(Types operands), or (Types operands, const CustomAttrs &). Throws
  /// ShapeError("what is wrong") for operands that do not fit; name, operands and the user's line are added.
  detail::CustomFn<std::vector<TensorType>, Types> infer = {};
  /// The kernel. Null: looked up by `symbol` when it is first needed.
  tressel_kernel cpu = nullptr;
  /// The kernel's exported name. Packages record it: the program that loads one must have it.
  std::string symbol = {};
  /// The library that holds it, named in the error of a program that lacks it: "libacme.so".
  std::string library = {};
  /// Gives attributes their names, kinds and defaults.
  CustomAttrs attrs = {};
  int num_inputs = 1;
  int max_inputs = 0;  ///< more than num_inputs: the op takes any number between
  int num_results = 1; ///< 0 only together with has_effects
  /// Bytes of scratch memory per thread: Size(Types operands, Types results[, attributes]). None: none.
  detail::CustomFn<Size, Types, Types> scratch = {};
  /// Units of work that may run in parallel: Size(Types operands, Types results[, attributes]). None: one unit.
  detail::CustomFn<Size, Types, Types> range = {};
  int64_t grain = 1; ///< the fewest units worth a task of their own
  /// Floating-point operations of a call: Size(Types operands, Types results[, attributes]). Plans and predictions take
  /// the cost of a call from them and from the bytes of operands and results. None: from those bytes alone.
  detail::CustomFn<Size, Types, Types> flops = {};
  /// The op has side effects: its calls are never removed, merged or reordered.
  bool has_effects = false;
  /// The operands' gradients, one per operand: (operands, results, gradients of the results). Written in ordinary
  /// calls, which become part of the program where one is traced. An empty Tensor is zero. A gradient has its operand's
  /// shape.
  std::function<std::vector<Tensor>(std::span<const Tensor>, std::span<const Tensor>, std::span<const Tensor>)>
      gradient = {};
};

/// A registered op. Lives as long as the process.
class CustomOp {
public:
  /// Calls the op. Throws ShapeError, and Error when it has not exactly one result or is given an attribute that it
  /// does not have. A kernel's failure is a RuntimeError, thrown by the call that waits for the result.
  Tensor operator()(Arg a, const CustomAttrs &attrs = {}) const;
  Tensor operator()(Arg a, Arg b, const CustomAttrs &attrs = {}) const;
  Tensor operator()(Arg a, Arg b, Arg c, const CustomAttrs &attrs = {}) const;
  /// Any number of operands and results.
  std::vector<Tensor> call(std::vector<Arg> operands, const CustomAttrs &attrs = {},
                           std::source_location where = std::source_location::current()) const;

  const CustomOpSpec &spec() const { return spec_; }
  const std::string &name() const { return spec_.name; }

  /// For the library.
  CustomOp(CustomOpSpec spec);
  CustomOp(const CustomOp &) = delete;
  CustomOp &operator=(const CustomOp &) = delete;

private:
  Tensor one(std::span<const Arg> operands, const CustomAttrs &attrs) const;

  CustomOpSpec spec_;
  const op::OpInfo *info_ = nullptr;
};

namespace detail {
/// Null where no such op was registered here.
const CustomOpSpec *customSpec(std::string_view name);
} // namespace detail

/// Makes an op known to this process. Throws Error when the name is taken, or the description is incomplete.
const CustomOp &register_op(CustomOpSpec spec);

} // namespace tressel
