// What every communicator keeps, whatever implements it: one suite over all. Each rank is a thread. An
// implementation that this computer has no devices for is skipped, and says so; a new one is a line in the table at the
// end.
#include "tressel/runtime/Communicator.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Half.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace tressel::runtime {
namespace {

using State = Semaphore::State;
using Clock = std::chrono::steady_clock;
constexpr int64_t kSecond = 1'000'000'000, kLong = 60 * kSecond, kShort = kSecond / 2;

/// A rank with a stream or two on the device that its communicator works on.
struct Rank {
  std::shared_ptr<Communicator> comm;
  Machine *machine = nullptr;
  Device *device = nullptr;
  Device *host = nullptr;
  std::unique_ptr<Stream> stream, second;

  uint32_t rank() const { return comm->rank(); }
  Home home() const {
    const DeviceRef ref = device->caps().device;
    return {ref, ref.kind == DeviceKind::Cpu ? MemoryKind::Host : MemoryKind::Device};
  }
  /// Memory of the device, freed when its last use has ended.
  struct Memory {
    Device *device;
    std::byte *at;
    size_t bytes;
    std::vector<Event> uses = {};
    Memory(Device *device, size_t bytes, MemoryKind kind)
        : device(device), at(static_cast<std::byte *>(device->allocate(int64_t(bytes), kind))), bytes(bytes) {}
    Memory(Memory &&other) noexcept
        : device(std::exchange(other.device, nullptr)), at(other.at), bytes(other.bytes), uses(std::move(other.uses)) {}
    ~Memory() {
      if (device)
        device->release(at, uses);
    }
  };
  Memory memory(size_t bytes) const { return {device, bytes, home().memory}; }
  Region region(const Memory &m, Access access, size_t from = 0, size_t bytes = SIZE_MAX) const {
    return {m.at + from, int64_t(bytes == SIZE_MAX ? m.bytes - from : bytes), access, home()};
  }
  Event copy(Stream &on, Region from, Region to, std::vector<Event> waits = {}) const {
    const Region regions[] = {from, to};
    return on.submit({.kind = DeviceCommandKind::Copy, .regions = regions, .waits = waits});
  }
  static Region hostRegion(void *at, size_t bytes, Access access) {
    return {at, int64_t(bytes), access, {{DeviceKind::Cpu, 0}, MemoryKind::Host}};
  }
  Memory filled(const std::vector<std::byte> &bytes) const {
    Memory m = memory(bytes.size());
    expectReached(copy(*stream, hostRegion(const_cast<std::byte *>(bytes.data()), bytes.size(), Access::Read),
                       region(m, Access::Write)));
    return m;
  }
  std::vector<std::byte> contents(const Memory &m) const {
    std::vector<std::byte> bytes(m.bytes);
    expectReached(copy(*stream, region(m, Access::Read), hostRegion(bytes.data(), bytes.size(), Access::Write)));
    return bytes;
  }
  Event submit(Stream &on, CollectiveRun run, const std::vector<Region> &regions, std::vector<Event> waits = {},
               uint64_t tag = 0) const {
    if (!run.communicator)
      run.communicator = comm;
    return on.submit({.kind = DeviceCommandKind::Collective,
                      .regions = regions,
                      .waits = waits,
                      .collective = std::make_shared<const CollectiveRun>(std::move(run)),
                      .tag = tag});
  }
  Event barrier() const { return submit(*stream, {.work = RankWork::Barrier}, {}); }
  Event sum(Memory &m, Stream *on = nullptr) const {
    return submit(on ? *on : *stream, {}, {region(m, Access::Read), region(m, Access::Write)});
  }
  void expectReached(Event e) const {
    ASSERT_EQ(machine->awaitAny({&e, 1}, kLong), 0) << "rank " << (comm ? int(rank()) : -1);
    ASSERT_EQ(e.state(), State::Reached) << e.semaphore->failure()->message;
  }
  DeviceFailureRef failureOf(Event e) const {
    EXPECT_EQ(machine->awaitAny({&e, 1}, kLong), 0);
    EXPECT_EQ(e.state(), State::Failed);
    return e.state() == State::Failed ? e.semaphore->failure() : std::make_shared<const DeviceFailure>();
  }
  /// Failed, and the rank is to blame.
  void expectBlames(Event e, uint32_t lost, FailureKind kind = FailureKind::RankLost) const {
    const DeviceFailureRef failure = failureOf(e);
    EXPECT_EQ(failure->rank, int(lost)) << failure->message;
    EXPECT_EQ(failure->host, comm->hostOf(lost));
    EXPECT_EQ(failure->kind, kind) << failure->message;
    EXPECT_NE(failure->message.find("rank " + std::to_string(lost) + " (" + comm->hostOf(lost) + ")"),
              std::string::npos)
        << failure->message;
  }
};

struct Implementation {
  const char *name;
  bool isNccl;
};
void PrintTo(const Implementation &i, std::ostream *os) { *os << i.name; }

class CommunicatorConformance : public ::testing::TestWithParam<Implementation> {
protected:
  static std::string freshName() {
    static std::atomic<int> made{0};
    return "test " + std::to_string(made++);
  }
  /// A communicator of a rank, of those that share the name.
  std::shared_ptr<Communicator> make(Device &device, const std::string &name, uint32_t rank, uint32_t size,
                                     int64_t timeoutNs) const {
    auto local = makeLocalCommunicator(name, rank, size, timeoutNs);
    return GetParam().isNccl ? makeNcclCommunicator(std::move(local), device) : local;
  }
  /// Ranks as threads; false where there are no devices for them, and the test is skipped.
  bool onRanks(uint32_t size, int64_t timeoutNs, const std::function<void(Rank &)> &body) {
    std::shared_ptr<Machine> machine;
    if (GetParam().isNccl) {
      try {
        machine = openMachine("cuda");
      } catch (const Error &) {
        skip_ = "no NVIDIA GPU";
        return false;
      }
      if (machine->devices().size() < 1 + size) {
        skip_ = "needs " + std::to_string(size) + " GPUs, there are " + std::to_string(machine->devices().size() - 1);
        return false;
      }
    } else {
      std::vector<std::shared_ptr<Device>> devices;
      for (uint16_t r = 0; r < size + 1; ++r)
        devices.push_back(makeCpuDevice({DeviceKind::Cpu, r}));
      machine = makeMachine("threads", devices);
    }
    const std::string name = freshName();
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < size; ++r)
      threads.emplace_back([&, r] {
        Rank rank;
        rank.machine = machine.get();
        rank.device = machine->devices()[r + 1].get();
        rank.host = machine->devices()[0].get();
        try {
          rank.stream = rank.device->makeStream(StreamKind::Compute, "a", 0);
          rank.second = rank.device->makeStream(StreamKind::Compute, "b", 0);
          rank.comm = make(*rank.device, name, r, size, timeoutNs);
          body(rank);
        } catch (const Error &error) {
          ADD_FAILURE() << "rank " << r << ": " << error.what();
          if (rank.comm)
            rank.comm->abort(error.message());
        }
        for (auto *stream : {&rank.stream, &rank.second}) {
          Event last = (*stream)->last();
          if (last.value)
            EXPECT_EQ(machine->awaitAny({&last, 1}, kLong), 0) << "rank " << r << " has work that does not end";
        }
        if (rank.comm)
          rank.comm->close();
        rank.stream.reset();
        rank.second.reset();
      });
    for (std::thread &thread : threads)
      thread.join();
    return true;
  }
  std::string skip_;
};
#define RANKS(size, timeout, ...)                                                                                      \
  if (!onRanks(size, timeout, __VA_ARGS__))                                                                            \
  GTEST_SKIP() << skip_

//--- Values -----------------------------------------------------------------------------------------------------------
/// Small, so that every type has them and their sums and products.
int value(uint32_t rank, size_t i, DType type) {
  return type == DType::boolean ? int((rank + i) % 3 != 0) : 1 + int((rank * 2 + i) % 3);
}
void put(std::byte *at, DType type, int number) {
  auto store = [&](auto v) { std::memcpy(at, &v, sizeof v); };
  switch (type) {
  case DType::f32:
    return store(float(number));
  case DType::f64:
    return store(double(number));
  case DType::f16:
    return store(halfFromFloat(float(number)));
  case DType::bf16:
    return store(bfloatFromFloat(float(number)));
  case DType::i8:
    return store(int8_t(number));
  case DType::i16:
    return store(int16_t(number));
  case DType::i32:
    return store(int32_t(number));
  case DType::i64:
    return store(int64_t(number));
  case DType::u8:
    return store(uint8_t(number));
  case DType::boolean:
    return store(uint8_t(number != 0));
  }
}
using Numbers = std::vector<int>;
std::vector<std::byte> spell(const Numbers &numbers, DType type) {
  std::vector<std::byte> bytes(numbers.size() * size_t(sizeOf(type)));
  for (size_t i = 0; i < numbers.size(); ++i)
    put(bytes.data() + i * size_t(sizeOf(type)), type, numbers[i]);
  return bytes;
}
Numbers numbersOf(uint32_t rank, size_t n, DType type) {
  Numbers numbers(n);
  for (size_t i = 0; i < n; ++i)
    numbers[i] = value(rank, i, type);
  return numbers;
}
/// By plain loops: what a rank's target holds. `n` elements of each rank's source, or of a reduce-scatter of each
/// target.
Numbers expected(const CollectiveRun &run, uint32_t rank, uint32_t size, size_t n) {
  Numbers result;
  auto reduced = [&](size_t i) {
    int all = value(0, i, run.type);
    for (uint32_t r = 1; r < size; ++r) {
      const int v = value(r, i, run.type);
      switch (run.reduction) {
      case Reduction::Sum:
        all += v;
        break;
      case Reduction::Product:
        all *= v;
        break;
      case Reduction::Min:
        all = std::min(all, v);
        break;
      case Reduction::Max:
        all = std::max(all, v);
        break;
      }
    }
    return all;
  };
  for (size_t i = 0; i < n; ++i)
    switch (run.kind) {
    case CollectiveKind::AllReduce:
      result.push_back(reduced(i));
      break;
    case CollectiveKind::ReduceScatter:
      result.push_back(reduced(rank * n + i));
      break;
    case CollectiveKind::Broadcast:
      result.push_back(value(run.root, i, run.type));
      break;
    case CollectiveKind::AllGather:
      break;
    }
  if (run.kind == CollectiveKind::AllGather)
    for (uint32_t r = 0; r < size; ++r)
      for (size_t i = 0; i < n; ++i)
        result.push_back(value(r, i, run.type));
  return result;
}
std::vector<CollectiveRun> everyKind(uint32_t root) {
  std::vector<CollectiveRun> runs;
  for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
    for (Reduction reduction : {Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max})
      runs.push_back({.kind = kind, .reduction = reduction});
  runs.push_back({.kind = CollectiveKind::AllGather});
  runs.push_back({.kind = CollectiveKind::Broadcast, .root = root});
  return runs;
}

//--- What works -------------------------------------------------------------------------------------------------------
TEST_P(CommunicatorConformance, RanksKnowEachOther) {
  RANKS(3, kLong, [&](Rank &r) {
    EXPECT_STREQ(r.comm->implementation(), GetParam().name);
    EXPECT_EQ(r.comm->size(), 3u);
    EXPECT_EQ(r.comm->timeoutNs(), kLong);
    for (uint32_t other = 0; other < 3; ++other)
      EXPECT_FALSE(r.comm->hostOf(other).empty());
    EXPECT_EQ(r.comm->failure(), nullptr);
  });
}

TEST_P(CommunicatorConformance, EveryKindTypeAndSize) {
  RANKS(3, kLong, [&](Rank &r) {
    for (DType type : {f32, f64, f16, bf16, i8, i16, i32, i64, u8, DType::boolean})
      for (CollectiveRun run : everyKind(2))
        for (size_t n : {0, 1, 7, 300}) {
          run.type = type;
          const bool reduces = run.kind == CollectiveKind::AllReduce || run.kind == CollectiveKind::ReduceScatter;
          if (reduces && type == i16 && GetParam().isNccl)
            continue; // NCCL has none: RefusesWhatMeansNothing
          const size_t own = run.kind == CollectiveKind::ReduceScatter ? n * 3 : n;
          const auto wanted = spell(expected(run, r.rank(), 3, n), type);
          const Rank::Memory source = r.filled(spell(numbersOf(r.rank(), own, type), type)),
                             target = r.memory(wanted.size());
          r.expectReached(r.submit(*r.stream, run, {r.region(source, Access::Read), r.region(target, Access::Write)}));
          EXPECT_EQ(r.contents(target), wanted) << describe(run, {}) << " of " << n << " elements, rank " << r.rank();
        }
  });
}

TEST_P(CommunicatorConformance, SourceAndTargetMayCoincide) {
  RANKS(3, kLong, [&](Rank &r) {
    for (CollectiveRun run : everyKind(1)) {
      const size_t n = 5, bytes = n * 4,
                   whole =
                       run.kind == CollectiveKind::AllGather || run.kind == CollectiveKind::ReduceScatter ? 3 * n : n;
      const size_t own = r.rank() * bytes;
      Rank::Memory m = r.memory(whole * 4);
      const size_t sourceAt = run.kind == CollectiveKind::AllGather ? own : 0,
                   targetAt = run.kind == CollectiveKind::ReduceScatter ? own : 0;
      auto source = spell(numbersOf(r.rank(), run.kind == CollectiveKind::ReduceScatter ? 3 * n : n, f32), f32);
      r.expectReached(r.copy(*r.stream, Rank::hostRegion(source.data(), source.size(), Access::Read),
                             r.region(m, Access::Write, sourceAt, source.size())));
      const auto wanted = spell(expected(run, r.rank(), 3, n), f32);
      r.expectReached(r.submit(
          *r.stream, run,
          {r.region(m, Access::Read, sourceAt, source.size()), r.region(m, Access::Write, targetAt, wanted.size())}));
      const auto all = r.contents(m);
      EXPECT_EQ(std::vector(all.begin() + long(targetAt), all.begin() + long(targetAt + wanted.size())), wanted)
          << describe(run, {});
    }
  });
}

TEST_P(CommunicatorConformance, OnlyTheRootOfABroadcastNeedsASource) {
  RANKS(3, kLong, [&](Rank &r) {
    const CollectiveRun run{.kind = CollectiveKind::Broadcast, .root = 1};
    const Rank::Memory source = r.filled(spell(numbersOf(r.rank(), 9, f32), f32)), target = r.memory(36);
    std::vector<Region> regions = {r.region(target, Access::Write)};
    if (r.rank() == 1)
      regions.insert(regions.begin(), r.region(source, Access::Read));
    r.expectReached(r.submit(*r.stream, run, regions));
    EXPECT_EQ(r.contents(target), spell(numbersOf(1, 9, f32), f32));
  });
}

TEST_P(CommunicatorConformance, ManyInFlight) {
  RANKS(2, kLong, [&](Rank &r) {
    constexpr size_t kParts = 120;
    std::vector<Rank::Memory> memories;
    for (size_t i = 0; i < kParts; ++i)
      memories.push_back(r.filled(spell(Numbers(1 + i % 50, int(i + r.rank())), i32)));
    std::vector<Event> ends;
    for (size_t i = 0; i < kParts; ++i) // on two streams, in turn
      ends.push_back(r.submit(i % 2 ? *r.second : *r.stream, {.type = i32},
                              {r.region(memories[i], Access::Read), r.region(memories[i], Access::Write)}));
    for (size_t i = 0; i < kParts; ++i)
      r.expectReached(ends[i]);
    for (size_t i = 0; i < kParts; ++i)
      EXPECT_EQ(r.contents(memories[i]), spell(Numbers(1 + i % 50, int(2 * i + 1)), i32)) << i;
  });
}

TEST_P(CommunicatorConformance, PartsWaitAndAreWaitedFor) {
  RANKS(2, kLong, [&](Rank &r) {
    auto bytes = spell(numbersOf(r.rank(), 4000, f32), f32);
    std::vector<std::byte> result(bytes.size());
    Rank::Memory m = r.memory(bytes.size());
    const Event in =
        r.copy(*r.second, Rank::hostRegion(bytes.data(), bytes.size(), Access::Read), r.region(m, Access::Write));
    const Event summed = r.submit(*r.stream, {}, {r.region(m, Access::Read), r.region(m, Access::Write)}, {in});
    const Event out = r.copy(*r.second, r.region(m, Access::Read),
                             Rank::hostRegion(result.data(), result.size(), Access::Write), {summed});
    r.expectReached(out);
    EXPECT_EQ(result, spell(expected({}, r.rank(), 2, 4000), f32));
  });
}

// The first part of rank 0 is held up on one stream, while the second one could begin on the other.
TEST_P(CommunicatorConformance, PartsBeginInTheOrderOfSubmission) {
  RANKS(2, kLong, [&](Rank &r) {
    Semaphore go;
    Rank::Memory a = r.filled(spell({1, 2, 3}, f32)), b = r.filled(spell({10, 20, 30, 40}, f32));
    const std::vector<Event> waits = r.rank() == 0 ? std::vector<Event>{{&go, 1}} : std::vector<Event>{};
    const Event first = r.submit(*r.stream, {}, {r.region(a, Access::Read), r.region(a, Access::Write)}, waits);
    const Event second = r.sum(b, r.second.get());
    if (r.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(second.state(), State::Pending);
      go.signal(1);
    }
    r.expectReached(second);
    r.expectReached(first);
    EXPECT_EQ(r.contents(a), spell({2, 4, 6}, f32));
    EXPECT_EQ(r.contents(b), spell({20, 40, 60, 80}, f32));
  });
}

TEST_P(CommunicatorConformance, RanksExchangeUnevenSizes) {
  RANKS(3, kLong, [&](Rank &r) {
    auto bytesFrom = [](uint32_t from, uint32_t to) {
      return size_t(from * 100 + to * 7) * (from == to ? 0 : from + to == 1 ? 0 : 1);
    };
    for (int round = 0; round < 3; ++round) {
      std::vector<Rank::Memory> sent, received;
      std::vector<Region> regions;
      CollectiveRun run{.work = RankWork::Exchange};
      for (uint32_t peer = 0; peer < 3; ++peer) {
        if (peer == r.rank())
          continue;
        sent.push_back(r.filled(std::vector<std::byte>(bytesFrom(r.rank(), peer), std::byte(r.rank() * 16 + peer))));
        received.push_back(r.memory(bytesFrom(peer, r.rank())));
        regions.push_back(r.region(sent.back(), Access::Read));
        regions.push_back(r.region(received.back(), Access::Write));
        run.peers.insert(run.peers.end(), {peer, peer});
      }
      r.expectReached(r.submit(*r.stream, run, regions));
      size_t at = 0;
      for (uint32_t peer = 0; peer < 3; ++peer)
        if (peer != r.rank())
          EXPECT_EQ(r.contents(received[at++]),
                    std::vector<std::byte>(bytesFrom(peer, r.rank()), std::byte(peer * 16 + r.rank())));
    }
  });
}

TEST_P(CommunicatorConformance, OnlyPeersTakePartInAnExchange) {
  RANKS(3, kLong, [&](Rank &r) {
    if (r.rank() == 0) {
      const Rank::Memory a = r.filled(spell({5}, i32)), b = r.filled(spell({6, 7}, i32));
      r.expectReached(r.submit(*r.stream, {.work = RankWork::Exchange, .peers = {2, 2}},
                               {r.region(a, Access::Read), r.region(b, Access::Read)}));
    } else if (r.rank() == 2) {
      const Rank::Memory a = r.memory(4), b = r.memory(8);
      r.expectReached(r.submit(*r.stream, {.work = RankWork::Exchange, .peers = {0, 0}},
                               {r.region(a, Access::Write), r.region(b, Access::Write)}));
      EXPECT_EQ(r.contents(a), spell({5}, i32));
      EXPECT_EQ(r.contents(b), spell({6, 7}, i32));
    }
    Rank::Memory m = r.filled(spell({1}, f32));
    r.expectReached(r.sum(m));
    EXPECT_EQ(r.contents(m), spell({3}, f32));
  });
}

TEST_P(CommunicatorConformance, NoRankPassesABarrierAlone) {
  std::atomic<int> begun{0};
  RANKS(3, kLong, [&](Rank &r) {
    for (int round = 1; round <= 5; ++round) {
      begun.fetch_add(1);
      r.expectReached(r.barrier());
      EXPECT_GE(begun.load(), 3 * round);
      r.expectReached(r.barrier());
    }
  });
}

TEST_P(CommunicatorConformance, TwoCommunicatorsShareDevices) {
  const std::string name = freshName();
  RANKS(3, kLong, [&](Rank &r) {
    // The other one has the ranks the other way round.
    const auto other = make(*r.device, name, 2 - r.rank(), 3, kLong);
    std::vector<Rank::Memory> memories;
    std::vector<Event> ends;
    for (int i = 0; i < 20; ++i) {
      memories.push_back(r.filled(spell({int(r.rank()), i}, i32)));
      memories.push_back(r.memory(24));
      const Rank::Memory &source = memories[size_t(2 * i)], &target = memories[size_t(2 * i + 1)];
      ends.push_back(r.submit(i % 3 ? *r.stream : *r.second,
                              {.kind = CollectiveKind::AllGather, .type = i32, .communicator = i % 2 ? other : r.comm},
                              {r.region(source, Access::Read), r.region(target, Access::Write)}));
    }
    for (Event end : ends)
      r.expectReached(end);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(r.contents(memories[size_t(2 * i + 1)]),
                spell(i % 2 ? Numbers{2, i, 1, i, 0, i} : Numbers{0, i, 1, i, 2, i}, i32));
    other->close();
  });
}

TEST_P(CommunicatorConformance, RefusesWhatMeansNothing) {
  RANKS(2, kLong, [&](Rank &r) {
    const Rank::Memory a = r.memory(8), b = r.memory(16), odd = r.memory(6);
    const Region from = r.region(a, Access::Read), to = r.region(b, Access::Write);
    EXPECT_THROW(r.submit(*r.stream, {}, {from, to}), Error);
    EXPECT_THROW(r.submit(*r.stream, {}, {from}), Error);
    EXPECT_THROW(r.submit(*r.stream, {.kind = CollectiveKind::ReduceScatter}, {from, to}), Error);
    EXPECT_THROW(r.submit(*r.stream, {.kind = CollectiveKind::AllGather},
                          {r.region(b, Access::Read), r.region(a, Access::Write)}),
                 Error);
    EXPECT_THROW(
        r.submit(*r.stream, {.kind = CollectiveKind::Broadcast, .root = 2}, {from, r.region(a, Access::Write)}), Error);
    EXPECT_THROW(r.submit(*r.stream, {.kind = CollectiveKind::Broadcast, .root = r.rank()}, {to}), Error);
    EXPECT_THROW(r.submit(*r.stream, {.work = RankWork::Barrier}, {to}), Error);
    EXPECT_THROW(r.submit(*r.stream, {.work = RankWork::Exchange, .peers = {1 - r.rank()}}, {from, to}), Error);
    EXPECT_THROW(r.submit(*r.stream, {.work = RankWork::Exchange, .peers = {r.rank()}}, {to}), Error);
    EXPECT_THROW(r.submit(*r.stream, {}, {r.region(odd, Access::Read), r.region(odd, Access::Write)}), Error);
    if (GetParam().isNccl) {
      EXPECT_THROW(r.submit(*r.stream, {.type = i16}, {from, r.region(a, Access::Write)}), Error);
    }
    Rank::Memory m = r.filled(spell({1, 2}, f32)); // and it works as before
    r.expectReached(r.sum(m));
    EXPECT_EQ(r.contents(m), spell({2, 4}, f32));
  });
}

//--- What fails -------------------------------------------------------------------------------------------------------
TEST_P(CommunicatorConformance, ARankThatDoesNotComeIsNamed) {
  std::atomic<int> told{0};
  RANKS(3, kShort, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({1}, f32));
    r.expectReached(r.sum(m));
    if (r.rank() != 1) {
      const auto begin = Clock::now();
      const Event part = r.sum(m);
      const Event behind = r.copy(*r.second, r.region(m, Access::Read), r.region(m, Access::Write), {part});
      r.expectBlames(part, 1);
      r.expectBlames(behind, 1); // what waits for it fails with it
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
      EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(300));
      ++told;
    }
    while (told < 2)
      std::this_thread::yield();
    EXPECT_NE(r.comm->failure(), nullptr);
    m.uses.push_back(r.stream->last());
  });
}

TEST_P(CommunicatorConformance, ARankThatAbortsIsNamed) {
  RANKS(3, kLong, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({1}, f32));
    r.expectReached(r.sum(m));
    r.comm->agree(1); // all have seen it end
    if (r.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      r.comm->abort("its data is gone");
    }
    std::vector<Event> parts; // in flight when it does
    const auto begin = Clock::now();
    for (int i = 0; i < 3; ++i)
      parts.push_back(r.sum(m, i % 2 ? r.second.get() : nullptr));
    for (Event part : parts)
      r.expectBlames(part, 2);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
    EXPECT_NE(r.comm->failure()->message.find("its data is gone"), std::string::npos) << r.comm->failure()->message;
    m.uses = {r.stream->last(), r.second->last()};
  });
}

TEST_P(CommunicatorConformance, ARankWhoseStreamHasFailedIsNamed) {
  RANKS(2, kLong, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({1}, f32));
    if (r.rank() == 0) {
      r.stream->submit({.kind = DeviceCommandKind::HostCall, .host = [](void *) { return int32_t(7); }});
      EXPECT_NE(r.failureOf(r.sum(m)), nullptr);
    } else {
      r.expectBlames(r.sum(m), 0);
    }
    m.uses.push_back(r.stream->last());
  });
}

TEST_P(CommunicatorConformance, AStreamThatIsAbortedTakesItsRankAlong) {
  RANKS(2, kLong, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({1}, f32)), n = r.filled(spell({1}, f32));
    if (r.rank() == 0) {
      const Event part = r.sum(m); // rank 1 never comes to its second
      r.expectReached(part);
      r.comm->agree(1);
      const Event second = r.sum(m);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const auto begin = Clock::now();
      r.stream->abort(std::make_shared<DeviceFailure>(FailureKind::Launch, "the caller has given up"));
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
      EXPECT_EQ(r.failureOf(second)->message, "the caller has given up");
    } else {
      r.expectReached(r.sum(m));
      r.comm->agree(1);
      while (!r.comm->failure())
        std::this_thread::yield();
      r.expectBlames(r.sum(n), 0);
    }
    m.uses = n.uses = {r.stream->last()};
  });
}

TEST_P(CommunicatorConformance, DifferentWorksNameBothRanks) {
  RANKS(2, kShort, [&](Rank &r) {
    Rank::Memory a = r.filled(spell({1, 2, 3, 4}, f32));
    const Event part = r.rank() == 0 ? r.sum(a)
                                     : r.submit(*r.stream, {.reduction = Reduction::Max},
                                                {r.region(a, Access::Read), r.region(a, Access::Write)});
    const DeviceFailureRef failure = r.failureOf(part);
    for (const char *has : {"rank 0 (", "rank 1 ("})
      if (!GetParam().isNccl) // which does not know what the others do: they fail by their time
        EXPECT_NE(failure->message.find(has), std::string::npos) << failure->message;
    EXPECT_GE(failure->rank, 0);
    a.uses.push_back(r.stream->last());
  });
}

TEST_P(CommunicatorConformance, ARevokedOneFailsForAll) {
  RANKS(3, kLong, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({1}, f32));
    if (r.rank() == 0)
      r.comm->revoke("the plan has changed");
    else
      r.expectBlames(r.sum(m), 0, FailureKind::Revoked);
    while (!r.comm->failure())
      std::this_thread::yield();
    r.expectBlames(r.sum(m, r.second.get()), 0, FailureKind::Revoked);
    // None is lost by that.
    const auto again = r.comm->shrink();
    EXPECT_EQ(again->size(), 3u);
    EXPECT_EQ(again->rank(), r.rank());
    again->close();
    m.uses = {r.stream->last(), r.second->last()};
  });
}

TEST_P(CommunicatorConformance, SurvivorsAgree) {
  RANKS(3, kLong, [&](Rank &r) {
    EXPECT_EQ(r.comm->agree(0b111u ^ (1u << r.rank())), 0u);
    if (r.rank() == 0)
      return r.comm->abort("it leaves");
    EXPECT_EQ(r.comm->agree(r.rank() == 1 ? 0b1100 : 0b0110), 0b0100u);
  });
}

TEST_P(CommunicatorConformance, SurvivorsShrinkAndGoOn) {
  RANKS(3, 10 * kSecond, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({1, 2}, f32));
    r.expectReached(r.sum(m));
    r.comm->agree(1);
    if (r.rank() == 1) {
      r.comm->abort("it leaves");
      EXPECT_THROW(r.comm->shrink(), RuntimeError);
      return;
    }
    r.expectBlames(r.sum(m), 1);
    const auto smaller = r.comm->shrink();
    ASSERT_EQ(smaller->size(), 2u);
    EXPECT_EQ(smaller->rank(), r.rank() / 2);
    EXPECT_EQ(smaller->hostOf(0), r.comm->hostOf(0));
    const auto stream = r.device->makeStream(StreamKind::Compute, "c", 0); // a stream that has failed is of no use
    Rank next{.comm = smaller,
              .machine = r.machine,
              .device = r.device,
              .host = r.host,
              .stream = r.device->makeStream(StreamKind::Compute, "c", 0)};
    Rank::Memory n = next.filled(spell({int(r.rank()), 5}, f32));
    for (int i = 0; i < 3; ++i)
      next.expectReached(next.sum(n));
    EXPECT_EQ(next.contents(n), spell({8, 40}, f32));
    smaller->close();
    m.uses.push_back(r.stream->last());
  });
}

// What fails with the lost rank does not take the others along.
TEST_P(CommunicatorConformance, PartsThatFailLoseNoOtherRank) {
  RANKS(3, 10 * kSecond, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({1, 2}, f32));
    if (r.rank() == 0)
      return r.comm->abort("it leaves");
    std::vector<Event> parts;
    for (int i = 0; i < 6; ++i)
      parts.push_back(r.sum(m, i % 2 ? r.second.get() : nullptr));
    for (Event part : parts)
      r.expectBlames(part, 0);
    const auto smaller = r.comm->shrink();
    EXPECT_EQ(smaller->size(), 2u);
    smaller->close();
    m.uses = {r.stream->last(), r.second->last()};
  });
}

TEST_P(CommunicatorConformance, ARankThatDoesNotComeIsLeftBehind) {
  std::atomic<int> shrunk{0};
  RANKS(3, kShort, [&](Rank &r) {
    if (r.rank() == 0) {
      while (shrunk < 2)
        std::this_thread::yield();
      EXPECT_THROW(r.comm->agree(1), RuntimeError);
      return;
    }
    const auto smaller = r.comm->shrink();
    EXPECT_EQ(smaller->size(), 2u);
    ++shrunk;
    smaller->close();
  });
}

//--- How it ends ------------------------------------------------------------------------------------------------------
TEST_P(CommunicatorConformance, WorkInFlightKeepsIt) {
  RANKS(2, kLong, [&](Rank &r) {
    Semaphore go;
    Rank::Memory m = r.filled(spell({3}, f32));
    const Event part = r.submit(*r.stream, {}, {r.region(m, Access::Read), r.region(m, Access::Write)}, {{&go, 1}});
    r.comm.reset();
    go.signal(1);
    r.expectReached(part);
    EXPECT_EQ(r.contents(m), spell({6}, f32));
  });
}

TEST_P(CommunicatorConformance, DroppedWithWorkThatCannotEnd) {
  RANKS(2, kShort, [&](Rank &r) {
    if (r.rank() == 1)
      return r.comm.reset();
    Rank::Memory m = r.filled(spell({3}, f32));
    const Event part = r.sum(m);
    const std::string host = r.comm->hostOf(1);
    r.comm.reset();
    const DeviceFailureRef failure = r.failureOf(part);
    EXPECT_EQ(failure->rank, 1) << failure->message;
    EXPECT_EQ(failure->host, host);
    m.uses.push_back(r.stream->last());
  });
}

TEST_P(CommunicatorConformance, ClosingWaitsForWhatIsInFlight) {
  RANKS(2, kLong, [&](Rank &r) {
    Rank::Memory m = r.filled(spell({3}, f32));
    std::vector<Event> parts;
    for (int i = 0; i < 10; ++i)
      parts.push_back(r.sum(m));
    r.comm->close();
    r.expectReached(parts.back());
    r.comm->close();
    EXPECT_NE(r.failureOf(r.sum(m)), nullptr); // what comes later has no ranks to meet
    m.uses.push_back(r.stream->last());
  });
}

//--- Making them ------------------------------------------------------------------------------------------------------
TEST(Communicator, RanksThatDoNotComeAreNamed) {
  try {
    makeLocalCommunicator("alone", 0, 2, kShort / 5);
    FAIL();
  } catch (const RuntimeError &error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 of 2"), std::string::npos) << error.what();
  }
  EXPECT_THROW(makeLocalCommunicator("outside", 2, 2), InputError);
  EXPECT_THROW(makeLocalCommunicator("no time", 0, 1, 0), InputError);
  EXPECT_EQ(makeLocalCommunicator("alone", 0, 1)->size(), 1u); // the name is free again
}

INSTANTIATE_TEST_SUITE_P(, CommunicatorConformance,
                         ::testing::Values(Implementation{"local", false}, Implementation{"nccl", true}),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace tressel::runtime
