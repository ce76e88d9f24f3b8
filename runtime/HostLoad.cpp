// How far this machine is from what it was when it was calibrated.
#include "tressel/runtime/HostLoad.h"

#include "tressel/runtime/MachineModel.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <thread>
#include <vector>

namespace tressel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double threadCpuSeconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Some arithmetic in registers, and a buffer that most caches do not hold, read once. A millisecond or two.
float doPiece(const std::vector<float> &buffer) {
  std::array<float, 16> sums{};
  for (int i = 0; i < 100000; ++i)
    for (float &sum : sums)
      sum = sum * 0.999F + 0.5F;
  for (size_t i = 0; i + sums.size() <= buffer.size(); i += sums.size())
    for (size_t k = 0; k < sums.size(); ++k)
      sums[k] += buffer[i + k];
  float total = 0;
  for (float sum : sums)
    total += sum;
  return total;
}

} // namespace

PieceTime timePiece(int threads) {
  constexpr size_t kElements = size_t(4) << 20;
  constexpr int kRounds = 7;
  struct Round {
    double wall, cpu;
  };
  std::vector<std::array<Round, kRounds>> rounds(static_cast<size_t>(threads));
  std::barrier together(threads);
  volatile float sink = 0;
  auto work = [&](size_t thread) {
    const std::vector<float> buffer(kElements, 1.0F);
    for (Round &round : rounds[thread]) {
      together.arrive_and_wait();
      const Clock::time_point start = Clock::now();
      const double cpu = threadCpuSeconds();
      sink = doPiece(buffer);
      round = {std::chrono::duration<double>(Clock::now() - start).count(), threadCpuSeconds() - cpu};
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < rounds.size(); ++i)
      others.emplace_back(work, i);
    work(0);
  }
  // A round takes as long as its slowest thread; the first one wakes cores that slept.
  std::array<double, kRounds - 1> seconds{};
  double wall = 0, cpu = 0;
  for (size_t r = 1; r < kRounds; ++r)
    for (const auto &thread : rounds) {
      seconds[r - 1] = std::max(seconds[r - 1], thread[r].wall);
      wall += thread[r].wall, cpu += thread[r].cpu;
    }
  std::ranges::sort(seconds);
  return {seconds[seconds.size() / 2], std::min(1.0, cpu / wall)};
}

std::optional<std::string> describeLoad(const DeviceModel &cpu, const PieceTime &now) {
  constexpr double kMuch = 1.2, kLittleShare = 0.9;
  const double slowdown = now.seconds / cpu.pieceSeconds;
  if (cpu.pieceSeconds <= 0 || slowdown < kMuch)
    return std::nullopt;
  char text[256];
  std::snprintf(text, sizeof text, "a fixed piece of work takes %.1f times as long as when this machine was calibrated", slowdown);
  std::string said = text;
  if (now.share <= kLittleShare) {
    std::snprintf(text, sizeof text, " (other processes leave its threads %.0f%% of the cores)", 100 * now.share);
    said += text;
  }
  return said + "; predictions are for the machine as it was then";
}

} // namespace tressel::runtime
