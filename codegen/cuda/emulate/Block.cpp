#include "codegen/cuda/emulate/Block.h"

#include "tressel/runtime/Error.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <thread>

namespace tressel::codegen::cuda::emulate {

/// What is in shared memory that nobody wrote: NaN in all floating-point types.
static constexpr int kPoison = 0xff;
static constexpr uint64_t kMostPolls = 1 << 22; ///< more than a second

Block::~Block() {
  if (shared_)
    munmap(shared_, sharedCapacity_);
}

void Block::begin(Launch launch, Block *first) {
  launch_ = std::move(launch);
  first_ = first ? first : this;
  const Code &code = *launch_.code;
  const size_t needed = (std::max<uint64_t>(code.sharedBytes, 1) + 4095) & ~uint64_t(4095);
  if (needed > sharedCapacity_) {
    if (shared_)
      munmap(shared_, sharedCapacity_);
    // In the low part of the address space, if possible: code may keep addresses of shared memory in 32 bits.
    void *memory = mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (memory == MAP_FAILED)
      memory = mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      shared_ = nullptr, sharedCapacity_ = 0;
      throw OutOfMemory("no memory for an emulated GPU block (" + std::to_string(needed) + " bytes)");
    }
    shared_ = static_cast<char *>(memory), sharedCapacity_ = needed;
  }
  sharedShadow_.cover(code.sharedBytes, code.sharedGranule);
  for (const Code::Range &gap : code.gaps)
    sharedShadow_.forbid(gap.begin, gap.end);
  globalShadows_.clear();
  if (launch_.watchGlobal && first_ == this)
    for (const Buffer &buffer : launch_.buffers) {
      globalShadows_.emplace_back();
      globalShadows_.back().cover((buffer.bytes + 15) & ~uint64_t(15), code.globalGranule);
    }
  launchEpoch_ = first ? first->launchEpoch_ : tick();
  if (threads_.size() < launch_.threads)
    threads_ = std::vector<Thread>(launch_.threads);
  ready_.resize(threads_.size());
  warps_.resize((launch_.threads + 31) / 32);
  std::erase_if(idle_, [&](const auto &fibre) { return fibre->bytes() < code.stackBytes; });
}

void Block::run(std::span<Block *const> cluster, uint32_t block) {
  for (uint32_t rank = 0; rank < cluster.size(); ++rank)
    cluster[rank]->start(cluster, rank, block + rank);
  auto hasEnded = [](const Block *b) { return b->hasEnded(); };
  while (!std::ranges::all_of(cluster, hasEnded)) {
    bool hasMoved = false;
    for (Block *each : cluster) {
      hasMoved |= each->advance();
      if (each->failed_)
        throw Error({.message = std::move(each->failure_), .op = {}, .hint = {}});
    }
    if (!hasMoved) {
      Block *stuck = *std::ranges::find_if_not(cluster, hasEnded);
      stuck->explainStandstill();
      throw Error({.message = std::move(stuck->failure_), .op = {}, .hint = {}});
    }
  }
}

void Block::start(std::span<Block *const> cluster, uint32_t rank, uint32_t block) {
  cluster_ = cluster, rank_ = rank, waitingAtCluster_ = 0;
  block_ = block;
  const uint32_t n = launch_.threads;
  blockEpoch_ = epoch_ = clusterEpoch_ = rank ? first_->blockEpoch_ : tick();
  readyBegin_ = readyCount_ = 0, done_ = waitingAtBarrier_ = 0, polls_ = 0, failed_ = false;
  std::memset(shared_, kPoison, launch_.code->sharedBytes);
  for (Warp &warp : warps_)
    warp.clock.reset(), warp.meetings.clear();
  for (uint32_t t = 0; t < n; ++t) {
    Thread &thread = threads_[t];
    thread.tid = t, thread.block = block, thread.threads = n, thread.blocks = launch_.blocks;
    thread.arguments = launch_.arguments.data();
    thread.shared = shared_, thread.home = this;
    thread.copies.clear(), thread.copyGroups.clear();
    if (thread.fibre)
      idle_.push_back(std::move(thread.fibre));
    ready(thread);
  }
}

bool Block::advance() {
  const bool canRun = readyCount_ > 0;
  while (readyCount_ && !failed_) {
    Thread &next = threads_[ready_[readyBegin_]];
    readyBegin_ = (readyBegin_ + 1) % launch_.threads, --readyCount_;
    resume(next);
  }
  return canRun;
}

void Block::ready(Thread &thread) {
  thread.state = State::Ready;
  const uint32_t n = launch_.threads;
  ready_[(readyBegin_ + readyCount_++) % n] = thread.tid;
}

void Block::runThread(void *argument) {
  auto &thread = *static_cast<Thread *>(argument);
  thread.home->launch_.code->entry(&thread);
  thread.state = State::Done;
  thread.fibre->stop();
  std::abort(); // nobody resumes it
}

void Block::resume(Thread &thread) {
  if (!thread.fibre) {
    if (idle_.empty())
      idle_.push_back(std::make_unique<Fibre>(launch_.code->stackBytes));
    thread.fibre = std::move(idle_.back());
    idle_.pop_back();
    thread.fibre->start(runThread, &thread);
  }
  thread.fibre->resume();
  if (thread.state == State::Done) {
    ++done_, polls_ = 0;
    idle_.push_back(std::move(thread.fibre));
  }
}

void Block::wait(Thread &thread, State state, const Site &site) {
  thread.state = state, thread.site = &site;
  thread.fibre->stop();
}

std::string Block::placeOf(const Thread &thread) const {
  return "thread " + std::to_string(thread.tid) + " of block " + std::to_string(thread.block);
}

void Block::fail(const Thread &thread, const Site *site, const std::string &message) {
  if (failed_)
    return;
  failed_ = true;
  failure_ = "kernel '" + launch_.code->symbol + "': " + placeOf(thread) + " " + message;
  if (site && !site->text.empty())
    failure_ += ", in '" + site->text + "'";
}

void Block::leaveIfFailed(Thread &thread) {
  if (!failed_)
    return;
  thread.fibre->stop();
  std::abort(); // nobody resumes it
}

void Block::barrier(Thread &thread, const Site &site) {
  polls_ = 0;
  if (++waitingAtBarrier_ < launch_.threads) {
    wait(thread, State::AtBarrier, site);
    return;
  }
  thread.site = &site;
  // All are here: the same barrier?
  const uint32_t number = thread.in[0];
  uint32_t count = 0;
  for (uint32_t t = 0; t < launch_.threads; ++t) {
    const Thread &other = threads_[t];
    if (other.in[0] != number || other.site->op != site.op || (site.aligned && other.site != threads_[t & ~31u].site))
      return fail(thread, &site,
                  "meets thread " + std::to_string(t) + " at another barrier ('" + other.site->text + "')");
    count += other.in[1] != 0;
  }
  waitingAtBarrier_ = 0;
  epoch_ = tick();
  for (uint32_t t = 0; t < launch_.threads; ++t) {
    Thread &other = threads_[t];
    other.out[0] = site.op == Op::BarrierAnd ? count == launch_.threads : site.op == Op::BarrierOr ? count > 0 : count;
    if (&other != &thread)
      ready(other);
  }
}

void Block::clusterBarrier(Thread &thread, const Site &site) {
  polls_ = 0;
  if (++first_->waitingAtCluster_ < launch_.threads * cluster_.size()) {
    wait(thread, State::AtCluster, site);
    return;
  }
  first_->waitingAtCluster_ = 0;
  const uint32_t now = tick();
  for (Block *block : cluster_) {
    block->epoch_ = block->clusterEpoch_ = now;
    for (uint32_t t = 0; t < launch_.threads; ++t)
      if (Thread &other = block->threads_[t]; &other != &thread)
        block->ready(other);
  }
}

char *Block::placeInPeer(Thread &thread, const void *own, uint32_t rank, const Site &site) {
  if (rank >= cluster_.size())
    fail(thread, &site,
         "names block " + std::to_string(rank) + " of its cluster, which has " + std::to_string(cluster_.size()));
  else if (!isShared(own))
    fail(thread, &site, "maps an address that is not in shared memory");
  else
    return cluster_[rank]->shared_ + (static_cast<const char *>(own) - shared_);
  return nullptr;
}

Block *Block::homeOf(const void *address) {
  const auto home = std::ranges::find_if(cluster_, [&](const Block *block) { return block->isShared(address); });
  return home == cluster_.end() ? nullptr : *home;
}

void Block::warp(Thread &thread, const Site &site) {
  polls_ = 0;
  const uint32_t mask = thread.in[0], bit = 1u << thread.lane();
  if (!(mask & bit))
    return fail(thread, &site, "is not among the lanes that it names, " + std::to_string(mask));
  Warp &warp = warps_[thread.warp()];
  auto meeting = std::ranges::find_if(warp.meetings, [&](const Meeting &m) {
    return m.mask == mask && m.site->op == site.op && m.site->k == site.k && !(m.arrived & bit);
  });
  if (meeting == warp.meetings.end())
    meeting = warp.meetings.insert(meeting, {mask, 0, &site});
  meeting->arrived |= bit;
  if (meeting->arrived != mask) {
    wait(thread, State::AtWarp, site);
    return;
  }
  warp.meetings.erase(meeting);
  thread.site = &site;
  const std::span<Thread> lanes(&threads_[thread.tid & ~31u], std::min<size_t>(32, launch_.threads));
  if (site.op == Op::WarpSync)
    warp.clock.meet(mask);
  else if (site.op == Op::LoadMatrix)
    for (Thread &giver : lanes.first(8u * site.k)) {
      // Row r is read by the lanes that get its elements, whoever gives the address.
      const uint64_t address = giver.in[1] | uint64_t(giver.in[2]) << 32;
      const uint32_t row = giver.lane() & 7;
      for (Thread &lane : lanes)
        if (site.transposed ? (lane.lane() & 3) == row >> 1 : lane.lane() >> 2 == row)
          access(lane, reinterpret_cast<void *>(address), 16, site);
    }
  if (site.op != Op::WarpSync)
    computeWarp(site, lanes, mask);
  for (Thread &lane : lanes)
    if (mask >> lane.lane() & 1 && &lane != &thread)
      ready(lane);
}

void Block::explainStandstill() {
  // Who waits, for what, and who does not come. A warp that waits for its own lanes first.
  const Thread *waiting = nullptr;
  for (uint32_t t = 0; t < launch_.threads; ++t)
    if (threads_[t].state == State::AtWarp || (threads_[t].state != State::Done && !waiting)) {
      waiting = &threads_[t];
      if (waiting->state == State::AtWarp)
        break;
    }
  auto where = [&](const Thread &other) -> std::string {
    if (other.state == State::Done)
      return "has returned";
    return "waits in '" + other.site->text + "'";
  };
  std::string missing;
  int count = 0;
  for (const Block *block : cluster_) {
    if (block != this && waiting->state != State::AtCluster)
      continue;
    for (uint32_t t = 0; t < launch_.threads; ++t) {
      const Thread &other = block->threads_[t];
      bool absent;
      if (waiting->state == State::AtWarp)
        absent =
            other.warp() == waiting->warp() && waiting->in[0] >> other.lane() & 1 &&
            !(other.state == State::AtWarp && other.site->op == waiting->site->op && other.in[0] == waiting->in[0]);
      else
        absent = other.state != waiting->state;
      if (absent && count++ == 0)
        missing = (block == this ? "thread " + std::to_string(t) : placeOf(other)) + " " + where(other);
    }
  }
  failed_ = true;
  failure_ = "kernel '" + launch_.code->symbol + "': " + placeOf(*waiting) + " waits in '" + waiting->site->text +
             "', where not all threads arrive: " + missing +
             (count > 1 ? ", and " + std::to_string(count - 1) + " more do not come" : "");
}

void Block::record(Thread &thread, AccessKind kind, char *address, uint64_t bytes, const Site &site) {
  const char *verb = kind == AccessKind::Read ? "reads " : kind == AccessKind::Write ? "writes " : "changes ";
  Shadow::Access access{.kind = kind,
                        .bytes = bytes,
                        .thread = Shadow::numberOf(rank_, thread.tid),
                        .epoch = epoch_,
                        .clusterEpoch = clusterEpoch_,
                        .blockEpoch = blockEpoch_,
                        .launchEpoch = launchEpoch_,
                        .blocksAreOrdered = true,
                        .isFar = rank_ != 0};
  const WarpClock &clock = warps_[thread.warp()].clock;
  if (Block *home = homeOf(address)) {
    access.offset = static_cast<uint64_t>(address - home->shared_);
    access.mustBeWritten = true;
    access.isFar = home != this;
    if (access.offset + bytes > sharedShadow_.bytes())
      return fail(thread, &site, std::string(verb) + "shared memory behind its end");
    if (home->hasEnded())
      return fail(thread, &site,
                  std::string(verb) + "shared memory of block " + std::to_string(home->block_) +
                      ", which may have ended");
    const std::string what = home->sharedShadow_.check(access, clock);
    if (!what.empty()) {
      const auto &variables = launch_.code->variables;
      auto variable = std::ranges::upper_bound(variables, access.offset, {}, &std::pair<uint64_t, std::string>::first);
      std::string name = variable == variables.begin()
                             ? ""
                             : " (of '" + std::prev(variable)->second + "', which begins at " +
                                   std::to_string(std::prev(variable)->first) + ")";
      return fail(thread, &site, std::string(verb) + "shared memory, " + what + name);
    }
    return;
  }
  // The buffer that it is in, or else the nearest.
  const auto next = std::ranges::upper_bound(launch_.buffers, address, {}, &Buffer::begin);
  const bool first = next == launch_.buffers.begin(), last = next == launch_.buffers.end();
  auto buffer = first ? next : std::prev(next);
  if (!first && !last && address >= buffer->begin + buffer->bytes &&
      next->begin - address < address - (buffer->begin + buffer->bytes))
    buffer = next;
  const std::string name = "buffer " + std::to_string(buffer->number);
  const int64_t offset = address - buffer->begin;
  if (offset < 0 || static_cast<uint64_t>(offset) + bytes > buffer->bytes)
    return fail(thread, &site,
                verb + std::to_string(bytes) + " bytes out of the bounds of " + name + ", at offset " +
                    std::to_string(offset) + " of " + std::to_string(buffer->bytes));
  access.offset = static_cast<uint64_t>(offset);
  if (!launch_.watchGlobal)
    return;
  access.blocksAreOrdered = launch_.code->ordersBlocks;
  const std::string what =
      first_->globalShadows_[static_cast<size_t>(buffer - launch_.buffers.begin())].check(access, clock);
  if (!what.empty())
    fail(thread, &site, std::string(verb) + name + " of the launch, " + what);
}

void Block::access(Thread &thread, void *pointer, uint64_t bytes, const Site &site) {
  auto *address = static_cast<char *>(pointer);
  if (!bytes)
    return;
  const AccessKind kind = site.op == Op::Store    ? AccessKind::Write
                          : site.op == Op::Atomic ? AccessKind::Atomic
                                                  : AccessKind::Read;
  if (reinterpret_cast<uintptr_t>(address) & (site.alignment - 1))
    return fail(thread, &site,
                "accesses memory at an address that is not a multiple of " + std::to_string(site.alignment));
  const bool shared = isShared(address) || (site.space == Space::Cluster && homeOf(address));
  if ((site.space == Space::Shared || site.space == Space::Cluster) && !shared)
    return fail(thread, &site,
                "accesses shared memory out of its bounds, at offset " + std::to_string(address - shared_) + " of " +
                    std::to_string(launch_.code->sharedBytes));
  if (shared) {
    record(thread, kind, address, bytes, site);
    return;
  }
  if (launch_.buffers.empty() || pointer == launch_.status)
    return;
  // Variables of the thread itself.
  if (site.space == Space::Generic && thread.fibre->owns(address))
    return;
  record(thread, kind, address, bytes, site);
}

void Block::copyAsync(Thread &thread, void *to, const void *from, uint32_t given, const Site &site) {
  Site read = site, write = site;
  read.op = Op::Load, read.space = Space::Global, write.op = Op::Store, write.space = Space::Shared;
  given = std::min(given, site.bytes);
  // It may happen at once or late: it is a write now, for what others did before, and one when it is waited for.
  access(thread, const_cast<void *>(from), given, read);
  access(thread, to, site.bytes, write);
  if (failed_)
    return;
  std::memset(to, kPoison, site.bytes);
  sharedShadow_.setInFlight(static_cast<uint64_t>(static_cast<char *>(to) - shared_), site.bytes, true);
  thread.copies.push_back({static_cast<char *>(to), static_cast<const char *>(from), site.bytes, given, &site});
}

void Block::commitCopies(Thread &thread) { thread.copyGroups.push_back(thread.copies.size()); }

void Block::waitForCopies(Thread &thread, uint32_t pendingGroups) {
  auto &groups = thread.copyGroups;
  if (groups.size() <= pendingGroups)
    return;
  const size_t numGroups = groups.size() - pendingGroups, count = groups[numGroups - 1];
  for (size_t i = 0; i < count; ++i) {
    const Thread::Copy &copy = thread.copies[i];
    std::memcpy(copy.to, copy.from, copy.given);
    std::memset(copy.to + copy.given, 0, copy.bytes - copy.given);
    sharedShadow_.setInFlight(static_cast<uint64_t>(copy.to - shared_), copy.bytes, false);
    Site write = *copy.site;
    write.op = Op::Store, write.space = Space::Shared;
    access(thread, copy.to, copy.bytes, write);
  }
  thread.copies.erase(thread.copies.begin(), thread.copies.begin() + static_cast<ptrdiff_t>(count));
  groups.erase(groups.begin(), groups.begin() + static_cast<ptrdiff_t>(numGroups));
  for (size_t &group : groups)
    group -= count;
}

void Block::poll(Thread &thread, const Site &site) {
  if (++polls_ > kMostPolls)
    return fail(thread, &site, "waits for a value that nobody writes");
  if (polls_ % 4096 == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // others may run the block that writes it
  ready(thread);
  thread.fibre->stop();
}

} // namespace tressel::codegen::cuda::emulate
