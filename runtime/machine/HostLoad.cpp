// Compares the speed of this machine now with its calibration.
#include "tressel/runtime/HostLoad.h"

#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Shutdown.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <thread>
#include <vector>

namespace tressel::runtime {
namespace {

/// of the time that threads have a core: below it, other processes use the machine
constexpr double kLittleShare = 0.9;

using Clock = std::chrono::steady_clock;

double threadCpuSeconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// One or two milliseconds of work: arithmetic in registers, and one read of a buffer larger than most caches.
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
  // several time slices of the scheduler, 4 to 8 ms each: within one slice no load shows
  constexpr auto kSpan = std::chrono::milliseconds(35);
  constexpr int kLeast = 3;
  struct Sum {
    double wall, cpu;
    int pieces = 0;
  };
  std::vector<Sum> sums(static_cast<size_t>(threads));
  std::atomic<int> missing{threads};
  std::atomic<float> sink{0};
  auto work = [&](Sum &sum) {
    const std::vector<float> buffer(kElements, 1.0F);
    sink = doPiece(buffer);
    // Spins instead of using a barrier, which sleeps: the scheduler may wake two threads on one core while another one
    // is idle.
    for (--missing; missing > 0;)
      std::this_thread::yield();
    const Clock::time_point start = Clock::now();
    const double cpu = threadCpuSeconds();
    Clock::time_point now = start;
    for (; now - start < kSpan || sum.pieces < kLeast; now = Clock::now(), ++sum.pieces)
      sink = doPiece(buffer);
    sum.wall = std::chrono::duration<double>(now - start).count(), sum.cpu = threadCpuSeconds() - cpu;
  };
  {
    std::vector<std::thread> others;
    for (size_t i = 1; i < sums.size(); ++i)
      others.push_back(startInternalThread("tressel.load", [&work, &sum = sums[i]] { work(sum); }));
    work(sums[0]);
    for (std::thread &other : others)
      other.join();
  }
  PieceTime time;
  double wall = 0, cpu = 0;
  for (const Sum &sum : sums) { // a kernel ends with its slowest thread
    time.seconds = std::max(time.seconds, sum.wall / sum.pieces);
    wall += sum.wall, cpu += sum.cpu;
  }
  time.share = std::min(1.0, cpu / wall);
  return time;
}

std::optional<std::string> describeLoad(const DeviceModel &cpu, const PieceTime &now) {
  constexpr double kMuch = 1.2;
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

std::optional<std::string> describeBusyCalibration(std::span<const PieceTime> times) {
  const double share = times.empty() ? 1 : std::ranges::min(times, {}, &PieceTime::share).share;
  if (share > kLittleShare)
    return std::nullopt;
  char text[256];
  std::snprintf(text, sizeof text,
                "other processes left the threads that measured %.0f%% of the cores: the figures are those of a busy machine; calibrate again when it is quiet",
                100 * share);
  return text;
}

} // namespace tressel::runtime
