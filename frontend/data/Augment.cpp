// Augmentation of images on planes of floats. Each function uses one thread: the loader's workers run samples in
// parallel.
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"

#include <tressel/images.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace tressel::data {
namespace {

using tressel::detail::allocateTensor;
using tressel::detail::fail;
using tressel::detail::toLoc;

/// The name and line of a call, for its errors.
struct Call {
  const char *op;
  const std::source_location &where;

  [[noreturn]] void refuse(const std::string &message, std::string hint = {}) const {
    fail<Error>(message, toLoc(where), op, std::move(hint));
  }
  Tensor make(DType dtype, int64_t channels, int64_t height, int64_t width) const {
    return allocateTensor({dtype, {channels, height, width}}, toLoc(where), op);
  }
};

/// An image argument, checked, on the host.
struct Image {
  Image(const Tensor &image, const Call &call) : tensor(image) {
    if (tressel::detail::tracing())
      fail<TraceError>("images are augmented outside of traces", toLoc(call.where), call.op,
                       "do it in the dataset, and pass the batch in");
    if (!image.defined() || image.rank() != 3 || (image.dtype() != u8 && image.dtype() != f32) ||
        (image.type().shape.extent(0) != 1 && image.type().shape.extent(0) != 3) ||
        image.type().shape.numElements() == 0)
      fail<ShapeError>("a tensor " + (image.defined() ? image.type().str() : "without elements") + " is no image",
                       toLoc(call.where), call.op, "images are u8 or f32[1 or 3, height, width]");
    channels = image.type().shape.extent(0), height = image.type().shape.extent(1),
    width = image.type().shape.extent(2);
    data = image.data();
  }
  int64_t plane() const { return height * width; }
  int64_t pixelBytes() const { return tensor.dtype() == u8 ? 1 : 4; }

  Tensor tensor;
  int64_t channels, height, width;
  const void *data;
};

float *floatsOf(Tensor &tensor) { return static_cast<float *>(tensor.impl()->storage->data()); }

/// A copy in f32.
Tensor floats(const Image &image, const Call &call) {
  Tensor out = call.make(f32, image.channels, image.height, image.width);
  const int64_t count = image.channels * image.plane();
  float *to = floatsOf(out);
  if (image.tensor.dtype() == f32) {
    std::memcpy(to, image.data, static_cast<size_t>(count) * sizeof(float));
  } else {
    const auto *from = static_cast<const uint8_t *>(image.data);
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(from[i]) * (1.0f / 255);
  }
  return out;
}

void checkSize(int64_t height, int64_t width, const Call &call) {
  if (height < 1 || width < 1)
    call.refuse("an image of " + std::to_string(height) + " x " + std::to_string(width) + " pixels was asked for");
}

/// The part from (top, left) on, black where the image has no pixels.
Tensor part(const Image &image, int64_t top, int64_t left, int64_t height, int64_t width, const Call &call) {
  Tensor out = call.make(image.tensor.dtype(), image.channels, height, width);
  auto *to = static_cast<std::byte *>(out.impl()->storage->data());
  const auto *from = static_cast<const std::byte *>(image.data);
  const int64_t bytes = image.pixelBytes();
  const int64_t begin = std::clamp<int64_t>(-left, 0, width),
                end = std::clamp<int64_t>(image.width - left, begin, width); // columns that there are
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t y = 0; y < height; ++y, to += width * bytes) {
      const int64_t row = top + y;
      const bool isThere = row >= 0 && row < image.height && begin < end;
      std::memset(to, 0, static_cast<size_t>(isThere ? begin * bytes : width * bytes));
      if (!isThere)
        continue;
      std::memcpy(to + begin * bytes, from + ((c * image.height + row) * image.width + left + begin) * bytes,
                  static_cast<size_t>((end - begin) * bytes));
      std::memset(to + end * bytes, 0, static_cast<size_t>((width - end) * bytes));
    }
  return out;
}

//--- Resizing ---------------------------------------------------------------------------------------------------------
/// Resampling weights along one axis: each new pixel is a weighted mean of neighbouring old ones.
struct Taps {
  std::vector<int64_t> first, count;
  std::vector<float> weights; ///< `most` of each
  int64_t most = 0;
};
/// A triangle filter, two old pixels wide, or two new ones where these are larger, so that every old pixel counts.
Taps tapsOf(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), support = std::max(scale, 1.0);
  Taps taps;
  taps.most = static_cast<int64_t>(std::ceil(2 * support)) + 1;
  taps.weights.resize(static_cast<size_t>(to * taps.most), 0);
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t end = std::min<int64_t>(from, static_cast<int64_t>(center + support + 0.5));
    double sum = 0;
    std::vector<double> weights;
    for (int64_t k = first; k < end; ++k) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(k) + 0.5 - center) / support)));
      sum += weights.back();
    }
    for (size_t k = 0; k < weights.size(); ++k)
      taps.weights[static_cast<size_t>(i * taps.most) + k] = static_cast<float>(weights[k] / sum);
    taps.first.push_back(first);
    taps.count.push_back(end - first);
  }
  return taps;
}

/// Adds a row times a weight.
template <typename T> void addRow(float *to, const T *from, int64_t count, float weight) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += weight * static_cast<float>(from[i]);
}

/// A part of the image, resized. Vertically first, where whole rows are added up.
Tensor resized(const Image &image, int64_t top, int64_t left, int64_t height, int64_t width, int64_t newHeight,
               int64_t newWidth, const Call &call) {
  Tensor out = call.make(f32, image.channels, newHeight, newWidth);
  const Taps rows = tapsOf(height, newHeight), columns = tapsOf(width, newWidth);
  const bool isBytes = image.tensor.dtype() == u8;
  std::vector<float> row(static_cast<size_t>(width));
  float *to = floatsOf(out);
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t y = 0; y < newHeight; ++y, to += newWidth) {
      std::ranges::fill(row, 0.0f);
      for (int64_t k = 0; k < rows.count[static_cast<size_t>(y)]; ++k) {
        const float weight = rows.weights[static_cast<size_t>(y * rows.most + k)];
        const int64_t at = (c * image.height + top + rows.first[static_cast<size_t>(y)] + k) * image.width + left;
        if (isBytes)
          addRow(row.data(), static_cast<const uint8_t *>(image.data) + at, width, weight * (1.0f / 255));
        else
          addRow(row.data(), static_cast<const float *>(image.data) + at, width, weight);
      }
      for (int64_t x = 0; x < newWidth; ++x) {
        const float *weights = columns.weights.data() + x * columns.most,
                    *from = row.data() + columns.first[static_cast<size_t>(x)];
        float sum = 0;
        for (int64_t k = 0, n = columns.count[static_cast<size_t>(x)]; k < n; ++k)
          sum += weights[k] * from[k];
        to[x] = sum;
      }
    }
  return out;
}

//--- Colours ----------------------------------------------------------------------------------------------------------
/// ITU-R BT.601, of three planes.
float greyOf(const float *planes, int64_t count, int64_t i) {
  return 0.299f * planes[i] + 0.587f * planes[count + i] + 0.114f * planes[2 * count + i];
}
float clamped(float x) { return std::clamp(x, 0.0f, 1.0f); }

void checkFactor(double factor, const Call &call) {
  if (!(factor >= 0) || !std::isfinite(factor))
    call.refuse("a factor of " + std::to_string(factor) + " was given", "factors are 0 or more; 1 changes nothing");
}

/// Planes of floats that are changed in place.
struct Planes {
  float *data;
  int64_t channels, count;

  void brightness(double factor) {
    const auto f = static_cast<float>(factor);
    for (int64_t i = 0; i < channels * count; ++i)
      data[i] = clamped(f * data[i]);
  }
  void contrast(double factor) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += channels == 3 ? greyOf(data, count, i) : data[i];
    const auto f = static_cast<float>(factor),
               mean = static_cast<float>((1 - factor) * sum / static_cast<double>(count));
    for (int64_t i = 0; i < channels * count; ++i)
      data[i] = clamped(f * data[i] + mean);
  }
  void saturation(double factor) {
    if (channels != 3)
      return; // a grey image is its own grey
    const auto f = static_cast<float>(factor);
    for (int64_t i = 0; i < count; ++i) {
      const float grey = (1 - f) * greyOf(data, count, i);
      for (int64_t c = 0; c < 3; ++c)
        data[c * count + i] = clamped(f * data[c * count + i] + grey);
    }
  }
  void hue(double turn) {
    if (channels != 3)
      return;
    for (int64_t i = 0; i < count; ++i)
      turnHue(data[i], data[count + i], data[2 * count + i], static_cast<float>(turn));
  }

private:
  /// By way of the hexagon of hue, saturation and value (Smith, "Color gamut transform pairs", 1978).
  static void turnHue(float &r, float &g, float &b, float turn) {
    const float most = std::max({r, g, b}), spread = most - std::min({r, g, b});
    if (spread <= 0)
      return;
    float hue; // in sixths of the circle
    if (most == r)
      hue = (g - b) / spread;
    else if (most == g)
      hue = 2 + (b - r) / spread;
    else
      hue = 4 + (r - g) / spread;
    hue += 6 * turn;
    hue -= 6 * std::floor(hue / 6);
    // A channel lies below the value by how far the hue is from the channel's own.
    auto channel = [&](float own) {
      const float k = own + hue - 6 * std::floor((own + hue) / 6);
      return most - spread * std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
    };
    r = channel(5), g = channel(3), b = channel(1);
  }
};

template <typename Fn> Tensor changed(const Tensor &image, const Call &call, Fn change) {
  const Image given(image, call);
  Tensor out = floats(given, call);
  Planes planes{floatsOf(out), given.channels, given.plane()};
  change(planes);
  return out;
}

} // namespace

//--- What moves pixels ------------------------------------------------------------------------------------------------
Tensor random_flip(const Tensor &image, Rng &random, double probability, std::source_location where) {
  const Call call{"data::random_flip", where};
  const Image given(image, call);
  if (!(probability >= 0 && probability <= 1))
    call.refuse("a probability of " + std::to_string(probability) + " was given");
  if (!random.flip(probability))
    return image;
  Tensor out = call.make(image.dtype(), given.channels, given.height, given.width);
  auto flip = [&]<typename T>(const T *from, T *to) {
    for (int64_t row = 0; row < given.channels * given.height; ++row)
      std::reverse_copy(from + row * given.width, from + (row + 1) * given.width, to + row * given.width);
  };
  void *to = out.impl()->storage->data();
  if (image.dtype() == u8)
    flip(static_cast<const uint8_t *>(given.data), static_cast<uint8_t *>(to));
  else
    flip(static_cast<const float *>(given.data), static_cast<float *>(to));
  return out;
}

Tensor center_crop(const Tensor &image, int64_t height, int64_t width, std::source_location where) {
  const Call call{"data::center_crop", where};
  const Image given(image, call);
  checkSize(height, width, call);
  if (height > given.height || width > given.width)
    fail<ShapeError>("an image " + image.type().str() + " has no part of " + std::to_string(height) + " x " +
                         std::to_string(width) + " pixels",
                     toLoc(where), call.op, "resize it before");
  return part(given, (given.height - height) / 2, (given.width - width) / 2, height, width, call);
}

Tensor random_crop(const Tensor &image, int64_t height, int64_t width, Rng &random, int64_t padding,
                   std::source_location where) {
  const Call call{"data::random_crop", where};
  const Image given(image, call);
  checkSize(height, width, call);
  if (padding < 0 || padding > int64_t(1) << 20)
    call.refuse("a padding of " + std::to_string(padding) + " pixels was given");
  const int64_t down = given.height + 2 * padding - height, right = given.width + 2 * padding - width;
  if (down < 0 || right < 0)
    fail<ShapeError>("an image " + image.type().str() + " with a padding of " + std::to_string(padding) +
                         " has no part of " + std::to_string(height) + " x " + std::to_string(width) + " pixels",
                     toLoc(where), call.op);
  const int64_t top = random.below(down + 1) - padding, left = random.below(right + 1) - padding;
  return part(given, top, left, height, width, call);
}

//--- What computes with them ------------------------------------------------------------------------------------------
Tensor to_float(const Tensor &image, std::source_location where) {
  const Call call{"data::to_float", where};
  const Image given(image, call);
  return image.dtype() == f32 ? image : floats(given, call);
}

Tensor resize(const Tensor &image, int64_t height, int64_t width, std::source_location where) {
  const Call call{"data::resize", where};
  const Image given(image, call);
  checkSize(height, width, call);
  return resized(given, 0, 0, given.height, given.width, height, width, call);
}

Tensor random_resized_crop(const Tensor &image, int64_t height, int64_t width, Rng &random, CropOptions options,
                           std::source_location where) {
  const Call call{"data::random_resized_crop", where};
  const Image given(image, call);
  checkSize(height, width, call);
  if (!(options.min_area > 0 && options.min_area <= options.max_area && options.max_area <= 1))
    call.refuse("areas from " + std::to_string(options.min_area) + " to " + std::to_string(options.max_area) +
                    " of the image were given",
                "0 < min <= max <= 1");
  if (!(options.min_aspect > 0 && options.min_aspect <= options.max_aspect && std::isfinite(options.max_aspect)))
    call.refuse("aspects from " + std::to_string(options.min_aspect) + " to " + std::to_string(options.max_aspect) +
                    " were given",
                "0 < min <= max");
  const auto area = static_cast<double>(given.plane());
  for (int tries = 0; tries < 10; ++tries) {
    const double wanted = area * random.uniform(options.min_area, options.max_area);
    const double aspect = std::exp(random.uniform(std::log(options.min_aspect), std::log(options.max_aspect)));
    const auto w = static_cast<int64_t>(std::lround(std::sqrt(wanted * aspect))),
               h = static_cast<int64_t>(std::lround(std::sqrt(wanted / aspect)));
    if (w >= 1 && h >= 1 && w <= given.width && h <= given.height) {
      const int64_t top = random.below(given.height - h + 1), left = random.below(given.width - w + 1);
      return resized(given, top, left, h, w, height, width, call);
    }
  }
  const double aspect = std::clamp(static_cast<double>(given.width) / static_cast<double>(given.height),
                                   options.min_aspect, options.max_aspect);
  const int64_t w = std::clamp<int64_t>(std::lround(static_cast<double>(given.height) * aspect), 1, given.width);
  const int64_t h = std::clamp<int64_t>(std::lround(static_cast<double>(given.width) / aspect), 1, given.height);
  return resized(given, (given.height - h) / 2, (given.width - w) / 2, h, w, height, width, call);
}

Tensor adjust_brightness(const Tensor &image, double factor, std::source_location where) {
  const Call call{"data::adjust_brightness", where};
  checkFactor(factor, call);
  return changed(image, call, [&](Planes &p) { p.brightness(factor); });
}
Tensor adjust_contrast(const Tensor &image, double factor, std::source_location where) {
  const Call call{"data::adjust_contrast", where};
  checkFactor(factor, call);
  return changed(image, call, [&](Planes &p) { p.contrast(factor); });
}
Tensor adjust_saturation(const Tensor &image, double factor, std::source_location where) {
  const Call call{"data::adjust_saturation", where};
  checkFactor(factor, call);
  return changed(image, call, [&](Planes &p) { p.saturation(factor); });
}
Tensor adjust_hue(const Tensor &image, double turn, std::source_location where) {
  const Call call{"data::adjust_hue", where};
  if (!(turn >= -0.5 && turn <= 0.5))
    call.refuse("a turn of the hue by " + std::to_string(turn) + " was given", "turns are -0.5 to 0.5 of the circle");
  return changed(image, call, [&](Planes &p) { p.hue(turn); });
}

Tensor jitter(const Tensor &image, Rng &random, JitterOptions options, std::source_location where) {
  const Call call{"data::jitter", where};
  for (double amount : {options.brightness, options.contrast, options.saturation})
    checkFactor(amount, call);
  if (!(options.hue >= 0 && options.hue <= 0.5))
    call.refuse("turns of the hue by up to " + std::to_string(options.hue) + " were given", "0 to 0.5 of the circle");
  std::array<int, 4> order;
  std::iota(order.begin(), order.end(), 0);
  for (int i = 3; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1))]);
  auto factor = [&](double amount) { return random.uniform(std::max(0.0, 1 - amount), 1 + amount); };
  const double brightness = factor(options.brightness), contrast = factor(options.contrast),
               saturation = factor(options.saturation), turn = random.uniform(-options.hue, options.hue);
  return changed(image, call, [&](Planes &p) {
    for (int what : order)
      if (what == 0 && options.brightness > 0)
        p.brightness(brightness);
      else if (what == 1 && options.contrast > 0)
        p.contrast(contrast);
      else if (what == 2 && options.saturation > 0)
        p.saturation(saturation);
      else if (what == 3 && options.hue > 0)
        p.hue(turn);
  });
}

Tensor normalize(const Tensor &image, const std::vector<float> &mean, const std::vector<float> &deviation,
                 std::source_location where) {
  const Call call{"data::normalize", where};
  const auto channels = image.defined() && image.rank() == 3 ? static_cast<size_t>(image.type().shape.extent(0)) : 0;
  if (channels > 0 && (mean.size() != channels || deviation.size() != channels))
    call.refuse(std::to_string(mean.size()) + " means and " + std::to_string(deviation.size()) +
                " deviations were given for " + std::to_string(channels) + " channels");
  for (float d : deviation)
    if (!(d != 0) || !std::isfinite(d))
      call.refuse("a deviation of " + std::to_string(d) + " was given");
  return changed(image, call, [&](Planes &p) {
    for (int64_t c = 0; c < p.channels; ++c) {
      const float shift = mean[static_cast<size_t>(c)], scale = 1 / deviation[static_cast<size_t>(c)];
      float *plane = p.data + c * p.count;
      for (int64_t i = 0; i < p.count; ++i)
        plane[i] = (plane[i] - shift) * scale;
    }
  });
}

} // namespace tressel::data
