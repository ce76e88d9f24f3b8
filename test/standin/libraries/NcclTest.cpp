// Communicators by NCCL, against the stand-in library and driver: what the suite over all communicators cannot ask for.
// Errors of calls and asynchronous ones, cards that a failed part stays on, missing waits, what is left behind.
#include "NcclControl.h"
#include "test/standin/StandIn.h"
#include "tressel/runtime/Communicator.h"
#include "tressel/runtime/Error.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace tressel::runtime {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

standin::NcclControl &library() {
  static auto *const control = [] {
    void *opened = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    const auto get =
        opened ? reinterpret_cast<standin::NcclControl *(*)()>(dlsym(opened, "tressel_standin_nccl")) : nullptr;
    if (!get) {
      std::fprintf(stderr,
                   "the stand-in NCCL is not there (standin/libnccl.so.2 beside the folder bin of the build)\n");
      std::exit(2);
    }
    return get();
  }();
  return *control;
}
const standin::Control &driver() { return *standin::control(); }

/// A rank with eight numbers on its card.
struct Rank {
  Machine &machine;
  Device &card;
  std::shared_ptr<Communicator> comm = nullptr;
  std::unique_ptr<Stream> stream = card.makeStream(StreamKind::Compute, "a", 0),
                          second = card.makeStream(StreamKind::CopyOut, "b", 0);
  std::vector<void *> memory = {};
  float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};

  Region on(void *at, Access access) const {
    return {at, sizeof values, access, {card.caps().device, MemoryKind::Device}};
  }
  Region host(Access access) { return {values, sizeof values, access, {{DeviceKind::Cpu, 0}, MemoryKind::Host}}; }
  void *allocate() { return memory.emplace_back(card.allocate(sizeof values, MemoryKind::Device)); }
  Event copy(Stream &in, Region from, Region to, std::vector<Event> waits = {}) const {
    const Region regions[] = {from, to};
    return in.submit({.kind = DeviceCommandKind::Copy, .regions = regions, .waits = waits});
  }
  void *filled() {
    void *at = allocate();
    copy(*stream, host(Access::Read), on(at, Access::Write));
    return at;
  }
  Event sum(void *at, const std::shared_ptr<Communicator> &with) const {
    const Region regions[] = {on(at, Access::Read), on(at, Access::Write)};
    return stream->submit({.kind = DeviceCommandKind::Collective,
                           .regions = regions,
                           .collective = std::make_shared<const CollectiveRun>(CollectiveRun{.communicator = with})});
  }
  Event sum(void *at) const { return sum(at, comm); }
  /// Null: it is reached.
  DeviceFailureRef await(Event event) const {
    EXPECT_EQ(machine.awaitAny({&event, 1}, 60 * kSecond), 0);
    return event.state() == Semaphore::State::Failed ? event.semaphore->failure() : nullptr;
  }
  /// The streams go, as those of a program that has failed, and with them all parts.
  void drop() {
    stream.reset();
    second.reset();
  }
};

class NcclCommunicators : public ::testing::TestWithParam<int> {
protected:
  NcclCommunicators() {
    driver().configure("forget=1");
    library().patience = GetParam();
    library().failAt = library().asyncFailAt = library().shrinkFailAt = 0;
    library().failure = 2;
    library().revokes = true;
    library().tellsOthers = false;
    library().shrunk = library().revoked = library().aborted = library().finalized = 0;
  }
  /// Ranks as threads; rank r has card `cards[r]`.
  void onRanks(const std::vector<int> &cards, int64_t timeoutNs, const std::function<void(Rank &)> &body) {
    const auto machine = openMachine("cuda");
    static std::atomic<int> made{0};
    const std::string name = "nccl test " + std::to_string(made++);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < cards.size(); ++r)
      threads.emplace_back([&, r] {
        Rank rank{*machine, machine->at({DeviceKind::Gpu, uint16_t(cards[r])})};
        std::string problem;
        try {
          rank.comm =
              makeNcclCommunicator(makeLocalCommunicator(name, r, uint32_t(cards.size()), timeoutNs), rank.card);
        } catch (const Error &error) {
          problem = error.what();
        }
        if (rank.comm)
          body(rank);
        else
          problems_[r] = problem;
        rank.drop();
        if (rank.comm)
          rank.comm->close();
        for (void *memory : rank.memory)
          rank.card.release(memory, {});
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  void TearDown() override {
    EXPECT_EQ(standin::findings(driver()), "");
    EXPECT_EQ(library().communicators.load(), 0u);
    driver().drain();
    const standin::Alive alive = driver().alive();
    EXPECT_EQ(alive.allocations, 0u);
    EXPECT_EQ(alive.streams, 0u);
    EXPECT_EQ(alive.pending, 0u);
  }
  std::vector<std::string> problems_ = std::vector<std::string>(8);
};

TEST_P(NcclCommunicators, EndInOrder) {
  onRanks({0, 1, 2}, 60 * kSecond, [](Rank &r) {
    void *at = r.filled();
    EXPECT_EQ(r.await(r.sum(at)), nullptr);
    EXPECT_EQ(r.await(r.copy(*r.stream, r.on(at, Access::Read), r.host(Access::Write))), nullptr);
    EXPECT_EQ(r.values[7], 24);
    r.comm->close();
  });
  EXPECT_EQ(library().finalized.load(), 3u);
  EXPECT_EQ(library().aborted.load(), 0u);
}

TEST_P(NcclCommunicators, TwoRanksOnACardAreRefused) {
  onRanks({0, 0}, 60 * kSecond, [](Rank &) { FAIL(); });
  for (uint32_t r : {0u, 1u})
    EXPECT_NE(problems_[r].find("ncclCommInitRankConfig failed"), std::string::npos) << problems_[r];
}

TEST_P(NcclCommunicators, AMachineWithoutCardsIsRefused) {
  const auto cpu = makeCpuDevice();
  try {
    makeNcclCommunicator(makeLocalCommunicator("no card", 0, 1), *cpu);
    FAIL();
  } catch (const InputError &error) {
    EXPECT_NE(std::string(error.what()).find("cpu (cpu) is none"), std::string::npos) << error.what();
  }
}

TEST_P(NcclCommunicators, ACallThatFailsLosesItsRank) {
  library().failAt = 4; // the second sum of a rank
  std::atomic<int> lost{-1};
  onRanks({0, 1, 2}, 20 * kSecond, [&](Rank &r) {
    void *at = r.filled();
    EXPECT_EQ(r.await(r.sum(at)), nullptr);
    r.comm->agree(1); // all have seen it end
    const DeviceFailureRef failure = r.await(r.sum(at));
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, FailureKind::RankLost);
    EXPECT_NE(failure->message.find("unhandled system error"), std::string::npos) << failure->message;
    lost = failure->rank;
    if (failure->rank == int(r.comm->rank())) {
      EXPECT_THROW(r.comm->shrink(), RuntimeError);
      return;
    }
    // The others go on by what NCCL has for that.
    const auto smaller = r.comm->shrink();
    EXPECT_EQ(smaller->size(), 2u);
    r.stream = r.card.makeStream(StreamKind::Compute, "c", 0);
    void *again = r.filled();
    EXPECT_EQ(r.await(r.sum(again, smaller)), nullptr);
    r.await(r.copy(*r.stream, r.on(again, Access::Read), r.host(Access::Write)));
    EXPECT_EQ(r.values[7], 16);
    smaller->close();
  });
  EXPECT_GE(lost.load(), 0);
  EXPECT_EQ(library().shrunk.load(), 2u);
}

TEST_P(NcclCommunicators, WhereNcclCannotShrinkTheSurvivorsBeginAnew) {
  library().shrinkFailAt = 2;
  onRanks({0, 1, 2}, 20 * kSecond, [&](Rank &r) {
    void *at = r.filled();
    EXPECT_EQ(r.await(r.sum(at)), nullptr);
    r.comm->agree(1); // all have seen it end
    if (r.comm->rank() == 1)
      return r.comm->abort("it leaves");
    const auto smaller = r.comm->shrink();
    EXPECT_EQ(smaller->size(), 2u);
    void *again = r.filled();
    EXPECT_EQ(r.await(r.sum(again, smaller)), nullptr);
    r.await(r.copy(*r.stream, r.on(again, Access::Read), r.host(Access::Write)));
    EXPECT_EQ(r.values[7], 16);
    smaller->close();
  });
  EXPECT_EQ(library().shrunk.load(), 1u);
}

TEST_P(NcclCommunicators, AnAsynchronousErrorIsToldToAllRanks) {
  library().asyncFailAt = 3;
  onRanks({0, 1}, 20 * kSecond, [&](Rank &r) {
    void *at = r.filled();
    DeviceFailureRef failure;
    for (int i = 0; i < 3 && !failure; ++i)
      failure = r.await(r.sum(at));
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, FailureKind::Revoked);
    EXPECT_GE(failure->rank, 0);
    EXPECT_FALSE(failure->host.empty());
    EXPECT_NE(failure->message.find("NCCL reports unhandled system error"), std::string::npos) << failure->message;
    const auto again = r.comm->shrink(); // no rank is lost
    EXPECT_EQ(again->size(), 2u);
    r.stream = r.card.makeStream(StreamKind::Compute, "c", 0);
    void *more = r.filled();
    EXPECT_EQ(r.await(r.sum(more, again)), nullptr);
    again->close();
  });
}

// A part stays on the card until its communicator is aborted, yet what waits for it is told in time.
TEST_P(NcclCommunicators, WhatStaysOnTheCardIsToldAsWell) {
  library().revokes = false;
  std::atomic<bool> told{false};
  onRanks({0, 1}, kSecond / 4, [&](Rank &r) {
    void *at = r.filled(), *other = r.filled(), *third = r.filled();
    if (r.comm->rank() == 1) {
      while (!told)
        std::this_thread::yield();
      return;
    }
    const Event part = r.sum(at);
    const Event behind = r.copy(*r.stream, r.on(at, Access::Read), r.on(other, Access::Write));
    const Event away = r.copy(*r.second, r.on(at, Access::Read), r.on(third, Access::Write), {part});
    Semaphore signalled;
    r.second->submit({.kind = DeviceCommandKind::Signal, .signal = {&signalled, 1}});
    for (Event event : {part, behind, away, Event{&signalled, 1}}) {
      const DeviceFailureRef failure = r.await(event);
      ASSERT_NE(failure, nullptr);
      EXPECT_EQ(failure->rank, 1) << failure->message;
    }
    // What it uses is not given to others while it is there.
    const Event uses[] = {part, away};
    r.card.release(at, uses);
    std::erase(r.memory, at);
    told = true;
  });
}

TEST_P(NcclCommunicators, AMissingWaitIsFound) {
  driver().configure("findings=keep plant=no-wait");
  onRanks({0, 1}, 60 * kSecond, [&](Rank &r) {
    void *at = r.filled();
    r.await(r.stream->last());
    r.await(r.copy(*r.second, r.on(at, Access::Read), r.host(Access::Write), {r.sum(at)}));
  });
  const std::string found = standin::findings(driver());
  EXPECT_NE(found.find("ncclAllReduce"), std::string::npos) << found;
  driver().configure("findings=exit plant=none forget=1");
}

INSTANTIATE_TEST_SUITE_P(, NcclCommunicators, ::testing::Values(0, 2, 7),
                         [](const auto &info) { return "InProgressFor" + std::to_string(info.param); });

TEST(NcclVersion, AnOlderOneIsRefused) {
  const char *const version = std::getenv("TRESSEL_STANDIN_NCCL_VERSION");
  if (!version)
    GTEST_SKIP() << "runs with TRESSEL_STANDIN_NCCL_VERSION=22703";
  const auto machine = openMachine("cuda");
  try {
    makeNcclCommunicator(makeLocalCommunicator("old", 0, 1), machine->at({DeviceKind::Gpu, 0}));
    FAIL();
  } catch (const InputError &error) {
    EXPECT_NE(std::string(error.what()).find("libnccl.so.2 is NCCL 2.27.3, and 2.28.0 is the oldest that serves"),
              std::string::npos)
        << error.what();
  }
}

} // namespace
} // namespace tressel::runtime

int main(int argc, char **argv) {
  tressel::standin::requireStandIn(argv, "order=late seed=3 cards=3");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
