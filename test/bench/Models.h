// The networks of hybridize.worst, as a user of the C++ API writes them. networks.py has the same ones as ONNX models,
// for peers and as the reference.
#pragma once

#include <tressel/tressel.h>

#include <functional>
#include <string>
#include <vector>

namespace tressel::bench {

struct Model {
  std::string name;
  std::vector<int64_t> one; ///< an input without its batch
  std::function<nn::Sequential()> make;

  Shape input(int64_t batch) const;
};
/// LeNet, two MLPs, ResNet-18, MobileNet v2, an LSTM, a transformer layer and a U-Net.
const std::vector<Model> &models();
/// Throws std::out_of_range.
const Model &modelNamed(const std::string &name);

/// A tensor of valueAt's numbers times `scale`, for `seed`.
Tensor numbers(const Shape &shape, uint32_t seed, float scale = 1);
/// All elements.
std::vector<float> flat(const Tensor &y);
/// The numbers of a parameter called "weight" in whose layer a result has so many inputs.
void fillWeights(float *weights, int64_t count, int64_t inputs);
/// Gives all parameters and buffers of a network that is initialized the numbers that belong to their names: weights so
/// large that layers keep the size of their input, scales and variances near 1, everything else small.
void fillParameters(const nn::ModuleHandle &net);

} // namespace tressel::bench
