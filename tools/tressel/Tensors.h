// Tensors of the command line: from files, from random numbers, to files, compared, summarized.
#pragma once

#include "ir/op/OpInfo.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tressel::tool {

using op::HostTensor;

/// The tensors of a .npy, .npz or .pb file; a .npy has one without a name. Throws InputError.
std::vector<std::pair<std::string, HostTensor>> readTensors(const std::string &path);
/// Writes a .npy file; bf16, which NumPy lacks, as f32. Throws EnvironmentError.
void writeTensor(const std::string &path, const HostTensor &tensor);

/// Floats: standard normal. Integers and bools: 0 or 1, which is a valid index anywhere. The same seed, name and type
/// give the same values on every machine.
HostTensor randomTensor(const TensorType &type, uint64_t seed, const std::string &name);

/// Element i in row-major order.
double elementOf(const HostTensor &tensor, int64_t i);
/// The same as text, whole numbers exactly: not every i64 is a double.
std::string spellElement(const HostTensor &tensor, int64_t i);

/// The differences between `got` and `want`.
struct Difference {
  bool within = true; ///< |got - want| <= atol + rtol * |want| everywhere, NaN only where NaN is wanted
  int64_t mismatches = 0;
  double maxAbsolute = 0, maxRelative = 0;
  int64_t worst = -1; ///< the element with the largest excess
};
Difference compare(const HostTensor &got, const HostTensor &want, double rtol, double atol);

struct Summary {
  double min = 0, mean = 0, max = 0;
  std::vector<double> first; ///< up to eight values
};
Summary summarize(const HostTensor &tensor);

} // namespace tressel::tool
