#include "passes/place/Residency.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>

namespace tressel::passes::residency {

namespace {
constexpr size_t kNever = std::numeric_limits<size_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The values that an item reads and writes, for items of every kind.
struct Touch {
  double seconds = 0;
  uint32_t engine = kNone;
  llvm::ArrayRef<uint32_t> reads, writes;
  uint32_t one = kNone; ///< the value of Prefetch and Spill, which have no lists
};
Touch touchOf(const Step &step, const Item &item) {
  if (item.kind == Item::Run || item.kind == Item::Rematerialize) {
    const Task &task = step.tasks[item.index];
    return {task.seconds, task.engine, task.reads, task.writes, kNone};
  }
  const Value &value = step.values[item.index];
  if (item.kind == Item::Prefetch)
    return {value.inSeconds, value.inEngine, {}, {}, item.index};
  return {value.outSeconds, value.outEngine, {}, {}, item.index};
}

/// When each item begins and ends if memory is not bounded.
struct Times {
  std::vector<double> begin, end;
};

/// Intervals during which values are in their device's memory, in the order in which they begin.
struct Stay {
  uint32_t value;
  size_t first, last;
};
class Stays {
public:
  Stays(const Step &step, llvm::ArrayRef<Item> sequence) : latest(step.values.size(), kNone) {
    begun.resize(sequence.size());
    touched.resize(sequence.size());
    for (auto [i, item] : llvm::enumerate(sequence)) {
      auto touch = [&, i = i](uint32_t v, bool begins) {
        const Value &value = step.values[v];
        if (!step.isBounded(value.device) || value.isResident)
          return;
        if (latest[v] == kNone || begins) {
          latest[v] = static_cast<uint32_t>(all.size());
          all.push_back({v, i, i});
          begun[i].push_back(latest[v]);
        }
        all[latest[v]].last = i;
        touched[i].push_back(latest[v]);
      };
      const Touch t = touchOf(step, item);
      for (uint32_t v : t.reads)
        touch(v, false);
      for (uint32_t v : t.writes)
        touch(v, item.kind == Item::Rematerialize);
      if (t.one != kNone)
        touch(t.one, item.kind == Item::Prefetch);
    }
  }
  std::vector<Stay> all;
  std::vector<llvm::SmallVector<uint32_t, 2>> begun, touched; ///< stays by item

  /// The stay that ends at item `i` and whose bytes a result of the item takes; or none.
  uint32_t givesWay(const Step &step, llvm::ArrayRef<Item> sequence, size_t i) const {
    if (sequence[i].kind != Item::Run && sequence[i].kind != Item::Rematerialize)
      return kNone;
    const Task &task = step.tasks[sequence[i].index];
    const uint32_t maker = takesOver(step, sequence, i);
    if (maker == kNone)
      return kNone;
    for (uint32_t stay : touched[i])
      if (all[stay].last == i && llvm::is_contained(task.overwrites, all[stay].value) &&
          step.values[all[stay].value].bytes == step.values[all[maker].value].bytes)
        return stay;
    return kNone;
  }
  /// The stay that begins at item `i` and may take the bytes of one that ends there.
  uint32_t takesOver(const Step &step, llvm::ArrayRef<Item> sequence, size_t i) const {
    const Task &task = step.tasks[sequence[i].index];
    if (task.overwrites.empty())
      return kNone;
    auto at = llvm::find_if(begun[i], [&](uint32_t stay) { return all[stay].value == task.writes[task.overwriter]; });
    return at == begun[i].end() ? kNone : *at;
  }

private:
  std::vector<uint32_t> latest;
};
} // namespace

int64_t peakOf(const Step &step, unsigned device, llvm::ArrayRef<Item> sequence) {
  const Stays stays(step, sequence);
  std::vector<int64_t> change(sequence.size() + 1, 0);
  for (const Stay &stay : stays.all)
    if (const Value &value = step.values[stay.value]; value.device == device) {
      change[stay.first] += value.bytes;
      change[stay.last + 1] -= value.bytes;
    }
  int64_t now = 0, most = 0;
  for (size_t i = 0; i < sequence.size(); ++i) {
    now += change[i];
    int64_t here = now;
    if (const uint32_t stay = stays.givesWay(step, sequence, i);
        stay != kNone && step.values[stays.all[stay].value].device == device)
      here -= step.values[stays.all[stay].value].bytes;
    if (sequence[i].kind == Item::Run && step.tasks[sequence[i].index].device == device)
      here += step.tasks[sequence[i].index].scratch;
    most = std::max(most, here);
  }
  return most;
}

double secondsOf(const Step &step, llvm::ArrayRef<Item> sequence, llvm::ArrayRef<int64_t> limits) {
  const Stays stays(step, sequence);
  std::vector<double> ready(step.values.size(), 0), hostReady(step.values.size(), 0), stayEnd(stays.all.size(), 0);
  llvm::DenseMap<uint32_t, double> freeAt;
  struct Memory {
    int64_t free = 0;
    std::priority_queue<std::pair<double, int64_t>, std::vector<std::pair<double, int64_t>>, std::greater<>> freed;
  };
  std::vector<Memory> memories(limits.size());
  for (auto [memory, limit] : llvm::zip(memories, limits))
    memory.free = limit;
  double end = 0;
  for (size_t i = 0; i < sequence.size(); ++i) {
    const Item item = sequence[i];
    const Touch t = touchOf(step, item);
    double begin = t.engine == kNone ? 0 : freeAt.lookup(t.engine);
    for (uint32_t v : t.reads)
      begin = std::max(begin, ready[v]);
    for (uint32_t v : t.writes) // a value may be made in parts, each by a task
      begin = std::max(begin, item.kind == Item::Run ? 0 : ready[v]);
    if (item.kind == Item::Spill)
      begin = std::max(begin, ready[item.index]);
    if (item.kind == Item::Prefetch) {
      const Value &value = step.values[item.index];
      begin = std::max({begin, hostReady[item.index], value.onHost == kNone ? 0 : ready[value.onHost]});
    }
    const uint32_t gives = stays.givesWay(step, sequence, i);
    auto take = [&](unsigned device, int64_t bytes) {
      if (device >= limits.size() || limits[device] == 0)
        return true;
      Memory &memory = memories[device];
      while (memory.free < bytes) {
        if (memory.freed.empty())
          return false;
        begin = std::max(begin, memory.freed.top().first);
        memory.free += memory.freed.top().second;
        memory.freed.pop();
      }
      memory.free -= bytes;
      return true;
    };
    const uint32_t takes = gives == kNone ? kNone : stays.takesOver(step, sequence, i);
    for (uint32_t stay : stays.begun[i])
      if (const Value &value = step.values[stays.all[stay].value]; stay != takes && !take(value.device, value.bytes))
        return kInfinity;
    const Task *task = item.kind == Item::Run ? &step.tasks[item.index] : nullptr;
    if (task && task->scratch && !take(task->device, task->scratch))
      return kInfinity;
    const double ends = begin + t.seconds;
    if (t.engine != kNone)
      freeAt[t.engine] = ends;
    if (task && task->scratch && task->device < limits.size())
      memories[task->device].freed.push({ends, task->scratch});
    for (uint32_t v : t.writes)
      ready[v] = std::max(item.kind == Item::Run ? ready[v] : 0.0, ends);
    if (item.kind == Item::Prefetch)
      ready[item.index] = ends;
    if (item.kind == Item::Spill)
      hostReady[item.index] = ends;
    for (uint32_t stay : stays.touched[i]) {
      const Value &value = step.values[stays.all[stay].value];
      stayEnd[stay] = std::max(stayEnd[stay], ends);
      if (task && value.copiedOutBy == item.index)
        hostReady[stays.all[stay].value] = ends;
      if (stays.all[stay].last == i && stay != gives && value.device < limits.size())
        memories[value.device].freed.push({stayEnd[stay], value.bytes});
    }
    end = std::max(end, ends);
  }
  return end;
}

//===-- Fitting
//-----------------------------------------------------------------------------------------------------===//

namespace {
class Fitter {
public:
  Fitter(const Step &step, unsigned device, const Rule &rule, const Sequence &given)
      : step(step), device(device), rule(rule) {
    read(given);
  }
  std::optional<Misfit> run();
  Sequence result();

private:
  /// State of a value of this device.
  struct State {
    std::vector<size_t> uses; ///< places in `order` where it is made or read, ascending
    size_t next = 0;          ///< index into `uses` of the next use to come
    size_t whole = 0;         ///< place in `order` from which on it is completely written
    bool isHere = false, isCopied = false, isRematerialized = false;
    uint32_t writer = kNone; ///< the task that makes it, if there is only one
    size_t touched = 0;      ///< place in `made` of its last use so far
    size_t copiedAt = 0;     ///< place in `made` from which on the host has a copy
    size_t freedAt = 0;      ///< place in `made` from which on its bytes are free
  };
  /// An item of the new sequence, the bytes taken while it runs, and when it would begin if memory were not bounded.
  struct Made {
    Item item;
    int64_t live;
    double time;
  };
  struct Eviction {
    uint32_t value;
    size_t touched, needed; ///< places in `made`: of its last use, and of the item that needs its bytes
    uint32_t by = kNone;    ///< the task of the program that copies it out, if there is one
    bool isCopied = false;  ///< the host has a copy, or it will be rematerialized: no spill is needed
    bool givesWay = false;  ///< the item that needs its bytes overwrites it
  };
  struct Prefetch {
    uint32_t value;
    size_t needed, earliest; ///< places in `made`
  };

  bool isOurs(uint32_t v) const { return step.values[v].device == device && !step.values[v].isResident; }
  /// A task that only copies a value in: Prefetch takes its place.
  bool isLifted(uint32_t task) const {
    const Task &t = step.tasks[task];
    return t.writes.size() == 1 && isOurs(t.writes[0]) && step.values[t.writes[0]].copiedBy == task;
  }
  void read(const Sequence &given);
  size_t nextUse(uint32_t v) const {
    const State &s = states[v];
    size_t next = s.next;
    while (next < s.uses.size() && moved[s.uses[next]])
      ++next;
    return next < s.uses.size() ? s.uses[next] : kNever;
  }
  double timeAt(size_t place) const { return place == kNever ? end : time[place]; }
  double rematerializeSeconds(uint32_t v, size_t when) const;
  double rematerializeSeconds(uint32_t v, size_t when, int depth) const;
  bool makeRoom(int64_t bytes, llvm::ArrayRef<uint32_t> kept, size_t place);
  llvm::SmallVector<uint32_t, 2> overwritable(const Task *task) const;
  bool makeRoomFor(const Task *task, int64_t grows, llvm::ArrayRef<uint32_t> kept, size_t place);
  void evict(uint32_t v, bool givesWay);
  /// Another copy of it exists, so evicting it needs no spill.
  bool isClean(uint32_t v) const {
    return states[v].isCopied || step.values[v].isOnHost || step.values[v].onHost != kNone;
  }
  bool bring(uint32_t v, llvm::SmallVectorImpl<uint32_t> &kept, size_t place);
  bool collectAgain(uint32_t v, std::vector<uint32_t> &tasks) const;
  bool rematerialize(uint32_t v, llvm::SmallVectorImpl<uint32_t> &kept, size_t place);
  void release(uint32_t v) {
    held -= step.values[v].bytes;
    states[v].isHere = false;
    here.erase(llvm::find(here, v));
  }
  /// Whether the value is evicted after `task`: the last reader of its segment, with all later readers in others.
  bool isDropped(uint32_t v, const Task &task, size_t place) const {
    const Value &value = step.values[v];
    const size_t next = nextUse(v);
    if (value.droppedBy == kNone || !states[v].isHere || next == kNever || states[v].whole > place + 1 ||
        !llvm::is_contained(task.segments, value.droppedBy))
      return false;
    const Item &item = order[next];
    return item.kind == Item::Run && !llvm::is_contained(step.tasks[item.index].segments, value.droppedBy) &&
           rematerializeSeconds(v, next) < kInfinity;
  }
  /// The value has no further use.
  void die(uint32_t v) {
    states[v].freedAt = made.size();
    release(v);
  }
  void settle(uint32_t v) {
    held += step.values[v].bytes;
    states[v].isHere = true;
    here.push_back(v);
  }
  void append(Item item, int64_t live, size_t place) { made.push_back({item, live, time[place]}); }

  const Step &step;
  const unsigned device;
  const Rule rule;
  Sequence order;
  std::vector<double> time; ///< by place in `order`
  double end = 0;
  std::vector<bool> moved;      ///< by place in `order`: the item was issued earlier
  std::vector<size_t> placeOf;  ///< by task, in `order`
  std::vector<size_t> madeHost; ///< by value of another device: place in `made` from which on it is computed
  std::vector<State> states;    ///< by value
  std::vector<uint32_t> here;
  std::vector<Made> made;
  std::vector<Eviction> evictions;
  std::vector<Prefetch> prefetches;
  /// Tasks that rematerializeSeconds has counted for the current value.
  mutable llvm::SmallDenseSet<uint32_t, 16> asked;
  int64_t held = 0;
  Misfit misfit;
};

void Fitter::read(const Sequence &given) {
  for (const Item &item : given)
    if (item.kind != Item::Run || !isLifted(item.index))
      order.push_back(item);
  states.resize(step.values.size());
  madeHost.assign(step.values.size(), 0);
  placeOf.assign(step.tasks.size(), kNever);
  moved.assign(order.size(), false);
  llvm::DenseMap<uint32_t, double> freeAt;
  std::vector<double> ready(step.values.size(), 0);
  std::vector<uint32_t> numWriters(step.values.size(), 0);
  for (auto [i, item] : llvm::enumerate(order)) {
    const Touch t = touchOf(step, item);
    if (item.kind == Item::Run)
      placeOf[item.index] = i;
    double begin = t.engine == kNone ? 0 : freeAt.lookup(t.engine);
    for (uint32_t v : t.reads) {
      begin = std::max(begin, ready[v]);
      if (isOurs(v))
        states[v].uses.push_back(i);
    }
    for (uint32_t v : t.writes)
      if (isOurs(v)) {
        State &s = states[v];
        if (s.uses.empty() || s.uses.back() != i)
          s.uses.push_back(i);
        s.whole = i + 1;
        s.writer = numWriters[v]++ == 0 && item.kind == Item::Run ? item.index : kNone;
      }
    time.push_back(begin);
    const double ends = begin + t.seconds;
    if (t.engine != kNone)
      freeAt[t.engine] = ends;
    for (uint32_t v : t.writes)
      ready[v] = std::max(ready[v], ends);
    end = std::max(end, ends);
  }
}

/// Predicted seconds to rematerialize `v` at place `when` without any copy that is not made anyway; infinity if it
/// cannot be rematerialized. A task that several values need counts once.
double Fitter::rematerializeSeconds(uint32_t v, size_t when) const {
  asked.clear();
  return rematerializeSeconds(v, when, rule.depth);
}
double Fitter::rematerializeSeconds(uint32_t v, size_t when, int depth) const {
  const State &s = states[v];
  if (s.writer == kNone || !step.tasks[s.writer].mayRematerialize || depth == 0)
    return kInfinity;
  if (!asked.insert(s.writer).second)
    return 0;
  double sum = step.tasks[s.writer].seconds;
  for (uint32_t u : step.tasks[s.writer].reads) {
    if (!isOurs(u)) {
      if (step.values[u].isResident)
        continue;
      return kInfinity;
    }
    const State &operand = states[u];
    const bool isThere = !operand.uses.empty() && operand.uses.back() >= when;
    if (operand.isHere && isThere)
      continue;
    if (!operand.isHere && operand.isRematerialized)
      sum += rematerializeSeconds(u, when, depth - 1);
    else if (operand.isCopied || step.values[u].isOnHost || step.values[u].onHost != kNone)
      sum += isThere ? 0 : step.values[u].inSeconds;
    else if (isThere)
      continue;
    else
      sum += rematerializeSeconds(u, when, depth - 1);
    if (sum == kInfinity)
      break;
  }
  return sum;
}

/// Evicts values until `bytes` more fit. Those of `kept` stay. False if too few can be evicted.
bool Fitter::makeRoom(int64_t bytes, llvm::ArrayRef<uint32_t> kept, size_t place) {
  while (held + bytes > rule.limit) {
    uint32_t best = kNone;
    double bestScore = -1;
    for (uint32_t v : here) {
      const State &s = states[v];
      const Value &value = step.values[v];
      if (value.isFixed || s.whole > place || llvm::is_contained(kept, v))
        continue;
      const size_t next = nextUse(v);
      double score = static_cast<double>(next == kNever ? order.size() : next);
      double cost = value.inSeconds + (isClean(v) ? 0 : value.outSeconds);
      if (rule.rematerializeBelow > 0 && (rule.byCost || cost == kInfinity))
        cost = std::min(cost, rematerializeSeconds(v, next) / rule.rematerializeBelow);
      if (cost == kInfinity)
        continue; // it could be neither copied back nor rematerialized
      if (rule.byCost) {
        score = std::pow(timeAt(next) - time[place] + 1e-12, rule.farther) * static_cast<double>(value.bytes) /
                std::max(cost, 1e-12);
      }
      if (score > bestScore || (score == bestScore && best != kNone && value.bytes > step.values[best].bytes)) {
        best = v;
        bestScore = score;
      }
    }
    if (best == kNone)
      return false;
    evict(best, false);
  }
  return true;
}

void Fitter::evict(uint32_t v, bool givesWay) {
  State &s = states[v];
  const Value &value = step.values[v];
  Eviction eviction{v, s.touched, made.size()};
  eviction.givesWay = givesWay;
  const size_t next = nextUse(v);
  const double copies = value.inSeconds + (isClean(v) ? 0 : value.outSeconds);
  s.isRematerialized = rule.rematerializeBelow > 0 && rematerializeSeconds(v, next) < rule.rematerializeBelow * copies;
  eviction.isCopied = isClean(v) || s.isRematerialized;
  if (!eviction.isCopied) {
    // If the program copies it out anyway, that copy is issued now.
    if (value.copiedOutBy != kNone && placeOf[value.copiedOutBy] != kNever && !moved[placeOf[value.copiedOutBy]]) {
      eviction.by = value.copiedOutBy;
      moved[placeOf[value.copiedOutBy]] = true;
    }
    s.isCopied = true;
    s.copiedAt = made.size();
  }
  s.freedAt = made.size();
  evictions.push_back(eviction);
  release(v);
}

/// Prefetches or rematerializes `v` for the item at `place`. False if there is no room.
bool Fitter::bring(uint32_t v, llvm::SmallVectorImpl<uint32_t> &kept, size_t place) {
  State &s = states[v];
  const Value &value = step.values[v];
  kept.push_back(v);
  if (!s.isRematerialized && isClean(v)) {
    if (!makeRoom(value.bytes, kept, place))
      return false;
    size_t earliest = std::max(s.freedAt, s.isCopied ? s.copiedAt : 0);
    if (!s.isCopied && value.onHost != kNone)
      earliest = std::max(earliest, madeHost[value.onHost]);
    prefetches.push_back({v, made.size(), earliest});
    settle(v);
    s.touched = made.size();
    return true;
  }
  return rematerialize(v, kept, place);
}

/// The tasks that rematerialize `v` from values that are at hand, in their original order. False if one of them may not
/// run again.
bool Fitter::collectAgain(uint32_t v, std::vector<uint32_t> &tasks) const {
  llvm::SmallDenseSet<uint32_t, 16> known;
  llvm::SmallVector<uint32_t, 16> open{v};
  while (!open.empty()) {
    const uint32_t writer = states[open.pop_back_val()].writer;
    if (writer == kNone || !step.tasks[writer].mayRematerialize)
      return false;
    if (!known.insert(writer).second)
      continue;
    tasks.push_back(writer);
    for (uint32_t u : step.tasks[writer].reads)
      if (isOurs(u) && !states[u].isHere && (states[u].isRematerialized || !isClean(u)))
        open.push_back(u);
  }
  llvm::sort(tasks, [&](uint32_t a, uint32_t b) { return placeOf[a] < placeOf[b]; });
  return true;
}

bool Fitter::rematerialize(uint32_t v, llvm::SmallVectorImpl<uint32_t> &kept, size_t place) {
  std::vector<uint32_t> tasks;
  if (!collectAgain(v, tasks))
    return false;
  llvm::SmallDenseMap<uint32_t, size_t> lastRead; // by value
  for (auto [i, index] : llvm::enumerate(tasks))
    for (uint32_t u : step.tasks[index].reads)
      if (isOurs(u))
        lastRead[u] = i;
  lastRead[v] = tasks.size();
  const size_t before = kept.size();
  for (auto [u, last] : lastRead)
    if (states[u].isHere)
      kept.push_back(u);
  for (auto [i, index] : llvm::enumerate(tasks)) {
    const Task &task = step.tasks[index];
    for (uint32_t u : task.reads)
      if (isOurs(u) && !states[u].isHere && !bring(u, kept, place))
        return false;
    // The task writes all its results. Results that are in memory are overwritten; results without a later reader are
    // freed at once.
    int64_t bytes = 0;
    for (uint32_t w : task.writes)
      bytes += isOurs(w) ? step.values[w].bytes : 0;
    if (!makeRoom(bytes, kept, place))
      return false;
    append({Item::Rematerialize, index}, held + bytes, place);
    for (uint32_t u : task.reads)
      if (isOurs(u))
        states[u].touched = made.size() - 1;
    for (uint32_t w : task.writes)
      if (isOurs(w)) {
        State &other = states[w];
        other.touched = made.size() - 1;
        other.isRematerialized = false;
        const auto read = lastRead.find(w);
        const bool isRead = read != lastRead.end() && read->second > i;
        if (!other.isHere && (isRead || nextUse(w) != kNever))
          settle(w);
        if (isRead)
          kept.push_back(w);
      }
    for (uint32_t u : task.reads)
      if (isOurs(u) && lastRead.lookup(u) == i) {
        auto mine = std::find(kept.begin() + static_cast<ptrdiff_t>(before), kept.end(), u);
        if (mine != kept.end())
          kept.erase(mine);
        if (states[u].isHere && nextUse(u) == kNever && !llvm::is_contained(kept, u))
          die(u);
      }
  }
  kept.truncate(before);
  return true;
}

llvm::SmallVector<uint32_t, 2> Fitter::overwritable(const Task *task) const {
  llvm::SmallVector<uint32_t, 2> found;
  if (!task || task->overwrites.empty())
    return found;
  if (const uint32_t result = task->writes[task->overwriter]; isOurs(result) && !states[result].isHere)
    llvm::copy_if(task->overwrites, std::back_inserter(found),
                  [&](uint32_t v) { return isOurs(v) && step.values[v].bytes == step.values[result].bytes; });
  return found;
}

/// Makes room for the scratch bytes and results of a task whose operands are in memory. A result may take the bytes of
/// an operand that has no later use, or, where nothing else helps, of one that is evicted.
bool Fitter::makeRoomFor(const Task *task, int64_t grows, llvm::ArrayRef<uint32_t> kept, size_t place) {
  const llvm::SmallVector<uint32_t, 2> candidates = overwritable(task);
  for (uint32_t v : candidates)
    if (nextUse(v) == kNever) {
      if (!makeRoom(grows - step.values[v].bytes, kept, place))
        return false;
      die(v);
      return true;
    }
  if (makeRoom(grows, kept, place))
    return true;
  for (uint32_t v : candidates)
    if (!step.values[v].isFixed && states[v].whole <= place && held + grows - step.values[v].bytes <= rule.limit) {
      evict(v, /*givesWay=*/true);
      return true;
    }
  return false;
}

std::optional<Misfit> Fitter::run() {
  const size_t most = 1000 + 8 * order.size(); // more items than this mean that values are rematerialized over and over
  for (size_t i = 0; i < order.size(); ++i) {
    if (moved[i])
      continue;
    const Item item = order[i];
    const Touch t = touchOf(step, item);
    const Task *task = item.kind == Item::Run ? &step.tasks[item.index] : nullptr;
    llvm::SmallVector<uint32_t, 8> kept, reads;
    for (uint32_t v : t.reads)
      if (isOurs(v) && !llvm::is_contained(reads, v)) {
        reads.push_back(v);
        kept.push_back(v);
      }
    int64_t grows = task && task->device == device ? task->scratch : 0, needs = grows;
    for (uint32_t v : reads)
      needs += step.values[v].bytes;
    for (uint32_t v : t.writes)
      if (isOurs(v) && !llvm::is_contained(reads, v)) {
        kept.push_back(v);
        needs += step.values[v].bytes;
        if (!states[v].isHere)
          grows += step.values[v].bytes;
      }
    if (!overwritable(task).empty())
      needs -= step.values[task->writes[task->overwriter]].bytes;
    auto fails = [&, own = kept] {
      misfit = {item.index, needs};
      for (uint32_t v : here) // beside the operands and results of the task
        if ((step.values[v].isFixed || states[v].whole > i) && !llvm::is_contained(own, v))
          misfit.bytes += step.values[v].bytes;
      return misfit;
    };
    for (uint32_t v : reads)
      if (!states[v].isHere && (made.size() > most || !bring(v, kept, i)))
        return fails();
    for (uint32_t v : reads) { // the next use of each operand is now behind this item
      State &s = states[v];
      while (s.next < s.uses.size() && s.uses[s.next] <= i)
        ++s.next;
    }
    if (!makeRoomFor(task, grows, kept, i))
      return fails();
    for (uint32_t v : t.writes)
      if (isOurs(v) && !states[v].isHere)
        settle(v);
    const int64_t scratch = task && task->device == device ? task->scratch : 0;
    for (uint32_t v : reads)
      states[v].touched = made.size();
    for (uint32_t v : t.writes) {
      madeHost[v] = made.size() + 1;
      if (!isOurs(v))
        continue;
      State &s = states[v];
      s.touched = made.size();
      while (s.next < s.uses.size() && s.uses[s.next] <= i)
        ++s.next;
    }
    append(item, held + scratch, i);
    if (task && !task->segments.empty())
      for (llvm::ArrayRef<uint32_t> list : {llvm::ArrayRef<uint32_t>(reads), t.writes})
        for (uint32_t v : list)
          if (isOurs(v) && isDropped(v, *task, i))
            evict(v, false);
    for (llvm::ArrayRef<uint32_t> list : {llvm::ArrayRef<uint32_t>(reads), t.writes})
      for (uint32_t v : list)
        if (isOurs(v)) {
          State &s = states[v];
          if (task && step.values[v].copiedOutBy == item.index && !s.isCopied) {
            s.isCopied = true;
            s.copiedAt = made.size();
          }
          if (s.isHere && nextUse(v) == kNever)
            die(v);
        }
  }
  return std::nullopt;
}

/// Inserts the spills and prefetches where they overlap with other work.
Sequence Fitter::result() {
  std::vector<llvm::SmallVector<Item, 1>> spills(made.size() + 1), loads(made.size() + 1);
  // Begin times made monotonic: the search below needs an ascending list.
  std::vector<double> at(made.size() + 1, end);
  for (size_t k = made.size(); k-- > 0;)
    at[k] = std::min(made[k].time, at[k + 1]);
  auto firstNotBefore = [&](double seconds) {
    return static_cast<size_t>(std::lower_bound(at.begin(), at.end(), seconds) - at.begin());
  };
  // by value: place of its spill
  std::vector<size_t> copiedAt(step.values.size(), 0); // what was copied out: the place
  // `evictions` and `prefetches` are sorted by `needed`: both were appended as room was made.
  double cursor = end;
  for (const Eviction &eviction : llvm::reverse(evictions)) {
    const Value &value = step.values[eviction.value];
    size_t freed = eviction.touched + 1;
    if (!eviction.isCopied) {
      cursor = std::min(cursor, at[eviction.needed]) - value.outSeconds;
      size_t place = rule.isLate ? eviction.needed : firstNotBefore(cursor - value.outSeconds);
      place = std::clamp(place, eviction.touched + 1, std::max(eviction.needed, eviction.touched + 1));
      spills[place].push_back(eviction.by != kNone ? Item{Item::Run, eviction.by} : Item{Item::Spill, eviction.value});
      copiedAt[eviction.value] = place;
      freed = std::max(place, firstNotBefore(std::max(at[place], cursor) + value.outSeconds));
    }
    if (!eviction.givesWay)
      for (size_t k = freed; k < eviction.needed; ++k)
        made[k].live -= value.bytes;
  }
  // Prefetches: as late as lets each end in time, with one more transfer to spare, or later where there is no room.
  std::vector<double> wanted(prefetches.size());
  cursor = end;
  for (size_t c = prefetches.size(); c-- > 0;) {
    cursor = std::min(cursor, at[prefetches[c].needed]) - step.values[prefetches[c].value].inSeconds;
    wanted[c] = cursor - step.values[prefetches[c].value].inSeconds;
  }
  for (auto [prefetch, begin] : llvm::zip_equal(prefetches, wanted)) {
    const int64_t bytes = step.values[prefetch.value].bytes;
    const size_t earliest = std::max(prefetch.earliest, copiedAt[prefetch.value]);
    size_t place = prefetch.needed;
    while (!rule.isLate && place > earliest && at[place] > begin && made[place - 1].live + bytes <= rule.limit)
      made[--place].live += bytes;
    loads[place].push_back({Item::Prefetch, prefetch.value});
  }
  Sequence sequence;
  for (size_t k = 0; k <= made.size(); ++k) {
    sequence.insert(sequence.end(), spills[k].begin(), spills[k].end());
    sequence.insert(sequence.end(), loads[k].begin(), loads[k].end());
    if (k < made.size())
      sequence.push_back(made[k].item);
  }
  return sequence;
}
} // namespace

std::optional<Misfit> fit(const Step &step, unsigned device, const Rule &rule, Sequence &sequence) {
  Fitter fitter(step, device, rule, sequence);
  if (std::optional<Misfit> misfit = fitter.run())
    return misfit;
  sequence = fitter.result();
  return std::nullopt;
}

} // namespace tressel::passes::residency
