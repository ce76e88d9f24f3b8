// Metrics against plain C++, imperative and in traces; progress in logs and curves.
#include "test/unit/frontend/Files.h"

#include <tressel/tressel.h>

#include <cmath>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tressel {
namespace {

TEST(Metrics, MeansAndPerplexity) {
  metrics::Mean mean;
  metrics::Perplexity perplexity;
  EXPECT_TRUE(std::isnan(mean.value()));
  auto step = jit([mean, perplexity](Tensor x) {
    mean.update(x);
    perplexity.update(x);
    return x;
  });
  step(tensor({1.0f, 2.0f}));
  step(tensor({6.0f}));
  EXPECT_DOUBLE_EQ(mean.value(), 3);
  EXPECT_DOUBLE_EQ(perplexity.value(), std::exp(3.0));
  mean.reset();
  mean.update(0.5f);
  EXPECT_DOUBLE_EQ(mean.value(), 0.5);
}

TEST(Metrics, Accuracy) {
  const Tensor scores = tensor({{0.1f, 0.7f, 0.2f}, {0.5f, 0.2f, 0.3f}, {0.1f, 0.3f, 0.6f}, {0.4f, 0.5f, 0.1f}});
  const Tensor labels = tensor({1, 2, 2, -1}, i64);
  metrics::Accuracy first, second(2), ignoring(1, -1);
  for (int i = 0; i < 2; ++i) {
    first.update(scores, labels);
    second.update(scores, labels);
    ignoring.update(scores, labels);
  }
  EXPECT_DOUBLE_EQ(first.value(), 2 / 4.0);
  EXPECT_DOUBLE_EQ(second.value(), 3 / 4.0);
  EXPECT_DOUBLE_EQ(ignoring.value(), 2 / 3.0);
  metrics::Accuracy pixels; // [batch, classes, places]
  pixels.update(tensor({{{0.9f, 0.1f}, {0.1f, 0.9f}}}), tensor({{0, 0}}, i64));
  EXPECT_DOUBLE_EQ(pixels.value(), 0.5);
  EXPECT_THROW(first.update(scores, tensor({1, 2}, i64)), ShapeError);
  EXPECT_THROW(first.update(scores, ones({4})), ShapeError);
  EXPECT_THROW(metrics::Accuracy(0), Error);
}

TEST(Metrics, Confusion) {
  metrics::Confusion confusion(3);
  auto step = jit([confusion](Tensor scores, Tensor labels) {
    confusion.update(scores, labels);
    return labels;
  });
  // predicted 0 1 1 2 0, labels 0 1 2 2 1
  const Tensor scores = cast(expand_dims(tensor({0, 1, 1, 2, 0}, i64), 1) == arange(0, 3), f32);
  step(scores, tensor({0, 1, 2, 2, 1}, i64));
  EXPECT_EQ(confusion.matrix().to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_DOUBLE_EQ(confusion.accuracy(), 0.6);
  EXPECT_EQ(confusion.precision(), (std::vector<double>{0.5, 0.5, 1}));
  EXPECT_EQ(confusion.recall(), (std::vector<double>{1, 0.5, 0.5}));
  EXPECT_NEAR(confusion.macro_f1(), (2 / 3.0 + 0.5 + 2 / 3.0) / 3, 1e-12);
}

TEST(Progress, WritesLinesRecordsAndCurves) {
  const test::Folder folder;
  const std::string shown = folder / "shown", log = folder / "run.jsonl", curve = folder / "run.svg";
  const int fd = ::open(shown.c_str(), O_CREAT | O_WRONLY, 0600);
  {
    Progress progress(3, {.label = "lenet", .log = log, .curve = curve, .seconds = 0, .descriptor = fd});
    const Tensor loss = full({}, 0.5);
    loss.wait();
    progress.step({{"loss", loss}});
    progress.step({{"loss", 0.25}, {"rate", 0.01}});
    progress.note({{"acc<uracy", 0.875}});
    progress.note({{"a\nb\x1f", 1.0}});
    progress.step({{"loss", std::nan("")}});
  }
  ::close(fd);
  const std::string lines = test::get(shown);
  EXPECT_NE(lines.find("lenet  2/3  loss 0.25  rate 0.01"), std::string::npos) << lines;
  EXPECT_NE(lines.find("lenet  2/3  acc<uracy 0.875\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("left\n"), std::string::npos) << lines;
  EXPECT_EQ(lines.find('\r'), std::string::npos);
  const std::string records = test::get(log);
  EXPECT_EQ(records.find("{\"step\": 1, \"seconds\": 0.0"), 0U) << records;
  EXPECT_NE(records.find("\"loss\": 0.25, \"rate\": 0.01}\n"), std::string::npos) << records;
  EXPECT_NE(records.find("\"a\\u000ab\\u001f\": 1}\n"), std::string::npos) << records;
  EXPECT_NE(records.find("\"loss\": \"nan\"}\n"), std::string::npos) << records;
  const std::string svg = test::get(curve);
  EXPECT_NE(svg.find(">acc&lt;uracy<"), std::string::npos);
  EXPECT_NE(svg.find("<polyline"), std::string::npos);
  EXPECT_THROW(Progress(3, {.log = "/no/such/folder/x"}), RuntimeError);
}

} // namespace
} // namespace tressel
