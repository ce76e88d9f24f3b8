// Writes the program of one rank by hand, for tests.
#pragma once

#include "ScheduleBuilder.h"
#include "tressel/runtime/Ranks.h"
#include "tressel/runtime/VerifySchedule.h"

#include <gtest/gtest.h>

namespace tressel::runtime {

inline constexpr DeviceRef kGpu{DeviceKind::Gpu, 0};

inline std::string verdict(const Schedule &s) {
  const auto found = verifySchedule(s, 1);
  return found.empty() ? "" : found[0].message;
}
inline void expectFault(const Schedule &s, ViolationKind kind, const std::string &text) {
  const auto found = verifySchedule(s);
  ASSERT_FALSE(found.empty()) << "accepted; expected: " << text;
  EXPECT_EQ(found[0].kind, kind) << found[0].message;
  EXPECT_NE(found[0].message.find(text), std::string::npos) << found[0].message;
}

/// One rank: streams 0 cpu, 1 gpu, 2 gpu.comm; on the host one arena, on the accelerator another.
struct RankBuilder : ScheduleBuilder {
  explicit RankBuilder(std::vector<MeshAxis> mesh, Size arenaBytes = 4096) : ScheduleBuilder(1) {
    s.mesh = std::move(mesh);
    s.streams.push_back({kGpu, StreamKind::Compute, "gpu"});
    s.streams.push_back({kGpu, StreamKind::CopyOut, "comm"});
    s.arenas.push_back({{}, MemoryKind::Pinned, arenaBytes});
    s.arenas.push_back({kGpu, MemoryKind::Device, arenaBytes});
  }
  uint32_t onHost(Size offset, TensorType type) { return buffer(Space::Arena, 0, offset, type); }
  uint32_t onGpu(Size offset, TensorType type) { return buffer(Space::Arena, 1, offset, type); }
  uint32_t collective(CollectiveKind kind, std::vector<uint32_t> axes, uint32_t source, uint32_t target,
                      std::vector<uint32_t> waits = {}, uint16_t stream = 2) {
    s.collectives.push_back({.name = "c" + std::to_string(s.collectives.size()),
                             .members = {stream},
                             .kind = kind,
                             .axes = std::move(axes)});
    return command({.kind = CommandKind::Collective, .stream = stream, .kernel = uint32_t(s.collectives.size() - 1)},
                   {{source, Access::Read}, {target, Access::Write}}, waits);
  }
};

inline const TensorType kFlag{DType::boolean, Shape{}}, kWords{i32, Shape{8}};

/// A branch on the host by a flag, with a collective in its first body.
struct Decision : RankBuilder {
  explicit Decision(std::vector<MeshAxis> mesh = {{"data", 2}, {"tensor", 2}}) : RankBuilder(std::move(mesh)) {
    near = onGpu(0, kFlag);
    nearCopy = onGpu(64, kFlag);
    words = onGpu(128, kWords);
    flag = onHost(0, kFlag);
    given = input("stop", kFlag);
    own = copy(given, near, {}, 1);
    filled = fill(words, 1, {}, 1);
  }
  void decide(std::vector<uint32_t> waits) {
    const uint32_t body = bodies(2);
    waits.push_back(filled);
    command({.kind = CommandKind::Branch, .body = body}, {{flag, Access::Read}}, waits);
    const int64_t before = now;
    into(body);
    now = int64_t(body);
    collective(CollectiveKind::AllReduce, {0}, words, words);
    before < 0 ? intoStep() : into(uint32_t(before));
    now = before;
  }
  uint32_t near, nearCopy, words, flag, given, own, filled;
  int64_t now = -1;
};

} // namespace tressel::runtime
