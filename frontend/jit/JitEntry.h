// What a jitted function keeps: its programs with their guards, and calls to be repeated.
#pragma once

#include "frontend/tensor/Machine.h"
#include "frontend/trace/Recorder.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/jit/Retrace.h"
#include "frontend/trace/Trace.h"

#include <tressel/jit.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tressel::detail {

/// A program and what a call must look like to run it.
struct JitEntry {
  std::vector<TensorType> types;
  std::vector<uint32_t> homes; // TensorImpl::home by tensor
  std::vector<uint64_t> words;
  uint32_t mode = 0; // callMode() when the program was recorded

  std::vector<std::pair<Recorder::Counter, uint64_t>> structure; // of the modules that it calls
  std::vector<TensorType> stateTypes;
  std::vector<uint32_t> stateHomes;
  std::vector<std::string> stateCuts; // Variable::shard
  uint64_t structureSeen = 0;         // structureEpoch when both were last compared; guarded by the core's mutex

  Traced traced;
  std::shared_ptr<void> prototype;
  uint64_t calls = 0; // guarded by the core's mutex

  bool isSymbolic = false;                            // some types have dynamic sizes
  std::shared_ptr<runtime::Machine> machine;          // what it was compiled for; null: the processor

  bool matches(const CallArgs &args, uint32_t nowMode) const {
    const auto tensors = args.tensors();
    if (tensors.size() != types.size())
      return false;
    return (isSymbolic ? fits(tensors) : haveTypes(tensors, types)) && haveHomes(tensors, homes) &&
           matchesBesideTypes(args, nowMode);
  }
  bool matchesBesideTypes(const CallArgs &args, uint32_t nowMode) const {
    return mode == nowMode && std::ranges::equal(words, args.words());
  }
  static std::string placeIn(uint32_t mode) {
    return mode < 2 ? "where the compiler likes" : Device{static_cast<int>(mode >> 1) - 2}.name();
  }
  /// False when the program can never be used again: a module that was recorded has other parts now, a Variable has
  /// another type, or the process uses another machine.
  bool isCurrent() {
    const uint64_t epoch = structureEpoch.load(std::memory_order_acquire);
    if (structureSeen == epoch) [[likely]]
      return true;
    for (const auto &[counter, value] : structure)
      if (counter->load(std::memory_order_acquire) != value)
        return false;
    if (stateTypes != typesOfStates() || stateHomes != homesOfStates() || stateCuts != cutsOfStates() ||
        machine != currentMachine())
      return false;
    structureSeen = epoch;
    return true;
  }
  std::vector<TensorType> typesOfStates() const {
    std::vector<TensorType> found;
    for (const auto &states : {std::cref(traced.states), std::cref(traced.updated)})
      for (const auto &variable : states.get())
        found.push_back(variable->get(variable->readAt).type());
    return found;
  }
  std::vector<uint32_t> homesOfStates() const {
    std::vector<uint32_t> found;
    for (const auto &states : {std::cref(traced.states), std::cref(traced.updated)})
      for (const auto &variable : states.get())
        found.push_back(variable->get(variable->readAt).impl()->home);
    return found;
  }
  static std::string cutOf(const VariableImpl &variable) {
    std::string text = variable.sharding;
    if (variable.spread)
      text += " " + std::to_string(variable.spread->serial);
    return text;
  }
  std::vector<std::string> cutsOfStates() const {
    std::vector<std::string> found;
    for (const auto &states : {std::cref(traced.states), std::cref(traced.updated)})
      for (const auto &variable : states.get())
        found.push_back(cutOf(*variable));
    return found;
  }
  static std::vector<uint32_t> homesOf(std::span<const Tensor *const> tensors) {
    std::vector<uint32_t> homes;
    for (const Tensor *t : tensors)
      homes.push_back(t->impl()->home);
    return homes;
  }
  static bool haveHomes(std::span<const Tensor *const> tensors, std::span<const uint32_t> homes) {
    return std::ranges::equal(tensors, homes, {}, [](const Tensor *t) { return t->impl()->home; });
  }
  static bool haveTypes(std::span<const Tensor *const> tensors, std::span<const TensorType> types) {
    return std::ranges::equal(tensors, types, {},
                              [](const Tensor *t) -> const TensorType & { return t->impl()->type; });
  }
  bool fits(std::span<const Tensor *const> tensors) const {
    for (size_t i = 0; i < types.size(); ++i)
      if (tensors[i]->dtype() != types[i].dtype || tensors[i]->rank() != types[i].rank())
        return false;
    dim::Values dims;
    for (bool last : {false, true})
      for (size_t i = 0; i < types.size(); ++i)
        if (!dim::unify(types[i].shape, tensors[i]->shape(), dims, !last).empty())
          return false;
    return true;
  }
  /// The first guard that a call of these types fails.
  Difference firstDifference(std::span<const TensorType> otherTypes, std::span<const uint32_t> otherHomes,
                             std::span<const uint64_t> otherWords, uint32_t nowMode) const {
    using Kind = Difference::Kind;
    if ((mode ^ nowMode) & 1)
      return {Kind::Mode, 0,
              std::string("mode: ") + (nowMode & 1 ? "train instead of inference" : "inference instead of train")};
    if (mode != nowMode)
      return {Kind::Placement, 0, "placement: " + placeIn(nowMode) + " instead of " + placeIn(mode)};
    if (machine != currentMachine())
      return {Kind::Machine, 0, "another machine"};
    if (types.size() != otherTypes.size())
      return {Kind::Count, 0,
              std::to_string(otherTypes.size()) + " tensors instead of " + std::to_string(types.size())};
    for (size_t i = 0; i < types.size(); ++i)
      if (types[i] != otherTypes[i])
        return {Kind::Tensor, i,
                "tensor " + std::to_string(i) + ": " + otherTypes[i].str() + " instead of " + types[i].str()};
    for (size_t i = 0; i < homes.size(); ++i)
      if (homes[i] != otherHomes[i])
        return {Kind::Placement, i,
                "tensor " + std::to_string(i) + ": on " + runtime::nameOf(deviceOfHome(otherHomes[i])) +
                    " instead of " + runtime::nameOf(deviceOfHome(homes[i]))};
    if (stateHomes != homesOfStates())
      return {Kind::Placement, 0, "a Variable was moved to another device"};
    if (stateCuts != cutsOfStates())
      return {Kind::Placement, 0, "a Variable lies elsewhere, or is cut in another way"};
    if (words.size() != otherWords.size())
      return {Kind::Structure, 0, "another structure of the arguments"};
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] != otherWords[i])
        return {Kind::Word, i,
                "static value " + std::to_string(i) + ": " + std::to_string(otherWords[i]) + " instead of " +
                    std::to_string(words[i])};
    return {Kind::Module, 0, "a module was changed"};
  }
};

/// The result of a lookup in the cache.
struct Found {
  std::shared_ptr<JitEntry> entry; // null: there is no program yet
  uint64_t calls = 0;              // of the entry, including this one
  uint64_t generation = 0, structure = 0;
  bool again = false; // the same entry as at the last lookup
};

/// The result of an earlier call's lookup: a program and a context for it. A call that matches takes no lock and counts
/// no references. The thread that takes a LastCall out of its place owns it until it puts it back.
struct alignas(64) LastCall {
  std::shared_ptr<JitEntry> entry; // written under the core's mutex
  std::vector<TensorType> types;   // of the call: numbers even where the entry has symbols
  uint64_t generation = 0;         // JitCore's generation when the entry was looked up
  uint64_t structure = 0;          // structureEpoch when the entry was current
  std::unique_ptr<CompiledFunction::Slot> slot;
  std::atomic<uint64_t> hits{0}; // written by the owner
  uint64_t hitsSeen = 0;         // guarded by the core's mutex

  bool matches(const CallArgs &args, uint32_t nowMode) const {
    return JitEntry::haveTypes(args.tensors(), types) && JitEntry::haveHomes(args.tensors(), entry->homes) &&
           entry->matchesBesideTypes(args, nowMode);
  }
};

/// Where a LastCall is kept between calls. Threads with small numbers have a place each, which needs no atomic
/// exchange; all other threads share one.
class Places {
public:
  LastCall *takeOut() {
    const uint32_t place = placeOfThread();
    LastCall *last = places_[place].last.load(std::memory_order_relaxed);
    if (last && place == kShared)
      return places_[kShared].last.exchange(nullptr, std::memory_order_acquire);
    if (last) // calls may nest
      places_[place].last.store(nullptr, std::memory_order_relaxed);
    return last;
  }
  LastCall *takeOutShared() { return places_[kShared].last.exchange(nullptr, std::memory_order_acquire); }
  /// False if the place is taken.
  bool putBack(LastCall *last) {
    const uint32_t place = placeOfThread();
    LastCall *none = nullptr;
    if (place == kShared)
      return places_[kShared].last.compare_exchange_strong(none, last, std::memory_order_release,
                                                           std::memory_order_relaxed);
    if (places_[place].last.load(std::memory_order_relaxed))
      return false;
    places_[place].last.store(last, std::memory_order_relaxed);
    return true;
  }

private:
  static constexpr uint32_t kPlaces = 8, kShared = 0;
  static uint32_t placeOfThread() {
    const uint32_t number = threadNumber();
    return number < kPlaces ? number : kShared;
  }
  struct alignas(64) Place {
    std::atomic<LastCall *> last{nullptr};
  };
  Place places_[kPlaces];
};

} // namespace tressel::detail
