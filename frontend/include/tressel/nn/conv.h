// Convolutions and pooling over one to three spatial dimensions, channels first: x is [batch, channels, spatial...].
#pragma once

#include <tressel/nn/basic.h>

#include <array>
#include <concepts>

namespace tressel::nn {

/// One number for all N dimensions, or one for each: 3, or {3, 5}.
template <int N> struct PerAxis {
  template <std::integral T> PerAxis(T all) { values.fill(static_cast<int64_t>(all)); }
  template <std::integral... T>
  requires(N > 1 && sizeof...(T) == N) PerAxis(T... each) : values{static_cast<int64_t>(each)...} {}
  std::vector<int64_t> vector() const { return {values.begin(), values.end()}; }
  std::array<int64_t, N> values;
};

/// Zeros on both sides of every dimension; or "same", as many as keep the sizes (with stride 1; an odd one goes to the
/// end); or "valid", none.
template <int N> struct Padding : PerAxis<N> {
  using PerAxis<N>::PerAxis;
  Padding(const char *name);
  bool same = false;
};

template <int N> struct ConvOptions {
  PerAxis<N> stride = 1;
  Padding<N> padding = 0;
  PerAxis<N> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Activation activation = nullptr;
  Initializer weight_init = init::he_uniform();
  Initializer bias_init = init::zeros();
};

/// Parameters: weight [channels, in / groups, kernel...], bias [channels].
template <int N> class Conv : public Module<Conv<N>> {
public:
  static constexpr bool kLibrary = true;
  static std::string type_name() { return "Conv" + std::to_string(N) + "d"; }
  Conv(int64_t channels, PerAxis<N> kernel, ConvOptions<N> options = {});
  Tensor forward(Tensor x) const;

private:
  int64_t channels_;
  PerAxis<N> kernel_;
  ConvOptions<N> options_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <int N> struct ConvTransposeOptions {
  PerAxis<N> stride = 1;
  PerAxis<N> padding = 0;        ///< what is cut off on both sides of the result
  PerAxis<N> output_padding = 0; ///< what is added at the end of the result, less than the stride
  PerAxis<N> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Activation activation = nullptr;
  Initializer weight_init = init::he_uniform();
  Initializer bias_init = init::zeros();
};

/// The transpose of a convolution: a size n becomes (n - 1) * stride + (kernel - 1) * dilation + 1 - 2 * padding +
/// output_padding. Parameters: weight [in, channels / groups, kernel...], bias [channels].
template <int N> class ConvTranspose : public Module<ConvTranspose<N>> {
public:
  static constexpr bool kLibrary = true;
  static std::string type_name() { return "ConvTranspose" + std::to_string(N) + "d"; }
  ConvTranspose(int64_t channels, PerAxis<N> kernel, ConvTransposeOptions<N> options = {});
  Tensor forward(Tensor x) const;

private:
  int64_t channels_;
  PerAxis<N> kernel_;
  ConvTransposeOptions<N> options_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

struct PoolOptions {
  bool count_padding = true; ///< averages divide by the window's size at the border too
};

/// The largest element of each window; without a stride, windows do not overlap.
template <int N> class MaxPool : public Module<MaxPool<N>> {
public:
  static constexpr bool kLibrary = true;
  static std::string type_name() { return "MaxPool" + std::to_string(N) + "d"; }
  explicit MaxPool(PerAxis<N> window, PerAxis<N> stride = 0, PerAxis<N> padding = 0, PerAxis<N> dilation = 1)
      : window_(window), stride_(stride), padding_(padding), dilation_(dilation) {}
  Tensor forward(Tensor x) const;

private:
  PerAxis<N> window_, stride_, padding_, dilation_;
};
/// The mean of each window.
template <int N> class AvgPool : public Module<AvgPool<N>> {
public:
  static constexpr bool kLibrary = true;
  static std::string type_name() { return "AvgPool" + std::to_string(N) + "d"; }
  explicit AvgPool(PerAxis<N> window, PerAxis<N> stride = 0, PerAxis<N> padding = 0, PoolOptions options = {})
      : window_(window), stride_(stride), padding_(padding), options_(options) {}
  Tensor forward(Tensor x) const;

private:
  PerAxis<N> window_, stride_, padding_;
  PoolOptions options_;
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;

/// Means over as many windows as the result has elements: from [batch, channels, sizes...] to [batch, channels,
/// out...], whatever the sizes. Window i of a dimension of n elements goes from floor(i n / out) to ceil((i + 1) n /
/// out).
template <int N> class AdaptiveAvgPool : public Module<AdaptiveAvgPool<N>> {
public:
  static constexpr bool kLibrary = true;
  static std::string type_name() { return "AdaptiveAvgPool" + std::to_string(N) + "d"; }
  explicit AdaptiveAvgPool(PerAxis<N> out) : out_(out) {}
  Tensor forward(Tensor x) const;

private:
  PerAxis<N> out_;
};
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

/// The mean, or the largest element, over all spatial dimensions: [batch, channels, ...] to [batch, channels].
class GlobalAvgPool : public Module<GlobalAvgPool> {
public:
  static constexpr bool kLibrary = true;
  Tensor forward(Tensor x) const;
};
class GlobalMaxPool : public Module<GlobalMaxPool> {
public:
  static constexpr bool kLibrary = true;
  Tensor forward(Tensor x) const;
};

} // namespace tressel::nn
