// IDX files, in which the MNIST family of datasets is stored: big-endian sizes,
// then bytes. Packed by gzip or plain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tressel::io {

struct IdxArray {
  std::vector<int64_t> sizes; ///< outermost first
  std::vector<uint8_t> elements;
};

/// Reads an array of bytes with `rank` dimensions, at most `maxElements`
/// elements. Throws InputError that names the file: unreadable, of another
/// kind, truncated, longer than it says, damaged.
IdxArray readIdx(const std::string &path, int rank, int64_t maxElements);

} // namespace tressel::io
