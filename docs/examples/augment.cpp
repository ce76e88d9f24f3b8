// Draws what augmentation makes of one image: itself, and eleven samples.
//
//   augment IMAGE OUT.png
#include <tressel/tressel.h>

#include <iostream>

using namespace tressel;

/// What a training set would do to each image in each epoch.
static Tensor augment(const Tensor &image, data::Rng &random) {
  const Tensor part = data::random_resized_crop(image, 128, 128, random);
  return data::jitter(data::random_flip(part, random), random, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1});
}

int main(int argc, char **argv) try {
  if (argc != 3) {
    std::cerr << "usage: augment IMAGE OUT.png\n";
    return 2;
  }
  const Tensor image = data::read_image(argv[1]);
  const int64_t side = std::min(image.type().shape.extent(1), image.type().shape.extent(2));
  std::vector<Arg> rows, row{data::resize(data::center_crop(image, side, side), 128, 128)};
  for (uint64_t epoch = 0; rows.size() < 2; ++epoch) {
    data::Rng random(/*seed=*/7, epoch, /*index=*/0);
    row.push_back(augment(image, random));
    if (row.size() == 6) {
      rows.push_back(concat(row, 2));
      row.clear();
    }
  }
  data::write_image(argv[2], concat(rows, 1));
} catch (const Error &e) {
  std::cerr << e.what() << "\n";
  return 1;
}
