#include <tressel/tressel.h>

#include <iostream>

using namespace tressel;

int main() {
  nn::Sequential net{nn::Dense(256, relu), nn::Dense(10)};
  net.initialize({{f32, {64, 784}}}, /*seed=*/1);
  Tensor x = rng::normal({64, 784}, /*seed=*/2);

  Tensor imperative = net(x);    // each call runs as it is reached; the result is a future
  net.hybridize();               // from now on: traced once, compiled, cached
  Tensor compiled = net(x);

  Tensor difference = max(abs(imperative - compiled));
  std::cout << "largest difference: " << difference.item<float>() << "\n";

  auto f = jit([](Tensor a, Tensor b) { return gelu(a * b + 1.0); }); // any function of tensors
  std::cout << f(x, x).shape().str() << "\n";
}
