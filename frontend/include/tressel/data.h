// Datasets.
#pragma once

#include <tressel/loader.h>
#include <tressel/tensor.h>

#include <source_location>
#include <string>

namespace tressel::data {

struct LabelledImages {
  Tensor images; ///< f32[n, 1, height, width], 0 (black) to 1
  Tensor labels; ///< i64[n]
};

/// One of them.
struct Sample {
  Tensor image, label;
};
/// Sample i is image i with its label.
Dataset<Sample> samples(LabelledImages images, std::source_location where = std::source_location::current());
template <typename Fn> auto map(LabelledImages images, Fn fn, std::source_location where = std::source_location::current()) {
  return map(samples(std::move(images), where), std::move(fn));
}

/// Fashion-MNIST: 60,000 images of clothes of 10 kinds to train with, or the 10,000 to test with, 28 x 28 pixels. `dir`
/// holds the four files as they are published, packed (.gz) or not; Debian's package dataset-fashion-mnist puts them into
/// /usr/share/datasets/fashion-mnist. Throws InputError for files that are missing, damaged or of another kind.
LabelledImages fashion_mnist(const std::string &dir, bool train,
                             std::source_location where = std::source_location::current());

} // namespace tressel::data
