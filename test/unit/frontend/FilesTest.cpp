// tressel/io.h and tressel/data.h.
#include "test/unit/frontend/Files.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tressel/tressel.h>
#include <zlib.h>

using namespace tressel;
using namespace tressel::test;

namespace {

bool equal(const Tensor &a, const Tensor &b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.type().bytes())) == 0;
}
std::map<std::string, Tensor> sample() {
  std::map<std::string, Tensor> tensors;
  for (const FileCase &c : fileCases())
    tensors.emplace(c.name, from_bytes(c.bytes.data(), c.type));
  return tensors;
}
Variable variable(std::initializer_list<float> values, const Shape &shape) {
  return Variable(from_span(std::vector<float>(values), shape));
}
std::vector<float> values(const Variable &v) { return v.value().to_vector<float>(); }
using Names = std::vector<std::string>;

/// Two layers, as a network names them.
std::vector<std::pair<std::string, Variable>> network() {
  return {{"conv.weight", variable({1, 2}, {2})},
          {"conv.bias", variable({3}, {1})},
          {"fc.weight", variable({4, 5, 6, 7, 8, 9}, {2, 3})},
          {"fc.bias", variable({10, 11, 12}, {3})}};
}
std::vector<std::pair<std::string, Variable>> zeroNetwork() {
  auto named = network();
  for (auto &[name, v] : named)
    v.assign(zeros(v.shape()));
  return named;
}
std::vector<std::vector<float>> all(const std::vector<std::pair<std::string, Variable>> &named) {
  std::vector<std::vector<float>> out;
  for (const auto &[name, v] : named)
    out.push_back(values(v));
  return out;
}

} // namespace

TEST(TensorFiles, SurviveTheRoundTrip) {
  const Folder folder;
  const auto tensors = sample();
  save_safetensors(folder / "a.safetensors", tensors, {{"k", "v"}});
  std::map<std::string, std::string> metadata;
  const auto back = load_safetensors(folder / "a.safetensors", &metadata);
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"k", "v"}}));
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto &[name, t] : tensors)
    EXPECT_TRUE(equal(t, back.at(name))) << name;
  save_npz(folder / "a.npz", tensors);
  const auto unzipped = load_npz(folder / "a.npz");
  for (const auto &[name, t] : tensors) {
    if (t.dtype() != bf16)
      EXPECT_TRUE(equal(t, unzipped.at(name))) << name;
    else
      EXPECT_EQ(unzipped.at(name).to_vector<float>(), t.to_vector<float>()) << name;
    save_npy(folder / "a.npy", t);
    if (t.dtype() != bf16)
      EXPECT_TRUE(equal(t, load_npy(folder / "a.npy"))) << name;
  }
}

TEST(TensorFiles, ErrorsNameTheCallersLine) {
  const Folder folder;
  const uint32_t line = std::source_location::current().line() + 2;
  try {
    load_npy(folder / "none.npy");
    FAIL();
  } catch (const InputError &e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_NE(std::string(e.what()).find("load_npy"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(folder / "none.npy"), std::string::npos) << e.what();
  }
  EXPECT_THROW(save_npy(folder / "none/a.npy", tensor(1.0f)), RuntimeError);
  EXPECT_THROW(save_npz(folder / "none/a.npz", {{"w", tensor(1.0f)}}), RuntimeError);
  save_npz(folder / "a.npz", {{"w", zeros({1000})}});
  expectInputError([&] { load_npz(folder / "a.npz", 1000); }, {"'w.npy'", "more than 1000 bytes"});
}

TEST(TensorFiles, ForeignElementTypesAreListedTogether) {
  const Folder folder;
  const std::string header = R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]},)"
                             R"("b":{"dtype":"U64","shape":[1],"data_offsets":[1,9]}})";
  const uint64_t n = header.size();
  put(folder / "a", std::string(reinterpret_cast<const char *>(&n), 8) + header + std::string(9, '\0'));
  expectInputError([&] { load_safetensors(folder / "a"); }, {"a (element type 'F8_E4M3')", "b (element type 'U64')"});
}

TEST(Parameters, SurviveTheRoundTrip) {
  const Folder folder;
  save_parameters(network(), folder / "net");
  auto named = zeroNetwork();
  const LoadReport report = load_parameters(named, folder / "net");
  EXPECT_EQ(all(named), all(network()));
  EXPECT_EQ(report.loaded, (Names{"conv.weight", "conv.bias", "fc.weight", "fc.bias"}));
  EXPECT_EQ(report.str(), "4 loaded\n");
}

TEST(Parameters, AStrictLoadListsEverythingAndAssignsNothing) {
  const Folder folder;
  save_safetensors(
      folder / "net",
      {{"conv.weight", ones({2})}, {"fc.weight", ones({5, 3})}, {"extra", ones({1})}, {"fc.bias", ones({3}, i32)}});
  auto named = network();
  expectInputError(
      [&] {
        load_parameters(named, folder / "net", {.rename = {{"typo.", "x."}}});
      },
      {folder / "net", "1 missing in the file: conv.bias", "1 unexpected in the file: extra",
       "2 mismatched: fc.weight (file f32[5, 3], network f32[2, 3])", "fc.bias (file i32[3], network f32[3])", "typo.",
       "nothing was loaded"});
  EXPECT_EQ(all(named), all(network()));

  const LoadReport report = load_parameters(named, folder / "net", {.strict = false});
  EXPECT_EQ(report.loaded, Names{"conv.weight"});
  EXPECT_EQ(report.missing, Names{"conv.bias"});
  EXPECT_EQ(report.unexpected, Names{"extra"});
  EXPECT_EQ(report.mismatched.size(), 2u);
  EXPECT_EQ(values(named[0].second), (std::vector<float>{1, 1}));
  EXPECT_EQ(values(named[2].second), values(network()[2].second));
}

TEST(Parameters, TakesFilesOfOtherFrameworks) {
  const Folder folder;
  // Names with a prefix, a head of another size, matrices as [out, in].
  save_safetensors(folder / "net", {{"module.features.0.weight", tensor({1.0, 2})},
                                    {"module.features.0.bias", tensor({3.0})},
                                    {"module.classifier.weight", tensor({{4.0, 7}, {5, 8}, {6, 9}})},
                                    {"module.classifier.bias", tensor({10.0, 11, 12})},
                                    {"module.head.weight", ones({9, 9})}});
  const LoadOptions options{.rename = {{"module.", ""},
                                       {"module.features.0.", "conv."},
                                       {"module.classifier.weight", "fc.weight"},
                                       {"module.classifier.", "fc."}},
                            .skip = {"head.*"},
                            .transpose = {"fc.weight"}};
  auto named = zeroNetwork();
  const LoadReport report = load_parameters(named, folder / "net", options);
  EXPECT_EQ(all(named), all(network()));
  EXPECT_EQ(report.skipped, Names{"head.weight"});

  LoadOptions without = options;
  without.transpose = {};
  expectInputError([&] { load_parameters(named, folder / "net", without); },
                   {"fc.weight (file f32[3, 2], network f32[2, 3]; it fits transposed"});
}

TEST(Parameters, FilesMayBeLargerThanFourGigabytes) {
  const Folder folder;
  const std::string path = folder / "net";
  const uint64_t large = uint64_t(5) << 30; // never written: the file has a hole there
  std::string header = R"({"big":{"dtype":"U8","shape":[)" + std::to_string(large) + R"(],"data_offsets":[0,)" +
                       std::to_string(large) + R"(]},"small":{"dtype":"F32","shape":[2],"data_offsets":[)" +
                       std::to_string(large) + "," + std::to_string(large + 8) + "]}}";
  const uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), sizeof length)
      .write(header.data(), static_cast<std::streamsize>(length));
  file.seekp(static_cast<std::streamoff>(sizeof length + length + large));
  const float elements[] = {3, 4};
  file.write(reinterpret_cast<const char *>(elements), sizeof elements);
  file.close();
  const std::vector<std::pair<std::string, Variable>> named{{"small", Variable(zeros({2}))}};
  const LoadReport report = load_parameters(named, path, {.skip = {"big"}});
  EXPECT_EQ(report.loaded, Names{"small"});
  EXPECT_EQ(values(named[0].second), (std::vector<float>{3, 4}));
  std::filesystem::resize_file(path, large);
  expectInputError([&] { load_parameters(named, path, {.skip = {"big"}}); }, {"'big'", "the file has only"});
}

TEST(Parameters, FloatsAreConverted) {
  const Folder folder;
  save_safetensors(folder / "net", {{"a", cast(tensor({0.1, 1e-9, 70000}), f64)},
                                    {"b", cast(tensor({0.5, 3, -7}), bf16)},
                                    {"c", cast(tensor({{1.0, 2, 3}, {4, 5, 6}}), f16)},
                                    {"d", tensor({1, 2}, f32)}});
  const std::vector<std::pair<std::string, Variable>> named{{"a", Variable(zeros({3}, f16))},
                                                            {"b", Variable(zeros({3}))},
                                                            {"c", Variable(zeros({3, 2}))},
                                                            {"d", Variable(zeros({2}))}};
  const LoadReport report = load_parameters(named, folder / "net", {.transpose = {"c"}});
  EXPECT_EQ(report.converted, (Names{"a", "b", "c"}));
  EXPECT_NE(report.str().find("3 converted: a, b, c"), std::string::npos) << report.str();
  EXPECT_EQ(values(named[0].second), (std::vector<float>{0.0999755859375f, 0, HUGE_VALF})) << "rounded to nearest";
  EXPECT_EQ(values(named[1].second), (std::vector<float>{0.5, 3, -7}));
  EXPECT_EQ(values(named[2].second), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST(Parameters, RegularExpressionsRename) {
  const Folder folder;
  save_safetensors(folder / "net", {{"bert.encoder.layer.0.dense.weight", tensor({1.0})},
                                    {"bert.encoder.layer.11.dense.weight", tensor({2.0})},
                                    {"bert.encoder.layer.11.LayerNorm.weight", tensor({3.0})}});
  const std::vector<std::pair<std::string, Variable>> named{{"layers.0.dense.weight", Variable(zeros({1}))},
                                                            {"layers.11.dense.weight", Variable(zeros({1}))},
                                                            {"layers.11.norm.scale", Variable(zeros({1}))}};
  LoadOptions options{
      .rename = {{"bert.", ""}},
      .rename_regex = {{R"(^encoder\.layer\.(\d+))", "layers.$1"}, {R"(LayerNorm\.weight$)", "norm.scale"}}};
  load_parameters(named, folder / "net", options);
  EXPECT_EQ(all(named), (std::vector<std::vector<float>>{{1}, {2}, {3}}));
  options.rename_regex.push_back({"nothing", ""});
  expectInputError([&] { load_parameters(named, folder / "net", options); }, {"fit nothing: nothing"});
  options.rename_regex = {{"(", ""}};
  expectInputError([&] { load_parameters(named, folder / "net", options); }, {"'(' is no regular expression"});
}

TEST(Parameters, SkippedOnesKeepTheirValues) {
  const Folder folder;
  save_safetensors(folder / "net",
                   {{"conv.weight", ones({2})}, {"conv.bias", ones({1})}, {"fc.weight", ones({1000, 2})}});
  auto named = network();
  const LoadReport report = load_parameters(named, folder / "net", {.skip = {"fc.*"}});
  EXPECT_EQ(report.skipped, (Names{"fc.bias", "fc.weight"}));
  EXPECT_EQ(values(named[0].second), (std::vector<float>{1, 1}));
  EXPECT_EQ(values(named[2].second), values(network()[2].second));
  EXPECT_EQ(load_parameters(named, folder / "net", {.skip = {"*"}}).loaded, Names{});
  EXPECT_EQ(load_parameters(named, folder / "net", {.skip = {"f?.*s", "*.we*ht", "conv.bias"}}).skipped.size(), 4u);
}

TEST(Parameters, RefusesConfusedNames) {
  const Folder folder;
  save_parameters(network(), folder / "net");
  expectInputError(
      [&] {
        load_parameters(network(), folder / "net", {.strict = false, .rename = {{"fc.", "conv."}}});
      },
      {"become 'conv."});
  auto twice = network();
  twice.push_back(twice[0]);
  EXPECT_THROW(load_parameters(twice, folder / "net"), Error);
  EXPECT_THROW(save_parameters(twice, folder / "other"), Error);
  auto empty = network();
  empty[1].second = Variable();
  EXPECT_THROW(save_parameters(empty, folder / "other"), Error);
  expectInputError([&] { load_parameters(empty, folder / "net"); }, {"conv.bias (has no value yet"});
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

namespace {
std::string number(uint32_t n) { return {char(n >> 24), char(n >> 16), char(n >> 8), char(n)}; }
void writeSet(const Folder &folder, const std::string &images, const std::string &labels) {
  put(folder / "t10k-images-idx3-ubyte", images);
  put(folder / "t10k-labels-idx1-ubyte", labels);
}
} // namespace

TEST(FashionMnist, ReadsBothSets) {
  const std::string dir = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(dir))
    GTEST_SKIP() << "Debian's package dataset-fashion-mnist is missing: run ./dev setup";
  for (bool train : {true, false}) {
    const data::LabelledImages set = data::fashion_mnist(dir, train);
    const int64_t n = train ? 60000 : 10000;
    ASSERT_EQ(set.images.type(), (TensorType{f32, {n, 1, 28, 28}}));
    ASSERT_EQ(set.labels.type(), (TensorType{i64, {n}}));
    std::vector<int64_t> counts(10);
    for (int64_t kind : set.labels.to_vector<int64_t>())
      ++counts.at(static_cast<size_t>(kind));
    EXPECT_EQ(counts, std::vector<int64_t>(10, n / 10)) << "all kinds are equally frequent";
    const auto *pixels = static_cast<const float *>(set.images.data());
    const auto [low, high] = std::minmax_element(pixels, pixels + set.images.size());
    EXPECT_EQ(*low, 0.0f);
    EXPECT_EQ(*high, 1.0f);
  }
}

TEST(TokenWindows, AreWhatTheFileHolds) {
  const Folder folder;
  put(folder / "text", "abcdefghijk"); // 11 characters: three windows of 3, and one that follows
  const auto set = data::token_windows(folder / "text", 3);
  ASSERT_EQ(set.size(), 3);
  data::Rng random(1);
  EXPECT_EQ(set.read(1, random).x.to_vector<int32_t>(), (std::vector<int32_t>{'d', 'e', 'f'}));
  EXPECT_EQ(set.read(1, random).next.to_vector<int32_t>(), (std::vector<int32_t>{'e', 'f', 'g'}));
  put(folder / "wide", std::string("\1\2\3\4\5\6\xff\xff", 8));
  EXPECT_EQ(data::token_windows(folder / "wide", 3, {.bytes = 2}).read(0, random).next.to_vector<int32_t>(),
            (std::vector<int32_t>{0x403, 0x605, 0xffff}));
  EXPECT_EQ(data::token_windows(folder / "text", 3, {.begin = 0.5}).read(0, random).x.to_vector<int32_t>(),
            (std::vector<int32_t>{'f', 'g', 'h'}));
}

/// Shifted windows begin anywhere, the last as well, and never read beyond the file.
TEST(TokenWindows, Shift) {
  const Folder folder;
  put(folder / "text", "abcdefghijk");
  const auto set = data::token_windows(folder / "text", 3, {.shifted = true});
  std::set<int32_t> first, last;
  for (uint64_t epoch = 0; epoch < 100; ++epoch) {
    data::Rng random(1, epoch, 0);
    first.insert(set.read(0, random).x.to_vector<int32_t>()[0]);
    const data::TokenWindow window = set.read(2, random);
    last.insert(window.x.to_vector<int32_t>()[0]);
    EXPECT_EQ(window.x.to_vector<int32_t>()[1], window.next.to_vector<int32_t>()[0]);
    EXPECT_LE(window.next.to_vector<int32_t>()[2], 'k');
  }
  EXPECT_EQ(first, (std::set<int32_t>{'a', 'b', 'c'}));
  EXPECT_EQ(last, (std::set<int32_t>{'g', 'h'}));
}

TEST(TokenWindows, RefuseOtherFiles) {
  const Folder folder;
  put(folder / "text", "abc");
  put(folder / "empty", "");
  put(folder / "large", std::string("\0\0\0\x80\0\0\0\0", 8));
  const std::string text = folder / "text";
  expectInputError([&] { data::token_windows(folder / "none", 3); }, {"none", "No such file"});
  expectInputError([&] { data::token_windows(folder.path.string(), 3); }, {"no file"});
  expectInputError([&] { data::token_windows(folder / "empty", 3); }, {"0 tokens are too few for a window of 3"});
  expectInputError([&] { data::token_windows(text, 3); }, {"3 tokens are too few"});
  expectInputError([&] { data::token_windows(text, 1, {.bytes = 2}); }, {"3 bytes are no whole number of tokens of 2"});
  expectInputError([&] { data::token_windows(text, 1, {.bytes = 3}); }, {"1, 2 or 4"});
  expectInputError([&] { data::token_windows(text, 0); }, {"at least one"});
  expectInputError([&] { data::token_windows(text, 1, {.begin = 0.9, .end = 0.1}); }, {"shares are"});
  data::Rng random(1);
  expectInputError([&] { data::token_windows(folder / "large", 1, {.bytes = 4}).read(0, random); }, {"token 0", "more than i32"});
}

TEST(FashionMnist, ScalesPixelsInOrder) {
  const Folder folder;
  std::string pixels(2 * 784, '\0');
  pixels[1] = char(255);
  pixels[784] = char(51);
  writeSet(folder, number(0x803) + number(2) + number(28) + number(28) + pixels,
           number(0x801) + number(2) + std::string("\7\0", 2));
  const data::LabelledImages set = data::fashion_mnist(folder.path.string(), false);
  const std::vector<float> got = set.images.to_vector<float>();
  EXPECT_EQ(got[0], 0.0f);
  EXPECT_EQ(got[1], 1.0f);
  EXPECT_EQ(got[784], 0.2f);
  EXPECT_EQ(set.labels.to_vector<int64_t>(), (std::vector<int64_t>{7, 0}));
}

TEST(FashionMnist, RefusesOtherFiles) {
  const Folder folder;
  auto refused = [&](std::initializer_list<std::string> texts) {
    expectInputError([&] { data::fashion_mnist(folder.path.string(), false); }, texts);
  };
  refused({"t10k-images-idx3-ubyte.gz", "no such file", "dataset-fashion-mnist"});
  const std::string images = number(0x803) + number(2) + number(28) + number(28) + std::string(2 * 784, '\0');
  const std::string labels = number(0x801) + number(2) + std::string(2, '\1');
  writeSet(folder, images, number(0x801) + number(3) + "\1\1\1");
  refused({"t10k-labels-idx1-ubyte", "3 labels for the 2 images"});
  writeSet(folder, images, number(0x801) + number(2) + "\1\12");
  refused({"label 10 at 1"});
  writeSet(folder, number(0x803) + number(2) + number(32) + number(32) + std::string(2048, '\0'), labels);
  refused({"32 x 32 pixels"});
  writeSet(folder, labels, images);
  refused({"t10k-images-idx3-ubyte", "not an IDX file"});
  writeSet(folder, images.substr(0, 1000), labels);
  refused({"t10k-images-idx3-ubyte", "truncated"});
}

TEST(Parameters, AModulesWeightsTravelInATableOfNames) {
  // A network trained elsewhere: other names, matrices as [out, in]. Loading must give what that network computes.
  const Folder folder;
  nn::Sequential net{nn::Dense(3, relu), nn::Dense(2)};
  net.initialize({{f32, {4, 5}}}, 1);
  std::map<std::string, Tensor> foreign;
  for (const auto &[name, parameter] : net.parameters()) {
    const Tensor value = parameter.value();
    foreign.emplace((name[0] == '0' ? "hidden" : "head") + name.substr(1),
                    value.rank() == 2 ? transpose(value) : value);
  }
  save_safetensors(folder / "foreign", foreign);
  nn::Sequential other{nn::Dense(3, relu), nn::Dense(2)};
  other.initialize({{f32, {4, 5}}}, 2);
  const Tensor x = rng::normal({4, 5}, 3);
  ASSERT_FALSE(equal(net(x), other(x)));
  other.hybridize();
  other(x); // programs read the parameters when they are called
  const LoadReport report = other.load_weights(
      folder / "foreign", {.rename = {{"hidden.", "0."}, {"head.", "1."}}, .transpose = {"*.weight"}});
  EXPECT_EQ(report.loaded.size(), 4u);
  const std::vector<float> want = net(x).to_vector<float>(), got = other(x).to_vector<float>();
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5);
  EXPECT_EQ(other.stats().traces, 1u);

  const uint32_t line = std::source_location::current().line() + 2;
  try {
    other.load_weights(folder / "foreign");
    FAIL();
  } catch (const InputError &e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_NE(std::string(e.where().file).find("FilesTest.cpp"), std::string::npos) << e.what();
  }
  other.save_weights(folder / "ours");
  net.load_weights(folder / "ours");
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(equal(net.parameters()[i].second.value(), other.parameters()[i].second.value()));
}
