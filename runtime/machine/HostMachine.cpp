// The machine model of this computer: typical figures, or those measured and saved by `tressel calibrate`.
#include "tressel/runtime/CacheFolder.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Notes.h"
#include "tressel/runtime/ThreadPool.h"

#include "runtime/types/Concat.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <unistd.h>

namespace tressel::runtime {

static int threadsOr(int threads) { return threads > 0 ? threads : ThreadPool::global().numThreads(); }

MachineModel typicalHostMachine(int numThreads) {
  const double threads = threadsOr(numThreads);
  const CpuLevel level = hostCpuLevel();
  const double lanes = level >= CpuLevel::V4 ? 16 : level >= CpuLevel::V3 ? 8 : 4;
  constexpr double clock = 2.5e9, fmaUnits = 2, flopsPerFma = 2;
  DeviceModel cpu{.name = "cpu"};
  cpu.threads = static_cast<int>(threads);
  cpu.flopsPerSecond[f32] = threads * lanes * clock * fmaUnits * flopsPerFma;
  cpu.flopsPerSecond[f64] = cpu.flopsPerSecond[f32] / 2;
  constexpr double ofOneThread = 18e9;
  cpu.bytesPerSecond = std::max(threads * 12e9, ofOneThread);
  cpu.threadBytesPerSecond = ofOneThread;
  // a single thread has all of the shared cache
  cpu.caches = {{threads * (32 << 10), threads * 4e11},
                {threads * (1 << 20), threads * 1.1e11},
                {std::max(threads, 2.0) * (4 << 20), threads * 6e10}};
  cpu.memoryBytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  cpu.commandSeconds = 30e-9;
  cpu.splitSeconds = threads > 1 ? 2e-6 : 0;
  cpu.speed = 1;
  cpu.efficiency = {{"", 0.5}, {"builtin", 0.8}, {"onednn", 0.7}, {"bitcode", 0.02}};
  MachineModel machine{.name = "this machine"};
  machine.devices.push_back(std::move(cpu));
  for (const char *figure : {"flops_per_second", "bytes_per_second", "thread_bytes_per_second", "caches", "command_seconds", "split_seconds", "speed",
                             "efficiency"})
    machine.sources[concat("cpu/", figure)] =
        "typical of servers: 2.5 GHz, two multiply-adds a cycle, caches of 32 KiB, 1 MiB and 4 MiB a thread";
  return machine;
}

MachineModel processorParts(int parts) {
  const MachineModel host = hostMachine();
  const DeviceModel &cpu = host.devices.front();
  if (parts < 1 || parts > cpu.threads)
    throw InputError(concat("machine 'cpu:", parts, "': the processor has ", cpu.threads,
                            cpu.threads == 1 ? " thread" : " threads",
                            ", so it has at most as many parts, 'cpu:", cpu.threads, "'"));
  MachineModel machine = host;
  machine.name = concat("cpu:", parts);
  const int threads = cpu.threads / parts;
  constexpr double kWakes = 20e-6; // time until the thread of a stream sees that it may continue
  machine.devices.front().memoryBytes = cpu.memoryBytes / (parts + 1);
  machine.devices.front().commandSeconds += kWakes;
  for (int i = 0; i < parts; ++i) {
    const auto share = static_cast<double>(threads) / cpu.threads;
    DeviceModel part = cpu;
    part.device = {DeviceKind::Gpu, static_cast<uint16_t>(i)};
    part.name = nameOf(part.device);
    part.threads = threads;
    for (auto &[type, rate] : part.flopsPerSecond)
      rate *= share;
    part.bytesPerSecond *= share;
    for (CacheModel &cache : part.caches)
      cache.bytes *= share, cache.bytesPerSecond *= share;
    part.memoryBytes = cpu.memoryBytes / (parts + 1);
    part.commandSeconds += kWakes;
    part.contention = 1;
    part.speed = cpu.speed > 0 ? cpu.speed : 1;
    machine.devices.push_back(std::move(part));
  }
  // A copy reads and writes each byte, so a thread copies at half of its memory bandwidth. It does not matter which
  // thread copies.
  const double rate =
      std::min(cpu.bytesPerSecond, std::max(cpu.threadBytesPerSecond, cpu.bytesPerSecond / cpu.threads)) / 2;
  const auto &devices = machine.devices;
  for (const DeviceModel &from : devices)
    for (const DeviceModel &to : devices)
      if (from.device != to.device) {
        machine.routes.push_back(
            {.from = from.device, .to = to.device, .links = {static_cast<uint32_t>(machine.links.size())}});
        machine.links.push_back(
            {concat(from.name, "-", to.name), std::min({rate, from.bytesPerSecond, to.bytesPerSecond}), kWakes});
      }
  return machine;
}

std::string hostName(int threads) {
  std::string name = "unknown";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      name = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  name += concat(", ", threadsOr(threads), " threads");
  for (const char *limit : {"TRESSEL_KERNEL_LEVEL", "TRESSEL_KERNEL_TILES"})
    if (const char *text = std::getenv(limit))
      name += concat(" ", limit, "=", text);
  return name;
}

std::string calibrationFile(int threads) {
  if (const char *given = std::getenv("TRESSEL_CALIBRATION"))
    return given;
  const std::string folder = cacheFolder();
  if (folder.empty())
    return folder;
  std::string name = hostName(threads);
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '-');
  return concat(folder, "/machines/", name, ".json");
}

MachineModel hostMachine(int numThreads) {
  static std::mutex &mutex = *new std::mutex;
  static std::map<int, MachineModel> &models = *new std::map<int, MachineModel>;
  const int threads = threadsOr(numThreads);
  std::lock_guard lock(mutex);
  if (const auto known = models.find(threads); known != models.end())
    return known->second;
  return models[threads] = [&] {
    const std::string path = calibrationFile(threads);
    std::error_code ec;
    if (!path.empty() && std::filesystem::exists(path, ec))
      try {
        const std::vector<std::byte> bytes = readFile(path);
        MachineModel machine = parseMachine({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, path);
        machine.name = "this machine";
        return machine;
      } catch (const Error &error) { // a bad file must not fail the program: predictions are optional
        const std::string text = concat("tressel: note: ", path, ": the figures of calibration cannot be used, typical ones are: ", error.what(), "\n");
        // also of the copy of this code in the compiler's library, and for another number of threads
        if (isFirstNote(text))
          std::fputs(text.c_str(), stderr);
      }
    return typicalHostMachine(threads);
  }();
}

} // namespace tressel::runtime
