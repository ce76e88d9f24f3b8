// Networks for images of 28 x 28 pixels: a perceptron, LeNet-5 (lenet.h) and a small ResNet.
#pragma once

#include "lenet.h"

#include <optional>

namespace tressel {

struct Perceptron : nn::Module<Perceptron> {
  nn::Dense fc1 = child("fc1", nn::Dense(256, relu));
  nn::Dense fc2 = child("fc2", nn::Dense(128, relu));
  nn::Dense fc3 = child("fc3", nn::Dense(10));
  Tensor forward(Tensor x) const { return fc3(fc2(fc1(reshape(x, {x.dim(0), -1})))); }
};

/// Two 3x3 convolutions, each normalized, added to their input, which is convolved too where its form changes.
struct ResidualBlock : nn::Module<ResidualBlock> {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm norm1 = child("norm1", nn::BatchNorm()), norm2 = child("norm2", nn::BatchNorm());
  std::optional<nn::Conv2d> shortcut;

  ResidualBlock(int64_t channels, int64_t stride, bool changesForm)
      : conv1(child("conv1", nn::Conv2d(channels, 3, {.stride = stride, .padding = 1, .bias = false}))),
        conv2(child("conv2", nn::Conv2d(channels, 3, {.padding = 1, .bias = false}))) {
    if (changesForm)
      shortcut = child("shortcut", nn::Conv2d(channels, 1, {.stride = stride, .bias = false}));
  }
  Tensor forward(Tensor x) const { return relu(norm2(conv2(relu(norm1(conv1(x))))) + (shortcut ? (*shortcut)(x) : x)); }
};

/// Six blocks of 16, 32 and 64 channels: 175,000 parameters.
struct SmallResNet : nn::Module<SmallResNet> {
  nn::Conv2d conv = child("conv", nn::Conv2d(16, 3, {.padding = 1, .bias = false}));
  nn::BatchNorm norm = child("norm", nn::BatchNorm());
  std::vector<ResidualBlock> blocks;
  nn::Dense fc = child("fc", nn::Dense(10));

  SmallResNet() {
    for (int64_t channels : {16, 32, 64})
      for (int64_t block : {0, 1}) {
        const bool widens = block == 0 && channels > 16;
        blocks.push_back(child("block" + std::to_string(blocks.size()), ResidualBlock(channels, widens ? 2 : 1, widens)));
      }
  }
  Tensor forward(Tensor x) const {
    x = relu(norm(conv(x)));
    for (const ResidualBlock &block : blocks)
      x = block(x);
    return fc(mean(x, Axes{2, 3}));
  }
};

} // namespace tressel
