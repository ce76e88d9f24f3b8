// Image files and folders, and augmentation: against Pillow and formulas, and with damaged files.
#include "frontend/io/Images.h"
#include "Files.h"

#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

using namespace tressel;
using test::Folder;

namespace {

using Floats = std::vector<float>;

/// test/oracle/images.py; 77 where Pillow is missing.
int pillow(const std::string &verb, const Folder &folder) {
  return WEXITSTATUS(std::system((std::string(test::kPython) + " " TRESSEL_SOURCE_DIR "/test/oracle/images.py " + verb +
                                  " " + folder.path.string())
                                     .c_str()));
}
Tensor sample(int64_t channels, int64_t height, int64_t width) {
  std::vector<uint8_t> bytes(static_cast<size_t>(channels * height * width));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i * 37 % 251);
  return from_span(bytes, {channels, height, width});
}
Tensor part(const Tensor &image, int64_t channel, int64_t top, int64_t left, int64_t channels, int64_t height,
            int64_t width) {
  return slice(image, {channel, top, left}, {channel + channels, top + height, left + width});
}
double farthest(const Tensor &a, const Tensor &b) {
  EXPECT_EQ(a.type().str(), b.type().str());
  const Floats x = a.to_vector<float>(), y = b.to_vector<float>();
  double most = 0;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(x[i] - y[i])));
  return most;
}
template <typename E, typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const E &e) {
    return e.what();
  }
  return "nothing thrown";
}
void expectSays(const std::string &message, const std::string &text) {
  EXPECT_NE(message.find(text), std::string::npos) << message;
}

struct WithPillow : testing::Test {
  void SetUp() override {
    const int status = pillow("write", folder);
    if (status == 77 || status == 127)
      GTEST_SKIP() << "Pillow is missing: run ./dev setup";
    ASSERT_EQ(status, 0);
  }
  Folder folder;
};

TEST_F(WithPillow, FilesAreWhatItReads) {
  for (const char *name : {"rgb.png", "grey.png", "alpha.png", "palette.png", "bits.png", "rgb.jpg", "grey.jpg",
                           "progressive.jpg", "subsampled.jpeg", "full.jpg"})
    for (int64_t channels : {1, 3}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(channels));
      const Tensor want = load_npy(folder / (std::string(name) + "." + std::to_string(channels) + ".npy"));
      const Tensor got = data::read_image(folder / name, {.channels = channels});
      ASSERT_EQ(got.type().str(), want.type().str());
      EXPECT_EQ(got.to_vector<uint8_t>(), want.to_vector<uint8_t>());
    }
  EXPECT_EQ(data::read_image(folder / "deep.png", {.channels = 1}).to_vector<uint8_t>(),
            load_npy(folder / "deep.npy").to_vector<uint8_t>());
  test::expectInputError([&] { data::read_image(folder / "cmyk.jpg"); },
                         {"cmyk.jpg: a damaged JPEG file", "ImagesTest.cpp"});
}

TEST_F(WithPillow, ItReadsWhatIsWritten) {
  const Tensor image = load_npy(folder / "source.npy"), grey = part(image, 0, 0, 0, 1, 23, 31);
  data::write_image(folder / "written.png", image);
  data::write_image(folder / "written.jpg", data::to_float(image));
  data::write_image(folder / "written-grey.png", data::to_float(grey));
  save_npy(folder / "written.npy", image);
  save_npy(folder / "written-grey.npy", grey);
  EXPECT_EQ(pillow("check", folder), 0);
  EXPECT_EQ(data::read_image(folder / "written.png").to_vector<uint8_t>(), image.to_vector<uint8_t>());
}

TEST_F(WithPillow, ResizingIsWhatItDoes) {
  const Tensor image = load_npy(folder / "source.npy");
  for (auto [height, width] : {std::pair(7, 5), {16, 16}, {40, 61}, {23, 31}, {1, 1}, {64, 10}}) {
    const Tensor want = load_npy(folder / ("resized." + std::to_string(height) + "x" + std::to_string(width) + ".npy"));
    EXPECT_LT(farthest(data::resize(image, height, width), want), 2e-6) << height << " x " << width;
    EXPECT_LT(farthest(data::resize(data::to_float(image), height, width), want), 2e-6) << height << " x " << width;
  }
}

TEST_F(WithPillow, ColoursChangeAsFormulasSay) {
  const Tensor image = load_npy(folder / "source.npy");
  auto want = [&](const std::string &name) { return load_npy(folder / (name + ".npy")); };
  for (auto [factor, text] : {std::pair(0.0, "0"), {0.5, "0.5"}, {1.0, "1"}, {1.7, "1.7"}}) {
    EXPECT_LT(farthest(data::adjust_brightness(image, factor), want(std::string("brightness.") + text)), 1e-6);
    EXPECT_LT(farthest(data::adjust_contrast(image, factor), want(std::string("contrast.") + text)), 1e-5);
    EXPECT_LT(farthest(data::adjust_saturation(image, factor), want(std::string("saturation.") + text)), 1e-5);
  }
  for (auto [turn, text] : {std::pair(-0.5, "-0.5"), {-0.1, "-0.1"}, {0.25, "0.25"}, {0.5, "0.5"}})
    EXPECT_LT(farthest(data::adjust_hue(image, turn), want(std::string("hue.") + text)), 1e-5) << turn;
}

/// At every byte.
TEST(Images, TruncatedFilesAreSaid) {
  const Folder folder;
  const Tensor image = sample(3, 9, 11);
  for (const std::string name : {"a.png", "a.jpg"}) {
    data::write_image(folder / name, image);
    const std::string whole = test::get(folder / name);
    // What a PNG file ends with is no pixel, and the last two bytes of a JPEG file say that it ends.
    for (size_t bytes = 0; bytes<whole.size(); bytes += whole.size()> 500 && bytes > 100 ? 7 : 1) {
      test::put(folder / "cut", whole.substr(0, bytes));
      test::expectInputError([&] { data::read_image(folder / "cut"); }, {"cut: "});
    }
  }
}

TEST(Images, DamagedFilesNeverCrash) {
  data::Rng random(7);
  const Tensor image = sample(3, 17, 19);
  const Folder folder;
  int refused = 0, read = 0;
  for (const std::string name : {"a.png", "a.jpg"}) {
    data::write_image(folder / name, image);
    const std::string whole = test::get(folder / name);
    for (int i = 0; i < 2000; ++i) {
      std::string bytes = whole;
      for (int64_t k = 0, n = 1 + random.below(4); k < n; ++k)
        bytes[static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())))] =
            static_cast<char>(random.below(256));
      try {
        const io::Pixels pixels = io::decodeImage(std::as_bytes(std::span(bytes)), name, 1 + 2 * random.below(2));
        ASSERT_EQ(static_cast<int64_t>(pixels.bytes.size()), pixels.channels * pixels.height * pixels.width);
        ++read;
      } catch (const InputError &) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 100);
}

TEST(Images, WhatAFileSaysOfItsSizeIsChecked) {
  const Folder folder;
  data::write_image(folder / "a.jpg", sample(1, 8, 8));
  std::string bytes = test::get(folder / "a.jpg");
  const size_t frame = bytes.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  bytes.replace(frame + 5, 4, "\xFF\x00\xFF\x00", 4);
  test::put(folder / "large.jpg", bytes);
  test::expectInputError([&] { data::read_image(folder / "large.jpg"); },
                         {"large.jpg: ", "bytes that say they are 65280 x 65280 pixels"});
}

TEST(Images, OtherFilesAreSaid) {
  const Folder folder;
  test::put(folder / "a.png", "GIF89a");
  test::expectInputError([&] { data::read_image(folder / "a.png"); }, {"a.png: neither a PNG nor a JPEG file"});
  test::expectInputError([&] { data::read_image(folder / "none.png"); }, {"none.png"});
  test::expectInputError([&] { data::read_image(folder.path.string()); }, {folder.path.string()});
  test::expectInputError([&] { data::write_image(folder / "a.bmp", sample(3, 2, 2)); },
                         {"a.bmp: the name says no format", ".png"});
  test::expectInputError([&] { data::write_image(folder / "a.png", sample(2, 2, 2)); }, {"is no image"});
  test::expectInputError([&] { data::read_image(folder / "a.png", {.channels = 4}); }, {"4 channels"});
}

TEST(Images, FoldersAreKinds) {
  const Folder folder;
  for (const std::string kind : {"b", "a", "c"}) {
    std::filesystem::create_directories(folder.path / kind / "deeper");
    data::write_image(folder / (kind + "/1.png"), sample(3, 4, 5));
    data::write_image(folder / (kind + "/deeper/2.JPG"), sample(3, 4, 5));
    test::put(folder / (kind + "/notes.txt"), "no image");
  }
  EXPECT_EQ(data::image_kinds(folder.path.string()), (std::vector<std::string>{"a", "b", "c"}));
  const auto set = data::image_folder(folder.path.string());
  EXPECT_EQ(set.size(), 6);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < set.size(); ++i) {
    EXPECT_EQ(set[i].image.type().str(), "u8[3, 4, 5]");
    labels.push_back(set[i].label.item<int64_t>());
  }
  EXPECT_EQ(labels, (std::vector<int64_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(data::image_folder(folder.path.string(), {.kinds = {"c", "a"}}).size(), 4);

  std::filesystem::create_directories(folder.path / "d");
  test::expectInputError([&] { data::image_folder(folder.path.string()); }, {"/d: no image in it", ".png"});
  test::expectInputError([&] { data::image_folder(folder.path.string(), {.kinds = {"x"}}); }, {"/x"});
  test::expectInputError([&] { data::image_folder(folder / "a/deeper"); }, {"no folder in it"});
  // A damaged image is an error of its batch, which names the file.
  test::put(folder / "a/1.png", "\x89PNG");
  data::Loader<data::Sample> loader(data::image_folder(folder.path.string(), {.kinds = {"a"}}),
                                    {.batch = 2, .workers = 1});
  test::expectInputError(
      [&] {
        for (const data::Sample &s : loader.epoch(0))
          (void)s;
      },
      {"a/1.png: a damaged PNG file"});
}

TEST(Augment, FlipsAndCropsMovePixels) {
  const Tensor image = sample(3, 6, 9);
  data::Rng random(1);
  const Tensor flipped = data::random_flip(image, random, 1);
  EXPECT_EQ(flipped.to_vector<uint8_t>(), flip(image, {2}).to_vector<uint8_t>());
  EXPECT_EQ(data::random_flip(image, random, 0).to_vector<uint8_t>(), image.to_vector<uint8_t>());
  EXPECT_EQ(data::center_crop(image, 4, 3).to_vector<uint8_t>(), part(image, 0, 1, 3, 3, 4, 3).to_vector<uint8_t>());

  const Tensor padded = pad(image, {0, 2, 2}, {0, 2, 2});
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int i = 0; i < 200; ++i) {
    data::Rng a(5, 0, static_cast<uint64_t>(i)), b = a;
    const Tensor crop = data::random_crop(image, 8, 9, a, 2);
    const int64_t top = b.below(3), left = b.below(5);
    seen.insert({top, left});
    ASSERT_EQ(crop.to_vector<uint8_t>(), part(padded, 0, top, left, 3, 8, 9).to_vector<uint8_t>());
  }
  EXPECT_EQ(seen.size(), 15u);
}

TEST(Augment, ResizedCropsAreOfTheAreasAsked) {
  // The value of a pixel says where it is: the first and last of a crop tell its size.
  std::vector<float> ramp;
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 80; ++x)
      ramp.push_back(static_cast<float>(x) / 80);
  const Tensor image = from_span(ramp, {1, 60, 80});
  double least = 1, most = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    data::Rng random(3, 0, i);
    const Floats crop =
        data::random_resized_crop(image, 8, 8, random, {.min_area = 0.2, .max_area = 0.5}).to_vector<float>();
    ASSERT_EQ(crop.size(), 64u);
    const double width = (crop[6] - crop[1]) * 8 / 5; // of the image's
    least = std::min(least, width), most = std::max(most, width);
  }
  // sqrt(0.2 x 3/4 x 4800) / 80 to sqrt(0.5 x 4/3 x 4800) / 80.
  EXPECT_NEAR(least, 0.335, 0.03);
  EXPECT_NEAR(most, 0.707, 0.03);
  data::Rng random(1);
  EXPECT_EQ(data::random_resized_crop(sample(3, 1, 40), 4, 4, random).type().str(),
            "f32[3, 4, 4]"); // no part is of that aspect
}

TEST(Augment, JitterIsTheRngs) {
  const Tensor image = sample(3, 5, 5);
  const data::JitterOptions options{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1};
  data::Rng a(1), b(1), c(2);
  const Floats first = data::jitter(image, a, options).to_vector<float>();
  EXPECT_EQ(first, data::jitter(image, b, options).to_vector<float>());
  EXPECT_NE(first, data::jitter(image, c, options).to_vector<float>());
  data::Rng d(3);
  EXPECT_LT(farthest(data::jitter(image, d, {}), data::to_float(image)), 1e-7);
  const Tensor grey = sample(1, 5, 5);
  EXPECT_LT(farthest(data::adjust_saturation(grey, 0.3), data::to_float(grey)), 1e-7);
  EXPECT_LT(farthest(data::adjust_hue(grey, 0.3), data::to_float(grey)), 1e-7);
  const Floats normal = data::normalize(full({3, 1, 1}, 0.5f, f32), {0.5f, 0.25f, 0}, {1, 0.5f, 2}).to_vector<float>();
  EXPECT_EQ(normal, (Floats{0, 0.5f, 0.25f}));
}

TEST(Augment, WhatMeansNothingIsSaid) {
  data::Rng random(1);
  const Tensor image = sample(3, 4, 4);
  expectSays(messageOf<ShapeError>([&] { data::resize(ones({4, 4}), 2, 2); }), "f32[4, 4] is no image");
  expectSays(messageOf<ShapeError>([&] { data::resize(Tensor(), 2, 2); }), "is no image");
  expectSays(messageOf<ShapeError>([&] { data::resize(ones({3, 0, 4}), 2, 2); }), "is no image");
  expectSays(messageOf<ShapeError>([&] { data::center_crop(image, 5, 2); }), "has no part of 5 x 2 pixels");
  expectSays(messageOf<ShapeError>([&] { data::random_crop(image, 7, 2, random, 1); }),
             "with a padding of 1 has no part of 7 x 2");
  expectSays(messageOf<Error>([&] { data::resize(image, 0, 2); }), "0 x 2 pixels");
  expectSays(messageOf<Error>([&] { data::adjust_hue(image, 0.6); }), "-0.5 to 0.5");
  expectSays(messageOf<Error>([&] { data::adjust_contrast(image, -1); }), "a factor of -1");
  expectSays(messageOf<Error>([&] { data::jitter(image, random, {.hue = NAN}); }), "turns of the hue");
  expectSays(messageOf<Error>([&] { data::random_flip(image, random, 2); }), "a probability of 2");
  expectSays(messageOf<Error>([&] { data::random_resized_crop(image, 2, 2, random, {.min_area = 0}); }),
             "0 < min <= max <= 1");
  expectSays(messageOf<Error>([&] { data::normalize(image, {0.5f}, {1}); }),
             "1 means and 1 deviations were given for 3 channels");
  expectSays(messageOf<TraceError>([&] {
               jit([](Tensor x) { return data::resize(x, 2, 2); })(ones({3, 4, 4}));
             }),
             "outside of traces");
}

} // namespace
