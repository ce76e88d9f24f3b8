// Resampling along one dimension: the input elements and weights of each element of the result.
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
  /// elements outside the input do not count; otherwise they repeat the nearest element inside
  bool excludeOutside = false;
  /// For "tf_crop_and_resize": the range of the dimension that is sampled, from 0 to 1.
  double roiStart = 0, roiEnd = 1;

  bool isValid() const;
};

/// Element i of the result is the sum over t of x[index[i * taps + t]] * weight[i * taps + t].
struct Taps {
  int taps = 1;
  Ints index;                 ///< in [0, input)
  std::vector<double> weight; ///< sum up to 1 for each element
  /// per element of the result: its position is outside the input (tf_crop_and_resize only)
  std::vector<bool> outside;
};

/// Taps from `input` (at least 1) to `output` elements; `scale` is about output / input.
Taps resampleTaps(const Resample &how, int64_t input, int64_t output, double scale);

namespace expr {
/// x with its dimension `dim` resampled.
Expr resample(const Expr &x, int dim, const Taps &taps);
/// Resamples to `output` elements, which like x's are at least 1: by a table of taps, or for symbolic sizes by taps
/// that the program computes. Not for "tf_crop_and_resize".
Expr resample(const Expr &x, int dim, const Resample &how, Size output);
/// Divides dimension `dim` of x evenly into `count` windows, and takes the mean or the maximum of each.
Expr adaptivePool(const Expr &x, int dim, Size count, bool isMean);
} // namespace expr

} // namespace tressel::op
