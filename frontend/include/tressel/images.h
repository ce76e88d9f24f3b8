// Images: files, folders of them, and their augmentation.
//
//   auto set = data::map(data::image_folder("flowers/train"), [](data::Sample s, data::Rng &r) {
//     Tensor image = data::random_resized_crop(s.image, 224, 224, r);
//     image = data::jitter(data::random_flip(image, r), r,
//                          {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1});
//     return data::Sample{data::normalize(image, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}), s.label};
//   });
//
// An image is u8[channels, height, width], 0 (black) to 255, or f32 of the same shape, 0 to 1; it has one channel or
// three: red, green, blue. Functions that move pixels keep the type; those that compute with pixels give f32. All run
// on the host, in the calling thread, so that the workers of a loader run them in parallel; none can be traced. They
// throw ShapeError for a tensor that is no image, and Error for invalid numbers.
#pragma once

#include <tressel/data.h>

namespace tressel::data {

//--- Files ------------------------------------------------------------------------------------------------------------
struct ImageOptions {
  int64_t channels = 3; ///< 1: colours become grey (ITU-R BT.601); 3: grey becomes three equal ones
};
/// A PNG or JPEG file, whichever it is, as u8. Transparency is dropped, 16 bits become 8, the orientation that a camera
/// notes is not applied. Throws InputError for a file that is missing, damaged, truncated or of another kind.
Tensor read_image(const std::string &path, ImageOptions options = {},
                  std::source_location where = std::source_location::current());
/// Writes an image, f32 rounded to 8 bits: as PNG where the name ends in .png, as JPEG of quality 95 in .jpg or .jpeg.
void write_image(const std::string &path, const Tensor &image,
                 std::source_location where = std::source_location::current());

/// The folders in `dir`, sorted: the kinds of images that image_folder tells apart.
std::vector<std::string> image_kinds(const std::string &dir,
                                     std::source_location where = std::source_location::current());
struct ImageFolderOptions {
  int64_t channels = 3;
  std::vector<std::string> kinds = {}; ///< the folders to use, in the order of their labels; none: those of image_kinds
};
/// One folder per kind, with images (.png, .jpg, .jpeg) in it and in folders below. Images are u8, read when their
/// sample is; labels are i64[]. In the order of kinds, then of paths. Throws InputError for a kind without images.
Dataset<Sample> image_folder(const std::string &dir, ImageFolderOptions options = {},
                             std::source_location where = std::source_location::current());

//--- What moves pixels ------------------------------------------------------------------------------------------------
/// Flips left and right with that probability.
Tensor random_flip(const Tensor &image, Rng &random, double probability = 0.5,
                   std::source_location where = std::source_location::current());
/// The centre of the image. Throws ShapeError for an image that is smaller.
Tensor center_crop(const Tensor &image, int64_t height, int64_t width,
                   std::source_location where = std::source_location::current());
/// A random part of the image, after a border of `padding` black pixels is added.
Tensor random_crop(const Tensor &image, int64_t height, int64_t width, Rng &random, int64_t padding = 0,
                   std::source_location where = std::source_location::current());

//--- What computes with them ------------------------------------------------------------------------------------------
/// f32, 0 to 1.
Tensor to_float(const Tensor &image, std::source_location where = std::source_location::current());
/// Bilinear, with a wider filter where the image gets smaller, as Pillow does.
Tensor resize(const Tensor &image, int64_t height, int64_t width,
              std::source_location where = std::source_location::current());

struct CropOptions {
  double min_area = 0.08, max_area = 1;              ///< share of the image's
  double min_aspect = 3.0 / 4, max_aspect = 4.0 / 3; ///< width over height; its logarithm is uniform
};
/// A random part of the image, by area and aspect, resized (Szegedy et al., "Going deeper with convolutions", 2015). If
/// ten draws do not fit into the image, the largest centred part whose aspect is within the bounds.
Tensor random_resized_crop(const Tensor &image, int64_t height, int64_t width, Rng &random, CropOptions options = {},
                           std::source_location where = std::source_location::current());

/// Times a factor, clamped: 0 is black, 1 leaves it.
Tensor adjust_brightness(const Tensor &image, double factor,
                         std::source_location where = std::source_location::current());
/// Interpolates between the mean of its grey (factor 0) and itself (1), or extrapolates; clamped.
Tensor adjust_contrast(const Tensor &image, double factor,
                       std::source_location where = std::source_location::current());
/// Interpolates between its grey (factor 0) and itself (1), or extrapolates; clamped.
Tensor adjust_saturation(const Tensor &image, double factor,
                         std::source_location where = std::source_location::current());
/// Turns the hue by a part of the circle, -0.5 to 0.5.
Tensor adjust_hue(const Tensor &image, double turn, std::source_location where = std::source_location::current());

struct JitterOptions {
  double brightness = 0, contrast = 0, saturation = 0; ///< a factor from max(0, 1 - x) to 1 + x
  double hue = 0;                                      ///< a turn from -x to x; at most 0.5
};
/// All four by random amounts, in random order.
Tensor jitter(const Tensor &image, Rng &random, JitterOptions options,
              std::source_location where = std::source_location::current());

/// (x - mean) / deviation, of each channel.
Tensor normalize(const Tensor &image, const std::vector<float> &mean, const std::vector<float> &deviation,
                 std::source_location where = std::source_location::current());

} // namespace tressel::data
