// Training states in safetensors files.
#include "frontend/io/AtLine.h"
#include "frontend/tensor/Make.h"
#include "frontend/tensor/Random.h"
#include "runtime/files/Safetensors.h"

#include <tressel/checkpoint.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <set>

namespace tressel {
namespace {

constexpr const char *kVersionKey = "tressel.state", *kRandomKey = "tressel.random", *kPartPrefix = "tressel.part.";
constexpr uint64_t kVersion = 1;

std::string nameIn(const std::string &part, const std::string &name) { return name.empty() ? part : part.empty() ? name : part + "." + name; }

uint64_t numberOf(const std::string &text, const std::string &path, const char *what) {
  uint64_t number = 0;
  const char *end = text.data() + text.size();
  if (const auto [stop, code] = std::from_chars(text.data(), end, number); code != std::errc() || stop != end)
    throw InputError(path + ": its " + what + " '" + text.substr(0, 40) + "' is no number");
  return number;
}

} // namespace

StatePart::StatePart(Variable variable) {
  variables_ = [variable] { return NamedVariables{{"", variable}}; };
}
StatePart::StatePart(nn::ModuleHandle module) {
  variables_ = [module] {
    NamedVariables all;
    for (const auto &list : {module.parameters(), module.buffers(), module.states()})
      all.insert(all.end(), list.begin(), list.end());
    return all;
  };
}
StatePart::StatePart(optim::Optimizer optimizer) : description_(optimizer.description()) {
  variables_ = [optimizer] { return optimizer.states(); };
}
StatePart::StatePart(optim::LossScale scale) {
  variables_ = [scale] { return scale.states(); };
}
StatePart::StatePart(optim::Plateau plateau) {
  save_ = [plateau] { return plateau.state(); };
  load_ = [plateau](const Tensor &state, const std::source_location &where) { plateau.load_state(state, where); };
}
StatePart::StatePart(metrics::Mean metric) {
  variables_ = [metric] { return metric.states(); };
}
StatePart::StatePart(metrics::Perplexity metric) {
  variables_ = [metric] { return metric.states(); };
}
StatePart::StatePart(metrics::Accuracy metric) {
  variables_ = [metric] { return metric.states(); };
}
StatePart::StatePart(metrics::Confusion metric) {
  variables_ = [metric] { return metric.states(); };
}
StatePart::StatePart(optim::MovingAverage average) {
  variables_ = [average] { return average.states(); };
}

/// Writes the parts of a state to a file, and reads them back.
class StateFile {
public:
  StateFile(const std::string &path, const TrainingState &state, const char *op, const std::source_location &where)
      : path_(path), state_(state), op_(op), where_(where) {
    std::set<std::string> names;
    for (const auto &[part, of] : state) {
      if (!of.description_.empty())
        metadata_[kPartPrefix + part] = of.description_;
      auto add = [&](const std::string &name) {
        if (!names.insert(name).second)
          detail::fail<Error>("two parts of the state have something called '" + name + "'", detail::toLoc(where), op, "call the parts differently");
      };
      if (!of.variables_) {
        add(part);
        continue;
      }
      for (const auto &[inner, variable] : of.variables_()) {
        const std::string name = nameIn(part, inner);
        add(name);
        if (!variable.defined())
          detail::fail<Error>("'" + name + "' has no value yet", detail::toLoc(where), op, "initialize the network with the inputs' types first");
        variables_.emplace_back(name, variable);
      }
    }
  }

  std::map<std::string, Tensor> values() const {
    std::map<std::string, Tensor> values;
    for (const auto &[name, variable] : variables_)
      values.emplace(name, variable.value(where_));
    for (const auto &[part, of] : state_)
      if (of.save_)
        values.emplace(part, of.save_());
    return values;
  }
  StateNames names() const {
    for (const auto &[part, of] : state_)
      if (!of.variables_)
        detail::fail<Error>("'" + part + "' has no Variables, and no place in a package", detail::toLoc(where_), op_,
                            "leave it out");
    StateNames names{variables_, metadata_};
    names.metadata[kVersionKey] = std::to_string(kVersion);
    return names;
  }
  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> all = metadata_;
    all[kVersionKey] = std::to_string(kVersion);
    all[kRandomKey] = std::to_string(detail::nextProcessSeed().load());
    return all;
  }

  void load() {
    const io::SafetensorsFile file(path_);
    const auto &metadata = file.metadata();
    const auto version = metadata.find(kVersionKey);
    if (version == metadata.end())
      throw InputError({.message = path_ + ": holds no state of training", .hint = "read weights alone with load_weights()"});
    if (const uint64_t number = numberOf(version->second, path_, "version"); number != kVersion)
      throw InputError(path_ + ": is a state of version " + std::to_string(number) + ", and this library reads version " + std::to_string(kVersion));
    std::map<std::string, const io::SafetensorsEntry *> entries;
    for (const io::SafetensorsEntry &entry : file.entries())
      entries.emplace(entry.name, &entry);

    std::string problems;
    auto problem = [&](const std::string &what) { problems += "\n  " + what; };
    for (const auto &[key, description] : metadata_) {
      const std::string part = key.substr(std::strlen(kPartPrefix));
      const auto found = metadata.find(key);
      if (found == metadata.end())
        problem("'" + part + "' is not described in the file");
      else if (found->second != description)
        problem("'" + part + "' was " + found->second + ", and is " + description);
    }
    auto take = [&](const std::string &name) -> const io::SafetensorsEntry * {
      const auto found = entries.find(name);
      if (found == entries.end()) {
        problem("'" + name + "' is missing");
        return nullptr;
      }
      const io::SafetensorsEntry *entry = found->second;
      entries.erase(found);
      if (!entry->unsupported.empty())
        problem("'" + name + "': " + entry->unsupported);
      return entry->unsupported.empty() ? entry : nullptr;
    };
    std::vector<std::pair<const Variable *, const io::SafetensorsEntry *>> assigned;
    for (const auto &[name, variable] : variables_)
      if (const io::SafetensorsEntry *entry = take(name)) {
        if (entry->type != variable.type(where_))
          problem("'" + name + "' is " + entry->type.str() + " in the file, and " + variable.type(where_).str() + " here");
        assigned.emplace_back(&variable, entry);
      }
    std::vector<std::pair<const StatePart *, const io::SafetensorsEntry *>> handed;
    for (const auto &[part, of] : state_)
      if (of.load_)
        if (const io::SafetensorsEntry *entry = take(part))
          handed.emplace_back(&of, entry);
    for (const auto &[name, entry] : entries)
      problem("'" + name + "' is unexpected");
    if (!problems.empty())
      throw InputError(path_ + ": is the state of something else:" + problems);
    const auto random = metadata.find(kRandomKey);
    const std::optional<uint64_t> seed = random == metadata.end() ? std::nullopt : std::optional(numberOf(random->second, path_, "random state"));

    // Everything is read before anything changes.
    auto read = [&](const io::SafetensorsEntry &entry) { return detail::makeTensor(entry.type, file.read(entry), detail::toLoc(where_)); };
    std::vector<Tensor> values;
    for (const auto &[variable, entry] : assigned)
      values.push_back(read(*entry));
    std::vector<std::pair<const StatePart *, Tensor>> before;
    try {
      for (const auto &[part, entry] : handed) {
        const Tensor now = part->save_();
        part->load_(read(*entry), where_);
        before.emplace_back(part, now);
      }
    } catch (...) {
      for (const auto &[part, state] : before)
        part->load_(state, where_);
      throw;
    }
    for (size_t i = 0; i < assigned.size(); ++i)
      assigned[i].first->assign(values[i], where_);
    if (seed)
      detail::nextProcessSeed() = *seed;
  }

  static void write(const std::string &path, const std::map<std::string, Tensor> &values, const std::map<std::string, std::string> &metadata) {
    std::vector<io::SafetensorsItem> items;
    for (const auto &[name, tensor] : values)
      items.push_back({name, tensor.type(), tensor.data()});
    io::writeSafetensors(path, std::move(items), metadata, runtime::Durable::Yes);
  }

private:
  const std::string &path_;
  const TrainingState &state_;
  const char *const op_;
  const std::source_location &where_;
  NamedVariables variables_;
  std::map<std::string, std::string> metadata_;
};

StateNames named_states(const TrainingState &state, std::source_location where) {
  return StateFile("", state, "named_states", where).names();
}

void save_state(const std::string &path, const TrainingState &state, std::source_location where) {
  io::atLine(where, "save_state", [&] {
    const StateFile file(path, state, "save_state", where);
    StateFile::write(path, file.values(), file.metadata());
  });
}

void load_state(const std::string &path, const TrainingState &state, std::source_location where) {
  io::atLine(where, "load_state", [&] { StateFile(path, state, "load_state", where).load(); });
}

struct PendingSave::Impl {
  std::source_location where;
  std::shared_future<void> end;
  bool wasSeen = false;
  ~Impl() {
    if (!end.valid() || wasSeen)
      return;
    try {
      end.get();
    } catch (const std::exception &error) { // an error that no call waits for must not get lost
      std::fprintf(stderr, "tressel: a failure that nobody waited for: %s: save_state_async: %s\n",
                   detail::toLoc(where).str().c_str(), error.what());
    }
  }
};

void PendingSave::wait() {
  if (const std::shared_ptr<Impl> impl = std::exchange(impl_, nullptr))
    io::atLine(impl->where, "save_state_async", [&] {
      impl->wasSeen = true;
      impl->end.get();
    });
}
bool PendingSave::done() const { return !impl_ || impl_->end.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

PendingSave save_state_async(const std::string &path, const TrainingState &state, std::source_location where) {
  static std::mutex mutex;
  static std::shared_future<void> last; // under the mutex: files are written in order
  PendingSave pending;
  io::atLine(where, "save_state_async", [&] {
    const StateFile file(path, state, "save_state_async", where);
    std::map<std::string, Tensor> copies;
    for (const auto &[name, value] : file.values()) { // copies, as steps go on in the Variables' memory
      runtime::StorageRef storage = runtime::Storage::allocate(value.type().bytes());
      std::memcpy(storage->data(), value.data(where), static_cast<size_t>(value.type().bytes()));
      copies.emplace(name, detail::makeTensor(value.type(), std::move(storage), detail::toLoc(where)));
    }
    std::lock_guard lock(mutex);
    pending.impl_ = std::make_shared<PendingSave::Impl>();
    pending.impl_->where = where;
    pending.impl_->end = last = std::async(std::launch::async, [path, copies = std::move(copies), metadata = file.metadata(), before = last] {
                                  if (before.valid())
                                    before.wait();
                                  StateFile::write(path, copies, metadata);
                                }).share();
  });
  return pending;
}

} // namespace tressel
