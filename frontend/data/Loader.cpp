// Batches made ahead. Workers claim batch numbers in turn and put finished batches into a ring, from which the loader's
// thread takes them in order. So the order does not depend on the workers, and at most `prefetch` batches are in memory
// beside the one in use.
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/tensor/Random.h"
#include "tressel/runtime/Shutdown.h"

#include <tressel/loader.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

namespace tressel::data {

using tressel::detail::allocateTensor;
using tressel::detail::fail;
using tressel::detail::toLoc;

//--- Random numbers ---------------------------------------------------------------------------------------------------
/// The counter of shuffled orders, distinct from those of all samples.
constexpr uint64_t kOrder = ~uint64_t(0);

/// Must stay the same in every version, as the position in a checkpoint relies on these numbers.
static uint64_t keyFor(uint64_t key, uint64_t number) {
  const auto words = tressel::detail::philox(key, number);
  return uint64_t(words[0]) << 32 | words[1];
}
Rng::Rng(uint64_t seed, uint64_t epoch, uint64_t index) : key_(keyFor(keyFor(seed, epoch), index)) {}

uint32_t Rng::next() {
  if (left_ == 0) {
    const auto words = tressel::detail::philox(key_, counter_++);
    std::ranges::copy(words, words_);
    left_ = 4;
  }
  return words_[4 - left_--];
}

double Rng::uniform(double low, double high) {
  const uint64_t high32 = next(), bits = high32 << 21 | next() >> 11; // 53
  return low + (high - low) * (static_cast<double>(bits) * 0x1p-53);
}

/// Lemire, "Fast random integer generation in an interval", 2019.
int64_t Rng::below(int64_t n) {
  if (n < 1 || n > int64_t(1) << 32)
    throw Error(Error::Details{.message = "a random number below " + std::to_string(n) + " was asked for", .hint = "ask for one below 1 to 2^32"});
  const auto range = static_cast<uint64_t>(n);
  const uint64_t few = (uint64_t(1) << 32) % range; // a product with a smaller low part is rejected
  for (;;)
    if (const uint64_t product = next() * range; (product & 0xFFFFFFFF) >= few)
      return static_cast<int64_t>(product >> 32);
}

namespace detail {

//--- Rows -------------------------------------------------------------------------------------------------------------
void checkIndex(int64_t index, int64_t size) {
  if (index < 0 || index >= size)
    throw Error("there is no sample " + std::to_string(index) + " among " + std::to_string(size));
}

int64_t countRows(std::span<const Tensor> tensors, const std::source_location &where) {
  int64_t rows = -1;
  for (const Tensor &t : tensors) {
    if (t.rank() == 0)
      fail<ShapeError>("a tensor without dimensions has no rows", toLoc(where), "data::rows");
    const int64_t mine = t.type().shape.extent(0);
    if (rows >= 0 && mine != rows)
      fail<ShapeError>("tensors of " + std::to_string(rows) + " and of " + std::to_string(mine) + " rows are no samples", toLoc(where), "data::rows");
    rows = mine;
  }
  if (rows < 0)
    fail<ShapeError>("samples have at least one tensor", toLoc(where), "data::rows");
  return rows;
}

static Shape rowOf(const Shape &shape) {
  Shape row;
  for (int i = 1; i < shape.rank(); ++i)
    row.push_back(shape[i]);
  return row;
}

std::vector<Tensor> rowsAt(std::span<const Tensor> tensors, int64_t index) {
  std::vector<Tensor> rows;
  for (const Tensor &t : tensors) {
    const TensorType type{t.dtype(), rowOf(t.type().shape)};
    const int64_t bytes = type.bytes();
    Tensor row = allocateTensor(type, {}, "data::rows");
    std::memcpy(row.impl()->storage->data(), static_cast<const std::byte *>(t.data()) + index * bytes, static_cast<size_t>(bytes));
    rows.push_back(std::move(row));
  }
  return rows;
}

//--- Batches ----------------------------------------------------------------------------------------------------------
LoaderCore::LoaderCore(int64_t size, Read read, LoaderOptions options, const std::source_location &where)
    : size_(size), read_(std::move(read)), options_(std::move(options)) {
  auto refuse = [&](const std::string &message, const char *hint) { fail<Error>(message, toLoc(where), "data::Loader", hint); };
  if (size < 1)
    refuse("the dataset has no samples", "look at what it was read from");
  if (options_.batch < 1)
    refuse("a batch of " + std::to_string(options_.batch) + " samples was asked for", "a batch has at least one");
  if (options_.workers < 0 || options_.workers > 1024)
    refuse(std::to_string(options_.workers) + " workers were asked for", "0 to 1024; 0: the thread that takes the batches makes them");
  if (options_.prefetch < 1)
    refuse("a prefetch of " + std::to_string(options_.prefetch) + " batches was asked for", "at least 1; workers = 0 makes none ahead");
  if (numBatches() == 0)
    refuse("the " + std::to_string(size) + " samples do not fill a batch of " + std::to_string(options_.batch) + ", and the last one is dropped",
           "leave drop_last, or take smaller batches");
}

int64_t LoaderCore::numBatches() const { return options_.drop_last ? size_ / options_.batch : (size_ - 1) / options_.batch + 1; }

std::vector<int64_t> LoaderCore::order(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(size_));
  std::iota(order.begin(), order.end(), int64_t(0));
  if (options_.shuffle) { // Fisher and Yates
    Rng random(options_.seed, static_cast<uint64_t>(epoch), kOrder);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  return order;
}

Leaves LoaderCore::make(std::span<const int64_t> indices, int64_t epoch) const {
  Leaves batch;
  for (size_t row = 0; row < indices.size(); ++row) {
    Rng random(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(indices[row]));
    Leaves sample = read_(indices[row], random);
    auto refuse = [&](const std::string &what) {
      throw ShapeError(Error::Details{.message = "samples " + std::to_string(indices[0]) + " and " + std::to_string(indices[row]) + " make no batch: " + what,
                                      .op = "data::Loader"});
    };
    if (row == 0) {
      batch.words = sample.words;
      batch.sample = sample.sample;
      for (const Tensor &t : sample.tensors) {
        if (t.rank() == kMaxRank)
          throw ShapeError(Error::Details{.message = "samples of " + std::to_string(kMaxRank) + " dimensions make no batch", .op = "data::Loader"});
        TensorType type{t.dtype(), {static_cast<int64_t>(indices.size())}};
        for (int i = 0; i < t.rank(); ++i)
          type.shape.push_back(t.type().shape[i]);
        batch.tensors.push_back(allocateTensor(type, {}, "data::Loader"));
      }
    }
    if (sample.tensors.size() != batch.tensors.size() || sample.words != batch.words)
      refuse("what is no tensor in them differs");
    for (size_t k = 0; k < sample.tensors.size(); ++k) {
      const Tensor &from = sample.tensors[k], &to = batch.tensors[k];
      if (from.dtype() != to.dtype() || rowOf(to.type().shape) != from.type().shape)
        refuse("tensor " + std::to_string(k) + " of them is " + TensorType{to.dtype(), rowOf(to.type().shape)}.str() + " and " + from.type().str());
      const int64_t bytes = from.type().bytes();
      std::memcpy(static_cast<std::byte *>(to.impl()->storage->data()) + static_cast<int64_t>(row) * bytes, from.data(), static_cast<size_t>(bytes));
    }
  }
  if (options_.device && *options_.device != cpu())
    for (Tensor &t : batch.tensors)
      t = t.to(*options_.device);
  return batch;
}

//--- Position ---------------------------------------------------------------------------------------------------------
void LoaderCore::seek(Position position, const std::source_location &where) {
  if (position.epoch < 0 || position.batch < 0 || position.batch >= numBatches())
    fail<Error>("there is no batch " + std::to_string(position.batch) + " of epoch " + std::to_string(position.epoch) + ": an epoch has " +
                    std::to_string(numBatches()) + " batches",
                toLoc(where), "data::Loader");
  position_ = position;
}

void LoaderCore::advance(int64_t epoch, int64_t next) { position_ = next < numBatches() ? Position{epoch, next} : Position{epoch + 1, 0}; }

constexpr int64_t kStateWords = 8;
constexpr const char *kStateNames[] = {"version", "seed", "number of samples", "batch", "shuffle", "drop_last"};

static std::array<int64_t, kStateWords> stateOf(const LoaderOptions &options, int64_t size, Position position) {
  return {1, static_cast<int64_t>(options.seed), size, options.batch, options.shuffle, options.drop_last, position.epoch, position.batch};
}

Tensor LoaderCore::state() const {
  const auto words = stateOf(options_, size_, position_);
  return tressel::detail::fromBytes(words.data(), {i64, {kStateWords}}, std::source_location::current());
}

void LoaderCore::loadState(const Tensor &state, const std::source_location &where) {
  if (!state.defined() || state.type() != TensorType{i64, {kStateWords}})
    fail<InputError>("this is no state of a loader: " + (state.defined() ? state.type().str() : "an empty tensor"), toLoc(where), "data::Loader");
  const std::vector<int64_t> words = state.to_vector<int64_t>();
  const auto mine = stateOf(options_, size_, position_);
  for (size_t i = 0; i < std::size(kStateNames); ++i)
    if (words[i] != mine[i])
      fail<InputError>(std::string("the state is another loader's: its ") + kStateNames[i] + " is " + std::to_string(words[i]) + ", not " + std::to_string(mine[i]),
                  toLoc(where), "data::Loader", "make the loader as it was made when the state was saved");
  seek({words[6], words[7]}, where);
}

//--- An epoch ---------------------------------------------------------------------------------------------------------
struct EpochQueue::Impl {
  std::shared_ptr<LoaderCore> core;
  int64_t epoch, taken;
  const int64_t numBatches;
  const std::vector<int64_t> order;

  struct Slot {
    bool isFull = false;
    Leaves batch;
    std::exception_ptr problem;
  };
  std::mutex mutex;
  std::condition_variable made, used;
  std::vector<Slot> ring;
  int64_t claimed; ///< the next batch that no worker has begun
  bool stops = false;
  std::vector<std::thread> workers;

  Impl(std::shared_ptr<LoaderCore> given, int64_t epoch, int64_t from)
      : core(std::move(given)), epoch(epoch), taken(from), numBatches(core->numBatches()), order(core->order(epoch)), claimed(from) {}
  /// If starting a thread throws, the destructor ends those that were started.
  void start() {
    const int64_t count = std::min<int64_t>({core->options().workers, core->options().prefetch, numBatches - taken});
    if (count <= 0)
      return;
    ring.resize(static_cast<size_t>(std::min(core->options().prefetch, numBatches - taken)));
    for (int64_t i = 0; i < count; ++i)
      workers.push_back(runtime::startInternalThread("tressel.data", [this] { work(); }));
  }
  ~Impl() {
    {
      std::lock_guard lock(mutex);
      stops = true;
    }
    used.notify_all();
    for (std::thread &worker : workers)
      worker.join();
  }

  Leaves make(int64_t batch) const {
    const int64_t size = core->options().batch, begin = batch * size;
    return core->make(std::span(order).subspan(static_cast<size_t>(begin), static_cast<size_t>(std::min(size, static_cast<int64_t>(order.size()) - begin))), epoch);
  }
  Slot &slot(int64_t batch) { return ring[static_cast<size_t>(batch % static_cast<int64_t>(ring.size()))]; }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      used.wait(lock, [&] { return stops || claimed == numBatches || claimed < taken + static_cast<int64_t>(ring.size()); });
      if (stops || claimed == numBatches)
        return;
      const int64_t mine = claimed++;
      lock.unlock();
      Slot done{.isFull = true, .batch = {}, .problem = nullptr};
      try {
        done.batch = make(mine);
      } catch (...) {
        done.problem = std::current_exception();
      }
      lock.lock();
      slot(mine) = std::move(done);
      made.notify_all();
    }
  }
};

EpochQueue::EpochQueue(std::shared_ptr<LoaderCore> core, int64_t epoch, int64_t from) : impl_(std::make_unique<Impl>(std::move(core), epoch, from)) {
  impl_->start();
}
EpochQueue::~EpochQueue() = default;

bool EpochQueue::next(Leaves &batch) {
  Impl &impl = *impl_;
  if (impl.taken == impl.numBatches)
    return false;
  std::exception_ptr problem;
  if (impl.workers.empty()) {
    try {
      batch = impl.make(impl.taken);
    } catch (...) {
      problem = std::current_exception();
    }
    ++impl.taken;
  } else {
    std::unique_lock lock(impl.mutex);
    Impl::Slot &slot = impl.slot(impl.taken);
    impl.made.wait(lock, [&] { return slot.isFull; });
    batch = std::move(slot.batch);
    problem = slot.problem;
    slot = {};
    ++impl.taken;
    impl.used.notify_all();
  }
  if (problem) {
    std::lock_guard lock(impl.mutex);
    impl.taken = impl.numBatches;
    std::rethrow_exception(problem);
  }
  impl.core->advance(impl.epoch, impl.taken);
  return true;
}

} // namespace detail
} // namespace tressel::data
