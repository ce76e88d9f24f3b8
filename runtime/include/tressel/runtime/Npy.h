// NumPy's file format for one array.
#pragma once

#include "tressel/runtime/Storage.h"
#include "tressel/runtime/Types.h"

#include <cstddef>
#include <span>
#include <string>

namespace tressel::runtime {

/// A dense row-major array.
struct NpyArray {
  TensorType type;
  StorageRef data;
};

/// Format versions 1 to 3. Fortran order and big-endian elements are converted, bools become 0 or 1. Throws InputError,
/// which begins with `name`, for element types that Tressel has not, more dimensions than kMaxRank, sizes that do not
/// fit the bytes, and damaged headers; OutOfMemory only if the bytes really are that many.
NpyArray parseNpy(std::span<const std::byte> bytes, const std::string &name);
NpyArray readNpy(const std::string &path);

/// The bytes of a file (version 1, little-endian, row-major). bf16, which NumPy has not, is stored as f32.
std::string formatNpy(const TensorType &type, const void *data);
/// Written aside and renamed. Throws RuntimeError.
void writeNpy(const std::string &path, const TensorType &type, const void *data);

} // namespace tressel::runtime
