// The bits of results of `deterministic` programs, a line for each: thread-bits.test compares those of other numbers of
// threads. Gradients of convolutions and products with long sums are what threads are given parts of.
#include <tressel/tressel.h>

#include <cstdio>
#include <functional>

using namespace tressel;

namespace {
void show(const char *name, const std::function<Tensor(Tensor, Tensor)> &f, const Tensor &a, const Tensor &b) {
  const Tensor y = jit(f, {.deterministic = true})(a, b);
  const auto *bytes = static_cast<const unsigned char *>(y.data());
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t i = 0; i < y.type().bytes(); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash));
}
Tensor lossOf(const Tensor &y) { return sum(square(y)); }
} // namespace

int main() {
  auto strided = [](Tensor x, Tensor w) { return conv(x, w, {2, 2}); };
  auto padded = [](Tensor x, Tensor w) { return conv(x, w, {1, 1}, {1, 1}, {1, 1}); };
  auto product = [](Tensor a, Tensor b) { return matmul(a, b); };
  auto gradient = [](auto f, size_t of) {
    return [=](Tensor a, Tensor b) { return grad([&] { return lossOf(f(a, b)); }, std::vector<Tensor>{a, b})[of]; };
  };
  const Tensor images = rng::normal({64, 8, 28, 28}, 1), one = rng::normal({64, 1, 28, 28}, 2);
  const Tensor weights = rng::normal({16, 8, 3, 3}, 3), few = rng::normal({8, 1, 3, 3}, 4);
  show("convolution", strided, images, weights);
  show("convolution by data", gradient(strided, 0), images, weights);
  show("convolution by weights", gradient(strided, 1), images, weights);
  show("convolution of one channel", padded, one, few);
  show("convolution of one channel by weights", gradient(padded, 1), one, few);
  const Tensor rows = rng::normal({64, 2704}, 5), columns = rng::normal({2704, 10}, 6);
  show("product", product, rows, columns);
  show("product by its left side", gradient(product, 0), rows, columns);
  show("product by its right side", gradient(product, 1), rows, columns);
  show("product with a long sum", product, rng::normal({8, 100'000}, 7), rng::normal({100'000, 8}, 8));
  show("sum", [](Tensor x, Tensor) { return sum(x); }, images, few);
  show("sums of channels", [](Tensor x, Tensor) { return sum(x, Axes{0, 2, 3}); }, images, few);
  show("batch norm", [](Tensor x, Tensor) { return std::get<0>(batch_norm_train(x, ones({8}), zeros({8}))); }, images, few);
}
