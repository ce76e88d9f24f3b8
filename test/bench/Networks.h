// Networks that several rows share.
#pragma once

#include <tressel/tressel.h>

#include <cstdint>
#include <optional>

namespace tressel::bench {

inline nn::Sequential lenet() {
  return nn::Sequential{nn::Conv2d(6, 5, {.padding = 2, .activation = relu}),
                        nn::MaxPool2d(2),
                        nn::Conv2d(16, 5, {.activation = relu}),
                        nn::MaxPool2d(2),
                        nn::Flatten(),
                        nn::Dense(120, relu),
                        nn::Dense(84, relu),
                        nn::Dense(10)};
}

inline nn::Sequential mlp3() { return nn::Sequential{nn::Dense(256, relu), nn::Dense(128, relu), nn::Dense(10)}; }

/// 1x1, 3x3 and 1x1 channels-first convolutions added to their input, which is convolved too where its form changes.
struct Bottleneck : nn::Module<Bottleneck> {
  nn::Conv2d reduce, window, expand;
  std::optional<nn::Conv2d> shortcut;
  Bottleneck(int64_t channels, int64_t stride, bool changesForm)
      : reduce(child("reduce", nn::Conv2d(channels, 1, {.activation = relu}))),
        window(child("window", nn::Conv2d(channels, 3, {.stride = stride, .padding = 1, .activation = relu}))),
        expand(child("expand", nn::Conv2d(4 * channels, 1))) {
    if (changesForm)
      shortcut = child("shortcut", nn::Conv2d(4 * channels, 1, {.stride = stride}));
  }
  Tensor forward(Tensor x) const { return relu(expand(window(reduce(x))) + (shortcut ? (*shortcut)(x) : x)); }
};

/// ResNet-50 for inference: batch normalization is part of the convolutions.
inline nn::Sequential residual50() {
  nn::Sequential net{nn::Conv2d(64, 7, {.stride = 2, .padding = 3, .activation = relu}), nn::MaxPool2d(3, 2, 1)};
  int64_t channels = 64;
  for (int blocks : {3, 4, 6, 3}) {
    for (int b = 0; b < blocks; ++b)
      net.add(Bottleneck(channels, b == 0 && channels > 64 ? 2 : 1, b == 0));
    channels *= 2;
  }
  net.add(nn::GlobalAvgPool());
  net.add(nn::Flatten());
  net.add(nn::Dense(1000));
  return net;
}

} // namespace tressel::bench
