// Networks that several rows share.
#pragma once

#include <tressel/tressel.h>

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

} // namespace tressel::bench
