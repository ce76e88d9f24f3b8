#include "Loading.h"

#include <tressel/tressel.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

namespace tressel::bench {
namespace {

/// One of the row's cases; pillow_peer.py has the same.
struct Case {
  const char *folder;
  int64_t channels, size, batch;
  data::JitterOptions jitter;
};
const Case kCases[] = {{"clothes", 1, 28, 100, {.brightness = 0.4, .contrast = 0.4}},
                       {"photos", 3, 224, 8, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}}};
constexpr int kWorkers = 2;

class Images {
public:
  explicit Images(const Case &which) : loader(makeLoader(which)) {}
  /// Seconds of an image: an epoch, which its workers begin with nothing ahead.
  double seconds() {
    int64_t count = 0;
    const double passed = secondsOf([&] {
      for (const data::Sample &batch : loader.epoch(epoch++))
        count += batch.label.size();
    });
    return passed / static_cast<double>(count);
  }

private:
  static data::Loader<data::Sample> makeLoader(const Case &which) {
    const std::string folder = std::filesystem::canonical("/proc/self/exe").parent_path() / "../bench/images" / which.folder;
    auto set = data::map(data::image_folder(folder, {.channels = which.channels}), [which](data::Sample s, data::Rng &random) {
      Tensor image = data::random_resized_crop(s.image, which.size, which.size, random);
      image = data::jitter(data::random_flip(image, random), random, which.jitter);
      const std::vector<float> mean(static_cast<size_t>(which.channels), 0.45f), deviation(static_cast<size_t>(which.channels), 0.225f);
      return data::Sample{data::normalize(image, mean, deviation), s.label};
    });
    return data::Loader<data::Sample>(set, {.batch = which.batch, .shuffle = true, .workers = kWorkers, .seed = 1});
  }
  data::Loader<data::Sample> loader;
  int64_t epoch = 0;
};

} // namespace

Arms loadingArms(const std::string &row) {
  if (row != "loader.rate")
    return {};
  auto images = std::make_shared<std::vector<std::unique_ptr<Images>>>(std::size(kCases));
  return {{"tressel", Arm([=](size_t which) {
             std::unique_ptr<Images> &mine = (*images)[which];
             if (!mine)
               mine = std::make_unique<Images>(kCases[which]);
             return mine->seconds();
           })}};
}

} // namespace tressel::bench
