// Batches of augmented images of Fashion-MNIST, made by threads ahead of their use.
//
//   data [FOLDER]      of the four files; Debian's package dataset-fashion-mnist has them
#include <tressel/tressel.h>

#include <chrono>
#include <iostream>

using namespace tressel;

int main(int argc, char **argv) {
  const std::string dir = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  int64_t images = 0;
  auto step = [&](const auto &b) { images += b.label.size(); };
  const auto begin = std::chrono::steady_clock::now();

  struct Batch { Tensor x, label; };
  auto set = data::map(data::fashion_mnist(dir, /*train=*/true), [](data::Sample s, data::Rng &r) {
    return Batch{r.flip() ? flip(s.image, {-1}) : s.image, s.label};
  });
  data::Loader<Batch> loader(set, {.batch = 256, .shuffle = true, .workers = 2, .seed = 1});
  for (int64_t e = loader.position().epoch; e < 2; ++e)
    for (Batch b : loader.epoch(e))
      step(b);

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << images << " images in " << loader.num_batches() << " batches an epoch, " << static_cast<int64_t>(static_cast<double>(images) / seconds)
            << " a second\n";
  return images == 2 * set.size() ? 0 : 1;
}
