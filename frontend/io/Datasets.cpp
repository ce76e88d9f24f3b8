#include "frontend/io/AtLine.h"
#include "frontend/tensor/Make.h"
#include "frontend/io/Idx.h"

#include <tressel/data.h>

#include <filesystem>

namespace tressel::data {
namespace {

constexpr int64_t kPixels = 28;
constexpr int64_t kKinds = 10;
constexpr int64_t kMaxImages = 1'000'000;

/// The packed file, or the plain one.
std::string find(const std::string &dir, const std::string &name) {
  const std::filesystem::path plain = std::filesystem::path(dir) / name, packed = plain.string() + ".gz";
  std::error_code ignored;
  if (std::filesystem::exists(packed, ignored))
    return packed.string();
  if (std::filesystem::exists(plain, ignored))
    return plain.string();
  throw InputError({packed.string() + ": no such file",
                    {},
                    {},
                    "Debian's package dataset-fashion-mnist puts it into /usr/share/datasets/fashion-mnist"});
}

} // namespace

Dataset<Sample> samples(LabelledImages images, std::source_location where) { return rows(Sample{std::move(images.images), std::move(images.labels)}, where); }

LabelledImages fashion_mnist(const std::string &dir, bool train, std::source_location where) {
  return io::atLine(where, "data::fashion_mnist", [&] {
    const std::string set = train ? "train" : "t10k";
    const std::string imagesPath = find(dir, set + "-images-idx3-ubyte");
    const std::string labelsPath = find(dir, set + "-labels-idx1-ubyte");
    const io::IdxArray images = io::readIdx(imagesPath, 3, kMaxImages * kPixels * kPixels);
    const io::IdxArray labels = io::readIdx(labelsPath, 1, kMaxImages);
    const int64_t n = images.sizes[0];
    if (images.sizes[1] != kPixels || images.sizes[2] != kPixels)
      throw InputError(imagesPath + ": images of " + std::to_string(images.sizes[1]) + " x " +
                       std::to_string(images.sizes[2]) + " pixels instead of 28 x 28");
    if (labels.sizes[0] != n)
      throw InputError(labelsPath + ": " + std::to_string(labels.sizes[0]) + " labels for the " + std::to_string(n) +
                       " images of " + imagesPath);
    const SourceLoc line = tressel::detail::toLoc(where);
    LabelledImages out{tressel::detail::allocateTensor({f32, {n, 1, kPixels, kPixels}}, line),
                       tressel::detail::allocateTensor({i64, {n}}, line)};
    auto *pixels = static_cast<float *>(out.images.impl()->storage->data());
    for (size_t i = 0; i < images.elements.size(); ++i)
      pixels[i] = static_cast<float>(images.elements[i]) / 255.0f;
    auto *kinds = static_cast<int64_t *>(out.labels.impl()->storage->data());
    for (size_t i = 0; i < labels.elements.size(); ++i) {
      if (labels.elements[i] >= kKinds)
        throw InputError(labelsPath + ": label " + std::to_string(labels.elements[i]) + " at " + std::to_string(i) +
                         ", but there are 10 kinds");
      kinds[i] = labels.elements[i];
    }
    return out;
  });
}

} // namespace tressel::data
