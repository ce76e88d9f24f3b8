// Both libraries report errors by a callback that must not return, so it calls longjmp. Code between setjmp and longjmp
// therefore has no destructors to run, and the buffers that it fills are allocated before.
#include "frontend/io/Images.h"

#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

namespace tressel::io {
namespace {

/// The most pixels that a file may declare, by its number of bytes: deflate makes at most 1,032 bytes of one, each of
/// which may be eight grey pixels.
constexpr int64_t kMostPixels = int64_t(1) << 28, kMostPixelsOfByte = 8 * 1032;

void checkSize(const std::string &name, size_t bytes, int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMostPixels / height ||
      width * height / kMostPixelsOfByte > static_cast<int64_t>(bytes))
    throw InputError(name + ": " + std::to_string(bytes) + " bytes that say they are " + std::to_string(width) + " x " +
                     std::to_string(height) + " pixels");
}

/// ITU-R BT.601, in 16 bits of fraction.
uint8_t greyOf(const uint8_t *rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

//--- PNG --------------------------------------------------------------------------------------------------------------
struct PngError {
  std::jmp_buf back;
  char text[128] = {};
};
[[noreturn]] void onPngError(png_structp png, png_const_charp text) {
  auto *error = static_cast<PngError *>(png_get_error_ptr(png));
  std::snprintf(error->text, sizeof error->text, "%s", text);
  std::longjmp(error->back, 1);
}
void onPngWarning(png_structp, png_const_charp) {}

struct PngSource {
  const std::byte *at, *end;
};
void readPng(png_structp png, png_bytep to, size_t bytes) {
  auto *source = static_cast<PngSource *>(png_get_io_ptr(png));
  if (static_cast<size_t>(source->end - source->at) < bytes)
    png_error(png, "the file ends within the image");
  std::memcpy(to, source->at, bytes);
  source->at += bytes;
}

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  PngError error;
  PngSource source{};
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }

  /// Reads the size, and sets up decoding to 8 bits of one or three channels. False on an error.
  bool begin(std::span<const std::byte> file, int64_t &width, int64_t &height, int64_t &channels) {
    source = {file.data(), file.data() + file.size()};
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &error, onPngError, onPngWarning);
    info = png ? png_create_info_struct(png) : nullptr;
    if (!info)
      throw InputError("out of memory");
    if (setjmp(error.back)) // NOLINT: see above
      return false;
    png_set_read_fn(png, &source, readPng);
    png_read_info(png, info);
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    width = png_get_image_width(png, info);
    height = png_get_image_height(png, info);
    channels = png_get_channels(png, info);
    return true;
  }
  bool read(png_bytep *rows) {
    if (setjmp(error.back)) // NOLINT
      return false;
    png_read_image(png, rows);
    png_read_end(png, nullptr);
    return true;
  }
};

Pixels decodePng(std::span<const std::byte> file, const std::string &name) {
  PngReader reader;
  Pixels pixels;
  auto refuse = [&] { throw InputError(name + ": a damaged PNG file: " + reader.error.text); };
  if (!reader.begin(file, pixels.width, pixels.height, pixels.channels))
    refuse();
  checkSize(name, file.size(), pixels.width, pixels.height);
  const auto stride = static_cast<size_t>(pixels.width * pixels.channels);
  pixels.bytes.resize(stride * static_cast<size_t>(pixels.height));
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < pixels.height; ++y)
    rows.push_back(pixels.bytes.data() + static_cast<size_t>(y) * stride);
  if (!reader.read(rows.data()))
    refuse();
  return pixels;
}

void writePng(png_structp png, png_bytep from, size_t bytes) {
  auto *to = static_cast<std::vector<std::byte> *>(png_get_io_ptr(png));
  const auto *begin = reinterpret_cast<const std::byte *>(from);
  to->insert(to->end(), begin, begin + bytes);
}
void flushPng(png_structp) {}

//--- JPEG -------------------------------------------------------------------------------------------------------------
struct JpegError {
  jpeg_error_mgr manager; ///< first: the library hands out a pointer to it
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};
[[noreturn]] void onJpegError(j_common_ptr jpeg) {
  auto *error = reinterpret_cast<JpegError *>(jpeg->err);
  error->manager.format_message(jpeg, error->text);
  std::longjmp(error->back, 1);
}
/// A message about data that libjpeg would repair by guessing is an error, as the pixels would be wrong. Other warnings
/// are ignored.
void onJpegMessage(j_common_ptr jpeg, int level) {
  constexpr std::array kHarmless{JWRN_ADOBE_XFORM, JWRN_BOGUS_PROGRESSION, JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR,
                                 JWRN_TOO_MUCH_DATA};
  if (level < 0 && std::ranges::find(kHarmless, jpeg->err->msg_code) == kHarmless.end())
    onJpegError(jpeg);
}
void useErrors(JpegError &error) {
  jpeg_std_error(&error.manager);
  error.manager.error_exit = onJpegError;
  error.manager.emit_message = onJpegMessage;
}

struct JpegReader {
  jpeg_decompress_struct jpeg{};
  JpegError error{};
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }

  bool begin(std::span<const std::byte> file, int64_t wanted, int64_t &width, int64_t &height, int64_t &channels) {
    useErrors(error);
    jpeg.err = &error.manager;
    if (setjmp(error.back)) // NOLINT
      return false;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char *>(file.data()), file.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = wanted == 1 || jpeg.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_calc_output_dimensions(&jpeg);
    width = jpeg.output_width;
    height = jpeg.output_height;
    channels = jpeg.out_color_components;
    return true;
  }
  bool read(uint8_t *to, size_t stride) {
    if (setjmp(error.back)) // NOLINT
      return false;
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = to + jpeg.output_scanline * stride;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    return true;
  }
};

Pixels decodeJpeg(std::span<const std::byte> file, const std::string &name, int64_t wanted) {
  JpegReader reader;
  Pixels pixels;
  auto refuse = [&] { throw InputError(name + ": a damaged JPEG file: " + reader.error.text); };
  if (!reader.begin(file, wanted, pixels.width, pixels.height, pixels.channels))
    refuse();
  checkSize(name, file.size(), pixels.width, pixels.height);
  const auto stride = static_cast<size_t>(pixels.width * pixels.channels);
  pixels.bytes.resize(stride * static_cast<size_t>(pixels.height));
  if (!reader.read(pixels.bytes.data(), stride))
    refuse();
  return pixels;
}

struct JpegWriter {
  jpeg_compress_struct jpeg{};
  JpegError error{};
  unsigned char *memory = nullptr;
  unsigned long size = 0;
  ~JpegWriter() {
    jpeg_destroy_compress(&jpeg);
    std::free(memory); // NOLINT: by the library's malloc
  }
  bool write(const Pixels &pixels, int quality) {
    useErrors(error);
    jpeg.err = &error.manager;
    if (setjmp(error.back)) // NOLINT
      return false;
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &memory, &size);
    jpeg.image_width = static_cast<JDIMENSION>(pixels.width);
    jpeg.image_height = static_cast<JDIMENSION>(pixels.height);
    jpeg.input_components = static_cast<int>(pixels.channels);
    jpeg.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    const auto stride = static_cast<size_t>(pixels.width * pixels.channels);
    while (jpeg.next_scanline < jpeg.image_height) {
      auto *row = const_cast<JSAMPROW>(pixels.bytes.data() + jpeg.next_scanline * stride);
      jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    return true;
  }
};

/// Converts the pixels to `channels` channels.
Pixels withChannels(Pixels pixels, int64_t channels) {
  if (pixels.channels == channels)
    return pixels;
  Pixels out{channels, pixels.height, pixels.width, {}};
  const auto count = static_cast<size_t>(pixels.height * pixels.width);
  out.bytes.resize(count * static_cast<size_t>(channels));
  for (size_t i = 0; i < count; ++i)
    if (channels == 1)
      out.bytes[i] = greyOf(pixels.bytes.data() + 3 * i);
    else
      std::fill_n(out.bytes.begin() + static_cast<ptrdiff_t>(3 * i), 3, pixels.bytes[i]);
  return out;
}

} // namespace

Pixels decodeImage(std::span<const std::byte> file, const std::string &name, int64_t channels) {
  constexpr std::array<uint8_t, 4> png{0x89, 'P', 'N', 'G'};
  constexpr std::array<uint8_t, 3> jpeg{0xFF, 0xD8, 0xFF};
  auto begins = [&](std::span<const uint8_t> with) {
    return file.size() >= with.size() && std::memcmp(file.data(), with.data(), with.size()) == 0;
  };
  if (begins(png))
    return withChannels(decodePng(file, name), channels);
  if (begins(jpeg))
    return withChannels(decodeJpeg(file, name, channels), channels);
  throw InputError(name + ": neither a PNG nor a JPEG file");
}

Pixels readImage(const std::string &path, int64_t channels) {
  const runtime::InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return decodeImage(bytes, path, channels);
}

std::vector<std::byte> encodePng(const Pixels &pixels) {
  std::vector<std::byte> out;
  std::vector<png_const_bytep> rows;
  for (int64_t y = 0; y < pixels.height; ++y)
    rows.push_back(pixels.bytes.data() + y * pixels.width * pixels.channels);
  PngError error;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &error, onPngError, onPngWarning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (info && !setjmp(error.back)) { // NOLINT
    png_set_write_fn(png, &out, writePng, flushPng);
    png_set_IHDR(png, info, static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height), 8,
                 pixels.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (png_const_bytep row : rows)
      png_write_row(png, row);
    png_write_end(png, info);
  } else {
    out.clear();
  }
  png_destroy_write_struct(&png, &info);
  if (out.empty())
    throw RuntimeError(std::string("a PNG file could not be made: ") + error.text);
  return out;
}

std::vector<std::byte> encodeJpeg(const Pixels &pixels, int quality) {
  JpegWriter writer;
  if (!writer.write(pixels, quality))
    throw RuntimeError(std::string("a JPEG file could not be made: ") + writer.error.text);
  const auto *begin = reinterpret_cast<const std::byte *>(writer.memory);
  return {begin, begin + writer.size};
}

} // namespace tressel::io
