// Images: files, folders of them, and their augmentation.
//
//   auto set = data::map(data::image_folder("flowers/train"), [](data::Sample s, data::Rng &r) {
//     Tensor image = data::random_resized_crop(s.image, 224, 224, r);
//     image = data::jitter(data::random_flip(image, r), r, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue
//     = 0.1}); return data::Sample{data::normalize(image, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}),
//     s.label};
//   });
//
// An image is u8[channels, height, width], 0 (black) to 255, or f32 of the same shape, 0 to 1; it has one channel or
// three: red, green, blue. What moves pixels keeps the type; what computes with them gives f32. All functions run on
// the host, in the thread that calls them, so that the workers of a loader run them side by side; none can be traced.
// They throw ShapeError for a tensor that is no image, and Error for numbers that mean nothing.
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
  std::vector<std::string> kinds =
      {}; ///< the folders that count, in the order of their labels; none: those of image_kinds
};
/// A folder for each kind, in which images (.png, .jpg, .jpeg) lie, also deeper. The images are u8, read when a sample
/// is; the labels are i64[]. In the order of kinds, then of paths. Throws InputError for a kind without images.
Dataset<Sample> image_folder(const std::string &dir, ImageFolderOptions options = {},
                             std::source_location where = std::source_location::current());

//--- What moves pixels ------------------------------------------------------------------------------------------------
/// Left becomes right, with that probability.
Tensor random_flip(const Tensor &image, Rng &random, double probability = 0.5,
                   std::source_location where = std::source_location::current());
/// The middle of it. Throws ShapeError for an image that is smaller.
Tensor center_crop(const Tensor &image, int64_t height, int64_t width,
                   std::source_location where = std::source_location::current());
/// A part of it anywhere, after `padding` black pixels were put around it.
Tensor random_crop(const Tensor &image, int64_t height, int64_t width, Rng &random, int64_t padding = 0,
                   std::source_location where = std::source_location::current());

//--- What computes with them ------------------------------------------------------------------------------------------
/// f32, 0 to 1.
Tensor to_float(const Tensor &image, std::source_location where = std::source_location::current());
/// Bilinear; where it becomes smaller, over all pixels that fall into one, as Pillow does.
Tensor resize(const Tensor &image, int64_t height, int64_t width,
              std::source_location where = std::source_location::current());

struct CropOptions {
  double min_area = 0.08, max_area = 1;              ///< share of the image's
  double min_aspect = 3.0 / 4, max_aspect = 4.0 / 3; ///< width over height; its logarithm is uniform
};
/// A part of it of random area and aspect, resized (Szegedy et al., "Going deeper with convolutions", 2015). Where ten
/// draws do not fit into the image, it is the largest part in its middle whose aspect is within the bounds.
Tensor random_resized_crop(const Tensor &image, int64_t height, int64_t width, Rng &random, CropOptions options = {},
                           std::source_location where = std::source_location::current());

/// Times a factor, clamped: 0 is black, 1 leaves it.
Tensor adjust_brightness(const Tensor &image, double factor,
                         std::source_location where = std::source_location::current());
/// Between the mean of its grey (0) and itself (1), or beyond, clamped.
Tensor adjust_contrast(const Tensor &image, double factor,
                       std::source_location where = std::source_location::current());
/// Between its grey (0) and itself (1), or beyond, clamped.
Tensor adjust_saturation(const Tensor &image, double factor,
                         std::source_location where = std::source_location::current());
/// Turns the hue by a part of the circle, -0.5 to 0.5.
Tensor adjust_hue(const Tensor &image, double turn, std::source_location where = std::source_location::current());

struct JitterOptions {
  double brightness = 0, contrast = 0, saturation = 0; ///< a factor from max(0, 1 - x) to 1 + x
  double hue = 0;                                      ///< a turn from -x to x; at most 0.5
};
/// The four of them by random amounts, in random order.
Tensor jitter(const Tensor &image, Rng &random, JitterOptions options,
              std::source_location where = std::source_location::current());

/// (x - mean) / deviation, of each channel.
Tensor normalize(const Tensor &image, const std::vector<float> &mean, const std::vector<float> &deviation,
                 std::source_location where = std::source_location::current());

} // namespace tressel::data
