#include "frontend/Eager.h"

#include "frontend/Record.h"
#include "frontend/Trace.h"

#include <array>
#include <list>
#include <mutex>
#include <unordered_map>

namespace tressel::detail {
namespace {

/// What decides the code of one op: everything but the elements.
struct Key {
  const op::OpInfo *info = nullptr;
  std::vector<TensorType> types;
  op::Attrs attrs;
  bool operator==(const Key &) const = default;
};

/// The same, borrowed from a call.
struct KeyRef {
  const op::OpInfo *info;
  std::span<const Tensor> inputs;
  const op::Attrs &attrs;
  size_t hash;

  KeyRef(const op::OpInfo &op, std::span<const Tensor> in, const op::Attrs &a) : info(&op), inputs(in), attrs(a) {
    uint64_t h = reinterpret_cast<uintptr_t>(info);
    auto mix = [&h](uint64_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15u, h ^= h >> 29; };
    for (const Tensor &t : in) {
      const TensorType &type = t.impl()->type;
      mix(static_cast<uint64_t>(type.dtype) << 8 | static_cast<uint64_t>(type.rank()));
      for (int64_t d : type.shape)
        mix(static_cast<uint64_t>(d));
    }
    for (const op::Attr &attr : a)
      std::visit(
          [&](const auto &v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, op::Ints>)
              for (int64_t i : v)
                mix(static_cast<uint64_t>(i));
            else if constexpr (!std::is_same_v<T, std::monostate>)
              mix(std::hash<T>()(v));
          },
          attr);
    hash = h;
  }
  bool matches(const Key &key) const {
    if (key.info != info || key.types.size() != inputs.size() || key.attrs != attrs)
      return false;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].impl()->type != key.types[i])
        return false;
    return true;
  }
};

struct Entry {
  Key key;
  size_t hash = 0;
  std::vector<TensorType> results;
  std::shared_ptr<Program> program; ///< null for views
  std::list<Entry *>::iterator recent;
};

class Cache {
public:
  std::shared_ptr<const Entry> find(const KeyRef &ref) {
    std::lock_guard lock(mutex_);
    auto [begin, end] = entries_.equal_range(ref.hash);
    for (auto it = begin; it != end; ++it)
      if (ref.matches(it->second->key)) {
        recent_.splice(recent_.begin(), recent_, it->second->recent);
        return it->second;
      }
    return nullptr;
  }
  void insert(std::shared_ptr<Entry> entry) {
    std::lock_guard lock(mutex_);
    recent_.push_front(entry.get());
    entry->recent = recent_.begin();
    const size_t hash = entry->hash;
    entries_.emplace(hash, std::move(entry));
    if (recent_.size() <= kMaxEagerPrograms)
      return;
    Entry *oldest = recent_.back();
    recent_.pop_back();
    auto [begin, end] = entries_.equal_range(oldest->hash);
    for (auto it = begin; it != end; ++it)
      if (it->second.get() == oldest) {
        entries_.erase(it);
        break;
      }
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return recent_.size();
  }
  void clear() {
    std::lock_guard lock(mutex_);
    entries_.clear();
    recent_.clear();
  }

private:
  std::mutex mutex_;
  std::unordered_multimap<size_t, std::shared_ptr<Entry>> entries_;
  std::list<Entry *> recent_;
};

Cache &cache() {
  static auto *cache = new Cache; // queued tasks may outlive static destruction
  return *cache;
}

/// Two threads may compile the same op at once; both programs are good, and one is kept longer.
std::shared_ptr<const Entry> compileOp(const op::OpInfo &info, std::span<const Tensor> inputs, const op::Attrs &attrs,
                                       SourceLoc where, size_t hash) {
  auto entry = std::make_shared<Entry>();
  entry->key = {&info, {}, attrs};
  entry->hash = hash;
  for (const Tensor &t : inputs)
    entry->key.types.push_back(t.type());
  op::Attrs complete = attrs;
  entry->results = inferResults(info, inputs, complete, where);
  if (!info.isView) {
    // Without the line: the program serves calls from anywhere, and the engine knows where each was made.
    TraceRecorder recorder;
    std::vector<Tensor> arguments;
    for (size_t i = 0; i < inputs.size(); ++i)
      arguments.push_back(recorder.input(inputs[i].type(), "in" + std::to_string(i), {}));
    std::vector<Tensor> results(entry->results.size());
    recorder.op(info, arguments, entry->results, complete, {}, results);
    try {
      entry->program = recorder.finish(results, {.name = info.name}).program;
    } catch (const InputError &e) {
      fail<InputError>(e.message(), where, info.name, e.hint());
    } catch (const InternalError &) {
      throw;
    } catch (const Error &e) {
      fail<Error>(e.message(), where, info.name, e.hint());
    }
  }
  cache().insert(entry);
  return entry;
}

} // namespace

void runEager(const op::OpInfo &info, std::span<const Tensor> inputs, const op::Attrs &attrs, SourceLoc where,
              std::span<Tensor> results) {
  const KeyRef ref(info, inputs, attrs);
  std::shared_ptr<const Entry> entry = cache().find(ref);
  if (!entry)
    entry = compileOp(info, inputs, attrs, where, ref.hash);
  const SourceLoc user = userLine(where);
  if (!entry->program) { // the same bytes in another shape
    results.front() = makeTensor(entry->results.front(), inputs.front().impl()->storage, user);
    return;
  }
  std::array<const Tensor *, 8> few;
  std::vector<const Tensor *> many(inputs.size() > few.size() ? inputs.size() : 0);
  const Tensor **arguments = many.empty() ? few.data() : many.data();
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments[i] = &inputs[i];
  entry->program->run({arguments, inputs.size()}, results, user);
}

size_t numEagerPrograms() { return cache().size(); }
void clearEagerPrograms() { cache().clear(); }

} // namespace tressel::detail
