// Samples, and batches of them made ahead by worker threads.
//
//   struct Batch { Tensor x, label; };
//   auto set = data::map(data::fashion_mnist(dir, true), [](data::Sample s, data::Rng &r) {
//     return Batch{r.flip() ? flip(s.image, {-1}) : s.image, s.label};
//   });
//   data::Loader loader(set, {.batch = 256, .shuffle = true, .workers = 2, .seed = 1});
//   for (int64_t e = loader.position().epoch; e < 10; ++e)   // goes on where a loaded position says
//     for (Batch b : loader.epoch(e))
//       step(b);
//
// The batches of an epoch depend on seed, epoch and data alone: not on the number of workers, nor on where the loader
// began.
#pragma once

#include <tressel/machine.h>
#include <tressel/tensor.h>
#include <tressel/tree.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tressel::data {

/// Random numbers for one sample, counter-based (Philox 4x32-10): a function of seed, epoch and index alone, whichever
/// thread draws them.
class Rng {
public:
  explicit Rng(uint64_t seed, uint64_t epoch = 0, uint64_t index = 0);
  uint32_t next(); ///< 32 random bits
  /// In [low, high).
  double uniform(double low = 0, double high = 1);
  /// 0 to n - 1, uniformly. Throws Error unless 1 <= n <= 2^32.
  int64_t below(int64_t n);
  bool flip(double probability = 0.5) { return uniform() < probability; }

private:
  uint64_t key_;
  uint64_t counter_ = 0;
  uint32_t words_[4] = {};
  unsigned left_ = 0;
};

template <typename S> class Dataset;

namespace detail {

/// The tensors of one sample, and the rest of it.
struct Leaves {
  std::vector<Tensor> tensors;
  std::vector<uint64_t> words;
  std::shared_ptr<void> sample; ///< the tree that they were taken from
};
template <typename S> Leaves leavesOf(S sample) {
  struct Visitor {
    Leaves &leaves;
    void tensor(const Tensor &t) { leaves.tensors.push_back(t); }
    void word(uint64_t w) { leaves.words.push_back(w); }
  };
  Leaves leaves;
  Visitor visitor{leaves};
  tressel::detail::visitTree(sample, visitor);
  leaves.sample = std::make_shared<S>(std::move(sample));
  return leaves;
}

/// Row `index` of each tensor, copied.
std::vector<Tensor> rowsAt(std::span<const Tensor> tensors, int64_t index);
/// The common number of rows. Throws ShapeError if the numbers differ.
int64_t countRows(std::span<const Tensor> tensors, const std::source_location &where);
void checkIndex(int64_t index, int64_t size);

} // namespace detail

/// Samples by number. Reading is pure: several threads may read at once, and the same index with the same Rng gives the
/// same sample.
template <typename S> class Dataset {
public:
  using Sample = S;
  using Read = std::function<S(int64_t index, Rng &random)>;
  Dataset(int64_t size, Read read) : size_(size), read_(std::move(read)) {}

  int64_t size() const { return size_; }
  /// Throws Error for an index out of range, and what the reading function throws.
  S read(int64_t index, Rng &random) const {
    detail::checkIndex(index, size_);
    return read_(index, random);
  }
  S operator[](int64_t index) const {
    Rng random(0, 0, static_cast<uint64_t>(index));
    return read(index, random);
  }

private:
  int64_t size_;
  Read read_;
};

/// Sample i is row i of every tensor of the tree; all have the same number of rows (ShapeError). Tensors on an
/// accelerator are copied to the host at the first read.
template <typename T> Dataset<T> rows(T tensors, std::source_location where = std::source_location::current()) {
  auto leaves = std::make_shared<const detail::Leaves>(detail::leavesOf(std::move(tensors)));
  const int64_t size = detail::countRows(leaves->tensors, where);
  return {size, [leaves](int64_t index, Rng &) {
            T sample = *static_cast<const T *>(leaves->sample.get());
            std::vector<Tensor> rows = detail::rowsAt(leaves->tensors, index);
            size_t next = 0;
            auto take = [&](const Tensor &) { return std::move(rows[next++]); };
            tressel::detail::mapTree(sample, take);
            return sample;
          }};
}

/// fn(sample) or fn(sample, rng) of each sample.
template <typename S, typename Fn> auto map(Dataset<S> set, Fn fn) {
  if constexpr (std::is_invocable_v<Fn, S, Rng &>) {
    using R = std::invoke_result_t<Fn, S, Rng &>;
    return Dataset<R>(set.size(), [set, fn](int64_t index, Rng &random) { return fn(set.read(index, random), random); });
  } else {
    using R = std::invoke_result_t<Fn, S>;
    return Dataset<R>(set.size(), [set, fn](int64_t index, Rng &random) { return fn(set.read(index, random)); });
  }
}

/// The samples of these indices, in this order.
template <typename S> Dataset<S> subset(Dataset<S> set, std::vector<int64_t> indices) {
  for (int64_t index : indices)
    detail::checkIndex(index, set.size());
  const auto size = static_cast<int64_t>(indices.size());
  return {size, [set, indices = std::move(indices)](int64_t index, Rng &random) { return set.read(indices[static_cast<size_t>(index)], random); }};
}
/// Samples [begin, end): a part to validate with, say.
template <typename S> Dataset<S> slice(Dataset<S> set, int64_t begin, int64_t end) {
  std::vector<int64_t> indices;
  for (int64_t i = begin; i < end; ++i)
    indices.push_back(i);
  return subset(std::move(set), std::move(indices));
}
/// The samples of `first`, then those of `second`.
template <typename S> Dataset<S> concat(Dataset<S> first, Dataset<S> second) {
  const int64_t size = first.size();
  return {size + second.size(), [first, second, size](int64_t index, Rng &random) {
            return index < size ? first.read(index, random) : second.read(index - size, random);
          }};
}

struct LoaderOptions {
  int64_t batch = 32;        ///< samples of a batch; the last may have fewer
  bool shuffle = false;      ///< another order in each epoch
  bool drop_last = false;    ///< no last batch with fewer
  int workers = 0;           ///< threads that make batches, each a whole one; 0: the thread that takes them
  int64_t prefetch = 2;      ///< batches that are made ahead of the one that is taken, with workers
  std::optional<Device> device = {}; ///< the device that batches are copied to, ahead of the step that reads them;
                                     ///< without one they stay on the host
  uint64_t seed = 0;                 ///< of the shuffled orders and of samples' random numbers
};

/// The next batch of a loader: its epoch and number.
struct Position {
  int64_t epoch = 0, batch = 0;
  bool operator==(const Position &) const = default;
};

namespace detail {

/// The part of a loader that does not depend on the type of samples.
class LoaderCore {
public:
  using Read = std::function<Leaves(int64_t index, Rng &random)>;
  /// Throws Error for invalid options.
  LoaderCore(int64_t size, Read read, LoaderOptions options, const std::source_location &where);
  int64_t numBatches() const;
  /// The indices of the epoch's samples, in the order of its batches.
  std::vector<int64_t> order(int64_t epoch) const;
  /// A batch: the tensors of these samples, stacked.
  Leaves make(std::span<const int64_t> indices, int64_t epoch) const;
  const LoaderOptions &options() const { return options_; }

  Position position() const { return position_; }
  void seek(Position position, const std::source_location &where);
  void advance(int64_t epoch, int64_t next);
  /// i64[8]: what identifies the loader, and its position.
  Tensor state() const;
  void loadState(const Tensor &state, const std::source_location &where);

private:
  const int64_t size_;
  const Read read_;
  const LoaderOptions options_;
  Position position_;
};

/// The batches of an epoch, in order, as they are made.
class EpochQueue {
public:
  EpochQueue(std::shared_ptr<LoaderCore> core, int64_t epoch, int64_t from);
  ~EpochQueue(); ///< stops the workers
  EpochQueue(const EpochQueue &) = delete;
  /// False when no batch is left. Rethrows the exception of making the batch, and then ends the epoch.
  bool next(Leaves &batch);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace detail

/// Batches of a dataset: trees like its samples, where each tensor has one more dimension in front. Parts of a sample
/// that are no tensors must be equal in all samples of a batch. Used by one thread at a time; it owns its workers.
template <typename S> class Loader {
public:
  explicit Loader(const Dataset<S> &set, LoaderOptions options = {}, std::source_location where = std::source_location::current())
      : core_(std::make_shared<detail::LoaderCore>(
            set.size(), [set](int64_t index, Rng &random) { return detail::leavesOf(set.read(index, random)); }, std::move(options), where)) {}

  /// Per epoch.
  int64_t num_batches() const { return core_->numBatches(); }

  class Iterator {
  public:
    using value_type = S;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    explicit Iterator(detail::EpochQueue *queue) : queue_(queue) { ++*this; }
    const S &operator*() const { return *static_cast<const S *>(batch_.sample.get()); }
    Iterator &operator++() {
      if (!queue_->next(batch_)) {
        queue_ = nullptr;
        return *this;
      }
      size_t next = 0;
      auto take = [&](const Tensor &) { return std::move(batch_.tensors[next++]); };
      tressel::detail::mapTree(*static_cast<S *>(batch_.sample.get()), take);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !queue_; }

  private:
    detail::EpochQueue *queue_;
    detail::Leaves batch_;
  };
  /// A range that can be iterated once.
  class Epoch {
  public:
    Iterator begin() { return Iterator(&queue_); }
    std::default_sentinel_t end() const { return {}; }

  private:
    friend class Loader;
    Epoch(std::shared_ptr<detail::LoaderCore> core, int64_t epoch, int64_t from) : queue_(std::move(core), epoch, from) {}
    detail::EpochQueue queue_;
  };
  /// Starts at the position if that is in this epoch, else at the first batch. An error of a sample is thrown where its
  /// batch would be taken.
  Epoch epoch(int64_t number) { return Epoch(core_, number, core_->position().epoch == number ? core_->position().batch : 0); }

  /// The batch after the last one that was taken.
  Position position() const { return core_->position(); }
  /// Throws Error for a position that this loader does not have.
  void seek(Position position, std::source_location where = std::source_location::current()) { core_->seek(position, where); }
  /// The position as a tensor, for checkpoints, with the seed and the sizes of set and batch.
  Tensor state() const { return core_->state(); }
  /// Throws Error for the state of another loader.
  void load_state(const Tensor &state, std::source_location where = std::source_location::current()) { core_->loadState(state, where); }

private:
  std::shared_ptr<detail::LoaderCore> core_;
};

} // namespace tressel::data
