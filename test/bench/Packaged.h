// A function as a package, called as a deployed program calls it: in the caller's thread, the caller's memory in and
// out, no futures in between.
#pragma once

#include "Bench.h"
#include "Models.h"

#include <tressel/runtime/Package.h>
#include <tressel/tressel.h>

#include <memory>
#include <optional>

namespace tressel::bench {

using Bytes = std::unique_ptr<char, void (*)(void *)>;
/// 64-byte aligned memory for so many bytes, written once, so that its pages are there.
Bytes touchedBytes(int64_t bytes);
/// Fills a tensor with valueAt's numbers for `seed`: in 16 bits their multiples of 1/64, integers over [-128, 127].
void fillValues(void *data, const TensorType &type, uint32_t seed);
/// The elements of a tensor as f32.
Outputs asFloats(const void *data, const TensorType &type);

class Packaged {
public:
  /// `exportTo` writes the package to a path. Inputs hold fillValues for the seeds of "a", "b", ...
  Packaged(const std::function<void(const std::string &path)> &exportTo, std::vector<TensorType> inputs,
           TensorType output);
  template <typename F>
  static Packaged function(F function, const std::vector<TensorType> &inputs, const TensorType &output) {
    ExportOptions options;
    for (size_t i = 0; i < inputs.size(); ++i)
      options.inputs.push_back({inputs[i].dtype, inputs[i].shape, nameOf(i)});
    const auto call = jit(std::move(function));
    return Packaged([&](const std::string &path) { call.export_package(path, options); }, inputs, output);
  }
  /// A network with the numbers of fillParameters.
  template <typename Net>
  static Packaged network(Net net, const Shape &input, const Shape &output, DType type = f32, bool winograd = false) {
    net.initialize({{f32, input}}, /*seed=*/1);
    fillParameters(net);
    net.to(type);
    const auto call = jit([net](Tensor x) { return net(x); }, {.winograd = winograd});
    return Packaged(
        [&](const std::string &path) {
          call.export_package(path, {.inputs = {{type, input, nameOf(0)}}});
        },
        {{type, input}}, {type, output});
  }
  static std::string nameOf(size_t input) { return std::string(1, static_cast<char>('a' + input)); }

  void run() { context_->run(pointers_, {&output_, 1}); }
  Outputs outputs() {
    run();
    return asFloats(output_, outputType_);
  }
  int64_t bytesMoved() const { return moved_; } ///< read and written by one call
  /// memcpy from the inputs' memory to the output's may take half of bytesMoved() of each: both are that large at
  /// least.
  char *inputBlock() const { return inputs_.get(); }
  char *outputBlock() const { return static_cast<char *>(output_); }

private:
  TensorType outputType_;
  int64_t moved_ = 0;
  Bytes inputs_, outputs_;
  std::vector<const void *> pointers_;
  void *output_ = nullptr;
  std::optional<runtime::Context> context_;
};

/// The arm of one package per case, made by `make` when the case is first asked for; one sample is one of calls that
/// take `seconds` together.
Arm packages(std::function<Packaged(size_t)> make, double seconds);

} // namespace tressel::bench
