// Resampling along one dimension: which elements make up each element of the result, and with which weights.
#pragma once

#include "ir/op/Expr.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::op {

struct Resample {
  std::string mode = "nearest"; ///< nearest, linear, cubic
  std::string coordinates =
      "half_pixel"; ///< half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric
  std::string nearest = "round_prefer_floor"; ///< round_prefer_floor, round_prefer_ceil, floor, ceil
  double cubicA = -0.75;
  bool antialias = false;      ///< the filter widens when the result is smaller
  bool excludeOutside = false; ///< what lies outside counts not at all, instead of as the nearest element inside
  /// Coordinates "tf_crop_and_resize": the part of the dimension, from 0 to 1, that is shown.
  double roiStart = 0, roiEnd = 1;

  bool isValid() const;
};

/// Element i of the result is the sum over t of x[index[i * taps + t]] * weight[i * taps + t].
struct Taps {
  int taps = 1;
  Ints index;                 ///< in [0, input)
  std::vector<double> weight; ///< of the sum 1
  std::vector<bool> outside;  ///< per element of the result: its place lies outside the input (tf_crop_and_resize only)
};

/// From `input` (at least 1) to `output` elements; `scale` is about output / input.
Taps resampleTaps(const Resample &how, int64_t input, int64_t output, double scale);

namespace expr {
/// x with its dimension `dim` resampled.
Expr resample(const Expr &x, int dim, const Taps &taps);
/// To `output` elements, at least 1 as in x: by a table of taps, or for symbolic sizes by taps that the program
/// computes. Not for "tf_crop_and_resize".
Expr resample(const Expr &x, int dim, const Resample &how, Size output);
/// x with its dimension `dim` divided evenly into `count` windows, and the mean or the largest element of each.
Expr adaptivePool(const Expr &x, int dim, Size count, bool isMean);
} // namespace expr

} // namespace tressel::op
