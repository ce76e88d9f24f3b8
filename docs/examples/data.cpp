// Batches of augmented images of Fashion-MNIST, made by threads ahead of their use.
//
//   data [FOLDER [IMAGES]]   FOLDER of the four files; Debian's package dataset-fashion-mnist has them. IMAGES: a folder with a folder of photos for
//                            each kind, of which an epoch is read too
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
  if (argc > 2) {
    const std::string folder = argv[2];
    auto set = data::map(data::image_folder(folder), [](data::Sample s, data::Rng &r) {
      Tensor image = data::random_resized_crop(s.image, 224, 224, r);
      image = data::jitter(data::random_flip(image, r), r, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1});
      return data::Sample{data::normalize(image, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}), s.label};
    });
    int64_t photos = 0;
    data::Loader<data::Sample> loader(set, {.batch = 8, .shuffle = true, .workers = 2});
    for (const data::Sample &b : loader.epoch(0))
      photos += b.label.size();
    std::cout << photos << " photos\n";
  }
  std::cout << images << " images in " << loader.num_batches() << " batches an epoch, " << static_cast<int64_t>(static_cast<double>(images) / seconds)
            << " a second\n";
  return images == 2 * set.size() ? 0 : 1;
}
