// Random programs of several streams through the device seam, on the stand-in driver: kernels, copies, fills and functions of the host, with the waits that they need and no others.
//
//   random-streams --seed N --count N [--order eager|late|random|reversed|all] [--without-a-wait]
//
// Each program is run serially by the host, and then by the machine "cuda" under one seeded order of the stand-in driver, command by command or as a recorded
// group that is submitted three times. All bytes must be equal, and nothing may be found. With --without-a-wait one wait that others do not imply is left out, and
// the driver must find that.
#include "test/standin/StandIn.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/GpuCode.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tressel::runtime;

constexpr int kElements = 48;
constexpr int64_t kBytes = kElements * 4;
constexpr DeviceRef kCpu{DeviceKind::Cpu, 0};

/// c[i] = 5 a[i] + (b[i] ^ i), and the same with elements in reverse: what is read early or late shows.
const char *const kPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry mix(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 status)
{
  .reg .u32 %r<8>; .reg .u64 %rd<12>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
  cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; cvta.to.global.u64 %rd3, %rd3;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;
  ld.global.u32 %r4, [%rd5]; ld.global.u32 %r5, [%rd6];
  xor.b32 %r5, %r5, %r1; mad.lo.u32 %r6, %r4, 5, %r5;
  st.global.u32 [%rd7], %r6;
  ret;
}
)";

struct Step {
  enum class Kind { Mix, Copy, Fill, Host } kind = Kind::Mix;
  int stream = 0;
  int a = 0, b = 0, c = 0; ///< buffers: c is written
  uint32_t value = 0;
  std::vector<int> waits; ///< earlier steps
  std::vector<int> reads() const {
    if (kind == Kind::Mix)
      return {a, b};
    return kind == Kind::Copy ? std::vector<int>{a} : kind == Kind::Host ? std::vector<int>{c} : std::vector<int>{};
  }
};

struct Program {
  int cardStreams = 1, cardBuffers = 3, pinnedBuffers = 1; ///< the host's stream and buffers are the last
  std::vector<Step> steps;
  std::vector<std::vector<uint32_t>> begin; ///< contents of the buffers
  int buffers() const { return cardBuffers + pinnedBuffers; }
  bool isPinned(int buffer) const { return buffer >= cardBuffers; }
};

Program makeProgram(uint64_t seed, bool withHost) {
  std::mt19937_64 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  Program p;
  p.cardStreams = 1 + below(4);
  p.cardBuffers = 2 + below(5);
  p.pinnedBuffers = 1 + below(2);
  for (int i = 0; i < p.buffers(); ++i) {
    auto &contents = p.begin.emplace_back(kElements);
    for (uint32_t &element : contents)
      element = static_cast<uint32_t>(random());
  }
  const int count = 4 + below(28);
  for (int i = 0; i < count; ++i) {
    Step s;
    s.stream = below(p.cardStreams);
    const int kind = below(withHost ? 10 : 9);
    if (kind < 5) {
      s.kind = Step::Kind::Mix; // cards read and write pinned memory too
      s.a = below(p.buffers()), s.b = below(p.buffers()), s.c = below(p.cardBuffers);
    } else if (kind < 8) {
      s.kind = Step::Kind::Copy;
      s.a = below(p.buffers());
      do
        s.c = below(p.buffers());
      while (s.c == s.a || (!withHost && p.isPinned(s.a) && p.isPinned(s.c))); // the driver makes the host wait for a copy of its own memory
    } else if (kind < 9) {
      s.kind = Step::Kind::Fill;
      s.c = below(p.cardBuffers);
      s.value = static_cast<uint32_t>(random());
    } else {
      s.kind = Step::Kind::Host;
      s.stream = p.cardStreams;
      s.c = p.cardBuffers + below(p.pinnedBuffers);
      s.value = static_cast<uint32_t>(random());
    }
    p.steps.push_back(s);
  }
  // The waits that hazards need and that neither streams nor other waits imply, by vector clocks.
  const size_t numStreams = static_cast<size_t>(p.cardStreams) + 1;
  std::vector<std::vector<int>> clocks; // by step: the latest step of each stream that is before it, or it
  std::vector<int> lastOf(numStreams, -1);
  for (int i = 0; i < count; ++i) {
    Step &s = p.steps[static_cast<size_t>(i)];
    std::vector<int> clock(numStreams, -1);
    auto join = [&](int step) {
      for (size_t t = 0; t < numStreams; ++t)
        clock[t] = std::max(clock[t], clocks[static_cast<size_t>(step)][t]);
    };
    if (lastOf[static_cast<size_t>(s.stream)] >= 0)
      join(lastOf[static_cast<size_t>(s.stream)]);
    for (int j = i - 1; j >= 0; --j) {
      const Step &other = p.steps[static_cast<size_t>(j)];
      auto has = [](const std::vector<int> &list, int buffer) { return std::ranges::find(list, buffer) != list.end(); };
      const bool conflicts = s.c == other.c || has(s.reads(), other.c) || has(other.reads(), s.c);
      if (conflicts && clock[static_cast<size_t>(other.stream)] < j) {
        s.waits.push_back(j);
        join(j);
      }
    }
    clock[static_cast<size_t>(s.stream)] = i;
    clocks.push_back(clock);
    lastOf[static_cast<size_t>(s.stream)] = i;
  }
  return p;
}

void runSerially(const Program &p, std::vector<std::vector<uint32_t>> &buffers) {
  for (const Step &s : p.steps) {
    auto &c = buffers[static_cast<size_t>(s.c)];
    const auto &a = buffers[static_cast<size_t>(s.a)], &b = buffers[static_cast<size_t>(s.b)];
    for (uint32_t i = 0; i < kElements; ++i)
      switch (s.kind) {
      case Step::Kind::Mix: c[i] = 5 * a[i] + (b[i] ^ i); break;
      case Step::Kind::Copy: c[i] = a[i]; break;
      case Step::Kind::Fill: c[i] = s.value; break;
      case Step::Kind::Host: c[i] = 3 * c[i] + s.value; break;
      }
  }
}

struct HostWork {
  uint32_t *data;
  uint32_t value;
};
int32_t workOnHost(void *user) {
  const auto *work = static_cast<const HostWork *>(user);
  for (int i = 0; i < kElements; ++i)
    work->data[i] = 3 * work->data[i] + work->value;
  return kKernelOk;
}

class Runner {
public:
  Runner() : machine_(openMachine("cuda")), card_(machine_->at({DeviceKind::Gpu, 0})), host_(machine_->at(kCpu)) {
    GpuCode code{.arch = "sm_80"};
    code.ptx = kPtx;
    desc_ = {.symbol = "mix", .provider = "test", .target = KernelTarget::Gpu, .params = "{\"threads\":16}", .range = kElements / 16, .grain = 1};
    const KernelCode kernel{.desc = &desc_};
    kernel_ = card_.load({&kernel, 1}, std::make_shared<const std::vector<GpuCode>>(1, code)).front();
  }

  /// Runs it `times` times, one after the other; as a group, recorded once, or command by command. `skip`: a step and one of its waits that is left out.
  /// Returns the failure's message, if there is one.
  std::string run(const Program &p, int times, bool asGroup, std::pair<int, int> skip, std::vector<std::vector<uint32_t>> &buffers) {
    std::vector<void *> memory;
    for (int i = 0; i < p.buffers(); ++i)
      memory.push_back(p.isPinned(i) ? host_.allocate(kBytes, MemoryKind::Pinned) : card_.allocate(kBytes, MemoryKind::Device));
    std::string failure;
    {
      std::vector<std::unique_ptr<Stream>> streams;
      for (int i = 0; i < p.cardStreams; ++i)
        streams.push_back(card_.makeStream(StreamKind::Compute, "s"));
      streams.push_back(host_.makeStream(StreamKind::Compute, "h"));
      for (int i = 0; i < p.buffers(); ++i) // in pieces that are pageable
        move(*streams[0], buffers[static_cast<size_t>(i)].data(), kCpu, MemoryKind::Host, memory[static_cast<size_t>(i)], p.isPinned(i) ? kCpu : card_.caps().device,
             p.isPinned(i) ? MemoryKind::Pinned : MemoryKind::Device);
      std::vector<Event> all = await(streams);
      std::vector<HostWork> work(p.steps.size());
      std::vector<std::vector<Region>> regions(p.steps.size());
      std::vector<std::vector<void *>> addresses(p.steps.size());
      for (size_t i = 0; i < p.steps.size(); ++i) {
        const Step &s = p.steps[i];
        auto add = [&](int buffer, Access access) {
          const bool pinned = p.isPinned(buffer);
          regions[i].push_back({memory[static_cast<size_t>(buffer)], kBytes, access, {pinned ? kCpu : card_.caps().device, pinned ? MemoryKind::Pinned : MemoryKind::Device}});
          addresses[i].push_back(memory[static_cast<size_t>(buffer)]);
        };
        if (s.kind == Step::Kind::Mix)
          add(s.a, Access::Read), add(s.b, Access::Read), add(s.c, Access::Write);
        else if (s.kind == Step::Kind::Copy)
          add(s.a, Access::Read), add(s.c, Access::Write);
        else if (s.kind == Step::Kind::Fill)
          add(s.c, Access::Write);
        work[i] = {static_cast<uint32_t *>(memory[static_cast<size_t>(s.c)]), s.value};
      }
      auto commandOf = [&](size_t i) {
        const Step &s = p.steps[i];
        DeviceCommand c{.regions = regions[i], .tag = i};
        switch (s.kind) {
        case Step::Kind::Mix: c.kind = DeviceCommandKind::Launch, c.kernel = kernel_.get(), c.desc = &desc_; break;
        case Step::Kind::Copy: c.kind = DeviceCommandKind::Copy; break;
        case Step::Kind::Fill: c.kind = DeviceCommandKind::Fill, c.type = tressel::i32, c.fillValue = s.value; break;
        case Step::Kind::Host: c.kind = DeviceCommandKind::HostCall, c.host = workOnHost, c.user = &work[i], c.regions = {}; break;
        }
        return c;
      };
      auto isSkipped = [&](size_t i, int wait) { return skip.first == static_cast<int>(i) && skip.second == wait; };
      if (asGroup) {
        std::vector<GroupCommand> commands;
        std::vector<std::vector<uint32_t>> after(p.steps.size());
        for (size_t i = 0; i < p.steps.size(); ++i)
          for (int wait : p.steps[i].waits)
            if (!isSkipped(i, wait))
              after[i].push_back(static_cast<uint32_t>(wait));
        for (size_t i = 0; i < p.steps.size(); ++i)
          commands.push_back({.stream = static_cast<uint32_t>(p.steps[i].stream), .command = commandOf(i), .addresses = addresses[i], .after = after[i], .events = {}});
        std::vector<Stream *> list;
        for (const auto &stream : streams)
          list.push_back(stream.get());
        const auto group = machine_->record(list, commands);
        std::vector<Event> ends(p.steps.size());
        for (int time = 0; time < times && failure.empty(); ++time) {
          if (beforeSubmit)
            beforeSubmit();
          try {
            group->submit({}, 0, ends);
          } catch (const tressel::Error &problem) {
            failure = problem.message();
          }
          if (beforeAwait)
            beforeAwait();
          all = await(streams);
        }
      } else {
        for (int time = 0; time < times; ++time) {
          std::vector<Event> ends(p.steps.size());
          if (beforeSubmit)
            beforeSubmit();
          for (size_t i = 0; i < p.steps.size(); ++i) {
            std::vector<Event> waits;
            for (int wait : p.steps[i].waits)
              if (!isSkipped(i, wait))
                waits.push_back(ends[static_cast<size_t>(wait)]);
            DeviceCommand c = commandOf(i);
            c.waits = waits;
            ends[i] = streams[static_cast<size_t>(p.steps[i].stream)]->submit(c);
          }
          if (beforeAwait)
            beforeAwait();
          all = await(streams);
        }
      }
      for (const Event &e : all)
        if (e.state() != Semaphore::State::Reached && failure.empty())
          failure = e.semaphore->failure() ? e.semaphore->failure()->message : "a stream has not ended";
      if (failure.empty())
        for (int i = 0; i < p.buffers(); ++i)
          move(*streams[0], memory[static_cast<size_t>(i)], p.isPinned(i) ? kCpu : card_.caps().device, p.isPinned(i) ? MemoryKind::Pinned : MemoryKind::Device,
               buffers[static_cast<size_t>(i)].data(), kCpu, MemoryKind::Host);
      await(streams);
    }
    for (int i = 0; i < p.buffers(); ++i)
      (p.isPinned(i) ? host_ : card_).release(memory[static_cast<size_t>(i)]);
    return failure;
  }
  void (*beforeSubmit)() = nullptr, (*beforeAwait)() = nullptr;

private:
  void move(Stream &s, void *from, DeviceRef fromDevice, MemoryKind fromKind, void *to, DeviceRef toDevice, MemoryKind toKind) {
    const Region regions[] = {{from, kBytes, Access::Read, {fromDevice, fromKind}}, {to, kBytes, Access::Write, {toDevice, toKind}}};
    s.submit({.kind = DeviceCommandKind::Copy, .regions = regions});
  }
  std::vector<Event> await(const std::vector<std::unique_ptr<Stream>> &streams) {
    std::vector<Event> all;
    for (const auto &stream : streams)
      if (const Event last = stream->last(); last.value) {
        machine_->awaitAny({&last, 1}, int64_t(20) * 1'000'000'000);
        all.push_back(last);
      }
    return all;
  }
  std::shared_ptr<Machine> machine_;
  Device &card_, &host_;
  KernelDesc desc_;
  DeviceKernelRef kernel_;
};

} // namespace

int main(int argc, char **argv) {
  uint64_t seed = 1, count = 100;
  std::string order = "all";
  bool withoutAWait = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--seed" && i + 1 < argc)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--count" && i + 1 < argc)
      count = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--order" && i + 1 < argc)
      order = argv[++i];
    else if (word == "--without-a-wait")
      withoutAWait = true;
    else
      return std::fprintf(stderr, "random-streams: unknown option '%s'\n", word.c_str()), 2;
  }
  const tressel::standin::Control *driver = &tressel::standin::requireStandIn(argv, "findings=keep");
  try {
    Runner runner;
    const char *const orders[] = {"eager", "late", "random", "reversed"};
    uint64_t found = 0, tried = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t mine = seed + i;
      const Program p = makeProgram(mine, !withoutAWait);
      const std::string chosen = order == "all" ? orders[mine % 4] : order;
      const bool asGroup = mine % 3 == 0;
      std::pair<int, int> skip{-1, -1};
      if (withoutAWait) {
        std::vector<std::pair<int, int>> waits;
        for (size_t s = 0; s < p.steps.size(); ++s)
          for (int wait : p.steps[s].waits)
            waits.push_back({static_cast<int>(s), wait});
        if (waits.empty())
          continue;
        skip = waits[mine % waits.size()];
        ++tried;
      }
      driver->configure(("forget=1 order=" + chosen + " seed=" + std::to_string(mine)).c_str());
      // Without a wait, the host must not be told by chance that what was to be waited for has ended.
      if (withoutAWait) {
        runner.beforeSubmit = [] { tressel::standin::control()->configure("patience=1000000000"); };
        runner.beforeAwait = [] { tressel::standin::control()->configure("patience=3"); };
      }
      const int times = asGroup ? 3 : 1;
      std::vector<std::vector<uint32_t>> expected = p.begin, got = p.begin;
      for (int time = 0; time < times; ++time)
        runSerially(p, expected);
      const std::string failure = runner.run(p, times, asGroup, skip, got);
      const std::string findings = tressel::standin::findings(*driver);
      if (withoutAWait) {
        found += !findings.empty() || failure.find("touch the same bytes") != std::string::npos;
        if (findings.empty() && failure.empty())
          std::printf("seed %llu (%s%s): step %d without its wait for step %d was not found\n", static_cast<unsigned long long>(mine), chosen.c_str(),
                      asGroup ? ", a group" : "", skip.first, skip.second);
        continue;
      }
      if (!failure.empty() || !findings.empty() || expected != got) {
        std::printf("seed %llu (%s%s): %s%s%s\n", static_cast<unsigned long long>(mine), chosen.c_str(), asGroup ? ", a group" : "", failure.c_str(), findings.c_str(),
                    expected != got ? " other bytes than those of a serial run" : "");
        return 1;
      }
    }
    if (withoutAWait) {
      std::printf("%llu of %llu missing waits found\n", static_cast<unsigned long long>(found), static_cast<unsigned long long>(tried));
      return found == tried ? 0 : 1;
    }
    std::printf("%llu programs: equal to serial runs\n", static_cast<unsigned long long>(count));
    return 0;
  } catch (const tressel::Error &problem) {
    std::fprintf(stderr, "random-streams: %s\n", problem.what());
    return 2;
  }
}
