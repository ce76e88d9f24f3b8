// Batches: the same for any number of workers and from any position, errors where they belong, and no thread left behind.
#include <tressel/tressel.h>

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <thread>

using namespace tressel;

namespace {

struct Batch {
  Tensor x, label;
};
using Floats = std::vector<float>;

/// Sample i is three times i + 0.5, and i.
data::Dataset<Batch> numbered(int64_t n) {
  Floats x;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    x.insert(x.end(), 3, static_cast<float>(i) + 0.5f);
    labels.push_back(i);
  }
  return data::rows(Batch{from_span(x, {n, 3}), from_span(labels, {n})});
}
/// With a random number of its own in front.
data::Dataset<Batch> augmented(int64_t n) {
  return data::map(numbered(n), [](Batch b, data::Rng &r) {
    return Batch{concat({full({1}, r.uniform(), f32), b.x}, 0), b.label};
  });
}
std::vector<Floats> allOf(data::Loader<Batch> &loader, int64_t epoch) {
  std::vector<Floats> all;
  for (const Batch &b : loader.epoch(epoch)) {
    all.push_back(b.x.to_vector<float>());
    for (int64_t label : b.label.to_vector<int64_t>())
      all.back().push_back(static_cast<float>(label));
  }
  return all;
}
template <typename E = Error, typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const E &e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(Loader, GivesEverySampleOnceInItsBatch) {
  data::Loader<Batch> loader(numbered(10), {.batch = 4});
  EXPECT_EQ(loader.num_batches(), 3);
  std::vector<int64_t> seen, sizes;
  for (const Batch &b : loader.epoch(0)) {
    EXPECT_EQ(b.x.type().str(), TensorType({f32, {b.label.size(), 3}}).str());
    sizes.push_back(b.label.size());
    const auto x = b.x.to_vector<float>();
    for (int64_t label : b.label.to_vector<int64_t>()) {
      EXPECT_EQ(x[(seen.size() % 4) * 3], static_cast<float>(label) + 0.5f);
      seen.push_back(label);
    }
  }
  std::vector<int64_t> expected(10);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
  data::Loader dropping(numbered(10), {.batch = 4, .drop_last = true});
  EXPECT_EQ(dropping.num_batches(), 2);
}

TEST(Loader, IsTheSameForAnyNumberOfWorkers) {
  const auto set = augmented(103);
  std::vector<std::vector<Floats>> first;
  for (int workers : {0, 1, 2, 7})
    for (int64_t prefetch : {1, 3, 20}) {
      data::Loader<Batch> loader(set, {.batch = 10, .shuffle = true, .workers = workers, .prefetch = prefetch, .seed = 5});
      std::vector<std::vector<Floats>> epochs;
      for (int64_t e = 0; e < 3; ++e)
        epochs.push_back(allOf(loader, e));
      if (first.empty())
        first = epochs;
      ASSERT_EQ(epochs, first) << workers << " workers, " << prefetch;
    }
  EXPECT_NE(first[0], first[1]);
  std::multiset<float> labels;
  for (const Floats &batch : first[1])
    labels.insert(batch.end() - static_cast<ptrdiff_t>(batch.size() / 5), batch.end());
  EXPECT_EQ(labels.size(), 103u);
  EXPECT_EQ(std::set<float>(labels.begin(), labels.end()).size(), 103u);
  data::Loader<Batch> other(set, {.batch = 10, .shuffle = true, .seed = 6});
  EXPECT_NE(allOf(other, 0), first[0]);
}

TEST(Loader, GoesOnWhereItsStateSays) {
  const auto set = augmented(50);
  const data::LoaderOptions options{.batch = 8, .shuffle = true, .workers = 2, .seed = 9};
  data::Loader<Batch> whole(set, options);
  std::vector<Floats> expected;
  for (int64_t e = 0; e < 3; ++e)
    for (Floats &batch : allOf(whole, e))
      expected.push_back(std::move(batch));
  EXPECT_EQ(whole.position(), (data::Position{3, 0}));
  for (size_t stop : {size_t(1), size_t(6), size_t(7), size_t(9), size_t(20)}) {
    data::Loader<Batch> before(set, options);
    size_t taken = 0;
    while (taken < stop)
      for (const Batch &b : before.epoch(before.position().epoch)) {
        (void)b;
        if (++taken == stop)
          break;
      }
    const Tensor state = before.state();
    data::Loader<Batch> after(set, options);
    after.load_state(state);
    EXPECT_EQ(after.position(), before.position());
    std::vector<Floats> rest;
    for (int64_t e = after.position().epoch; e < 3; ++e)
      for (Floats &batch : allOf(after, e))
        rest.push_back(std::move(batch));
    EXPECT_EQ(rest, std::vector<Floats>(expected.begin() + static_cast<ptrdiff_t>(stop), expected.end())) << stop;
  }
}

TEST(Loader, RefusesTheStateOfAnother) {
  data::Loader<Batch> loader(numbered(10), {.batch = 4, .seed = 1});
  const Tensor state = loader.state();
  data::Loader<Batch> seeded(numbered(10), {.batch = 4, .seed = 2}), larger(numbered(11), {.batch = 4, .seed = 1});
  EXPECT_NE(messageOf([&] { seeded.load_state(state); }).find("its seed is 1, not 2"), std::string::npos);
  EXPECT_NE(messageOf([&] { larger.load_state(state); }).find("its number of samples is 10, not 11"), std::string::npos);
  EXPECT_NE(messageOf([&] { loader.load_state(ones({3})); }).find("f32[3]"), std::string::npos);
  EXPECT_NE(messageOf([&] { loader.seek({0, 3}); }).find("an epoch has 3 batches"), std::string::npos);
  EXPECT_EQ(loader.position(), data::Position());
}

TEST(Loader, ThrowsTheErrorOfASampleWhereItsBatchIsTaken) {
  for (int workers : {0, 3}) {
    const auto set = data::map(numbered(40), [](Batch b) {
      if (b.label.item<int64_t>() == 17)
        throw InputError("image 17 is damaged");
      return b;
    });
    data::Loader<Batch> loader(set, {.batch = 4, .workers = workers});
    int64_t batches = 0;
    EXPECT_EQ(messageOf<InputError>([&] {
                for (const Batch &b : loader.epoch(0))
                  batches += b.x.defined();
              }),
              "image 17 is damaged");
    EXPECT_EQ(batches, 4);
    EXPECT_EQ(loader.position(), (data::Position{0, 4}));
  }
}

TEST(Loader, SamplesThatDifferMakeNoBatch) {
  const data::Dataset<Batch> set(8, [](int64_t i, data::Rng &) { return Batch{ones({i < 5 ? 2 : 3}), tensor(i)}; });
  data::Loader<Batch> loader(set, {.batch = 4});
  const std::string message = messageOf<ShapeError>([&] {
    for (const Batch &b : loader.epoch(0))
      (void)b;
  });
  EXPECT_NE(message.find("samples 4 and 5 make no batch: tensor 0 of them is f32[2] and f32[3]"), std::string::npos) << message;
  struct Kind {
    Tensor x;
    int kind;
  };
  const data::Dataset<Kind> kinds(4, [](int64_t i, data::Rng &) { return Kind{ones({2}), static_cast<int>(i / 2)}; });
  data::Loader<Kind> pairs(kinds, {.batch = 2}), all(kinds, {.batch = 4});
  std::vector<int> seen;
  for (const Kind &k : pairs.epoch(0))
    seen.push_back(k.kind);
  EXPECT_EQ(seen, (std::vector<int>{0, 1}));
  EXPECT_NE(messageOf<ShapeError>([&] { (void)*all.epoch(0).begin(); }).find("what is no tensor in them differs"), std::string::npos);
}

TEST(Loader, StopsWhenNoMoreAreTaken) {
  std::atomic<int> reads{0};
  const data::Dataset<Batch> set(1000, [&](int64_t i, data::Rng &) {
    ++reads;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    return Batch{ones({2}), tensor(i)};
  });
  data::Loader<Batch> loader(set, {.batch = 2, .workers = 4, .prefetch = 4});
  for (const Batch &b : loader.epoch(0)) {
    (void)b;
    break;
  }
  EXPECT_LE(reads, 2 * (1 + 4 + 4)); // what was taken, the ring, and what the workers had begun
  { auto unused = loader.epoch(1); }
}

TEST(Loader, OptionsThatMeanNothingAreErrors) {
  auto refused = [](int64_t n, data::LoaderOptions options) { return messageOf([&] { data::Loader<Batch>(numbered(n), options); }); };
  EXPECT_NE(refused(4, {.batch = 0}).find("a batch of 0 samples"), std::string::npos);
  EXPECT_NE(refused(4, {.batch = 8, .drop_last = true}).find("do not fill a batch of 8"), std::string::npos);
  EXPECT_NE(refused(4, {.workers = -1}).find("-1 workers"), std::string::npos);
  EXPECT_NE(refused(4, {.prefetch = 0}).find("a prefetch of 0"), std::string::npos);
  EXPECT_NE(messageOf([] { data::Loader<Batch>(data::Dataset<Batch>(0, nullptr)); }).find("has no samples"), std::string::npos);
  EXPECT_NE(messageOf<ShapeError>([] { data::rows(Batch{ones({3, 2}), ones({4})}); }).find("tensors of 3 and of 4 rows"), std::string::npos);
  EXPECT_NE(messageOf([] { (void)numbered(3)[3]; }).find("no sample 3 among 3"), std::string::npos);
}

TEST(Dataset, ComposesSubsetsSlicesAndSums) {
  auto labels = [](const data::Dataset<Batch> &set) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < set.size(); ++i)
      all.push_back(set[i].label.item<int64_t>());
    return all;
  };
  EXPECT_EQ(labels(data::subset(numbered(9), {8, 0, 4})), (std::vector<int64_t>{8, 0, 4}));
  EXPECT_EQ(labels(data::slice(numbered(9), 3, 6)), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(labels(data::concat(data::slice(numbered(9), 0, 2), numbered(3))), (std::vector<int64_t>{0, 1, 0, 1, 2}));
  EXPECT_NE(messageOf([] { data::subset(numbered(2), {2}); }).find("no sample 2 among 2"), std::string::npos);
}

TEST(Rng, IsTheSameForASeedEpochAndIndex) {
  data::Rng a(1, 2, 3), b(1, 2, 3), c(1, 3, 2);
  std::vector<uint32_t> x, y, z;
  for (int i = 0; i < 9; ++i)
    x.push_back(a.next()), y.push_back(b.next()), z.push_back(c.next());
  EXPECT_EQ(x, y);
  EXPECT_NE(x, z);
  data::Rng r(7);
  std::vector<int> counts(6, 0);
  double sum = 0, least = 1, most = 0;
  for (int i = 0; i < 60'000; ++i) {
    ++counts[static_cast<size_t>(r.below(6))];
    const double u = r.uniform(0, 2);
    sum += u, least = std::min(least, u), most = std::max(most, u);
  }
  for (int count : counts)
    EXPECT_NEAR(count, 10'000, 500); // five deviations
  EXPECT_NEAR(sum / 60'000, 1, 0.02);
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 2);
  EXPECT_EQ(data::Rng(7).below(1), 0);
  EXPECT_LT(r.below(int64_t(1) << 32), int64_t(1) << 32);
  EXPECT_NE(messageOf([&] { r.below(0); }).find("below 0"), std::string::npos);
}

TEST(Loader, BringsBatchesToADeviceAhead) {
  use_machine("sim:2gpu-pcie3");
  {
    data::Loader<Batch> loader(numbered(10), {.batch = 4, .workers = 2, .device = gpu(1)});
    int64_t next = 0;
    for (const Batch &b : loader.epoch(0)) {
      EXPECT_EQ(b.x.device(), gpu(1));
      for (int64_t label : b.label.to_vector<int64_t>())
        EXPECT_EQ(label, next++);
    }
    EXPECT_EQ(next, 10);
  }
  use_machine("cpu");
}

} // namespace
