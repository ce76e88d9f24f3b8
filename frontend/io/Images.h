// Image files: PNG by libpng, JPEG by libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tressel::io {

/// Pixels from the top left, row by row, the channels of a pixel side by side: one (0 black to 255 white) or three
/// (red, green, blue).
struct Pixels {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<uint8_t> bytes;
};

/// Reads a PNG or JPEG file, told apart by its first bytes, as one or three channels: colours become grey by ITU-R
/// BT.601, transparency is dropped, 16 bits become 8. The orientation in a camera's metadata is not applied. Throws
/// InputError with `name` in front for a file that is damaged, truncated, of another kind, or that declares more pixels
/// than its bytes can hold.
Pixels decodeImage(std::span<const std::byte> file, const std::string &name, int64_t channels);
Pixels readImage(const std::string &path, int64_t channels);

std::vector<std::byte> encodePng(const Pixels &pixels);
/// Quality from 1 to 100.
std::vector<std::byte> encodeJpeg(const Pixels &pixels, int quality);

} // namespace tressel::io
