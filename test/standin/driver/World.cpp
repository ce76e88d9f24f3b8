#include "World.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace tressel::standin {

World &World::get() {
  static World &world = *new World; // used until the process has ended
  return world;
}

//--- Options ----------------------------------------------------------------------------------------------------------
bool World::configure(const char *options) {
  std::istringstream words(options ? options : "");
  bool allKnown = true;
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      return false;
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "order") {
      const char *const names[] = {"eager", "late", "random", "reversed"};
      const auto at = std::ranges::find(names, value, [](const char *n) { return std::string(n); });
      if (at == std::end(names))
        return false;
      order = static_cast<Order>(at - names);
    } else if (name == "seed") {
      seed = number;
      random = seed * 0x9E3779B97F4A7C15u + 1;
    } else if (name == "cards")
      numCards = static_cast<int>(number);
    else if (name == "arch")
      architecture = static_cast<int>(number);
    else if (name == "bytes")
      heap.capacity = number;
    else if (name == "fail")
      failAt = number ? calls + number : 0;
    else if (name == "fail-kernel")
      failKernelAt = number ? kernelsRun + number : 0;
    else if (name == "error")
      error = static_cast<Result>(number);
    else if (name == "plant")
      plant = value;
    else if (name == "trace")
      isTracing = number != 0;
    else if (name == "patience")
      patience = number;
    else if (name == "forget") {
      findings.clear();
      failedCall.clear();
      calls = kernelsRun = failAt = failKernelAt = 0;
    } else if (name == "null") {
      isNull = number != 0;
      heap.poisons = !isNull;
    } else if (name == "findings")
      keepsFindings = value == "keep";
    else
      allKnown = false;
  }
  return allKnown;
}

uint64_t World::next(uint64_t below) { // splitmix64
  uint64_t z = (random += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return below ? (z ^ (z >> 31)) % below : 0;
}

void World::find(std::string finding) {
  findings.push_back(std::move(finding));
  if (keepsFindings)
    return;
  std::fprintf(stderr, "stand-in driver: %s\n", findings.back().c_str());
  std::fflush(nullptr);
  _exit(86);
}

Alive World::alive() const {
  Alive alive;
  for (const auto &[begin, a] : heap.all())
    if (!a->freedBy)
      ++(a->type == MemoryType::Card ? alive.allocations : a->type == MemoryType::Pinned ? alive.pinned : alive.registered);
  alive.streams = streams.size();
  alive.events = events.size();
  alive.modules = modules.size();
  alive.graphs = graphs.size() + execs.size();
  alive.pending = pending_.size();
  return alive;
}

//--- Timelines --------------------------------------------------------------------------------------------------------
uint32_t World::newTimeline() {
  std::erase_if(retired_, [this](uint32_t timeline) {
    if (host.at(timeline) < ticks_[timeline])
      return false;
    freeTimelines_.push_back(timeline);
    return true;
  });
  if (!freeTimelines_.empty()) {
    const uint32_t timeline = freeTimelines_.back();
    freeTimelines_.pop_back();
    return timeline;
  }
  ticks_.push_back(0);
  return static_cast<uint32_t>(ticks_.size() - 1);
}

void World::retire(uint32_t timeline) { retired_.push_back(timeline); }

Access World::hostAccess(const char *what) {
  host.set(0, ++ticks_[0]);
  return {0, ticks_[0], std::make_shared<std::string>(what)};
}

//--- Issuing ----------------------------------------------------------------------------------------------------------
void World::orderBehind(Operation &operation, const OperationRef &before) {
  if (!before)
    return;
  operation.clock.join(before->clock);
  if (before->hasRun)
    return;
  operation.after.push_back(before);
  operation.isGated |= before->isGated;
}

void World::add(const OperationRef &operation) {
  operation->number = ++issued_;
  operation->clock.join(host);
  operation->self.tick = ++ticks_[operation->self.timeline];
  operation->clock.set(operation->self.timeline, operation->self.tick);
  trace("takes", *operation);
  if (canRun(*operation) && (order == Order::Eager || (operation->after.empty() && !operation->work)))
    run(operation);
  else
    pending_.push_back(operation);
}

OperationRef World::issue(Stream &stream, std::string what, std::function<Result(Operation &)> work,
                          std::vector<uint64_t> mentions, const std::vector<OperationRef> &more,
                          std::function<bool()> gate, std::function<Meets()> meeting) {
  auto operation = std::make_shared<Operation>();
  operation->context = stream.context;
  operation->self.timeline = stream.timeline;
  operation->self.what = std::make_shared<std::string>(std::move(what));
  operation->work = std::move(work);
  operation->isGated = gate || meeting;
  operation->gate = std::move(gate);
  operation->meeting = std::move(meeting);
  operation->mentions = std::move(mentions);
  operation->clock.join(stream.clock);
  orderBehind(*operation, stream.last);
  for (const OperationRef &before : more)
    orderBehind(*operation, before);
  Stream &null = legacy[static_cast<size_t>(stream.context->card)];
  if (&stream == &null) {
    for (const auto &[handle, other] : streams)
      if (other->isBlocking && other->context == stream.context)
        orderBehind(*operation, other->last);
  } else if (stream.isBlocking)
    orderBehind(*operation, null.last);
  stream.last = operation;
  add(operation);
  stream.clock = operation->clock;
  return operation;
}

void World::launchGraph(GraphExec &exec, Stream &stream) {
  // A launch is behind the stream, and behind the graph's launch before; its nodes are ordered by its edges alone.
  const OperationRef begin = issue(stream, "the begin of a graph", nullptr, {}, {exec.last});
  std::map<const Node *, OperationRef> issued;
  std::vector<OperationRef> all;
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    const Node &node = *exec.nodes[i];
    auto operation = std::make_shared<Operation>();
    operation->context = node.context ? node.context : stream.context;
    operation->self.timeline = exec.timelines[i];
    operation->self.what = std::make_shared<std::string>(nameOf(node) + ", node " + std::to_string(i) + " of a graph");
    operation->work = workOf(node);
    operation->isGated = node.kind == Node::Kind::Conditional; // what its body is behind, is known when it has run
    operation->mentions = mentionsOf(node);
    operation->module = node.kind == Node::Kind::Kernel ? node.kernel.module : nullptr;
    orderBehind(*operation, begin);
    for (const Node *before : node.after)
      orderBehind(*operation, issued.at(before));
    issued[&node] = operation;
    all.push_back(operation);
    add(operation);
  }
  exec.last = issue(stream, "the end of a graph", nullptr, {}, all);
}

//--- Running ----------------------------------------------------------------------------------------------------------
bool World::canRun(const Operation &operation) const {
  auto hasRun = [](const OperationRef &before) { return before->hasRun; };
  const Meets meets = operation.meeting ? operation.meeting() : Meets::Free;
  return std::ranges::all_of(operation.after, hasRun) &&
         (meets == Meets::Free || (meets == Meets::Behind && std::ranges::all_of(operation.meets, hasRun))) &&
         (!operation.gate || operation.gate());
}

bool World::isHeld(const Operation &operation) {
  std::vector<const Operation *> needed{&operation};
  std::unordered_set<const Operation *> seen{&operation}; // streams that wait for each other go round in a circle
  for (size_t i = 0; i < needed.size(); ++i) {
    const Operation &each = *needed[i];
    if (each.hasRun || !each.isGated)
      continue;
    if ((each.gate && !each.gate()) || (each.meeting && each.meeting() == Meets::NotYet))
      return true;
    for (const auto *list : {&each.after, &each.meets})
      for (const OperationRef &before : *list)
        if (seen.insert(before.get()).second)
          needed.push_back(before.get());
  }
  return false;
}

void World::yield() {
  mutex.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  mutex.lock();
}

void World::trace(const char *what, const Operation &operation) const {
  if (isTracing)
    std::fprintf(stderr, "stand-in driver: %s %llu (timeline %u, tick %llu): %s\n", what, static_cast<unsigned long long>(operation.number), operation.self.timeline,
                 static_cast<unsigned long long>(operation.self.tick), operation.self.what->c_str());
}

void World::run(const OperationRef &operation) {
  trace("runs", *operation);
  if (operation->gate)
    operation->clock.join(host); // what the host had seen when it opened the gate
  if (operation->isGated)
    for (const OperationRef &before : operation->after)
      operation->clock.join(before->clock);
  if (operation->context->sticky != kSuccess)
    operation->result = operation->context->sticky; // what is in flight when a context breaks does not run
  else if (operation->work)
    operation->result = operation->work(*operation);
  if (operation->result != kSuccess)
    operation->context->sticky = operation->result;
  operation->hasRun = true;
  operation->work = nullptr;
  operation->gate = nullptr;
  operation->meeting = nullptr;
  operation->after.clear();
  operation->meets.clear();
  operation->endNs = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void World::finish(const OperationRef &target) {
  if (!target)
    return;
  // Reversed: the latest that can run, again and again; random: any. Late: nothing that the target does not need.
  while (!target->hasRun) {
    std::vector<OperationRef> needed{target};
    std::unordered_set<const Operation *> seen{target.get()};
    for (size_t i = 0; i < needed.size(); ++i)
      for (const auto *list : {&needed[i]->after, &needed[i]->meets})
        for (const OperationRef &before : std::vector(*list)) // `needed` may move, what it points to does not
          if (!before->hasRun && seen.insert(before.get()).second)
            needed.push_back(before);
    if (order == Order::Random || order == Order::Reversed) {
      std::vector<OperationRef> able;
      for (const OperationRef &candidate : pending_)
        if (canRun(*candidate))
          able.push_back(candidate);
      if (able.empty()) {
        yield();
        continue;
      }
      const OperationRef chosen = able[order == Order::Reversed ? able.size() - 1 : next(able.size())];
      run(chosen);
      std::erase(pending_, chosen);
      continue;
    }
    std::ranges::sort(needed, {}, &Operation::number);
    bool any = false;
    for (const OperationRef &candidate : needed) // in the order of issue, which waits allow
      if (!candidate->hasRun && canRun(*candidate)) {
        run(candidate);
        any = true;
      }
    if (!any && !target->hasRun)
      yield(); // then there may be more that it needs
    std::erase_if(pending_, [](const OperationRef &candidate) { return candidate->hasRun; });
  }
  see(target);
}

void World::see(const OperationRef &operation) {
  if (operation)
    host.join(operation->clock);
}

void World::mayRun() {
  if (order == Order::Eager) // what was held up
    for (size_t i = 0; i < pending_.size();)
      if (const OperationRef operation = pending_[i]; canRun(*operation)) {
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
        run(operation);
      } else {
        ++i;
      }
  if (order != Order::Random)
    return;
  while (!pending_.empty() && next(3) == 0) {
    std::vector<size_t> able;
    for (size_t i = 0; i < pending_.size(); ++i)
      if (canRun(*pending_[i]))
        able.push_back(i);
    if (able.empty())
      return;
    const size_t chosen = able[next(able.size())];
    const OperationRef operation = pending_[chosen];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(chosen));
    run(operation);
  }
}

bool World::looksEnded(const OperationRef &operation) {
  if (!operation)
    return true;
  // A program that polls is told "not ready" for a while, then it has to get on.
  if (!operation->self.isBefore(host)) {
    if (polls_.size() > 10000)
      polls_.clear(); // of operations that ended otherwise
    if (++polls_[operation->number] <= patience || isHeld(*operation))
      return false;
    polls_.erase(operation->number);
    finish(operation);
  }
  see(operation);
  return true;
}

OperationRef World::pendingAt(uint64_t number) const {
  const auto at = std::ranges::find(pending_, number, &Operation::number);
  return at == pending_.end() ? nullptr : *at;
}

void World::drain() {
  while (!pending_.empty())
    finish(pending_.back());
}

} // namespace tressel::standin
