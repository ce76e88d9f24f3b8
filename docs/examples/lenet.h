// LeNet-5 over images of 28 x 28 pixels.
#pragma once

#include <tressel/tressel.h>

namespace tressel {

struct LeNet : nn::Module<LeNet> {
  nn::Conv2d conv1 = child("conv1", nn::Conv2d(6, 5, {.padding = 2, .activation = relu}));
  nn::Conv2d conv2 = child("conv2", nn::Conv2d(16, 5, {.activation = relu}));
  nn::MaxPool2d pool = child("pool", nn::MaxPool2d(2));
  nn::Dense fc1 = child("fc1", nn::Dense(120, relu));
  nn::Dense fc2 = child("fc2", nn::Dense(84, relu));
  nn::Dense fc3 = child("fc3", nn::Dense(10));

  Tensor forward(Tensor x) const {
    x = pool(conv2(pool(conv1(x))));
    return fc3(fc2(fc1(reshape(x, {x.dim(0), -1}))));
  }
};

} // namespace tressel
