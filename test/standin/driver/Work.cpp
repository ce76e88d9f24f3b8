// What operations do when they run, and what their bytes tell of missing waits.
#include "World.h"

#include <cstdio>
#include <cstring>

namespace tressel::standin {
namespace {

std::string hex(uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

/// A kernel's view: memory of its own card, of its card's peers, and of the host as far as it is pinned.
class View final : public ptx::Memory {
public:
  View(World &world, const Context &context, bool isMarking) : world_(world), context_(context), isMarking_(isMarking) {}
  ptx::Span *find(uint64_t address) override {
    Allocation *a = world_.heap.find(address);
    if (!a || a->freedBy || (a->card >= 0 && a->card != context_.card && !context_.peers.contains(a->card)))
      return nullptr;
    if (isMarking_ && !a->span.reads) {
      const size_t words = (a->bytes + 63) / 64;
      if (a->readBits.size() != words) {
        a->readBits.assign(words, 0);
        a->writeBits.assign(words, 0);
      }
      a->span.reads = a->readBits.data();
      a->span.writes = a->writeBits.data();
      touched.push_back(a);
    }
    return &a->span;
  }
  std::vector<Allocation *> touched;

private:
  World &world_;
  const Context &context_;
  bool isMarking_;
};

} // namespace

void World::touch(Operation &operation, Allocation &allocation, Bytes bytes, bool isWrite) {
  const auto conflict = allocation.history.add(bytes, isWrite, operation.self, operation.clock);
  if (!conflict)
    return;
  const uint64_t begin = std::max(conflict->bytes.begin, bytes.begin), end = std::min(conflict->bytes.end, bytes.end);
  find("a wait is missing: " + *operation.self.what + (isWrite ? " writes" : " reads") + " bytes " + std::to_string(begin) + " to " + std::to_string(end) +
       " of " + allocation.describe() + ", which " + *conflict->other.what + (conflict->isOtherWrite ? " writes" : " reads") + ", and nothing orders the two");
}

bool World::findUse(Allocation &allocation, const char *call) {
  for (const OperationRef &operation : pending_)
    if (std::ranges::any_of(operation->mentions, [&](uint64_t a) { return a - allocation.begin < allocation.bytes; })) {
      find(std::string(call) + " frees " + allocation.describe() + ", which " + *operation->self.what + " may use, and has not run");
      return true;
    }
  const auto conflict = allocation.history.findUnordered(host);
  if (conflict)
    find(std::string(call) + " frees " + allocation.describe() + ", which " + *conflict->other.what + " uses, and the host has not waited for it");
  return conflict.has_value();
}

Result World::runKernel(Operation &operation, const KernelLaunch &launch) {
  if (++kernelsRun == failKernelAt)
    return error ? error : kIllegalAddress;
  View view(*this, *operation.context, true);
  ptx::Launch what;
  for (int i = 0; i < 3; ++i)
    what.grid[i] = launch.grid[i], what.block[i] = launch.block[i];
  what.cluster = launch.cluster;
  what.dynamicSharedBytes = launch.sharedBytes;
  what.params = launch.params;
  what.seed = seed ? next(0) | 1 : 0;
  const auto fault = launch.kernel->run(what, view);
  for (Allocation *a : view.touched) {
    ptx::Span &span = a->span;
    for (const Bytes &bytes : takeRuns(a->readBits, span.readsFrom, span.readsTo))
      touch(operation, *a, {bytes.begin, std::min(bytes.end, a->bytes)}, false);
    for (const Bytes &bytes : takeRuns(a->writeBits, span.writesFrom, span.writesTo))
      touch(operation, *a, {bytes.begin, std::min(bytes.end, a->bytes)}, true);
    span.reads = span.writes = nullptr;
    span.readsFrom = span.writesFrom = UINT64_MAX;
    span.readsTo = span.writesTo = 0;
  }
  if (!fault)
    return kSuccess;
  // What a card does not say, the log of a test should.
  std::fprintf(stderr, "stand-in driver: %s: %s\n", operation.self.what->c_str(), fault->message.c_str());
  switch (fault->kind) {
  case ptx::Fault::Kind::IllegalAddress: return kIllegalAddress;
  case ptx::Fault::Kind::Misaligned: return kMisaligned;
  case ptx::Fault::Kind::Hang: return kLaunchTimeout;
  case ptx::Fault::Kind::Trap: break;
  }
  return kLaunchFailed;
}

Result World::runCopy(Operation &operation, const CopyWork &copy) {
  auto place = [&](uint64_t address, bool isWrite, Result &result) -> std::byte * {
    Allocation *a = heap.find(address);
    if (!a) {
      if (heap.isCardAddress(address)) {
        std::fprintf(stderr, "stand-in driver: %s: no memory is at %s\n", operation.self.what->c_str(), hex(address).c_str());
        result = kIllegalAddress;
      }
      return reinterpret_cast<std::byte *>(address);
    }
    if (a->freedBy || copy.bytes > a->end() - address) {
      std::fprintf(stderr, "stand-in driver: %s: bytes %s to %s are not all in %s%s%s\n", operation.self.what->c_str(), hex(address).c_str(),
                   hex(address + copy.bytes).c_str(), a->describe().c_str(), a->freedBy ? ", freed by " : "", a->freedBy ? a->freedBy->c_str() : "");
      result = kIllegalAddress;
      return nullptr;
    }
    touch(operation, *a, {address - a->begin, address - a->begin + copy.bytes}, isWrite);
    return a->host + (address - a->begin);
  };
  if (copy.bytes == 0)
    return kSuccess;
  Result result = kSuccess;
  const std::byte *from = copy.staged ? copy.staged->data() : place(copy.from, false, result);
  std::byte *to = place(copy.to, true, result);
  if (result == kSuccess)
    std::memmove(to, from, copy.bytes);
  return result;
}

Result World::runFill(Operation &operation, const FillWork &fill) {
  for (uint64_t row = 0; row < fill.height; ++row) {
    const uint64_t at = fill.to + row * fill.pitch, bytes = fill.width * fill.elementBytes;
    if (bytes == 0)
      continue;
    Allocation *a = heap.find(at);
    if (!a || a->freedBy || bytes > a->end() - at) {
      std::fprintf(stderr, "stand-in driver: %s: bytes %s to %s are no memory\n", operation.self.what->c_str(), hex(at).c_str(), hex(at + bytes).c_str());
      return kIllegalAddress;
    }
    touch(operation, *a, {at - a->begin, at - a->begin + bytes}, true);
    std::byte *to = a->host + (at - a->begin);
    for (uint64_t i = 0; i < fill.width; ++i)
      std::memcpy(to + i * fill.elementBytes, &fill.value, fill.elementBytes);
  }
  return kSuccess;
}

Result World::runConditional(Operation &self, const Node &node) {
  Allocation *word = heap.find(node.condition);
  if (!word)
    return kIllegalAddress;
  constexpr int kMost = 1 << 20;
  const GraphExec &body = *node.bodyExec;
  for (int times = 0; times < kMost; ++times) {
    touch(self, *word, {0, 4}, false);
    uint32_t value = 0;
    std::memcpy(&value, word->host, 4);
    if (value == 0)
      return kSuccess;
    Clock ends;
    std::map<const Node *, Clock> clocks;
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      const Node &inner = *body.nodes[i];
      Operation operation;
      operation.context = self.context;
      operation.number = self.number;
      operation.self = {body.timelines[i], ++ticks_[body.timelines[i]],
                        std::make_shared<std::string>(nameOf(inner) + ", node " + std::to_string(i) + " of a conditional node's body")};
      operation.clock.join(self.clock);
      for (const Node *before : inner.after)
        operation.clock.join(clocks.at(before));
      operation.clock.set(operation.self.timeline, operation.self.tick);
      trace("runs", operation);
      if (const auto work = workOf(inner))
        if (const Result result = work(operation); result != kSuccess)
          return result;
      clocks[&inner] = operation.clock;
      ends.join(operation.clock);
    }
    self.clock.join(ends);
    if (!node.repeats)
      return kSuccess;
  }
  std::fprintf(stderr, "stand-in driver: %s is repeated without end\n", self.self.what->c_str());
  return kLaunchTimeout;
}

std::function<Result(Operation &)> World::workOf(const Node &node) {
  switch (node.kind) {
  case Node::Kind::Kernel: return [this, launch = node.kernel](Operation &o) { return runKernel(o, launch); };
  case Node::Kind::Copy: return [this, copy = node.copy](Operation &o) { return runCopy(o, copy); };
  case Node::Kind::Fill: return [this, fill = node.fill](Operation &o) { return runFill(o, fill); };
  case Node::Kind::Conditional: return [this, node](Operation &o) { return runConditional(o, node); };
  case Node::Kind::Empty: break;
  }
  return nullptr;
}

std::vector<uint64_t> World::mentionsOf(const Node &node) {
  std::vector<uint64_t> mentions;
  if (node.kind == Node::Kind::Kernel)
    for (size_t at = 0; at + 8 <= node.kernel.params.size(); at += 8) {
      uint64_t value = 0;
      std::memcpy(&value, node.kernel.params.data() + at, 8);
      mentions.push_back(value);
    }
  else if (node.kind == Node::Kind::Copy)
    mentions = {node.copy.to, node.copy.staged ? 0 : node.copy.from};
  else if (node.kind == Node::Kind::Fill)
    mentions = {node.fill.to};
  else if (node.kind == Node::Kind::Conditional) {
    mentions = {node.condition};
    for (const auto &inner : node.bodyExec->nodes)
      for (uint64_t address : mentionsOf(*inner))
        mentions.push_back(address);
  }
  return mentions;
}

std::string World::nameOf(const Node &node) {
  switch (node.kind) {
  case Node::Kind::Kernel: return "kernel '" + node.kernel.kernel->name + "'";
  case Node::Kind::Copy: return "a copy of " + std::to_string(node.copy.bytes) + " bytes from " + hex(node.copy.from) + " to " + hex(node.copy.to);
  case Node::Kind::Fill: return "a fill at " + hex(node.fill.to);
  case Node::Kind::Conditional: return node.repeats ? "a node that repeats its body" : "a node that may run its body";
  case Node::Kind::Empty: break;
  }
  return "an empty node";
}

} // namespace tressel::standin
