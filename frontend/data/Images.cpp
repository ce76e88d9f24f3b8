// Files and folders of images.
#include "frontend/io/Images.h"
#include "frontend/io/AtLine.h"
#include "frontend/tensor/Make.h"
#include "tressel/runtime/File.h"

#include <tressel/images.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

namespace tressel::data {
namespace {
namespace fs = std::filesystem;

std::string extensionOf(const fs::path &path) {
  std::string text = path.extension().string();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void checkChannels(int64_t channels) {
  if (channels != 1 && channels != 3)
    throw InputError("images of " + std::to_string(channels) +
                     " channels were asked for; there are those of 1 and of 3");
}

Tensor planesOf(const io::Pixels &pixels, SourceLoc line) {
  Tensor image = tressel::detail::allocateTensor({u8, {pixels.channels, pixels.height, pixels.width}}, line);
  auto *to = static_cast<uint8_t *>(image.impl()->storage->data());
  const int64_t count = pixels.height * pixels.width, channels = pixels.channels;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < count; ++i)
      to[c * count + i] = pixels.bytes[static_cast<size_t>(i * channels + c)];
  return image;
}

/// The folder's entries, sorted, as file systems list them in any order.
template <typename Iterator> std::vector<fs::path> sorted(const std::string &dir) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (Iterator at(dir, error), end; !error && at != end; at.increment(error))
    paths.push_back(at->path());
  if (error)
    throw InputError(dir + ": cannot be read: " + error.message());
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::string> kindsIn(const std::string &dir) {
  std::vector<std::string> kinds;
  std::error_code ignored;
  for (const fs::path &path : sorted<fs::directory_iterator>(dir))
    if (fs::is_directory(path, ignored))
      kinds.push_back(path.filename().string());
  if (kinds.empty())
    throw InputError({dir + ": no folder in it", {}, {}, "the images of each kind lie in a folder of their own"});
  return kinds;
}

struct File {
  std::string path;
  int64_t label;
};

} // namespace

Tensor read_image(const std::string &path, ImageOptions options, std::source_location where) {
  return io::atLine(where, "data::read_image", [&] {
    checkChannels(options.channels);
    return planesOf(io::readImage(path, options.channels), tressel::detail::toLoc(where));
  });
}

void write_image(const std::string &path, const Tensor &image, std::source_location where) {
  io::atLine(where, "data::write_image", [&] {
    const std::string extension = extensionOf(path);
    if (extension != ".png" && extension != ".jpg" && extension != ".jpeg")
      throw InputError({path + ": the name says no format", {}, {}, "names end in .png, .jpg or .jpeg"});
    const Shape &shape = image.type().shape;
    if (shape.rank() != 3 || (shape[0] != 1 && shape[0] != 3) || shape.numElements() == 0 || shape[1] > 65500 ||
        shape[2] > 65500 || (image.dtype() != u8 && image.dtype() != f32))
      throw InputError("a tensor " + image.type().str() + " is no image: they are u8 or f32[1 or 3, height, width]");
    const int64_t channels = shape[0].number(), count = shape[1].number() * shape[2].number();
    io::Pixels pixels{channels, shape[1].number(), shape[2].number(),
                      std::vector<uint8_t>(static_cast<size_t>(channels * count))};
    const void *data = image.data();
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < count; ++i) {
        uint8_t &to = pixels.bytes[static_cast<size_t>(i * channels + c)];
        if (image.dtype() == u8)
          to = static_cast<const uint8_t *>(data)[c * count + i];
        else
          to = static_cast<uint8_t>(
              std::lround(std::clamp(static_cast<const float *>(data)[c * count + i], 0.0f, 1.0f) * 255));
      }
    runtime::writeFile(path, extension == ".png" ? io::encodePng(pixels) : io::encodeJpeg(pixels, 95));
  });
}

std::vector<std::string> image_kinds(const std::string &dir, std::source_location where) {
  return io::atLine(where, "data::image_kinds", [&] { return kindsIn(dir); });
}

Dataset<Sample> image_folder(const std::string &dir, ImageFolderOptions options, std::source_location where) {
  return io::atLine(where, "data::image_folder", [&] {
    checkChannels(options.channels);
    auto files = std::make_shared<std::vector<File>>();
    const std::vector<std::string> kinds = options.kinds.empty() ? kindsIn(dir) : options.kinds;
    for (size_t label = 0; label < kinds.size(); ++label) {
      const std::string folder = (fs::path(dir) / kinds[label]).string();
      const size_t before = files->size();
      for (const fs::path &path : sorted<fs::recursive_directory_iterator>(folder))
        if (const std::string extension = extensionOf(path);
            extension == ".png" || extension == ".jpg" || extension == ".jpeg")
          files->push_back({path.string(), static_cast<int64_t>(label)});
      if (files->size() == before)
        throw InputError({folder + ": no image in it", {}, {}, "images end in .png, .jpg or .jpeg"});
    }
    const SourceLoc line = tressel::detail::toLoc(where);
    const auto size = static_cast<int64_t>(files->size());
    return Dataset<Sample>(size, [files, line, channels = options.channels](int64_t index, Rng &) {
      const File &file = (*files)[static_cast<size_t>(index)];
      Sample sample{planesOf(io::readImage(file.path, channels), line),
                    tressel::detail::allocateTensor({i64, {}}, line)};
      *static_cast<int64_t *>(sample.label.impl()->storage->data()) = file.label;
      return sample;
    });
  });
}

} // namespace tressel::data
